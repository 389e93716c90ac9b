//! Velero's Schedule: what the Go controller made, and what Velero's tools show.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::BackupSpec;
use crate::schema;

/// When Velero makes backups. nacre makes none of these.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "velero.io", version = "v1", kind = "Schedule", namespaced)]
#[kube(status = "ScheduleStatus", schema = "disabled", derive = "PartialEq", derive = "Default")]
#[serde(rename_all = "camelCase", default)]
pub struct ScheduleSpec {
    /// A cron expression.
    pub schedule: String,
    /// What each backup is made of.
    pub template: BackupSpec,
    /// Whether it makes none for the time being.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// Whether the next one is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip_immediately: Option<bool>,
}

/// What Velero says about a schedule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ScheduleStatus {
    /// Where it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::schedule_phase")]
    pub phase: Option<String>,
    /// When it last made a backup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_backup: Option<Time>,
    /// When a run was last skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_skipped: Option<Time>,
    /// Why it makes none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation_errors: Option<Vec<String>>,
}
