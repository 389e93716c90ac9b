//! Two instances of nacre, each with a cache of its own, of which one is leader: what a change of the leader can come to.
//! The old one dies, or loses its lease, between any two steps; what it sent last may have arrived, and the new one may
//! not have heard of that when it begins.

use std::time::Duration;

use api::Kind;
use serde_json::json;

use super::schedules::{MINUTE, nas, velero_ends_all, world};
use crate::world::World;
use crate::world::replay::seeds;
use crate::world::split::{Fate, Split};

/// More steps than a minute needs before both are idle.
const ENDLESS: usize = 5_000;
/// How many seeds there are, unless NACRE_FAULTS says otherwise.
const SEEDS: u64 = 100;
/// How many minutes there are, with a run in each.
const MINUTES: usize = 3;
/// How many steps there are from one change of the leader to the next, at most.
const STEPS: usize = 50;

/// Two instances and the cluster, which one of them has.
struct Two {
    instances: [Box<Split>; 2],
    has_cluster: usize,
    leader: usize,
    /// Where the next random number comes from.
    seed: u64,
    /// So many steps until the leader changes, and until the tenant deletes the newest run, again and again.
    changes_in: usize,
    deletes_in: usize,
}

impl Two {
    fn new(mut world: World, seed: u64) -> Self {
        world.stop_recording();
        let instance = Box::new(Split::new(world, None));
        let seed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let instances = [instance.clone(), instance];
        let mut two = Self { instances, has_cluster: 0, leader: 0, seed, changes_in: 0, deletes_in: 0 };
        (two.changes_in, two.deletes_in) = (two.below(STEPS), two.below(2 * STEPS));
        two
    }

    /// A number below this one.
    fn below(&mut self, many: usize) -> usize {
        // A linear congruential generator: any order will do, as long as it is the same next time.
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.seed >> 33) % u64::try_from(many).unwrap()).unwrap()
    }

    /// One of them, with the cluster.
    fn instance(&mut self, at: usize) -> &mut Split {
        if at != self.has_cluster {
            let [one, other] = &mut self.instances;
            std::mem::swap(&mut one.real, &mut other.real);
            self.has_cluster = at;
        }
        &mut self.instances[at]
    }

    fn world(&self) -> &World {
        &self.instances[self.has_cluster].real
    }

    fn outside(&mut self, act: impl FnOnce(&mut World)) {
        let at = self.has_cluster;
        self.instance(at).outside(act);
    }

    /// Time passes for both.
    fn pass(&mut self, time: Duration) {
        self.instance(0).pass(time);
        self.instance(1).pass(Duration::ZERO);
    }

    /// One of them does one thing: it hears of an object or, as leader, decides or writes. Returns whether there was
    /// anything to do.
    fn step(&mut self) -> bool {
        let mut moves = Vec::new();
        for at in 0..2 {
            let is_leader = at == self.leader;
            // What is not heard now is heard later.
            let hears = is_leader || self.below(8) == 0;
            let instance = self.instance(at);
            moves.extend(instance.news().into_iter().filter(|_| hears).map(|key| (at, 0, key)));
            if is_leader {
                moves.extend(instance.flying().into_iter().map(|key| (at, 1, key)));
                moves.extend(instance.enqueued().into_iter().map(|key| (at, 2, key)));
            }
        }
        if moves.is_empty() {
            return (0..2).any(|at| !self.instance(at).news().is_empty());
        }
        let chosen = self.below(moves.len());
        let (at, what, key) = moves.swap_remove(chosen);
        match what {
            0 => self.instance(at).deliver(&key),
            1 => self.instance(at).write(&key, Fate::Arrives),
            _ => self.instance(at).begin(&key),
        }
        if is_over(&mut self.deletes_in) {
            self.deletes_in = self.below(2 * STEPS);
            if let Some(run) = self.world().names(Kind::NonAdminBackup).pop() {
                self.outside(|world| world.delete(&format!("nab {run}")));
            }
        }
        if is_over(&mut self.changes_in) {
            self.change_leader();
            self.changes_in = self.below(STEPS);
        }
        true
    }

    /// The leader is gone, and the other one takes over. What was on its way arrives or gets lost: a lease ends after the
    /// last write that is sent under it.
    fn change_leader(&mut self) {
        let old = self.leader;
        for key in self.instance(old).flying() {
            if self.below(2) == 0 {
                self.instance(old).write(&key, Fate::Unanswered);
            }
        }
        self.instance(old).crash();
        self.instance(old).restart();
        self.leader = 1 - old;
        self.instance(1 - old).becomes_leader();
    }

    /// Both act until there is nothing to do, and what is retried soon is retried.
    fn rest(&mut self) {
        for _ in 0..10 {
            let quiet = (0..ENDLESS).any(|_| !self.step());
            assert!(quiet, "they do not come to rest");
            self.pass(Duration::from_secs(1));
        }
    }
}

fn is_over(steps: &mut usize) -> bool {
    *steps = steps.wrapping_sub(1);
    *steps == usize::MAX
}

#[test]
fn however_often_the_leader_changes_each_run_is_made_once() {
    for seed in seeds(SEEDS) {
        let mut start = world();
        let spec = json!({"concurrency": "Allow", "retention": {"keepLast": 1}});
        start.apply(nas("shop/often", "* * * * *", spec));
        start.settle();
        let mut two = Two::new(start, seed);
        two.pass(Duration::from_secs(25));
        for _ in 0..MINUTES {
            // The rest takes the other half of a minute, and a run is due in the first of its three parts.
            two.pass(MINUTE / 2);
            two.rest();
            two.outside(|world| velero_ends_all(world, "Completed"));
            two.rest();
            two.outside(World::velero_deletes);
            two.rest();
        }
        let world = two.world();
        assert!(world.complaints().is_empty(), "seed {seed}: {:?}", world.complaints());
        let made = world.made_for();
        assert!(made.values().all(|made| *made == 1), "seed {seed}: {made:?}");
        let runs = made.keys().filter(|of| of.starts_with("run ")).count();
        assert_eq!(runs, MINUTES, "seed {seed}: one for each minute: {made:?}");
        let left = world.names(Kind::NonAdminBackup);
        assert!(left.len() <= 1, "seed {seed}: keepLast: 1: {left:?}");
    }
}
