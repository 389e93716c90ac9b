//! What Velero does when it finishes a backup or a restore goes by files in the storage of the backup, which the owner of
//! the storage can write. Each story runs with real Velero, and its forger is faster than Velero.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{fs, thread};

use anyhow::{Context, Result, ensure};
use api::velero::Restore;
use api::{NonAdminRestore, RestoredFrom};
use bed::{Bed, eventually};
use e2e::VELERO;
use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::cluster::{Fenced, TIMEOUT};
use crate::forged::POLICY;

/// How often an attack is tried that has to be faster than Velero.
const ATTEMPTS: usize = 5;

/// Overwrites a file of a bucket whenever Velero has written it, until it is dropped.
pub(crate) struct Forger {
    stop: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Forger {
    pub(crate) fn of(file: PathBuf, content: &Value) -> Result<Self> {
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

/// The folder of all backups, or of all restores, in the tenant's bucket.
pub(crate) fn folder(fenced: &Fenced, of: &str) -> Result<PathBuf> {
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
/// planted: the policies around Velero are not in force
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
    // The forger may be slower than Velero, which then restores what it wrote itself.
    let mut phase = String::new();
    for _ in 0..ATTEMPTS {
        phase = attack().await?;
        assert_eq!(keeps().await?, (Some("Retain".to_owned()), 0), "{phase}");
        if phase != "Completed" {
            break;
        }
    }
    assert_eq!(phase, "PartiallyFailed", "Velero tried, and the API server refused");

    fenced.take_the_fence_away().await?;
    let untouched = keeps().await?;
    for _ in 0..ATTEMPTS {
        phase = attack().await?;
        if keeps().await? != untouched {
            break;
        }
    }
    assert_eq!(keeps().await?, (Some("Delete".to_owned()), 1), "the forgery is a good one: {phase}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn x6_a_restore_that_velero_does_not_finish_is_ended_while_velero_is_down() -> Result<()> {
    let fenced = Fenced::prepare(Bed::builder().with_idle_velero(), &[]).await?;
    let cluster = &fenced.cluster;
    cluster
        .set_policy(&format!("{POLICY}\nrestore: {{ fromTenantStorage: {{ finalizeTimeout: 5s }} }}\n"))
        .await?;
    let _nacre = cluster.start_nacre().await?;
    let shop = fenced.shop().await?;
    // Velero has exited while it was finishing a restore, and would exit again.
    cluster.bed.velero_stop()?;
    shop.restore("crash", "daily").await?;
    let name = shop
        .wait("the restore to be handed over", "crash", |restore: Option<&NonAdminRestore>| {
            restore?.status.as_ref()?.velero_restore.as_ref()?.name.clone()
        })
        .await?;
    let velero = cluster.bed.service_account_client(VELERO, "velero").await?;
    let restores = Api::<Restore>::namespaced(velero, VELERO);
    let finishing = json!({"status": {"phase": "Finalizing", "startTimestamp": Timestamp::now().strftime("%FT%TZ").to_string()}});
    restores.patch(&name, &PatchParams::default(), &Patch::Merge(finishing)).await?;
    assert_eq!(shop.restore_ends("crash").await?, "Failed");

    // Now it stays up, and leaves that one alone.
    cluster.bed.velero_start().await?;
    shop.restore("back", "daily").await?;
    assert_eq!(shop.restore_ends("back").await?, "Completed");
    let ended = restores.get(&name).await?.status.context("a status")?;
    assert_eq!(ended.phase.as_deref(), Some("Failed"));
    Ok(())
}
