//! Queue positions: a shown position never rises, whatever happens, and in the end all are correct.

use std::collections::BTreeMap;
use std::time::Duration;

use api::Kind;
use planner::refresh::Publisher;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};
use serde_json::json;

use crate::world::World;
use crate::world::manifests::{nab, nar};

/// What can happen to a queue.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Somebody asks; a name that sorts anywhere.
    Ask(u8),
    /// A fraction of a second passes, or more.
    Wait(u16),
    /// Velero takes up the one that has waited longest.
    Start,
    /// Velero is done with the oldest of those it has begun.
    Finish,
    /// The chore comes round.
    Refresh,
    /// nacre is killed and restarted, with only the initial list.
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => any::<u8>().prop_map(Step::Ask),
        3 => (0..1500_u16).prop_map(Step::Wait),
        3 => Just(Step::Start),
        3 => Just(Step::Finish),
        2 => Just(Step::Refresh),
        1 => Just(Step::Restart),
    ];
    prop::collection::vec(step, 1..40)
}

/// A world, and what Velero knows: its own order.
struct Queue {
    world: World,
    kind: Kind,
    order: Vec<(String, String)>,
    begun: usize,
    done: usize,
    shown: BTreeMap<String, i64>,
}

impl Queue {
    fn of(kind: Kind) -> Self {
        let mut world = World::with(&["shop", "office"]);
        world.hand_over_at_once();
        if kind == Kind::NonAdminRestore {
            for place in ["shop/source", "office/source"] {
                world.apply(nab(place));
                world.settle();
                let velero = world.velero_name(&format!("nab {place}"));
                world.velero_starts(&velero);
                world.velero_completes(&velero);
            }
            world.settle();
        }
        Self { world, kind, order: Vec::new(), begun: 0, done: 0, shown: BTreeMap::new() }
    }

    fn perform(&mut self, step: Step) {
        match step {
            Step::Ask(number) => {
                let place = format!("{}/n{number}", if number % 2 == 0 { "shop" } else { "office" });
                let (short, wish) = match self.kind {
                    Kind::NonAdminBackup => ("nab", nab(&place)),
                    _ => ("nar", nar(&place, "source")),
                };
                let request = format!("{short} {place}");
                if self.world.has(&request) {
                    return;
                }
                self.world.apply(wish);
                self.world.settle();
                let velero = self.world.velero_name(&request);
                self.order.push((request, velero));
            }
            Step::Wait(millis) => self.world.pass(Duration::from_millis(millis.into())),
            Step::Start if self.begun < self.order.len() => {
                self.world.velero_starts(&self.order[self.begun].1);
                self.begun += 1;
            }
            Step::Finish if self.done < self.begun => {
                self.world.velero_says(&self.order[self.done].1, json!({"phase": "Finalizing"}));
                self.world.settle();
                self.world.velero_completes(&self.order[self.done].1);
                self.done += 1;
            }
            Step::Refresh => self.world.refresh_positions(),
            Step::Restart => self.world.restart(),
            Step::Start | Step::Finish => {}
        }
        self.world.settle();
    }

    fn position(&self, request: &str) -> Option<i64> {
        self.world.get(request)["status"]["queueInfo"]["estimatedQueuePosition"].as_i64()
    }

    /// Nobody shows a higher position than before.
    fn check(&mut self) -> Result<(), TestCaseError> {
        for (request, _) in &self.order {
            let now = self.position(request).unwrap();
            let before = self.shown.insert(request.clone(), now).unwrap_or(i64::MAX);
            prop_assert!(now <= before, "{request} went from {before} to {now}");
        }
        Ok(())
    }

    /// Once the chore has been round, each shows what Velero's own order gives it.
    fn is_right(&mut self) -> Result<(), TestCaseError> {
        self.perform(Step::Refresh);
        for (at, (request, _)) in self.order.iter().enumerate() {
            let right = match at {
                _ if at < self.done => 0,
                _ if at < self.begun => 1,
                _ => i64::try_from(at - self.done).unwrap() + 1,
            };
            prop_assert_eq!(self.position(request), Some(right), "{}", request);
        }
        Ok(())
    }
}

fn nobody_is_sent_back(kind: Kind, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut queue = Queue::of(kind);
    let restarts = steps.iter().any(|step| matches!(step, Step::Restart));
    for step in steps {
        queue.perform(*step);
        queue.check()?;
    }
    if !restarts {
        queue.is_right()?;
        queue.check()?;
    }
    // It drains, and then all is right whatever has happened.
    while queue.done < queue.order.len() {
        for step in [Step::Start, Step::Finish, Step::Refresh] {
            queue.perform(step);
            queue.check()?;
        }
    }
    queue.is_right()
}

proptest! {
    #![proptest_config(Config {
        cases: 16, failure_persistence: None, rng_seed: RngSeed::Fixed(2026), ..Config::default()
    })]

    #[test]
    fn no_backup_is_sent_back(steps in steps()) {
        nobody_is_sent_back(Kind::NonAdminBackup, &steps)?;
    }

    #[test]
    fn no_restore_is_sent_back(steps in steps()) {
        nobody_is_sent_back(Kind::NonAdminRestore, &steps)?;
    }
}

/// Fifteen wait and one is done: the other fourteen show a position that is one too high.
#[test]
fn each_second_at_most_ten_positions_are_published_and_none_that_is_correct() {
    let mut world = World::with(&["shop"]);
    world.hand_over_at_once();
    for number in 10..25 {
        world.apply(nab(&format!("shop/n{number}")));
        world.settle();
    }
    let mut publisher = Publisher::default();
    assert_eq!(publisher.next(&world.state(), 0, world.clock()), []);
    let first = world.velero_name("nab shop/n10");
    world.velero_starts(&first);
    world.velero_completes(&first);
    world.settle();
    assert_eq!(publisher.next(&world.state(), 0, world.clock()).len(), 10);
    world.refresh_positions();
    assert_eq!(publisher.next(&world.state(), 0, world.clock()), []);
}
