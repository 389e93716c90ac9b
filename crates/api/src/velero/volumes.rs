//! Velero's objects for single volumes. nacre copies them unchanged, and reads the few fields that say whether the data
//! is safe.

use jiff::Timestamp;
use kube::{CustomResource, Resource};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::labels;

/// A volume saved from inside its pod.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[kube(group = "velero.io", version = "v1", kind = "PodVolumeBackup", namespaced)]
#[kube(status = "VolumeStatus", schema = "disabled", derive = "PartialEq", derive = "Default")]
pub struct PodVolumeBackupSpec {
    /// As Velero wrote it.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

/// A volume brought back inside its pod.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[kube(group = "velero.io", version = "v1", kind = "PodVolumeRestore", namespaced)]
#[kube(status = "VolumeStatus", schema = "disabled", derive = "PartialEq", derive = "Default")]
pub struct PodVolumeRestoreSpec {
    /// As Velero wrote it.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

/// A snapshot on its way to the bucket.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[kube(group = "velero.io", version = "v2alpha1", kind = "DataUpload", namespaced)]
#[kube(status = "VolumeStatus", schema = "disabled", derive = "PartialEq", derive = "Default")]
pub struct DataUploadSpec {
    /// As Velero wrote it.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

/// A snapshot on its way back.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[kube(group = "velero.io", version = "v2alpha1", kind = "DataDownload", namespaced)]
#[kube(status = "VolumeStatus", schema = "disabled", derive = "PartialEq", derive = "Default")]
pub struct DataDownloadSpec {
    /// As Velero wrote it.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

/// What Velero says about a volume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VolumeStatus {
    /// Where it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// And the rest, as Velero wrote it.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// How far a volume is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VolumeProgress {
    /// Bytes done.
    pub done: i64,
    /// Bytes in all, as far as Velero knows.
    pub total: i64,
}

/// A pod as an object about a volume names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodReference<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// The pod's name.
    pub name: &'a str,
    /// Its uid.
    pub uid: &'a str,
}

/// What the four kinds of objects about a volume have in common. Velero alone writes them, in its own namespace.
pub trait VolumeOperation: Resource<DynamicType = ()> {
    /// The spec as Velero wrote it.
    fn fields(&self) -> &Map<String, Value>;
    /// The status as Velero wrote it.
    fn volume_status(&self) -> Option<&VolumeStatus>;

    /// Where it stands; empty while nobody has looked at it.
    fn phase(&self) -> &str {
        self.volume_status().and_then(|status| status.phase.as_deref()).unwrap_or_default()
    }

    /// It will not change any more.
    fn is_over(&self) -> bool {
        matches!(self.phase(), "Completed" | "Failed" | "Canceled")
    }

    /// The data is where it should be.
    fn is_completed(&self) -> bool {
        self.phase() == "Completed"
    }

    /// What Velero says about it.
    fn message(&self) -> Option<&str> {
        self.volume_status()?.rest.get("message")?.as_str().filter(|message| !message.is_empty())
    }

    /// How far it is.
    fn progress(&self) -> VolumeProgress {
        let progress = self.volume_status().and_then(|status| status.rest.get("progress"));
        let bytes = |name: &str| progress.and_then(|progress| progress.get(name)?.as_i64()).unwrap_or(0);
        VolumeProgress { done: bytes("bytesDone"), total: bytes("totalBytes") }
    }

    /// How many of the bytes were new or changed since the previous backup of the volume. Velero reports it since 1.18,
    /// and not at all if there were none.
    fn new_bytes(&self) -> Option<i64> {
        self.volume_status()?.rest.get("incrementalBytes")?.as_i64()
    }

    /// When it was started.
    fn started(&self) -> Option<Timestamp> {
        self.volume_status()?.rest.get("startTimestamp")?.as_str()?.parse().ok()
    }

    /// When it was over.
    fn completed(&self) -> Option<Timestamp> {
        self.volume_status()?.rest.get("completionTimestamp")?.as_str()?.parse().ok()
    }

    /// Somebody asked to cancel it.
    fn is_cancelling(&self) -> bool {
        self.fields().get("cancel").and_then(Value::as_bool).unwrap_or(false)
    }

    /// The pod it works through; a data mover works through none of the tenant's.
    fn pod(&self) -> Option<PodReference<'_>> {
        let pod = self.fields().get("pod")?;
        let field = |name: &str| pod.get(name).and_then(Value::as_str);
        Some(PodReference { namespace: field("namespace")?, name: field("name")?, uid: field("uid")? })
    }

    /// The volume's name within that pod.
    fn pod_volume(&self) -> Option<&str> {
        self.fields().get("volume")?.as_str()
    }

    /// The uid of the claim: in a backup of the one that was saved, in a restore of the one that was written.
    fn claim_uid(&self) -> Option<&str> {
        self.meta().labels.as_ref()?.get(labels::VELERO_CLAIM_UID).map(String::as_str)
    }

    /// The name of the claim. A PodVolumeRestore does not say it.
    fn claim_name(&self) -> Option<&str> {
        let noted = self.meta().annotations.as_ref().and_then(|all| all.get(labels::VELERO_CLAIM_NAME));
        let source = || self.fields().get("sourcePVC")?.as_str();
        let target = || self.fields().get("targetVolume")?.get("pvc")?.as_str();
        noted.map(String::as_str).or_else(source).or_else(target)
    }

    /// The uid of the Velero Backup or Restore it belongs to.
    fn owner_uid(&self) -> Option<&str> {
        let labels = self.meta().labels.as_ref()?;
        let uid = labels.get(labels::VELERO_BACKUP_UID).or_else(|| labels.get(labels::VELERO_RESTORE_UID));
        uid.map(String::as_str)
    }
}

macro_rules! volume_operations {
    ($($kind:ident),*) => {
        $(impl VolumeOperation for $kind {
            fn fields(&self) -> &Map<String, Value> {
                &self.spec.fields
            }

            fn volume_status(&self) -> Option<&VolumeStatus> {
                self.status.as_ref()
            }
        })*
    };
}

volume_operations!(PodVolumeBackup, PodVolumeRestore, DataUpload, DataDownload);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{DataDownload, PodReference, PodVolumeBackup, VolumeOperation, VolumeProgress};

    #[test]
    fn a_pod_volume_backup_names_its_claim_its_pod_and_how_far_it_is() {
        let volume: PodVolumeBackup = serde_json::from_value(json!({
            "apiVersion": "velero.io/v1", "kind": "PodVolumeBackup",
            "metadata": {"name": "b-1", "labels": {"velero.io/backup-uid": "b", "velero.io/pvc-uid": "c"},
                "annotations": {"velero.io/pvc-name": "data"}},
            "spec": {"pod": {"namespace": "shop", "name": "db", "uid": "p"}, "volume": "files"},
            "status": {"phase": "InProgress", "startTimestamp": "2026-11-16T12:00:00Z",
                "progress": {"bytesDone": 3, "totalBytes": 8}}}))
        .unwrap();
        assert_eq!((volume.claim_uid(), volume.claim_name()), (Some("c"), Some("data")));
        assert_eq!(volume.pod(), Some(PodReference { namespace: "shop", name: "db", uid: "p" }));
        assert_eq!((volume.pod_volume(), volume.owner_uid()), (Some("files"), Some("b")));
        assert_eq!(volume.progress(), VolumeProgress { done: 3, total: 8 });
        assert!(volume.started().is_some() && volume.completed().is_none());
        assert!(!volume.is_over() && !volume.is_cancelling());
    }

    #[test]
    fn a_data_download_names_the_claim_it_fills() {
        let volume: DataDownload = serde_json::from_value(json!({
            "apiVersion": "velero.io/v2alpha1", "kind": "DataDownload", "metadata": {"name": "r-1"},
            "spec": {"cancel": true, "targetVolume": {"pvc": "data", "namespace": "shop"}},
            "status": {"phase": "Canceled", "message": "found a dataupload with status Canceled"}}))
        .unwrap();
        assert_eq!(volume.claim_name(), Some("data"));
        assert!(volume.is_over() && !volume.is_completed() && volume.is_cancelling());
        assert!(volume.message().unwrap().starts_with("found"));
        assert_eq!(volume.pod(), None);
    }
}
