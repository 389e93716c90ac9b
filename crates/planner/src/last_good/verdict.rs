//! Whether a namespace is safe: not only that there is a good backup, but that it is recent and has every claim.
//!
//! There is one rule for `kubectl nacre status` and the console.

use std::fmt;

use api::{ClaimState, NonAdminBackup, NonAdminSchedule, condition};
use jiff::{SignedDuration, Timestamp};

use super::{ended, filters};
use crate::{Policy, schedule};

/// Without a schedule that makes new ones, a good backup is old after this time.
const PLAIN: SignedDuration = SignedDuration::from_hours(7 * 24);
/// However often a schedule runs: a backup takes its time, too.
const SHORTEST: SignedDuration = SignedDuration::from_hours(1);
/// So many runs are looked at for the longest time between two.
const RUNS: usize = 8;
/// So many claims are named.
const NAMED: usize = 3;

/// What the verdict reads.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// The last good backup.
    pub good: Option<&'a NonAdminBackup>,
    /// A backup that ended later went wrong.
    pub later_went_wrong: bool,
    /// The claims that exist now; none if they cannot be read.
    pub claims: Option<&'a [String]>,
    /// The schedules of the namespace.
    pub schedules: &'a [NonAdminSchedule],
    /// When this is judged: how old a backup is depends on it.
    pub now: Timestamp,
}

/// Why a namespace is not safe, or not all of it. Fits after "there is a good backup, but", if there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// There is no good backup.
    NoGoodBackup,
    /// A backup that ended later went wrong.
    LaterWentWrong,
    /// These claims exist now, and their data is not in the last good backup.
    ClaimsNotInIt(Vec<String>),
    /// The last good backup ended this long ago, and a schedule makes one this often, if there is one.
    Old(SignedDuration, Option<SignedDuration>),
}

impl Problem {
    /// One word, for programs.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::NoGoodBackup => "NoGoodBackup",
            Self::LaterWentWrong => "LaterWentWrong",
            Self::ClaimsNotInIt(_) => "ClaimsNotInIt",
            Self::Old(..) => "Old",
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoGoodBackup => f.write_str("there is no good backup"),
            Self::LaterWentWrong => f.write_str("a later one went wrong"),
            Self::ClaimsNotInIt(claims) => {
                let named = claims.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
                match claims.len() {
                    1 => write!(f, "claim {named} is not in it"),
                    more if more > NAMED => {
                        write!(f, "claims {named} and {} more are not in it", more - NAMED)
                    }
                    _ => write!(f, "claims {named} are not in it"),
                }
            }
            Self::Old(age, Some(interval)) => {
                write!(
                    f,
                    "it is {} old, and a schedule should make one every {}",
                    span(*age),
                    span(*interval)
                )
            }
            Self::Old(age, None) => write!(f, "it is {} old, and no schedule makes new ones", span(*age)),
        }
    }
}

fn span(length: SignedDuration) -> String {
    let hours = length.as_hours();
    match (hours / 24, hours) {
        (days, _) if days >= 2 => format!("{days} days"),
        (_, hours) if hours >= 2 => format!("{hours} hours"),
        _ => format!("{} minutes", length.as_mins()),
    }
}

/// Everything that is in the way of safety; nothing if the namespace could be brought back as it is, or was not long ago.
pub fn problems(seen: &Seen<'_>) -> Vec<Problem> {
    let Some(good) = seen.good else { return vec![Problem::NoGoodBackup] };
    let later = seen.later_went_wrong.then_some(Problem::LaterWentWrong);
    let is_missing = |claim: &&String| {
        matches!(claim_safety(Some(good), claim), ClaimSafety::NotInIt | ClaimSafety::NotSaved)
    };
    let missing: Vec<String> = seen.claims.unwrap_or_default().iter().filter(is_missing).cloned().collect();
    let missing = (!missing.is_empty()).then_some(Problem::ClaimsNotInIt(missing));
    [later, missing, old(good, seen)].into_iter().flatten().collect()
}

/// Older than two runs of a schedule, or than a week without one.
fn old(good: &NonAdminBackup, seen: &Seen<'_>) -> Option<Problem> {
    let age = seen.now.duration_since(ended(good)?);
    let limit = |interval: &SignedDuration| (*interval * 2).max(SHORTEST);
    let is_due = |schedule: &&NonAdminSchedule, interval: &SignedDuration| {
        // A new schedule has not had the time for it.
        let created = schedule.metadata.creation_timestamp.as_ref().map(|time| time.0);
        created.is_none_or(|created| seen.now.duration_since(created) > limit(interval))
    };
    let intervals =
        seen.schedules.iter().filter_map(|schedule| Some((schedule, interval(schedule, seen.now)?)));
    let (due, not_due): (Vec<_>, Vec<_>) =
        intervals.partition(|(schedule, interval)| is_due(schedule, interval));
    match due.into_iter().map(|(_, interval)| interval).min() {
        Some(interval) => (age > limit(&interval)).then_some(Problem::Old(age, Some(interval))),
        None => (age > PLAIN && not_due.is_empty()).then_some(Problem::Old(age, None)),
    }
}

/// The longest time between two runs of a schedule whose backups can be good; none if it is paused or holds only a part.
fn interval(found: &NonAdminSchedule, now: Timestamp) -> Option<SignedDuration> {
    let policy = Policy::default();
    if found.spec.paused == Some(true) || !filters(&schedule::backup(found, now, &policy)).is_empty() {
        return None;
    }
    let times = schedule::times(found, "", &policy, now).ok()?;
    let runs: Vec<Timestamp> = times.cron.after(now).take(RUNS).collect();
    runs.windows(2).map(|pair| pair[1].duration_since(pair[0])).max()
}

/// Where the data of a claim stands that exists now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimSafety {
    /// It is in the last good backup.
    Saved,
    /// It was left out of it on purpose.
    LeftOut,
    /// The claim is in it, and its data is not.
    NotSaved,
    /// The claim is newer than the backup.
    NotInIt,
    /// There is no good backup.
    NoGoodBackup,
    /// The backup does not say: it lists some claims only, or is older than such lists.
    Unknown,
}

/// Where the data of this claim stands.
pub fn claim_safety(good: Option<&NonAdminBackup>, claim: &str) -> ClaimSafety {
    let Some(good) = good else { return ClaimSafety::NoGoodBackup };
    let Some(status) = &good.status else { return ClaimSafety::Unknown };
    match status.claims.iter().find(|listed| listed.name == claim).map(|listed| listed.state) {
        Some(ClaimState::Saved) => ClaimSafety::Saved,
        Some(ClaimState::LeftOut) => ClaimSafety::LeftOut,
        Some(ClaimState::Unknown) => ClaimSafety::Unknown,
        Some(_) => ClaimSafety::NotSaved,
        None if status.claims_not_listed.is_some() => ClaimSafety::Unknown,
        None if condition::get(&status.conditions, condition::DATA_PROTECTED).is_none() => {
            ClaimSafety::Unknown
        }
        None => ClaimSafety::NotInIt,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn good(hours: i64) -> NonAdminBackup {
        let ended = now() - SignedDuration::from_hours(hours);
        serde_json::from_value(json!({"metadata": {"name": "good", "namespace": "shop"}, "spec": {"backupSpec": {}}, "status": {
            "claims": [{"name": "data", "state": "Saved"}, {"name": "cache", "state": "LeftOut"}],
            "conditions": [{"type": "DataProtected", "status": "True", "reason": "AllClaimsSaved", "message": "",
                "lastTransitionTime": "2026-11-15T12:00:00Z"}],
            "veleroBackup": {"status": {"phase": "Completed", "completionTimestamp": ended}}}}))
        .unwrap()
    }

    fn now() -> Timestamp {
        "2026-11-15T13:00:00Z".parse().unwrap()
    }

    fn schedule(cron: &str, spec: &serde_json::Value) -> NonAdminSchedule {
        let mut whole = json!({"schedule": cron, "template": {"backupSpec": {}}});
        whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let meta =
            json!({"name": "nightly", "namespace": "shop", "creationTimestamp": "2026-01-01T00:00:00Z"});
        serde_json::from_value(json!({"metadata": meta, "spec": whole})).unwrap()
    }

    fn told(good: Option<&NonAdminBackup>, claims: &[&str], schedules: &[NonAdminSchedule]) -> Vec<String> {
        let claims: Vec<String> = claims.iter().map(ToString::to_string).collect();
        let seen = Seen { good, later_went_wrong: false, claims: Some(&claims), schedules, now: now() };
        problems(&seen).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_claim_that_is_not_in_the_last_good_backup_is_not_safe() {
        let recent = good(2);
        assert_eq!(told(Some(&recent), &["data", "cache"], &[]), Vec::<String>::new());
        assert_eq!(told(Some(&recent), &["data", "new"], &[]), ["claim new is not in it"]);
        let many = ["a", "b", "c", "d", "e"];
        assert_eq!(told(Some(&recent), &many, &[]), ["claims a, b, c and 2 more are not in it"]);
        assert_eq!(told(None, &["data"], &[]), ["there is no good backup"]);
        assert_eq!(claim_safety(None, "data"), ClaimSafety::NoGoodBackup);
        // A backup that does not list its claims proves nothing against them.
        let mut old = good(2);
        let status = old.status.as_mut().unwrap();
        (status.claims, status.conditions) = (Vec::new(), Vec::new());
        assert_eq!(claim_safety(Some(&old), "new"), ClaimSafety::Unknown);
    }

    #[test]
    fn an_old_backup_is_not_safe() {
        let nightly = || [schedule("0 2 * * *", &json!({}))];
        assert_eq!(told(Some(&good(47)), &[], &nightly()), Vec::<String>::new());
        let late = "it is 2 days old, and a schedule should make one every 24 hours";
        assert_eq!(told(Some(&good(49)), &[], &nightly()), [late]);
        // Weekends count: the longest time between two runs is what matters.
        assert_eq!(told(Some(&good(100)), &[], &[schedule("0 2 * * 1-5", &json!({}))]), Vec::<String>::new());
        // Without a schedule a week is long; one that is paused, or makes backups of a part, is none.
        let alone = "it is 8 days old, and no schedule makes new ones";
        let part = json!({"template": {"backupSpec": {"labelSelector": {"matchLabels": {"app": "a"}}}}});
        for others in [
            vec![],
            vec![schedule("0 2 * * *", &json!({"paused": true}))],
            vec![schedule("0 2 * * *", &part)],
        ] {
            assert_eq!(told(Some(&good(8 * 24)), &[], &others), [alone], "{others:?}");
            assert_eq!(told(Some(&good(6 * 24)), &[], &others), Vec::<String>::new());
        }
        // A schedule of today has not had the time yet.
        let mut new = schedule("0 2 * * *", &json!({}));
        new.metadata.creation_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now()));
        assert_eq!(told(Some(&good(8 * 24)), &[], &[new]), Vec::<String>::new());
    }
}
