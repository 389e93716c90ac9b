//! Velero's own queue of backups stands still, and nacre sets it going again.

use std::time::Duration;

use anyhow::{Result, ensure};
use api::NonAdminBackup;
use bed::eventually;
use e2e::{FaultProxy, TestCluster, VELERO};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

use crate::location::{OPEN, reference};

/// Velero hears so much later that a backup is ready that it has refused it by then.
const LATE: Duration = Duration::from_secs(5);
/// Longer than it takes nacre and Velero to look at the queue again.
const TIMEOUT: Duration = Duration::from_mins(6);

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
    let status = json!({"phase": "Unavailable", "lastValidationTime": jiff::Timestamp::now()});
    test_cluster.bed.velero_status("BackupStorageLocation", &location, status).await?;
    let kubeconfig = test_cluster.bed.service_account_kubeconfig(VELERO, "velero").await?;
    let fault_proxy = FaultProxy::open(&kubeconfig).await?;
    fault_proxy.answer_late("ReadyToStart", LATE);
    std::fs::copy(fault_proxy.kubeconfig(test_cluster.bed.folder())?, &kubeconfig)?;
    test_cluster.bed.velero_start().await?;
    let refused = |found: Option<&NonAdminBackup>| is_in(found, "FailedValidation").then_some(());
    shop.wait("Velero to refuse it", "bad", refused).await?;

    // From now on Velero begins with nothing, though it looks at its queue once a minute.
    office.back_up("good").await?;
    let idle = async || nacre.metric("nacre_velero_idle_seconds").await;
    let idle_for_long = async || {
        let seconds = idle().await?;
        ensure!(seconds > 90.0, "Velero is idle for {seconds} seconds");
        Ok(())
    };
    eventually("Velero to be idle for longer than that", TIMEOUT, idle_for_long).await?;
    let good = async || office.api::<NonAdminBackup>().get("good").await;
    ensure!(is_in(Some(&good().await?), "Queued"), "{:?}", good().await?);

    // nacre makes Velero look at the first one again.
    let is_complete = |found: Option<&NonAdminBackup>| is_in(found, "Completed").then_some(());
    office.wait("Velero to complete the other tenant's backup", "good", is_complete).await?;
    let restarted = nacre.metric("nacre_velero_queue_restarted_total").await?;
    ensure!((1.0..2.0).contains(&restarted), "Velero's queue was restarted {restarted} times");
    ensure!(idle().await? <= 0.0, "Velero still counts as idle");
    Ok(())
}

fn is_in(request: Option<&NonAdminBackup>, phase: &str) -> bool {
    let velero = request.and_then(|request| request.status.as_ref()?.velero_backup.as_ref()?.status.as_ref());
    velero.and_then(|velero| velero.phase.as_deref()) == Some(phase)
}
