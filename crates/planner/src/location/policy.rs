//! What an administrator allows of storage that tenants bring.

use std::collections::BTreeMap;

use api::Duration;
use k8s_openapi::api::core::v1::SecretKeySelector;
use serde::{Deserialize, Serialize};

use super::endpoint::EndpointPolicy;
use super::provider::Provider;

/// What is allowed of storage locations; whatever is not said is not limited.
#[derive(Clone, Debug, PartialEq)]
pub struct LocationPolicy {
    /// Whose storage backups may go to.
    pub mode: Mode,
    /// Whether Velero looks for backups in storage of tenants.
    pub import: Import,
    /// Filled in where the user says nothing, and refused where the user says otherwise.
    pub enforce: EnforcedLocation,
    /// Whether an administrator approves each location.
    pub require_approval: bool,
    /// Whose stores may be used.
    pub providers: Vec<Provider>,
    /// Where those may be.
    pub endpoints: EndpointPolicy,
    /// Whether a location may do without checking who it talks to.
    pub allow_insecure_skip_tls_verify: bool,
    /// How many locations a namespace may have.
    pub max_per_namespace: Option<usize>,
}

impl Default for LocationPolicy {
    fn default() -> Self {
        Self {
            mode: Mode::Any,
            import: Import::Auto,
            enforce: EnforcedLocation::default(),
            require_approval: false,
            providers: Provider::ALL.to_vec(),
            endpoints: EndpointPolicy::default(),
            allow_insecure_skip_tls_verify: false,
            max_per_namespace: None,
        }
    }
}

/// Whose storage backups may go to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The tenants' or the cluster's.
    #[default]
    Any,
    /// Only the tenants' own.
    Own,
    /// Only the cluster's: tenants may not bring any.
    Platform,
}

/// Whether Velero looks for backups in storage of tenants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Import {
    /// If Velero is new enough to be trusted with what it finds.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// A storage location of which every field may be left open. There is no `default`: that is never a tenant's to say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EnforcedLocation {
    /// Who keeps the bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// What the provider needs to know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<BTreeMap<String, String>>,
    /// The Secret with the key to the storage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credential: Option<SecretKeySelector>,
    /// The bucket and the place in it: all of it or nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_storage: Option<EnforcedObjectStorage>,
    /// ReadOnly or ReadWrite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_mode: Option<String>,
    /// How often Velero looks for backups in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup_sync_period: Option<Duration>,
    /// How often Velero checks that it can be reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation_frequency: Option<Duration>,
}

/// A bucket and the place in it. What is not said must not be said by the user either.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EnforcedObjectStorage {
    /// The bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bucket: Option<String>,
    /// The folder in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// The certificate authority of the endpoint, in PEM, base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_cert: Option<String>,
}
