//! Numbers of volumes by phase.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Volumes moved by a data mover, by phase. Zeros are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DataMoverCounts {
    /// Volumes in all phases together.
    #[serde(skip_serializing_if = "is_zero")]
    pub total: u32,
    /// Not looked at yet.
    #[serde(skip_serializing_if = "is_zero")]
    pub new: u32,
    /// Taken by a node.
    #[serde(skip_serializing_if = "is_zero")]
    pub accepted: u32,
    /// Ready to move.
    #[serde(skip_serializing_if = "is_zero")]
    pub prepared: u32,
    /// Moving.
    #[serde(skip_serializing_if = "is_zero")]
    pub in_progress: u32,
    /// Being stopped.
    #[serde(skip_serializing_if = "is_zero")]
    pub canceling: u32,
    /// Stopped.
    #[serde(skip_serializing_if = "is_zero")]
    pub canceled: u32,
    /// Failed.
    #[serde(skip_serializing_if = "is_zero")]
    pub failed: u32,
    /// Done.
    #[serde(skip_serializing_if = "is_zero")]
    pub completed: u32,
}

/// Volumes saved or brought back file by file, by phase. Zeros are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PodVolumeCounts {
    /// Volumes in all phases together.
    #[serde(skip_serializing_if = "is_zero")]
    pub total: u32,
    /// Not started yet.
    #[serde(skip_serializing_if = "is_zero")]
    pub new: u32,
    /// Running.
    #[serde(skip_serializing_if = "is_zero")]
    pub in_progress: u32,
    /// Failed or stopped.
    #[serde(skip_serializing_if = "is_zero")]
    pub failed: u32,
    /// Done.
    #[serde(skip_serializing_if = "is_zero")]
    pub completed: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl DataMoverCounts {
    /// Counts volumes by the phase Velero gives them.
    pub fn of<'a>(phases: impl IntoIterator<Item = &'a str>) -> Self {
        let mut counts = Self::default();
        for phase in phases {
            counts.total += 1;
            match phase {
                "" | "New" => counts.new += 1,
                "Accepted" => counts.accepted += 1,
                "Prepared" => counts.prepared += 1,
                "InProgress" => counts.in_progress += 1,
                "Canceling" => counts.canceling += 1,
                "Canceled" => counts.canceled += 1,
                "Failed" => counts.failed += 1,
                "Completed" => counts.completed += 1,
                _ => {}
            }
        }
        counts
    }
}

impl PodVolumeCounts {
    /// Counts volumes by the phase Velero gives them; the newer phases fall to the nearest the API has a name for.
    pub fn of<'a>(phases: impl IntoIterator<Item = &'a str>) -> Self {
        let mut counts = Self::default();
        for phase in phases {
            counts.total += 1;
            match phase {
                "" | "New" | "Accepted" | "Prepared" => counts.new += 1,
                "InProgress" | "Canceling" => counts.in_progress += 1,
                "Failed" | "Canceled" => counts.failed += 1,
                "Completed" => counts.completed += 1,
                _ => {}
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::{DataMoverCounts, PodVolumeCounts};

    #[test]
    fn volumes_are_counted_by_phase() {
        let phases = ["", "New", "Accepted", "InProgress", "Canceled", "Completed", "Completed", "Unheard"];
        let moved = DataMoverCounts::of(phases);
        assert_eq!(
            (moved.total, moved.new, moved.accepted, moved.canceled, moved.completed),
            (8, 2, 1, 1, 2)
        );
        let saved = PodVolumeCounts::of(phases);
        assert_eq!(
            (saved.total, saved.new, saved.in_progress, saved.failed, saved.completed),
            (8, 3, 1, 1, 2)
        );
    }

    #[test]
    fn zeros_are_left_out() {
        assert_eq!(serde_json::to_string(&PodVolumeCounts::of([])).unwrap(), "{}");
    }
}
