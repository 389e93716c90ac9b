//! Metrics of the cached objects.

use super::State;
use crate::last_good::as_seen_by_controller;
use crate::measure::Measures;

impl State {
    /// Totals over all requests. Reads each of them once: for a scrape, not for an event.
    pub fn measures(&self) -> Measures {
        let mut measures = Measures::default();
        let now = self.now();
        self.backups.all().for_each(|seen| {
            measures.backup(&seen.object, || as_seen_by_controller(self, &seen.object), now);
        });
        self.restores.all().for_each(|seen| measures.restore(&seen.object));
        self.locations.all().for_each(|seen| measures.location(&seen.object));
        self.downloads.all().for_each(|seen| measures.download(&seen.object));
        measures
    }

    /// Whether a namespace is known to be deleted; never while namespaces cannot be listed.
    pub fn is_gone(&self, namespace: &str) -> bool {
        !self.namespaces.is_empty() && self.namespaces.get("", namespace).is_none()
    }

    /// Whether a policy is loaded.
    pub fn policy_in_effect(&self) -> bool {
        self.policy("").is_some()
    }
}
