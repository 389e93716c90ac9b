//! Metrics of the cached objects.

use super::State;
use crate::last_good::{as_seen_by_controller, why_not_good};
use crate::measure::Measures;
use api::NonAdminBackup;

impl State {
    /// Totals over all requests. Of the backups, few are read: the newest of each namespace until one is good.
    pub fn measures(&self) -> Measures {
        let measures = self.totals.measures(|namespace, name| {
            let backup = self.get::<NonAdminBackup>(namespace, name);
            backup.is_some_and(|backup| {
                let storage = as_seen_by_controller(self, &backup);
                why_not_good(&backup, &storage, self.now()).is_none()
            })
        });
        Measures { usage: self.all_usage(), idle_since: self.standstill().since(), ..measures }
    }

    /// Whether a namespace is known to be deleted; never while namespaces cannot be listed.
    pub fn is_gone(&self, namespace: &str) -> bool {
        !self.namespaces.is_empty() && !self.namespaces.contains("", namespace)
    }

    /// Whether a policy is loaded.
    pub fn policy_in_effect(&self) -> bool {
        self.policy("").is_some()
    }
}
