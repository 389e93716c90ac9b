//! Velero is killed while volumes are moving, and a tenant does everything to keep Velero's only worker busy. Part of
//! `make long`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use bed::eventually;
use e2e::{NodeCluster, NodeTenant, VELERO};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::ResourceExt as _;
use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams};
use serde_json::json;

use crate::{alone, say};

const PATIENCE: Duration = Duration::from_mins(4);
/// So many bytes that Velero is still busy with them when something happens.
const BYTES: u64 = 512 << 20;
const SMALL: u64 = 1 << 20;
/// What a neighbour may have to wait, whatever a tenant does.
const WORST: Duration = Duration::from_mins(7);
/// What a neighbour may have to wait after a request was deleted, its own restore included. Velero's pod that moves the
/// data can miss that it was cancelled: then nacre ends it after a minute.
const FREED: Duration = Duration::from_mins(3);
const BACK_UP: [&str; 4] = ["backup", "create", "good", "--wait"];
const BACK: [&str; 7] = ["restore", "create", "back", "--from-backup", "good", "--wait", "--timeout=10m"];

/// Waits until the node agent works on a volume of this tenant.
async fn in_progress(tenant: &NodeTenant<'_>, kind: &str) -> Result<()> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("velero.io", "v1", kind));
    let client = tenant.cluster.site.client().await?;
    let volumes = Api::<DynamicObject>::namespaced_with(client, VELERO, &resource);
    eventually("the volume to move", PATIENCE, async || {
        let all = volumes.list(&ListParams::default()).await?.items;
        let own = all.iter().find(|volume| volume.data["spec"]["pod"]["namespace"] == *tenant.namespace);
        let phase = own.context("no volume yet")?.data["status"]["phase"].clone();
        ensure!(phase == "InProgress", "it is {phase}");
        Ok(())
    })
    .await
}

/// Kills Velero's pod, not the node agent's.
async fn kill_velero(cluster: &NodeCluster) -> Result<()> {
    let pods = Api::<Pod>::namespaced(cluster.site.client().await?, VELERO);
    let velero = pods.list(&ListParams::default().labels("deploy=velero")).await?.items;
    let name = velero.first().context("no pod of Velero")?.name_any();
    pods.delete(&name, &DeleteParams::default().grace_period(0)).await?;
    Ok(())
}

#[tokio::test]
async fn velero_killed_while_volumes_are_saved_or_come_back_is_reported_and_nothing_hangs() -> Result<()> {
    let Some(cluster) = alone().await? else { return Ok(()) };
    let tenant = cluster.tenant("velero-killed", "vera").await?;
    tenant.start_deployment("db", BYTES).await?;
    let written = tenant.checksum("db").await?;

    let kill = async {
        in_progress(&tenant, "PodVolumeBackup").await?;
        kill_velero(&cluster).await
    };
    let lost = ["backup", "create", "lost", "--wait", "--timeout=10m"];
    let (ended, killed) = tokio::join!(tenant.cli(&lost), kill);
    killed?;
    let ended = ended?;
    ensure!(matches!(ended.code, Some(1 | 3)), "a backup that was not saved is no success: {ended:#?}");

    tenant.cli(&BACK_UP).await?.with_code(0)?;
    tenant.lose_namespace_contents().await?;
    let kill = async {
        in_progress(&tenant, "PodVolumeRestore").await?;
        kill_velero(&cluster).await
    };
    let began = Instant::now();
    let (ended, killed) = tokio::join!(tenant.cli(&BACK), kill);
    killed?;
    let ended = ended?;
    say(&format!("Velero was killed: the restore ended after {:.0} s", began.elapsed().as_secs_f64()))?;
    ensure!(matches!(ended.code, Some(1 | 3)), "it was not restored: {ended:#?}");
    let condition = "jsonpath={.status.conditions[?(@.type=='DataRestored')].status}";
    let found = tenant.kubectl(&["get", "nonadminrestore", "back", "-o", condition]).await?.ok()?;
    ensure!(found.trim() == "False", "{found:?}");

    // Nothing is in the way of another try.
    tenant.lose_namespace_contents().await?;
    tenant.cli(&["restore", "create", "again", "--from-backup", "good", "--wait"]).await?.with_code(0)?;
    assert_eq!(tenant.checksum("db").await?, written);
    Ok(())
}

/// On purpose, and again and again: with nacre's default policy.
#[tokio::test]
async fn a_tenant_who_deletes_the_pod_again_and_again_holds_nobody_up() -> Result<()> {
    let Some(cluster) = alone().await? else { return Ok(()) };
    let (hostile, neighbour) =
        (cluster.tenant("hostile", "hank").await?, cluster.tenant("calm", "cleo").await?);
    hostile.start_deployment("db", BYTES).await?;
    neighbour.start_deployment("db", SMALL).await?;
    let written = neighbour.checksum("db").await?;
    for tenant in [&hostile, &neighbour] {
        tenant.cli(&BACK_UP).await?.with_code(0)?;
        tenant.lose_namespace_contents().await?;
    }
    let is_over = AtomicBool::new(false);
    let deletes = async {
        let mut pace = tokio::time::interval(Duration::from_millis(500));
        while !is_over.load(Ordering::Relaxed) {
            pace.tick().await;
            hostile.kubectl(&["delete", "pods", "--all", "--now", "--wait=false"]).await?;
        }
        anyhow::Ok(())
    };
    let restores = async {
        hostile.cli(&["restore", "create", "back", "--from-backup", "good"]).await?.with_code(0)?;
        let began = Instant::now();
        let back = neighbour.cli(&BACK).await;
        is_over.store(true, Ordering::Relaxed);
        back?.with_code(0)?;
        anyhow::Ok(began.elapsed())
    };
    let (gone, waited) = tokio::join!(deletes, restores);
    gone?;
    let waited = waited?;
    say(&format!(
        "next to a tenant who deletes pods again and again, a restore took {:.0} s",
        waited.as_secs_f64()
    ))?;
    ensure!(waited < WORST, "the neighbour waited {waited:?}");
    assert_eq!(neighbour.checksum("db").await?, written);
    Ok(())
}

/// H14: a restored pod that its owner deletes and holds by a finalizer
#[tokio::test]
async fn h14_a_pod_that_its_owner_holds_by_a_finalizer_holds_nobody_up() -> Result<()> {
    let Some(cluster) = alone().await? else { return Ok(()) };
    cluster.set_policy("volumes: {podGone: 10s}").await?;
    let (hostile, neighbour) =
        (cluster.tenant("holder", "hal").await?, cluster.tenant("adjacent", "bea").await?);
    // Two volumes, one after the other: the second is new for as long as the first moves.
    hostile.start_deployment("db", BYTES).await?;
    hostile.start_deployment("second", SMALL).await?;
    neighbour.start_deployment("db", SMALL).await?;
    let written = neighbour.checksum("db").await?;
    for tenant in [&hostile, &neighbour] {
        tenant.cli(&BACK_UP).await?.with_code(0)?;
        tenant.lose_namespace_contents().await?;
    }
    hostile.cli(&["restore", "create", "back", "--from-backup", "good"]).await?.with_code(0)?;
    let hold = json!({"metadata": {"finalizers": ["holder.example/hold"]}}).to_string();
    eventually("the pods to be held", PATIENCE, async || {
        let pods = hostile.kubectl(&["get", "pods", "-o", "name"]).await?.ok()?;
        let names: Vec<&str> = pods.lines().collect();
        ensure!(names.len() == 2, "{names:?}");
        for name in names {
            hostile.kubectl(&["patch", name, "--type=merge", "--patch", &hold]).await?.ok()?;
            hostile.kubectl(&["delete", name, "--now", "--wait=false"]).await?.ok()?;
        }
        Ok(())
    })
    .await?;
    let began = Instant::now();
    let back = neighbour.cli(&BACK).await;
    let release = json!({"metadata": {"finalizers": null}}).to_string();
    for name in hostile.kubectl(&["get", "pods", "-o", "name"]).await?.ok()?.lines() {
        hostile.kubectl(&["patch", name, "--type=merge", "--patch", &release]).await?;
    }
    back?.with_code(0)?;
    say(&format!("next to pods held by a finalizer, a restore took {:.0} s", began.elapsed().as_secs_f64()))?;
    ensure!(began.elapsed() < WORST, "the neighbour waited {:?}", began.elapsed());
    assert_eq!(neighbour.checksum("db").await?, written);
    Ok(())
}

#[tokio::test]
async fn deleting_a_restore_while_its_volume_moves_frees_velero_soon() -> Result<()> {
    let Some(cluster) = alone().await? else { return Ok(()) };
    let (shop, neighbour) =
        (cluster.tenant("undecided", "una").await?, cluster.tenant("waits", "wes").await?);
    shop.start_deployment("db", BYTES).await?;
    neighbour.start_deployment("db", SMALL).await?;
    let written = neighbour.checksum("db").await?;
    for tenant in [&shop, &neighbour] {
        tenant.cli(&BACK_UP).await?.with_code(0)?;
        tenant.lose_namespace_contents().await?;
    }
    shop.cli(&["restore", "create", "back", "--from-backup", "good"]).await?.with_code(0)?;
    in_progress(&shop, "PodVolumeRestore").await?;
    shop.kubectl(&["delete", "nonadminrestore", "back", "--wait=false"]).await?.ok()?;
    let began = Instant::now();
    neighbour.cli(&BACK).await?.with_code(0)?;
    say(&format!("after a restore was deleted, the next took {:.0} s", began.elapsed().as_secs_f64()))?;
    ensure!(began.elapsed() < FREED, "the neighbour waited {:?}", began.elapsed());
    assert_eq!(neighbour.checksum("db").await?, written);
    shop.kubectl(&["wait", "--for=delete", "nonadminrestore/back", "--timeout=2m"]).await?.ok()?;
    Ok(())
}
