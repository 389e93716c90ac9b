//! What Velero does when it finishes a backup or a restore goes by files in the storage of the backup, which the owner of
//! the storage can write. Each story runs with real Velero, and its forger is faster than Velero.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{fs, thread};

use anyhow::{Context, Result, ensure};
use api::RestoredFrom;
use bed::{Bed, eventually, wait_until};
use e2e::VELERO;
use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Secret};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::cluster::{Fenced, TIMEOUT};
use crate::tarball::Tarball;

/// Overwrites a file of a bucket whenever Velero has written it, until it is dropped.
struct Forger {
    stop: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Forger {
    fn of(file: PathBuf, content: &Value) -> Result<Self> {
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(content.to_string().as_bytes())?;
        let packed = packed.finish()?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                if fs::read(&file).is_ok_and(|found| found != packed) {
                    // Velero may be replacing it: then it is forged the next time.
                    fs::write(&file, &packed).ok();
                }
                thread::sleep(Duration::from_micros(200));
            }
        });
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Forger {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().map(thread::JoinHandle::join);
    }
}

/// The folder of all backups, and of all restores, in the tenant's bucket.
fn folder(fenced: &Fenced, of: &str) -> Result<PathBuf> {
    let all = fenced.contents.ancestors().nth(3).context("a folder")?;
    Ok(all.join(of))
}

/// A disk of somebody else's, that is kept when its claim goes.
async fn victims_disk(fenced: &Fenced) -> Result<Api<PersistentVolume>> {
    fenced.cluster.bed.namespace("victim").await?;
    let spec = json!({"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "none",
        "persistentVolumeReclaimPolicy": "Retain", "csi": {"driver": "disk.example.com", "volumeHandle": "v"},
        "claimRef": {"namespace": "victim", "name": "disk"}});
    let volume = json!({"metadata": {"name": "disk"}, "spec": spec});
    let volumes = Api::<PersistentVolume>::all(fenced.client.clone());
    volumes.create(&PostParams::default(), &serde_json::from_value(volume)?).await?;
    let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "none", "volumeName": "disk"});
    let claim = json!({"metadata": {"name": "disk"}, "spec": spec});
    let claims = Api::<PersistentVolumeClaim>::namespaced(fenced.client.clone(), "victim");
    claims.create(&PostParams::default(), &serde_json::from_value(claim)?).await?;
    let bound = Patch::Merge(json!({"status": {"phase": "Bound"}}));
    volumes.patch_status("disk", &PatchParams::default(), &bound).await?;
    claims.patch_status("disk", &PatchParams::default(), &bound).await?;
    // Only what is older than the restore is protected, and times are whole seconds.
    let created = volumes.get("disk").await?.metadata.creation_timestamp.context("a time")?.0;
    eventually("the volume to be older than a second", TIMEOUT, async || {
        let age = Timestamp::now().duration_since(created);
        ensure!(age > SignedDuration::from_secs(1), "it is {age} old");
        anyhow::Ok(())
    })
    .await?;
    Ok(volumes)
}

/// X5: own bucket: files that say which claims came back and how their volumes were, so that Velero changes the labels and the
/// reclaim policy of another tenant's volume
#[tokio::test(flavor = "multi_thread")]
async fn x5_a_tenants_restore_changes_no_volume_elsewhere() -> Result<()> {
    let fenced = Fenced::prepare(Bed::builder().with_idle_velero(), &[]).await?;
    fenced.fence_is_there().await?;
    let volumes = victims_disk(&fenced).await?;
    let keeps = async || {
        let volume = volumes.get("disk").await?;
        let labels = volume.metadata.labels.unwrap_or_default();
        anyhow::Ok((volume.spec.and_then(|spec| spec.persistent_volume_reclaim_policy), labels.len()))
    };
    let backup = &fenced.backup;
    let info = json!([{"pvcName": "disk", "pvcNamespace": "victim", "pvName": "disk", "backupMethod": "PodVolumeBackup",
        "pvInfo": {"reclaimPolicy": "Delete", "labels": {"topology.kubernetes.io/zone": "elsewhere"}}}]);
    let _info =
        Forger::of(folder(&fenced, "backups")?.join(format!("{backup}/{backup}-volumeinfo.json.gz")), &info)?;
    let attack = async || {
        let restore = fenced.upcoming(RestoredFrom::TenantStorage);
        let list = format!("{restore}/restore-{restore}-resource-list.json.gz");
        let came_back = json!({"v1/PersistentVolumeClaim": ["victim/disk(created)"]});
        let _list = Forger::of(folder(&fenced, "restores")?.join(list), &came_back)?;
        fenced.restore(RestoredFrom::TenantStorage, backup).await
    };
    let phase = attack().await?;
    assert_eq!(keeps().await?, (Some("Retain".to_owned()), 0), "{phase}");
    assert_eq!(phase, "PartiallyFailed", "Velero tried, and the API server refused");

    fenced.take_the_fence_away().await?;
    let phase = attack().await?;
    assert_eq!(keeps().await?, (Some("Delete".to_owned()), 1), "the forgery is a good one: {phase}");
    Ok(())
}

/// Whether somebody else's Secret is in a backup.
fn holds_the_secret(contents: &Path) -> Result<bool> {
    Ok(Tarball::open(contents)?.has("resources/secrets/namespaces/victim/db.json"))
}

/// What is not defended: whoever owns the storage of a backup has Velero put into it what Velero may read.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_owns_the_storage_of_a_backup_can_read_what_velero_can_read() -> Result<()> {
    let fenced = Fenced::prepare(Bed::builder().with_idle_velero(), &[]).await?;
    fenced.fence_is_there().await?;
    fenced.cluster.bed.namespace("victim").await?;
    let secrets = Api::<Secret>::namespaced(fenced.client.clone(), "victim");
    let secret = json!({"metadata": {"name": "db"}, "stringData": {"password": "pearl"}});
    secrets.create(&PostParams::default(), &serde_json::from_value(secret)?).await?;
    let backups = fenced.cluster.bed.velero_api("Backup").await?;
    let location = backups.get(&fenced.backup).await?.data["spec"]["storageLocation"].clone();
    let stolen = json!({"Group": "", "Resource": "secrets", "Namespace": "victim", "Name": "db"});
    let operations = json!([{"spec": {"backupName": "odd", "backupUID": "u", "backupItemAction": "x", "operationID": "x",
        "resourceIdentifier": stolen, "postOperationItems": [stolen]}, "status": {"phase": "Completed"}}]);
    let odd = folder(&fenced, "backups")?.join("odd");
    let _forger = Forger::of(odd.join("odd-itemoperations.json.gz"), &operations)?;
    let backup = json!({"apiVersion": "velero.io/v1", "kind": "Backup", "metadata": {"name": "odd", "namespace": VELERO},
        "spec": {"includedNamespaces": ["shop"], "storageLocation": location}});
    backups.create(&PostParams::default(), &serde_json::from_value(backup)?).await?;
    let phase = wait_until("the backup to end", TIMEOUT, backups, "odd", |backup| {
        let status = &backup?.data["status"];
        status["completionTimestamp"].as_str().and_then(|_| status["phase"].as_str().map(str::to_owned))
    })
    .await?;
    ensure!(
        holds_the_secret(&odd.join("odd.tar.gz"))?,
        "this Velero no longer does that, it ended as {phase}: update docs/security.md"
    );
    Ok(())
}

/// Where Velero's server logs.
fn log_of_velero(fenced: &Fenced) -> Result<String> {
    let found = fs::read_dir(fenced.cluster.bed.folder())?.filter_map(Result::ok);
    let log = found.map(|entry| entry.path().join("server.log")).find(|log| log.is_file());
    Ok(fs::read_to_string(log.context("a log of Velero's")?)?)
}

/// What is not defended: a claim that is pending and has no class, which a file in the storage of a backup names, makes
/// Velero exit while it finishes a restore.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_owns_the_storage_of_a_backup_can_have_velero_exit() -> Result<()> {
    let fenced = Fenced::prepare(Bed::builder().with_idle_velero(), &[]).await?;
    let shop = fenced.shop().await?;
    let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    shop.create::<PersistentVolumeClaim>("till", json!({"spec": spec})).await?;
    let backup = &fenced.backup;
    let info = json!([{"pvcName": "till", "pvcNamespace": "shop", "pvName": "x", "backupMethod": "PodVolumeBackup",
        "pvInfo": {"reclaimPolicy": "Delete", "labels": {}}}]);
    let file = folder(&fenced, "backups")?.join(format!("{backup}/{backup}-volumeinfo.json.gz"));
    let _info = Forger::of(file, &info)?;
    let restore = fenced.upcoming(RestoredFrom::TenantStorage);
    let list = format!("{restore}/restore-{restore}-resource-list.json.gz");
    let came_back = json!({"v1/PersistentVolumeClaim": ["shop/till(created)"]});
    let _list = Forger::of(folder(&fenced, "restores")?.join(list), &came_back)?;
    let spec = json!({"backupName": backup, "includedNamespaces": ["shop"]});
    let ended = fenced.attempt(RestoredFrom::TenantStorage, spec, TIMEOUT / 3).await?;
    ensure!(ended.is_none(), "this Velero no longer does that: update docs/security.md");
    let log = log_of_velero(&fenced)?;
    ensure!(log.contains("nil pointer dereference"), "Velero did not exit for that reason");
    Ok(())
}
