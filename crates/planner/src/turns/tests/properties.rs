//! What holds for all orders of events: the promises of the queue.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use proptest::prelude::*;

use super::{Bench, Step, ahead, name};
use crate::turns::{Capacity, Progress, Tag, Turns};

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..6_u8).prop_map(Step::Ask),
        2 => Just(Step::Hand),
        3 => (0..200_u64).prop_map(Step::End),
    ];
    prop::collection::vec(step, 1..150)
}

/// The weights of namespaces, any that a policy may have.
fn weights() -> impl Strategy<Value = BTreeMap<String, (u64, u64)>> {
    let weight = prop_oneof![2 => Just(100), 1 => 200..500_u64, 1 => 1..=10_000_u64];
    let named =
        |weights: Vec<u64>| (0..6).map(name).zip(weights.into_iter().map(|weight| (weight, 0))).collect();
    prop::collection::vec(weight, 6).prop_map(named)
}

/// What a policy says, and what holds where it says nothing.
fn capacities() -> impl Strategy<Value = Capacity> {
    prop_oneof![
        (1..4_usize).prop_map(|in_flight| Capacity::of(1, Some(in_flight))),
        (1..4_usize).prop_map(|workers| Capacity::of(workers, None)),
    ]
}

proptest! {
    /// The promise: what comes before the next request of a namespace that is within its share is what Velero has, and at
    /// most one job of each other namespace.
    #[test]
    fn whoever_is_within_their_share_waits_for_one_of_each(
        before in steps(),
        weights in weights(),
        capacity in capacities(),
        was_there in any::<bool>(),
    ) {
        let mut bench = Bench { weights, ..Bench::with(capacity) };
        bench.do_steps(before);
        bench.hand_over();
        if was_there {
            bench.ask("somebody");
            // What it uses is paid for as others use as much.
            let is_paid = (0..1000).any(|round| {
                bench.others_ask_and_one_ends(round % 50);
                bench.owes_nothing("somebody")
            });
            prop_assert!(is_paid, "the time stands still");
        }
        // Somebody who was never there is within their share, too.
        let from = bench.handed.len();
        bench.ask("somebody");
        let had_a_turn = (0..1000).any(|round| {
            bench.others_ask_and_one_ends(round % 50);
            bench.order()[from..].contains(&"somebody")
        });
        prop_assert!(had_a_turn, "starved: {:?}", bench.order());
        let order = bench.order();
        let at = order[from..].iter().position(|one| *one == "somebody");
        for number in 0..6 {
            let earlier = order[from..].iter().take(at.unwrap()).filter(|one| **one == name(number)).count();
            prop_assert!(earlier <= 1, "{earlier} of {number} went before: {order:?}");
        }
    }

    /// The promise for a priority: whoever has a higher one waits for nothing but what Velero has. With several workers
    /// others may use those that it cannot use, since Velero works on one backup of a namespace at a time.
    #[test]
    fn nobody_passes_a_higher_priority(before in steps(), capacity in capacities(), short in any::<bool>()) {
        let mut bench = Bench::with(capacity);
        bench.weights.insert("urgent".to_owned(), (100, 5));
        bench.do_steps(before);
        bench.hand_over();
        let from = bench.handed.len();
        for number in 0..15 {
            bench.ask("urgent");
            bench.ask(&name(number % 6));
        }
        for round in 0..200 {
            let had = bench.at_velero.clone();
            let handed = bench.handed.len();
            bench.hand_over();
            if bench.turns.waiting().any(|waiter| &*waiter.uid == "urgent") {
                let passed = bench.handed[handed..].iter().filter(|(_, namespace, _)| namespace != "urgent").count();
                let most = capacity.in_flight.unwrap_or(usize::MAX);
                prop_assert!(passed == 0 || capacity.workers > 1 && had.len() + passed <= most, "{:?}", bench.order());
            }
            bench.end(if short { 0 } else { round % 3 });
        }
        prop_assert_eq!(bench.order()[from..].iter().filter(|one| **one == "urgent").count(), 15);
    }

    /// The promise for a weight: three times the weight is three times as much.
    #[test]
    fn a_heavier_weight_is_more_however_short_jobs_are(before in steps(), workers in 1..4_usize) {
        let mut bench = Bench::with(Capacity::of(workers, None));
        bench.weights.insert("heavy".to_owned(), (300, 0));
        bench.do_steps(before);
        while !bench.at_velero.is_empty() {
            bench.end(0);
            bench.hand_over();
        }
        let from = bench.handed.len();
        for number in 0..60 {
            bench.ask("heavy");
            bench.ask(&name(number % 6));
        }
        for _ in 0..120 {
            bench.hand_over();
            bench.end(0);
        }
        let heavy = bench.order()[from..from + 60].iter().filter(|one| **one == "heavy").count();
        // A third of all, also with three workers, of which it can use one. An equal share would be nine.
        prop_assert!(heavy >= 17, "{heavy} of 60");
    }

    /// Velero is never idle while somebody waits, never has more than it may, and everybody gets their turn, in the order
    /// in which they came within a namespace.
    #[test]
    fn never_idle_never_more_and_everybody_gets_there(
        steps in steps(),
        weights in weights(),
        capacity in capacities(),
    ) {
        let mut bench = Bench { weights, ..Bench::with(capacity) };
        let in_flight = capacity.in_flight.unwrap();
        for step in steps {
            match step {
                Step::Ask(number) => _ = bench.ask(&name(number)),
                Step::Hand => {}
                Step::End(seconds) => bench.end(seconds),
            }
            bench.hand_over();
            prop_assert!(bench.at_velero.len() <= in_flight + capacity.short);
            let waiting: BTreeSet<_> = bench.turns.waiting().map(|waiter| waiter.uid.to_string()).collect();
            let at_work = bench.at_work();
            let is_idle = |uid: &String| !at_work.iter().any(|name| bench.namespace_of(name) == uid);
            let enough = if capacity.workers == 1 {
                bench.at_velero.len() >= in_flight
            } else {
                at_work.len() == capacity.workers || !waiting.iter().any(is_idle)
            };
            prop_assert!(waiting.is_empty() || enough, "{waiting:?} wait");
        }
        while !bench.at_velero.is_empty() {
            bench.end(3);
            bench.hand_over();
        }
        prop_assert_eq!(bench.handed.len(), usize::try_from(bench.asked).unwrap());
        for number in 0..6 {
            let own: Vec<_> = bench.handed.iter().filter(|(_, of, _)| *of == name(number)).collect();
            prop_assert!(own.is_sorted_by_key(|(made, ..)| made.clone()));
        }
    }

    /// What is foreseen is what happens, if jobs take as long as those before and nobody else asks.
    #[test]
    fn the_foreseen_order_is_the_order(before in steps(), in_flight in 1..4_usize) {
        let mut bench = Bench::new(in_flight);
        for step in before {
            match step {
                Step::Ask(number) => _ = bench.ask(&name(number)),
                Step::Hand => bench.hand_over(),
                Step::End(_) => bench.end(30),
            }
        }
        bench.hand_over();
        let mut foreseen: Vec<_> = bench
            .turns
            .waiting()
            .map(|waiter| {
                let place = bench.turns.place(waiter, bench.capacity, Timestamp::UNIX_EPOCH);
                (ahead(place), waiter.arrival.1.name.clone())
            })
            .collect();
        foreseen.sort();
        let from = bench.handed.len();
        while !bench.at_velero.is_empty() {
            bench.end(30);
            bench.hand_over();
        }
        let order: Vec<_> = bench.handed[from..]
            .iter()
            .enumerate()
            .map(|(at, (made, ..))| (at + in_flight, made.clone()))
            .collect();
        prop_assert_eq!(order, foreseen);
    }

    /// The order follows from what is in the cluster alone, whatever the order in which that is seen.
    #[test]
    fn a_restart_changes_nothing(
        steps in steps(),
        seed in any::<u64>(),
        weights in weights(),
        capacity in capacities(),
    ) {
        let mut bench = Bench { weights, ..Bench::with(capacity) };
        let mut ended = BTreeMap::new();
        for step in steps {
            match step {
                Step::Ask(number) => _ = bench.ask(&name(number)),
                Step::Hand => bench.hand_over(),
                Step::End(seconds) => {
                    let before = bench.at_velero.clone();
                    bench.end(seconds);
                    let gone = before.into_iter().filter(|name| !bench.at_velero.contains(name));
                    ended.extend(gone.map(|name| (name, (bench.clock, seconds * 1000))));
                }
            }
        }
        bench.hand_over();
        let mut again = Bench { turns: Turns::default(), ..bench.clone() };
        let mut jobs = bench.handed.clone();
        // Any order will do, as long as it is another one.
        jobs.sort_by_key(|(made, ..)| made.bytes().fold(seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(31)));
        for (made, ..) in &jobs {
            let progress = ended.get(made).map_or(Progress::Queued, |took| Progress::Ended(Some(*took)));
            let job = bench.job(made, progress);
            again.turns.note_job(made, Some(job));
        }
        for waiter in bench.turns.waiting().cloned().collect::<Vec<_>>() {
            again.turns.note_request(&waiter.arrival.1.clone(), Some(waiter));
        }
        let run = |mut bench: Bench| {
            while !bench.at_velero.is_empty() {
                bench.end(3);
                bench.hand_over();
            }
            bench.handed
        };
        let names = |handed: Vec<(String, String, Tag)>| handed.into_iter().map(|(made, ..)| made).collect::<Vec<_>>();
        prop_assert_eq!(names(run(bench)), names(run(again)));
    }
}
