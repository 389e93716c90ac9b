//! What a tenant may ask of a schedule. Controller, webhook and CLI share these rules.

use std::time::Duration;

use api::{NonAdminSchedule, Retention};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::cron::{Cron, Setting, Unreadable};
use super::due::{self, Times};
use super::{Observed, retention, run};
use crate::{Policy, Refusal, backup};

/// How many runs are looked at for their distance, and how many parts of days for the time of day.
const LOOK_AHEAD: usize = 64;

/// The times of a schedule, or why they cannot be read.
pub fn times(
    schedule: &NonAdminSchedule,
    namespace_uid: &str,
    policy: &Policy,
    now: Timestamp,
) -> Result<Times, Refusal> {
    let spec = &schedule.spec;
    let anchor = schedule.metadata.creation_timestamp.as_ref().map_or(now, |time| time.0);
    let setting = Setting { time_zone: spec.time_zone.as_deref(), hashed: namespace_uid, anchor };
    let cron = Cron::read(&spec.schedule, &setting).map_err(|why| match why {
        Unreadable::Expression(why) => Refusal::new("spec.schedule", why),
        Unreadable::TimeZone(why) => Refusal::new("spec.timeZone", why),
    })?;
    let deadline = spec.starting_deadline.as_ref().map(|given| {
        given.to_std().ok_or_else(|| {
            let message = format!("{:?} is not a duration; write for example 2h or 30m", given.to_string());
            Refusal::new("spec.startingDeadline", message)
        })
    });
    let name = schedule.metadata.name.as_deref().unwrap_or_default();
    Ok(Times {
        cron,
        spread: policy.schedules.spread(),
        seed: due::seed(namespace_uid, name),
        // Zero is what Go clients send for a field that is not set.
        deadline: deadline.transpose()?.filter(|deadline| !deadline.is_zero()),
        windows: policy.schedules.windows(),
    })
}

/// All rules but those for the number of schedules.
pub fn check(
    schedule: &NonAdminSchedule,
    times: &Times,
    admin_namespace: &str,
    policy: &Policy,
    now: Timestamp,
) -> Option<Refusal> {
    let namespace = schedule.metadata.namespace.as_deref().unwrap_or_default();
    // Always the same runs are looked at, so that the result does not depend on when somebody looks.
    let from = schedule.metadata.creation_timestamp.as_ref().map_or(now, |time| time.0);
    backup::closed_namespace(namespace, admin_namespace, policy)
        .or_else(|| never_due(times, now))
        .or_else(|| too_often(times, policy, from))
        .or_else(|| outside_of_windows(times, policy, from))
        .or_else(|| what_is_kept(schedule.spec.retention.as_ref()))
        .or_else(|| template(schedule, namespace, policy))
}

/// Refusals of what a schedule asks to be kept. The controller keeps within the bounds instead.
pub(super) fn beyond_bounds(schedule: &NonAdminSchedule, policy: &Policy) -> Option<Refusal> {
    let asked = schedule.spec.retention.as_ref()?;
    let bounds = &policy.schedules.retention;
    let numbers = |of: &Retention| {
        [
            ("keepLast", of.keep_last),
            ("keepHourly", of.keep_hourly),
            ("keepDaily", of.keep_daily),
            ("keepWeekly", of.keep_weekly),
            ("keepMonthly", of.keep_monthly),
            ("keepYearly", of.keep_yearly),
        ]
    };
    let field = |name: &str| format!("spec.retention.{name}");
    let all = numbers(asked).into_iter().zip(numbers(&bounds.min)).zip(numbers(&bounds.max));
    for (((name, asked), (_, min)), (_, max)) in all {
        if let Some(min) = min.filter(|min| asked.is_some_and(|asked| asked < *min)) {
            let message = format!("the administrator requires at least {min}; ask for that or more");
            return Some(Refusal::new(field(name), message));
        }
        if let Some(max) = max.filter(|max| asked.is_some_and(|asked| asked > *max)) {
            let message = format!("the administrator allows at most {max}; ask for that or less");
            return Some(Refusal::new(field(name), message));
        }
    }
    let long = |text: Option<&String>| text.and_then(|text| retention::within(text));
    let within = long(asked.keep_within.as_ref())?;
    if let Some(min) =
        bounds.min.keep_within.as_ref().filter(|min| long(Some(min)).is_some_and(|least| within < least))
    {
        let message = format!("the administrator requires at least {min}; ask for that or more");
        return Some(Refusal::new(field("keepWithin"), message));
    }
    let max = bounds.max.keep_within.as_ref();
    let max = max.filter(|max| long(Some(max)).is_some_and(|most| within > most))?;
    let message = format!("the administrator allows at most {max}; ask for that or less");
    Some(Refusal::new(field("keepWithin"), message))
}

/// The number of schedules in the namespace.
pub(super) fn over_limit(seen: &Observed, policy: &Policy) -> Option<Refusal> {
    let most = policy.schedules.max_per_namespace.filter(|most| seen.older >= *most)?;
    let message = format!("this namespace has as many schedules as it may have, which is {most}");
    Some(Refusal::over_limit("metadata.namespace", message))
}

fn never_due(times: &Times, now: Timestamp) -> Option<Refusal> {
    times.next(now).is_none().then(|| {
        let message = "there is no such date within four years; change the day or the month";
        Refusal::new("spec.schedule", message)
    })
}

fn too_often(times: &Times, policy: &Policy, from: Timestamp) -> Option<Refusal> {
    let least = policy.schedules.min_interval()?;
    let runs: Vec<_> = times.cron.after(from).take(LOOK_AHEAD).collect();
    let between = |pair: &[Timestamp]| pair[1].duration_since(pair[0]).unsigned_abs();
    // The day on which clocks change makes an interval an hour shorter.
    let slack = Duration::from_hours(1).min(least / 2);
    let short = runs.windows(2).map(between).find(|between| *between + slack < least)?;
    let message = format!(
        "two runs are only {}s apart; the administrator requires at least {} between them",
        short.as_secs(),
        policy.schedules.min_interval
    );
    Some(Refusal::new("spec.schedule", message))
}

fn outside_of_windows(times: &Times, policy: &Policy, from: Timestamp) -> Option<Refusal> {
    if policy.schedules.windows.is_empty() {
        return None;
    }
    let mut after = from;
    for _ in 0..LOOK_AHEAD {
        let due = times.cron.next(after)?;
        if let Some(left) = times.windows.left(due) {
            // Whatever is due before the end of this window is in it.
            after = due.max(due.checked_add(left).ok()? - SignedDuration::from_secs(1));
            continue;
        }
        let time = due.to_zoned(TimeZone::UTC).strftime("%H:%M UTC").to_string();
        let message = format!(
            "a run at {time} is outside of the times that the administrator allows: {}; choose a time within them",
            policy.schedules.windows.join(", ")
        );
        return Some(Refusal::new("spec.schedule", message));
    }
    None
}

pub(super) fn what_is_kept(retention: Option<&Retention>) -> Option<Refusal> {
    let retention = retention?;
    if let Some(text) = retention.keep_within.as_ref().filter(|text| retention::within(text).is_none()) {
        let message = format!("{text:?} is not a time; write for example 30d, 2w or 36h");
        return Some(Refusal::new("spec.retention.keepWithin", message));
    }
    (*retention == Retention::default()).then(|| {
        let message = "nothing is named that is kept; set for example keepDaily: 7, or leave the field out";
        Refusal::new("spec.retention", message)
    })
}

/// What a run would be refused for until somebody changes the schedule or the policy.
fn template(schedule: &NonAdminSchedule, namespace: &str, policy: &Policy) -> Option<Refusal> {
    let refusal = backup::check_spec(&run::spec(schedule, policy), namespace, policy);
    refusal.map(|refusal| refusal.moved("spec.backupSpec", "spec.template.backupSpec"))
}
