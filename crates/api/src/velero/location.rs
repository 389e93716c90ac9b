//! Velero's BackupStorageLocation.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::SecretKeySelector;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::unset::zero;
use crate::{Duration, schema};

/// Where backups are kept, as Velero knows it.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "velero.io", version = "v1", kind = "BackupStorageLocation", namespaced)]
#[kube(status = "BackupStorageLocationStatus", schema = "disabled", derive = "PartialEq", derive = "Default")]
#[serde(rename_all = "camelCase")]
#[schemars(rename_all = "camelCase")]
pub struct BackupStorageLocationSpec {
    /// Who keeps the bytes, for example aws.
    pub provider: String,
    /// What the provider needs to know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<BTreeMap<String, String>>,
    /// The Secret, in this namespace, with the key to the storage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<SecretKeySelector>,
    /// The bucket and the place in it.
    pub object_storage: ObjectStorageLocation,
    /// Whether this is where backups go that name no location. Not available to namespace owners.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "zero")]
    pub default: Option<bool>,
    /// ReadOnly or ReadWrite.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "zero")]
    #[schemars(schema_with = "schema::access_mode")]
    pub access_mode: Option<String>,
    /// How often Velero imports backups from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup_sync_period: Option<Duration>,
    /// How often Velero validates it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation_frequency: Option<Duration>,
}

/// A bucket and a place in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectStorageLocation {
    /// The bucket.
    pub bucket: String,
    /// Prefix in the bucket; nacre puts the namespace before it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "zero")]
    pub prefix: Option<String>,
    /// The certificate authority of the endpoint, in PEM, base64.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "zero")]
    #[schemars(schema_with = "schema::bytes")]
    pub ca_cert: Option<String>,
    /// Not available to namespace owners.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_cert_ref: Option<SecretKeySelector>,
}

/// What Velero says about a location.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BackupStorageLocationStatus {
    /// Available or Unavailable.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::location_phase")]
    pub phase: Option<String>,
    /// When Velero last looked for backups in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_synced_time: Option<Time>,
    /// When Velero last reached it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_validation_time: Option<Time>,
    /// Why it cannot be reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// No longer used by Velero.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_synced_revision: Option<String>,
    /// No longer used by Velero.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::access_mode")]
    pub access_mode: Option<String>,
}

impl BackupStorageLocation {
    /// Velero's phase; empty before Velero has looked at it.
    pub fn phase(&self) -> &str {
        self.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
    }
}
