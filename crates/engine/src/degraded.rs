//! Features that are disabled because permissions are missing. Each is logged once and listed in the readiness details.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kube::core::Status;
use tracing::{info, warn};

/// Disabled features, with the reason.
#[derive(Debug, Default)]
pub struct Degraded(Mutex<BTreeMap<String, String>>);

impl Degraded {
    /// Marks a feature as disabled. It is logged only the first time.
    pub fn disable(&self, what: &str, why: &str) {
        let mut degraded = self.lock();
        if !degraded.contains_key(what) {
            degraded.insert(what.to_owned(), why.to_owned());
            warn!("{what}: {why}");
        }
    }

    /// Marks a feature as working.
    pub fn enable(&self, what: &str) {
        let mut degraded = self.lock();
        // Called after every write; nearly always empty.
        if !degraded.is_empty() && degraded.remove(what).is_some() {
            info!("{what}: works again");
        }
    }

    /// One line per disabled feature.
    pub fn lines(&self) -> Vec<String> {
        self.lock().iter().map(|(what, why)| format!("{what}: {why}")).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        // A map that was being written to is still a map.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a 403 means a missing permission, and not an exceeded quota or a namespace being deleted.
pub(crate) fn is_missing_permission(status: &Status) -> bool {
    status.code == 403 && status.message.contains(" is forbidden: User ")
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::{Degraded, is_missing_permission};

    #[test]
    fn what_works_again_is_told_no_more() {
        let degraded = Degraded::default();
        degraded.disable("Events", "not in shop");
        degraded.disable("Events", "not in rival");
        assert_eq!(degraded.lines(), ["Events: not in shop"]);
        degraded.enable("Events");
        assert!(degraded.lines().is_empty());
    }

    #[test]
    fn a_full_quota_is_not_a_missing_right() {
        let answer = |message: &str| Status::failure(message, "Forbidden").with_code(403);
        let right = "events.events.k8s.io is forbidden: User \"nacre\" cannot create resource \"events\"";
        assert!(is_missing_permission(&answer(right)));
        assert!(!is_missing_permission(&answer(
            "secrets \"a\" is forbidden: exceeded quota: few, requested: secrets=1"
        )));
    }
}
