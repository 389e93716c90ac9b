//! From a Velero that administrators and tenants share to one that is tenants' alone, with the backups there are.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use api::velero::{BackupStorageLocation, Restore};
use api::{NonAdminBackupStorageLocation, Phase, condition};
use bed::{Bed, wait_until};
use e2e::{Tenant, TestCluster, VELERO};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::forged::{POLICY, genuine_backup, tenant_storage};
use crate::imported::{plant_next_to, shaped};

const TENANTS: &str = "velero-tenants";
const TIMEOUT: std::time::Duration = std::time::Duration::from_mins(3);

/// Runs the command line as an administrator.
async fn nacre(bed: &Bed, args: &[&str]) -> Result<(i32, String)> {
    let output = tokio::process::Command::new(e2e::command_line()?)
        .args(args)
        .env("KUBECONFIG", bed.kubeconfig())
        .kill_on_drop(true)
        .output()
        .await?;
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    Ok((output.status.code().unwrap_or(-1), text))
}

async fn relocate(bed: &Bed, more: &[&str]) -> Result<Value> {
    let args = [&["relocate", "--from", VELERO, "--to", TENANTS, "-o", "json"], more].concat();
    let (code, text) = nacre(bed, &args).await?;
    // 3: something stays, which is said.
    ensure!(code == 3, "{code}: {text}");
    Ok(serde_json::from_str(&text)?)
}

fn velero_kind(client: &kube::Client, namespace: &str, kind: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("velero.io", "v1", kind));
    Api::namespaced_with(client.clone(), namespace, &resource)
}

/// A location that was approved, and then changed: nacre has taken it from Velero. Its request for approval.
async fn edited_after_approval(cluster: &TestCluster, shop: &Tenant<'_>) -> Result<String> {
    shop.bring_bucket("edited", "edited", "keys").await?;
    let request = shop.approval_pending("edited").await?;
    cluster.decide(&request, "approve").await?;
    shop.location_available("edited").await?;
    let other = json!({"objectStorage": {"bucket": "another"}});
    shop.edit::<NonAdminBackupStorageLocation>(
        "edited",
        json!({"spec": {"backupStorageLocationSpec": other}}),
    )
    .await?;
    cluster.gone_from_velero::<BackupStorageLocation>(&request).await?;
    Ok(request)
}

/// Waits until Velero has looked at a location after this time.
async fn looked(client: &kube::Client, namespace: &str, location: &str, since: Timestamp) -> Result<()> {
    let locations = velero_kind(client, namespace, "BackupStorageLocation");
    let what = format!("the Velero in {namespace} to look at {location}");
    wait_until(&what, TIMEOUT, locations, location, |found| {
        let last: Timestamp = found?.data["status"]["lastSyncedTime"].as_str()?.parse().ok()?;
        (last > since).then_some(())
    })
    .await
}

/// Has Velero import from the tenant's location, whatever it says of its version and when. Returns what Velero calls it.
async fn imported_from(cluster: &TestCluster, shop: &Tenant<'_>) -> Result<String> {
    cluster.set_policy(&POLICY.replace("requireApproval", "import: \"on\", requireApproval")).await?;
    let location = shop.location_is("a reference", "own", |_| true).await?.velero_backup_storage_location;
    let name = location.and_then(|velero| velero.name).context("a name")?;
    let locations = velero_kind(&cluster.bed.client().await?, VELERO, "BackupStorageLocation");
    let imports =
        |found: Option<&DynamicObject>| (found?.data["spec"]["backupSyncPeriod"] != "0s").then_some(());
    wait_until("Velero to import from it", TIMEOUT, locations, &name, imports).await?;
    Ok(name)
}

async fn neither_imports(client: &kube::Client, location: &str) -> Result<()> {
    for namespace in [VELERO, TENANTS] {
        let found = velero_kind(client, namespace, "BackupStorageLocation").get(location).await?;
        assert_eq!(found.data["spec"]["backupSyncPeriod"], "0s", "{namespace}");
    }
    Ok(())
}

/// What a tenant plants in its bucket while nothing fences either Velero: a backup that administrators' tools would take
/// for one of a schedule, and one that looks like the tenant's own.
fn plant(contents: &Path) -> Result<[String; 2]> {
    let [scheduled, control] = ["nightly-20300101".to_owned(), shaped("control")];
    plant_next_to(contents, &scheduled, |backup| {
        backup["metadata"]["labels"]["velero.io/schedule-name"] = json!("nightly");
    })?;
    plant_next_to(contents, &control, |_| ())?;
    Ok([scheduled, control])
}

/// A volume of a backup, and a backup that Velero is not done with, as they would be.
async fn played(cluster: &TestCluster, backup: &str) -> Result<()> {
    let client = cluster.bed.client().await?;
    let backups = velero_kind(&client, VELERO, "Backup");
    let uid = backups.get(backup).await?.uid().context("a uid")?;
    let labels = json!({"velero.io/backup-name": backup, "velero.io/backup-uid": uid});
    let volume = json!({"apiVersion": "velero.io/v1", "kind": "PodVolumeBackup",
        "metadata": {"name": "volume", "namespace": VELERO, "labels": labels},
        "spec": {"node": "n", "pod": {"kind": "Pod", "namespace": "shop", "name": "till"}, "volume": "data",
            "backupStorageLocation": "default", "repoIdentifier": "r"}, "status": {"phase": "Completed"}});
    let volumes = velero_kind(&client, VELERO, "PodVolumeBackup");
    volumes.create(&PostParams::default(), &serde_json::from_value(volume)?).await?;
    let running = json!({"apiVersion": "velero.io/v1", "kind": "Backup", "metadata": {"name": "running",
        "labels": {"openshift.io/oadp-nab-origin-nacuuid": "running"},
        "annotations": {"openshift.io/oadp-nab-origin-namespace": "shop"}},
        "spec": {"includedNamespaces": ["shop"], "storageLocation": "default"}, "status": {"phase": "InProgress"}});
    backups.create(&PostParams::default(), &serde_json::from_value(running)?).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn backups_move_to_a_velero_that_is_tenants_alone_and_are_restored_there() -> Result<()> {
    let cluster = TestCluster::build_on(Bed::builder().with_velero()).await?;
    let (bed, client) = (&cluster.bed, cluster.bed.client().await?);
    let old = cluster.start_nacre().await?;
    let shop = cluster.tenant("shop", "ada").await?;
    shop.create::<ConfigMap>("prices", json!({"data": {"tea": "3"}})).await?;
    shop.back_up("platform").await?;
    assert_eq!(shop.backup_ends("platform").await?, "Completed");
    let platform = shop.backup_starts("platform").await?;
    tenant_storage(&cluster, &shop).await?;
    let location = imported_from(&cluster, &shop).await?;
    let (own, contents) = genuine_backup(&cluster, &shop).await?;
    let edited = edited_after_approval(&cluster, &shop).await?;
    drop(old);
    played(&cluster, &platform).await?;
    bed.another_velero(TENANTS, &["--disable-informer-cache=true"]).await?;

    // A dry run says what it would do, and does nothing.
    let would = relocate(bed, &["--dry-run"]).await?;
    ensure!(
        would["created"].as_array().is_some_and(|all| all.contains(&json!(format!("backup/{own}")))),
        "{would}"
    );
    let backups = velero_kind(&client, TENANTS, "Backup");
    ensure!(backups.list(&ListParams::default()).await?.items.is_empty(), "the dry run moved something");

    // A nacre that runs would see backups that are only half there.
    let (code, text) = nacre(bed, &["relocate", "--from", VELERO, "--to", TENANTS, "--yes"]).await?;
    ensure!(
        code == 1 && text.contains("kubectl scale deployment non-admin-controller -n velero --replicas=0"),
        "{text}"
    );
    let deployments = Api::<Deployment>::namespaced(client.clone(), VELERO);
    let stopped = Patch::Merge(json!({"spec": {"replicas": 0}}));
    deployments.patch("non-admin-controller", &PatchParams::default(), &stopped).await?;

    let done = relocate(bed, &["--yes"]).await?;
    let mut moved = [platform.as_str(), own.as_str()];
    moved.sort_unstable();
    ensure!(done["backups"] == json!(moved), "{done}");
    ensure!(done["stays"][0]["what"] == "backup/running", "{done}");
    ensure!(done["stoppedImporting"] == json!([location]), "{done}");
    neither_imports(&client, &location).await?;
    let (planted_at, [scheduled, control]) = (Timestamp::now(), plant(&contents)?);
    let uid = backups.get(&platform).await?.uid().context("a uid")?;
    let volumes = velero_kind(&client, TENANTS, "PodVolumeBackup");
    let volume = volumes.get("volume").await?;
    assert_eq!(volume.labels()["velero.io/backup-uid"], uid);
    let secrets = |namespace: &str| Api::<Secret>::namespaced(client.clone(), namespace);
    let password = "velero-repo-credentials";
    assert_eq!(secrets(VELERO).get(password).await?.data, secrets(TENANTS).get(password).await?.data);

    // Interrupted: what is missing follows, and nothing else.
    volumes.delete("volume", &DeleteParams::default()).await?;
    let again = relocate(bed, &["--yes"]).await?;
    ensure!(again["created"] == json!(["podvolumebackup/volume"]), "{again}");
    let nothing = relocate(bed, &["--yes"]).await?;
    ensure!(nothing["created"] == json!([]), "{nothing}");

    // As the help says: nothing is left to import from, nacre goes there, and tenants restore from both storages.
    let by_label = "openshift.io/oadp-nabsl-origin-nacuuid";
    let command = ["delete", "backupstoragelocations.velero.io", "-n", VELERO, "-l", by_label];
    let (code, text) = nacre(bed, &["uninstall", "-n", VELERO, "--dry-run"]).await?;
    ensure!(code == 0 && text.contains(&format!("1 storage location of tenants in {VELERO}")), "{text}");
    ensure!(text.contains(&format!("kubectl {}", command.join(" "))), "{text}");
    bed.kubectl(&command).await?.ok()?;
    let (code, text) = nacre(bed, &["uninstall", "-n", VELERO, "--yes"]).await?;
    ensure!(code == 0 && !text.contains("of tenants in velero"), "{text}");
    let (code, text) =
        nacre(bed, &["install", "--velero-namespace", TENANTS, "--fence", "--image", "nacre:test"]).await?;
    ensure!(code == 0, "{text}");
    cluster.forget_lease().await?;
    let account = bed.service_account_kubeconfig(TENANTS, "non-admin-controller").await?;
    let new = cluster.launch("nacre-tenants", TENANTS, &account, &[("FENCE", "true")])?;
    new.until_ready().await?;
    for (restore, backup) in [("back", "platform"), ("back-own", "daily")] {
        shop.delete::<ConfigMap>("prices").await?;
        shop.restore(restore, backup).await?;
        assert_eq!(shop.restore_ends(restore).await?, "Completed", "{backup}");
        let prices = shop.api::<ConfigMap>().get("prices").await?;
        assert_eq!(prices.data.unwrap_or_default()["tea"], "3");
    }
    // What was changed after it was approved is refused there too.
    let refused = shop
        .location_is("the changed location to be refused", "edited", |status| {
            condition::get(&status.conditions, condition::SPEC_UPDATE_APPROVED).is_some()
        })
        .await?;
    assert_eq!(refused.phase, Some(Phase::BackingOff));
    let locations = velero_kind(&client, TENANTS, "BackupStorageLocation");
    ensure!(locations.get_opt(&edited).await?.is_none(), "Velero has what nobody approved");
    let restores = Api::<Restore>::namespaced(client.clone(), TENANTS).list(&ListParams::default()).await?;
    assert_eq!(restores.items.len(), 2, "the tenants' Velero did it");

    // The owner deletes a backup: its data goes, although another Velero made it.
    shop.edit::<api::NonAdminBackup>("platform", json!({"spec": {"deleteBackup": true}})).await?;
    wait_until("the backup to be gone", TIMEOUT, backups, &platform, |found| found.is_none().then_some(()))
        .await?;
    let keys = bed.store()?.keys(bed::BUCKET)?;
    ensure!(!keys.iter().any(|key| key.contains(&platform)), "its data is still there: {keys:?}");

    // The Velero that is tenants' alone imports again, behind the admission policies. The other has nothing to import from.
    looked(&client, TENANTS, &location, planted_at).await?;
    looked(&client, VELERO, "default", planted_at).await?;
    velero_kind(&client, TENANTS, "Backup")
        .get(&control)
        .await
        .context("what looks like the tenant's own")?;
    for (namespace, planted) in [(TENANTS, &scheduled), (VELERO, &scheduled), (VELERO, &control)] {
        let found = velero_kind(&client, namespace, "Backup").get_opt(planted).await?;
        ensure!(found.is_none(), "the Velero in {namespace} has imported {planted}");
    }
    Ok(())
}
