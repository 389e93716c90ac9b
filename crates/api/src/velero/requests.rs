//! Small requests to Velero: delete a backup with its data, sign a URL, say who you are.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{DownloadTarget, schema};

/// Asks Velero to delete a backup with its data.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "velero.io", version = "v1", kind = "DeleteBackupRequest", namespaced)]
#[kube(status = "DeleteBackupRequestStatus", schema = "disabled", derive = "PartialEq", derive = "Default")]
#[serde(rename_all = "camelCase")]
pub struct DeleteBackupRequestSpec {
    /// The Velero Backup.
    pub backup_name: String,
}

/// What became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DeleteBackupRequestStatus {
    /// New, InProgress or Processed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::delete_phase")]
    pub phase: Option<String>,
    /// Why Velero refused, in its own words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors: Option<Vec<String>>,
}

/// Asks Velero for a presigned URL.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "velero.io", version = "v1", kind = "DownloadRequest", namespaced)]
#[kube(status = "DownloadRequestStatus", schema = "disabled", derive = "PartialEq", derive = "Default")]
pub struct DownloadRequestSpec {
    /// What to download.
    pub target: DownloadTarget,
}

/// Velero's answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DownloadRequestStatus {
    /// New or Processed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::download_phase")]
    pub phase: Option<String>,
    /// Where to fetch it, for a few minutes.
    #[serde(rename = "downloadURL", skip_serializing_if = "Option::is_none")]
    pub download_url: Option<String>,
    /// Until when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expiration: Option<Time>,
}

/// Asks Velero for its version.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "velero.io", version = "v1", kind = "ServerStatusRequest", namespaced)]
#[kube(status = "ServerStatusRequestStatus", schema = "disabled", derive = "PartialEq", derive = "Default")]
pub struct ServerStatusRequestSpec {}

/// Velero's answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerStatusRequestStatus {
    /// New or Processed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Velero's version, for example v1.18.3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_version: Option<String>,
}
