//! How long volume operations may take before nacre cancels them.

use std::time::Duration as Wait;

use api::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How long volume operations may take before nacre cancels them; 0 means without limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct VolumePolicy {
    /// How long a volume may wait for a pod that does not exist.
    pub pod_gone: Duration,
    /// How long a volume may wait for a pod that is not scheduled or does not start.
    pub pod_pending: Duration,
    /// How long an operation that is InProgress may make no progress.
    pub no_progress: Duration,
    /// How long a whole backup or restore may take, counted from its start.
    pub longest: Duration,
}

impl Default for VolumePolicy {
    fn default() -> Self {
        Self {
            pod_gone: Duration::from("2m"),
            pod_pending: Duration::from("5m"),
            no_progress: Duration::from("30m"),
            longest: Duration::from("24h"),
        }
    }
}

impl VolumePolicy {
    /// How long a volume may wait for a pod that does not exist; none without limit.
    pub fn pod_gone(&self) -> Option<Wait> {
        limit(&self.pod_gone)
    }

    /// How long a volume may wait for a pod that is not scheduled or does not start; none without limit.
    pub fn pod_pending(&self) -> Option<Wait> {
        limit(&self.pod_pending)
    }

    /// How long an operation may make no progress; none without limit.
    pub fn no_progress(&self) -> Option<Wait> {
        limit(&self.no_progress)
    }

    /// How long a whole backup or restore may take; none without limit.
    pub fn longest(&self) -> Option<Wait> {
        limit(&self.longest)
    }

    /// The keys and their values, as `policy.yaml` has them.
    pub(super) fn all(&self) -> [(&'static str, &Duration); 4] {
        [
            ("volumes.podGone", &self.pod_gone),
            ("volumes.podPending", &self.pod_pending),
            ("volumes.noProgress", &self.no_progress),
            ("volumes.longest", &self.longest),
        ]
    }
}

fn limit(limit: &Duration) -> Option<Wait> {
    limit.to_std().filter(|limit| !limit.is_zero())
}
