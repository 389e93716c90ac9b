//! Who goes before a request that waits, and how long that takes.
//!
//! Both come from going through those that wait in the order of their turns. Where only a few wait, that is done for each
//! question. Where many wait, it is done for all of them at once, and again when one in eight has come or gone: so a
//! request costs O(log n) in the long run, and its position is at most that far off.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use jiff::Timestamp;

use super::estimate::{Estimate, Work};
use super::{Arrival, Capacity, Place, Turns, Uid, Waiter};
use crate::Key;

/// Up to so many that wait, the order is gone through for each question.
const FEW: usize = 200;
/// Beyond that, when one in so many has come or gone.
const RENEWED: usize = 8;

/// What goes before one that waits.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Before {
    /// How many of those that wait.
    number: usize,
    /// What these are for Velero.
    work: Work,
}

/// The order of those that wait: the front first, then by priority, then by virtual time, then by age.
type Order = (bool, Reverse<u64>, u64, Arrival);

/// The order of all that waited when it was last gone through.
#[derive(Clone, Debug, Default)]
pub(super) struct Forecast {
    all: Vec<(Order, Before)>,
    /// Those that came since, and how many of the others left.
    came: HashSet<Key>,
    left: usize,
    changes: usize,
}

impl Forecast {
    /// Notes that a request came or left. Returns whether it is time to go through the order again.
    pub(super) fn note(&mut self, key: &Key, came: bool, waiting: usize) -> bool {
        if waiting <= FEW {
            *self = Self::default();
            return false;
        }
        if came {
            self.came.insert(key.clone());
        } else if !self.came.remove(key) {
            self.left += 1;
        }
        self.changes += 1;
        self.changes * RENEWED >= self.all.len()
    }

    fn before(&self, order: &Order) -> Before {
        let at = self.all.partition_point(|(other, _)| other < order);
        let before = match self.all.get(at).or_else(|| self.all.last()) {
            Some((_, before)) => *before,
            None => Before::default(),
        };
        // Those that left were the first, unless they were withdrawn. Those that came since do not count.
        let number = at.saturating_sub(self.left);
        let share = ratio(number, at);
        Before {
            number,
            work: Work { mean: before.work.mean * share, variance: before.work.variance * share },
        }
    }
}

fn ratio(part: usize, of: usize) -> f64 {
    let float = |number: usize| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
    if of == 0 { 1.0 } else { float(part) / float(of) }
}

impl Turns {
    /// Goes through all that wait in the order of their turns, as it is if nobody else asks.
    fn walk<'a>(
        &'a self,
        mut visit: impl FnMut((bool, Reverse<u64>, u64), &'a Arrival, Before) -> ControlFlow<()>,
    ) {
        let mut before = Before::default();
        let mut seen: HashMap<&Uid, u32> = HashMap::new();
        let mut pass = |order, arrival: &'a Arrival, uid: &'a Uid| {
            visit(order, arrival, before)?;
            let number = seen.entry(uid).or_default();
            before.work.add(&self.durations.expected(Some(uid)), *number);
            before.number += 1;
            *number += 1;
            ControlFlow::Continue(())
        };
        for arrival in &self.front {
            let Some(waiter) = self.waiting.get(&arrival.1) else { continue };
            if pass((false, Reverse(0), 0), arrival, &waiter.uid).is_break() {
                return;
            }
        }
        for (priority, class) in &self.classes {
            for (start, arrival, uid) in class.in_turn() {
                if pass((true, *priority, start), arrival, uid).is_break() {
                    return;
                }
            }
        }
    }

    /// Where one that waits, or is about to, is in the order.
    fn order_of(&self, waiter: &Waiter) -> Order {
        let arrival = waiter.arrival.clone();
        if waiter.is_front {
            return (false, Reverse(0), 0, arrival);
        }
        let class = self.classes.get(&Reverse(waiter.priority));
        let start = class.map_or(0, |class| class.foreseen_start(&waiter.uid, &waiter.arrival));
        (true, Reverse(waiter.priority), start, arrival)
    }

    fn before(&self, waiter: &Waiter) -> Before {
        let own = self.order_of(waiter);
        if self.waiting.len() > FEW {
            return self
                .before_those_within_their_share(waiter)
                .unwrap_or_else(|| self.forecast.before(&own));
        }
        let mut found = None;
        let mut last = Before::default();
        self.walk(|(front, priority, start), arrival, before| {
            if (front, priority, start, arrival) >= (own.0, own.1, own.2, &own.3) {
                found = Some(before);
                return ControlFlow::Break(());
            }
            last = before;
            last.work.add(&self.durations.expected(None), 0);
            last.number += 1;
            ControlFlow::Continue(())
        });
        found.unwrap_or(last)
    }

    /// What goes before the first request of a namespace that owes nothing: only those that came earlier, which are counted
    /// exactly.
    fn before_those_within_their_share(&self, waiter: &Waiter) -> Option<Before> {
        let class = self.classes.get(&Reverse(waiter.priority)).filter(|_| !waiter.is_front)?;
        let earlier = class.ready_before(&waiter.uid, &waiter.arrival)?;
        let higher = self.classes.range(..Reverse(waiter.priority)).map(|(_, class)| class.waiting());
        let number = self.front.len() + higher.sum::<usize>() + earlier;
        let mut before = Before { number, work: Work::default() };
        before.work.add_many(&self.durations.expected(None), number);
        Some(before)
    }

    /// Goes through the order of all that wait, and keeps it.
    pub(super) fn renew_forecast(&mut self) {
        let mut all = Vec::with_capacity(self.waiting.len());
        self.walk(|(front, priority, start), arrival, before| {
            all.push(((front, priority, start, arrival.clone()), before));
            ControlFlow::Continue(())
        });
        self.forecast = Forecast { all, ..Forecast::default() };
    }

    /// Where one is that has to wait.
    pub(super) fn behind(&self, waiter: &Waiter, capacity: Capacity, now: Timestamp) -> Place {
        self.place_after(self.before(waiter), waiter, capacity, now)
    }

    /// Where one is that an administrator holds back.
    pub fn on_hold(&self, waiter: &Waiter, capacity: Capacity) -> Place {
        Place::OnHold(self.in_flight(capacity) + self.before(waiter).number)
    }

    fn place_after(&self, before: Before, waiter: &Waiter, capacity: Capacity, now: Timestamp) -> Place {
        if let Some(most) = waiter.most.filter(|_| self.is_at_limit(waiter)) {
            return Place::AtLimit(most);
        }
        let number = self.in_flight(capacity) + before.number;
        Place::Behind(number, self.estimate(waiter, before.work, capacity, now))
    }

    /// When it starts; none before it was seen how long a worker is busy with a job.
    fn estimate(&self, waiter: &Waiter, work: Work, capacity: Capacity, now: Timestamp) -> Option<Estimate> {
        self.durations.last_free()?;
        let class = self.classes.get(&Reverse(waiter.priority));
        // Nobody passes one that is within its share, or at the front.
        let passing = class.filter(|class| !waiter.is_front && class.is_later(&waiter.uid));
        let passing = passing.map_or(0.0, super::class::Class::passing);
        let workers = f64::from(u32::try_from(capacity.workers).unwrap_or(u32::MAX));
        let at_velero = self.work_at_velero(capacity, now);
        let all = at_velero.and(work).over(workers);
        // Velero works on one backup of a namespace at a time, whatever the number of workers.
        let older = class.map_or(0, |class| class.older(&waiter.uid, &waiter.arrival));
        let own = self.durations.expected(Some(&waiter.uid));
        let own_before = older + self.of.get(&waiter.uid).copied().unwrap_or_default();
        let chain = own.mean * f64::from(u32::try_from(own_before).unwrap_or(u32::MAX));
        let longest = if workers > 1.0 { all.mean.max(chain) } else { all.mean };
        Some(Estimate::after(Work { mean: longest, ..all }, passing, now))
    }

    /// What Velero has and is not done with.
    fn work_at_velero(&self, capacity: Capacity, now: Timestamp) -> Work {
        let mut work = Work::default();
        let elapsed = |since: Option<Timestamp>| {
            since.map_or(0.0, |since| now.duration_since(since).as_secs_f64().max(0.0) * 1000.0)
        };
        let mut left = self.queued + self.on_the_way.len();
        for name in self.at_work.iter().take(capacity.workers) {
            let Some(job) = self.jobs.get(name) else { continue };
            work = work.and(Work::rest_of(&self.durations.expected(job.uid.as_ref()), elapsed(job.since)));
        }
        if self.at_work.is_empty() && left > 0 {
            // Velero begins with one as soon as another ends. If it does not, it is probably down.
            let since = self.unstarted_since.map(|since| Some(since).max(self.durations.last_free()));
            work = work.and(Work::rest_of(&self.durations.expected(None), elapsed(since.flatten())));
            left -= 1;
        }
        let usual = self.durations.expected(None);
        work.add_many(&usual, left);
        work
    }

    /// All that wait, and where they are. Going through all of them once costs as much as there are, with a logarithm.
    pub fn places(&self, capacity: Capacity, now: Timestamp) -> Vec<(&Waiter, Place)> {
        let next = self.next(capacity);
        let waiting = self.waiting.iter().filter(|(key, _)| Some(*key) != next);
        if self.waiting.len() > FEW {
            return waiting.map(|(_, waiter)| (waiter, self.behind(waiter, capacity, now))).collect();
        }
        let mut all = Vec::new();
        self.walk(|_, (_, key), before| {
            let waiter = self.waiting.get(key).filter(|_| Some(key) != next);
            all.extend(waiter.map(|waiter| (waiter, self.place_after(before, waiter, capacity, now))));
            ControlFlow::Continue(())
        });
        all
    }
}
