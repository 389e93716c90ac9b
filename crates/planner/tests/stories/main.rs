//! What nacre does about backups and restores, told as stories on a cluster in memory, and what must hold however
//! often it crashes.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]
#![expect(clippy::needless_pass_by_value, reason = "stories hand over what they just wrote down")]

#[path = "../world/mod.rs"]
#[allow(dead_code, reason = "the model looks at more of it")]
mod world;

/// Every story is told once more under faults.
const TAPED: bool = true;

mod admission;
mod crash;
mod creation;
mod deletion;
mod downloads;
mod found;
mod fuzz;
mod hostile;
mod last_good;
mod leftovers;
mod limits;
mod mirroring;
mod obstacles;
mod own_storage;
mod places;
mod policies;
mod positions;
mod refusals;
mod restores;
mod scenario;
mod storage;
mod synced;
mod trouble;
mod velero_view;
