//! Velero's objects for single volumes. nacre counts them by phase, and copies them unchanged.

use kube::CustomResource;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

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
