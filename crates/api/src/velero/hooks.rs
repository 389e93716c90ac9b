//! Commands that Velero runs in pods.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Duration, schema};

/// Commands to run around a backup.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BackupHooks {
    /// One entry per group of pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Vec<BackupResourceHook>>,
}

/// Commands for one group of pods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackupResourceHook {
    /// What this hook is called.
    pub name: String,
    /// Namespaces it applies to; the own namespace if empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub included_namespaces: Option<Vec<String>>,
    /// Namespaces it does not apply to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excluded_namespaces: Option<Vec<String>>,
    /// Resources it applies to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub included_resources: Option<Vec<String>>,
    /// Resources it does not apply to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excluded_resources: Option<Vec<String>>,
    /// Pods it applies to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
    /// Run before the pod is backed up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre: Option<Vec<BackupHook>>,
    /// Run afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post: Option<Vec<BackupHook>>,
}

/// One command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BackupHook {
    /// What to run.
    pub exec: ExecHook,
}

/// A command in a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecHook {
    /// The container; the pod's first if empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// The command and its arguments.
    pub command: Vec<String>,
    /// Whether the backup goes on if it fails: Continue or Fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::on_error")]
    pub on_error: Option<String>,
    /// How long it may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
}

/// Commands to run around a restore.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RestoreHooks {
    /// One entry per group of pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Vec<RestoreResourceHook>>,
}

/// Commands for one group of pods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestoreResourceHook {
    /// What this hook is called.
    pub name: String,
    /// Namespaces it applies to; the own namespace if empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub included_namespaces: Option<Vec<String>>,
    /// Namespaces it does not apply to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excluded_namespaces: Option<Vec<String>>,
    /// Resources it applies to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub included_resources: Option<Vec<String>>,
    /// Resources it does not apply to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excluded_resources: Option<Vec<String>>,
    /// Pods it applies to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
    /// Run after the pod is restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post_hooks: Option<Vec<RestoreHook>>,
}

/// One command, or containers to put before a pod's own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RestoreHook {
    /// A command to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec: Option<ExecRestoreHook>,
    /// Containers to put before the pod's own. Not available to namespace owners.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init: Option<InitRestoreHook>,
}

/// A command in a container of a restored pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecRestoreHook {
    /// The container; the pod's first if empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// The command and its arguments.
    pub command: Vec<String>,
    /// Whether the restore goes on if it fails: Continue or Fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::on_error")]
    pub on_error: Option<String>,
    /// How long it may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec_timeout: Option<Duration>,
    /// How long to wait for the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_timeout: Option<Duration>,
    /// Whether to wait until the container is ready rather than just running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_for_ready: Option<bool>,
}

/// Containers put before a restored pod's own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InitRestoreHook {
    /// The containers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::anything_in_a_list")]
    pub init_containers: Option<Vec<Value>>,
    /// How long they may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
}

/// Hooks run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HookStatus {
    /// Hooks tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hooks_attempted: Option<i64>,
    /// Hooks failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hooks_failed: Option<i64>,
}
