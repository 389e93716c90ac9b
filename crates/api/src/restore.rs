//! NonAdminRestore: a namespace owner asks for a restore.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::strict::strict;
use crate::velero::{RestoreSpec, RestoreStatus};
use crate::{ClaimStatus, DataMoverCounts, Phase, PodVolumeCounts, QueueInfo, VeleroResults};

/// What to restore.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "oadp.openshift.io", version = "v1alpha1", kind = "NonAdminRestore", namespaced)]
#[kube(shortname = "nar", status = "NonAdminRestoreStatus", derive = "PartialEq", derive = "Default")]
#[kube(doc = "A restore into the namespace it is made in, from one of its backups. It runs once.")]
#[kube(printcolumn(name = "Request-Phase", type_ = "string", json_path = ".status.phase"))]
#[kube(printcolumn(
    name = "Velero-Phase",
    type_ = "string",
    json_path = ".status.veleroRestore.status.phase"
))]
#[kube(printcolumn(
    name = "Data-Restored",
    type_ = "string",
    json_path = ".status.conditions[?(@.type=='DataRestored')].status"
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
pub struct NonAdminRestoreSpec {
    /// What to restore and how, as in Velero's RestoreSpec. backupName is a NonAdminBackup of this namespace.
    #[serde(deserialize_with = "strict")]
    pub restore_spec: RestoreSpec,
}

/// What became of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NonAdminRestoreStatus {
    /// The Velero Restore it was handed to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub velero_restore: Option<VeleroRestore>,
    /// Volumes brought back by a data mover.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_mover_data_downloads: Option<DataMoverCounts>,
    /// Volumes brought back file by file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_system_pod_volume_restores: Option<PodVolumeCounts>,
    /// How long the queue before it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_info: Option<QueueInfo>,
    /// What became of the data of each claim, at most 50 of them. Whether all of it is safe is the condition
    /// DataRestored.
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
    /// What is known about the restore, by type. Each reason is a word for programs, and each message a sentence for
    /// people.
    ///
    /// Accepted: whether the restore is allowed. Reasons: RestoreAccepted; InvalidRestoreSpec (refused or waiting, the
    /// message names the field and what would be accepted); PolicyUnavailable (waits until the administrators have
    /// corrected the policy); NamespaceNotSeen (waits until nacre sees the namespace);
    /// HandOverFailed (the API server rejected the Velero Restore, nacre retries);
    /// RequesterNotPermitted (waits until whoever asked has the permission that the message names);
    /// VeleroRestoreNotFound (the Velero Restore is gone and will not run again).
    ///
    /// RequesterPermitted: False if whoever asked lacks permissions for some of it. Reasons: ResourcesLeftOut (the
    /// message names what was left out); NotEnforced (the policy only warns, nothing was left out);
    /// NotRecorded (the API server did not record who asked, so the permissions are not known).
    ///
    /// WaitingForTurn: whether it waits for its turn to be given to Velero. Reasons: OthersFirst (the message says when it
    /// starts, most likely, and how many are ahead); HeldByAdministrator (waits until an administrator releases it);
    /// NamespaceLimitReached (waits until another restore of the namespace has ended).
    ///
    /// Queued: whether Velero has the restore. Reason: RestoreScheduled.
    ///
    /// SpecApplied: False if the spec was edited after Velero got it. Reason: EditedAfterCreation (the edit changes
    /// nothing, create a new restore).
    ///
    /// DataRestored: whether the data of every claim in the backup came back. Reasons: AllVolumesRestored; NoVolumes;
    /// ClaimsKept (a claim exists and was left as it is); ClaimsMixed (written over a claim that exists, newer files
    /// are still there); ClaimsWithoutData (the backup holds no data of a claim); VolumesFailed; VolumesCancelled;
    /// StillRunning.
    ///
    /// ResultsRead: whether Velero's errors and warnings could be read. Reasons: ErrorsReported; WarningsReported;
    /// NothingToShow; ResultsNotReadable.
    ///
    /// Deleting: whether the restore is being deleted. Reason: DeletionPending.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// A Velero Restore, mirrored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct VeleroRestore {
    /// What Velero says about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<RestoreStatus>,
    /// By which its Velero objects are labelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nacuuid: Option<String>,
    /// The name of the Velero Restore.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}
