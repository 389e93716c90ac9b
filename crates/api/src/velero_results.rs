//! What Velero reported about a backup or a restore, for its owner to read.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most errors, and the most warnings, that a status lists; the rest is a number.
pub const MOST_MESSAGES: usize = 25;

/// The errors and warnings of a backup or restore in the cluster's own storage, as Velero wrote them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct VeleroResults {
    /// The errors, at most 25. Many that differ only in the object are one line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
    /// The warnings, at most 25. Many that differ only in the object are one line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// How many errors and warnings are not listed because there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_listed: Option<u32>,
}
