//! What is switched off because nacre may not do it in this cluster, told once in the log and for as long as it lasts
//! in the readiness detail.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kube::core::Status;
use tracing::{info, warn};

/// What is switched off, and why.
#[derive(Debug, Default)]
pub struct Lacking(Mutex<BTreeMap<String, String>>);

impl Lacking {
    /// This does not work, for this reason. What is known already is not told again, though it may be for another
    /// object's sake.
    pub fn off(&self, what: &str, why: &str) {
        let mut lacking = self.lock();
        if !lacking.contains_key(what) {
            lacking.insert(what.to_owned(), why.to_owned());
            warn!("{what}: {why}");
        }
    }

    /// This works.
    pub fn on(&self, what: &str) {
        let mut lacking = self.lock();
        // Asked after every write, and nearly always there is nothing.
        if !lacking.is_empty() && lacking.remove(what).is_some() {
            info!("{what}: works by now");
        }
    }

    /// All of it, one to a line.
    pub fn told(&self) -> Vec<String> {
        self.lock().iter().map(|(what, why)| format!("{what}: {why}")).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        // A map that was being written to is still a map.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a right is missing, rather than room or a namespace's time: the API server answers all three alike.
pub(crate) fn is_missing_right(status: &Status) -> bool {
    status.code == 403 && status.message.contains(" is forbidden: User ")
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::{Lacking, is_missing_right};

    #[test]
    fn what_works_again_is_told_no_more() {
        let lacking = Lacking::default();
        lacking.off("Events", "not in shop");
        lacking.off("Events", "not in rival");
        assert_eq!(lacking.told(), ["Events: not in shop"]);
        lacking.on("Events");
        assert!(lacking.told().is_empty());
    }

    #[test]
    fn a_full_quota_is_not_a_missing_right() {
        let answer = |message: &str| Status::failure(message, "Forbidden").with_code(403);
        let right = "events.events.k8s.io is forbidden: User \"nacre\" cannot create resource \"events\"";
        assert!(is_missing_right(&answer(right)));
        assert!(!is_missing_right(&answer(
            "secrets \"a\" is forbidden: exceeded quota: few, requested: secrets=1"
        )));
    }
}
