//! The promised figures, compared with the measured ones.

use super::results::{Load, Record, Results, Who};

/// How much longer than a bare client, how much more the time of each of ten thousand may grow than a bare client's, and how
/// much dearer each may be than each of a thousand.
pub const SLACK: f64 = 1.3;
/// From a new request to `Created`.
const WRITES_EACH: f64 = 3.01;
/// From a deleted request to its end: Velero's object, and the finalizer.
const DELETION_WRITES_EACH: f64 = 2.01;
/// The same where the API server puts the finalizer on.
const RECORDED_WRITES_EACH: f64 = 2.01;
/// How much longer backups into the administrators' storage may take because it is recorded who asks.
const RECORDED: f64 = 1.02;
/// Ready again with ten thousand settled objects.
const RESTART_SECONDS: f64 = 5.0;
/// Where most is promised.
pub const THOUSAND: usize = 1000;
const TEN_THOUSAND: usize = 10_000;
/// On request.
const HUNDRED_THOUSAND: usize = 100_000;

/// A promise, and whether it was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What was promised.
    pub promise: String,
    /// What was measured.
    pub measured: String,
    /// Whether that keeps it.
    pub kept: bool,
}

/// How many times as long as a bare client nacre took for the same writes.
pub fn beside_bare(results: &Results, load: Load, n: usize) -> Option<f64> {
    let record = |who| results.find(who, load, n).filter(|record| record.is_done());
    Some(record(Who::Nacre)?.seconds / record(Who::BareClient)?.seconds)
}

/// Every promise about which something was measured.
pub fn findings(results: &Results) -> Vec<Finding> {
    let mut all = Vec::new();
    at_a_thousand(results, &mut all);
    at_ten_thousand(results, &mut all);
    at_a_hundred_thousand(results, &mut all);
    for (who, faster) in [(Who::Peer, 25.0), (Who::PeerFast, 5.0)] {
        beside_peer(results, who, faster, &mut all);
    }
    all
}

fn at_most(promise: &str, limit: f64, measured: f64) -> Finding {
    Finding {
        promise: format!("{promise}: at most {limit}"),
        measured: format!("{measured:.3}"),
        kept: measured <= limit,
    }
}

fn at_least(promise: &str, limit: f64, measured: f64) -> Finding {
    let kept = measured >= limit;
    Finding { promise: format!("{promise}: at least {limit}"), measured: format!("{measured:.1}"), kept }
}

fn at_a_thousand(results: &Results, all: &mut Vec<Finding>) {
    if let Some(ratio) = beside_bare(results, Load::Burst, THOUSAND) {
        all.push(at_most("1000 backups Created, times a bare client", SLACK, ratio));
    }
    for n in [THOUSAND, TEN_THOUSAND] {
        if let Some(ratio) = beside_bare(results, Load::Turns, n) {
            all.push(at_most(&format!("{n} backups in turn, times a bare client"), SLACK, ratio));
        }
    }
    if let Some(burst) = results.find(Who::Nacre, Load::Burst, THOUSAND) {
        all.push(at_most("1000 backups, writes each", WRITES_EACH, burst.writes_each()));
    }
    let done = |load| results.find(Who::Nacre, load, THOUSAND).filter(|record| record.is_done());
    if let (Some(before), Some(after)) = (done(Load::Unrecorded), done(Load::Recorded)) {
        let promise = "1000 backups of 20 people with a record of who asks, times without";
        all.push(at_most(promise, RECORDED, after.seconds / before.seconds));
        let promise = "1000 backups of 20 people with a record of who asks, writes each";
        all.push(at_most(promise, RECORDED_WRITES_EACH, after.writes_each()));
    }
    if let Some(delete) = results.find(Who::Nacre, Load::Delete, THOUSAND) {
        all.push(at_most("1000 backups deleted, writes each", DELETION_WRITES_EACH, delete.writes_each()));
    }
}

fn at_ten_thousand(results: &Results, all: &mut Vec<Finding>) {
    let burst = |who, n| results.find(who, Load::Burst, n).filter(|record| record.is_done());
    let both = |who| Some((burst(who, THOUSAND)?, burst(who, TEN_THOUSAND)?));
    let grown = |(few, many): (&Record, &Record), cost: fn(&Record) -> f64| {
        many.each(cost(many)) / few.each(cost(few))
    };
    if let Some(nacre) = both(Who::Nacre) {
        // The API server itself needs longer for each write of ten thousand: that is not nacre's.
        if let Some(bare) = both(Who::BareClient) {
            let promise =
                "time of each of 10 000 compared with each of 1000, times the growth of a bare client's";
            let seconds = |record: &Record| record.seconds;
            all.push(at_most(promise, SLACK, grown(nacre, seconds) / grown(bare, seconds)));
        }
        let promise = |what: &str| format!("each of 10 000 compared with each of 1000, {what}");
        all.push(at_most(&promise("CPU"), SLACK, grown(nacre, |record| record.cpu_seconds)));
        all.push(at_most(&promise("writes"), SLACK, nacre.1.writes_each() / nacre.0.writes_each()));
    }
    if let Some(restart) = results.find(Who::Nacre, Load::Restart, TEN_THOUSAND) {
        let promise = "restart with 10 000 settled, seconds until ready";
        all.push(at_most(promise, RESTART_SECONDS, restart.seconds));
        all.push(at_most("restart with 10 000 settled, writes", 0.0, restart.writes_each()));
    }
}

#[expect(clippy::cast_precision_loss, reason = "bytes of memory are few compared with what a float holds")]
fn at_a_hundred_thousand(results: &Results, all: &mut Vec<Finding>) {
    if let Some(restart) = results.find(Who::Nacre, Load::Restart, HUNDRED_THOUSAND) {
        let promise = |what: &str| format!("restart with 100 000 settled, {what}");
        all.push(at_most(&promise("seconds until ready"), 15.0, restart.seconds));
        all.push(at_most(&promise("writes"), 0.0, restart.writes_each()));
        all.push(at_most(&promise("MiB"), 500.0, restart.peak_rss as f64 / f64::from(1 << 20)));
    }
}

/// Of a peer that was not done, time and memory are what it had used by then, and would have been more; CPU is compared for
/// what it had done.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts and bytes of memory are few compared with what a float holds"
)]
fn beside_peer(results: &Results, who: Who, faster: f64, all: &mut Vec<Finding>) {
    let burst = |who| results.find(who, Load::Burst, THOUSAND);
    let (Some(nacre), Some(peer)) = (burst(Who::Nacre), burst(who)) else { return };
    let promise = |what: &str| format!("1000 backups, {what} than {}", who.name());
    all.push(at_least(&promise("times faster"), faster, peer.seconds / nacre.seconds));
    if who == Who::Peer {
        let each = |record: &Record| record.cpu_seconds / record.done as f64;
        all.push(at_least(&promise("times less CPU"), 15.0, each(peer) / each(nacre)));
        all.push(at_least(&promise("times less memory"), 2.0, peer.peak_rss as f64 / nacre.peak_rss as f64));
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;

    use super::*;

    pub(crate) fn record(who: Who, load: Load, n: usize, seconds: f64, writes: usize) -> Record {
        Record {
            who,
            load,
            n,
            done: n,
            of: n,
            seconds,
            writes: BTreeMap::from([("patch things".to_owned(), writes)]),
            conflicts: 0,
            events: 0,
            reviews: 0,
            cpu_seconds: seconds,
            peak_rss: 20 << 20,
        }
    }

    pub(crate) fn results(records: Vec<Record>) -> Results {
        Results { records, ..Results::new("make bench".to_owned()) }
    }

    fn broken(records: Vec<Record>) -> Vec<String> {
        let all = findings(&results(records)).into_iter();
        all.filter(|finding| !finding.kept).map(|finding| finding.promise).collect()
    }

    fn good() -> Vec<Record> {
        vec![
            record(Who::BareClient, Load::Burst, 1000, 5.0, 0),
            record(Who::Nacre, Load::Burst, 1000, 6.0, 3000),
            record(Who::Nacre, Load::Burst, 10_000, 70.0, 30_000),
            record(Who::Nacre, Load::Restart, 10_000, 2.0, 0),
            record(Who::Peer, Load::Burst, 1000, 300.0, 7300),
            record(Who::Nacre, Load::Delete, 1000, 6.0, 2000),
            record(Who::BareClient, Load::Turns, 1000, 8.0, 0),
            record(Who::Nacre, Load::Turns, 1000, 10.0, 5000),
            record(Who::Nacre, Load::Unrecorded, 1000, 6.0, 3000),
            record(Who::Nacre, Load::Recorded, 1000, 5.0, 2000),
            record(Who::BareClient, Load::Burst, 10_000, 75.0, 0),
        ]
    }

    #[test]
    fn what_was_not_measured_is_not_judged() {
        assert!(findings(&results(Vec::new())).is_empty());
        assert_eq!(findings(&results(good())).len(), 14);
    }

    /// The bare client's time of each grows from 5 to 7.5 ms, and nacre's from 6 to 9: it is the API server's.
    #[test]
    fn time_may_grow_as_much_as_a_bare_clients() {
        let growth = |seconds: f64| {
            let mut records = good();
            records[2].seconds = seconds;
            let all = findings(&results(records));
            all.into_iter().find(|finding| finding.promise.contains("times the growth")).unwrap()
        };
        assert_eq!(growth(90.0).measured, "1.000");
        assert!(growth(116.0).kept && !growth(118.0).kept);
        let without_bare = good().into_iter().take(10).collect();
        assert!(!findings(&results(without_bare)).iter().any(|found| found.promise.contains("growth")));
    }

    #[test]
    fn each_promise_can_be_broken() {
        let change = |at: usize, change: fn(&mut Record)| {
            let mut records = good();
            change(&mut records[at]);
            broken(records)
        };
        assert_eq!(broken(good()), ["1000 backups, times less memory than Go controller: at least 2"]);
        assert_eq!(change(4, |peer| peer.peak_rss *= 4), [""; 0]);
        let first = |at, how: fn(&mut Record)| change(at, how).remove(0);
        assert!(first(1, |nacre| nacre.seconds = 6.6).contains("times a bare client"));
        assert!(
            first(1, |nacre| nacre.writes = BTreeMap::from([(String::new(), 3011)])).contains("writes each")
        );
        assert!(first(2, |nacre| nacre.seconds = 120.0).contains("times the growth"));
        assert!(first(2, |nacre| nacre.cpu_seconds = 80.0).contains("CPU"));
        assert!(first(3, |nacre| nacre.seconds = 5.1).contains("until ready"));
        assert!(first(3, |nacre| nacre.writes = BTreeMap::from([(String::new(), 1)])).contains("writes"));
        let third = |nacre: &mut Record| nacre.writes = BTreeMap::from([(String::new(), 3000)]);
        assert!(first(5, third).contains("deleted, writes each"));
        assert!(first(7, |nacre| nacre.seconds = 10.5).contains("in turn"));
        assert!(first(9, |nacre| nacre.seconds = 6.2).contains("record of who asks, times without"));
        let third = |nacre: &mut Record| nacre.writes = BTreeMap::from([(String::new(), 3000)]);
        assert!(first(9, third).contains("record of who asks, writes each"));
        assert!(first(4, |peer| peer.seconds = 100.0).contains("times faster"));
    }
}
