//! What tenants see of Velero in their own namespaces.

use serde::{Deserialize, Serialize};

/// What tenants see in their own namespaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ViewPolicy {
    /// Where Velero's own tools work for namespace owners.
    pub velero: VeleroView,
}

/// Where Velero's own tools work for namespace owners.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
