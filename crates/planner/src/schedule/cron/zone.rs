//! Times of day in a time zone, also on days when clocks change.
//!
//! - A time that does not exist, because clocks were set forward over it, is due as long after the change as
//!   it lies after the hour that was left out began: 02:30 is due at 03:30. It is not lost, as it would be with Velero.
//! - A time that exists twice, because clocks were set back, is due once, the first time; Velero makes two.
//! - Where any hour will do (`0 * * * *`), real time counts: it is due every hour, whatever the clocks show.

use std::sync::LazyLock;

use jiff::tz::{Offset, TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};

use super::Fields;

static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// The zone of this name, out of the database that nacre was built with.
pub(crate) fn find(name: &str) -> Result<TimeZone, String> {
    // What Go calls local is UTC in the images of Velero and nacre.
    if matches!(name, "" | "Local") {
        return Ok(TimeZone::UTC);
    }
    ZONES
        .get(name)
        .map_err(|_| format!("{name:?} is not a time zone; write for example UTC or Europe/Berlin"))
}

/// How many changes of the clocks are looked over: five years of them, with two a year.
const MOST_CHANGES: usize = 12;
/// How many entries of the database in a row may change nothing but the name of the time.
const NAMES_ONLY: usize = 8;
/// The shortest time there is.
const INSTANT: SignedDuration = SignedDuration::from_nanos(1);

/// A time between two changes of the clocks.
#[derive(Clone, Copy, Debug)]
struct Span {
    /// Its first moment; none if the clocks never changed before.
    start: Option<Timestamp>,
    /// The first moment after it; none if they never change again.
    end: Option<Timestamp>,
    /// How far the clocks are ahead of UTC in it.
    offset: Offset,
    /// How far they were ahead before it.
    before: Offset,
}

pub(super) fn next(fields: &Fields, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
    let mut span = Span::with(zone, after);
    let mut after = after;
    for _ in 0..MOST_CHANGES {
        if let Some(due) = span.next(fields, after) {
            return Some(due);
        }
        let end = span.end?;
        // The first moment of the next span may be due itself.
        after = end - SignedDuration::from_secs(1);
        span = Span::with(zone, end);
    }
    None
}

impl Span {
    fn with(zone: &TimeZone, moment: Timestamp) -> Self {
        let before = zone.preceding(moment + INSTANT).map(|change| change.timestamp());
        let start = before.take(NAMES_ONLY).find(|change| changes(zone, *change));
        let after = zone.following(moment).map(|change| change.timestamp());
        let end = after.take(NAMES_ONLY).find(|change| changes(zone, *change));
        let offset = zone.to_offset(moment);
        Self { start, end, offset, before: start.map_or(offset, |start| zone.to_offset(start - INSTANT)) }
    }

    /// The next time in this span, later than this one, that is due.
    fn next(&self, fields: &Fields, after: Timestamp) -> Option<Timestamp> {
        let due = [self.next_shown(fields, after), self.next_left_out(fields, after)];
        due.into_iter().flatten().min().filter(|due| self.end.is_none_or(|end| *due < end))
    }

    /// A time that clocks show. If they show it for the second time, it is due only where any hour will do.
    fn next_shown(&self, fields: &Fields, after: Timestamp) -> Option<Timestamp> {
        let repeated = self.repeated_until().filter(|_| !fields.any_hour);
        let after = repeated.map_or(after, |end| after.max(end - INSTANT));
        next_at(fields, self.offset, after)
    }

    /// A time that clocks never show, as if they had not been changed.
    fn next_left_out(&self, fields: &Fields, after: Timestamp) -> Option<Timestamp> {
        let start = self.start.filter(|_| self.jump().is_positive() && !fields.any_hour)?;
        let due = next_at(fields, self.before, after.max(start - INSTANT))?;
        Some(due).filter(|due| *due < start + self.jump())
    }

    /// How far clocks were set forward at its start.
    fn jump(&self) -> SignedDuration {
        self.offset.duration_since(self.before)
    }

    /// Until when clocks show what they have shown before.
    fn repeated_until(&self) -> Option<Timestamp> {
        self.start.filter(|_| self.jump().is_negative()).map(|start| start - self.jump())
    }
}

/// The next time after this moment that clocks show, if they are always so far ahead of UTC.
fn next_at(fields: &Fields, offset: Offset, after: Timestamp) -> Option<Timestamp> {
    let ahead = SignedDuration::from_secs(offset.seconds().into());
    let shown = fields.times.find_next(after.checked_add(ahead).ok()?).ok()?;
    shown.timestamp().checked_sub(ahead).ok()
}

/// Whether clocks change at this moment, and not only the name of the time.
fn changes(zone: &TimeZone, moment: Timestamp) -> bool {
    zone.to_offset(moment) != zone.to_offset(moment - INSTANT)
}
