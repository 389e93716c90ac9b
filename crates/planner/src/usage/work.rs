//! How long Velero works, and on which day. Days are those of UTC, for everybody.

use std::time::Duration;

use api::velero::{Backup, Restore};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::core::ObjectMeta;

/// The longest that one backup or restore counts: what Velero reports beyond is a mistake.
const LONGEST_DAYS: usize = 7;

/// From when to when Velero worked on something; without an end it still does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// When Velero began.
    pub start: Timestamp,
    /// When it was over.
    pub end: Option<Timestamp>,
}

impl Span {
    /// When Velero worked on this Backup. One that was imported from storage was worked on elsewhere, or long ago: it
    /// exists since after its start.
    pub fn of_backup(velero: &Backup) -> Option<Self> {
        let status = velero.status.as_ref()?;
        Self::of(&velero.metadata, status.start_timestamp.as_ref(), status.completion_timestamp.as_ref())
    }

    /// When Velero worked on this Restore.
    pub fn of_restore(velero: &Restore) -> Option<Self> {
        let status = velero.status.as_ref()?;
        Self::of(&velero.metadata, status.start_timestamp.as_ref(), status.completion_timestamp.as_ref())
    }

    fn of(meta: &ObjectMeta, start: Option<&Time>, end: Option<&Time>) -> Option<Self> {
        let start = start?.0;
        (!was_imported(meta, start)).then(|| Self { start, end: end.map(|end| end.0) })
    }

    /// The seconds on each day, if it is over.
    pub(super) fn days(self) -> Vec<(Date, u64)> {
        let Some(end) = self.end.filter(|end| *end > self.start) else { return Vec::new() };
        let days = day(self.start).series(jiff::Span::new().days(1)).take(LONGEST_DAYS);
        let each = days.take_while(|date| begin(*date) <= end).map(|date| (date, self.on(date, end)));
        each.filter(|(_, seconds)| *seconds > 0).collect()
    }

    /// The seconds on one day until a time.
    pub(super) fn on(self, date: Date, now: Timestamp) -> u64 {
        let until = self.end.unwrap_or(now).min(now).min(end(date));
        let from = self.start.max(begin(date));
        u64::try_from(until.duration_since(from).as_secs()).unwrap_or(0)
    }
}

/// Whether an object that Velero started then was imported from storage: it exists since after its start, or nobody knows
/// since when.
pub(crate) fn was_imported(meta: &ObjectMeta, started: Timestamp) -> bool {
    meta.creation_timestamp.as_ref().is_none_or(|created| created.0 > started)
}

/// The day of a time.
pub fn day(at: Timestamp) -> Date {
    at.to_zoned(TimeZone::UTC).date()
}

/// How long it is until the next day.
pub fn until_tomorrow(now: Timestamp) -> Duration {
    end(day(now)).duration_since(now).try_into().unwrap_or(Duration::ZERO)
}

/// The seconds that Velero worked on these today.
pub fn work_on(spans: impl IntoIterator<Item = Span>, now: Timestamp) -> u64 {
    spans.into_iter().map(|span| span.on(day(now), now)).fold(0, u64::saturating_add)
}

fn begin(date: Date) -> Timestamp {
    date.to_zoned(TimeZone::UTC).map_or(Timestamp::MIN, |midnight| midnight.timestamp())
}

fn end(date: Date) -> Timestamp {
    begin(date).checked_add(SignedDuration::from_hours(24)).unwrap_or(Timestamp::MAX)
}
