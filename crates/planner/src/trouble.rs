//! What the API server did not take when it was last tried, for the next decision to tell.
//!
//! A plan that fails is forgotten, but for this. Whoever decides next tells it and tries again later; once everything
//! that is wanted has been taken, there is no trouble any more. It is only a memory: after a restart the next try
//! finds out anew.

use std::sync::Arc;
use std::time::Duration;

use api::{Kind, condition};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::Key;
use crate::state::State;

/// How soon at the earliest something is tried again: rights, quotas and webhooks of others are not watched.
const SOONEST: Duration = Duration::from_secs(30);
/// How late at the latest.
const LATEST: Duration = Duration::from_mins(5);
/// How often in a row what may pass was met before it lasts: some three seconds, as failures are retried.
const LASTS: u32 = 5;

/// How long to wait before the next try: as long as it has been so already.
pub(crate) fn again(since: Option<Timestamp>, now: Timestamp) -> Duration {
    since.map_or(SOONEST, |since| now.duration_since(since).unsigned_abs().clamp(SOONEST, LATEST))
}

/// What stands in the way of an object. A server in trouble of its own is asked a few times more before anybody hears of
/// it: nearly always it is well again by then.
pub(crate) fn lasting(view: &State, key: &Key) -> Option<Arc<Trouble>> {
    view.trouble(key).filter(|trouble| !trouble.may_pass() || trouble.times >= LASTS)
}

/// Since when a condition has been False.
pub(crate) fn since(conditions: Option<&[Condition]>, type_: &str) -> Option<Timestamp> {
    let told = condition::get(conditions?, type_).filter(|told| told.status == "False")?;
    Some(told.last_transition_time.0)
}

/// How the API server begins when a word is not one of those that a definition knows.
const UNKNOWN: &str = "Unsupported value: ";

/// A write that the API server did not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// What was to be written.
    pub kind: Kind,
    /// Whether it was the status of it.
    pub of_status: bool,
    /// The API server's answer, as a number.
    pub code: u16,
    /// The API server's answer. It may name what is none of a tenant's business.
    pub message: String,
    /// How often in a row it was met.
    pub times: u32,
}

impl Trouble {
    /// The next one, after what was met before it.
    #[must_use]
    pub fn after(self, before: Option<&Self>) -> Self {
        let same = |before: &&Self| {
            (before.kind, before.of_status, before.may_pass()) == (self.kind, self.of_status, self.may_pass())
        };
        let times = before.filter(same).map_or(1, |before| before.times.saturating_add(1));
        Self { times, ..self }
    }

    /// Whether the server has trouble of its own, or does not know us for a moment: that says nothing about what was to
    /// be written.
    pub fn may_pass(&self) -> bool {
        self.code == 401 || self.code >= 500
    }

    /// Whether the API server does not take a status of this kind in which Velero says this. An older definition may
    /// not know all that Velero says by now, and answers which word that was; if it answers something else, the rest
    /// of the status is worth more than Velero's words.
    pub(crate) fn refuses_status(&self, kind: Kind, phase: Option<&str>) -> bool {
        let this = phase.is_some_and(|phase| self.message.contains(&format!("{UNKNOWN}{phase:?}")));
        let fits = self.kind == kind && self.of_status && self.code != 403;
        fits && (this || !self.is_about_a_word())
    }

    /// Whether the API server said which word it does not know.
    pub(crate) fn is_about_a_word(&self) -> bool {
        self.message.contains(UNKNOWN)
    }

    /// Why, in words that are fit for tenants, as the end of a sentence.
    pub(crate) fn why(&self) -> String {
        match self.code {
            403 if self.message.contains("exceeded quota") => {
                "a quota of the administrators' is used up; ask them for room".to_owned()
            }
            403 => "nacre is not allowed to; ask the administrators".to_owned(),
            // The API server quotes what it finds invalid, which of a Secret nobody should read.
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

    use super::{Trouble, again, since};

    #[test]
    fn it_is_tried_again_as_long_after_as_it_has_lasted() {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let minutes = |many| start + jiff::SignedDuration::from_mins(many);
        let told = |status| {
            let finding = Finding { type_: "Accepted", status, reason: "Why", message: "" };
            let mut conditions = Vec::new();
            condition::set(&mut conditions, finding, None, start);
            conditions
        };
        let (is_not, is) = (told(false), told(true));
        let wait = |conditions: Option<&[_]>, now| again(since(conditions, "Accepted"), now).as_secs();
        assert_eq!(wait(None, minutes(2)), 30);
        assert_eq!(wait(Some(&is), minutes(2)), 30);
        assert_eq!(wait(Some(&is_not), start), 30);
        assert_eq!(wait(Some(&is_not), minutes(2)), 120);
        assert_eq!(wait(Some(&is_not), minutes(60)), 300);
    }

    #[test]
    fn only_a_refused_status_says_that_less_is_to_be_shown() {
        let refused = |kind, of_status, code, message: &str| {
            let trouble = Trouble { kind, of_status, code, message: message.to_owned(), times: 1 };
            trouble.refuses_status(Kind::NonAdminBackup, Some("Queued"))
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
        let met = |kind, code| Trouble { kind, of_status: false, code, message: String::new(), times: 1 };
        let twice = met(Kind::Backup, 500).after(Some(&met(Kind::Backup, 401)));
        assert_eq!((twice.times, met(Kind::Backup, 503).after(Some(&twice)).times), (2, 3));
        assert_eq!(met(Kind::Backup, 403).after(Some(&twice)).times, 1);
        assert_eq!(met(Kind::Restore, 500).after(Some(&twice)).times, 1);
        assert_eq!(met(Kind::Backup, 500).after(None).times, 1);
    }

    #[test]
    fn tenants_are_told_what_to_do_and_nothing_of_the_administrators() {
        let why = |kind, code, message: &str| {
            Trouble { kind, of_status: false, code, message: message.to_owned(), times: 1 }.why()
        };
        let quota = "secrets \"a\" is forbidden: exceeded quota: hidden-name, used: secrets=5";
        assert_eq!(
            why(Kind::Secret, 403, quota),
            "a quota of the administrators' is used up; ask them for room"
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
