//! CSI snapshots with real Velero: taken, lost, restored, and the truth about each. The driver and the snapshot controller
//! are stand-ins (`e2e/src/csi_driver.rs`).

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::{NonAdminBackup, NonAdminRestore, condition};
use bed::{Bed, eventually};
use e2e::csi_driver::{Driver, Snapshots};
use e2e::{Tenant, TestCluster};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::json;

use crate::dedicated;
use crate::snapshot_classes::{CLASSES, claim};

const TIMEOUT: Duration = Duration::from_mins(3);
const CLAIM: &str = "fast";

async fn with_driver(snapshots: Snapshots) -> Result<(TestCluster, Driver)> {
    let bed = Bed::builder().with_idle_velero().velero_flag("--features=EnableCSI");
    // Before it ends a restore, it waits so long for new claims to be bound.
    let bed = bed.velero_flag("--resource-timeout=15s");
    let test_cluster = TestCluster::build_on(bed).await?;
    test_cluster.bed.apply_yaml(include_str!("snapshots.yaml")).await?;
    eventually("the classes", TIMEOUT, async || test_cluster.bed.apply_yaml(CLASSES).await).await?;
    test_cluster.bed.velero_start().await?;
    let driver = Driver::start(test_cluster.bed.client().await?, snapshots);
    Ok((test_cluster, driver))
}

/// A tenant with a claim whose disk has this text.
async fn shop<'a>(test_cluster: &'a TestCluster, driver: &Driver, text: &str) -> Result<Tenant<'a>> {
    let shop = test_cluster.tenant("shop", "ada").await?;
    claim(&shop, CLAIM).await?;
    eventually("the claim's volume", TIMEOUT, async || driver.write("shop", CLAIM, text).await).await?;
    Ok(shop)
}

fn decided(conditions: &[Condition], type_: &str) -> Option<Condition> {
    condition::get(conditions, type_).filter(|found| found.status != "Unknown").cloned()
}

/// Backs up with a spec that says nothing about volumes. The driver gets so long, and Velero looks every five seconds.
/// Returns Velero's phase, and whether the data is protected.
async fn backed_up(shop: &Tenant<'_>, name: &str, timeout: &str) -> Result<(String, Condition)> {
    let spec = json!({"spec": {"backupSpec": {"csiSnapshotTimeout": timeout}}});
    shop.create::<NonAdminBackup>(name, spec).await?;
    let ended = shop.backup_ends(name).await?;
    let found = shop
        .wait("DataProtected", name, |backup: Option<&NonAdminBackup>| {
            decided(&backup?.status.as_ref()?.conditions, condition::DATA_PROTECTED)
        })
        .await?;
    Ok((ended, found))
}

/// Restores, and returns whether the data came back.
async fn restored(shop: &Tenant<'_>, name: &str) -> Result<Condition> {
    shop.restore(name, "daily").await?;
    data_restored(shop, name).await
}

async fn data_restored(shop: &Tenant<'_>, name: &str) -> Result<Condition> {
    shop.wait("DataRestored", name, |restore: Option<&NonAdminRestore>| {
        decided(&restore?.status.as_ref()?.conditions, condition::DATA_RESTORED)
    })
    .await
}

async fn lose_claim(shop: &Tenant<'_>) -> Result<()> {
    shop.delete::<PersistentVolumeClaim>(CLAIM).await?;
    shop.gone::<PersistentVolumeClaim>(CLAIM).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_comes_back_from_its_snapshot_and_one_without_a_volume_is_not_called_restored() -> Result<()>
{
    let (test_cluster, driver) = with_driver(Snapshots::Ready).await?;
    let _nacre = test_cluster.start_nacre().await?;
    let shop = shop(&test_cluster, &driver, "orders").await?;
    let (ended, protected) = backed_up(&shop, "daily", "1m").await?;
    ensure!(ended == "Completed" && protected.status == "True", "{ended}: {protected:?}");
    ensure!(protected.reason == condition::ALL_CLAIMS_SAVED, "{protected:?}");
    let status = shop.api::<NonAdminBackup>().get("daily").await?.status.context("no status")?;
    let how = status.claims.first().and_then(|claim| claim.message.clone()).unwrap_or_default();
    ensure!(how.contains("as a snapshot in the cluster"), "{:?}", status.claims);

    // The claim is there: the snapshot changes nothing, and that is said.
    driver.write("shop", CLAIM, "ransom").await?;
    let kept = restored(&shop, "over").await?;
    ensure!(kept.status == "False" && kept.reason == condition::CLAIMS_KEPT, "{kept:?}");
    ensure!(driver.read("shop", CLAIM).await? == "ransom");

    lose_claim(&shop).await?;
    let back = restored(&shop, "back").await?;
    ensure!(back.status == "True" && back.reason == condition::ALL_VOLUMES_RESTORED, "{back:?}");
    let spec = shop.api::<PersistentVolumeClaim>().get(CLAIM).await?.spec.unwrap_or_default();
    ensure!(spec.data_source.is_some_and(|source| source.kind == "VolumeSnapshot"), "no snapshot is named");
    ensure!(driver.read("shop", CLAIM).await? == "orders");

    // The storage does not have the snapshot. Once it has, the claim gets its volume.
    lose_claim(&shop).await?;
    let lost = driver.lose_snapshots();
    shop.restore("empty", "daily").await?;
    shop.restore_ends("empty").await?;
    let waits = shop
        .wait("what it waits for", "empty", |restore: Option<&NonAdminRestore>| {
            let conditions = &restore?.status.as_ref()?.conditions;
            let found = condition::get(conditions, condition::DATA_RESTORED)?;
            found.message.contains("waits").then(|| found.clone())
        })
        .await?;
    ensure!(waits.status == "Unknown", "{waits:?}");
    ensure!(waits.message.contains("has not made its volume from the snapshot yet"), "{waits:?}");
    driver.find_snapshots(lost);
    let late = data_restored(&shop, "empty").await?;
    ensure!(late.status == "True" && driver.read("shop", CLAIM).await? == "orders", "{late:?}");
    Ok(())
}

/// The driver does not answer, or reports an error. Velero calls the backup failed in part, and the claim is named.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_without_a_ready_snapshot_is_named() -> Result<()> {
    for (snapshots, timeout) in [(Snapshots::Never, "5s"), (Snapshots::Failing, "1m")] {
        let (test_cluster, driver) = with_driver(snapshots).await?;
        let _nacre = test_cluster.start_nacre().await?;
        let shop = shop(&test_cluster, &driver, "orders").await?;
        let (ended, found) = backed_up(&shop, "daily", timeout).await?;
        ensure!(ended == "PartiallyFailed", "{snapshots:?}: {ended}");
        ensure!(
            found.status == "False" && found.message.contains("claim \"fast\" is NOT in this backup"),
            "{snapshots:?}: {found:?}"
        );
    }
    Ok(())
}

/// What the audit log shows of a Velero that is tenants' alone: it lacks nothing for snapshots.
#[tokio::test(flavor = "multi_thread")]
async fn snapshots_are_taken_and_come_back_without_cluster_admin() -> Result<()> {
    let bed = Bed::builder().audit_reads().velero_flag("--features=EnableCSI");
    let bed = bed.velero_flag("--resource-timeout=15s");
    let test_cluster = dedicated::fenced_velero(bed, &[include_str!("snapshots.yaml")]).await?;
    eventually("the classes", TIMEOUT, async || test_cluster.bed.apply_yaml(CLASSES).await).await?;
    let _nacre = test_cluster.start_nacre_in(&test_cluster.account().await?, &[("FENCE", "true")]).await?;
    let driver = Driver::start(test_cluster.bed.client().await?, Snapshots::Ready);
    let shop = shop(&test_cluster, &driver, "orders").await?;
    let mark = test_cluster.bed.audit().mark().await?;
    let spec = json!({"spec": {"backupSpec": {"snapshotVolumes": true, "csiSnapshotTimeout": "1m"}}});
    shop.create::<NonAdminBackup>("daily", spec).await?;
    assert_eq!(shop.backup_ends("daily").await?, "Completed");
    lose_claim(&shop).await?;
    shop.restore("back", "daily").await?;
    let ended = shop.restore_ends("back").await?;
    let requests = test_cluster.bed.audit().since(mark).await?;
    assert_eq!(dedicated::refused(&requests), [""; 0], "Velero needs more than it may");
    assert_eq!(ended, "Completed");
    let disk = eventually("the claim's volume", TIMEOUT, async || driver.read("shop", CLAIM).await).await?;
    assert_eq!(disk, "orders");
    for resource in dedicated::OF_SNAPSHOTS {
        let used = requests
            .only(|request| request.user == dedicated::ACCOUNT && request.resource.starts_with(resource));
        ensure!(!used.is_empty(), "{resource} is never asked for");
    }

    // It goes with its backup, although the fence is there.
    ensure!(driver.snapshots() > 0, "there is none to delete");
    shop.edit::<NonAdminBackup>("daily", json!({"spec": {"deleteBackup": true}})).await?;
    shop.gone::<NonAdminBackup>("daily").await?;
    eventually("the snapshot to be gone", TIMEOUT, async || {
        ensure!(driver.snapshots() == 0, "{} are left", driver.snapshots());
        Ok(())
    })
    .await?;
    Ok(())
}
