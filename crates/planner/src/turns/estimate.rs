//! When a request that waits is expected to start: a time, and a range that is right most of the time.
//!
//! What goes before it takes as long as earlier jobs of the same namespaces did. How far that may be off follows from how
//! much these varied, from how few they were, and from how much of Velero's time goes to namespaces that were not waiting
//! when the estimate was made. Times are absolute and coarse, so that an estimate stays true while it is not written.

use jiff::{SignedDuration, Timestamp};

use super::durations::{Spread, whole};

/// How many standard deviations the range has on either side.
const WIDTH: f64 = 1.7;
/// However little durations varied, an estimate is not more exact than this share of the wait.
const EXACT: f64 = 0.15;
/// No more of Velero's time than this is expected to go to those who are yet to ask.
const MOST_PASSING: f64 = 0.75;
/// How far off the share that goes to them may be.
const PASSING_VARIES: f64 = 0.12;

/// Work for Velero's workers, in milliseconds: how much is expected, and how far off that may be, squared.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Work {
    pub(super) mean: f64,
    pub(super) variance: f64,
}

impl Work {
    /// One more job like this, of a namespace of which so many were counted before. How long its jobs take in general is
    /// known only as well as so many of them were seen: that error is the same for each of them.
    pub(super) fn add(&mut self, spread: &Spread, before: u32) {
        self.mean += spread.mean;
        self.variance += spread.variance * (1.0 + f64::from(2 * before + 1) / spread.seen().max(1.0));
    }

    /// So many more jobs like this, of as many namespaces.
    pub(super) fn add_many(&mut self, spread: &Spread, number: usize) {
        let number = f64::from(u32::try_from(number).unwrap_or(u32::MAX));
        self.mean += spread.mean * number;
        self.variance += spread.variance * number * (1.0 + number / spread.seen().max(1.0));
    }

    /// What is left of a job that has run for so long. One that takes much longer than usual is expected to take half as
    /// long again: the later it gets, the less often that is said.
    pub(super) fn rest_of(spread: &Spread, elapsed: f64) -> Self {
        let usual = spread.variance.sqrt();
        if elapsed <= spread.mean + 2.0 * usual {
            return Self { mean: (spread.mean - elapsed).max(usual / 2.0), variance: spread.variance };
        }
        Self { mean: elapsed / 2.0, variance: elapsed * elapsed / 4.0 }
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self { mean: self.mean + other.mean, variance: self.variance + other.variance }
    }

    /// The same, done by so many workers or by so much of one.
    pub(super) fn over(self, workers: f64) -> Self {
        Self { mean: self.mean / workers, variance: self.variance / (workers * workers) }
    }
}

/// When a request is expected to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// Most likely about then.
    pub about: Timestamp,
    /// Most likely not before.
    pub earliest: Timestamp,
    /// Most likely not after.
    pub latest: Timestamp,
}

impl Estimate {
    /// After so much work, where this share of Velero's time goes to others who are yet to ask.
    pub(super) fn after(work: Work, passing: f64, now: Timestamp) -> Self {
        let share = |passing: f64| 1.0 / (1.0 - passing.clamp(0.0, MOST_PASSING));
        let off = WIDTH * work.variance.sqrt().max(work.mean * EXACT / WIDTH);
        let varies = if passing > 0.0 { PASSING_VARIES } else { 0.0 };
        let about = work.mean * share(passing);
        let earliest = (work.mean - off) * share(passing - varies);
        let latest = (work.mean + off) * share(passing + varies);
        let at = |millis: f64| now.as_second() + i64::try_from(whole(millis) / 1000).unwrap_or(0);
        Self::round(now.as_second(), [at(earliest), at(about), at(latest)])
    }

    /// Rounds to steps that grow with the time until then.
    fn round(now: i64, [earliest, about, latest]: [i64; 3]) -> Self {
        let step = match about - now {
            ..120 => 10,
            120..1200 => 60,
            1200..7200 => 300,
            7200..43_200 => 900,
            _ => 3600,
        };
        let time = |seconds: i64| Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX);
        Self {
            about: time((about + step / 2).div_euclid(step) * step),
            earliest: time(earliest.div_euclid(step) * step),
            latest: time((latest + step - 1).div_euclid(step) * step),
        }
    }

    /// Whether this estimate, which was made earlier, can stay as it is now that this one would be made. So an estimate is
    /// written again when it was wrong, or when it can be much more exact, which is a few times for each request.
    pub fn still_holds(&self, newer: &Self, now: Timestamp) -> bool {
        let width = |estimate: &Self| estimate.latest.duration_since(estimate.earliest);
        now <= self.latest
            && (self.earliest..=self.latest).contains(&newer.about)
            && (width(self) <= width(newer) * 3 || width(self) <= SignedDuration::from_mins(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn minutes(estimate: Estimate) -> [i64; 3] {
        [estimate.earliest, estimate.about, estimate.latest].map(|time| time.as_second() / 60)
    }

    fn estimate(minutes: [i64; 3]) -> Estimate {
        let [earliest, about, latest] = minutes.map(|minute| at(minute * 60));
        Estimate { about, earliest, latest }
    }

    #[test]
    fn the_range_grows_with_what_is_not_known() {
        let work = |mean: f64, off: f64| Work { mean: mean * 60e3, variance: (off * 60e3).powi(2) };
        assert_eq!(minutes(Estimate::after(work(12.0, 0.0), 0.0, at(0))), [10, 12, 14]);
        assert_eq!(minutes(Estimate::after(work(12.0, 3.0), 0.0, at(0))), [6, 12, 18]);
        assert_eq!(minutes(Estimate::after(work(12.0, 30.0), 0.0, at(0))), [0, 12, 63], "never before now");
        assert_eq!(
            minutes(Estimate::after(work(12.0, 4.0), 0.5, at(0))),
            [5, 25, 50],
            "others ask meanwhile"
        );
        assert_eq!(minutes(Estimate::after(work(120.0, 10.0), 0.5, at(0))), [150, 240, 375]);
    }

    #[test]
    fn the_longer_it_takes_the_coarser_it_is() {
        let about = |seconds: i64| Estimate::round(7, [7 + seconds; 3]).about.as_second();
        assert_eq!(about(44), 50);
        assert_eq!(about(305), 300);
        assert_eq!(about(4000), 3900);
        assert_eq!(about(10_000), 9900);
        assert_eq!(about(100_000), 100_800);
    }

    #[test]
    fn a_shown_estimate_stays_until_it_is_wrong_or_can_be_much_better() {
        let shown = estimate([10, 20, 30]);
        assert!(shown.still_holds(&estimate([15, 25, 35]), at(0)));
        assert!(!shown.still_holds(&estimate([25, 31, 40]), at(0)), "it will be later");
        assert!(!shown.still_holds(&estimate([5, 9, 12]), at(0)), "it will be earlier");
        assert!(!shown.still_holds(&estimate([19, 20, 22]), at(0)), "it is known much better");
        assert!(
            estimate([10, 20, 40]).still_holds(&estimate([20, 25, 30]), at(0)),
            "a third is not much better"
        );
        assert!(
            estimate([20, 20, 21]).still_holds(&estimate([20, 20, 20]), at(0)),
            "a minute is exact enough"
        );
        assert!(shown.still_holds(&estimate([28, 30, 35]), at(30 * 60)));
        assert!(!shown.still_holds(&estimate([28, 30, 35]), at(30 * 60 + 1)), "it should have started");
    }

    #[test]
    fn what_takes_much_longer_than_usual_is_not_expected_to_end_at_once() {
        let mut spread = Spread::default();
        for _ in 0..20 {
            spread.note(60e3);
        }
        assert!((Work::rest_of(&spread, 20e3).mean - 40e3).abs() < 1.0);
        assert!((Work::rest_of(&spread, 7_200e3).mean - 3_600e3).abs() < 1.0, "an hour more after two");
        assert!(Work::rest_of(&spread, 60e3).mean < 1.0, "as long as always");
    }

    #[test]
    fn work_adds_up_and_so_does_what_is_not_known_of_it() {
        let mut spread = Spread::default();
        for millis in [10e3, 20e3, 30e3, 40e3] {
            spread.note(millis);
        }
        let is = |work: Work, mean: f64, variance: f64| {
            assert!((work.mean - mean).abs() < 1.0 && (work.variance - variance).abs() < 1e4, "{work:?}");
        };
        is(Work { mean: spread.mean, variance: spread.variance }, 25e3, 125e6);
        let mut work = Work::default();
        work.add(&spread, 0);
        is(work, 25e3, 125e6 * 1.25);
        work.add(&spread, 2);
        is(work, 50e3, 125e6 * 3.5);
        work.add_many(&spread, 8);
        is(work, 250e3, 125e6 * 27.5);
        is(work.over(4.0), 62.5e3, 125e6 * 27.5 / 16.0);
        is(work.and(work), 500e3, 125e6 * 55.0);
        is(Work::rest_of(&spread, 5e3), 20e3, 125e6);
        is(Work::rest_of(&spread, 47e3), 5590.0, 125e6);
        is(Work::rest_of(&spread, 48e3), 24e3, 576e6);
    }

    #[test]
    fn a_range_is_rounded_outwards() {
        let round = |times: [i64; 3]| {
            let Estimate { about, earliest, latest } = Estimate::round(6000, times);
            [earliest, about, latest].map(Timestamp::as_second)
        };
        assert_eq!(round([7201, 7350, 7499]), [7200, 7500, 7500]);
        assert_eq!(round([7200, 7349, 7500]), [7200, 7200, 7500]);
    }
}
