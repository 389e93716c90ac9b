//! What Velero does about single volumes. nacre only counts these by phase.

use kube::CustomResource;
use serde::{Deserialize, Serialize};

/// A volume saved from inside its pod.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[kube(group = "velero.io", version = "v1", kind = "PodVolumeBackup", namespaced)]
#[kube(status = "VolumeStatus", schema = "disabled", derive = "PartialEq", derive = "Default")]
pub struct PodVolumeBackupSpec {}

/// A volume brought back inside its pod.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[kube(group = "velero.io", version = "v1", kind = "PodVolumeRestore", namespaced)]
#[kube(status = "VolumeStatus", schema = "disabled", derive = "PartialEq", derive = "Default")]
pub struct PodVolumeRestoreSpec {}

/// A snapshot on its way to the bucket.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[kube(group = "velero.io", version = "v2alpha1", kind = "DataUpload", namespaced)]
#[kube(status = "VolumeStatus", schema = "disabled", derive = "PartialEq", derive = "Default")]
pub struct DataUploadSpec {}

/// A snapshot on its way back.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[kube(group = "velero.io", version = "v2alpha1", kind = "DataDownload", namespaced)]
#[kube(status = "VolumeStatus", schema = "disabled", derive = "PartialEq", derive = "Default")]
pub struct DataDownloadSpec {}

/// What Velero says about a volume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VolumeStatus {
    /// Where it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
}
