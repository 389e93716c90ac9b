//! NonAdminBackupStorageLocation: a namespace owner's own bucket.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Phase;
use crate::strict::strict;
use crate::velero::{BackupStorageLocationSpec, BackupStorageLocationStatus};

/// The storage to use.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "oadp.openshift.io", version = "v1alpha1", kind = "NonAdminBackupStorageLocation", namespaced)]
#[kube(
    shortname = "nabsl",
    status = "NonAdminBackupStorageLocationStatus",
    derive = "PartialEq",
    derive = "Default"
)]
#[kube(
    doc = "Storage of the namespace's own, for its backups alone. An administrator may have to approve it."
)]
#[kube(printcolumn(
    name = "Request-Approved",
    type_ = "string",
    json_path = ".status.conditions[?(@.type=='ClusterAdminApproved')].status"
))]
#[kube(printcolumn(name = "Request-Phase", type_ = "string", json_path = ".status.phase"))]
#[kube(printcolumn(
    name = "Velero-Phase",
    type_ = "string",
    json_path = ".status.veleroBackupStorageLocation.status.phase"
))]
#[kube(printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"))]
#[serde(rename_all = "camelCase")]
#[schemars(rename_all = "camelCase")]
pub struct NonAdminBackupStorageLocationSpec {
    /// The storage, as in Velero's BackupStorageLocationSpec. It cannot be changed once it is approved: make a new one instead.
    #[serde(deserialize_with = "strict")]
    pub backup_storage_location_spec: BackupStorageLocationSpec,
}

/// What became of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NonAdminBackupStorageLocationStatus {
    /// The Velero BackupStorageLocation made of it. A new phase is shown at once. The times of Velero's last looks at it
    /// may be 5 to 10 minutes behind, and more in a cluster with more than 30 locations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub velero_backup_storage_location: Option<VeleroBackupStorageLocation>,
    /// How far nacre has got with it: New, BackingOff, Created or Deleting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// What is known about the location, by type. Each reason is a word for programs, and each message a sentence for
    /// people.
    ///
    /// Accepted: whether the location is allowed. Reasons: BslSpecValidation (True or False; the message names the
    /// field and what would be accepted); PolicyUnavailable (waits until the administrators have corrected the policy);
    /// NamespaceNotSeen (waits until nacre sees the namespace).
    ///
    /// ClusterAdminApproved: whether an administrator lets the storage be used. Reasons: BslSpecApproved;
    /// BslSpecApprovalPending (nobody has decided yet); BslSpecRejected; BslSpecInvalid (the decision cannot be
    /// understood).
    ///
    /// SpecUpdateApproved: False if the spec was changed after it was approved. Reason: BslSpecUpdateRejected.
    ///
    /// SecretSynced: whether the credential was copied to Velero's namespace. Reasons: SecretCreated; SecretUpdated;
    /// SecretSyncFailed.
    ///
    /// BackupStorageLocationSynced: whether Velero has the location. Reasons: BackupStorageLocationCreated;
    /// BackupStorageLocationUpdated; BackupStorageLocationSyncError.
    ///
    /// BackupsImported: False if the storage has backups that Velero could not import. Reason: ImportsRefused (the message
    /// names some of them and says why; no other backup is affected).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// A Velero BackupStorageLocation, mirrored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct VeleroBackupStorageLocation {
    /// What Velero says about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<BackupStorageLocationStatus>,
    /// By which its objects are labelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nacuuid: Option<String>,
    /// The name of the Velero BackupStorageLocation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}
