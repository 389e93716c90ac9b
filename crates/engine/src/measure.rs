//! Measuring what is in the stores.

use planner::last_good::as_seen_by_controller;
use planner::measure::Measures;
use planner::view::View as _;

use crate::cluster::State;

impl State {
    /// What the requests in the cluster come to. Looks at each of them once: for a scrape, not for an event.
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

    /// Whether a namespace is known to be gone; never so while namespaces cannot be seen.
    pub fn is_gone(&self, namespace: &str) -> bool {
        !self.namespaces.is_empty() && self.namespaces.get("", namespace).is_none()
    }

    /// Whether there is a policy to decide by.
    pub fn policy_in_effect(&self) -> bool {
        self.policy("").is_some()
    }
}
