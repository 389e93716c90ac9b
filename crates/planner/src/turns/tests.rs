use std::collections::{BTreeMap, BTreeSet};

use api::Kind;
use jiff::Timestamp;

use super::{CLASSES, Capacity, Class, Job, Place, Progress, Tag, Turn, Turns, Uid, Waiter};
use crate::Key;

mod properties;

/// Velero and nacre, as small as can be: each worker takes the oldest job whose namespace has no worker.
#[derive(Clone, Debug)]
struct Bench {
    turns: Turns,
    capacity: Capacity,
    /// What is handed over, in order: name, namespace, tag, and how long it takes.
    handed: Vec<(String, String, Tag)>,
    at_velero: Vec<String>,
    asked: u32,
    clock: i64,
    weights: BTreeMap<String, (u64, u64)>,
    front: BTreeSet<Key>,
}

impl Bench {
    fn new(in_flight: usize) -> Self {
        Self::with(Capacity::of(1, Some(in_flight)))
    }

    fn with(capacity: Capacity) -> Self {
        Self {
            turns: Turns::default(),
            capacity,
            handed: Vec::new(),
            at_velero: Vec::new(),
            asked: 0,
            clock: 0,
            weights: BTreeMap::new(),
            front: BTreeSet::new(),
        }
    }

    fn waiter(&self, key: &Key, number: u32) -> Waiter {
        let (weight, priority) = self.weights.get(&key.namespace).copied().unwrap_or((100, 0));
        Waiter {
            uid: Uid::from(key.namespace.as_str()),
            arrival: (Some(Timestamp::from_second(i64::from(number)).unwrap()), key.clone()),
            priority,
            weight,
            is_front: self.front.contains(key),
            most: None,
        }
    }

    fn ask(&mut self, namespace: &str) -> Key {
        self.asked += 1;
        let key = Key::new(Kind::NonAdminBackup, namespace, &format!("r{:05}", self.asked));
        let waiter = self.waiter(&key, self.asked);
        self.turns.note_request(&key, Some(waiter));
        key
    }

    fn job(&self, name: &str, progress: Progress) -> Job {
        let (_, namespace, tag) = self.handed.iter().rev().find(|(made, ..)| made == name).unwrap();
        Job {
            uid: Some(Uid::from(namespace.as_str())),
            request: None,
            tag: Some(*tag),
            is_trusted: true,
            progress,
            worked: if let Progress::Ended(took) = progress { took } else { None },
            since: None,
        }
    }

    /// Hands over whatever can be.
    fn hand_over(&mut self) {
        while let Some(key) = self.turns.next(self.capacity).cloned() {
            let number = key.name[1..].parse().unwrap();
            let waiter = self.waiter(&key, number);
            let Place::Next(tag) = self.turns.place(&waiter, self.capacity, Timestamp::UNIX_EPOCH) else {
                panic!("{key:?} is next and has no turn")
            };
            self.turns.decided(&key, Some(&Turn::Taken(key.name.clone(), tag)), Some(waiter));
            self.handed.push((key.name.clone(), key.namespace.clone(), tag));
            let job = self.job(&key.name, Progress::Queued);
            self.turns.note_job(&key.name, Some(job));
            self.at_velero.push(key.name);
        }
    }

    fn namespace_of(&self, name: &str) -> &str {
        let found = self.handed.iter().rev().find(|(made, ..)| made == name);
        found.map(|(_, namespace, _)| namespace.as_str()).unwrap()
    }

    /// What Velero works on.
    fn at_work(&self) -> Vec<String> {
        let mut busy = BTreeSet::new();
        let first = self.at_velero.iter().filter(|name| busy.insert(self.namespace_of(name)));
        first.take(self.capacity.workers).cloned().collect()
    }

    /// Velero ends one of those that it works on: the oldest, where it has one worker.
    fn end(&mut self, seconds: u64) {
        let at_work = self.at_work();
        if at_work.is_empty() {
            return;
        }
        let name = at_work[usize::try_from(seconds).unwrap() % at_work.len()].clone();
        self.at_velero.retain(|other| *other != name);
        self.clock += 1;
        for progress in [Progress::Running, Progress::Ended(Some((self.clock, seconds * 1000)))] {
            let job = self.job(&name, progress);
            self.turns.note_job(&name, Some(job));
        }
    }

    fn do_steps(&mut self, steps: Vec<Step>) {
        for step in steps {
            match step {
                Step::Ask(number) => _ = self.ask(&name(number)),
                Step::Hand => self.hand_over(),
                Step::End(seconds) => self.end(seconds),
            }
        }
    }

    /// What is next is handed over, one ends, and six namespaces keep asking.
    fn others_ask_and_one_ends(&mut self, seconds: u64) {
        self.hand_over();
        self.end(seconds);
        for number in 0..6 {
            self.ask(&name(number));
        }
    }

    /// Whether Velero has nothing of a namespace, and others have used as much as it has.
    fn owes_nothing(&self, namespace: &str) -> bool {
        let owes = |class: &Class| class.is_later(&Uid::from(namespace));
        let waits = |waiter: &Waiter| &*waiter.uid == namespace;
        !self.turns.classes.values().any(owes)
            && !self.turns.waiting().any(waits)
            && !self.at_velero.iter().any(|name| self.namespace_of(name) == namespace)
    }

    fn order(&self) -> Vec<&str> {
        self.handed.iter().map(|(_, namespace, _)| namespace.as_str()).collect()
    }
}

#[test]
fn nobody_waits_behind_somebody_elses_hundred() {
    let mut bench = Bench::new(2);
    for _ in 0..100 {
        bench.ask("a");
    }
    bench.hand_over();
    bench.end(10);
    bench.ask("b");
    bench.hand_over();
    assert_eq!(bench.order(), ["a", "a", "b"]);
}

#[test]
fn a_newcomers_hundred_do_not_pass_everybody() {
    let mut bench = Bench::new(1);
    for _ in 0..30 {
        bench.ask("old");
    }
    for _ in 0..10 {
        bench.hand_over();
        bench.end(10);
    }
    for _ in 0..100 {
        bench.ask("new");
    }
    for _ in 0..20 {
        bench.hand_over();
        bench.end(10);
    }
    let theirs = bench.order()[10..].iter().filter(|one| **one == "new").count();
    assert!((10..=11).contains(&theirs), "{theirs} of 20: {:?}", bench.order());
}

#[test]
fn what_counts_is_time_and_not_the_number_of_jobs() {
    let mut bench = Bench::new(1);
    for _ in 0..200 {
        bench.ask("long");
        bench.ask("short");
    }
    let mut used = BTreeMap::new();
    for _ in 0..120 {
        bench.hand_over();
        let namespace = bench.order().last().copied().unwrap_or_default().to_owned();
        let seconds = if namespace == "long" { 90 } else { 10 };
        *used.entry(namespace).or_insert(0) += seconds;
        bench.end(seconds);
    }
    let (long, short) = (used["long"], used["short"]);
    assert!(long.abs_diff(short) <= 90, "{used:?}");
}

#[test]
fn twice_the_weight_is_twice_the_time_and_a_higher_priority_goes_first() {
    let mut bench = Bench::new(1);
    bench.weights = BTreeMap::from([("heavy".to_owned(), (200, 0)), ("urgent".to_owned(), (100, 5))]);
    for _ in 0..60 {
        bench.ask("heavy");
        bench.ask("plain");
    }
    for _ in 0..30 {
        bench.hand_over();
        bench.end(10);
    }
    let count = |order: &[&str], name: &str| order.iter().filter(|one| **one == name).count();
    let heavy = count(&bench.order(), "heavy");
    assert!((19..=21).contains(&heavy), "{heavy} of 30");
    for _ in 0..3 {
        bench.ask("urgent");
    }
    for _ in 0..4 {
        bench.hand_over();
        bench.end(10);
    }
    assert_eq!(count(&bench.order()[30..], "urgent"), 3, "{:?}", bench.order());
    assert_eq!(count(&bench.order()[30..33], "urgent"), 3, "{:?}", bench.order());
}

#[test]
fn one_at_the_front_goes_first_and_pays_all_the_same() {
    let mut bench = Bench::new(1);
    for _ in 0..3 {
        bench.ask("a");
        bench.hand_over();
        bench.end(100);
    }
    let key = bench.ask("a");
    bench.ask("b");
    let front = Waiter { is_front: true, ..bench.waiter(&key, bench.asked - 1) };
    bench.turns.note_request(&key, Some(front.clone()));
    assert_eq!(bench.turns.next(bench.capacity), Some(&key));
    let Place::Next(tag) = bench.turns.place(&front, bench.capacity, Timestamp::UNIX_EPOCH) else {
        panic!("it is its turn")
    };
    bench.turns.decided(&key, Some(&Turn::Taken(key.name.clone(), tag)), Some(front));
    assert_eq!(bench.turns.in_flight(bench.capacity), 1, "what is on the way counts");
    assert_eq!(bench.turns.next(bench.capacity), None);
    bench.handed.push((key.name.clone(), "a".to_owned(), tag));
    for progress in [Progress::Queued, Progress::Running, Progress::Ended(Some((0, 100_000)))] {
        let job = bench.job(&key.name, progress);
        bench.turns.note_job(&key.name, Some(job));
    }
    bench.ask("a");
    bench.ask("b");
    for _ in 0..2 {
        bench.hand_over();
        bench.end(1);
    }
    assert_eq!(bench.order(), ["a", "a", "a", "a", "b", "b"], "a has used more");
}

#[test]
fn whatever_claims_to_run_beyond_the_workers_holds_up_nobody() {
    let mut bench = Bench::new(2);
    for name in ["forged-1", "forged-2", "forged-3"] {
        let job = Job {
            uid: None,
            request: None,
            tag: None,
            is_trusted: false,
            progress: Progress::Running,
            worked: None,
            since: None,
        };
        bench.turns.note_job(name, Some(job));
    }
    bench.ask("a");
    bench.hand_over();
    assert_eq!(bench.order(), ["a"]);
}

#[test]
fn a_tag_that_a_tenant_forged_moves_nobody_elses_time() {
    let mut bench = Bench::new(1);
    let tag = Tag { priority: 0, start: 1 << 52, time: 1 << 52, weight: 100, charged: 0 };
    let job = Job {
        uid: Some(Uid::from("evil")),
        request: None,
        tag: Some(tag),
        is_trusted: false,
        progress: Progress::Ended(Some((0, 1000))),
        worked: None,
        since: None,
    };
    bench.turns.note_job("forged", Some(job));
    bench.ask("evil");
    bench.ask("b");
    bench.ask("b");
    for _ in 0..3 {
        bench.hand_over();
        bench.end(1);
    }
    assert_eq!(bench.order(), ["b", "b", "evil"], "it harms the one who forged it");
}

#[test]
fn several_workers_are_kept_busy_with_different_namespaces() {
    let mut bench = Bench::new(4);
    bench.capacity = Capacity::of(3, None);
    for _ in 0..9 {
        bench.ask("a");
    }
    bench.hand_over();
    assert_eq!(
        bench.order(),
        ["a", "a"],
        "Velero works on one backup of a namespace at a time, and one more waits"
    );
    bench.ask("b");
    bench.ask("c");
    bench.hand_over();
    assert_eq!(bench.order(), ["a", "a", "b", "c"]);
    assert_eq!(Capacity::of(3, None).in_flight, Some(4));
    assert_eq!(Capacity::of(1, Some(0)).in_flight, None);
}

/// Nine namespaces ask for three each, and the job before them took so long.
fn nine_ask_after_a_job_of(seconds: u64) -> Bench {
    let mut bench = Bench::new(2);
    bench.capacity = Capacity::of(1, None);
    bench.ask("before");
    bench.hand_over();
    bench.end(seconds);
    for number in 0..27 {
        bench.ask(&name(number % 9));
    }
    bench.hand_over();
    bench
}

#[test]
fn while_jobs_are_over_in_a_moment_velero_gets_one_of_each_namespace() {
    // What began in one second and ended in the next may have taken a moment.
    for seconds in [0, 1] {
        let bench = nine_ask_after_a_job_of(seconds);
        let given: BTreeSet<_> = bench.order().split_off(1).into_iter().collect();
        assert_eq!((bench.at_velero.len(), given.len()), (9, 9), "of no namespace two: {given:?}");
    }
    assert_eq!(nine_ask_after_a_job_of(2).at_velero.len(), 2, "a job of two seconds keeps Velero busy");
}

#[test]
fn of_one_namespace_alone_velero_gets_no_more_however_short_its_jobs_are() {
    let mut bench = Bench::new(2);
    bench.capacity = Capacity::of(1, None);
    for _ in 0..20 {
        bench.ask("alone");
    }
    for _ in 0..5 {
        bench.hand_over();
        assert_eq!(bench.at_velero.len(), 2);
        bench.end(0);
    }
    assert_eq!(Capacity::of(1, Some(2)).short, 0, "what a policy says is what there is");
}

#[test]
fn nobody_with_short_jobs_passes_a_long_one_whose_turn_it_is() {
    let mut bench = Bench::new(2);
    bench.capacity = Capacity::of(1, None);
    for (namespace, seconds) in [("a", 0), ("quick", 0), ("slow", 60), ("b", 0)] {
        bench.ask(namespace);
        bench.hand_over();
        bench.end(seconds);
    }
    // What the long one has used counts, so that it would be the last: an administrator's priority makes it the next.
    bench.weights.insert("slow".to_owned(), (100, 1));
    for namespace in ["a", "b"] {
        bench.ask(namespace);
        bench.hand_over();
    }
    assert_eq!(bench.at_velero.len(), 2, "Velero has what keeps it busy");
    for namespace in ["slow", "quick"] {
        bench.ask(namespace);
    }
    bench.hand_over();
    assert_eq!(
        bench.at_velero.len(),
        2,
        "a long one waits until there is room for any, and nobody passes it"
    );
    bench.end(0);
    bench.hand_over();
    assert_eq!(bench.order().split_off(6), ["slow", "quick"]);
}

/// A bench whose jobs are over in a moment, as is known from this one.
fn short_jobs(weights: [(&str, (u64, u64)); 1]) -> Bench {
    let mut bench = Bench::with(Capacity::of(1, None));
    bench.weights = weights.into_iter().map(|(namespace, weight)| (namespace.to_owned(), weight)).collect();
    bench.ask("before");
    bench.hand_over();
    bench.end(0);
    bench
}

/// So many are handed over and ended. Returns how many of them were of this namespace.
fn hand_over_and_end(bench: &mut Bench, many: usize, namespace: &str) -> usize {
    let from = bench.handed.len();
    for _ in 0..2 * many {
        bench.hand_over();
        bench.end(0);
    }
    bench.order()[from..from + many].iter().filter(|one| **one == namespace).count()
}

#[test]
fn short_jobs_do_not_pass_a_higher_priority() {
    let mut bench = short_jobs([("urgent", (100, 5))]);
    for number in 0..100 {
        bench.ask("urgent");
        bench.ask(&name(number % 20));
    }
    assert_eq!(hand_over_and_end(&mut bench, 100, "urgent"), 100);
    assert_eq!(bench.handed.len(), 201, "and then it was the others' turn");
}

#[test]
fn short_jobs_do_not_pass_a_heavier_weight() {
    let mut bench = short_jobs([("heavy", (400, 0))]);
    for number in 0..240 {
        bench.ask("heavy");
        bench.ask(&name(number % 12));
    }
    let heavy = hand_over_and_end(&mut bench, 160, "heavy");
    assert!((38..=42).contains(&heavy), "{heavy} of 160, with a quarter of all the weight");
}

#[test]
fn short_jobs_do_not_pass_one_at_the_front() {
    let mut bench = short_jobs([("a", (100, 0))]);
    let moved = [bench.ask("a"), bench.ask("a"), bench.ask("a")];
    bench.front.extend(moved.clone());
    for (key, number) in moved.iter().zip(2..) {
        bench.turns.note_request(key, Some(bench.waiter(key, number)));
    }
    for number in 0..20 {
        bench.ask(&name(number));
    }
    assert_eq!(hand_over_and_end(&mut bench, 4, "a"), 3, "{:?}", bench.order());
    assert_eq!(bench.order()[1..4], ["a"; 3]);
}

/// Twenty namespaces with short jobs, which came in no particular order: Velero always has all it may have.
#[test]
fn equal_namespaces_with_short_jobs_keep_velero_busy() {
    let mut bench = short_jobs([("a", (100, 0))]);
    let mut dice = 7_u32;
    for _ in 0..1000 {
        dice = dice.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        bench.ask(&name(u8::try_from((dice >> 16) % 20).unwrap()));
    }
    for round in 0..800 {
        bench.hand_over();
        assert_eq!(bench.at_velero.len(), 10, "in round {round}");
        bench.end(0);
    }
}

#[test]
fn what_never_started_says_nothing_about_how_long_jobs_take() {
    let mut bench = Bench::with(Capacity::of(1, None));
    bench.ask("a");
    bench.hand_over();
    let refused = bench.at_velero.remove(0);
    let job = bench.job(&refused, Progress::Ended(None));
    bench.turns.note_job(&refused, Some(job));
    for number in 0..9 {
        bench.ask(&name(number));
        bench.ask("a");
    }
    bench.hand_over();
    assert_eq!(bench.at_velero.len(), 2, "nobody knows that they are short");
    let (_, _, tag) = bench.handed[1];
    assert_eq!(tag.charged, 30_000);
}

#[test]
fn velero_is_seen_to_have_more_workers_and_gets_more() {
    let mut bench = Bench::new(2);
    for number in 0..9 {
        bench.ask(&name(number));
    }
    for workers in 1..=3 {
        bench.capacity = Capacity::of(bench.turns.workers(), None);
        bench.hand_over();
        assert_eq!(bench.at_velero.len(), workers + 1);
        // Velero works on as many as it can, which is three.
        for name in bench.at_velero.iter().take(3).cloned().collect::<Vec<_>>() {
            let job = bench.job(&name, Progress::Running);
            bench.turns.note_job(&name, Some(job));
        }
    }
    bench.capacity = Capacity::of(bench.turns.workers(), None);
    bench.hand_over();
    assert_eq!((bench.turns.workers(), bench.at_velero.len()), (3, 4));
    let forged = Job {
        uid: None,
        request: None,
        tag: None,
        is_trusted: false,
        progress: Progress::Running,
        worked: None,
        since: None,
    };
    bench.turns.note_job("forged", Some(forged));
    assert_eq!(bench.turns.workers(), 3, "nobody makes nacre believe in more");
}

#[test]
fn a_velero_that_has_fewer_workers_than_before_gets_less_after_a_while() {
    let mut bench = Bench::with(Capacity::of(3, None));
    let report = |bench: &mut Bench, progress: Progress, names: &[String]| {
        for name in names {
            let job = bench.job(name, progress);
            bench.turns.note_job(name, Some(job));
        }
    };
    for number in 0..120 {
        bench.ask(&name(number % 9));
    }
    bench.hand_over();
    let names = bench.at_work();
    report(&mut bench, Progress::Running, &names);
    assert_eq!((names.len(), bench.turns.workers()), (3, 3));
    // Velero is restarted with one worker.
    report(&mut bench, Progress::Queued, &names);
    for ended in 0..60 {
        bench.capacity = Capacity::of(bench.turns.workers(), None);
        bench.hand_over();
        let first = bench.at_velero.remove(0);
        report(&mut bench, Progress::Running, std::slice::from_ref(&first));
        report(&mut bench, Progress::Ended(Some((ended, 60_000))), &[first]);
    }
    assert_eq!((bench.turns.workers(), bench.at_velero.len()), (1, 1));
}

/// A backup into a tenant's storage could be forged once it is more than queued; this one was seen before.
#[test]
fn a_job_in_a_tenants_storage_that_nacre_handed_over_shows_that_there_is_a_worker() {
    let mut bench = Bench::new(3);
    for number in 0..3 {
        bench.ask(&name(number));
    }
    bench.hand_over();
    for name in bench.at_velero.clone() {
        let job = Job { is_trusted: false, ..bench.job(&name, Progress::Running) };
        bench.turns.note_job(&name, Some(job));
    }
    assert_eq!(bench.turns.workers(), 3);
}

#[test]
fn a_turn_of_which_nothing_came_is_free_again() {
    let mut bench = Bench::new(1);
    let (first, second) = (bench.ask("a"), bench.ask("b"));
    let waiter = bench.waiter(&first, 1);
    let Place::Next(tag) = bench.turns.place(&waiter, bench.capacity, Timestamp::UNIX_EPOCH) else {
        panic!("it is its turn")
    };
    bench.turns.decided(&first, Some(&Turn::Taken("x".to_owned(), tag)), Some(waiter.clone()));
    assert_eq!(bench.turns.next(bench.capacity), None);
    assert_eq!(
        bench.turns.place(&waiter, bench.capacity, Timestamp::UNIX_EPOCH),
        Place::Next(tag),
        "its own turn is not in its way"
    );
    bench.turns.decided(&first, None, None);
    assert_eq!(bench.turns.next(bench.capacity), Some(&second));
}

fn ahead(place: Place) -> usize {
    let Place::Behind(number, _) = place else { panic!("{place:?}") };
    number
}

/// With many waiting, positions come from a list that is renewed now and then.
#[test]
fn with_many_waiting_a_position_is_nearly_right_and_that_of_those_within_their_share_exactly() {
    let now = Timestamp::UNIX_EPOCH;
    let mut bench = Bench::new(2);
    for round in 0..30 {
        for namespace in 0..50 {
            // Some ask for a few and some for many.
            if round < 3 || namespace % 5 == 0 {
                bench.ask(&format!("n{namespace}"));
            }
        }
    }
    for _ in 0..60 {
        bench.hand_over();
        bench.end(30);
    }
    bench.hand_over();
    for number in 0..5 {
        bench.ask(&format!("new-{number}"));
    }
    let waiting: Vec<_> = bench.turns.waiting().cloned().collect();
    assert!(waiting.len() > 300, "{}", waiting.len());
    let shown: BTreeMap<_, _> = waiting
        .iter()
        .map(|waiter| (&waiter.arrival.1, bench.turns.place(waiter, bench.capacity, now)))
        .collect();
    let mut later = bench.clone();
    let from = later.handed.len();
    while !later.at_velero.is_empty() {
        later.end(30);
        later.hand_over();
    }
    let mut worst = 0;
    for (at, (name, namespace, _)) in later.handed[from..].iter().enumerate() {
        let key = Key::new(Kind::NonAdminBackup, namespace, name);
        let off = ahead(shown[&key]).abs_diff(at + 2);
        worst = worst.max(off);
        if namespace.starts_with("new-") {
            assert_eq!(off, 0, "{key:?}");
        }
    }
    assert!(worst * 8 <= waiting.len() + 16, "{worst} of {}", waiting.len());
}

/// One namespace of this weight and so many of weight 100 always have something to do, and all jobs take a minute. Returns
/// who was given what, after the first rounds.
fn shares(workers: usize, (weight, others): (u64, u8), newcomer: Option<&str>) -> BTreeMap<String, usize> {
    let mut bench = Bench::with(Capacity::of(workers, None));
    bench.weights.insert("heavy".to_owned(), (weight, 0));
    let mut from = 0;
    for round in 0..420 {
        bench.ask("heavy");
        (0..others).for_each(|number| _ = bench.ask(&name(number)));
        if let Some(newcomer) = newcomer.filter(|_| round >= 240) {
            bench.ask(newcomer);
        }
        if round == 240 {
            from = bench.handed.len();
        }
        bench.hand_over();
        bench.end(60);
    }
    let mut shares = BTreeMap::new();
    for namespace in &bench.order()[from..] {
        *shares.entry((*namespace).to_owned()).or_default() += 1;
    }
    shares
}

#[test]
fn several_workers_take_nothing_from_a_weight_that_one_worker_can_do() {
    for workers in 1..4 {
        for heavy in [(300, 6), (400, 8)] {
            let shares = shares(workers, heavy, None);
            assert!(
                (58..=62).contains(&shares["heavy"]),
                "a third of 180 with {workers} workers: {shares:?}"
            );
        }
    }
}

#[test]
fn where_one_weighs_more_than_a_worker_can_do_nobody_saves_up_meanwhile() {
    let shares = shares(2, (10_000, 2), Some("new"));
    assert!(shares["heavy"] > 80, "as much as one worker can do: {shares:?}");
    assert!(
        shares["new"] <= shares["n0"] + 2,
        "as much as the others, and not what they had before: {shares:?}"
    );
}

#[derive(Clone, Debug)]
enum Step {
    Ask(u8),
    Hand,
    End(u64),
}

fn name(number: u8) -> String {
    format!("n{number}")
}

#[test]
fn whoever_forges_tags_makes_no_end_of_priorities() {
    let mut turns = Turns::default();
    let job = |priority, is_trusted| Job {
        uid: Some(Uid::from("shop")),
        request: None,
        tag: Some(Tag { priority, start: 1000, time: 1000, weight: 100, charged: 1000 }),
        is_trusted,
        progress: Progress::Running,
        worked: None,
        since: None,
    };
    for priority in 0..40 {
        turns.note_job(&format!("forged-{priority}"), Some(job(priority, false)));
    }
    assert_eq!(turns.classes.len(), CLASSES);
    turns.note_job("real", Some(job(50, true)));
    assert_eq!(turns.classes.len(), CLASSES + 1);
    let known = &turns.classes[&std::cmp::Reverse(3)];
    let before = known.start(&Uid::from("office"));
    turns.note_job("more", Some(Job { uid: Some(Uid::from("office")), ..job(3, false) }));
    assert!(turns.classes[&std::cmp::Reverse(3)].start(&Uid::from("office")) > before, "this one was known");
}
