//! A model checker over small worlds: every order of the steps of tenants, Velero, an administrator and nacre's single
//! writes, with a crash or a lost response anywhere, and with delayed watch events.
//!
//! `make test` explores a slice of each; `make model` (NACRE_MODEL=full) explores larger setups completely.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]
#![expect(clippy::print_stdout, reason = "how much was explored is what the run is for")]
#![allow(
    dead_code,
    unused_imports,
    clippy::needless_pass_by_value,
    reason = "the world is shared with stories that use more of it"
)]

#[path = "../world/mod.rs"]
mod world;

/// The model is not replayed under faults.
const RECORDED: bool = false;

mod moves;
mod planted;
mod rules;
mod schedules;
mod search;
mod setups;

use moves::Left;
use search::explore;
use setups::Setup;

/// Explores a world and says how large it is. A search that silently shrank would prove nothing: there is a floor.
fn all_is_well(setup: Setup, floor: [usize; 2]) {
    let (name, started) = (setup.name, std::time::Instant::now());
    let found = match explore(setup, None) {
        Ok(found) => found,
        Err(wrong) => panic!("{wrong}"),
    };
    println!(
        "model: {name}: {} states, {} moves, {} ends, longest way {}, {:.1} s",
        found.states,
        found.moves,
        found.ends,
        found.depth,
        started.elapsed().as_secs_f64()
    );
    let floor = if setups::full() { floor[1] } else { floor[0] };
    assert!(found.states >= floor, "{name}: only {} states were found, there were {floor}", found.states);
}

#[test]
fn two_tenants_at_work() {
    all_is_well(setups::two_tenants(), [3000, 45_000]);
}

#[test]
fn a_hostile_neighbour() {
    all_is_well(setups::hostile_neighbour(), [3000, 60_000]);
}

#[test]
fn a_restore_and_its_backup() {
    all_is_well(setups::restore(), [1400, 24_000]);
}

#[test]
fn a_bucket_to_be_approved() {
    all_is_well(setups::bucket(), [550, 260_000]);
}

#[test]
fn everything_at_once() {
    all_is_well(setups::everything(), [700, 85_000]);
}

#[test]
fn a_schedule_with_runs_and_retention() {
    all_is_well(setups::schedule(), [600, 20_000]);
}

/// Without faults, so that it is quick enough for every run.
#[test]
fn a_schedule_whose_owner_deletes_runs() {
    let setup = setups::schedule();
    let left = Left { faults: 0, wishes: 1, ..setup.left };
    all_is_well(Setup { left, ..setup }, [3000, 3000]);
}

/// What the owner does is heard of late: after nacre has decided, and after it has written. That takes minutes; every run
/// has the planted bug of this sort (`planted::deleting_data_before_everything_was_heard`).
#[test]
fn a_schedule_that_hears_late_of_its_owner() {
    if !setups::full() {
        return;
    }
    let setup = setups::schedule();
    let left = Left { faults: 0, wishes: 1, delays: 1, ..setup.left };
    all_is_well(Setup { left, ..setup }, [3000, 3000]);
}

#[test]
fn one_backup_at_a_time() {
    all_is_well(setups::turns(), [100, 1000]);
}

#[test]
fn short_backups_where_the_policy_says_nothing() {
    all_is_well(setups::turns_of_short_jobs(), [10_000, 10_000]);
}
