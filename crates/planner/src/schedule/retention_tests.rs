use api::Retention;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use super::{FAILED, Finished, Quality, last_good, not_kept, within};

fn run(hours: i64, quality: Quality) -> Finished {
    let start: Timestamp = "2026-01-01T02:00:00Z".parse().unwrap();
    let time = start + SignedDuration::from_hours(hours);
    Finished { name: format!("run-{hours:06}"), time, quality, expires: None }
}

fn nights(many: i64) -> Vec<Finished> {
    (0..many).map(|night| run(24 * night, Quality::Good)).collect()
}

/// The days of the runs that are kept.
fn kept(runs: &[Finished], retention: &Retention) -> Vec<String> {
    let away = not_kept(runs, retention, &TimeZone::UTC);
    let kept = runs.iter().filter(|run| !away.contains(&run.name.as_str()));
    kept.map(|run| run.time.to_string()[..10].to_owned()).collect()
}

#[test]
fn each_rule_keeps_the_newest_of_its_periods() {
    let nights = nights(70);
    let keep = |retention| kept(&nights, &retention);
    assert_eq!(keep(Retention { keep_last: Some(2), ..Retention::default() }), ["2026-03-10", "2026-03-11"]);
    assert_eq!(
        keep(Retention { keep_weekly: Some(2), ..Retention::default() }),
        ["2026-03-08", "2026-03-11"],
        "weeks begin on Monday"
    );
    assert_eq!(
        keep(Retention { keep_monthly: Some(5), ..Retention::default() }),
        ["2026-01-31", "2026-02-28", "2026-03-11"]
    );
    assert_eq!(keep(Retention { keep_yearly: Some(1), ..Retention::default() }), ["2026-03-11"]);
    let within = Retention { keep_within: Some("2d".to_owned()), ..Retention::default() };
    assert_eq!(keep(within), ["2026-03-09", "2026-03-10", "2026-03-11"]);
    let union = Retention { keep_daily: Some(2), keep_monthly: Some(2), ..Retention::default() };
    assert_eq!(keep(union), ["2026-02-28", "2026-03-10", "2026-03-11"]);
    assert_eq!(
        keep(Retention { keep_last: Some(0), ..Retention::default() }),
        ["2026-03-11"],
        "the last good one"
    );
}

/// In Kolkata an hour begins at half past the hour of UTC, in Kathmandu at a quarter past.
#[test]
fn hours_are_those_that_clocks_show() {
    for (zone, together, apart) in [
        ("Asia/Kolkata", ["00:40", "01:20"], ["00:20", "00:40"]),
        ("Asia/Kathmandu", ["00:20", "01:10"], ["00:10", "00:20"]),
        ("UTC", ["00:10", "00:50"], ["00:50", "01:10"]),
    ] {
        let of = crate::schedule::find_zone(zone).unwrap();
        let hourly = Retention { keep_hourly: Some(5), ..Retention::default() };
        let kept = |times: [&str; 2]| {
            let runs = times.map(|time| Finished {
                time: format!("2026-01-01T{time}:00Z").parse().unwrap(),
                name: time.to_owned(),
                ..run(0, Quality::Good)
            });
            2 - not_kept(&runs, &hourly, &of).len()
        };
        assert_eq!((kept(together), kept(apart)), (1, 2), "{zone}");
    }
}

#[test]
fn an_hour_that_exists_twice_is_two_hours() {
    let zone = crate::schedule::find_zone("Europe/Berlin").unwrap();
    let at = |time: &str| Finished {
        name: time.to_owned(),
        time: time.parse().unwrap(),
        quality: Quality::Good,
        expires: None,
    };
    let runs = [at("2026-10-25T00:30:00Z"), at("2026-10-25T01:30:00Z")];
    let hourly = Retention { keep_hourly: Some(5), ..Retention::default() };
    assert!(not_kept(&runs, &hourly, &zone).is_empty());
    let daily = Retention { keep_daily: Some(5), ..Retention::default() };
    assert_eq!(not_kept(&runs, &daily, &zone), ["2026-10-25T00:30:00Z"]);
}

#[test]
fn times_are_read_with_days_and_weeks() {
    for (text, hours) in [("36h", 36), ("30d", 720), ("2w", 336), ("1w12h", 180), ("90m", 1), ("0s", 0)] {
        assert_eq!(within(text).unwrap().as_secs() / 3600, hours, "{text}");
    }
    for text in ["", "soon", "d", "5", "1y", "-1d", "1.5d", "99999999999999999999d", "999999999w"] {
        assert_eq!(within(text), None, "{text}");
    }
}

/// Every run is partial from some day on. They are kept as good ones are, and the good ones stay as they are.
#[test]
fn partial_ones_do_not_pile_up() {
    let mut runs = nights(10);
    runs.extend((10..70).map(|night| run(24 * night, Quality::Partial)));
    let left = |retention| kept(&runs, &retention);
    let last = |many| Retention { keep_last: Some(many), ..Retention::default() };
    assert_eq!(left(last(2)), ["2026-01-09", "2026-01-10", "2026-03-09", "2026-03-10", "2026-03-11"]);
    assert_eq!(left(last(5)).len(), 10);
    let monthly = Retention { keep_monthly: Some(9), ..Retention::default() };
    let expected = ["2026-01-10", "2026-01-31", "2026-02-28", "2026-03-09", "2026-03-10", "2026-03-11"];
    assert_eq!(left(monthly), expected);
    runs.retain(|run| run.quality != Quality::Good);
    assert_eq!(kept(&runs, &last(4)).len(), 4, "there never was a good one");
}

fn quality() -> impl Strategy<Value = Quality> {
    prop::sample::select(vec![Quality::Good, Quality::Partial, Quality::Failed, Quality::Unknown])
}

fn retention() -> impl Strategy<Value = Retention> {
    let number = || prop::option::of(0..6_u32);
    let within = prop::option::of((0..100_u32).prop_map(|hours| format!("{hours}h")));
    (number(), number(), number(), number(), number(), number(), within).prop_map(
        |(keep_last, keep_hourly, keep_daily, keep_weekly, keep_monthly, keep_yearly, keep_within)| {
            Retention {
                keep_last,
                keep_hourly,
                keep_daily,
                keep_weekly,
                keep_monthly,
                keep_yearly,
                keep_within,
            }
        },
    )
}

fn runs() -> impl Strategy<Value = Vec<Finished>> {
    prop::collection::btree_map(0..20_000_i64, quality(), 0..60)
        .prop_map(|runs| runs.into_iter().map(|(hours, quality)| run(hours, quality)).collect())
}

/// What must hold of what is not kept, whatever the rules say.
fn wrong(runs: &[Finished], retention: &Retention, away: &[&str]) -> Option<&'static str> {
    let is_away = |run: &Finished| away.contains(&run.name.as_str());
    if last_good(runs).is_some_and(is_away) {
        return Some("the last good one goes");
    }
    if runs.iter().any(|run| run.quality == Quality::Unknown && is_away(run)) {
        return Some("one goes of which nothing is known");
    }
    let newest = |quality: Quality| {
        let mut of: Vec<_> = runs.iter().filter(|run| run.quality == quality).collect();
        of.sort_by_key(|run| std::cmp::Reverse(run.time));
        of
    };
    let last = retention.keep_last.unwrap_or(0) as usize;
    if newest(Quality::Good).iter().take(last).any(|run| is_away(run)) {
        return Some("keepLast is not kept");
    }
    if newest(Quality::Failed).iter().take(FAILED).any(|run| is_away(run)) {
        return Some("a failure goes that somebody may look at");
    }
    let since = last_good(runs).map(|good| good.time);
    let partial = newest(Quality::Partial).into_iter().filter(|run| since.is_none_or(|at| run.time > at));
    if partial.take(last.max(FAILED)).any(is_away) {
        return Some("a partial one goes and nothing newer is better");
    }
    None
}

proptest! {
    #[test]
    fn the_last_good_one_stays_whatever_the_rules_say(runs in runs(), retention in retention()) {
        let away = not_kept(&runs, &retention, &TimeZone::UTC);
        prop_assert_eq!(wrong(&runs, &retention, &away), None);
    }

    /// What was not kept is not missed: deciding again over what is left deletes no more.
    #[test]
    fn deciding_again_deletes_nothing_more(runs in runs(), retention in retention()) {
        let away = not_kept(&runs, &retention, &TimeZone::UTC);
        let left: Vec<_> = runs.iter().filter(|run| !away.contains(&run.name.as_str())).cloned().collect();
        prop_assert_eq!(not_kept(&left, &retention, &TimeZone::UTC), Vec::<&str>::new());
    }

    /// Failures that come after never push out a good one.
    #[test]
    fn a_failure_more_deletes_no_good_one(runs in runs(), retention in retention(), later in 20_000..30_000_i64) {
        let good_away = |runs: &[Finished]| -> Vec<String> {
            let away = not_kept(runs, &retention, &TimeZone::UTC);
            let good = runs.iter().filter(|run| run.quality == Quality::Good && away.contains(&run.name.as_str()));
            good.map(|run| run.name.clone()).collect()
        };
        let before = good_away(&runs);
        let mut more = runs;
        more.push(run(later, Quality::Partial));
        more.push(run(later + 1, Quality::Failed));
        prop_assert_eq!(good_away(&more), before);
    }
}

/// Planted bugs: the properties can fail.
#[test]
fn a_rule_that_counts_failures_or_forgets_the_last_good_one_is_noticed() {
    let runs = [run(0, Quality::Good), run(24, Quality::Partial), run(48, Quality::Failed)];
    let last = Retention { keep_last: Some(1), ..Retention::default() };
    let counts_all = ["run-000000", "run-000024"];
    assert_eq!(wrong(&runs, &last, &counts_all), Some("the last good one goes"));
    let none = Retention::default();
    assert_eq!(wrong(&runs, &none, &["run-000024"]), Some("a partial one goes and nothing newer is better"));
    assert_eq!(wrong(&runs, &none, &["run-000048"]), Some("a failure goes that somebody may look at"));
    assert_eq!(wrong(&runs, &none, &[]), None);
}
