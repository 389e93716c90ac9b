//! Since when Velero has had backups in its own queue and none at work. Velero's objects do not say so, so this is kept in
//! memory: after a restart it counts from the first time they are seen.

use std::collections::{BTreeSet, HashSet};

use api::labels;
use api::velero::Backup;
use jiff::Timestamp;

use super::State;
use crate::ownership::annotation;

/// The phase of a backup that Velero refused before it began with it.
const REFUSED: &str = "FailedValidation";
/// The phase of a backup that Velero begins with next.
const READY: &str = "ReadyToStart";

/// Velero's own queue of backups.
#[derive(Clone, Debug, Default)]
pub(crate) struct Standstill {
    /// Those in Velero's queue, by name.
    queued: HashSet<String>,
    /// Those that a worker has, or will have next.
    at_work: HashSet<String>,
    /// Those that nacre made and Velero refused and would refuse again, with when they were made.
    refused: BTreeSet<(Option<Timestamp>, String)>,
    /// Those of them that were made ready again since Velero last began with another one.
    tried: HashSet<String>,
    /// Since when there are some in the queue and none at work.
    since: Option<Timestamp>,
}

impl Standstill {
    /// Since when Velero has had backups in its queue and none at work.
    pub(crate) const fn since(&self) -> Option<Timestamp> {
        self.since
    }

    /// The newest that Velero refused and that was not made ready again yet.
    pub(crate) fn untried(&self) -> Option<&str> {
        let mut newest_first = self.refused.iter().rev().map(|(_, name)| name.as_str());
        newest_first.find(|name| !self.tried.contains(*name))
    }

    /// How many were made ready again since Velero last began with another one.
    pub(crate) fn tries(&self) -> usize {
        self.tried.len()
    }

    fn note(&mut self, before: Option<&Backup>, after: Option<&Backup>, now: Timestamp) {
        let Some(velero) = after.or(before) else { return };
        let name = velero.metadata.name.clone().unwrap_or_default();
        let (was, is) = (before.map_or("", phase), after.map_or("", phase));
        let place =
            |velero: &Backup| (velero.metadata.creation_timestamp.as_ref().map(|time| time.0), name.clone());
        self.queued.remove(&name);
        self.at_work.remove(&name);
        if let Some(before) = before {
            self.refused.remove(&place(before));
        }
        match (is, after) {
            ("Queued", _) => drop(self.queued.insert(name.clone())),
            (READY | "InProgress", _) => drop(self.at_work.insert(name.clone())),
            (REFUSED, Some(after)) if is_refused_again(after) => drop(self.refused.insert(place(after))),
            _ => {}
        }
        if was == REFUSED && is == READY {
            self.tried.insert(name.clone());
        } else if after.is_none() {
            self.tried.remove(&name);
        } else if was == "Queued" && is != was {
            // Velero's queue moves.
            self.tried.clear();
            self.since = None;
        }
        let stands_still = !self.queued.is_empty() && self.at_work.is_empty();
        self.since = stands_still.then(|| self.since.unwrap_or(now));
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

/// Whether nacre made it, and Velero would refuse it again: by the errors that it wrote down. A backup out of a tenant's
/// storage can have the phase without an error, and would begin.
fn is_refused_again(velero: &Backup) -> bool {
    let errors = velero.status.as_ref().and_then(|status| status.validation_errors.as_ref());
    annotation(&velero.metadata, labels::NAB_NAMESPACE).is_some() && errors.is_some_and(|all| !all.is_empty())
}

/// Its phase; empty for what is being deleted, which Velero does not begin with.
fn phase(velero: &Backup) -> &str {
    let status = velero.status.as_ref().filter(|_| velero.metadata.deletion_timestamp.is_none());
    status.and_then(|status| status.phase.as_deref()).unwrap_or_default()
}
