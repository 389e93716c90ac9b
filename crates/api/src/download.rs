//! NonAdminDownloadRequest: a namespace owner asks for a log, results or the contents of a backup.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::velero::DownloadRequestStatus;
use crate::{Phase, schema};

/// What to download.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "oadp.openshift.io", version = "v1alpha1", kind = "NonAdminDownloadRequest", namespaced)]
#[kube(
    shortname = "nadr",
    status = "NonAdminDownloadRequestStatus",
    derive = "PartialEq",
    derive = "Default"
)]
#[kube(
    doc = "A request for a link to a log, the results or the contents of a backup or restore. It lasts minutes."
)]
#[kube(printcolumn(name = "Request-Phase", type_ = "string", json_path = ".status.phase"))]
#[kube(printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"))]
pub struct NonAdminDownloadRequestSpec {
    /// What to download.
    pub target: DownloadTarget,
}

/// One file of a backup or restore.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DownloadTarget {
    /// Which file.
    #[schemars(schema_with = "schema::download_kind")]
    pub kind: String,
    /// The NonAdminBackup for kinds that speak of backups, the NonAdminRestore for the others.
    pub name: String,
}

/// What became of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NonAdminDownloadRequestStatus {
    /// Velero's answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub velero: Option<VeleroDownloadRequest>,
    /// The objects in the backup, where nacre read Velero's list of them itself: for BackupResourceList, of a backup in the
    /// cluster's own storage, where the policy hands out no links.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objects: Option<ObjectList>,
    /// The lines about the namespace, where nacre read Velero's log itself: for BackupLog and RestoreLog, of a backup in the
    /// cluster's own storage, where the policy hands out no links.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<LogLines>,
    /// How far nacre has got with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// What is known about the download, by type. Each reason is a word for programs, and each message a sentence for
    /// people.
    ///
    /// Processed: whether there is a link, the list of objects or the lines of the log. Reasons: Success; BeingRead (nacre
    /// reads the file); ResultsNotReadable; Error (the message says what is missing); PolicyUnavailable (waits until the administrators
    /// have corrected the policy); NamespaceNotSeen (waits until nacre sees the namespace).
    ///
    /// NonAdminBackupNotAvailable, NonAdminRestoreNotAvailable: True if the backup or restore that the request names is
    /// not there. Reason: Error.
    ///
    /// NonAdminBackupStorageLocationNotUsed: True if the backup is not in the namespace's own storage, and the policy
    /// allows no downloads from the cluster's. Reasons: Error; ResultsNotReadable (this CRD has no field for what nacre read).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// A Velero DownloadRequest, mirrored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct VeleroDownloadRequest {
    /// What Velero says about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<DownloadRequestStatus>,
}

/// The most objects that are listed in a status.
pub const MOST_OBJECTS: usize = 2000;

/// The objects of the namespace that are in a backup.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectList {
    /// Their names, by API version and kind, for example `apps/v1/Deployment`.
    pub names: BTreeMap<String, Vec<String>>,
    /// How many more there are: at most 2000 are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_listed: Option<u32>,
}

/// The most lines of a log that are in a status.
pub const MOST_LINES: usize = 200;

/// What a log says about the namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LogLines {
    /// The lines in their order, with time, level, message and object. Addresses in them are replaced, and long ones are
    /// cut.
    pub lines: Vec<String>,
    /// How many more lines about the namespace there are: at most 200 are listed, errors and warnings before others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_listed: Option<u32>,
    /// How many lines are left out: they are not about the namespace, name another one, or look as if they held a key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<u32>,
}
