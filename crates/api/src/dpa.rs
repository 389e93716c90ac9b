//! The part of OADP's DataProtectionApplication that nacre reads.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Duration, schema};

/// What OADP installs and how; everything nacre does not read is kept as it is.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "oadp.openshift.io", version = "v1alpha1", kind = "DataProtectionApplication", namespaced)]
#[kube(
    shortname = "dpa",
    status = "DataProtectionApplicationStatus",
    derive = "PartialEq",
    derive = "Default"
)]
#[kube(
    doc = "OADP's configuration. This definition is for clusters without OADP and knows only what nacre reads."
)]
#[serde(rename_all = "camelCase", default)]
#[schemars(rename_all = "camelCase", extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct DataProtectionApplicationSpec {
    /// What namespace owners may do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub non_admin: Option<NonAdmin>,
    /// Where seed documents put the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub features: Option<Features>,
    /// Everything else.
    #[serde(flatten)]
    #[schemars(skip)]
    pub rest: BTreeMap<String, Value>,
}

/// Optional features.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct Features {
    /// What namespace owners may do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub non_admin: Option<NonAdmin>,
}

/// What namespace owners may do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct NonAdmin {
    /// Whether they may back up and restore at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable: Option<bool>,
    /// Fields of a backup that must have this value where set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::anything")]
    pub enforce_backup_spec: Option<Value>,
    /// Fields of a restore that must have this value where set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::anything")]
    pub enforce_restore_spec: Option<Value>,
    /// Fields of a storage location that must have this value where set.
    #[serde(rename = "enforceBSLSpec", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::anything")]
    pub enforce_bsl_spec: Option<Value>,
    /// Whether an administrator approves storage locations.
    #[serde(rename = "requireApprovalForBSL", skip_serializing_if = "Option::is_none")]
    pub require_approval_for_bsl: Option<bool>,
    /// How often leftovers are collected; 0 means never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub garbage_collection_period: Option<Duration>,
    /// How often all Velero Backups are checked, in addition to watch events; 0 means never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup_sync_period: Option<Duration>,
}

/// What the operator says about it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct DataProtectionApplicationStatus {
    /// What is so and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
