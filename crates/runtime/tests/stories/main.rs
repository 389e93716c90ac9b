//! What nacre does about backups and restores, as stories on a cluster in memory, and what must hold however often it
//! crashes.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]
#![expect(clippy::needless_pass_by_value, reason = "stories hand over what they just wrote down")]

#[path = "../world/mod.rs"]
#[allow(dead_code, reason = "the model looks at more of it")]
mod world;

/// Every story is replayed under faults.
const RECORDED: bool = true;

mod admission;
mod crash;
mod creation;
mod dedicated;
mod deletion;
mod deletion_blocked;
mod downloads;
mod fuzz;
mod hostile;
mod import_ownership;
mod last_good;
mod leftovers;
mod limits;
mod location_limits;
mod mirroring;
mod own_storage;
mod policies;
mod positions;
mod quotas;
mod refusals;
mod rejected_writes;
mod requester;
mod restores;
mod revocation;
mod scenario;
mod schedule_bounds;
mod schedule_clock;
mod schedule_ends;
mod schedule_heals;
mod schedule_leaders;
mod schedule_refused;
mod schedule_storage;
mod schedule_takeover;
mod schedule_windows;
mod schedule_year;
mod schedules;
mod standstill;
mod storage;
mod synced;
mod ten_policies;
mod turns;
mod unseen_namespace;
mod velero_view;
mod volume_choice;
mod volume_data;
mod weak_storage;
mod weaknesses;
