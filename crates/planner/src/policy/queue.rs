//! In which order requests are handed over to Velero.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Policy;
use super::problem::Severity::{Error, Warning};
use super::rules::{Finding, finding};
use crate::turns::WEIGHT;

/// The most that a weight can be.
const HEAVIEST: u64 = 10_000;

/// In which order backups and restores are handed over to Velero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct QueuePolicy {
    /// How many backups, and how many restores, Velero is given at a time; 0 means all at once. Unset, it is as many as
    /// Velero works on, and one more, so that Velero is never idle; while jobs are over within a second, up to eight more,
    /// each of another namespace. The more, the longer a namespace waits for others that came before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<usize>,
    /// The share of a namespace: one with twice the weight gets twice the time while both wait, but no more than that of one
    /// worker, since Velero works on one backup of a namespace at a time.
    pub weight: u64,
    /// Namespaces with a higher priority go first: others wait for as long as one of these waits.
    pub priority: u64,
}

impl Default for QueuePolicy {
    fn default() -> Self {
        Self { in_flight: None, weight: WEIGHT, priority: 0 }
    }
}

/// What makes no sense in what a policy says about the queue.
pub(super) fn problems(policy: &Policy) -> Vec<Finding> {
    let QueuePolicy { in_flight, weight, priority: _ } = policy.queue;
    let mut found = Vec::new();
    if !(1..=HEAVIEST).contains(&weight) {
        let message = format!("{weight} is not a weight; write 1 to {HEAVIEST}, where {WEIGHT} is normal");
        found.push(finding(Error, "queue.weight", message));
    }
    if in_flight == Some(1) {
        let message = "Velero is idle between two backups; 2 keeps it busy";
        found.push(finding(Warning, "queue.inFlight", message));
    }
    found
}
