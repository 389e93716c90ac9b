//! Since when Velero has had backups in its own queue and works on none. Velero's objects do not say so, so this is kept in
//! memory: after a restart it counts from the first time they are seen.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};

use api::labels;
use api::velero::Backup;
use jiff::Timestamp;

use super::State;
use crate::ownership::annotation;

/// The phase of a backup that Velero refused before it began with it.
pub(crate) const REFUSED: &str = "FailedValidation";
/// The phase of a backup that Velero begins with next.
pub(crate) const READY: &str = "ReadyToStart";
/// The phase of a backup that waits in Velero's queue.
const QUEUED: &str = "Queued";
/// The phase of a backup that Velero puts into its queue, at the end.
pub(crate) const NEW: &str = "New";
/// The phase of a backup that a worker has.
const RUNNING: &str = "InProgress";

/// So many names of backups that are gone are remembered, the newest ones.
const REMEMBERED: usize = 64;

/// Velero's own queue of backups.
#[derive(Clone, Debug, Default)]
pub(crate) struct Standstill {
    /// Those in Velero's queue, by name.
    queued: HashSet<String>,
    /// Those of them that nacre made, with when that was.
    own: BTreeSet<(Option<Timestamp>, String)>,
    /// Those that a worker has.
    running: HashSet<String>,
    /// Those that Velero begins with next, with when they were last written.
    ready: BTreeMap<String, Ready>,
    /// Those that nacre made and Velero refused and would refuse again, with when they were made.
    refused: BTreeSet<(Option<Timestamp>, String)>,
    /// Those that were deleted after Velero refused them, or before it began with them. The last one comes last.
    gone: VecDeque<String>,
    /// Those that stand in for one that is gone.
    stand_ins: BTreeSet<String>,
    /// Those that were made ready again since Velero last began with another one.
    tried: HashSet<String>,
    /// When the last one was.
    last_try: Option<Timestamp>,
    /// Since when there are some in the queue and none at work.
    since: Option<Timestamp>,
    /// One of them was queued again since.
    is_nudged: bool,
}

#[derive(Clone, Copy, Debug)]
struct Ready {
    since: Timestamp,
    is_ours: bool,
}

impl Standstill {
    /// Since when Velero has had backups in its queue and worked on none.
    pub(crate) const fn since(&self) -> Option<Timestamp> {
        self.since
    }

    /// Since when nobody, Velero or nacre, has done anything about it.
    pub(crate) fn untouched_since(&self) -> Option<Timestamp> {
        self.since.map(|since| self.last_try.map_or(since, |tried| tried.max(since)))
    }

    /// Since when Velero has begun none of those in its queue, where nobody has done anything about it, and the last one that
    /// nacre made: when that is queued again, the order stays the same.
    pub(crate) fn paused(&self) -> Option<(Timestamp, &str)> {
        let since = self.since.filter(|_| self.ready.is_empty() && !self.is_nudged)?;
        Some((since, &self.own.last()?.1))
    }

    /// One of nacre's that Velero should have begun with, and when it was last written.
    pub(crate) fn overlooked(&self) -> Option<(&str, Timestamp)> {
        let ours = self.ready.iter().filter(|(_, ready)| ready.is_ours);
        ours.map(|(name, ready)| (name.as_str(), ready.since)).min_by_key(|(_, since)| *since)
    }

    /// The newest that Velero refused and that was not made ready again yet.
    pub(crate) fn untried(&self) -> Option<&str> {
        let mut newest_first = self.refused.iter().rev().map(|(_, name)| name.as_str());
        newest_first.find(|name| !self.tried.contains(*name))
    }

    /// The newest that is gone and that none stood in for yet.
    pub(crate) fn untried_gone(&self) -> Option<&str> {
        self.gone.iter().rev().map(String::as_str).find(|name| !self.tried.contains(*name))
    }

    /// How many were made ready again since Velero last began with another one.
    pub(crate) fn tries(&self) -> usize {
        self.tried.len()
    }

    /// One that stands in for another and is of no use any more.
    pub(crate) fn spent_stand_in(&self) -> Option<&str> {
        let is_of_use = |name: &String| self.since.is_some() && !self.tried.contains(name);
        let mut stand_ins = self.stand_ins.iter().filter(|name| !self.ready.contains_key(*name));
        stand_ins.find(|name| !is_of_use(name)).map(String::as_str)
    }

    fn note(&mut self, before: Option<&Backup>, after: Option<&Backup>, now: Timestamp) {
        let Some(velero) = after.or(before) else { return };
        let name = velero.metadata.name.clone().unwrap_or_default();
        let (was, is) = (before.map_or("", phase), after.map_or("", phase));
        self.forget(&name, before);
        let ours = is_nacres(velero);
        // One that is queued again is in the queue meanwhile.
        let is_nudged = was == QUEUED && is == NEW;
        match (is, after) {
            (QUEUED | NEW, Some(after)) if is == QUEUED || is_nudged => {
                self.queued.insert(name.clone());
                self.own.extend(ours.then(|| place(after)));
            }
            (RUNNING, _) => drop(self.running.insert(name.clone())),
            (READY, _) => drop(self.ready.insert(name.clone(), Ready { since: now, is_ours: ours })),
            (REFUSED, Some(after)) if is_refused_again(after) => drop(self.refused.insert(place(after))),
            _ => {}
        }
        match after {
            Some(after) if is_stand_in(after) => drop(self.stand_ins.insert(name.clone())),
            None if ours && matches!(was, READY | REFUSED) && !self.tried.contains(&name) => {
                self.remember(&name);
            }
            _ => {}
        }
        if was == REFUSED && is == READY {
            self.gone.retain(|gone| *gone != name);
            self.tried.insert(name);
            self.last_try = Some(now);
        } else if was == QUEUED && matches!(is, READY | RUNNING) {
            // Velero's queue moves.
            self.tried.clear();
            self.since = None;
            self.is_nudged = false;
        }
        self.is_nudged |= is_nudged;
        let stands_still = self.running.is_empty() && !(self.queued.is_empty() && self.ready.is_empty());
        self.since = stands_still.then(|| self.since.unwrap_or(now));
        self.is_nudged &= self.since.is_some();
    }

    fn forget(&mut self, name: &str, before: Option<&Backup>) {
        self.queued.remove(name);
        self.running.remove(name);
        self.ready.remove(name);
        self.stand_ins.remove(name);
        if let Some(before) = before {
            self.refused.remove(&place(before));
            self.own.remove(&place(before));
        }
    }

    fn remember(&mut self, name: &str) {
        if self.gone.len() == REMEMBERED {
            self.gone.pop_front();
        }
        self.gone.push_back(name.to_owned());
    }
}

impl State {
    /// Velero's own queue of backups.
    pub(crate) const fn standstill(&self) -> &Standstill {
        &self.standstill
    }

    pub(super) fn note_standstill(&mut self, before: Option<&Backup>, after: Option<&Backup>) {
        self.standstill.note(before, after, self.now);
    }
}

fn place(velero: &Backup) -> (Option<Timestamp>, String) {
    let name = velero.metadata.name.clone().unwrap_or_default();
    (velero.metadata.creation_timestamp.as_ref().map(|time| time.0), name)
}

/// Whether it stands in for a backup that is gone. One out of a bucket can say so too; it is worth nothing in these phases.
fn is_stand_in(velero: &Backup) -> bool {
    annotation(&velero.metadata, labels::STANDS_IN).is_some() && matches!(phase(velero), REFUSED | READY)
}

fn is_nacres(velero: &Backup) -> bool {
    annotation(&velero.metadata, labels::NAB_NAMESPACE).is_some() || is_stand_in(velero)
}

/// Whether nacre made it, and Velero would refuse it again: by the errors that it wrote down. A backup out of a tenant's
/// storage can have the phase without an error, and would begin.
fn is_refused_again(velero: &Backup) -> bool {
    let errors = velero.status.as_ref().and_then(|status| status.validation_errors.as_ref());
    is_nacres(velero) && errors.is_some_and(|all| !all.is_empty())
}

/// Its phase; empty for what is being deleted, which Velero does not begin with.
fn phase(velero: &Backup) -> &str {
    let status = velero.status.as_ref().filter(|_| velero.metadata.deletion_timestamp.is_none());
    status.and_then(|status| status.phase.as_deref()).unwrap_or_default()
}
