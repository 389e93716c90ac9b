//! What became of the data of one claim.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most claims that a status lists; the rest is a number.
pub const MOST_CLAIMS: usize = 50;

/// What became of the data of one PersistentVolumeClaim, in a backup or in a restore.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimStatus {
    /// The claim's name.
    pub name: String,
    /// What became of its data.
    pub state: ClaimState,
    /// How many bytes were saved or restored so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<i64>,
    /// How many bytes there are in all, as far as Velero knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_bytes: Option<i64>,
    /// Backup: how many of them were new or changed since the previous backup of the claim, if Velero reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_bytes: Option<i64>,
    /// Why, and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// What became of the data of one claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum ClaimState {
    /// Backup: its data is in the backup.
    Saved,
    /// Backup: its data is not in the backup.
    NotSaved,
    /// Backup: its data was left out on purpose, by the request, by a label or annotation, or by policy.
    LeftOut,
    /// Restore: its data came back.
    Restored,
    /// Restore: it exists already, so its data was left as it is.
    Kept,
    /// Restore: the data was written over a claim that exists already; newer files are still there.
    Mixed,
    /// Restore: the backup holds no data of it.
    NoData,
    /// Saving or restoring its data failed.
    Failed,
    /// Saving or restoring its data was cancelled.
    Cancelled,
    /// Its data is being saved or restored, or waits for that.
    Waiting,
    /// A state that this version does not know.
    #[serde(other)]
    Unknown,
}
