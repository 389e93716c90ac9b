//! Programs are killed, removed and replaced while requests arrive. Part of `make long`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bed::{eventually, wait_until};
use e2e::{NodeCluster, NodeTenant, VELERO};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams};
use kube::{Api, ResourceExt as _};

use crate::alone;

const PATIENCE: Duration = Duration::from_mins(4);
/// Between two requests, while nacre is replaced.
const PAUSE: Duration = Duration::from_millis(700);
/// So many bytes that Velero is still busy with them when something happens.
const BYTES: u64 = 512 << 20;

const BACK_UP: [&str; 5] = ["backup", "create", "one", "--default-volumes-to-fs-backup", "--wait"];
const RESTORE: [&str; 5] = ["restore", "create", "--from-backup", "one", "--wait"];

/// Waits until the node agent works on a volume of this tenant.
async fn volume_is_read(tenant: &NodeTenant<'_>) -> Result<()> {
    let kind = GroupVersionKind::gvk("velero.io", "v1", "PodVolumeBackup");
    let client = tenant.cluster.node.client().await?;
    let backups = Api::<DynamicObject>::namespaced_with(client, VELERO, &ApiResource::from_gvk(&kind));
    eventually("the volume to be read", PATIENCE, async || {
        let all = backups.list(&ListParams::default()).await?.items;
        let own = all.iter().find(|backup| backup.data["spec"]["pod"]["namespace"] == *tenant.namespace);
        let phase = own.context("no PodVolumeBackup yet")?.data["status"]["phase"].clone();
        ensure!(phase == "InProgress", "it is {phase}");
        Ok(())
    })
    .await
}

/// Everything of the tenant is lost and comes back with the same bytes.
async fn comes_back(tenant: &NodeTenant<'_>, written: &str) -> Result<()> {
    tenant.lose_namespace_contents().await?;
    tenant.cli(&RESTORE).await?.with_code(0)?;
    assert_eq!(tenant.checksum("db").await?, written);
    Ok(())
}

#[tokio::test]
async fn a_backup_goes_on_while_kubelet_restarts() -> Result<()> {
    let Some(cluster) = alone().await? else { return Ok(()) };
    let tenant = cluster.tenant("kubelet-restarts", "ken").await?;
    tenant.start_deployment("db", BYTES).await?;
    let written = tenant.checksum("db").await?;
    let restart = async {
        volume_is_read(&tenant).await?;
        cluster.node.restart("kubelet").await
    };
    let (ended, restarted) = tokio::join!(tenant.cli(&BACK_UP), restart);
    restarted?;
    ended?.with_code(0)?;
    comes_back(&tenant, &written).await
}

#[tokio::test]
async fn a_backup_whose_node_agent_was_killed_never_claims_bytes_it_does_not_have() -> Result<()> {
    let Some(cluster) = alone().await? else { return Ok(()) };
    let tenant = cluster.tenant("agent-killed", "ann").await?;
    tenant.start_deployment("db", BYTES).await?;
    let written = tenant.checksum("db").await?;
    let kill = async {
        volume_is_read(&tenant).await?;
        let agents = Api::<Pod>::namespaced(cluster.node.client().await?, VELERO);
        let agent = agents.list(&ListParams::default().labels("name=node-agent")).await?;
        let agent = agent.items.first().context("no node agent")?.name_any();
        agents.delete(&agent, &DeleteParams::default().grace_period(0)).await?;
        Ok::<_, anyhow::Error>(())
    };
    let (ended, killed) = tokio::join!(tenant.cli(&BACK_UP), kill);
    killed?;
    let ended = ended?;
    if ended.code != Some(0) {
        // Then the exit code says so, and the next one is whole.
        ensure!(matches!(ended.code, Some(1 | 3)), "{ended:#?}");
        tenant.cli(&["backup", "delete", "one", "--yes"]).await?.with_code(0)?;
        eventually("a new node agent to make a backup", PATIENCE, async || {
            let (deleted, backup) = (["backup", "delete", "one", "--yes"], tenant.cli(&BACK_UP).await?);
            if backup.code != Some(0) {
                tenant.cli(&deleted).await?;
            }
            backup.with_code(0)
        })
        .await?;
    }
    comes_back(&tenant, &written).await
}

#[tokio::test]
async fn an_upgrade_loses_and_doubles_no_request_although_requests_arrive_all_the_time() -> Result<()> {
    let Some(cluster) = alone().await? else { return Ok(()) };
    let tenant = cluster.tenant("upgraded", "uma").await?;
    let before = cluster.nacre_pods_ready(2).await?;
    let next = "localhost/nacre:next";
    cluster.node.tag_image(&cluster.image, next).await?;

    let is_over = AtomicBool::new(false);
    let upgrade = async {
        let install = ["install", "--image", next, "--wait", "--timeout", "4m"];
        let upgraded = cluster.cli(&install).await.and_then(|output| output.with_code(0));
        let ready = cluster.nacre_pods_ready(2).await;
        is_over.store(true, Ordering::Relaxed);
        upgraded?;
        ready
    };
    let (requested, after) = tokio::join!(requests_until(&tenant, &is_over), upgrade);
    let (requested, after) = (requested?, after?);
    ensure!(after.iter().all(|pod| !before.contains(pod)), "the old pods are still there: {after:?}");
    for pod in cluster.nacre_pods().await? {
        assert_eq!(pod.spec.context("no spec")?.containers[0].image.as_deref(), Some(next));
    }
    ensure!(requested.len() > 10, "only {} requests arrived meanwhile", requested.len());
    each_is_created_once(&tenant, &requested).await
}

#[tokio::test]
async fn uninstalling_with_requests_in_flight_leaves_nothing_stuck_and_loses_none() -> Result<()> {
    let Some(cluster) = alone().await? else { return Ok(()) };
    let tenant = cluster.tenant("uninstalled", "ute").await?;
    let leaving = cluster.tenant("leaving", "leo").await?;
    cluster.nacre_pods_ready(2).await?;
    let is_over = AtomicBool::new(false);
    let uninstall = async {
        leaving.request_backup("last").await?;
        let uninstalled = cluster.cli(&["uninstall", "--yes"]).await?.with_code(0);
        is_over.store(true, Ordering::Relaxed);
        uninstalled
    };
    let (requested, uninstalled) = tokio::join!(requests_until(&tenant, &is_over), uninstall);
    let (requested, _) = (requested?, uninstalled?);
    ensure!(!requested.is_empty(), "no request arrived meanwhile");

    // Nobody is there to remove a finalizer.
    assert!(cluster.nacre_pods().await?.is_empty());
    gone(&cluster, "leaving").await?;

    // What was asked for and not done is done by the next installation.
    cluster.install().await?;
    each_is_created_once(&tenant, &requested).await
}

/// Deletes a namespace, and waits until it is gone.
async fn gone(cluster: &NodeCluster, name: &str) -> Result<()> {
    let namespaces = Api::<Namespace>::all(cluster.node.client().await?);
    namespaces.delete(name, &DeleteParams::default()).await?;
    wait_until("the namespace to be gone", PATIENCE, namespaces, name, |seen| {
        if seen.is_none() { Some(()) } else { None }
    })
    .await
}

/// Makes one request after the other, and returns their names, sorted. Uninstalling takes the permission away.
async fn requests_until(tenant: &NodeTenant<'_>, is_over: &AtomicBool) -> Result<Vec<String>> {
    let mut ticks = tokio::time::interval(PAUSE);
    let mut names = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        ticks.tick().await;
        let name = format!("request-{:04}", names.len());
        match tenant.request_backup(&name).await {
            Ok(()) => names.push(name),
            Err(error) if is_forbidden(&error) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(names)
}

/// Velero has one Backup for each request and no other.
async fn each_is_created_once(tenant: &NodeTenant<'_>, requested: &[String]) -> Result<()> {
    for name in requested {
        tenant.backup_created(name, PATIENCE).await?;
    }
    assert_eq!(tenant.velero_backups().await?, requested);
    Ok(())
}

fn is_forbidden(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(kube::Error::Api(status)) if status.code == 403)
}
