//! What tenants see of Velero in their own namespaces.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What tenants see in their own namespaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ViewPolicy {
    /// In which namespaces owners can use Velero's own tools (the Velero view).
    pub velero: VeleroView,
}

/// Where Velero's own tools work for namespace owners.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum VeleroView {
    /// Nowhere, whatever a namespace is labelled.
    Off,
    /// In namespaces that an administrator has labelled.
    #[default]
    Labelled,
    /// In every namespace that may ask for backups.
    All,
}
