//! Whose turn it is: the order in which requests are handed over to Velero.
//!
//! Velero works in order of arrival. nacre keeps Velero's own queue short, holds the rest back, and hands over by
//! start-time fair queueing over namespaces ([`class`]), separately for backups and restores. What a job started at is
//! written onto its Velero object ([`tag`]), so that the order survives a restart; what would be lost when Velero objects
//! are deleted is in a ConfigMap ([`ledger`]).
//!
//! Here is no cluster: `state/turns.rs` says who waits and what Velero has.

mod capacity;
mod class;
mod durations;
mod estimate;
mod forecast;
mod ledger;
mod next;
mod shown;
mod tag;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use jiff::Timestamp;
use kube::core::ObjectMeta;

use crate::Key;

pub use capacity::Capacity;
pub use class::{Arrival, Class, Uid};
pub use durations::{Durations, Spread, Took};
pub use estimate::Estimate;
use forecast::Forecast;
pub use ledger::LEDGER;
pub use shown::off;
pub(crate) use shown::show;
pub use tag::{NoTag, TAG, Tag, WEIGHT, cost};

/// A request that waits for its turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiter {
    /// Its namespace.
    pub uid: Uid,
    /// When it came.
    pub arrival: Arrival,
    /// The priority of its namespace.
    pub priority: u64,
    /// The weight of its namespace.
    pub weight: u64,
    /// An administrator moved it to the front.
    pub is_front: bool,
    /// How many jobs of its namespace Velero may have that are not over.
    pub most: Option<usize>,
}

/// A job that Velero has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The namespace it is for; none if an administrator made it.
    pub uid: Option<Uid>,
    /// The request it was made for, if that is there and this can be believed.
    pub request: Option<Key>,
    /// Its turn, if nacre gave it one and this can be believed.
    pub tag: Option<Tag>,
    /// Whether only administrators, Velero and nacre can have written it: then its start moves the virtual time, and how
    /// long it took counts for all.
    pub is_trusted: bool,
    /// How far Velero is with it.
    pub progress: Progress,
    /// How long a worker was busy with it, if none is any more and that is known.
    pub worked: Option<Took>,
    /// When Velero started it, or else when Velero was given it.
    pub since: Option<Timestamp>,
}

/// How far Velero is with a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Velero has not started it.
    Queued,
    /// A worker is busy with it.
    Running,
    /// No worker is busy with it, and it is not over.
    Finalizing,
    /// It is over; without a time if Velero never began with it.
    Ended(Option<Took>),
}

impl Progress {
    /// Whether a worker is yet to be done with it.
    fn is_at_work(self) -> bool {
        matches!(self, Self::Queued | Self::Running)
    }

    fn is_over(self) -> bool {
        matches!(self, Self::Ended(_))
    }
}

/// What becomes of the turn of a request, by a decision about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It is taken: the Velero object of this name is made, with this tag.
    Taken(String, Tag),
    /// It has to wait for its turn.
    Waits,
}

/// Where a request that Velero does not have is in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It is its turn.
    Next(Tag),
    /// So many go before it, and then it starts, if that can be foreseen.
    Behind(usize, Option<Estimate>),
    /// Its namespace has as many that are not over as it may have.
    AtLimit(usize),
    /// An administrator holds it back. If it was released, so many would go before it.
    OnHold(usize),
}

impl Place {
    /// The position to show.
    pub fn position(self) -> i64 {
        let ahead = match self {
            Self::Next(_) => 0,
            Self::AtLimit(ahead) | Self::Behind(ahead, _) => ahead,
            // Clients take the first position for the next one to start, which this one is not.
            Self::OnHold(ahead) => ahead.max(1),
        };
        i64::try_from(ahead).unwrap_or(i64::MAX - 1) + 1
    }
}

/// Writes the tag onto the Velero object that is handed over. Returns its name.
pub(crate) fn stamp(velero: &mut ObjectMeta, tag: Tag) -> String {
    velero.annotations.get_or_insert_default().insert(TAG.to_owned(), tag.to_string());
    velero.name.clone().unwrap_or_default()
}

/// One more or one less of a namespace.
fn add(numbers: &mut HashMap<Uid, usize>, uid: Option<&Uid>, comes: bool) {
    let Some(uid) = uid else { return };
    let number = numbers.entry(uid.clone()).or_default();
    *number = if comes { *number + 1 } else { number.saturating_sub(1) };
    if *number == 0 {
        numbers.remove(uid);
    }
}

/// So many priorities are learned from what a tenant could have forged, and written down.
const CLASSES: usize = 32;

/// After so many jobs, the number of workers is what was seen since.
const FORGETS_WORKERS: usize = 20;

/// The turns of one kind.
#[derive(Clone, Debug, Default)]
pub struct Turns {
    classes: BTreeMap<Reverse<u64>, Class>,
    waiting: HashMap<Key, Waiter>,
    /// Those that were decided about and did not want a turn, though they look as if they waited for one: they do so again
    /// when a decision says it. The writes of a refusal come one after the other.
    declined: HashSet<Key>,
    /// Those that an administrator moved to the front.
    front: BTreeSet<Arrival>,
    /// What Velero has and is not done with, by name.
    jobs: HashMap<String, AtVelero>,
    queued: usize,
    running: usize,
    /// Since when Velero has one that it has not started.
    unstarted_since: Option<Timestamp>,
    /// The names of those that run and that nobody can have forged.
    at_work: HashSet<String>,
    /// The most of these that ran at a time.
    workers: usize,
    /// The same since the number was last looked at, and how many ended since while Velero had enough to do for all workers.
    lately: (usize, usize),
    /// How many of those are of each namespace.
    of: HashMap<Uid, usize>,
    /// How many of each namespace are not over, though no worker may be busy with them.
    unfinished: HashMap<Uid, usize>,
    /// Turns that were taken and whose Velero object was not seen yet, by request.
    on_the_way: BTreeMap<Key, (String, Waiter)>,
    /// Requests that Velero was given and that do not show it yet.
    given: HashSet<Key>,
    durations: Durations,
    forecast: Forecast,
    changes: u64,
}

/// A job that Velero is not done with.
#[derive(Clone, Debug)]
struct AtVelero {
    uid: Option<Uid>,
    progress: Progress,
    since: Option<Timestamp>,
    /// nacre, Velero or an administrator made it: it was seen before somebody could have forged it.
    is_trusted: bool,
}

impl Turns {
    /// A request looks as if it waited for its turn, or does so no more.
    pub fn note_request(&mut self, key: &Key, waiter: Option<Waiter>) {
        if waiter.is_none() {
            self.declined.remove(key);
        }
        if !self.declined.contains(key) {
            self.put(key, waiter);
        }
    }

    fn put(&mut self, key: &Key, waiter: Option<Waiter>) {
        if self.waiting.get(key) == waiter.as_ref() {
            return;
        }
        let was = self.waiting.len();
        self.replace(key, waiter);
        if self.forecast.note(key, self.waiting.len() >= was, self.waiting.len()) {
            self.renew_forecast();
        }
    }

    fn replace(&mut self, key: &Key, waiter: Option<Waiter>) {
        if let Some(old) = self.waiting.remove(key) {
            self.changes += 1;
            if old.is_front {
                self.front.remove(&old.arrival);
            } else if let Some(class) = self.classes.get_mut(&Reverse(old.priority)) {
                class.withdraw(&old.uid, &old.arrival);
            }
        }
        let Some(new) = waiter else { return };
        self.changes += 1;
        if new.is_front {
            self.front.insert(new.arrival.clone());
        } else {
            let expected = cost(self.durations.expected_charge(&new.uid), new.weight);
            self.class(new.priority).ask(&new.uid, new.arrival.clone(), expected);
        }
        self.waiting.insert(key.clone(), new);
    }

    /// A Velero object changed; none if it is gone.
    pub fn note_job(&mut self, name: &str, job: Option<Job>) {
        let arrived = self.on_the_way.extract_if(.., |_, (made, _)| made == name);
        let request = job.as_ref().and_then(|job| job.request.as_ref());
        self.given.extend(arrived.map(|(key, _)| key).filter(|key| Some(key) == request));
        let has_enough = self.of.len() >= self.workers;
        let before = self.jobs.remove(name);
        if let Some(AtVelero { uid, progress, .. }) = &before {
            self.count(uid.as_ref(), *progress, false);
            add(&mut self.unfinished, uid.as_ref(), false);
        }
        let Some(Job { uid, tag, is_trusted, progress, worked, since, .. }) = job else {
            self.at_work.remove(name);
            self.unstarted_since = self.unstarted_since.filter(|_| self.queued > 0);
            self.changes += u64::from(before.is_some());
            return;
        };
        if before.as_ref().map(|before| before.progress) != Some(progress) {
            self.changes += 1;
        }
        // What was not over when a worker was done with it, was noted then.
        let is_new = match &before {
            Some(before) => before.progress.is_at_work(),
            None => progress.is_over(),
        };
        if let Some(worked) = worked.filter(|_| is_new && !progress.is_at_work()) {
            self.durations.note_work(uid.as_ref(), worked, is_trusted);
        }
        let was_at_work = self.at_work.remove(name);
        let is_real = is_trusted || before.is_some_and(|before| before.is_trusted);
        if is_real && progress == Progress::Running {
            self.at_work.insert(name.to_owned());
            self.lately.0 = self.lately.0.max(self.at_work.len());
            self.workers = self.workers.max(self.at_work.len());
        } else if was_at_work && has_enough {
            self.forget_workers();
        }
        if progress.is_at_work() {
            self.count(uid.as_ref(), progress, true);
        }
        self.unstarted_since = self.unstarted_since.or(since).filter(|_| self.queued > 0);
        if !progress.is_over() {
            add(&mut self.unfinished, uid.as_ref(), true);
            self.jobs
                .insert(name.to_owned(), AtVelero { uid: uid.clone(), progress, since, is_trusted: is_real });
        }
        if let Progress::Ended(Some(took)) = progress {
            self.durations.note_end(uid.as_ref(), took, is_trusted);
        }
        let (Some(uid), Some(tag)) = (uid, tag) else { return };
        // Whoever forges tags makes no end of priorities.
        let is_known = self.classes.len() < CLASSES || self.classes.contains_key(&Reverse(tag.priority));
        if !is_trusted && !is_known {
            return;
        }
        let class = self.class(tag.priority);
        match progress {
            // One that never started costs the least that one can.
            Progress::Ended(took) => {
                class.end(&uid, name, Some(tag.finish(took.map_or(0, |(_, millis)| millis))));
            }
            _ => class.begin(&uid, name, tag.finish(tag.charged)),
        }
        if is_trusted {
            class.lift(tag.time);
        }
    }

    /// One has ended while Velero had jobs of as many namespaces as there are workers. If it worked on fewer at a time for a
    /// while, it has fewer workers than it had.
    fn forget_workers(&mut self) {
        self.lately.1 += 1;
        if self.lately.1 >= FORGETS_WORKERS {
            self.workers = self.lately.0;
            self.lately = (self.at_work.len(), 0);
        }
    }

    fn count(&mut self, uid: Option<&Uid>, progress: Progress, comes: bool) {
        let number = match progress {
            Progress::Queued => &mut self.queued,
            Progress::Running => &mut self.running,
            Progress::Finalizing | Progress::Ended(_) => return,
        };
        *number = if comes { *number + 1 } else { number.saturating_sub(1) };
        add(&mut self.of, uid, comes);
    }

    /// A decision about a request was made. What it does not take, it gives up.
    pub fn decided(&mut self, key: &Key, turn: Option<&Turn>, waiter: Option<Waiter>) {
        let wanted_one = self.waiting.contains_key(key) || self.on_the_way.contains_key(key);
        if turn.is_some() {
            self.declined.remove(key);
        } else if wanted_one {
            self.declined.insert(key.clone());
        }
        if let Some((name, left)) = self.on_the_way.remove(key) {
            // Nothing came of it, or its Velero object would have been seen.
            self.changes += 1;
            self.class(left.priority).end(&left.uid, &name, None);
        }
        match turn {
            Some(Turn::Taken(name, tag)) => {
                if let Some(waiter) = waiter.as_ref().filter(|waiter| !waiter.is_front) {
                    let work = self.durations.expected_work(&waiter.uid);
                    self.class(tag.priority).hand_over(&waiter.uid, &waiter.arrival, work);
                }
                self.put(key, None);
                let Some(waiter) = waiter else { return };
                let class = self.class(tag.priority);
                class.lift(tag.time);
                class.begin(&waiter.uid, name, tag.finish(tag.charged));
                self.changes += 1;
                self.on_the_way.insert(key.clone(), (name.clone(), waiter));
            }
            Some(Turn::Waits) => self.put(key, waiter),
            None => self.put(key, None),
        }
    }

    /// Whether a request was given its turn, and its Velero object was not seen yet.
    pub fn is_on_the_way(&self, key: &Key) -> bool {
        self.on_the_way.contains_key(key)
    }

    /// Whether Velero was given a request that does not show it yet. It is not given it again, also if the Velero object is
    /// gone by now.
    pub fn was_given(&self, key: &Key) -> bool {
        self.given.contains(key)
    }

    /// Velero was given a request that does not show it, and its Velero object is gone.
    pub fn note_given(&mut self, key: Key) {
        self.given.insert(key);
    }

    /// A request shows that Velero was given it, or is gone.
    pub fn note_shown(&mut self, key: &Key) {
        self.given.remove(key);
    }

    /// Whether a request waits for its turn.
    pub fn waits(&self, key: &Key) -> bool {
        self.waiting.contains_key(key)
    }

    /// All that wait.
    pub fn waiting(&self) -> impl Iterator<Item = &Waiter> {
        self.waiting.values()
    }

    /// How many wait.
    pub fn number_waiting(&self) -> usize {
        self.waiting.len()
    }

    /// How often anything changed so far.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    fn class(&mut self, priority: u64) -> &mut Class {
        self.classes.entry(Reverse(priority)).or_default()
    }
}

#[cfg(test)]
mod day;
#[cfg(test)]
mod tests;
