//! How long jobs took, by namespace and in all.

use std::collections::HashMap;

use jiff::Timestamp;

use super::Uid;

/// What a job is expected to take before any was seen, in milliseconds.
const UNKNOWN: f64 = 30_000.0;
/// The same as a whole number.
const UNKNOWN_MILLIS: u64 = 30_000;
/// So many jobs count; older ones fade.
const RECENT: f64 = 20.0;
/// More namespaces than this are not remembered one by one.
const MOST: usize = 20_000;

/// The mean and the variance of what was seen lately.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    seen: f64,
    /// In milliseconds.
    pub mean: f64,
    /// In milliseconds, squared.
    pub variance: f64,
}

impl Spread {
    /// How many jobs it comes from.
    pub(super) fn seen(&self) -> f64 {
        self.seen
    }

    pub(super) fn note(&mut self, millis: f64) {
        self.seen = (self.seen + 1.0).min(RECENT);
        let off = millis - self.mean;
        self.mean += off / self.seen;
        self.variance += (off * (millis - self.mean) - self.variance) / self.seen;
    }
}

/// When a job ended, in seconds, and how long it took, in milliseconds.
pub type Took = (i64, u64);

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    spread: Spread,
    /// The one that ended last. Unlike the mean, it does not depend on the order in which jobs are seen.
    last: Option<Took>,
}

impl Seen {
    fn note(&mut self, took: Took) {
        self.spread.note(f64::from(u32::try_from(took.1).unwrap_or(u32::MAX)));
        self.last = self.last.max(Some(took));
    }
}

/// How long jobs of one kind took.
#[derive(Clone, Debug, Default)]
pub struct Durations {
    all: Seen,
    of: HashMap<Uid, Seen>,
}

impl Durations {
    /// A job of this namespace took so long. What cannot be trusted counts for the namespace alone.
    pub fn note(&mut self, uid: Option<&Uid>, took: Took, is_trusted: bool) {
        if is_trusted {
            self.all.note(took);
        }
        if let Some(uid) = uid.filter(|uid| self.of.len() < MOST || self.of.contains_key(*uid)) {
            self.of.entry(uid.clone()).or_default().note(took);
        }
    }

    /// When a job ended last; none if none was seen to end.
    pub fn last_end(&self) -> Option<Timestamp> {
        self.all.last.and_then(|(second, _)| Timestamp::from_second(second).ok())
    }

    /// What a job of this namespace is charged until it is known how long it took: what the last one did.
    pub fn charged(&self, uid: &Uid) -> u64 {
        let last = self.of.get(uid).and_then(|seen| seen.last).or(self.all.last);
        last.map_or(UNKNOWN_MILLIS, |(_, millis)| millis)
    }

    /// What the next job of this namespace is expected to take: as its earlier ones, else as all.
    pub fn expected(&self, uid: Option<&Uid>) -> Spread {
        let own = uid.and_then(|uid| self.of.get(uid)).map(|seen| seen.spread);
        let all = Some(self.all.spread).filter(|all| all.seen > 0.0);
        let mut spread =
            own.or(all).unwrap_or(Spread { seen: 0.0, mean: UNKNOWN, variance: UNKNOWN * UNKNOWN });
        // One or two jobs say little about how much they vary.
        if spread.seen < 3.0 {
            spread.variance = spread.variance.max(spread.mean * spread.mean / 2.0);
        }
        spread
    }

    /// The same as a whole number of milliseconds.
    pub fn expected_millis(&self, uid: Option<&Uid>) -> u64 {
        whole(self.expected(uid).mean)
    }
}

/// A number of milliseconds that is neither negative nor beyond what can be counted.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is cut to what fits")]
pub(super) fn whole(millis: f64) -> u64 {
    millis.clamp(0.0, 4e15) as u64
}

#[cfg(test)]
mod tests {
    use super::{Durations, Uid};

    #[test]
    fn a_namespace_is_judged_by_its_own_jobs_and_a_new_one_by_all() {
        let (mut durations, [slow, fast, new]) =
            (Durations::default(), ["slow", "fast", "new"].map(Uid::from));
        assert_eq!(durations.expected_millis(Some(&new)), 30_000, "nothing was seen");
        for _ in 0..10 {
            durations.note(Some(&slow), (1, 100_000), true);
            durations.note(Some(&fast), (2, 2000), true);
        }
        assert_eq!(durations.expected_millis(Some(&slow)), 100_000);
        assert_eq!(durations.expected_millis(Some(&fast)), 2000);
        let all = durations.expected_millis(Some(&new));
        assert!((40_000..60_000).contains(&all), "{all}");
        for _ in 0..60 {
            durations.note(Some(&slow), (3, 4000), true);
        }
        assert!(durations.expected_millis(Some(&slow)) < 10_000, "what was long ago fades");
        assert_eq!([&slow, &fast, &new].map(|uid| durations.charged(uid)), [4000, 2000, 4000]);
    }
}
