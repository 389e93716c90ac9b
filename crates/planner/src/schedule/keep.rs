//! What a schedule keeps: the retention in effect, what is deleted, and the last good backup's expiration.

use std::time::Duration;

use api::condition::{self, Finding, Status};
use api::{Kind, NonAdminSchedule, Retention, condition as reasons, labels};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde_json::json;

use super::retention::{self, Finished};
use super::runs::Run;
use super::{Observed, Times, check, outlived, reach};
use crate::policy::RetentionBounds;
use crate::requester::BY_POLICY;
use crate::{Action, Event, Plan, Policy, Target};

/// How many backups one decision has deleted at most: the next one goes on.
const AT_ONCE: usize = 10;
/// How long a deletion may take before it is reported.
const STUCK: SignedDuration = SignedDuration::from_hours(24);
/// The longest time before its expiration at which the last good backup is given more, and the most it is given. nacre may
/// be down for as long as the first without losing it.
const LEAD: SignedDuration = SignedDuration::from_hours(7 * 24);
const MORE: SignedDuration = SignedDuration::from_hours(30 * 24);

/// Whether nacre decides how long the runs of a schedule are kept. Otherwise each is kept for the ttl in the template.
pub(super) fn replaces_ttl(schedule: &NonAdminSchedule, policy: &Policy) -> bool {
    schedule.spec.retention.is_some() || policy.schedules.retention.min != Retention::default()
}

/// The retention that holds: what the schedule says, within the bounds of the administrators. None if nobody says
/// anything.
pub fn effective(schedule: &NonAdminSchedule, policy: &Policy) -> Option<Retention> {
    let bounds = &policy.schedules.retention;
    if !replaces_ttl(schedule, policy) {
        // Each is kept for its ttl, but nobody keeps more than the administrators allow.
        return (bounds.max != Retention::default()).then(|| bounds.max.clone());
    }
    let asked = schedule.spec.retention.clone().unwrap_or_default();
    let (min, max) = (&bounds.min, &bounds.max);
    // Where a ceiling names anything, what it does not name is not kept, apart from the floor.
    let is_bounded = *max != Retention::default();
    let number = |field: fn(&Retention) -> Option<u32>| {
        let (min, max) = (field(min), field(max));
        let at_least = field(&asked).max(min)?;
        match max.or(min) {
            Some(most) if is_bounded => Some(at_least.min(most)),
            None if is_bounded => None,
            _ => Some(at_least),
        }
    };
    let held = Retention {
        keep_last: number(|of| of.keep_last),
        keep_hourly: number(|of| of.keep_hourly),
        keep_daily: number(|of| of.keep_daily),
        keep_weekly: number(|of| of.keep_weekly),
        keep_monthly: number(|of| of.keep_monthly),
        keep_yearly: number(|of| of.keep_yearly),
        keep_within: within_bounds(asked.keep_within.as_ref(), bounds),
    };
    // Nothing is left of what was asked for: then as much is kept as is allowed.
    Some(if held == Retention::default() { max.clone() } else { held })
}

fn within_bounds(asked: Option<&String>, RetentionBounds { min, max }: &RetentionBounds) -> Option<String> {
    let long = |text: &String| retention::within(text).unwrap_or_default();
    let (floor, ceiling) = (min.keep_within.as_ref(), max.keep_within.as_ref());
    if ceiling.is_none() && *max != Retention::default() {
        return floor.cloned();
    }
    let at_least = [asked, floor].into_iter().flatten().max_by_key(|text| long(text)).cloned()?;
    Some(ceiling.filter(|max| long(max) < long(&at_least)).cloned().unwrap_or(at_least))
}

/// The runs that retention looks at.
pub(super) fn finished(seen: &Observed) -> Vec<Finished> {
    seen.runs.iter().filter_map(Run::finished).collect()
}

/// The retention that holds, and the time zone of its days; none if there is none, or either cannot be read. What is kept
/// depends on both, and nothing is deleted on a guess.
fn readable<'a>(
    seen: &'a Observed,
    policy: &Policy,
    times: Option<&'a Times>,
) -> Option<(Retention, &'a TimeZone)> {
    let asked = seen.schedule.spec.retention.as_ref();
    if seen.unreadable.is_some() || check::what_is_kept(asked).is_some() {
        return None;
    }
    effective(&seen.schedule, policy).zip(times.map(|times| times.cron.zone()))
}

/// Deletes what is not kept, and keeps the last good one, whether or not the schedule runs.
pub(super) fn apply(seen: &Observed, policy: &Policy, times: Option<&Times>, mut plan: Plan) -> Plan {
    let gives_back = replaces_ttl(&seen.schedule, policy);
    let retention = readable(seen, policy, times);
    if let Some((retention, zone)) = &retention {
        plan = delete(seen, retention, zone, gives_back, plan);
    }
    let stuck = seen.runs.iter().filter_map(stuck_at).filter(|at| *at >= seen.now).min();
    if let Some(at) = stuck {
        plan = plan.requeue_after(at.duration_since(seen.now).unsigned_abs() + Duration::from_secs(1));
    }
    extend(seen, retention.is_some() && gives_back, plan)
}

/// Deletes what is not kept, with its data, and gives the rest its time back if there was no schedule for a while.
fn delete(seen: &Observed, retention: &Retention, zone: &TimeZone, gives_back: bool, mut plan: Plan) -> Plan {
    let finished = finished(seen);
    let away = retention::not_kept(&finished, retention, zone);
    let away = away.iter().filter_map(|name| seen.runs.iter().find(|run| run.name() == *name && !run.in_use));
    let away: Vec<_> = away.take(AT_ONCE + 1).collect();
    for run in away.iter().take(AT_ONCE) {
        let target = Target::of(Kind::NonAdminBackup, &run.backup.metadata);
        let note = format!("backup {:?} is not kept any more: it is deleted with its data", run.name());
        let by = json!({"annotations": {labels::DELETION_REQUESTER: BY_POLICY}});
        plan = plan
            .then(Action::Patch(target, json!({"metadata": by, "spec": {"deleteBackup": true}})))
            .with_event(Event::normal(reasons::BACKUP_NOT_KEPT, note));
    }
    let back = seen.runs.iter().filter(|_| gives_back).filter_map(outlived::give_back);
    let back: Vec<_> = back.take(AT_ONCE + 1).collect();
    let more = away.len() > AT_ONCE || back.len() > AT_ONCE;
    let plan = back.into_iter().take(AT_ONCE).fold(plan, Plan::then);
    if more { plan.again_at_once() } else { plan }
}

/// Moves the expiration of the last good backup, so that it does not expire before there is another one. That holds for
/// the last one in storage that cannot be read now, too: Velero would delete it as soon as the storage is back.
pub(super) fn extend(seen: &Observed, gives_back: bool, plan: Plan) -> Plan {
    let named = |runs: &[Finished]| retention::last_good(runs).map(|last| last.name.clone());
    let readable: Vec<_> = seen.runs.iter().filter_map(Run::finished_if_readable).collect();
    let last = [named(&finished(seen)), named(&readable)];
    let is_last = |run: &&Run| last.iter().flatten().any(|name| name == run.name());
    seen.runs.iter().filter(is_last).fold(plan, |plan, run| extend_one(seen, run, gives_back, plan))
}

fn extend_one(seen: &Observed, run: &Run, gives_back: bool, plan: Plan) -> Plan {
    let is_given_back = gives_back && outlived::give_back(run).is_some();
    let Some((velero, expiration)) = Some(run).filter(|_| !is_given_back).and_then(|run| {
        let velero = run.velero.as_ref()?;
        Some((velero, velero.status.as_ref()?.expiration.as_ref()?.0))
    }) else {
        return plan;
    };
    let ttl = velero.spec.ttl.as_ref().and_then(api::Duration::to_std);
    let ttl = ttl.and_then(|ttl| SignedDuration::try_from(ttl).ok()).unwrap_or(MORE);
    let lead = LEAD.min(ttl / 2);
    let left = expiration.duration_since(seen.now);
    if left >= lead {
        return plan.requeue_after((left - lead).unsigned_abs() + Duration::from_secs(1));
    }
    let Ok(later) = seen.now.checked_add(MORE.min(ttl.max(SignedDuration::from_mins(10)))) else {
        return plan;
    };
    let later = Timestamp::from_second(later.as_second()).unwrap_or(later);
    let body = json!({"status": {"expiration": Time(later)}});
    let plan = plan.then(Action::Patch(Target::of(Kind::Backup, &velero.metadata), body));
    plan.requeue_after((later.duration_since(seen.now) - lead).unsigned_abs())
}

/// Reports whether what is to be kept is kept, and nothing else; nothing without a retention.
pub(super) fn report(
    seen: &Observed,
    policy: &Policy,
    times: Option<&Times>,
    conditions: &mut Vec<Condition>,
) -> Option<Event> {
    if effective(&seen.schedule, policy).is_none() {
        condition::remove(conditions, condition::RETAINED);
        return None;
    }
    let (retention, zone) = readable(seen, policy, times)?;
    let is_stuck = |run: &&Run| stuck_at(run).is_some_and(|at| at < seen.now);
    let stuck: Vec<_> = seen.runs.iter().filter(is_stuck).map(Run::name).take(5).collect();
    let (status, reason, message) = if !stuck.is_empty() {
        let message =
            format!("could not be deleted for a day, their own conditions say why: {}", stuck.join(", "));
        (Status::False, reasons::RETENTION_STUCK, message)
    } else if let Some((kept, most)) = reach::no_place(&finished(seen), &retention, zone, policy) {
        let message = reach::no_place_message(kept, most);
        (Status::False, reasons::RETENTION_OVER_LIMIT, message)
    } else if let Some(ttl) = times.and_then(|times| reach::shorter_ttl(seen, &retention, times, policy)) {
        let message = format!("{ttl}: backups expire after it, and only the last good one is kept longer");
        (Status::True, reasons::TTL_ENFORCED, message)
    } else {
        let message = "what spec.retention keeps is kept, and nothing else".to_owned();
        (Status::True, reasons::RETENTION_APPLIED, message)
    };
    let news = status == Status::False
        && condition::get(conditions, condition::RETAINED).is_none_or(|found| found.message != message);
    let event = news.then(|| Event::warning(reason, message.clone()));
    let finding = Finding { type_: condition::RETAINED, status, reason, message: &message };
    condition::set(conditions, finding, seen.schedule.metadata.generation, seen.now);
    event
}

/// From when on the deletion of a run takes too long; none if it is not being deleted.
fn stuck_at(run: &Run) -> Option<Timestamp> {
    let conditions =
        run.backup.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let since = condition::get(conditions, condition::DELETING).filter(|_| run.is_deleting())?;
    since.last_transition_time.0.checked_add(STUCK).ok()
}
