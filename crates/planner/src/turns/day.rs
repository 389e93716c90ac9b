//! A day with a thousand namespaces, simulated: how fair the order is, and what that costs.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, VecDeque};

use api::{Kind, QueueInfo};
use jiff::Timestamp;

use super::{Capacity, Estimate, Job, Place, Progress, Tag, Took, Turn, Turns, Uid, Waiter, off, show};
use crate::Key;

const NAMESPACES: usize = 1000;
/// In milliseconds.
const DAY: u64 = 86_400_000;
/// As many requests as the most demanding namespace has; the others have a half, a third, and so on.
const MOST: usize = 600;
/// Namespaces with at most so many requests are light.
const LIGHT: usize = 3;

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    /// From 0 to 1.
    fn roll(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        f64::from(u32::try_from(self.0 >> 33).unwrap()) / f64::from(1_u32 << 31)
    }

    fn below(&mut self, most: u64) -> u64 {
        super::durations::whole(self.roll() * f64::from(u32::try_from(most).unwrap()))
    }
}

#[derive(Clone, Debug)]
struct Request {
    namespace: usize,
    arrives: u64,
    /// How long a worker is busy with it.
    takes: u64,
    /// How long its data is moved after that.
    moves: u64,
}

/// The requests of a day, in the order in which they come. Namespaces with few requests have as many on each later day.
fn requests(dice: &mut Dice, days: u64) -> Vec<Request> {
    let mut all = Vec::new();
    for namespace in 0..NAMESPACES {
        let number = MOST / (namespace + 1);
        // Whoever wants much wants it in a few bursts, early in the day.
        let bursts: Vec<_> = (0..3).map(|_| dice.below(DAY / 4)).collect();
        let usual = 15_000 + dice.below(60_000);
        for at in 0..number.max(1) {
            let arrives = if number > LIGHT { bursts[at % 3] } else { dice.below(DAY) };
            let takes = usual / 2 + dice.below(usual);
            all.push(Request { namespace, arrives, takes, moves: 0 });
            let later = (1..days).filter(|_| number <= LIGHT);
            all.extend(later.map(|day| Request { namespace, arrives: arrives + day * DAY, takes, moves: 0 }));
        }
    }
    all.sort_by_key(|request| (request.arrives, request.namespace));
    all
}

/// What became of the day.
pub(super) struct Outcome {
    /// When each request started, if it did.
    pub(super) started: Vec<Option<u64>>,
    /// How long workers were busy before the end of the day.
    busy: u64,
    /// The time of workers that each namespace got in the second half of the day.
    used: BTreeMap<usize, u64>,
    /// The namespaces that waited all through the second half of the day.
    backlogged: BTreeSet<usize>,
}

fn key(number: usize, namespace: usize) -> Key {
    Key::new(Kind::NonAdminBackup, &format!("n{namespace}"), &format!("r{number:06}"))
}

fn moment(millis: u64) -> Timestamp {
    Timestamp::from_millisecond(i64::try_from(millis).unwrap()).unwrap()
}

fn waiter(number: usize, request: &Request) -> Waiter {
    let made = moment(request.arrives);
    Waiter {
        uid: Uid::from(format!("n{}", request.namespace)),
        // The API server writes whole seconds.
        arrival: (Timestamp::from_second(made.as_second()).ok(), key(number, request.namespace)),
        priority: 0,
        weight: 100,
        is_front: false,
        most: None,
    }
}

/// How often somebody looks.
const LOOKS: u64 = 1_200_000;

/// How long it takes until Velero sees what it is handed over, and nacre that it is there.
const HAND_OVER: u64 = 50;

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// Its data is moved.
    Ends,
    /// A worker is done with it.
    IsWorked,
    /// Somebody asks.
    Comes,
    /// Velero sees it.
    IsThere,
}

/// nacre and a Velero of so many workers, each of which takes the oldest job whose namespace has no worker.
struct Day<'a> {
    all: &'a [Request],
    turns: Turns,
    tags: HashMap<usize, Tag>,
    at_velero: VecDeque<usize>,
    /// What workers are busy with, and since when.
    running: BTreeMap<usize, u64>,
    left: Vec<usize>,
    outcome: Outcome,
}

impl Day<'_> {
    fn note(&mut self, number: usize, progress: Progress, worked: Option<Took>, since: u64) {
        let job = Job {
            uid: Some(waiter(number, &self.all[number]).uid),
            request: None,
            tag: Some(self.tags[&number]),
            is_trusted: true,
            progress,
            worked,
            // Velero writes whole seconds.
            since: Some(moment(since / 1000 * 1000)),
        };
        self.turns.note_job(&key(number, self.all[number].namespace).name, Some(job));
    }

    /// Hands over whatever can be. Returns what.
    fn hand_over(&mut self, capacity: Capacity, now: u64) -> Vec<usize> {
        let mut handed = Vec::new();
        while let Some(next) = self.turns.next(capacity).cloned() {
            let number: usize = next.name[1..].parse().unwrap();
            let waiter = waiter(number, &self.all[number]);
            let Place::Next(tag) = self.turns.place(&waiter, capacity, moment(now)) else {
                panic!("{next:?} has no turn")
            };
            self.turns.decided(&next, Some(&Turn::Taken(next.name.clone(), tag)), Some(waiter));
            self.tags.insert(number, tag);
            handed.push(number);
        }
        handed
    }

    /// A worker that is free begins with something. Returns what.
    fn begin(&mut self, workers: usize, now: u64) -> Option<usize> {
        let is_busy = |number: &usize| {
            let namespace = self.all[*number].namespace;
            self.running.keys().any(|other| self.all[*other].namespace == namespace)
        };
        if self.running.len() >= workers {
            return None;
        }
        let at = self.at_velero.iter().position(|number| !is_busy(number))?;
        let number = self.at_velero.remove(at)?;
        self.note(number, Progress::Running, None, now);
        self.running.insert(number, now);
        let Request { namespace, takes, .. } = self.all[number];
        let end = now + takes;
        self.outcome.started[number] = Some(now);
        self.outcome.busy += end.min(DAY).saturating_sub(now);
        if end > DAY / 2 {
            let used = self.outcome.used.entry(namespace).or_default();
            *used += end.min(DAY).saturating_sub(now.max(DAY / 2));
        }
        self.left[namespace] -= 1;
        if self.left[namespace] == 0 {
            self.outcome.backlogged.remove(&namespace);
        }
        Some(number)
    }
}

fn simulate(
    all: &[Request],
    capacity: Capacity,
    until: u64,
    mut look: impl FnMut(u64, &Turns, Capacity),
) -> Outcome {
    let mut looked = 0;
    let mut events: BinaryHeap<Reverse<(u64, usize, Event)>> = all
        .iter()
        .enumerate()
        .map(|(number, request)| Reverse((request.arrives, number, Event::Comes)))
        .collect();
    let mut day = Day {
        all,
        turns: Turns::default(),
        tags: HashMap::new(),
        at_velero: VecDeque::new(),
        running: BTreeMap::new(),
        left: vec![0; NAMESPACES],
        outcome: Outcome {
            started: vec![None; all.len()],
            busy: 0,
            used: BTreeMap::new(),
            backlogged: BTreeSet::new(),
        },
    };
    let took = |from: u64, now: u64| (i64::try_from(now / 1000).unwrap(), (now / 1000 - from / 1000) * 1000);
    let mut in_second_half = false;
    while let Some(Reverse((now, number, event))) = events.pop() {
        while looked + LOOKS < now {
            looked += LOOKS;
            look(looked, &day.turns, capacity);
        }
        if !in_second_half && now >= DAY / 2 {
            in_second_half = true;
            let left = |namespace: &usize| day.left[*namespace] > 0;
            day.outcome.backlogged = (0..NAMESPACES).filter(left).collect();
        }
        if now >= until {
            break;
        }
        let request = &all[number];
        let began = day.outcome.started[number].unwrap_or(now);
        match event {
            Event::Comes => {
                day.left[request.namespace] += 1;
                day.turns.note_request(&key(number, request.namespace), Some(waiter(number, request)));
            }
            Event::IsThere => {
                day.note(number, Progress::Queued, None, now);
                day.at_velero.push_back(number);
            }
            Event::IsWorked => {
                day.running.remove(&number);
                let worked = Some(took(began, now));
                if request.moves > 0 {
                    day.note(number, Progress::Finalizing, worked, began);
                    events.push(Reverse((now + request.moves, number, Event::Ends)));
                } else {
                    day.note(number, Progress::Ended(worked), worked, began);
                }
            }
            Event::Ends => day.note(number, Progress::Ended(Some(took(began, now))), None, began),
        }
        let handed = day.hand_over(capacity, now).into_iter();
        events.extend(handed.map(|number| Reverse((now + HAND_OVER, number, Event::IsThere))));
        while let Some(number) = day.begin(capacity.workers, now) {
            events.push(Reverse((now + all[number].takes, number, Event::IsWorked)));
        }
    }
    day.outcome
}

/// 1 if all have the same, 1/n if one has everything.
fn jain(values: &[f64]) -> f64 {
    let (sum, squares) =
        values.iter().fold((0.0, 0.0), |(sum, squares), one| (sum + one, squares + one * one));
    sum * sum / (f64::from(u32::try_from(values.len()).unwrap()) * squares)
}

fn seconds(millis: u64) -> f64 {
    f64::from(u32::try_from(millis / 1000).unwrap())
}

fn median_wait(all: &[Request], outcome: &Outcome) -> f64 {
    let mut number = vec![0; NAMESPACES];
    for request in all {
        number[request.namespace] += 1;
    }
    let light = all.iter().zip(&outcome.started).filter(|(request, _)| number[request.namespace] <= LIGHT);
    let mut waits: Vec<_> =
        light.map(|(request, started)| started.unwrap_or(DAY) - request.arrives.min(DAY)).collect();
    waits.sort_unstable();
    seconds(waits[waits.len() / 2])
}

/// Where the policy says nothing.
fn usual() -> Capacity {
    Capacity::of(1, None)
}

#[test]
fn a_day_with_a_thousand_namespaces() {
    let all = requests(&mut Dice(7), 1);
    is_fair(&all, usual());
    is_fair(&all, Capacity::of(1, Some(2)));
}

/// Many more requests, of which those of every fourth namespace take less than a second.
#[test]
fn a_day_with_many_short_jobs() {
    let few = requests(&mut Dice(7), 1).into_iter();
    let all = few.flat_map(|request| {
        let is_short = request.namespace % 4 == 3;
        let takes = if is_short { request.takes / 100 } else { request.takes };
        std::iter::repeat_n(Request { takes, ..request }, if is_short { 4 } else { 1 })
    });
    is_fair(&all.collect::<Vec<_>>(), usual());
}

fn is_fair(all: &[Request], capacity: Capacity) {
    let everything = Capacity::of(1, Some(0));
    let [fair, by_arrival] =
        [capacity, everything].map(|capacity| simulate(all, capacity, DAY, |_, _, _| ()));
    let shares = |outcome: &Outcome, of: &BTreeSet<usize>| {
        let got = of.iter().map(|namespace| outcome.used.get(namespace).copied().unwrap_or(0));
        jain(&got.map(seconds).collect::<Vec<_>>())
    };
    let (index, arrival_index) = (shares(&fair, &fair.backlogged), shares(&by_arrival, &fair.backlogged));
    let (wait, arrival_wait) = (median_wait(all, &fair), median_wait(all, &by_arrival));
    println!(
        "a day: {} requests of {NAMESPACES} namespaces; Jain's index {index:.3} among {} with a backlog (by arrival \
         {arrival_index:.3}); median wait of light namespaces {wait:.0} s (by arrival {arrival_wait:.0} s); worker busy \
         {:.0} s (by arrival {:.0} s)",
        all.len(),
        fair.backlogged.len(),
        seconds(fair.busy),
        seconds(by_arrival.busy),
    );
    assert!(fair.backlogged.len() >= 10, "nobody to be fair to");
    assert!(index >= 0.95, "{index}");
    assert!(wait * 10.0 <= arrival_wait, "{wait} and {arrival_wait}");
    assert!(fair.busy >= by_arrival.busy, "{} and {}", fair.busy, by_arrival.busy);
}

/// With two, Velero always has the next one while nacre hands over another. With one, it waits for nacre each time.
#[test]
fn velero_is_not_idle_while_it_is_handed_the_next_one() {
    for seed in [7, 8, 9] {
        let all = requests(&mut Dice(seed), 1);
        let [by_default, one, everything] = [None, Some(1), Some(0)]
            .map(|in_flight| simulate(&all, Capacity::of(1, in_flight), DAY, |_, _, _| ()).busy);
        assert!(by_default >= everything, "seed {seed}: {by_default} and {everything}");
        assert!(one < everything, "seed {seed}: {one} and {everything}");
    }
}

/// What was shown, to whom and when, and how many writes that took.
#[derive(Default)]
struct Shown {
    now: BTreeMap<usize, QueueInfo>,
    all: Vec<(usize, Estimate)>,
    estimates_written: usize,
}

impl Shown {
    /// What is out of date is written.
    fn look(&mut self, now: u64, turns: &Turns, capacity: Capacity) {
        for (waiter, place) in turns.places(capacity, moment(now)) {
            let number: usize = waiter.arrival.1.name[1..].parse().unwrap();
            let mut shown = self.now.remove(&number);
            if shown.as_ref().is_none_or(|shown| off(place, shown, moment(now)).is_some()) {
                let before = shown.as_ref().and_then(Estimate::shown);
                show(place, (&mut Vec::new(), &mut shown), None, moment(now));
                self.estimates_written += usize::from(shown.as_ref().and_then(Estimate::shown) != before);
            }
            let shown = shown.unwrap();
            self.all.extend(Estimate::shown(&shown).map(|estimate| (number, estimate)));
            self.now.insert(number, shown);
        }
    }
}

/// Whether what is shown can be relied on. Those with much to do wait for days, so that the days after have to come too.
#[test]
fn estimates_of_a_day_come_true() {
    come_true(&requests(&mut Dice(7), 6), usual());
}

/// Every second namespace has its data moved after its backups, for up to two hours, when no worker is busy.
#[test]
fn estimates_of_a_day_with_three_workers_and_moved_data_come_true() {
    let mut dice = Dice(7);
    let mut all = requests(&mut dice, 6);
    for request in &mut all {
        request.takes *= 3;
        request.moves = if request.namespace % 2 == 0 { 600_000 + dice.below(6_600_000) } else { 0 };
    }
    come_true(&all, Capacity::of(3, None));
}

fn come_true(all: &[Request], capacity: Capacity) {
    let mut shown = Shown::default();
    let outcome = simulate(all, capacity, 6 * DAY, |now, turns, capacity| {
        if now < DAY {
            shown.look(now, turns, capacity);
        }
    });
    let mut number = vec![0; NAMESPACES];
    for request in all.iter().filter(|request| request.arrives < DAY) {
        number[request.namespace] += 1;
    }
    let share = |of: &dyn Fn(usize) -> bool| {
        let (mut right, mut early, mut late) = (0_u32, 0_u32, 0_u32);
        for (request, estimate) in shown.all.iter().filter(|(request, _)| of(number[all[*request].namespace]))
        {
            let start = moment(outcome.started[*request].expect("all start in the end"));
            *(if start < estimate.earliest {
                &mut early
            } else if start > estimate.latest {
                &mut late
            } else {
                &mut right
            }) += 1;
        }
        let all = f64::from(right + early + late);
        (f64::from(right) / all, f64::from(early) / all, f64::from(late) / all, all)
    };
    let (every, light, heavy) = (share(&|_| true), share(&|many| many <= LIGHT), share(&|many| many > LIGHT));
    let waited = shown.all.iter().map(|(request, _)| request).collect::<BTreeSet<_>>().len();
    println!(
        "estimates: (right, early, late, all) {every:?}; of light namespaces {light:?}; of others {heavy:?}; {} written for \
         {waited} requests",
        shown.estimates_written
    );
    for (right, ..) in [every, light, heavy] {
        assert!(right >= 0.8, "{right}");
    }
    assert!(shown.estimates_written <= waited * 12, "{} for {waited}", shown.estimates_written);
}
