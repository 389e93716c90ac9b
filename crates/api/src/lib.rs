//! The nouns of nacre: one file per custom resource, the part of Velero's API that nacre reads or writes, and
//! the names, labels and conditions that everybody else agrees on.
//!
//! There is no client here, nothing async, and no decision.

#![expect(clippy::duplicated_attributes, reason = "kube takes one attribute per printed column")]

mod backup;
mod claim_status;
pub mod condition;
mod counters;
mod download;
mod dpa;
mod duration;
pub mod events;
mod kind;
pub mod labels;
mod location;
mod location_request;
mod naming;
pub mod reasons;
mod restore;
mod retention;
mod schedule;
mod schema;
mod secret;
mod strict;
pub mod velero;
mod velero_results;
mod workload;

pub use backup::{
    NonAdminBackup, NonAdminBackupSpec, NonAdminBackupStatus, QueueInfo, VeleroBackup,
    VeleroDeleteBackupRequest,
};
pub use claim_status::{ClaimState, ClaimStatus, MOST_CLAIMS};
pub use counters::{DataMoverCounts, PodVolumeCounts};
pub use download::{
    DownloadTarget, LogLines, MOST_LINES, MOST_OBJECTS, NonAdminDownloadRequest, NonAdminDownloadRequestSpec,
    NonAdminDownloadRequestStatus, ObjectList, VeleroDownloadRequest,
};
pub use dpa::{
    DataProtectionApplication, DataProtectionApplicationSpec, DataProtectionApplicationStatus, Features,
    NonAdmin,
};
pub use duration::Duration;
pub use kind::Kind;
pub use location::{
    NonAdminBackupStorageLocation, NonAdminBackupStorageLocationSpec, NonAdminBackupStorageLocationStatus,
    VeleroBackupStorageLocation,
};
pub use location_request::{
    ApprovalDecision, NonAdminBackupStorageLocationRequest, NonAdminBackupStorageLocationRequestSpec,
    NonAdminBackupStorageLocationRequestStatus, RequestPhase, RequestedLocation,
};
pub use naming::{
    NAMESPACE_UID_IN_NAME, RestoredFrom, ends_with_uid, restore_name, restore_name_pattern, restored_from,
    velero_name,
};
pub use restore::{NonAdminRestore, NonAdminRestoreSpec, NonAdminRestoreStatus, VeleroRestore};
pub use retention::Retention;
pub use schedule::{
    Concurrency, Confirmation, NonAdminSchedule, NonAdminScheduleSpec, NonAdminScheduleStatus,
    ScheduleTemplate, ScheduledBackup, VeleroSchedule,
};
pub use secret::{Hidden, HiddenSecret};
pub use velero_results::{MOST_MESSAGES, VeleroResults};
pub use workload::{
    Claim, ClaimPhase, ClaimRef, ClaimSource, ClaimSpec, ContainerState, ContainerStatus, DataSource,
    HostPath, NodeAgent, NodeAgentContainer, NodeAgentPodSpec, NodeAgentSpec, NodeAgentStatus,
    NodeAgentTemplate, PodCondition, PodVolume, RestoredPod, RestoredPodSpec, RestoredPodStatus, Terminated,
    Volume, VolumeSpec, Waiting,
};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// nacre's phase of a request. This is not Velero's phase, which is a separate field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    /// Seen, not yet decided.
    New,
    /// Refused or waiting; the conditions say why, and it goes on by itself when the cause is gone.
    BackingOff,
    /// Handed to Velero.
    Created,
    /// Being deleted.
    Deleting,
}

/// The definitions of nacre's own kinds, and of OADP's for clusters without OADP.
pub fn crds() -> Vec<CustomResourceDefinition> {
    let mut crds = vec![
        NonAdminBackup::crd(),
        NonAdminRestore::crd(),
        NonAdminBackupStorageLocation::crd(),
        NonAdminBackupStorageLocationRequest::crd(),
        NonAdminDownloadRequest::crd(),
        NonAdminSchedule::crd(),
        DataProtectionApplication::crd(),
    ];
    for crd in &mut crds {
        schema::tidy(crd);
        let marks = [
            (labels::PART_OF, labels::PART_OF_VALUE),
            ("app.kubernetes.io/version", env!("CARGO_PKG_VERSION")),
        ];
        let marks = marks.map(|(label, value)| (label.to_owned(), value.to_owned()));
        crd.metadata.labels.get_or_insert_default().extend(marks);
    }
    crds
}
