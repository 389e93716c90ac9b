//! Which run is due, when it starts, and until when it may still start.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::cron::{Cron, hash};
use crate::policy::Windows;

/// The times of a schedule, as nacre keeps them.
#[derive(Clone, Debug)]
pub struct Times {
    /// When it is due.
    pub cron: Cron,
    /// The longest time by which starts are shifted, so that not everybody starts at once.
    pub spread: Duration,
    /// What the shift is chosen by: the same for one schedule always, and another one for others.
    pub seed: u64,
    /// How late a run may start; none for half of the time until the next one.
    pub deadline: Option<Duration>,
    /// When runs may start.
    pub windows: Windows,
}

/// A run that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// The time it is due, by the schedule alone. It is known by this time.
    pub due: Timestamp,
    /// When it starts.
    pub start: Timestamp,
    /// Whether others were due before it, and were neither made nor skipped.
    pub missed: bool,
}

/// What the shift of a schedule is chosen by.
pub(super) fn seed(namespace_uid: &str, name: &str) -> u64 {
    hash(format!("{namespace_uid}/{name}").as_bytes())
}

impl Times {
    /// When the run of this time starts: shifted by less than the spread, and by less than half of the time until the
    /// next run, so that runs start in their order. It is not shifted out of the window that it is due in either.
    pub fn start(&self, due: Timestamp) -> Timestamp {
        let longest = self.half_of_interval(due).map_or(self.spread, |half| half.min(self.spread));
        let longest = self.windows.left(due).map_or(longest, |left| longest.min(left / 2));
        if self.cron.is_spread() || longest.as_secs() == 0 {
            return due;
        }
        due.checked_add(Duration::from_secs(self.seed % longest.as_secs())).unwrap_or(due)
    }

    fn half_of_interval(&self, due: Timestamp) -> Option<Duration> {
        let next = self.cron.next(due)?;
        Some(next.duration_since(due).unsigned_abs() / 2)
    }

    /// The next run after this time, and when it starts.
    pub fn next(&self, after: Timestamp) -> Option<Due> {
        let due = self.cron.next(after)?;
        Some(Due { due, start: self.start(due), missed: false })
    }

    /// The latest run that was due after `last` and has started or should have by now.
    pub fn latest(&self, last: Timestamp, now: Timestamp) -> Option<Due> {
        let first = self.next(last).filter(|first| first.start <= now)?;
        let latest = self.cron.latest(last, now)?;
        let due = if self.start(latest) <= now {
            latest
        } else {
            // It is due and has not started: the one before it has, since starts are in order.
            self.cron.latest(last, latest - SignedDuration::from_secs(1))?
        };
        Some(Due { due, start: self.start(due), missed: due != first.due })
    }

    /// Whether the run of this time may still start.
    pub fn in_time(&self, due: &Due, now: Timestamp) -> bool {
        let late = now.duration_since(due.start).unsigned_abs();
        let longest = self.deadline.or_else(|| self.half_of_interval(due.due));
        longest.is_none_or(|longest| late <= longest.max(SHORTEST))
    }

    /// Whether the administrators let the run of this time start now. Deciding takes a moment, which does not count.
    pub fn may_start(&self, due: &Due, now: Timestamp) -> bool {
        let on_time = now.duration_since(due.start).unsigned_abs() <= SHORTEST;
        self.windows.allow(now) || (on_time && self.windows.allow(due.start))
    }
}

/// A run is never too late within this time, however short its interval is: deciding takes a moment.
const SHORTEST: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::Times;
    use crate::Policy;
    use crate::schedule::cron::{Cron, Setting};

    fn times(cron: &str, windows: &[&str], seed: u64) -> Times {
        let setting =
            Setting { time_zone: None, hashed: "", anchor: "2026-01-01T00:00:00Z".parse().unwrap() };
        let mut policy = Policy::default();
        policy.schedules.windows = windows.iter().map(|&window| window.to_owned()).collect();
        Times {
            cron: Cron::read(cron, &setting).unwrap(),
            spread: std::time::Duration::from_hours(2),
            seed,
            deadline: None,
            windows: policy.schedules.windows(),
        }
    }

    #[test]
    fn a_start_is_shifted_but_never_out_of_its_window() {
        for (cron, window) in [
            ("58 5 * * *", "22:00-06:00"),
            ("59 5 * * *", "22:00-06:00"),
            ("0 22 * * *", "22:00-06:00"),
            ("30 23 * * *", "22:00-24:00"),
            ("30 23 * * *", "00:00-00:00"),
            ("50 4 * * *", "22:00-06:00 Europe/Berlin"),
            ("50 0 29 3 *", "00:00-03:00 Europe/Berlin"), // Ten minutes before clocks go from 02:00 to 03:00.
        ] {
            let mut shifted = 0;
            for seed in (0..5_000).step_by(7) {
                let times = times(cron, &[window], seed);
                let due = times.cron.next("2026-03-01T00:00:00Z".parse().unwrap()).unwrap();
                let start = times.start(due);
                assert!(times.windows.allow(start), "{cron} in {window}: {due} starts at {start}");
                shifted += u32::from(start != due);
            }
            assert!(shifted > 600, "{cron} in {window}: only {shifted} of 715 are shifted");
        }
    }

    #[test]
    fn a_run_that_starts_a_moment_after_its_window_starts() {
        let times = times("59 5 * * *", &["22:00-06:00"], 29);
        let due = times.next("2026-03-01T00:00:00Z".parse().unwrap()).unwrap();
        assert_eq!(due.start.to_string(), "2026-03-01T05:59:29Z");
        assert!(times.may_start(&due, "2026-03-01T05:59:59Z".parse().unwrap()));
        let late = super::Due { start: "2026-03-01T05:59:59Z".parse().unwrap(), ..due };
        assert!(times.may_start(&late, "2026-03-01T06:00:02Z".parse().unwrap()), "deciding takes a moment");
        assert!(!times.may_start(&late, "2026-03-01T06:01:00Z".parse().unwrap()));
    }
}
