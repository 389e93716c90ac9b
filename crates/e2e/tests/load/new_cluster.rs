//! A new cluster on the same buckets: the namespaces have the same names and are others. What is in a tenant's own bucket
//! comes back by itself, what is in the cluster's own storage when an administrator says so, and nothing is lost
//! meanwhile.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::NonAdminBackup;
use api::velero::Backup;
use bed::{BUCKET, eventually, wait_until};
use e2e::{Tenant, TestCluster};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::api::events::v1::Event;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;

/// Leftovers are collected all the time: what must not go has every chance to.
const POLICY: &str =
    "storageLocations:\n  endpoints:\n    allow: [\"127.0.0.1\"]\ngarbageCollection: { period: 2s }\n";
const TIMEOUT: Duration = Duration::from_mins(2);

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("reading {}", from.display()))? {
        let entry = entry?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() { copy(&path, &target)? } else { fs::copy(&path, &target).map(|_| ())? }
    }
    Ok(())
}

async fn velero_name(tenant: &Tenant<'_>, backup: &str) -> Result<String> {
    let status = tenant.api::<NonAdminBackup>().get(backup).await?.status;
    status.and_then(|status| status.velero_backup?.name).context("a reference")
}

async fn names(tenant: &Tenant<'_>) -> Result<Vec<String>> {
    let found = tenant.api::<NonAdminBackup>().list(&ListParams::default()).await?;
    Ok(found.into_iter().map(|backup| backup.name_any()).collect())
}

async fn loses_and_restores(tenant: &Tenant<'_>, restore: &str, backup: &str) -> Result<()> {
    ensure!(tenant.api::<ConfigMap>().get_opt("prices").await?.is_none());
    tenant.restore(restore, backup).await?;
    let phase = tenant.restore_ends(restore).await?;
    ensure!(phase == "Completed", "{restore} ended as {phase}");
    tenant.delete::<ConfigMap>("prices").await?;
    tenant.gone::<ConfigMap>("prices").await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_owner_finds_their_own_in_a_new_cluster() -> Result<()> {
    // A cluster that comes to its end; only the buckets are kept.
    let kept = tempfile::tempdir()?;
    let own = json!({"spec": {"backupSpec": {"storageLocation": "bucket"}}});
    let (platform, theirs) = {
        let test_cluster = TestCluster::build().await?;
        test_cluster.set_policy(POLICY).await?;
        let _nacre = test_cluster.start_nacre().await?;
        let (shop, rival) =
            (test_cluster.tenant("shop", "ada").await?, test_cluster.tenant("rival", "bob").await?);
        for tenant in [&shop, &rival] {
            tenant.create::<ConfigMap>("prices", json!({"data": {"tea": "3"}})).await?;
        }
        shop.keep_keys("keys", &test_cluster.bed.store()?.credentials()).await?;
        shop.bring_bucket("bucket", "shop-bucket", "keys").await?;
        shop.location_available("bucket").await?;
        shop.create::<NonAdminBackup>("mine", own).await?;
        shop.back_up("platform").await?;
        rival.back_up("theirs").await?;
        for (tenant, name) in [(&shop, "mine"), (&shop, "platform"), (&rival, "theirs")] {
            ensure!(tenant.backup_ends(name).await? == "Completed");
        }
        for bucket in [BUCKET, "shop-bucket"] {
            copy(&test_cluster.bed.store()?.path(bucket, ""), &kept.path().join(bucket))?;
        }
        (velero_name(&shop, "platform").await?, velero_name(&rival, "theirs").await?)
    };

    let test_cluster = TestCluster::build().await?;
    test_cluster.set_policy(POLICY).await?;
    test_cluster.bed.velero_stop()?;
    for bucket in [BUCKET, "shop-bucket"] {
        copy(&kept.path().join(bucket), &test_cluster.bed.store()?.path(bucket, ""))?;
    }
    // As if Velero had never looked at the empty bucket: it looks at once.
    test_cluster
        .bed
        .velero_status("BackupStorageLocation", "default", json!({"lastSyncedTime": null}))
        .await?;
    test_cluster.bed.velero_start().await?;
    let (shop, rival) =
        (test_cluster.tenant("shop", "ada").await?, test_cluster.tenant("rival", "bob").await?);
    let nacre = test_cluster.start_nacre().await?;

    // The tenant's own storage: asked for again, and everything in it is there.
    shop.keep_keys("keys", &test_cluster.bed.store()?.credentials()).await?;
    shop.bring_bucket("bucket", "shop-bucket", "keys").await?;
    ensure!(shop.backup_ends("mine").await? == "Completed");
    loses_and_restores(&shop, "from-mine", "mine").await?;

    // The cluster's own: Velero has found it, and it is held back for an administrator.
    let backups = test_cluster.admin::<Backup>().await?;
    for name in [&platform, &theirs] {
        wait_until("Velero to find the backup", TIMEOUT, backups.clone(), name, |found| found.map(|_| ()))
            .await?;
    }
    let client = test_cluster.bed.client().await?;
    for tenant in ["shop", "rival"] {
        let events = Api::<Event>::namespaced(client.clone(), tenant);
        eventually("the tenant's condition", TIMEOUT, async || {
            let events = events.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
            let mut reasons = events.iter().filter_map(|event| event.reason.as_deref());
            if reasons.any(|reason| reason == "BackupHeldBack") { Ok(()) } else { Err("no Event".to_owned()) }
        })
        .await?;
    }
    ensure!(names(&shop).await? == ["mine"] && names(&rival).await?.is_empty());

    // Handed over to one of them.
    let uid = Api::<Namespace>::all(client).get("shop").await?.uid();
    let record = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "nacre-adoptions"},
        "data": {"shop": uid}});
    let params = PatchParams::apply("administrator").force();
    test_cluster.admin::<ConfigMap>().await?.patch("nacre-adoptions", &params, &Patch::Apply(record)).await?;
    ensure!(shop.backup_ends("platform").await? == "Completed");
    loses_and_restores(&shop, "from-platform", "platform").await?;
    ensure!(names(&rival).await?.is_empty());

    // To everybody who has the name.
    test_cluster.set_policy(&format!("{POLICY}sync: {{ adoption: name }}\n")).await?;
    ensure!(rival.backup_ends("theirs").await? == "Completed");
    loses_and_restores(&rival, "back", "theirs").await?;

    let left = backups.list(&ListParams::default()).await?.items.len();
    let log = fs::read_to_string(nacre.process.log())?;
    ensure!(left == 3 && !log.contains("whose owner is gone"), "{left} Velero Backups are left");
    Ok(())
}
