//! Velero's Restore.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::TypedLocalObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::unset::zero;
use super::{HookStatus, RestoreHooks};
use crate::{Duration, schema};

/// What to restore and how, as Velero knows it.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "velero.io", version = "v1", kind = "Restore", namespaced)]
#[kube(status = "RestoreStatus", schema = "disabled", derive = "PartialEq", derive = "Default")]
#[serde(rename_all = "camelCase", default)]
#[schemars(rename_all = "camelCase")]
pub struct RestoreSpec {
    /// The NonAdminBackup of this namespace to restore from.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "zero")]
    pub backup_name: Option<String>,
    /// Not available to namespace owners.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "zero")]
    pub schedule_name: Option<String>,
    /// Namespaces to restore. Always the own one; leave it out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub included_namespaces: Option<Vec<String>>,
    /// Namespaces to leave out. Not available to namespace owners.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excluded_namespaces: Option<Vec<String>>,
    /// Resources to restore; all that are allowed if empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub included_resources: Option<Vec<String>>,
    /// Resources to leave out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excluded_resources: Option<Vec<String>>,
    /// Not available to namespace owners.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace_mapping: Option<BTreeMap<String, String>>,
    /// Restore only objects with these labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
    /// Restore only objects that one of these selects. Cannot be mixed with labelSelector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub or_label_selectors: Option<Vec<LabelSelector>>,
    /// Whether volumes are restored.
    #[serde(rename = "restorePVs", skip_serializing_if = "Option::is_none")]
    pub restore_pvs: Option<bool>,
    /// Which objects get their status back; none if not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restore_status: Option<RestoreStatusSpec>,
    /// Whether services keep their node ports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preserve_node_ports: Option<bool>,
    /// Whether to restore cluster-scoped resources. Namespace owners cannot set it to true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_cluster_resources: Option<bool>,
    /// Commands to run in restored pods.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "zero")]
    pub hooks: Option<RestoreHooks>,
    /// What happens to objects that exist already: none or update.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "zero")]
    pub existing_resource_policy: Option<String>,
    /// How long to wait for operations that plugins run in the background.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "zero")]
    pub item_operation_timeout: Option<Duration>,
    /// An administrator's ConfigMap with resource modifiers for restored objects. It must be marked for tenants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_modifier: Option<TypedLocalObjectReference>,
    /// An administrator's ConfigMap with Velero's resource policy for volumes. It must be marked for tenants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_policy: Option<TypedLocalObjectReference>,
    /// How files are downloaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uploader_config: Option<UploaderConfigForRestore>,
}

/// Which objects get their status back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RestoreStatusSpec {
    /// Resources that do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub included_resources: Option<Vec<String>>,
    /// Resources that do not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excluded_resources: Option<Vec<String>>,
}

/// How files are downloaded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct UploaderConfigForRestore {
    /// Whether to write sparse files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_sparse_files: Option<bool>,
    /// How many files are downloaded at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel_files_download: Option<i64>,
}

/// What Velero says about a restore.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RestoreStatus {
    /// Where it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::restore_phase")]
    pub phase: Option<String>,
    /// Why Velero would not start it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation_errors: Option<Vec<String>>,
    /// Warnings counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warnings: Option<i64>,
    /// Errors counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors: Option<i64>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<String>,
    /// When it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_timestamp: Option<Time>,
    /// When it ended, well or badly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_timestamp: Option<Time>,
    /// How far it has got.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<RestoreProgress>,
    /// Background operations tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restore_item_operations_attempted: Option<i64>,
    /// Background operations done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restore_item_operations_completed: Option<i64>,
    /// Background operations failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restore_item_operations_failed: Option<i64>,
    /// Hooks run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hook_status: Option<HookStatus>,
}

/// How far a restore has got.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RestoreProgress {
    /// Items there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_items: Option<i64>,
    /// Items restored so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items_restored: Option<i64>,
}

impl Restore {
    /// Velero's phase; empty before Velero has looked at it.
    pub fn phase(&self) -> &str {
        self.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
    }
}
