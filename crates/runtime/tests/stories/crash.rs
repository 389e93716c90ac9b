//! Crash at any write: whatever nacre was doing, and whatever happened while it was down, the final state is the same.
//!
//! A scenario is run as it is, and then again for every single write of nacre's with a crash before it. What it did
//! before is kept, what it had in memory is not. It must end the same. If the next step happens while nacre is down,
//! each object may also end as if nacre had been too slow to act before that step.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestError, TestRunner};

use runtime::Bug;

use crate::world::World;

use super::scenario::{End, Step, end, orphans, perform, start, steps, the_bystander};

/// What happens, in what order nacre takes it, and whether it crashes once more after so many writes.
#[derive(Clone, Debug)]
struct Scenario {
    steps: Vec<Step>,
    order: u64,
    sees_own_writes: bool,
    crashes_again: Option<usize>,
    /// Whether tenants have copies of Velero's objects in their namespaces.
    viewed: bool,
}

fn scenarios(viewed: bool) -> impl Strategy<Value = Scenario> {
    let all = (steps(), any::<u64>(), any::<bool>(), prop::option::of(0..4_usize));
    all.prop_map(move |(steps, order, sees_own_writes, crashes_again)| Scenario {
        steps,
        order,
        sees_own_writes,
        crashes_again,
        viewed,
    })
}

impl Scenario {
    /// As it is: the world before each step, and at the end.
    fn undisturbed(&self, bug: Option<Bug>) -> Vec<World> {
        let mut world = start(self.viewed);
        world.shuffle(self.order, self.sees_own_writes);
        world.sabotage(bug);
        let mut worlds = Vec::new();
        for step in &self.steps {
            worlds.push(world.clone());
            perform(&mut world, *step);
            world.rest();
            world.complain_of_what_was_missed();
        }
        worlds.push(world);
        worlds
    }

    /// From before a step on, with nacre too slow to act before the next.
    fn too_slow(&self, mut world: World, at: usize) -> World {
        perform(&mut world, self.steps[at]);
        self.go_on(world, at + 1)
    }

    /// From before a step on, with a crash before one of nacre's writes in it. The next step may happen while nacre is
    /// down.
    fn crashing(&self, mut world: World, at: usize, before: usize, meanwhile: bool) -> World {
        world.dies_after(before);
        perform(&mut world, self.steps[at]);
        world.rest();
        assert!(world.is_down(), "it was to crash");
        let mut next = at + 1;
        if let Some(step) = self.steps.get(next).filter(|_| meanwhile) {
            perform(&mut world, *step);
            next += 1;
        }
        world.restart();
        if let Some(more) = self.crashes_again {
            world.dies_after(world.writes() + more);
            world.rest();
            world.restart();
        }
        world.rest();
        self.go_on(world, next)
    }

    fn go_on(&self, mut world: World, next: usize) -> World {
        for step in self.steps.iter().skip(next) {
            perform(&mut world, *step);
            world.rest();
        }
        world.complain_of_what_was_missed();
        world
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

/// Crashes before every single write of the scenario, each time with and without the next step meanwhile.
fn ends_the_same(scenario: &Scenario, bug: Option<Bug>) -> Result<(), TestCaseError> {
    let bystander = the_bystander(&start(scenario.viewed));
    let worlds = scenario.undisturbed(bug);
    let steady = worlds.last().unwrap();
    check("without a crash", steady, &bystander)?;
    let steady_end = end(steady);
    for (at, pair) in worlds.windows(2).enumerate() {
        let [before, after] = pair else { continue };
        for write in before.writes()..after.writes() {
            let crashed = scenario.crashing(before.clone(), at, write, false);
            check("with a crash", &crashed, &bystander)?;
            same(&crashed, &[&steady_end])?;

            let crashed = scenario.crashing(before.clone(), at, write, true);
            check("with a crash", &crashed, &bystander)?;
            if end(&crashed) != steady_end {
                let slow = scenario.too_slow(before.clone(), at);
                check("with nacre too slow", &slow, &bystander)?;
                same(&crashed, &[&end(&slow), &steady_end])?;
            }
        }
    }
    Ok(())
}

/// Everything ends as it does in one of these.
fn same(world: &World, others: &[&End]) -> Result<(), TestCaseError> {
    let this = end(world);
    let names: BTreeSet<_> = others.iter().flat_map(|other| other.keys()).chain(this.keys()).collect();
    let shown =
        |end: &End, name: &String| end.get(name).map_or_else(|| "nothing".to_owned(), ToString::to_string);
    for name in names {
        let found = shown(&this, name);
        let expected: Vec<_> = others.iter().map(|other| shown(other, name)).collect();
        prop_assert!(
            expected.contains(&found),
            "it ends otherwise: {} is\n{}\nand not\n{}\nafter\n{}",
            name,
            found,
            expected.join("\nnor\n"),
            world.whole_trace()
        );
    }
    Ok(())
}

/// The same scenarios every time, unless the environment asks for others or more.
fn run(cases: u32, bug: Option<Bug>) -> Result<(), TestError<Scenario>> {
    run_where(false, cases, bug)
}

/// The same where tenants have copies of Velero's objects, or have none.
fn run_where(viewed: bool, cases: u32, bug: Option<Bug>) -> Result<(), TestError<Scenario>> {
    // A bug that was planted needs no smallest example.
    let max_shrink_iters = if bug.is_some() { 0 } else { 500 };
    let mut config = Config { failure_persistence: None, max_shrink_iters, ..Config::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = cases;
    }
    if std::env::var_os("PROPTEST_RNG_SEED").is_none() {
        config.rng_seed = RngSeed::Fixed(2026);
    }
    TestRunner::new(config).run(&scenarios(viewed), |scenario| ends_the_same(&scenario, bug))
}

#[test]
fn a_crash_changes_nothing_about_the_end() {
    if let Err(error) = run(60, None) {
        panic!("{error}");
    }
}

#[test]
fn a_crash_changes_nothing_about_the_end_of_copies() {
    if let Err(error) = run_where(true, 20, None) {
        panic!("{error}");
    }
}

/// Bugs that a plan could have. Each must be found, or the property above says nothing.
mod planted {
    use api::{Kind, NonAdminBackup, labels};
    use planner::{Action, Again, Plan, Target};
    use runtime::Bug;
    use serde_json::json;

    use super::{run, run_where};

    fn is_create(action: &Action) -> bool {
        matches!(action, Action::Create(_))
    }

    fn is_status(action: &Action) -> bool {
        matches!(action, Action::PatchStatus(..))
    }

    fn is_hold(action: &Action) -> bool {
        matches!(action, Action::AddFinalizer(..))
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

    fn assert_found(as_what: &str, bug: Bug) {
        let found = run(300, Some(bug)).expect_err("nobody noticed").to_string();
        assert!(found.contains(as_what), "{found}");
    }

    #[test]
    fn creating_before_holding() {
        assert_found("with a crash: left behind", |_, _, plan| behind(plan, is_hold, is_create));
    }

    #[test]
    fn not_holding_at_all() {
        assert_found("without a crash: left behind", |_, _, mut plan| {
            plan.actions.retain(|action| !is_hold(action));
            plan
        });
    }

    #[test]
    fn saying_it_is_created_before_it_is() {
        assert_found("ends otherwise", |_, _, mut plan| {
            let held = plan.actions.iter().find_map(|action| match action {
                Action::AddFinalizer(target, _) => Some(target.clone()),
                _ => None,
            });
            let at = plan.actions.iter().position(is_create);
            if let (Some(held), Some(at)) = (held, at) {
                let early = json!({"status": {"phase": "Created"}});
                plan.actions.insert(at, Action::PatchStatus(held, early));
            }
            plan
        });
    }

    #[test]
    fn asking_velero_to_delete_before_saying_so() {
        assert_found("deletes data before it says so", |_, _, plan| behind(plan, is_status, is_create));
    }

    #[test]
    fn letting_go_before_velero_has() {
        assert_found("left behind", |state, key, mut plan| {
            let going = |action: &Action| matches!(action, Action::Delete(gone) if gone.kind == Kind::Backup);
            let held = state
                .get::<NonAdminBackup>(&key.namespace, &key.name)
                .filter(|_| plan.actions.iter().any(going));
            if let Some(held) = held {
                let target = Target::of(Kind::NonAdminBackup, &held.metadata);
                plan.actions.insert(0, Action::RemoveFinalizer(target, labels::NAB_FINALIZER));
            }
            plan
        });
    }

    #[test]
    fn not_removing_copies() {
        let found = run_where(
            true,
            300,
            Some(|_, _, mut plan: Plan| {
                let copy = |action: &Action| matches!(action, Action::Delete(gone) if gone.namespace == "shop" && gone.kind == Kind::Backup);
                plan.actions.retain(|action| !copy(action));
                plan
            }),
        );
        let found = found.expect_err("nobody noticed").to_string();
        assert!(found.contains("left behind"), "{found}");
    }

    #[test]
    fn forgetting_to_look_again() {
        assert_found("nobody woke", |_, _, mut plan| {
            plan.again = Again::OnChange;
            plan
        });
    }

    #[test]
    fn forgetting_the_last_write() {
        assert_found("nobody woke", |_, _, mut plan| {
            if plan.actions.len() > 1 {
                plan.actions.pop();
            }
            plan
        });
    }
}
