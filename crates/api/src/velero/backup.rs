//! Velero's Backup.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::TypedLocalObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::unset::zero;
use super::{BackupHooks, HookStatus};
use crate::{Duration, schema};

/// What to back up and how, as Velero knows it.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "velero.io", version = "v1", kind = "Backup", namespaced)]
#[kube(status = "BackupStatus", schema = "disabled", derive = "PartialEq", derive = "Default")]
#[serde(rename_all = "camelCase", default)]
#[schemars(rename_all = "camelCase")]
pub struct BackupSpec {
    /// Labels for the Velero object.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "zero")]
    pub metadata: Option<Metadata>,
    /// Namespaces to back up. Here only the own namespace is possible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub included_namespaces: Option<Vec<String>>,
    /// Namespaces to leave out. Not available to namespace owners.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excluded_namespaces: Option<Vec<String>>,
    /// Resources to back up; all if empty. Cannot be mixed with the scoped filters below.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub included_resources: Option<Vec<String>>,
    /// Resources to leave out. Cannot be mixed with the scoped filters below.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excluded_resources: Option<Vec<String>>,
    /// Cluster-scoped resources to back up. Not available to namespace owners.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub included_cluster_scoped_resources: Option<Vec<String>>,
    /// Cluster-scoped resources to leave out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excluded_cluster_scoped_resources: Option<Vec<String>>,
    /// Resources inside the namespace to back up; all if empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub included_namespace_scoped_resources: Option<Vec<String>>,
    /// Resources inside the namespace to leave out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excluded_namespace_scoped_resources: Option<Vec<String>>,
    /// Back up only objects with these labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
    /// Back up only objects that one of these selects. Cannot be mixed with labelSelector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub or_label_selectors: Option<Vec<LabelSelector>>,
    /// Whether to take snapshots of volumes; Velero decides if this is not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot_volumes: Option<bool>,
    /// How long the backup is kept, for example 720h.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "zero")]
    pub ttl: Option<Duration>,
    /// Whether to back up cluster-scoped resources. Namespace owners cannot set it to true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_cluster_resources: Option<bool>,
    /// Commands to run in pods before and after they are backed up.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "zero")]
    pub hooks: Option<BackupHooks>,
    /// The NonAdminBackupStorageLocation of this namespace to store the backup in; the cluster's own storage
    /// if empty.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "zero")]
    pub storage_location: Option<String>,
    /// Where volume snapshots are kept. Not available to namespace owners.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_snapshot_locations: Option<Vec<String>>,
    /// The older name of defaultVolumesToFsBackup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_volumes_to_restic: Option<bool>,
    /// Whether volumes are backed up file by file unless their pod says otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_volumes_to_fs_backup: Option<bool>,
    /// For a kind of resource, the names to back up first, separated by commas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ordered_resources: Option<BTreeMap<String, String>>,
    /// How long to wait for a CSI snapshot.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "zero")]
    pub csi_snapshot_timeout: Option<Duration>,
    /// How long to wait for operations that plugins run in the background.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "zero")]
    pub item_operation_timeout: Option<Duration>,
    /// An administrator's ConfigMap with Velero's resource policy for volumes. It must be marked for tenants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_policy: Option<TypedLocalObjectReference>,
    /// Whether snapshots are moved into the storage location.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot_move_data: Option<bool>,
    /// What moves snapshots into the storage location; Velero's own mover if empty.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "zero")]
    pub datamover: Option<String>,
    /// How files are uploaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uploader_config: Option<UploaderConfigForBackup>,
    /// Claims with the same value of this label are snapshotted together.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "zero")]
    pub volume_group_snapshot_label_key: Option<String>,
}

/// Labels for a Velero object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Metadata {
    /// The labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
}

/// How files are uploaded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct UploaderConfigForBackup {
    /// How many files are uploaded at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel_files_upload: Option<i64>,
}

/// What Velero says about a backup.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BackupStatus {
    /// The version of Velero's backup format.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
    /// The version of Velero's backup format, with the minor number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format_version: Option<String>,
    /// When Velero will remove it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expiration: Option<Time>,
    /// Where it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::backup_phase")]
    pub phase: Option<String>,
    /// Its place in Velero's own queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_position: Option<i64>,
    /// Why Velero would not start it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation_errors: Option<Vec<String>>,
    /// When it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_timestamp: Option<Time>,
    /// When it ended, well or badly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_timestamp: Option<Time>,
    /// Volume snapshots tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_snapshots_attempted: Option<i64>,
    /// Volume snapshots made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_snapshots_completed: Option<i64>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<String>,
    /// Warnings counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warnings: Option<i64>,
    /// Errors counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors: Option<i64>,
    /// How far it has got.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<BackupProgress>,
    /// CSI snapshots tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub csi_volume_snapshots_attempted: Option<i64>,
    /// CSI snapshots made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub csi_volume_snapshots_completed: Option<i64>,
    /// Background operations tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup_item_operations_attempted: Option<i64>,
    /// Background operations done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup_item_operations_completed: Option<i64>,
    /// Background operations failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup_item_operations_failed: Option<i64>,
    /// Hooks run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hook_status: Option<HookStatus>,
}

/// How far a backup has got.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BackupProgress {
    /// Items there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_items: Option<i64>,
    /// Items written so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items_backed_up: Option<i64>,
}

impl Backup {
    /// Velero's phase; empty before Velero has looked at it.
    pub fn phase(&self) -> &str {
        self.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
    }
}
