//! Forged data in the attacker's own bucket, which Velero imports.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use api::velero::{Backup, PodVolumeBackup};
use api::{NonAdminBackup, labels};
use e2e::Tenant;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::ListParams;
use serde_json::{Value, json};

use crate::attack_cluster::{AttackCluster, TIMEOUT, VICTIM};

/// A genuine backup in the attacker's bucket, to be copied and forged; its folder and its name.
async fn genuine(attack_cluster: &AttackCluster, mallory: &Tenant<'_>) -> Result<(String, String)> {
    let spec = json!({"spec": {"backupSpec": {"storageLocation": "own"}}});
    mallory.create::<NonAdminBackup>("genuine", spec).await?;
    ensure!(mallory.backup_ends("genuine").await? == "Completed", "the backup did not complete");
    let keys = attack_cluster.test_cluster.bed.store()?.keys(&mallory.namespace)?;
    let metadata = keys.iter().find(|key| key.ends_with("/velero-backup.json")).context("a stored backup")?;
    let folder = metadata.trim_end_matches("/velero-backup.json").to_owned();
    let name = folder.rsplit('/').next().unwrap_or_default().to_owned();
    Ok((folder, name))
}

/// Copies the genuine backup under another name and changes what Velero will read about it.
fn plant(
    attack_cluster: &AttackCluster,
    mallory: &Tenant<'_>,
    (folder, name): &(String, String),
    forged: &str,
    change: impl Fn(&mut Value),
) -> Result<()> {
    let (store, bucket) = (attack_cluster.test_cluster.bed.store()?, &mallory.namespace);
    for key in store.keys(bucket)?.iter().filter(|key| key.starts_with(folder.as_str())) {
        let path = store.path(bucket, &key.replace(name.as_str(), forged));
        std::fs::create_dir_all(path.parent().context("a folder")?)?;
        let mut bytes = std::fs::read(store.path(bucket, key))?;
        if key.ends_with("/velero-backup.json") {
            let mut backup: Value =
                serde_json::from_str(&String::from_utf8(bytes)?.replace(name.as_str(), forged))?;
            change(&mut backup);
            bytes = serde_json::to_vec(&backup)?;
        }
        std::fs::write(path, bytes)?;
    }
    Ok(())
}

/// A name that nacre could have given a backup of the attacker's: others are not imported at all.
fn shaped(mallory: &Tenant<'_>, name: &str) -> String {
    format!("{}-{name}-0b8d1a52-3c0f-4d8e-9f4e-1c2b3a4d5e6f", mallory.namespace)
}

/// Waits until Velero has looked at all of the bucket: the control, which is harmless, has been imported.
async fn looked_at(attack_cluster: &AttackCluster, control: &str) -> Result<()> {
    // Velero looks once a minute, if it has the time.
    e2e::imported(&attack_cluster.test_cluster.bed, control, 3 * TIMEOUT).await.map(drop)
}

/// A1: own bucket: a planted backup that would run and copy the whole cluster
pub(crate) async fn a1_a_planted_backup_of_the_whole_cluster(attack_cluster: &AttackCluster) -> Result<()> {
    let mallory = attack_cluster.attacker_with_bucket("a1").await?;
    let genuine = genuine(attack_cluster, &mallory).await?;
    for (number, phase) in ["New", "", "Queued", "ReadyToStart", "InProgress"].into_iter().enumerate() {
        plant(
            attack_cluster,
            &mallory,
            &genuine,
            &shaped(&mallory, &format!("greedy-{number}")),
            |backup| {
                backup["spec"]["includedNamespaces"] = json!(["*"]);
                backup["spec"]["includeClusterResources"] = json!(true);
                backup["status"] = json!({ "phase": phase });
            },
        )?;
    }
    let control = shaped(&mallory, "control");
    plant(attack_cluster, &mallory, &genuine, &control, |_| ())?;
    looked_at(attack_cluster, &control).await?;
    // Nothing ran: no tarball of ours was overwritten and no request appeared for it.
    let shown = mallory.api::<NonAdminBackup>().list(&ListParams::default()).await?;
    ensure!(!shown.iter().any(|request| request.name_any().contains("greedy")), "a planted one is shown");
    let running = attack_cluster.test_cluster.admin::<Backup>().await?.list(&ListParams::default()).await?;
    for backup in running.iter().filter(|backup| backup.name_any().contains("-a1-greedy")) {
        let phase = backup.status.as_ref().and_then(|status| status.phase.clone()).unwrap_or_default();
        ensure!(!matches!(phase.as_str(), "Completed" | "InProgress"), "{} ran: {phase}", backup.name_any());
    }
    Ok(())
}

/// A2: own bucket: a planted PodVolumeBackup that names another tenant's pod
pub(crate) async fn a2_a_planted_copy_of_somebody_elses_volume(attack_cluster: &AttackCluster) -> Result<()> {
    let mallory = attack_cluster.attacker_with_bucket("a2").await?;
    let genuine = genuine(attack_cluster, &mallory).await?;
    let forged = shaped(&mallory, "volumes");
    plant(attack_cluster, &mallory, &genuine, &forged, |_| ())?;
    let volume = json!([{"apiVersion": "velero.io/v1", "kind": "PodVolumeBackup",
        "metadata": {"name": "a2-loot", "namespace": "velero", "labels": {"velero.io/backup-name": forged}},
        "spec": {"node": "node-1", "pod": {"kind": "Pod", "namespace": VICTIM, "name": "till"}, "volume": "data",
            "backupStorageLocation": "x", "repoIdentifier": "x"},
        "status": {"phase": "New"}}]);
    let store = attack_cluster.test_cluster.bed.store()?;
    let folder = genuine.0.replace(&genuine.1, &forged);
    let path = store.path(&mallory.namespace, &format!("{folder}/{forged}-podvolumebackups.json"));
    std::fs::write(&path, serde_json::to_vec(&volume)?)?;
    ensure!(Command::new("gzip").arg("--force").arg(&path).status()?.success(), "gzip failed");
    let control = shaped(&mallory, "control");
    plant(attack_cluster, &mallory, &genuine, &control, |_| ())?;
    looked_at(attack_cluster, &control).await?;
    looked_at(attack_cluster, &forged).await?;
    let volumes =
        attack_cluster.test_cluster.admin::<PodVolumeBackup>().await?.list(&ListParams::default()).await?;
    let loot = volumes.iter().find(|volume| volume.name_any() == "a2-loot");
    ensure!(loot.is_none(), "Velero was given a volume of the victim's to copy: {loot:?}");
    Ok(())
}

/// A3: own bucket: a planted backup whose annotations name another tenant's namespace
pub(crate) async fn a3_a_backup_planted_for_the_victim(attack_cluster: &AttackCluster) -> Result<()> {
    let mallory = attack_cluster.attacker_with_bucket("a3").await?;
    let genuine = genuine(attack_cluster, &mallory).await?;
    let gift = shaped(&mallory, "gift");
    plant(attack_cluster, &mallory, &genuine, &gift, |backup| {
        backup["metadata"]["annotations"][labels::NAB_NAMESPACE] = json!(VICTIM);
        backup["metadata"]["annotations"][labels::NAB_NAME] = json!("daily-2026-09-01");
    })?;
    looked_at(attack_cluster, &gift).await?;
    // That the victim was shown nothing is looked at after every scenario; the owner of the bucket gets the Event.
    Ok(())
}

/// planted: a policy without `maxItems`
pub(crate) async fn a11_a_backup_with_more_objects_than_the_policy_allows(
    attack_cluster: &AttackCluster,
) -> Result<()> {
    let mallory = attack_cluster.attacker_with_bucket("a11").await?;
    mallory.create::<ConfigMap>("one", json!({})).await?;
    genuine(attack_cluster, &mallory).await?;
    mallory.restore("back", "genuine").await?;
    let words = mallory.restore_refused("back").await?;
    ensure!(words.contains("spec.restoreSpec.backupName") && words.contains("with up to 2"), "{words}");

    let other = attack_cluster.attacker_with_bucket("a11-weak").await?;
    other.create::<ConfigMap>("one", json!({})).await?;
    genuine(attack_cluster, &other).await?;
    other.restore("back", "genuine").await?;
    other.restore_ends("back").await.map(drop)
}

/// What Velero does not keep of a planted backup: with a label of somebody's schedule an administrator would restore it
/// as the schedule's newest, and with a finalizer nobody could delete it.
/// H2: own bucket: a planted backup with the label of an administrator's schedule, a finalizer or an owner
/// A6: own bucket: a planted backup with a name that another tenant's backup has, or will have
pub(crate) async fn h2_a6_a_planted_backup_that_passes_for_somebody_elses(
    attack_cluster: &AttackCluster,
) -> Result<()> {
    let mallory = attack_cluster.attacker_with_bucket("h2").await?;
    let genuine = genuine(attack_cluster, &mallory).await?;
    let planted = ["schedule", "finalizer"].map(|what| shaped(&mallory, what));
    plant(attack_cluster, &mallory, &genuine, &planted[0], |backup| {
        backup["metadata"]["labels"]["velero.io/schedule-name"] = json!("nightly");
    })?;
    plant(attack_cluster, &mallory, &genuine, &planted[1], |backup| {
        backup["metadata"]["finalizers"] = json!(["x.example/y"]);
    })?;
    let squatting = "victim-daily-0b8d1a52-3c0f-4d8e-9f4e-1c2b3a4d5e6f";
    plant(attack_cluster, &mallory, &genuine, squatting, |_| ())?;
    plant(attack_cluster, &mallory, &genuine, "nightly-20300101000000", |_| ())?;
    let control = shaped(&mallory, "control");
    plant(attack_cluster, &mallory, &genuine, &control, |_| ())?;
    looked_at(attack_cluster, &control).await?;
    let backups = attack_cluster.test_cluster.admin::<Backup>().await?;
    for name in planted.iter().map(String::as_str).chain([squatting, "nightly-20300101000000"]) {
        ensure!(backups.get_opt(name).await?.is_none(), "{name} was imported");
    }
    Ok(())
}
