//! Start-time fair queueing over namespaces.
//!
//! Each namespace has a finish tag: the virtual time at which what it has used so far is paid for. A job starts at the
//! later of the virtual time and that tag, and moves the tag on by its worker seconds, divided by the namespace's weight.
//! The lowest start goes first, and moves the virtual time to it. So a namespace that was idle starts where everybody else
//! is: idleness saves nothing up. Who passes the lowest to keep a worker busy leaves the time where it is, within limits
//! (`Turns::time_after`).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};
use std::sync::Arc;

use indexset::BTreeSet as RankedSet;
use jiff::Timestamp;

use crate::Key;

/// The uid of a namespace.
pub type Uid = Arc<str>;

/// When a request was made, and which one it is.
pub type Arrival = (Option<Timestamp>, Key);

/// How much of what was counted is left when one more is: so the last fifty count.
const FADES: f64 = 0.98;

/// The namespaces of one priority.
#[derive(Clone, Debug, Default)]
pub struct Class {
    /// The virtual time: it never falls.
    time: u64,
    spaces: HashMap<Uid, Space>,
    /// Namespaces that wait and have paid for what they used, by their oldest request.
    ready: RankedSet<(Arrival, Uid)>,
    /// Namespaces that wait and have not, by their finish tag.
    later: BTreeSet<(u64, Arrival, Uid)>,
    /// Namespaces that do not wait, by their finish tag.
    idle: BTreeSet<(u64, Uid)>,
    passing: Passing,
    waiting: usize,
}

/// How much of Velero's time went to whom while others waited, in milliseconds that fade.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Passing {
    fresh: f64,
    all: f64,
}

impl Passing {
    fn note(&mut self, is_fresh: bool, millis: u64) {
        let millis = f64::from(u32::try_from(millis).unwrap_or(u32::MAX));
        self.fresh = self.fresh * FADES + if is_fresh { millis } else { 0.0 };
        self.all = self.all * FADES + millis;
    }

    fn share(&self) -> f64 {
        if self.all > 0.0 { self.fresh / self.all } else { 0.0 }
    }
}

/// Goes through all that wait in the order of their turns.
pub struct InTurn<'a> {
    /// The first of each namespace that is left, and where its others are.
    first: BinaryHeap<Reverse<(u64, &'a Arrival, usize)>>,
    waiting: Vec<(&'a Uid, u64, indexset::Iter<'a, Arrival>)>,
}

impl<'a> Iterator for InTurn<'a> {
    type Item = (u64, &'a Arrival, &'a Uid);

    fn next(&mut self) -> Option<Self::Item> {
        let Reverse((start, arrival, at)) = self.first.pop()?;
        let (uid, cost, rest) = self.waiting.get_mut(at)?;
        let next = rest.next();
        self.first.extend(next.map(|next| Reverse((start.saturating_add(*cost), next, at))));
        Some((start, arrival, uid))
    }
}

/// One namespace.
#[derive(Clone, Debug, Default)]
struct Space {
    /// The highest finish tag of its jobs that are over.
    finish: u64,
    /// The finish tags that jobs at Velero are expected to have, and the same in their order.
    running: BTreeMap<Arc<str>, u64>,
    finishes: BTreeSet<(u64, Arc<str>)>,
    waiting: RankedSet<Arrival>,
    /// What one of its jobs is expected to cost.
    cost: u64,
    /// The request with which it came while it had nothing waiting and owed nothing.
    fresh: Option<Arrival>,
    listed: Option<Listed>,
}

/// Which of the sets of a class a namespace is in, and with which key.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Listed {
    Ready(Arrival),
    Later(u64, Arrival),
    Idle(u64),
}

impl Space {
    fn finish(&self) -> u64 {
        self.finish_but("")
    }

    /// The finish tag without that of one job.
    fn finish_but(&self, job: &str) -> u64 {
        let last = self.finishes.iter().rev().find(|(_, name)| **name != *job);
        last.map_or(0, |(finish, _)| *finish).max(self.finish)
    }

    fn begin(&mut self, job: &str, finish: u64) {
        if !self.running.contains_key(job) {
            let name: Arc<str> = job.into();
            self.finishes.insert((finish, name.clone()));
            self.running.insert(name, finish);
        }
    }

    fn end(&mut self, job: &str, finish: u64) {
        if let Some((name, expected)) = self.running.remove_entry(job) {
            self.finishes.remove(&(expected, name));
        }
        self.finish = self.finish.max(finish);
    }
}

impl Class {
    /// A request waits, of a namespace whose jobs are expected to cost this much.
    pub fn ask(&mut self, uid: &Uid, arrival: Arrival, cost: u64) {
        let time = self.time;
        let space = self.spaces.entry(uid.clone()).or_default();
        space.cost = cost.max(1);
        if space.waiting.is_empty() && space.finish() <= time {
            space.fresh = Some(arrival.clone());
        }
        self.waiting += usize::from(space.waiting.insert(arrival));
        self.put(uid);
    }

    /// It waits no more.
    pub fn withdraw(&mut self, uid: &Uid, arrival: &Arrival) {
        let Some(space) = self.spaces.get_mut(uid) else { return };
        self.waiting -= usize::from(space.waiting.remove(arrival));
        self.put(uid);
    }

    /// The virtual time.
    pub fn time(&self) -> u64 {
        self.time
    }

    /// When the next job of a namespace starts, in virtual time.
    pub fn start(&self, uid: &Uid) -> u64 {
        self.start_of(uid, "")
    }

    /// When this job of a namespace starts, which may have been given its turn before.
    pub fn start_of(&self, uid: &Uid, job: &str) -> u64 {
        self.spaces.get(uid).map_or(0, |space| space.finish_but(job)).max(self.time)
    }

    /// The virtual time moves on to here.
    pub fn lift(&mut self, time: u64) {
        if time <= self.time {
            return;
        }
        self.time = time;
        while let Some((_, _, uid)) = self.later.first().filter(|(finish, ..)| *finish <= time).cloned() {
            self.put(&uid);
        }
        while let Some((_, uid)) = self.idle.first().filter(|(finish, _)| *finish <= time).cloned() {
            self.put(&uid);
        }
    }

    /// Velero has a job of a namespace, which is expected to be paid for at this time.
    pub fn begin(&mut self, uid: &Uid, job: &str, finish: u64) {
        let space = self.spaces.entry(uid.clone()).or_default();
        space.begin(job, finish);
        self.put(uid);
    }

    /// The job is over, and paid for at this time; none if it came to nothing.
    pub fn end(&mut self, uid: &Uid, job: &str, finish: Option<u64>) {
        if finish.is_none() && !self.spaces.contains_key(uid) {
            return;
        }
        let space = self.spaces.entry(uid.clone()).or_default();
        space.end(job, finish.unwrap_or(0));
        self.put(uid);
    }

    /// The requests that are first in their namespaces, in the order of their turns.
    pub fn heads(&self) -> impl Iterator<Item = (u64, &Arrival, &Uid)> {
        let ready = self.ready.iter().map(|(arrival, uid)| (self.time, arrival, uid));
        ready.chain(self.later.iter().map(|(start, arrival, uid)| (*start, arrival, uid)))
    }

    /// The virtual time, and the finish tags beyond it: all that is to be remembered.
    pub fn memory(&self) -> (u64, impl Iterator<Item = (&Uid, u64)>) {
        let all = self.spaces.iter().map(|(uid, space)| (uid, space.finish()));
        (self.time, all.filter(|(_, finish)| *finish > self.time))
    }

    /// How many requests wait.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// How many go before the first request of a namespace that owes nothing; none if it is not such a request.
    pub fn ready_before(&self, uid: &Uid, arrival: &Arrival) -> Option<usize> {
        let is_ready = !self.is_later(uid) && self.older(uid, arrival) == 0;
        is_ready.then(|| self.ready.rank(&(arrival.clone(), uid.clone())))
    }

    /// How many older requests of its namespace wait.
    pub fn older(&self, uid: &Uid, arrival: &Arrival) -> usize {
        self.spaces.get(uid).map_or(0, |space| space.waiting.rank(arrival))
    }

    /// When a request of a namespace starts in virtual time, if its jobs cost what is expected.
    pub fn foreseen_start(&self, uid: &Uid, arrival: &Arrival) -> u64 {
        let cost = self.spaces.get(uid).map_or(1, |space| space.cost);
        self.start(uid).saturating_add(cost.saturating_mul(wide(self.older(uid, arrival))))
    }

    /// All that wait in the order of their turns, if jobs cost what is expected and nobody else asks.
    pub fn in_turn(&self) -> InTurn<'_> {
        let mut waiting = Vec::new();
        let mut first = Vec::new();
        for (start, arrival, uid) in self.heads() {
            let Some(space) = self.spaces.get(uid) else { continue };
            let mut rest = space.waiting.iter();
            rest.next();
            first.push(Reverse((start, arrival, waiting.len())));
            waiting.push((uid, space.cost, rest));
        }
        InTurn { first: first.into(), waiting }
    }

    /// Whether a namespace waits until others have used as much as it has: then those who are yet to ask go before it.
    pub fn is_later(&self, uid: &Uid) -> bool {
        self.start(uid) > self.time
    }

    /// A request of a namespace is handed over, with which a worker is busy for so many milliseconds.
    pub fn hand_over(&mut self, uid: &Uid, arrival: &Arrival, millis: u64) {
        let is_fresh = self.spaces.get(uid).is_some_and(|space| space.fresh.as_ref() == Some(arrival));
        if !self.later.is_empty() {
            self.passing.note(is_fresh, millis);
        }
    }

    /// The share of Velero's time that goes to requests of namespaces that had nothing waiting when they asked.
    pub fn passing(&self) -> f64 {
        self.passing.share()
    }

    /// The share that was known before a restart.
    pub fn remember_passing(&mut self, share: f64) {
        if self.passing == Passing::default() {
            self.passing = Passing { fresh: share.clamp(0.0, 1.0), all: 1.0 };
        }
    }

    /// Puts a namespace where it belongs now. One that waits for nothing and owes nothing is forgotten.
    fn put(&mut self, uid: &Uid) {
        let Some(space) = self.spaces.get_mut(uid) else { return };
        let finish = space.finish();
        let listed = match space.waiting.first() {
            Some(arrival) if finish <= self.time => Some(Listed::Ready(arrival.clone())),
            Some(arrival) => Some(Listed::Later(finish, arrival.clone())),
            None if finish <= self.time && space.running.is_empty() => None,
            // What runs keeps a namespace known, whatever the time is.
            None => Some(Listed::Idle(if space.running.is_empty() { finish } else { u64::MAX })),
        };
        if space.listed == listed && listed.is_some() {
            return;
        }
        let left = std::mem::replace(&mut space.listed, listed.clone());
        if listed.is_none() {
            self.spaces.remove(uid);
        }
        match left {
            Some(Listed::Ready(arrival)) => _ = self.ready.remove(&(arrival, uid.clone())),
            Some(Listed::Later(finish, arrival)) => _ = self.later.remove(&(finish, arrival, uid.clone())),
            Some(Listed::Idle(finish)) => _ = self.idle.remove(&(finish, uid.clone())),
            None => {}
        }
        match listed {
            Some(Listed::Ready(arrival)) => _ = self.ready.insert((arrival, uid.clone())),
            Some(Listed::Later(finish, arrival)) => _ = self.later.insert((finish, arrival, uid.clone())),
            Some(Listed::Idle(finish)) => _ = self.idle.insert((finish, uid.clone())),
            None => {}
        }
    }
}

fn wide(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
