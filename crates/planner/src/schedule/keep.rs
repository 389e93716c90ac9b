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
use super::{Observed, outlived};
use crate::requester::BY_POLICY;
use crate::{Action, Event, Plan, Policy, Target};

/// How many backups one decision has deleted at most: the next one goes on.
const AT_ONCE: usize = 10;
/// How long a deletion may take before it is reported.
const STUCK: SignedDuration = SignedDuration::from_hours(24);
/// The longest time before its expiration at which the last good backup is given more, and the most it is given.
const LEAD: SignedDuration = SignedDuration::from_hours(24);
const MORE: SignedDuration = SignedDuration::from_hours(7 * 24);

/// The retention that holds: what the schedule says, within the bounds of the administrators. None if nobody says
/// anything.
pub fn effective(schedule: &NonAdminSchedule, policy: &Policy) -> Option<Retention> {
    let bounds = &policy.schedules.retention;
    let asked = schedule.spec.retention.clone();
    if asked.is_none() && bounds.min == Retention::default() {
        return None;
    }
    let asked = asked.unwrap_or_default();
    let number = |asked: Option<u32>, min: Option<u32>, max: Option<u32>| {
        let at_least = asked.max(min);
        match (at_least, max) {
            (Some(number), Some(max)) => Some(number.min(max)),
            (number, _) => number,
        }
    };
    let (min, max) = (&bounds.min, &bounds.max);
    Some(Retention {
        keep_last: number(asked.keep_last, min.keep_last, max.keep_last),
        keep_hourly: number(asked.keep_hourly, min.keep_hourly, max.keep_hourly),
        keep_daily: number(asked.keep_daily, min.keep_daily, max.keep_daily),
        keep_weekly: number(asked.keep_weekly, min.keep_weekly, max.keep_weekly),
        keep_monthly: number(asked.keep_monthly, min.keep_monthly, max.keep_monthly),
        keep_yearly: number(asked.keep_yearly, min.keep_yearly, max.keep_yearly),
        keep_within: within_bounds(
            asked.keep_within.as_ref(),
            min.keep_within.as_ref(),
            max.keep_within.as_ref(),
        ),
    })
}

fn within_bounds(asked: Option<&String>, min: Option<&String>, max: Option<&String>) -> Option<String> {
    let long = |text: &String| retention::within(text).unwrap_or_default();
    let at_least = [asked, min].into_iter().flatten().max_by_key(|text| long(text)).cloned()?;
    Some(max.filter(|max| long(max) < long(&at_least)).cloned().unwrap_or(at_least))
}

/// The runs that retention looks at.
pub(super) fn finished(seen: &Observed) -> Vec<Finished> {
    seen.runs.iter().filter_map(Run::finished).collect()
}

/// Deletes what is not kept, with its data, and gives the rest its time back if there was no schedule for a while.
pub(super) fn delete(seen: &Observed, policy: &Policy, zone: &TimeZone, mut plan: Plan) -> Plan {
    let Some(retention) = effective(&seen.schedule, policy) else { return plan };
    let finished = finished(seen);
    let away = retention::not_kept(&finished, &retention, zone);
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
    let back: Vec<_> = seen.runs.iter().filter_map(outlived::give_back).take(AT_ONCE + 1).collect();
    let more = away.len() > AT_ONCE || back.len() > AT_ONCE;
    let plan = back.into_iter().take(AT_ONCE).fold(plan, Plan::then);
    if more { plan.again_at_once() } else { plan }
}

/// Moves the expiration of the last good backup, so that it does not expire before there is another one.
pub(super) fn extend(seen: &Observed, plan: Plan) -> Plan {
    let finished = finished(seen);
    let last = retention::last_good(&finished);
    let run = last.and_then(|last| seen.runs.iter().find(|run| run.name() == last.name));
    let Some((velero, expiration)) = run.filter(|run| outlived::give_back(run).is_none()).and_then(|run| {
        let velero = run.velero.as_ref()?;
        Some((velero, velero.status.as_ref()?.expiration.as_ref()?.0))
    }) else {
        return plan;
    };
    let ttl = velero.spec.ttl.as_ref().and_then(api::Duration::to_std);
    let ttl = ttl.and_then(|ttl| SignedDuration::try_from(ttl).ok()).unwrap_or(MORE);
    let lead = LEAD.min(ttl / 2);
    let left = expiration.duration_since(seen.now);
    if left > lead {
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
pub(super) fn report(seen: &Observed, policy: &Policy, conditions: &mut Vec<Condition>) -> Option<Event> {
    if effective(&seen.schedule, policy).is_none() {
        condition::remove(conditions, condition::RETAINED);
        return None;
    }
    let stuck: Vec<_> =
        seen.runs.iter().filter(|run| is_stuck(run, seen.now)).map(Run::name).take(5).collect();
    let (status, reason, message) = if !stuck.is_empty() {
        let message =
            format!("could not be deleted for a day, their own conditions say why: {}", stuck.join(", "));
        (Status::False, reasons::RETENTION_STUCK, message)
    } else if let Some(ttl) = &policy.backup.enforce.ttl {
        let message = format!(
            "the administrators enforce a ttl of {ttl}: backups expire after it, and only the last good one is kept longer"
        );
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

fn is_stuck(run: &Run, now: Timestamp) -> bool {
    let conditions =
        run.backup.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let since = condition::get(conditions, condition::DELETING).map(|found| found.last_transition_time.0);
    run.is_deleting() && since.is_some_and(|since| now.duration_since(since) > STUCK)
}
