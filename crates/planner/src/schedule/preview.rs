//! What a schedule will have made and kept after some time, if every run goes well.
//!
//! Backups go when the retention does not keep them any more, and when they expire. The last good one does neither.

use api::NonAdminSchedule;
use jiff::{SignedDuration, Timestamp};

use super::due::Times;
use super::retention::{Finished, Quality, last_good, not_kept};
use super::{effective, name, run};
use crate::Policy;

/// What there will be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preview {
    /// The backups that there will be, oldest first.
    pub kept: Vec<Finished>,
    /// The backups that will have gone, in the order in which they go, and when each goes.
    pub gone: Vec<(Finished, Timestamp)>,
    /// Up to when runs are counted, if there are more of them than can be.
    pub cut_at: Option<Timestamp>,
    /// The time of the run that is skipped because the schedule says so.
    pub skipped: Option<Timestamp>,
}

/// The most runs that are looked at: more than any calendar shows.
const MOST: usize = 5_000;

/// What there will be after so many days, beginning with what is there. While it is paused, no runs are added.
pub fn preview(
    schedule: &NonAdminSchedule,
    times: &Times,
    policy: &Policy,
    there: Vec<Finished>,
    now: Timestamp,
    days: u32,
) -> Preview {
    let of = schedule.metadata.name.as_deref().unwrap_or_default();
    let end = now.checked_add(SignedDuration::from_hours(24 * i64::from(days))).unwrap_or(Timestamp::MAX);
    let retention = effective(schedule, policy);
    let ttl = run::ttl(schedule, policy);
    let expires = |time: Timestamp| ttl.and_then(|ttl| time.checked_add(ttl).ok());
    let mut preview = Preview { kept: there, gone: Vec::new(), cut_at: None, skipped: None };
    let mut last = dealt_with(schedule, times, now);
    preview.skipped = skipped(schedule, times, last);
    let most = if schedule.spec.paused == Some(true) { 0 } else { MOST };
    for _ in 0..most {
        let Some(due) = times.next(last).filter(|due| due.start <= end) else { break };
        last = due.due;
        if preview.skipped == Some(due.due) {
            continue;
        }
        preview.expire(due.start);
        let (time, expires) = (due.start, expires(due.start));
        preview.kept.push(Finished { name: name(of, due.due), time, quality: Quality::Good, expires });
        if let Some(retention) = &retention {
            let away: Vec<String> = not_kept(&preview.kept, retention, times.cron.zone())
                .into_iter()
                .map(str::to_owned)
                .collect();
            let (gone, kept) = preview.kept.into_iter().partition(|run| away.contains(&run.name));
            preview.kept = kept;
            let gone: Vec<Finished> = gone;
            preview.gone.extend(gone.into_iter().map(|run| (run, due.start)));
        }
    }
    let is_cut = most > 0 && times.next(last).is_some_and(|next| next.start <= end);
    preview.cut_at = is_cut.then_some(last);
    preview.expire(if is_cut { last } else { end });
    preview.kept.sort_by_key(|run| (run.time, run.name.clone()));
    preview.gone.sort_by_key(|(run, goes)| (*goes, run.time, run.name.clone()));
    preview
}

/// The time up to which runs were dealt with. One that is due and has not started, since starts are shifted, was not.
fn dealt_with(schedule: &NonAdminSchedule, times: &Times, now: Timestamp) -> Timestamp {
    let last = schedule.status.as_ref().and_then(|status| status.last_due.as_ref());
    let Some(last) = last.or(schedule.metadata.creation_timestamp.as_ref()) else { return now };
    let waits = times.cron.latest(last.0, now).filter(|due| times.start(*due) > now);
    waits.map_or(now, |due| due - SignedDuration::from_secs(1))
}

/// The run that is left out: nacre has written down which, or will.
fn skipped(schedule: &NonAdminSchedule, times: &Times, last: Timestamp) -> Option<Timestamp> {
    if schedule.spec.paused == Some(true) {
        return None;
    }
    let velero = schedule.status.as_ref().and_then(|status| status.velero_schedule.as_ref()?.status.as_ref());
    let known = velero.and_then(|velero| velero.last_skipped.as_ref()).map(|time| time.0);
    let asked = || times.next(last).filter(|_| schedule.spec.skip_immediately == Some(true));
    known.filter(|known| *known > last).or_else(|| asked().map(|next| next.due))
}

impl Preview {
    /// Until this time Velero deletes what has expired; nacre moves the expiration of the last good one.
    fn expire(&mut self, now: Timestamp) {
        let last = last_good(&self.kept).map(|last| last.name.clone());
        let is_over =
            |run: &Finished| run.expires.filter(|at| *at <= now && last.as_ref() != Some(&run.name));
        let (over, kept) = std::mem::take(&mut self.kept).into_iter().partition(|run| is_over(run).is_some());
        self.kept = kept;
        let over: Vec<Finished> = over;
        self.gone.extend(over.into_iter().filter_map(|run| run.expires.map(|at| (run, at))));
    }
}

#[cfg(test)]
mod tests {
    use api::NonAdminSchedule;
    use jiff::Timestamp;
    use serde_json::{Value, json};

    use super::preview;
    use crate::Policy;
    use crate::schedule::retention::{Finished, Quality};

    /// The days of what there will be after a month, and the number of those that go.
    fn after_a_month(spec: &Value, policy: &Policy, there: Vec<Finished>) -> (Vec<String>, usize) {
        let mut json = json!({
            "metadata": {"name": "nightly", "namespace": "shop", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"schedule": "0 2 * * *", "template": {"backupSpec": {}}},
        });
        json["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let schedule: NonAdminSchedule = serde_json::from_value(json).unwrap();
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let mut policy = policy.clone();
        policy.schedules.spread = "0".into();
        let times = crate::schedule::times(&schedule, "", &policy, now).unwrap();
        let preview = preview(&schedule, &times, &policy, there, now, 30);
        let goes: Vec<_> = preview.gone.iter().map(|(_, goes)| *goes).collect();
        assert!(goes.is_sorted(), "{goes:?}");
        (preview.kept.iter().map(|run| run.time.to_string()[5..10].to_owned()).collect(), preview.gone.len())
    }

    #[test]
    fn what_is_paused_or_skipped_is_not_counted() {
        let left = |spec: &Value| after_a_month(spec, &Policy::default(), Vec::new()).0;
        assert_eq!(left(&json!({"retention": {"keepLast": 99}})).len(), 30);
        assert_eq!(left(&json!({"retention": {"keepLast": 99}, "paused": true})), Vec::<String>::new());
        let skips = left(&json!({"retention": {"keepLast": 99}, "skipImmediately": true}));
        assert_eq!((skips.len(), skips[0].as_str()), (29, "01-02"));
    }

    #[test]
    fn what_is_due_and_has_not_started_is_counted_and_what_is_to_be_skipped_is_not() {
        let first = |last_due: &str, skipped: Option<&str>| {
            let json = json!({
                "metadata": {"name": "nightly", "namespace": "shop", "creationTimestamp": "2026-01-01T00:00:00Z"},
                "spec": {"schedule": "0 2 * * *", "template": {"backupSpec": {}}},
                "status": {"lastDue": last_due, "veleroSchedule": {"status": {"lastSkipped": skipped}}},
            });
            let schedule: NonAdminSchedule = serde_json::from_value(json).unwrap();
            let now: Timestamp = "2026-01-05T02:00:01Z".parse().unwrap();
            let mut policy = Policy::default();
            policy.schedules.spread = "1h".into();
            let times = crate::schedule::times(&schedule, "", &policy, now).unwrap();
            let due = "2026-01-05T02:00:00Z".parse().unwrap();
            assert!(times.start(due) > now, "it is shifted");
            let preview = preview(&schedule, &times, &policy, Vec::new(), now, 2);
            preview.kept[0].name.clone()
        };
        assert_eq!(first("2026-01-04T02:00:00Z", None), "nightly-20260105020000");
        assert_eq!(first("2026-01-05T02:00:00Z", None), "nightly-20260106020000", "it was dealt with");
        let skipped = first("2026-01-04T02:00:00Z", Some("2026-01-05T02:00:00Z"));
        assert_eq!(skipped, "nightly-20260106020000");
    }

    #[test]
    fn what_expires_goes_before_the_retention_says_so() {
        let kept = json!({"retention": {"keepDaily": 10}});
        let (left, gone) = after_a_month(&kept, &Policy::default(), Vec::new());
        assert_eq!((left.len(), gone), (10, 20));
        let mut enforced = Policy::default();
        enforced.backup.enforce.ttl = Some("72h".into());
        let mut most = Policy::default();
        most.backup.ttl.max = Some("72h".into());
        for policy in [enforced, most] {
            let (left, gone) = after_a_month(&kept, &policy, Vec::new());
            assert_eq!((left, gone), (vec!["01-28".to_owned(), "01-29".to_owned(), "01-30".to_owned()], 27));
        }
    }

    #[test]
    fn a_preview_of_more_runs_than_are_counted_says_where_it_ends() {
        let json = json!({
            "metadata": {"name": "often", "namespace": "shop", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"schedule": "* * * * *", "template": {"backupSpec": {}}, "retention": {"keepLast": 2}},
        });
        let schedule: NonAdminSchedule = serde_json::from_value(json).unwrap();
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let mut policy = Policy::default();
        policy.schedules.spread = "0".into();
        let times = crate::schedule::times(&schedule, "", &policy, now).unwrap();
        let cut_at = |days| preview(&schedule, &times, &policy, Vec::new(), now, days).cut_at;
        assert_eq!(cut_at(3), None);
        assert_eq!(cut_at(4), Some("2026-01-04T11:20:00Z".parse().unwrap()));
    }

    #[test]
    fn without_a_retention_each_is_there_for_its_ttl() {
        let template = json!({"template": {"backupSpec": {"ttl": "48h"}}});
        let (left, gone) = after_a_month(&template, &Policy::default(), Vec::new());
        assert_eq!((left, gone), (vec!["01-29".to_owned(), "01-30".to_owned()], 28));
        let mut most = Policy::default();
        most.schedules.retention.max.keep_last = Some(1);
        assert_eq!(after_a_month(&template, &most, Vec::new()), (vec!["01-30".to_owned()], 29));
    }

    #[test]
    fn what_is_there_expires_when_its_status_says_and_the_last_good_one_does_not() {
        let there = |expires: &str| Finished {
            name: "nightly-20251231020000".to_owned(),
            time: "2025-12-31T02:00:00Z".parse().unwrap(),
            quality: Quality::Good,
            expires: Some(expires.parse().unwrap()),
        };
        let monthly = json!({"schedule": "0 2 20 * *"});
        let left = |expires| after_a_month(&monthly, &Policy::default(), vec![there(expires)]).0;
        assert_eq!(left("2026-01-02T00:00:00Z"), ["01-20"], "it is the last good one until there is another");
        assert_eq!(left("2026-03-01T00:00:00Z"), ["12-31", "01-20"]);
    }
}
