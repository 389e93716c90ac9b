//! Crash anywhere: whatever nacre was doing, and whatever happened while it was down, it ends as it would have.
//!
//! A scenario is run three times: as it is; with nacre too slow to act between two of its steps; and with a crash
//! before one of nacre's writes, during which the next step may happen. The last must end like one of the others.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, RngSeed, TestError, TestRunner};

use crate::world::{Sabotage, World};

use super::scenario::{End, Step, end, orphans, perform, start, steps, the_bystander};

/// When nacre crashes, and what then.
#[derive(Clone, Debug)]
struct Crash {
    /// Before which of its writes.
    before: Index,
    /// The next step happens while it is down.
    meanwhile: bool,
    /// After so many more writes it crashes once more.
    again: Option<usize>,
}

/// What happens, in what order nacre takes it, and when it crashes.
#[derive(Clone, Debug)]
struct Scenario {
    steps: Vec<Step>,
    order: u64,
    hears_itself: bool,
    crash: Crash,
}

fn scenarios() -> impl Strategy<Value = Scenario> {
    let crash = (any::<Index>(), any::<bool>(), prop::option::of(0..4_usize));
    let crash = crash.prop_map(|(before, meanwhile, again)| Crash { before, meanwhile, again });
    let all = (steps(), any::<u64>(), any::<bool>(), crash);
    all.prop_map(|(steps, order, hears_itself, crash)| Scenario { steps, order, hears_itself, crash })
}

impl Scenario {
    fn begin(&self, bug: Option<Sabotage>) -> World {
        let mut world = start();
        world.shuffle(self.order, self.hears_itself);
        world.sabotage(bug);
        world
    }

    /// Without a crash; after one of the steps nacre may be too slow to act before the next.
    fn undisturbed(&self, bug: Option<Sabotage>, too_slow_after: Option<usize>) -> World {
        let mut world = self.begin(bug);
        for (at, step) in self.steps.iter().enumerate() {
            perform(&mut world, *step);
            if too_slow_after != Some(at) {
                world.rest();
            }
        }
        world
    }

    /// With the crash. Returns after which step it came, if it came.
    fn crashing(&self, bug: Option<Sabotage>, before: usize) -> (World, Option<usize>) {
        let mut world = self.begin(bug);
        world.dies_after(before);
        let mut crashed = None;
        let mut steps = self.steps.iter().enumerate();
        while let Some((at, step)) = steps.next() {
            perform(&mut world, *step);
            world.rest();
            if !world.is_down() {
                continue;
            }
            crashed = Some(at);
            if let Some((_, step)) = self.crash.meanwhile.then(|| steps.next()).flatten() {
                perform(&mut world, *step);
            }
            world.restart();
            if let Some(more) = self.crash.again {
                world.dies_after(world.writes() + more);
                world.rest();
                world.restart();
            }
            world.rest();
        }
        (world, crashed)
    }
}

/// What must hold of every world at the end.
fn check(name: &str, world: &World, bystander: &[serde_json::Value]) -> Result<(), TestCaseError> {
    let complaints = world.complaints();
    prop_assert!(complaints.is_empty(), "{name}: {}", complaints.join("\n"));
    let twice: Vec<_> = world.made_for().iter().filter(|(_, made)| **made > 1).collect();
    prop_assert!(twice.is_empty(), "{name}: Velero was given a request twice: {twice:?}");
    let orphans = orphans(world);
    prop_assert!(orphans.is_empty(), "{name}: left behind: {orphans:?}");
    prop_assert_eq!(the_bystander(world), bystander, "{}: a bystander was touched", name);
    Ok(())
}

fn ends_the_same(scenario: &Scenario, bug: Option<Sabotage>) -> Result<(), TestCaseError> {
    let begun = scenario.begin(bug);
    let (bystander, written_before) = (the_bystander(&begun), begun.writes());
    let mut steady = scenario.undisturbed(bug, None);
    let writes = steady.writes() - written_before;
    let steady_end = end(&mut steady);
    check("without a crash", &steady, &bystander)?;
    if writes == 0 {
        return Ok(());
    }
    let (mut crashed, at) = scenario.crashing(bug, written_before + scenario.crash.before.index(writes));
    let crashed_end = end(&mut crashed);
    check("with a crash", &crashed, &bystander)?;
    if crashed_end == steady_end {
        return Ok(());
    }
    let mut as_if_slow = steady_end.clone();
    if let Some(at) = at.filter(|_| scenario.crash.meanwhile) {
        let mut slow = scenario.undisturbed(bug, Some(at));
        as_if_slow = end(&mut slow);
        check("with nacre too slow", &slow, &bystander)?;
    }
    let others = [&steady_end, &as_if_slow].map(|other| differences(&crashed_end, other));
    prop_assert!(
        crashed_end == as_if_slow,
        "it ends otherwise: {others:#?}\nafter\n{}",
        crashed.whole_trace()
    );
    Ok(())
}

/// What is not the same, with and without.
fn differences(with: &End, without: &End) -> Vec<String> {
    let names: BTreeSet<_> = with.keys().chain(without.keys()).collect();
    let differ = names.into_iter().filter(|name| with.get(*name) != without.get(*name));
    differ.map(|name| format!("{name}: {:?} and not {:?}", with.get(name), without.get(name))).collect()
}

/// The same scenarios every time, unless the environment asks for others or more.
fn run(cases: u32, bug: Option<Sabotage>) -> Result<(), TestError<Scenario>> {
    // A bug that was planted needs no smallest example.
    let max_shrink_iters = if bug.is_some() { 0 } else { 500 };
    let mut config = Config { failure_persistence: None, max_shrink_iters, ..Config::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = cases;
    }
    if std::env::var_os("PROPTEST_RNG_SEED").is_none() {
        config.rng_seed = RngSeed::Fixed(2026);
    }
    TestRunner::new(config).run(&scenarios(), |scenario| ends_the_same(&scenario, bug))
}

#[test]
fn a_crash_changes_nothing_about_the_end() {
    if let Err(error) = run(200, None) {
        panic!("{error}");
    }
}

/// Bugs that a plan could have. Each must be found, or the property above says nothing.
mod planted {
    use api::{Kind, labels};
    use planner::{Action, Plan};

    use super::run;

    fn is_create(action: &Action) -> bool {
        matches!(action, Action::Create(_))
    }

    fn is_status(action: &Action) -> bool {
        matches!(action, Action::PatchStatus(..))
    }

    fn is_hold(action: &Action) -> bool {
        matches!(action, Action::Hold(..))
    }

    /// Moves the first such action behind the first of the others.
    fn behind(mut plan: Plan, moved: fn(&Action) -> bool, other: fn(&Action) -> bool) -> Plan {
        let from = plan.actions.iter().position(moved);
        let to = plan.actions.iter().position(other);
        if let (Some(from), Some(to)) = (from, to)
            && from < to
        {
            let action = plan.actions.remove(from);
            plan.actions.insert(to, action);
        }
        plan
    }

    fn assert_found(as_what: &str, bug: fn(Plan) -> Plan) {
        let found = run(1000, Some(bug)).expect_err("nobody noticed").to_string();
        assert!(found.contains(as_what), "{found}");
    }

    #[test]
    fn creating_before_holding() {
        assert_found("with a crash: left behind", |plan| behind(plan, is_hold, is_create));
    }

    #[test]
    fn not_holding_at_all() {
        assert_found("without a crash: left behind", |mut plan| {
            plan.actions.retain(|action| !is_hold(action));
            plan
        });
    }

    #[test]
    fn saying_it_is_created_before_it_is() {
        assert_found("ends otherwise", |plan| behind(plan, is_create, is_status));
    }

    #[test]
    fn asking_velero_to_delete_before_saying_so() {
        assert_found("deletes data before it says so", |plan| behind(plan, is_status, is_create));
    }

    #[test]
    fn letting_go_before_velero_has() {
        assert_found("with a crash: left behind", |mut plan| {
            let going = |action: &Action| matches!(action, Action::Delete(gone) if gone.kind == Kind::Backup);
            let held = plan.actions.iter().find_map(|action| match action {
                Action::PatchStatus(target, _) => Some(target.clone()),
                _ => None,
            });
            if let Some(held) = held.filter(|_| plan.actions.iter().any(going)) {
                plan.actions.insert(0, Action::Release(held, labels::NAB_FINALIZER));
            }
            plan
        });
    }

    #[test]
    fn forgetting_to_look_again() {
        assert_found("nobody woke", |mut plan| {
            plan.wake = None;
            plan
        });
    }

    #[test]
    fn forgetting_the_last_write() {
        assert_found("nobody woke", |mut plan| {
            if plan.actions.len() > 1 {
                plan.actions.pop();
            }
            plan
        });
    }
}
