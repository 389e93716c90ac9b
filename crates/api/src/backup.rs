//! NonAdminBackup: a namespace owner asks for a backup.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::strict::strict;
use crate::velero::{BackupSpec, BackupStatus, DeleteBackupRequestStatus};
use crate::{ClaimStatus, DataMoverCounts, Phase, PodVolumeCounts, VeleroResults};

/// What to back up, and whether to delete it again.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "oadp.openshift.io", version = "v1alpha1", kind = "NonAdminBackup", namespaced)]
#[kube(shortname = "nab", status = "NonAdminBackupStatus", derive = "PartialEq", derive = "Default")]
#[kube(
    doc = "A backup of the namespace it is made in. nacre has Velero carry it out and mirrors what becomes of it."
)]
#[kube(printcolumn(name = "Request-Phase", type_ = "string", json_path = ".status.phase"))]
#[kube(printcolumn(
    name = "Velero-Phase",
    type_ = "string",
    json_path = ".status.veleroBackup.status.phase"
))]
#[kube(printcolumn(
    name = "Data-Protected",
    type_ = "string",
    json_path = ".status.conditions[?(@.type=='DataProtected')].status"
))]
#[kube(printcolumn(name = "Starts", type_ = "string", json_path = ".status.queueInfo.estimatedStart"))]
#[kube(printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"))]
#[kube(printcolumn(
    name = "Waits",
    type_ = "string",
    json_path = ".status.conditions[?(@.type=='WaitingForTurn')].message"
))]
#[serde(rename_all = "camelCase")]
#[schemars(rename_all = "camelCase")]
pub struct NonAdminBackupSpec {
    /// What to back up and how, as in Velero's BackupSpec. It covers this namespace only.
    #[serde(deserialize_with = "strict")]
    pub backup_spec: BackupSpec,
    /// Set to true to delete the backup together with its data in the storage. The NonAdminBackup goes when the
    /// data is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_backup: Option<bool>,
}

/// What became of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NonAdminBackupStatus {
    /// The Velero Backup it was handed to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub velero_backup: Option<VeleroBackup>,
    /// The request to Velero to delete it with its data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub velero_delete_backup_request: Option<VeleroDeleteBackupRequest>,
    /// Volumes moved into the storage by a data mover.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_mover_data_uploads: Option<DataMoverCounts>,
    /// Volumes backed up file by file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_system_pod_volume_backups: Option<PodVolumeCounts>,
    /// How long the queue before it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_info: Option<QueueInfo>,
    /// What became of the data of each claim, at most 50 of them. Whether all of it is safe is the condition
    /// DataProtected.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<ClaimStatus>,
    /// How many claims are not listed because there are more than 50.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claims_not_listed: Option<u32>,
    /// The errors and warnings that Velero reported, of a backup in the cluster's own storage. Whether they could be read
    /// is the condition ResultsRead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub results: Option<VeleroResults>,
    /// How far nacre has got with it: New, BackingOff, Created or Deleting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// What is known about the backup, by type. Each reason is a word for programs, and each message a sentence for
    /// people.
    ///
    /// Accepted: whether the backup is allowed. Reasons: BackupAccepted; InvalidBackupSpec (refused or waiting, the
    /// message names the field and what would be accepted); NamespaceLimitReached (waits until another backup of the
    /// namespace is finished or deleted, or the limit is raised); PolicyUnavailable (waits until the administrators
    /// have corrected the policy); NamespaceNotSeen (waits until nacre sees the namespace);
    /// HandOverFailed (the API server rejected the Velero Backup, nacre retries);
    /// RequesterNotPermitted (waits until whoever asked has the permission that the message names);
    /// VeleroBackupNotFound (the Velero Backup is gone and will not be created again).
    ///
    /// RequesterPermitted: False if whoever asked lacks permissions for some of it. Reasons: ResourcesLeftOut (the
    /// message names what was left out); NotEnforced (the policy only warns, nothing was left out);
    /// NotRecorded (the API server did not record who asked, so the permissions are not known).
    ///
    /// WaitingForTurn: whether it waits for its turn to be given to Velero. Reasons: OthersFirst (the message says when it
    /// starts, most likely, and how many are ahead); HeldByAdministrator (waits until an administrator releases it).
    ///
    /// Queued: whether Velero has the backup. Reason: BackupScheduled.
    ///
    /// SpecApplied: False if the spec was edited after Velero got it. Reason: EditedAfterCreation (the edit changes
    /// nothing, create a new backup).
    ///
    /// DataProtected: whether the data of every claim in the namespace is in the backup. Reasons: AllClaimsSaved;
    /// NoClaims; ClaimsNotSaved (the message names the claims and what to do); StillRunning.
    ///
    /// ResultsRead: whether Velero's errors and warnings could be read. Reasons: ErrorsReported; WarningsReported;
    /// NothingToShow; ResultsNotReadable.
    ///
    /// Deleting: whether the backup is being deleted. Reason: DeletionPending. A backup that retention had deleted, and
    /// that became the last good one of its schedule meanwhile, stays: the Event BackupKept reports it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// A Velero Backup, mirrored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct VeleroBackup {
    /// What Velero was asked to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec: Option<BackupSpec>,
    /// What Velero says about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<BackupStatus>,
    /// By which its Velero objects are labelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nacuuid: Option<String>,
    /// The name of the Velero Backup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// A request to Velero to delete a backup with its data, mirrored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct VeleroDeleteBackupRequest {
    /// What Velero says about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<DeleteBackupRequestStatus>,
    /// By which it is labelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nacuuid: Option<String>,
    /// The name of the DeleteBackupRequest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// How long the queue before a request is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueInfo {
    /// 0 when finished, 1 when running or next, else one more than what is ahead. While it waits for its turn, the number
    /// may rise: a namespace that has used less goes first.
    pub estimated_queue_position: i64,
    /// When it starts, most likely. Only while it waits for its turn, and once any has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_start: Option<Time>,
    /// It most likely does not start before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earliest_start: Option<Time>,
    /// It most likely does not start after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest_start: Option<Time>,
}
