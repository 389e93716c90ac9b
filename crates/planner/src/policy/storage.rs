//! The policy for tenants' own storage.

use std::collections::BTreeMap;

use api::Duration;
use k8s_openapi::api::core::v1::SecretKeySelector;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::location::Provider;
use crate::location::endpoint::EndpointPolicy;

/// The policy for tenants' own storage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct StoragePolicy {
    /// Whose storage backups go to.
    pub mode: StorageMode,
    /// Whether Velero looks for backups in tenants' storage.
    pub import: Import,
    /// Filled in where a location sets nothing, and refused where it sets another value. Its fields are listed below.
    pub enforce: EnforcedLocation,
    /// Whether an administrator has to approve each location before Velero uses it.
    pub require_approval: bool,
    /// The providers that a location may name.
    pub providers: Vec<String>,
    /// Which hosts a location may name as its endpoint.
    pub endpoints: EndpointPolicy,
    /// Whether a location may do without checking certificates.
    #[serde(rename = "allowInsecureSkipTLSVerify")]
    pub allow_insecure_skip_tls_verify: bool,
    /// Whether tenants bring storage although Velero can delete native snapshots.
    pub native_snapshots: NativeSnapshots,
    /// How many locations a namespace may have. More wait until one is deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_per_namespace: Option<usize>,
}

/// Whose storage backups go to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StorageMode {
    /// The cluster's or the tenant's own.
    #[default]
    Any,
    /// Tenants must use their own storage.
    Own,
    /// Tenants may not use their own storage.
    Platform,
}

/// Whether Velero looks for backups in tenants' storage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Import {
    /// If Velero is new enough to be safe against what it may find there.
    #[default]
    Auto,
    /// Always, also with versions of Velero that trust what they find.
    On,
    /// Never.
    Off,
}

/// Whether tenants bring storage although Velero can delete native snapshots. It deletes those that a backup's files
/// name, with the administrators' credentials, and in a tenant's storage the tenant can write these files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NativeSnapshots {
    /// Not while Velero has a VolumeSnapshotLocation.
    #[default]
    Refuse,
    /// In any case: whoever brings storage can have any snapshot deleted that Velero can delete.
    Accept,
}

/// Fields of a location that must have this value where set: a location's spec in which everything is optional.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EnforcedLocation {
    /// The provider.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "text")]
    pub provider: Option<String>,
    /// The provider's config.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<BTreeMap<String, String>>,
    /// The Secret with the key to the storage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credential: Option<SecretKeySelector>,
    /// The bucket and the place in it, compared as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_storage: Option<EnforcedObjectStorage>,
    /// ReadOnly or ReadWrite.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "text")]
    pub access_mode: Option<String>,
    /// How often Velero imports backups from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup_sync_period: Option<Duration>,
    /// How often Velero validates it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation_frequency: Option<Duration>,
}

/// A bucket and a place in it. Where this is enforced at all, what is left out must be left out by tenants too.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EnforcedObjectStorage {
    /// The bucket.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "text")]
    pub bucket: Option<String>,
    /// The folder in it.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "text")]
    pub prefix: Option<String>,
    /// The certificate authority of the endpoint, in PEM, base64.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "text")]
    pub ca_cert: Option<String>,
}

/// The providers whose credentials nacre can read, and so recognise a static key.
pub(super) const KNOWN_PROVIDERS: [&str; 3] = ["aws", "azure", "gcp"];

impl Default for StoragePolicy {
    fn default() -> Self {
        Self {
            mode: StorageMode::default(),
            import: Import::default(),
            enforce: EnforcedLocation::default(),
            require_approval: false,
            providers: KNOWN_PROVIDERS.map(str::to_owned).to_vec(),
            endpoints: EndpointPolicy::default(),
            allow_insecure_skip_tls_verify: false,
            native_snapshots: NativeSnapshots::default(),
            max_per_namespace: None,
        }
    }
}

impl StoragePolicy {
    /// Whether this provider may keep the bytes.
    pub fn provides(&self, provider: Provider) -> bool {
        self.providers.iter().any(|name| Provider::of(name) == Some(provider))
    }
}

/// An empty text is one that nobody set: Go clients always send those.
fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.filter(|text| !text.is_empty()))
}
