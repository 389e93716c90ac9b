//! NonAdminBackupStorageLocationRequest: what an administrator approves or rejects.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::velero::BackupStorageLocationSpec;

/// The administrator's decision.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "oadp.openshift.io",
    version = "v1alpha1",
    kind = "NonAdminBackupStorageLocationRequest",
    namespaced
)]
#[kube(shortname = "nabslrequest", status = "NonAdminBackupStorageLocationRequestStatus")]
#[kube(derive = "PartialEq", derive = "Default")]
#[kube(doc = "A namespace's wish to use storage of its own, for an administrator to approve or reject.")]
#[kube(printcolumn(name = "Request-Phase", type_ = "string", json_path = ".status.phase"))]
#[kube(printcolumn(
    name = "Request-Namespace",
    type_ = "string",
    json_path = ".status.nonAdminBackupStorageLocation.namespace"
))]
#[kube(printcolumn(
    name = "Request-Name",
    type_ = "string",
    json_path = ".status.nonAdminBackupStorageLocation.name"
))]
#[kube(printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"))]
#[serde(rename_all = "camelCase", default)]
pub struct NonAdminBackupStorageLocationRequestSpec {
    /// approve, reject or pending; pending if empty. Setting it back revokes what was approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_decision: Option<ApprovalDecision>,
}

/// An administrator's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ApprovalDecision {
    /// The storage may be used.
    Approve,
    /// It may not.
    Reject,
    /// Not decided yet.
    Pending,
}

/// What was asked for, and where the decision stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NonAdminBackupStorageLocationRequestStatus {
    /// Who asks for what.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub non_admin_backup_storage_location: Option<RequestedLocation>,
    /// Pending, Approved or Rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<RequestPhase>,
}

/// Who asks for what.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestedLocation {
    /// The storage as it was asked for.
    pub requested_spec: BackupStorageLocationSpec,
    /// By which its objects are labelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nacuuid: Option<String>,
    /// The NonAdminBackupStorageLocation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// Where a decision stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RequestPhase {
    /// Not decided yet.
    Pending,
    /// The storage may be used.
    Approved,
    /// It may not.
    Rejected,
}
