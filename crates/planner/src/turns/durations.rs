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
    /// How long jobs took from their start to their end.
    whole: Spread,
    /// How long workers were busy with them: others wait only for that.
    work: Spread,
    /// The one that ended last. Unlike the mean, it does not depend on the order in which jobs are seen.
    last: Option<Took>,
    /// When a worker became free last, in seconds.
    free: Option<i64>,
}

impl Seen {
    fn note_end(&mut self, took: Took) {
        self.whole.note(float(took.1));
        self.last = self.last.max(Some(took));
    }

    fn note_work(&mut self, (second, millis): Took) {
        self.work.note(float(millis));
        self.free = self.free.max(Some(second));
    }
}

fn float(millis: u64) -> f64 {
    f64::from(u32::try_from(millis).unwrap_or(u32::MAX))
}

/// How long jobs of one kind took.
#[derive(Clone, Debug, Default)]
pub struct Durations {
    all: Seen,
    of: HashMap<Uid, Seen>,
}

impl Durations {
    /// A job of this namespace is over, and took so long. What cannot be trusted counts for the namespace alone.
    pub fn note_end(&mut self, uid: Option<&Uid>, took: Took, is_trusted: bool) {
        self.note(uid, is_trusted, |seen| seen.note_end(took));
    }

    /// A worker is done with a job of this namespace, and was busy with it for so long.
    pub fn note_work(&mut self, uid: Option<&Uid>, took: Took, is_trusted: bool) {
        self.note(uid, is_trusted, |seen| seen.note_work(took));
    }

    fn note(&mut self, uid: Option<&Uid>, is_trusted: bool, note: impl Fn(&mut Seen)) {
        if is_trusted {
            note(&mut self.all);
        }
        if let Some(uid) = uid.filter(|uid| self.of.len() < MOST || self.of.contains_key(*uid)) {
            note(self.of.entry(uid.clone()).or_default());
        }
    }

    /// When a worker became free last; none if none was seen to.
    pub fn last_free(&self) -> Option<Timestamp> {
        self.all.free.and_then(|second| Timestamp::from_second(second).ok())
    }

    /// What a job of this namespace is charged until it is known how long it took: what the last one did.
    pub fn charged(&self, uid: &Uid) -> u64 {
        let last = self.of.get(uid).and_then(|seen| seen.last).or(self.all.last);
        last.map_or(UNKNOWN_MILLIS, |(_, millis)| millis)
    }

    /// How long a worker is expected to be busy with the next job of this namespace: as with its earlier ones, else as with
    /// all.
    pub fn expected(&self, uid: Option<&Uid>) -> Spread {
        self.spread(uid, |seen| seen.work)
    }

    /// The same as a whole number of milliseconds.
    pub fn expected_work(&self, uid: &Uid) -> u64 {
        whole(self.expected(Some(uid)).mean)
    }

    /// What the next job of this namespace is expected to be charged in the end, in milliseconds.
    pub fn expected_charge(&self, uid: &Uid) -> u64 {
        whole(self.spread(Some(uid), |seen| seen.whole).mean)
    }

    fn spread(&self, uid: Option<&Uid>, of: impl Fn(&Seen) -> Spread) -> Spread {
        let known = |seen: &Seen| Some(of(seen)).filter(|spread| spread.seen > 0.0);
        let own = uid.and_then(|uid| self.of.get(uid)).and_then(known);
        let unknown = Spread { seen: 0.0, mean: UNKNOWN, variance: UNKNOWN * UNKNOWN };
        let mut spread = own.or_else(|| known(&self.all)).unwrap_or(unknown);
        // One or two jobs say little about how much they vary.
        if spread.seen < 3.0 {
            spread.variance = spread.variance.max(spread.mean * spread.mean / 2.0);
        }
        spread
    }
}

/// A number of milliseconds that is neither negative nor beyond what can be counted.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is cut to what fits")]
pub(super) fn whole(millis: f64) -> u64 {
    millis.clamp(0.0, 4e15) as u64
}

#[cfg(test)]
mod tests {
    use super::{Durations, Timestamp, Uid};

    #[test]
    fn a_namespace_is_judged_by_its_own_jobs_and_a_new_one_by_all() {
        let (mut durations, [slow, fast, new]) =
            (Durations::default(), ["slow", "fast", "new"].map(Uid::from));
        assert_eq!(durations.expected_charge(&new), 30_000, "nothing was seen");
        for _ in 0..10 {
            durations.note_end(Some(&slow), (1, 100_000), true);
            durations.note_end(Some(&fast), (2, 2000), true);
        }
        assert_eq!(durations.expected_charge(&slow), 100_000);
        assert_eq!(durations.expected_charge(&fast), 2000);
        let all = durations.expected_charge(&new);
        assert!((40_000..60_000).contains(&all), "{all}");
        for _ in 0..60 {
            durations.note_end(Some(&slow), (3, 4000), true);
        }
        assert!(durations.expected_charge(&slow) < 10_000, "what was long ago fades");
        assert_eq!([&slow, &fast, &new].map(|uid| durations.charged(uid)), [4000, 2000, 4000]);
    }

    #[test]
    fn the_time_of_workers_is_apart_from_what_is_charged() {
        let (mut durations, shop) = (Durations::default(), Uid::from("shop"));
        durations.note_work(Some(&shop), (10, 10_000), true);
        assert_eq!((durations.charged(&shop), durations.expected_charge(&shop)), (30_000, 30_000));
        durations.note_end(Some(&shop), (3610, 3_610_000), true);
        assert_eq!((durations.charged(&shop), durations.expected_charge(&shop)), (3_610_000, 3_610_000));
        assert_eq!(durations.expected_work(&shop), 10_000);
        assert_eq!(durations.last_free().map(Timestamp::as_second), Some(10));
    }

    #[test]
    fn one_or_two_jobs_say_little_about_how_much_they_vary() {
        let (mut durations, shop) = (Durations::default(), Uid::from("shop"));
        let varies = |durations: &Durations| durations.expected(Some(&shop)).variance.sqrt();
        assert!((varies(&durations) - 30e3).abs() < 1.0);
        for _ in 0..2 {
            durations.note_work(Some(&shop), (10, 10_000), true);
        }
        assert!((varies(&durations) - 7071.0).abs() < 1.0);
        durations.note_work(Some(&shop), (10, 10_000), true);
        assert!(varies(&durations) < 1.0);
    }

    #[test]
    fn beyond_so_many_namespaces_only_those_that_are_known_are_remembered() {
        let mut durations = Durations::default();
        let uid = |number: usize| Uid::from(number.to_string());
        for number in 0..super::MOST {
            durations.note_end(Some(&uid(number)), (1, 5000), false);
        }
        for number in [0, super::MOST] {
            durations.note_end(Some(&uid(number)), (2, 9000), false);
        }
        assert_eq!([0, 1, super::MOST].map(|number| durations.charged(&uid(number))), [9000, 5000, 30_000]);
    }
}
