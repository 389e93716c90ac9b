//! Which backups of a schedule are kept.
//!
//! The rules are those of restic: each counts from the newest good backup backwards, and a backup is kept if any of them
//! says so. Beyond them, the newest good backup is always kept, and what is not good never counts for a good one. Partial
//! backups that are newer than the last good one may be all there is of that time: they are kept by the same rules, apart
//! from the good ones, so that they do not pile up without bound while every run is partial.

use std::collections::BTreeSet;
use std::time::Duration;

use api::Retention;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// A finished run, as far as retention is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The name of its NonAdminBackup.
    pub name: String,
    /// The time it is a backup of.
    pub time: Timestamp,
    /// How good it is.
    pub quality: Quality,
    /// When Velero deletes it, if nobody moves that; none if it is unknown.
    pub expires: Option<Timestamp>,
}

/// How good a finished run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quality {
    /// It is complete, as it was asked for, and can be restored.
    Good,
    /// A part is missing, or it cannot be restored as a whole.
    Partial,
    /// There is nothing in it.
    Failed,
    /// Nothing can be said at the moment, for example because its storage cannot be reached. It stays.
    Unknown,
}

/// How many of the newest runs that failed stay, for whoever looks for the reason.
const FAILED: usize = 3;

/// The newest good one.
pub fn last_good(runs: &[Finished]) -> Option<&Finished> {
    runs.iter().filter(|run| run.quality == Quality::Good).max_by_key(|run| (run.time, &run.name))
}

/// The names of the runs that are not kept, oldest first.
pub fn not_kept<'a>(runs: &'a [Finished], retention: &Retention, zone: &TimeZone) -> Vec<&'a str> {
    let mut newest_first: Vec<_> = runs.iter().collect();
    newest_first.sort_by_key(|run| std::cmp::Reverse((run.time, &run.name)));
    let of = |quality| newest_first.iter().filter(move |run| run.quality == quality).copied();
    let good: Vec<_> = of(Quality::Good).collect();
    let kept = kept(&good, retention, zone);
    let mut away: Vec<_> = good.iter().filter(|run| !kept.contains(run.name.as_str())).copied().collect();
    let since = good.first().map(|last| last.time);
    let is_older = |run: &&Finished| since.is_some_and(|since| run.time < since);
    // Once there is a newer good one, what is partial is a failure like others.
    let (older, newer): (Vec<_>, Vec<_>) = of(Quality::Partial).partition(is_older);
    away.extend(older.into_iter().skip(FAILED));
    let kept_partial = self::kept(&newer, retention, zone);
    away.extend(newer.iter().skip(FAILED).filter(|run| !kept_partial.contains(run.name.as_str())));
    away.extend(of(Quality::Failed).skip(FAILED));
    away.sort_by_key(|run| (run.time, &run.name));
    away.into_iter().map(|run| run.name.as_str()).collect()
}

/// What a time has in common with others of its hour, day, week and so on.
type Period = fn(&Zoned) -> [i64; 4];

/// Which of these are kept; they come newest first.
fn kept<'a>(good: &[&'a Finished], retention: &Retention, zone: &TimeZone) -> BTreeSet<&'a str> {
    let Retention { keep_last, keep_hourly, keep_daily, keep_weekly, keep_monthly, keep_yearly, keep_within } =
        retention;
    let mut kept = BTreeSet::new();
    // Whatever the rules say, the last good one stays.
    let at_least_one = keep_last.unwrap_or(0).max(1);
    kept.extend(good.iter().take(at_least_one as usize).map(|run| run.name.as_str()));
    let periods: [(&Option<u32>, Period); 5] = [
        (keep_hourly, |at| {
            // What clocks show, which is not on the hour of UTC everywhere; an hour that they show twice is two hours.
            let offset = i64::from(at.offset().seconds());
            [(at.timestamp().as_second() + offset).div_euclid(3600), offset, 0, 0]
        }),
        (keep_daily, |at| [at.year().into(), at.month().into(), at.day().into(), 0]),
        (keep_weekly, |at| {
            let week = at.date().iso_week_date();
            [week.year().into(), week.week().into(), 0, 0]
        }),
        (keep_monthly, |at| [at.year().into(), at.month().into(), 0, 0]),
        (keep_yearly, |at| [at.year().into(), 0, 0, 0]),
    ];
    for (many, period) in periods {
        let mut seen = BTreeSet::new();
        for run in good {
            if seen.len() >= many.unwrap_or(0) as usize {
                break;
            }
            // The newest of a period comes first.
            if seen.insert(period(&run.time.to_zoned(zone.clone()))) {
                kept.insert(run.name.as_str());
            }
        }
    }
    if let (Some(within), Some(newest)) = (keep_within.as_deref().and_then(within), good.first()) {
        let since = newest.time.checked_sub(within).unwrap_or(Timestamp::MIN);
        kept.extend(good.iter().filter(|run| run.time >= since).map(|run| run.name.as_str()));
    }
    kept
}

/// Reads `keepWithin`: numbers with s, m, h, d or w, as `30d` or `1w12h`.
pub fn within(text: &str) -> Option<Duration> {
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).filter(|end| *end > 0)?;
        let (number, after) = rest.split_at(digits);
        let unit = after.chars().next()?;
        let seconds = match unit {
            's' => 1,
            'm' => 60,
            'h' => 3600,
            'd' => 86_400,
            'w' => 604_800,
            _ => return None,
        };
        let seconds = number.parse::<u64>().ok()?.checked_mul(seconds)?;
        total = total.checked_add(Duration::from_secs(seconds)).filter(|total| *total <= LONGEST)?;
        rest = &after[unit.len_utf8()..];
    }
    (!text.is_empty()).then_some(total)
}

/// A hundred years: beyond any backup.
const LONGEST: Duration = Duration::from_hours(100 * 366 * 24);

#[cfg(test)]
#[path = "retention_tests.rs"]
mod tests;
