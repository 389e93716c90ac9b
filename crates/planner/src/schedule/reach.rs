//! How far back a retention reaches: whether backups expire before, and whether the namespace has a place for them.

use std::time::Duration;

use api::{NonAdminSchedule, Retention};
use jiff::tz::TimeZone;

use super::due::Times;
use super::retention::{self, Finished};
use super::{Observed, keep};
use crate::{Policy, Refusal};

const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);
/// How many runs are looked at for the longest time between two of them.
const RUNS: usize = 8;

/// How many backups each rule keeps, and the shortest time between two of them.
fn rules(retention: &Retention) -> [(u32, Duration); 6] {
    let Retention {
        keep_last,
        keep_hourly,
        keep_daily,
        keep_weekly,
        keep_monthly,
        keep_yearly,
        keep_within: _,
    } = retention;
    [
        (keep_last, Duration::ZERO),
        (keep_hourly, HOUR),
        (keep_daily, DAY),
        (keep_weekly, 7 * DAY),
        (keep_monthly, 31 * DAY),
        (keep_yearly, 366 * DAY),
    ]
    .map(|(many, period)| (many.unwrap_or_default(), period))
}

/// How old the oldest backup gets that a retention keeps, beyond the last good one, which is kept anyway.
fn oldest(retention: &Retention, interval: Duration) -> Duration {
    let several = rules(retention).into_iter().filter(|(many, _)| *many > 1);
    let by_number = several.map(|(many, period)| period.max(interval).saturating_mul(many));
    by_number.chain(retention.keep_within.as_deref().and_then(retention::within)).max().unwrap_or_default()
}

/// The longest time between two runs. Always the same runs are looked at, so that the answer does not change with time.
fn interval(schedule: &NonAdminSchedule, times: &Times) -> Duration {
    let Some(from) = schedule.metadata.creation_timestamp.as_ref() else { return Duration::ZERO };
    let runs: Vec<_> = times.cron.after(from.0).take(RUNS).collect();
    let between = runs.windows(2).map(|pair| pair[1].duration_since(pair[0]).unsigned_abs());
    between.max().unwrap_or_default()
}

/// The ttl by which backups expire earlier than the retention says, as a sentence.
pub(super) fn shorter_ttl(
    seen: &Observed,
    retention: &Retention,
    times: &Times,
    policy: &Policy,
) -> Option<String> {
    let (enforced, longest) = (policy.backup.enforce.ttl.as_ref(), policy.backup.ttl.max.as_ref());
    let ttl = enforced.or(longest).filter(|_| keep::replaces_ttl(&seen.schedule, policy))?;
    let needed = oldest(retention, interval(&seen.schedule, times));
    ttl.to_std().filter(|ttl| *ttl < needed)?;
    Some(match enforced {
        Some(ttl) => format!("the administrators enforce a ttl of {ttl}"),
        None => format!("the administrators allow a ttl of at most {ttl}"),
    })
}

/// How many backups are kept, and how many the namespace may have, if that leaves no place for the next run. That run
/// would wait for a place, and retention deletes nothing before there is a newer good backup.
pub(super) fn no_place(
    finished: &[Finished],
    retention: &Retention,
    zone: &TimeZone,
    policy: &Policy,
) -> Option<(usize, usize)> {
    let most = policy.backup.max_per_namespace?;
    let away = retention::not_kept(finished, retention, zone);
    let stays = |run: &&Finished| !away.contains(&run.name.as_str());
    let kept = finished.iter().filter(stays).count().max(largest(retention));
    (kept >= most).then_some((kept, most))
}

fn largest(retention: &Retention) -> usize {
    let largest = rules(retention).into_iter().map(|(many, _)| many).max().unwrap_or_default();
    usize::try_from(largest).unwrap_or(usize::MAX)
}

pub(super) fn no_place_message(kept: usize, most: usize) -> String {
    format!(
        "the retention keeps {kept} backups and this namespace may have {most}, which leaves no place for the next run; \
         keep fewer, or ask the administrators for a higher backup.maxPerNamespace"
    )
}

/// The same for a schedule that is not stored yet, as a warning.
pub(super) fn warning(schedule: &NonAdminSchedule, policy: &Policy) -> Option<Refusal> {
    let retention = keep::effective(schedule, policy)?;
    let (kept, most) = no_place(&[], &retention, &TimeZone::UTC, policy)?;
    Some(Refusal::new("spec.retention", no_place_message(kept, most)))
}
