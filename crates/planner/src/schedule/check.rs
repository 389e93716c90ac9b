//! What a tenant may ask of a schedule. Controller, webhook and CLI share these rules.

use std::time::Duration;

use api::velero::BackupSpec;
use api::{NonAdminSchedule, Retention};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::cron::{Cron, Setting, Unreadable};
use super::due::{self, Times};
use super::{Observed, retention, run};
use crate::policy::RetentionBounds;
use crate::{Policy, Refusal, backup};

/// How many runs are looked at for their distance, if these are more than those of a day, and how many parts of days for the
/// time of day.
const LOOK_AHEAD: usize = 64;
/// How many days with runs are looked at for whether one follows another: more than a year of them.
const DAYS_AHEAD: usize = 400;

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

/// The numbers of a retention, by the names of their fields.
fn numbers(of: &Retention) -> [(&'static str, Option<u32>); 6] {
    [
        ("keepLast", of.keep_last),
        ("keepHourly", of.keep_hourly),
        ("keepDaily", of.keep_daily),
        ("keepWeekly", of.keep_weekly),
        ("keepMonthly", of.keep_monthly),
        ("keepYearly", of.keep_yearly),
    ]
}

/// Why a retention is beyond the bounds of the administrators: the field and the reason.
pub(crate) fn beyond_bounds(
    asked: &Retention,
    RetentionBounds { min, max }: &RetentionBounds,
) -> Option<(&'static str, String)> {
    let is_bounded = *max != Retention::default();
    let too_little = |min: &str| format!("the administrator requires at least {min}; ask for that or more");
    let too_much = |max: &str| format!("the administrator allows at most {max}; ask for that or less");
    let not_allowed = || format!("the administrator does not allow this field; allowed is {}", allowed(max));
    for (((name, asked), (_, min)), (_, max)) in
        numbers(asked).into_iter().zip(numbers(min)).zip(numbers(max))
    {
        let Some(asked) = asked else { continue };
        match (min, max) {
            (Some(min), _) if asked < min => return Some((name, too_little(&min.to_string()))),
            (_, Some(max)) if asked > max => return Some((name, too_much(&max.to_string()))),
            (min, None) if is_bounded && asked > min.unwrap_or(0) => return Some((name, not_allowed())),
            _ => {}
        }
    }
    let long = |text: &String| retention::within(text).unwrap_or_default();
    let within = asked.keep_within.as_ref().and_then(|text| retention::within(text))?;
    let why = match (&min.keep_within, &max.keep_within) {
        (Some(min), _) if within < long(min) => too_little(min),
        (_, Some(max)) if within > long(max) => too_much(max),
        (min, None) if is_bounded && within > min.as_ref().map(long).unwrap_or_default() => not_allowed(),
        _ => return None,
    };
    Some(("keepWithin", why))
}

/// What a ceiling allows, as a list.
fn allowed(max: &Retention) -> String {
    let numbers = numbers(max).into_iter().filter_map(|(name, most)| Some(format!("{name} up to {}", most?)));
    let within = max.keep_within.as_ref().map(|most| format!("keepWithin up to {most}"));
    numbers.chain(within).collect::<Vec<_>>().join(", ")
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
    let day = from.checked_add(SignedDuration::from_hours(25)).unwrap_or(from);
    let runs = times.cron.after(from).enumerate().take_while(|(at, due)| *at < LOOK_AHEAD || *due <= day);
    let runs: Vec<_> = runs.map(|(_, due)| due).collect();
    let between = |pair: &[Timestamp]| pair[1].duration_since(pair[0]).unsigned_abs();
    let is_short =
        |pair: &&[Timestamp]| between(pair) + clocks_change(times.cron.zone(), pair[0], pair[1]) < least;
    let short =
        runs.windows(2).find(is_short).map(between).or_else(|| over_midnight(&times.cron, from, least))?;
    let message = format!(
        "two runs are only {}s apart; the administrator requires at least {} between them",
        short.as_secs(),
        policy.schedules.min_interval
    );
    Some(Refusal::new("spec.schedule", message))
}

/// The time from the last run of a day to the first of the next, if that is too short and some day follows another one. All
/// days have the same times, but which days these are may repeat itself only after months: `*/2` has the 31st and the 1st.
fn over_midnight(cron: &Cron, from: Timestamp, least: Duration) -> Option<Duration> {
    if !cron.has_days() {
        return None;
    }
    let zone = cron.zone();
    let second = SignedDuration::from_secs(1);
    let first_from = |day: Date| cron.next(day.to_zoned(zone.clone()).ok()?.timestamp() - second);
    let date = |at: Timestamp| at.to_zoned(zone.clone()).date();
    let mut day = date(cron.next(from)?);
    let (first, end) = (first_from(day)?, day.tomorrow().ok()?.to_zoned(zone.clone()).ok()?.timestamp());
    let latest = cron.latest(first - second, end - second)?;
    let short = SignedDuration::from_hours(24) - latest.duration_since(first);
    if short.unsigned_abs() + clocks_change(zone, first, latest) >= least {
        return None;
    }
    for _ in 0..DAYS_AHEAD {
        let next = date(first_from(day.tomorrow().ok()?)?);
        if next == day.tomorrow().ok()? {
            return Some(short.unsigned_abs());
        }
        day = next;
    }
    None
}

/// By how much clocks change between two runs, or shortly before the first of them: a run at a time that does not exist on
/// that day is later, and so nearer to the next one.
fn clocks_change(zone: &TimeZone, first: Timestamp, second: Timestamp) -> Duration {
    let before = first.checked_sub(SignedDuration::from_hours(3)).unwrap_or(first);
    let [before, after] = [before, second].map(|at| i64::from(zone.to_offset(at).seconds()));
    Duration::from_secs(before.abs_diff(after))
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
    let check = |spec: &BackupSpec| backup::check_spec(spec, namespace, policy);
    let refusal = check(&run::spec(schedule, policy))
        .or_else(|| run::spec_after_schedule(schedule, policy).as_ref().and_then(check));
    refusal.map(|refusal| refusal.moved("spec.backupSpec", "spec.template.backupSpec"))
}
