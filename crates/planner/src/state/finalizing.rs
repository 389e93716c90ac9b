//! Since when Velero has been finishing which Restores. Velero's objects do not say so, so this is kept in memory: after
//! a restart it counts from the first time the object is seen.

use std::collections::HashMap;

use api::velero::Restore;
use jiff::Timestamp;

use super::State;

/// The Velero Restores that Velero is finishing. It finishes one at a time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Finalizing {
    /// The uid of each, and when it was first seen so, by name.
    restores: HashMap<String, (Option<String>, Timestamp)>,
    /// When the last one was finished.
    last_finished: Option<Timestamp>,
}

impl Finalizing {
    /// The names, and since when.
    pub(crate) fn restores(&self) -> impl Iterator<Item = (&str, Timestamp)> {
        self.restores.iter().map(|(name, (_, since))| (name.as_str(), *since))
    }

    /// When the last one was finished.
    pub(crate) const fn last_finished(&self) -> Option<Timestamp> {
        self.last_finished
    }
}

impl State {
    /// The Velero Restores that Velero is finishing.
    pub(crate) const fn finalizing(&self) -> &Finalizing {
        &self.finalizing
    }

    pub(super) fn note_finalizing(&mut self, before: Option<&Restore>, after: Option<&Restore>) {
        let Some(name) = after.or(before).and_then(|velero| velero.metadata.name.as_ref()) else { return };
        let last = self.finalizing.restores.remove(name);
        if let Some(velero) = after.filter(|velero| is_finalizing(velero)) {
            let uid = velero.metadata.uid.clone();
            let since = last.filter(|(last, _)| *last == uid).map_or(self.now, |(_, since)| since);
            self.finalizing.restores.insert(name.clone(), (uid, since));
        } else if last.is_some() {
            self.finalizing.last_finished = Some(self.now);
        }
    }
}

/// Everything is restored, volumes included, and Velero does what is left.
fn is_finalizing(velero: &Restore) -> bool {
    let status = velero.status.as_ref();
    status.and_then(|status| status.phase.as_deref()).is_some_and(|phase| phase.starts_with("Finalizing"))
}
