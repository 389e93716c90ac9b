//! A stand-in for a CSI driver with its provisioner, for the snapshot controller, and for what Kubernetes does about claims:
//! the real ones are not to be had here. What is on a disk is a text, and a snapshot keeps the text of its moment.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use bed::NODE;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams,
};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::VELERO;

const DRIVER: &str = "fast.csi.test";
const CLASS: &str = "fast";
const PACE: Duration = Duration::from_millis(200);
const PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";

/// What the driver does about snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Snapshots {
    /// It takes them.
    Ready,
    /// It begins, and reports an error.
    Failing,
    /// It does not answer.
    Never,
}

/// The driver. It works until it is dropped.
pub struct Driver {
    work: Work,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Driver {
    /// Starts it. Its client is an administrator's.
    pub fn start(client: Client, snapshots: Snapshots) -> Self {
        Self::start_with(client, snapshots, None)
    }

    /// The same where pods run: claims in Velero's namespace, which its data movers mount, get volumes that are folders in
    /// this one. The text is in the file `disk`.
    pub fn start_on_node(client: Client, snapshots: Snapshots, folder: PathBuf) -> Self {
        Self::start_with(client, snapshots, Some(folder))
    }

    fn start_with(client: Client, snapshots: Snapshots, folder: Option<PathBuf>) -> Self {
        let work = Work {
            client,
            snapshots,
            folder,
            disks: Arc::default(),
            owned: Arc::default(),
            found: Arc::default(),
        };
        let working = work.clone();
        let task = tokio::spawn(async move {
            let mut pace = tokio::time::interval(PACE);
            loop {
                pace.tick().await;
                drop(working.round().await);
            }
        });
        Self { work, task }
    }

    /// What is on the disk of a claim; fails as long as it has none.
    pub async fn read(&self, namespace: &str, claim: &str) -> Result<String> {
        let handle = self.work.handle_of(namespace, claim).await?;
        // What a data mover wrote is in its folder.
        let file = self.work.file(&handle).filter(|file| file.exists());
        file.map_or_else(
            || self.work.disk(&handle).context("no such disk"),
            |file| Ok(std::fs::read_to_string(file)?),
        )
    }

    /// Writes onto the disk of a claim.
    pub async fn write(&self, namespace: &str, claim: &str, text: &str) -> Result<()> {
        let handle = self.work.handle_of(namespace, claim).await?;
        self.work.put(&handle, text);
        Ok(())
    }

    /// How many snapshots the storage has.
    pub fn snapshots(&self) -> usize {
        let disks = self.work.disks.lock().unwrap_or_else(PoisonError::into_inner);
        disks.keys().filter(|handle| handle.starts_with("snapshot-")).count()
    }

    /// Takes every snapshot out of the storage, and returns them.
    pub fn lose_snapshots(&self) -> BTreeMap<String, String> {
        let mut disks = self.work.disks.lock().unwrap_or_else(PoisonError::into_inner);
        let (lost, left) =
            std::mem::take(&mut *disks).into_iter().partition(|(handle, _)| handle.starts_with("snapshot-"));
        *disks = left;
        lost
    }

    /// Puts snapshots back.
    pub fn find_snapshots(&self, lost: BTreeMap<String, String>) {
        self.work.disks.lock().unwrap_or_else(PoisonError::into_inner).extend(lost);
    }
}

#[derive(Clone)]
struct Work {
    client: Client,
    snapshots: Snapshots,
    /// Where the volumes are that pods mount.
    folder: Option<PathBuf>,
    /// Disks and snapshots, by handle.
    disks: Arc<Mutex<BTreeMap<String, String>>>,
    /// The snapshots that go with their VolumeSnapshotContent, by its name.
    owned: Arc<Mutex<BTreeMap<String, String>>>,
    /// The contents that are bound to the VolumeSnapshot that names them.
    found: Arc<Mutex<BTreeSet<String>>>,
}

fn kind(name: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("snapshot.storage.k8s.io", "v1", name))
}

/// What a field is, as text.
fn text(object: &DynamicObject, path: &str) -> Option<String> {
    object.data.pointer(path).and_then(Value::as_str).map(ToOwned::to_owned)
}

impl Work {
    fn disk(&self, handle: &str) -> Option<String> {
        self.disks.lock().unwrap_or_else(PoisonError::into_inner).get(handle).cloned()
    }

    fn put(&self, handle: &str, text: &str) {
        let mut disks = self.disks.lock().unwrap_or_else(PoisonError::into_inner);
        disks.insert(handle.to_owned(), text.to_owned());
    }

    /// The file with the text of a disk that pods mount.
    fn file(&self, handle: &str) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join(handle).join("disk"))
    }

    async fn handle_of(&self, namespace: &str, claim: &str) -> Result<String> {
        let claim = self.claims_in(namespace).get(claim).await?;
        claim.spec.and_then(|spec| spec.volume_name).context("the claim has no volume")
    }

    fn claims_in(&self, namespace: &str) -> Api<PersistentVolumeClaim> {
        Api::namespaced(self.client.clone(), namespace)
    }

    fn snapshots_in(&self, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), namespace, &kind("VolumeSnapshot"))
    }

    fn contents(&self) -> Api<DynamicObject> {
        Api::all_with(self.client.clone(), &kind("VolumeSnapshotContent"))
    }

    /// Looks at everything once. What fails, such as what waits for something else, is done in another round.
    async fn round(&self) -> Result<()> {
        let claims = Api::<PersistentVolumeClaim>::all(self.client.clone());
        for claim in claims.list(&ListParams::default()).await?.items {
            let class = claim.spec.as_ref().and_then(|spec| spec.storage_class_name.as_deref());
            // A claim with a selector is given a volume that is there, by whoever made it.
            let selects = claim.spec.as_ref().is_some_and(|spec| spec.selector.is_some());
            if claim.metadata.deletion_timestamp.is_some() {
                // On a node Kubernetes does that itself.
                if self.folder.is_none() {
                    drop(self.let_go(&claim).await);
                }
            } else if class == Some(CLASS) && !selects {
                drop(self.provision(&claim).await);
            }
        }
        self.remove_released().await?;
        self.look_at_contents().await?;
        let snapshots = Api::<DynamicObject>::all_with(self.client.clone(), &kind("VolumeSnapshot"));
        for snapshot in snapshots.list(&ListParams::default()).await?.items {
            if self.snapshots != Snapshots::Never
                && text(&snapshot, "/status/boundVolumeSnapshotContentName").is_none()
            {
                drop(self.bind_snapshot(&snapshot).await);
            }
        }
        Ok(())
    }

    /// A volume whose claim is gone goes, if its policy says so.
    async fn remove_released(&self) -> Result<()> {
        let volumes = Api::<PersistentVolume>::all(self.client.clone());
        for volume in volumes.list(&ListParams::default()).await?.items {
            let spec = volume.spec.clone().unwrap_or_default();
            let phase = volume.status.as_ref().and_then(|status| status.phase.as_deref());
            if spec.storage_class_name.as_deref() == Some(CLASS)
                && spec.persistent_volume_reclaim_policy.as_deref() == Some("Delete")
                && matches!(phase, Some("Released" | "Failed"))
            {
                volumes.delete(&volume.name_any(), &DeleteParams::default()).await?;
            }
        }
        Ok(())
    }

    /// A content that names a snapshot of the storage is ready. When one with policy Delete goes, its snapshot goes.
    async fn look_at_contents(&self) -> Result<()> {
        let found = self.contents().list(&ListParams::default()).await?.items;
        for content in &found {
            self.follow(content).await?;
            let handle = text(content, "/spec/source/snapshotHandle");
            if let Some(handle) = handle.filter(|handle| {
                self.disk(handle).is_some()
                    && content.data.pointer("/status/readyToUse") != Some(&json!(true))
            }) {
                let status = json!({"snapshotHandle": handle, "readyToUse": true, "restoreSize": 1 << 30});
                let status = Patch::Merge(json!({ "status": status }));
                drop(self.contents().patch(&content.name_any(), &PatchParams::default(), &status).await);
            }
        }
        let deletes =
            |content: &&DynamicObject| text(content, "/spec/deletionPolicy").as_deref() == Some("Delete");
        let named = |content: &DynamicObject| {
            Some((content.name_any(), text(content, "/spec/source/snapshotHandle")?))
        };
        let mut owned = self.owned.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = |name: &String| !found.iter().any(|content| content.name_any() == *name);
        for (_, handle) in owned.extract_if(.., |name, _| gone(name)) {
            self.disks.lock().unwrap_or_else(PoisonError::into_inner).remove(&handle);
        }
        // A content that is kept after all does not take its snapshot with it.
        owned.retain(|name, _| found.iter().filter(deletes).any(|content| content.name_any() == *name));
        owned.extend(found.iter().filter(deletes).filter_map(named));
        Ok(())
    }

    /// A content with policy Delete goes with its VolumeSnapshot.
    async fn follow(&self, content: &DynamicObject) -> Result<()> {
        let name = content.name_any();
        let is_found = self.found.lock().unwrap_or_else(PoisonError::into_inner).contains(&name);
        let deletes = text(content, "/spec/deletionPolicy").as_deref() == Some("Delete");
        let of = (
            text(content, "/spec/volumeSnapshotRef/namespace"),
            text(content, "/spec/volumeSnapshotRef/name"),
        );
        if let (true, true, (Some(namespace), Some(snapshot))) = (is_found, deletes, of)
            && self.snapshots_in(&namespace).get_opt(&snapshot).await?.is_none()
        {
            drop(self.contents().delete(&name, &DeleteParams::default()).await);
        }
        Ok(())
    }

    /// Kubernetes keeps a claim that is being deleted until no pod uses it.
    async fn let_go(&self, claim: &PersistentVolumeClaim) -> Result<()> {
        let own = self.claims_in(&claim.namespace().unwrap_or_default());
        let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        own.patch(&claim.name_any(), &PatchParams::default(), &free).await?;
        Ok(())
    }

    /// Gives a claim its volume: an empty one, or one made from its snapshot.
    async fn provision(&self, claim: &PersistentVolumeClaim) -> Result<()> {
        let spec = claim.spec.clone().unwrap_or_default();
        if spec.volume_name.is_some() {
            return Ok(());
        }
        let (namespace, name, uid) =
            (claim.namespace().unwrap_or_default(), claim.name_any(), claim.uid().unwrap_or_default());
        let own = self.claims_in(&namespace);
        let asked = Patch::Merge(json!({"metadata": {"annotations": {PROVISIONER: DRIVER}}}));
        own.patch(&name, &PatchParams::default(), &asked).await?;
        let from = match &spec.data_source {
            Some(source) => self.disk(&self.snapshot_handle(&namespace, &source.name).await?),
            None => Some(String::new()),
        };
        // A snapshot that the storage does not have: it stays without a volume.
        let Some(from) = from else { return Ok(()) };
        let handle = format!("volume-{uid}");
        self.put(&handle, &from);
        let reference = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace,
            "name": name, "uid": uid});
        let mut volume = json!({"metadata": {"name": handle}, "spec": {"accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"}, "storageClassName": CLASS, "claimRef": reference}});
        match self.file(&handle).filter(|_| namespace == VELERO) {
            Some(file) => {
                let folder = file.parent().context("a folder")?;
                std::fs::create_dir_all(folder)?;
                // A data mover that restores finds an empty volume.
                if spec.data_source.is_some() {
                    std::fs::write(&file, &from)?;
                }
                let affinity = json!({"key": "kubernetes.io/hostname", "operator": "In", "values": [NODE]});
                volume["spec"]["local"] = json!({"path": folder});
                volume["spec"]["nodeAffinity"] =
                    json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [affinity]}]}});
            }
            None => volume["spec"]["csi"] = json!({"driver": DRIVER, "volumeHandle": handle}),
        }
        let volumes = Api::<PersistentVolume>::all(self.client.clone());
        if volumes.get_opt(&handle).await?.is_none() {
            volumes.create(&PostParams::default(), &serde_json::from_value(volume)?).await?;
        }
        let bound = Patch::Merge(json!({"status": {"phase": "Bound"}}));
        volumes.patch_status(&handle, &PatchParams::default(), &bound).await?;
        let named = Patch::Merge(json!({"spec": {"volumeName": handle}}));
        own.patch(&name, &PatchParams::default(), &named).await?;
        own.patch_status(&name, &PatchParams::default(), &bound).await?;
        Ok(())
    }

    /// The snapshot in the storage that a VolumeSnapshot stands for.
    async fn snapshot_handle(&self, namespace: &str, name: &str) -> Result<String> {
        let snapshot = self.snapshots_in(namespace).get(name).await?;
        let content = text(&snapshot, "/status/boundVolumeSnapshotContentName").context("not bound")?;
        text(&self.contents().get(&content).await?, "/status/snapshotHandle").context("no handle")
    }

    /// Takes a snapshot of a claim, or finds the one that is named.
    async fn bind_snapshot(&self, snapshot: &DynamicObject) -> Result<()> {
        let (namespace, name) = (snapshot.namespace().unwrap_or_default(), snapshot.name_any());
        let content = match text(snapshot, "/spec/source/volumeSnapshotContentName") {
            Some(named) => self.find(&named, &namespace, &name).await?,
            None => self.take(snapshot, &namespace, &name).await?,
        };
        let mut status =
            json!({"boundVolumeSnapshotContentName": content, "readyToUse": true, "restoreSize": "1Gi"});
        if self.snapshots == Snapshots::Failing {
            status["readyToUse"] = json!(false);
        }
        let status = Patch::Merge(json!({ "status": status }));
        self.snapshots_in(&namespace).patch(&name, &PatchParams::default(), &status).await?;
        Ok(())
    }

    async fn take(&self, snapshot: &DynamicObject, namespace: &str, name: &str) -> Result<String> {
        let claim = text(snapshot, "/spec/source/persistentVolumeClaimName").context("no source")?;
        let disk = self.handle_of(namespace, &claim).await?;
        let uid = snapshot.uid().unwrap_or_default();
        let (handle, content) = (format!("snapshot-{uid}"), format!("snapcontent-{uid}"));
        let mut status = json!({"snapshotHandle": handle, "readyToUse": true, "restoreSize": 1 << 30});
        if self.snapshots == Snapshots::Failing {
            status["readyToUse"] = json!(false);
            status["error"] = json!({"message": "the storage is full"});
        } else {
            self.put(&handle, &self.disk(&disk).context("no such disk")?);
        }
        let reference = json!({"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot",
            "namespace": namespace, "name": name, "uid": uid});
        let object = json!({"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotContent",
            "metadata": {"name": content}, "status": status, "spec": {"deletionPolicy": "Retain", "driver": DRIVER,
                "volumeSnapshotClassName": CLASS, "source": {"volumeHandle": disk}, "volumeSnapshotRef": reference}});
        if self.contents().get_opt(&content).await?.is_none() {
            self.contents().create(&PostParams::default(), &serde_json::from_value(object)?).await?;
        }
        Ok(content)
    }

    /// A content binds only to the snapshot that it names itself.
    async fn find(&self, named: &str, namespace: &str, name: &str) -> Result<String> {
        let content = self.contents().get(named).await?;
        let of = (
            text(&content, "/spec/volumeSnapshotRef/namespace"),
            text(&content, "/spec/volumeSnapshotRef/name"),
        );
        anyhow::ensure!(of == (Some(namespace.to_owned()), Some(name.to_owned())), "it is of {of:?}");
        let handle = text(&content, "/spec/source/snapshotHandle").context("no handle")?;
        let status =
            json!({"status": {"snapshotHandle": handle, "readyToUse": true, "restoreSize": 1 << 30}});
        self.contents().patch(named, &PatchParams::default(), &Patch::Merge(status)).await?;
        self.found.lock().unwrap_or_else(PoisonError::into_inner).insert(named.to_owned());
        Ok(named.to_owned())
    }
}
