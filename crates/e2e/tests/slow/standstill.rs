//! Velero's own queue of backups stands still, and nacre sets it going again.

use std::time::Duration;

use anyhow::{Result, ensure};
use api::NonAdminBackup;
use bed::eventually;
use e2e::{FaultProxy, TestCluster, VELERO};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ListParams;
use serde_json::json;

use crate::location::{OPEN, reference};

/// Velero hears so much later that a backup is ready that it has refused it by then.
const LATE: Duration = Duration::from_secs(15);
/// Longer than it takes nacre and Velero to look at the queue again.
const TIMEOUT: Duration = Duration::from_mins(8);

/// X7: own bucket: a backup that Velero refuses at the moment it begins with it, so that Velero begins with nobody's any more
/// planted: Velero alone, before nacre's two minutes are over
#[tokio::test(flavor = "multi_thread")]
async fn x7_a_backup_that_velero_refuses_holds_up_nobody_elses_for_long() -> Result<()> {
    let test_cluster = TestCluster::build().await?;
    let nacre = test_cluster.start_nacre().await?;
    test_cluster.set_policy(OPEN).await?;
    let (shop, office) =
        (test_cluster.tenant("shop", "ada").await?, test_cluster.tenant("office", "bob").await?);
    shop.keep_keys("keys", &test_cluster.bed.store()?.credentials()).await?;
    shop.bring_bucket("bucket", "shop-bucket", "keys").await?;
    let location = reference(&shop.location_available("bucket").await?);
    office.create::<ConfigMap>("prices", json!({"data": {"tea": "3"}})).await?;

    // Velero is given a backup, and finds its storage gone when it comes to it.
    test_cluster.bed.velero_stop()?;
    let spec = json!({"spec": {"backupSpec": {"storageLocation": "bucket"}}});
    shop.create::<NonAdminBackup>("bad", spec).await?;
    shop.backup_starts("bad").await?;
    // Velero looks at it again a minute after that time.
    let looked = jiff::Timestamp::now() + Duration::from_mins(5);
    let status = json!({"phase": "Unavailable", "lastValidationTime": looked});
    test_cluster.bed.velero_status("BackupStorageLocation", &location, status).await?;
    let kubeconfig = test_cluster.bed.service_account_kubeconfig(VELERO, "velero").await?;
    let fault_proxy = FaultProxy::open(&kubeconfig).await?;
    fault_proxy.answer_late("ReadyToStart", LATE);
    std::fs::copy(fault_proxy.kubeconfig(test_cluster.bed.folder())?, &kubeconfig)?;
    test_cluster.bed.velero_start().await?;
    let refused = |found: Option<&NonAdminBackup>| is_in(found, "FailedValidation").then_some(());
    shop.wait("Velero to refuse it", "bad", refused).await?;
    // Its owner deletes it, so that there is nothing left that Velero could look at.
    shop.delete::<NonAdminBackup>("bad").await?;
    shop.gone::<NonAdminBackup>("bad").await?;

    // From now on Velero begins with nothing, though it looks at its queue once a minute.
    office.back_up("good").await?;
    let idle = async || nacre.metric("nacre_velero_idle_seconds").await;
    let good = async || office.api::<NonAdminBackup>().get("good").await;
    let idle_for_long = async || {
        let (seconds, good) = (idle().await?, good().await?);
        ensure!(seconds > 70.0 && is_in(Some(&good), "Queued"), "idle for {seconds} seconds: {good:?}");
        Ok(())
    };
    eventually("Velero to be idle for longer than that", TIMEOUT, idle_for_long).await?;

    // nacre makes Velero look at another one in its place.
    let is_complete = async || {
        let good = good().await?;
        ensure!(is_in(Some(&good), "Completed"), "{good:?}");
        Ok(())
    };
    eventually("Velero to complete the other tenant's backup", TIMEOUT, is_complete).await?;
    let backups = test_cluster.bed.velero_api("Backup").await?;
    let only_one_is_left = async || {
        let left = backups.list_metadata(&ListParams::default()).await?;
        ensure!(left.items.len() == 1, "{left:?}");
        Ok(())
    };
    eventually("nacre to delete what stood in for the backup", TIMEOUT, only_one_is_left).await?;
    let restarted = nacre.metric("nacre_velero_queue_restarted_total").await?;
    ensure!((1.0..2.0).contains(&restarted), "Velero's queue was restarted {restarted} times");
    ensure!(idle().await? <= 0.0, "Velero still counts as idle");
    Ok(())
}

fn is_in(request: Option<&NonAdminBackup>, phase: &str) -> bool {
    let velero = request.and_then(|request| request.status.as_ref()?.velero_backup.as_ref()?.status.as_ref());
    velero.and_then(|velero| velero.phase.as_deref()) == Some(phase)
}
