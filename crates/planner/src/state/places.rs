//! The backup requests of each namespace, as far as the limits of the namespace are concerned: which have a Velero
//! Backup, which of these are unfinished, and which wait, oldest first.
//!
//! Counting them again for each request would make the work grow with the square of what waits.

use std::collections::{BTreeSet, HashMap};
use std::ops::Bound::{Excluded, Unbounded};

use api::velero::Backup;
use api::{Kind, NonAdminBackup};
use jiff::Timestamp;

use super::State;
use crate::backup::{is_next, references};
use crate::queue::{Queued, Stage};

/// When a request was made, and its name: what orders those that wait.
pub(crate) type Age = (Option<Timestamp>, String);

/// The age of a request.
pub(crate) fn age(request: &NonAdminBackup) -> Age {
    let made = request.metadata.creation_timestamp.as_ref().map(|time| time.0);
    (made, request.metadata.name.clone().unwrap_or_default())
}

/// The requests of one namespace, by name. Whether a Velero Backup is really theirs is for the decision to say.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    /// Those that refer to a Velero Backup that exists.
    known: BTreeSet<String>,
    /// And is unfinished.
    active: BTreeSet<String>,
    /// Those that have none and may get one by themselves.
    waiting: BTreeSet<Age>,
}

/// The places of all namespaces.
pub(super) type AllPlaces = HashMap<String, Places>;

impl Places {
    /// Those that refer to a Velero Backup, unfinished or not.
    pub(crate) fn known(&self) -> impl Iterator<Item = &str> {
        self.known.iter().map(String::as_str)
    }

    /// Those that refer to an unfinished Velero Backup.
    pub(crate) fn active(&self) -> impl Iterator<Item = &str> {
        self.active.iter().map(String::as_str)
    }

    /// Those that wait, oldest first.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &str> {
        self.waiting.iter().map(|(_, name)| name.as_str())
    }

    /// Those that wait and are older, oldest first.
    pub(crate) fn older(&self, than: Age) -> impl Iterator<Item = &str> {
        self.waiting.range((Unbounded, Excluded(than))).map(|(_, name)| name.as_str())
    }

    fn is_empty(&self) -> bool {
        self.known.is_empty() && self.active.is_empty() && self.waiting.is_empty()
    }
}

impl State {
    /// The backup requests of a namespace, for its limits.
    pub(crate) fn places(&self, namespace: &str) -> Option<&Places> {
        self.places.get(namespace)
    }

    /// Notes where a request belongs now.
    pub(super) fn place_backup(&mut self, before: Option<&NonAdminBackup>, after: Option<&NonAdminBackup>) {
        let Some(object) = after.or(before) else { return };
        let namespace = object.metadata.namespace.clone().unwrap_or_default();
        let name = object.metadata.name.clone().unwrap_or_default();
        let stages: Vec<Stage> = after.map_or_else(Vec::new, |request| {
            let found = references(request).into_iter().filter_map(|name| self.admin::<Backup>(&name));
            found.map(|velero| velero.stage()).collect()
        });
        let places = self.places.entry(namespace.clone()).or_default();
        if let Some(before) = before {
            places.waiting.remove(&age(before));
        }
        if let Some(request) = after.filter(|request| is_next(request)) {
            places.waiting.insert(age(request));
        }
        put(&mut places.known, &name, !stages.is_empty());
        put(&mut places.active, &name, stages.iter().any(|stage| *stage != Stage::Finished));
        if places.is_empty() {
            self.places.remove(&namespace);
        }
    }

    /// A Velero Backup came, changed or went: so did the place of each request that refers to it.
    pub(super) fn place_referring(&mut self, velero: &Backup) {
        let name = velero.metadata.name.as_deref().unwrap_or_default();
        for key in self.keys_of(Kind::NonAdminBackup, name) {
            let Some(request) = self.get::<NonAdminBackup>(&key.namespace, &key.name) else {
                continue;
            };
            self.place_backup(Some(&request), Some(&request));
        }
    }
}

fn put(set: &mut BTreeSet<String>, name: &str, is_in: bool) {
    if is_in {
        set.insert(name.to_owned());
    } else {
        set.remove(name);
    }
}
