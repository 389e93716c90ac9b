//! A tenant's own bucket: requested, approved, used, revoked, approved again, deleted; and restored from when
//! everything else is lost.

use std::time::Duration;

use anyhow::{Context, Result};
use api::velero::{Backup, BackupStorageLocation};
use api::{
    NonAdminBackup, NonAdminBackupStorageLocation, NonAdminBackupStorageLocationRequest,
    NonAdminBackupStorageLocationStatus, Phase, condition, labels,
};
use bed::Bed;
use e2e::{TestCluster, at_length};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

pub(crate) const POLICY: &str =
    "storageLocations:\n  requireApproval: true\n  endpoints:\n    allow: [\"127.0.0.1\"]\n";
pub(crate) const OPEN: &str = "storageLocations:\n  endpoints:\n    allow: [\"127.0.0.1\"]\n";

pub(crate) fn says(
    status: &NonAdminBackupStorageLocationStatus,
    type_: &str,
    reason: &str,
    words: &str,
) -> bool {
    condition::get(&status.conditions, type_).is_some_and(|found| {
        found.reason == reason && found.status == "False" && found.message.contains(words)
    })
}

pub(crate) fn reference(status: &NonAdminBackupStorageLocationStatus) -> String {
    status.velero_backup_storage_location.as_ref().and_then(|velero| velero.name.clone()).unwrap_or_default()
}

/// C1: a credential that runs a program (`credential_process`)
/// C14: a Secret with more keys than the location names
/// in make test: shorter waits
#[tokio::test(flavor = "multi_thread")]
async fn c1_c14_a_tenant_brings_a_bucket_and_an_administrator_decides() -> Result<()> {
    let test_cluster = TestCluster::build().await?;
    let nacre = test_cluster.start_nacre().await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    // Velero is no way to the API server.
    let near = json!({"provider": "aws", "objectStorage": {"bucket": "near"}, "credential": {"name": "keys", "key": "cloud"},
        "config": {"region": bed::REGION, "s3Url": test_cluster.bed.server()}});
    let near = json!({"spec": {"backupStorageLocationSpec": near}});
    shop.create::<NonAdminBackupStorageLocation>("near", near).await?;
    shop.location_is("the API server to be refused", "near", |status| {
        says(
            status,
            condition::ACCEPTED,
            condition::BSL_SPEC_VALIDATION,
            "is the host of the cluster's API server",
        )
    })
    .await?;
    shop.delete::<NonAdminBackupStorageLocation>("near").await?;

    test_cluster.set_policy(POLICY).await?;
    let keys = test_cluster.bed.store()?.credentials();
    shop.create::<ConfigMap>("prices", json!({"data": {"tea": "3"}})).await?;

    // Asked for before the Secret is there; it goes on by itself, and waits for an administrator.
    shop.bring_bucket("bucket", "shop-bucket", "keys").await?;
    shop.location_is("the Secret to be missed", "bucket", |status| {
        status.phase == Some(Phase::BackingOff)
            && says(status, condition::ACCEPTED, condition::BSL_SPEC_VALIDATION, "no Secret \"keys\"")
    })
    .await?;
    shop.keep_keys("keys", &keys).await?;
    let pending = shop
        .location_is("approval to be waited for", "bucket", |status| {
            status.phase == Some(Phase::New)
                && says(status, condition::CLUSTER_ADMIN_APPROVED, condition::BSL_SPEC_APPROVAL_PENDING, "")
        })
        .await?;
    let name = reference(&pending);
    let storages = test_cluster.admin::<BackupStorageLocation>().await?;
    let secrets = test_cluster.admin::<Secret>().await?;
    assert!(storages.get_opt(&name).await?.is_none() && secrets.get_opt(&name).await?.is_none());

    // Approved: Velero has it, with one key and nothing else of the Secret.
    test_cluster.decide(&name, "approve").await?;
    shop.location_available("bucket").await?;
    let copy = secrets.get(&name).await?;
    assert_eq!(copy.type_.as_deref(), Some("Opaque"));
    assert_eq!(copy.data.unwrap_or_default().into_keys().collect::<Vec<_>>(), ["cloud"]);
    let spec = json!({"spec": {"backupSpec": {"storageLocation": "bucket"}}});
    shop.create::<NonAdminBackup>("daily", spec.clone()).await?;
    assert_eq!(shop.backup_ends("daily").await?, "Completed");
    let stored = test_cluster.bed.store()?.keys("shop-bucket")?;
    assert!(!stored.is_empty() && stored.iter().all(|key| key.starts_with("shop/")), "{stored:#?}");

    // Settled: silence, whatever times Velero writes down.
    test_cluster
        .bed
        .audit()
        .until_quiet("nacre/", at_length(Duration::from_secs(5), Duration::from_mins(1)))
        .await?;

    // Revoked: location and key are gone from Velero, and backups say why they cannot start.
    test_cluster.decide(&name, "pending").await?;
    test_cluster.gone_from_velero::<BackupStorageLocation>(&name).await?;
    test_cluster.gone_from_velero::<Secret>(&name).await?;
    shop.create::<NonAdminBackup>("waiting", spec).await?;
    shop.wait("the backup to be refused", "waiting", |backup: Option<&NonAdminBackup>| {
        let accepted = condition::get(&backup?.status.as_ref()?.conditions, condition::ACCEPTED)?.clone();
        (accepted.status == "False" && accepted.message.contains("is not ready")).then_some(())
    })
    .await?;

    shop.restore("back", "daily").await?;
    let words = shop.restore_refused("back").await?;
    assert!(words.contains("is not there"), "{words}");

    // Approved again: everything goes on by itself, once Velero says that it can use the location. Velero fails a
    // restore for good that comes sooner.
    test_cluster.decide(&name, "approve").await?;
    shop.location_available("bucket").await?;
    assert_eq!(shop.backup_ends("waiting").await?, "Completed");
    assert_eq!(shop.restore_ends("back").await?, "Completed");

    // Removed by hand: it comes back.
    storages.delete(&name, &DeleteParams::default()).await?;
    shop.location_available("bucket").await?;

    // Changed after it was asked for: refused, and mended by putting it back.
    let bucket =
        |name: &str| json!({"spec": {"backupStorageLocationSpec": {"objectStorage": {"bucket": name}}}});
    shop.edit::<NonAdminBackupStorageLocation>("bucket", bucket("another")).await?;
    shop.location_is("the change to be refused", "bucket", |status| {
        status.phase == Some(Phase::BackingOff)
            && says(
                status,
                condition::SPEC_UPDATE_APPROVED,
                condition::BSL_SPEC_UPDATE_REJECTED,
                "not allowed",
            )
    })
    .await?;
    test_cluster.gone_from_velero::<BackupStorageLocation>(&name).await?;
    shop.edit::<NonAdminBackupStorageLocation>("bucket", bucket("shop-bucket")).await?;
    let back = shop.location_available("bucket").await?;
    assert!(condition::get(&back.conditions, condition::SPEC_UPDATE_APPROVED).is_none());

    // Deleted: nothing is left but the bytes, which are the tenant's.
    shop.delete::<NonAdminBackupStorageLocation>("bucket").await?;
    shop.gone::<NonAdminBackupStorageLocation>("bucket").await?;
    test_cluster.gone_from_velero::<BackupStorageLocation>(&name).await?;
    test_cluster.gone_from_velero::<Secret>(&name).await?;
    test_cluster.gone_from_velero::<NonAdminBackupStorageLocationRequest>(&name).await?;
    shop.gone::<NonAdminBackup>("daily").await?;
    shop.gone::<NonAdminBackup>("waiting").await?;
    assert!(!test_cluster.bed.store()?.keys("shop-bucket")?.is_empty());
    assert!(shop.api::<Secret>().get_opt("keys").await?.is_some());

    let log = std::fs::read_to_string(nacre.process.log())?;
    assert!(!log.is_empty() && !log.contains("bed-secret-key"));
    assert!(nacre.process.is_running());
    Ok(())
}

/// A3
/// in make test: shorter waits
#[tokio::test(flavor = "multi_thread")]
async fn what_is_lost_comes_back_from_the_buckets_and_forgeries_give_nobody_anything() -> Result<()> {
    let test_cluster =
        TestCluster::build_on(Bed::builder().with_velero().velero_flag("--backup-sync-period=1s")).await?;
    test_cluster.set_policy(OPEN).await?;
    let nacre = test_cluster.start_nacre().await?;
    let keys = test_cluster.bed.store()?.credentials();
    let (shop, rival) =
        (test_cluster.tenant("shop", "ada").await?, test_cluster.tenant("rival", "bob").await?);
    for (tenant, bucket) in [(&shop, "shop-bucket"), (&rival, "rival-bucket")] {
        tenant.keep_keys("keys", &keys).await?;
        tenant.bring_bucket("bucket", bucket, "keys").await?;
        tenant.create::<ConfigMap>("prices", json!({"data": {"tea": "3"}})).await?;
    }
    shop.location_available("bucket").await?;
    rival.location_available("bucket").await?;
    let own = json!({"spec": {"backupSpec": {"storageLocation": "bucket"}}});
    // One after the other: where several wait, Velero may take a minute to notice that it could go on.
    shop.create::<NonAdminBackup>("mine", own.clone()).await?;
    assert_eq!(shop.backup_ends("mine").await?, "Completed");
    shop.back_up("platform").await?;
    assert_eq!(shop.backup_ends("platform").await?, "Completed");
    rival.create::<NonAdminBackup>("theirs", own).await?;
    assert_eq!(rival.backup_ends("theirs").await?, "Completed");
    let names = ["mine", "platform"];
    let status = shop.api::<NonAdminBackup>().get("platform").await?.status;
    let victim = status.and_then(|status| status.velero_backup?.name).context("a reference")?;

    // Everything is lost but the buckets, the namespaces and what the tenants asked for in the way of storage.
    drop(nacre);
    test_cluster.bed.velero_stop()?;
    forge(&test_cluster, &victim)?;
    let backups = test_cluster.admin::<Backup>().await?;
    backups.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
    for storage in test_cluster.admin::<BackupStorageLocation>().await?.list(&ListParams::default()).await? {
        let name = storage.metadata.name.unwrap_or_default();
        if name != "default" {
            test_cluster
                .admin::<BackupStorageLocation>()
                .await?
                .delete(&name, &DeleteParams::default())
                .await?;
            test_cluster.admin::<Secret>().await?.delete(&name, &DeleteParams::default()).await?;
            let requests = test_cluster.admin::<NonAdminBackupStorageLocationRequest>().await?;
            requests.delete(&name, &DeleteParams::default()).await?;
        }
    }
    for (tenant, name) in [(&shop, "mine"), (&shop, "platform"), (&rival, "theirs")] {
        let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        tenant.api::<NonAdminBackup>().patch(name, &PatchParams::default(), &free).await?;
        tenant.delete::<NonAdminBackup>(name).await?;
        tenant.gone::<NonAdminBackup>(name).await?;
    }

    // Velero finds the backups again, and each owner has theirs back and can restore it.
    test_cluster.bed.velero_start().await?;
    let nacre = test_cluster.start_nacre().await?;
    if at_length(true, false) {
        // Velero looks into the buckets when it starts, and then not for a minute.
        for tenant in [&shop, &rival] {
            tenant.location_available("bucket").await?;
        }
        test_cluster.bed.velero_stop()?;
        test_cluster.bed.velero_start().await?;
    }
    for name in names {
        assert_eq!(shop.backup_ends(name).await?, "Completed");
    }
    assert_eq!(rival.backup_ends("theirs").await?, "Completed");
    shop.delete::<ConfigMap>("prices").await?;
    shop.gone::<ConfigMap>("prices").await?;
    shop.restore("back", "platform").await?;
    assert_eq!(shop.restore_ends("back").await?, "Completed");
    assert!(shop.api::<ConfigMap>().get_opt("prices").await?.is_some());

    // What is forged in the rival's bucket was imported by Velero, and gives nobody a request.
    for forged in ["forged", "unnameable", "copied"] {
        let found = |backup: Option<&Backup>| backup.map(|_| ());
        bed::wait_until("it to be imported", Duration::from_mins(3), backups.clone(), forged, found).await?;
    }
    bed::eventually("all three to be counted", Duration::from_mins(3), async || {
        let reported = nacre.metric("nacre_ignored_backups_total").await?;
        anyhow::ensure!(reported >= 3.0, "{reported}");
        Ok(())
    })
    .await?;
    test_cluster
        .bed
        .audit()
        .until_quiet("nacre/", at_length(Duration::from_secs(5), Duration::from_mins(1)))
        .await?;
    for (tenant, wanted) in [(&shop, &names[..]), (&rival, &["theirs"][..])] {
        let found = tenant.api::<NonAdminBackup>().list(&ListParams::default()).await?;
        let found: Vec<_> = found.into_iter().filter_map(|backup| backup.metadata.name).collect();
        assert_eq!(found, wanted);
    }
    assert!(nacre.process.is_running());
    Ok(())
}

/// The rival copies their own backup in their own bucket, and has the copies say what is not so.
fn forge(test_cluster: &TestCluster, victim: &str) -> Result<()> {
    let store = test_cluster.bed.store()?;
    let keys = store.keys("rival-bucket")?;
    let metadata = keys.iter().find(|key| key.ends_with("/velero-backup.json")).context("a stored backup")?;
    let folder = metadata.trim_end_matches("/velero-backup.json").to_owned();
    let name = folder.rsplit('/').next().unwrap_or_default().to_owned();
    let forgeries = [
        ("forged", json!({"metadata": {"annotations": {labels::NAB_NAMESPACE: "shop"}}})),
        ("unnameable", json!({"metadata": {"annotations": {labels::NAB_NAME: "../../shop"}}})),
        ("copied", json!({"metadata": {"labels": {labels::NAB_NACUUID: victim}}})),
        ("unlike", json!({"metadata": {"name": victim, "labels": {labels::NAB_NACUUID: victim}}})),
        ("fresh", json!({"status": {"phase": "New", "completionTimestamp": null}})),
    ];
    for (forged, change) in forgeries {
        std::fs::create_dir_all(store.path("rival-bucket", &folder.replace(&name, forged)))?;
        for key in keys.iter().filter(|key| key.starts_with(&folder)) {
            let mut bytes = std::fs::read(store.path("rival-bucket", key))?;
            if key == metadata {
                let text = String::from_utf8(bytes)?.replace(&name, forged);
                let mut backup: Value = serde_json::from_str(&text)?;
                merge(&mut backup, &change);
                bytes = serde_json::to_vec(&backup)?;
            }
            std::fs::write(store.path("rival-bucket", &key.replace(&name, forged)), bytes)?;
        }
    }
    Ok(())
}

fn merge(target: &mut Value, change: &Value) {
    match change.as_object() {
        Some(fields) => fields.iter().for_each(|(name, value)| merge(&mut target[name], value)),
        None => *target = change.clone(),
    }
}
