//! Writes that the API server rejected, for the next decision to report.
//!
//! Of a failed plan only this is remembered. The next decision reports it in a condition and retries later. It is
//! cleared once a whole plan succeeds. It is not stored: after a restart the next retry finds out again.

use std::sync::Arc;
use std::time::Duration;

use api::{Kind, condition};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::Key;
use crate::state::State;

/// Minimum retry delay. Permissions, quotas and webhooks are not watched, so only a retry notices a change.
const MIN_RETRY: Duration = Duration::from_secs(30);
/// Maximum retry delay.
const MAX_RETRY: Duration = Duration::from_mins(5);
/// How often in a row a transient error must occur before it is reported: about three seconds of retries.
const PERSISTENT_AFTER: u32 = 5;

/// The delay before the next retry: as long as the error has lasted so far, within the bounds.
pub(crate) fn retry_after(since: Option<Timestamp>, now: Timestamp) -> Duration {
    since.map_or(MIN_RETRY, |since| now.duration_since(since).unsigned_abs().clamp(MIN_RETRY, MAX_RETRY))
}

/// The rejected write of an object, if it persists. Transient errors are retried a few times before they are reported.
pub(crate) fn persistent(view: &State, key: &Key) -> Option<Arc<RejectedWrite>> {
    view.rejected_write(key)
        .filter(|rejected_write| !rejected_write.is_transient() || rejected_write.times >= PERSISTENT_AFTER)
}

/// Since when a condition has been False.
pub(crate) fn since(conditions: Option<&[Condition]>, type_: &str) -> Option<Timestamp> {
    let reported = condition::get(conditions?, type_).filter(|reported| reported.status == "False")?;
    Some(reported.last_transition_time.0)
}

/// How the API server's message begins if a value is not in an enum of the CRD.
const UNKNOWN: &str = "Unsupported value: ";

/// A write that the API server rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedWrite {
    /// The kind that was written.
    pub kind: Kind,
    /// Whether the status was written.
    pub of_status: bool,
    /// The HTTP status code.
    pub code: u16,
    /// The API server's message. It may contain names that a tenant must not see.
    pub message: String,
    /// How often in a row it was rejected.
    pub times: u32,
}

impl RejectedWrite {
    /// Counts on from the previous rejected write, if it is the same.
    #[must_use]
    pub fn after(self, before: Option<&Self>) -> Self {
        let same = |before: &&Self| {
            (before.kind, before.of_status, before.is_transient())
                == (self.kind, self.of_status, self.is_transient())
        };
        let times = before.filter(same).map_or(1, |before| before.times.saturating_add(1));
        Self { times, ..self }
    }

    /// Whether the error is transient (401 or 5xx): it says nothing about the object that was written.
    pub fn is_transient(&self) -> bool {
        self.code == 401 || self.code >= 500
    }

    /// Whether the API server rejects a status of this kind with this Velero phase. An older CRD may not know a newer
    /// phase and names it in its message. For any other message, Velero's part is left out to save the rest of the
    /// status.
    pub(crate) fn refuses_status(&self, kind: Kind, phase: Option<&str>) -> bool {
        let this = phase.is_some_and(|phase| self.message.contains(&format!("{UNKNOWN}{phase:?}")));
        let fits = self.kind == kind && self.of_status && self.code != 403;
        fits && (this || !self.names_unknown_value())
    }

    /// Whether the API server's message names an unknown enum value.
    pub(crate) fn names_unknown_value(&self) -> bool {
        self.message.contains(UNKNOWN)
    }

    /// The reason without names that a tenant must not see, as the end of a sentence.
    pub(crate) fn why(&self) -> String {
        match self.code {
            403 if self.message.contains("exceeded quota") => {
                "a quota of the administrators' is used up; ask them to raise it".to_owned()
            }
            403 => "nacre is not allowed to; ask the administrators".to_owned(),
            // The API server quotes invalid values, which must not happen for a Secret.
            422 if self.kind != Kind::Secret => {
                let words: String = self.message.chars().take(300).collect();
                format!("the API server finds it invalid: {words}")
            }
            code => format!("the API server answered {code}; ask the administrators"),
        }
    }
}

#[cfg(test)]
mod tests {
    use api::Kind;
    use api::condition::{self, Finding};
    use jiff::Timestamp;

    use super::{RejectedWrite, retry_after, since};

    #[test]
    fn it_is_tried_again_as_long_after_as_it_has_lasted() {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let minutes = |many| start + jiff::SignedDuration::from_mins(many);
        let reported = |status: bool| {
            let finding = Finding { type_: "Accepted", status: status.into(), reason: "Why", message: "" };
            let mut conditions = Vec::new();
            condition::set(&mut conditions, finding, None, start);
            conditions
        };
        let (is_not, is) = (reported(false), reported(true));
        let wait = |conditions: Option<&[_]>, now| retry_after(since(conditions, "Accepted"), now).as_secs();
        assert_eq!(wait(None, minutes(2)), 30);
        assert_eq!(wait(Some(&is), minutes(2)), 30);
        assert_eq!(wait(Some(&is_not), start), 30);
        assert_eq!(wait(Some(&is_not), minutes(2)), 120);
        assert_eq!(wait(Some(&is_not), minutes(60)), 300);
    }

    #[test]
    fn only_a_refused_status_says_that_less_is_to_be_shown() {
        let refused = |kind, of_status, code, message: &str| {
            let rejected_write =
                RejectedWrite { kind, of_status, code, message: message.to_owned(), times: 1 };
            rejected_write.refuses_status(Kind::NonAdminBackup, Some("Queued"))
        };
        let (this, other) = ("Unsupported value: \"Queued\"", "Unsupported value: \"New\"");
        assert!(refused(Kind::NonAdminBackup, true, 422, this));
        assert!(!refused(Kind::NonAdminBackup, true, 422, other), "the word is not said any more");
        assert!(refused(Kind::NonAdminBackup, true, 422, "too long"), "the rest is worth more");
        assert!(!refused(Kind::NonAdminRestore, true, 422, this));
        assert!(!refused(Kind::NonAdminBackup, false, 422, this));
        assert!(!refused(Kind::NonAdminBackup, true, 403, this));
    }

    #[test]
    fn what_may_pass_is_counted_in_a_row_whatever_the_code() {
        let met =
            |kind, code| RejectedWrite { kind, of_status: false, code, message: String::new(), times: 1 };
        let twice = met(Kind::Backup, 500).after(Some(&met(Kind::Backup, 401)));
        assert_eq!((twice.times, met(Kind::Backup, 503).after(Some(&twice)).times), (2, 3));
        assert_eq!(met(Kind::Backup, 403).after(Some(&twice)).times, 1);
        assert_eq!(met(Kind::Restore, 500).after(Some(&twice)).times, 1);
        assert_eq!(met(Kind::Backup, 500).after(None).times, 1);
    }

    #[test]
    fn tenants_are_told_what_to_do_and_nothing_of_the_administrators() {
        let why = |kind, code, message: &str| {
            RejectedWrite { kind, of_status: false, code, message: message.to_owned(), times: 1 }.why()
        };
        let quota = "secrets \"a\" is forbidden: exceeded quota: hidden-name, used: secrets=5";
        assert_eq!(
            why(Kind::Secret, 403, quota),
            "a quota of the administrators' is used up; ask them to raise it"
        );
        assert_eq!(
            why(Kind::Secret, 403, "User \"system:serviceaccount:hidden\" cannot create"),
            "nacre is not allowed to; ask the administrators"
        );
        assert_eq!(why(Kind::Secret, 500, "hidden"), "the API server answered 500; ask the administrators");
        let invalid = "spec.provider: Invalid value: \"\"";
        assert!(why(Kind::BackupStorageLocation, 422, invalid).ends_with(invalid));
        assert!(!why(Kind::Secret, 422, "data: Invalid value: \"hunter2\"").contains("hunter2"));
    }
}
