use jiff::Timestamp;
use proptest::prelude::*;

use super::{Cron, Setting, Unreadable};

fn setting(time_zone: Option<&str>) -> Setting<'_> {
    let anchor = "2026-01-01T00:00:30Z".parse().unwrap();
    Setting { time_zone, hashed: "0b8d1a52-3c0f-4d8e-9f4e-1c2b3a4d5e6f", anchor }
}

fn cron(text: &str) -> Cron {
    Cron::read(text, &setting(None)).unwrap()
}

/// The next times after a moment.
fn times(text: &str, after: &str, many: usize) -> Vec<String> {
    let cron = cron(text);
    let first = cron.next(after.parse().unwrap());
    let next = |due: &Timestamp| cron.next(*due);
    std::iter::successors(first, next).take(many).map(|due| due.to_string()).collect()
}

#[test]
fn words_stand_for_what_they_stand_for_with_velero() {
    let first = |text| times(text, "2026-03-10T10:20:30Z", 1).remove(0);
    assert_eq!(first("@hourly"), "2026-03-10T11:00:00Z");
    assert_eq!(first("@daily"), "2026-03-11T00:00:00Z");
    assert_eq!(first("@midnight"), "2026-03-11T00:00:00Z");
    assert_eq!(first("@weekly"), "2026-03-15T00:00:00Z");
    assert_eq!(first("@monthly"), "2026-04-01T00:00:00Z");
    assert_eq!(first("@yearly"), "2027-01-01T00:00:00Z");
    assert_eq!(first("@annually"), "2027-01-01T00:00:00Z");
    assert_eq!(first("CRON_TZ=Asia/Tokyo @daily"), "2026-03-10T15:00:00Z");
    assert_eq!(first("TZ=Asia/Tokyo 30 6 * * *"), "2026-03-10T21:30:00Z");
    assert_eq!(first("TZ=Local 0 0 * * *"), "2026-03-11T00:00:00Z");
}

#[test]
fn every_counts_from_when_the_schedule_was_created() {
    assert_eq!(
        times("@every 6h", "2026-01-01T05:00:00Z", 2),
        ["2026-01-01T06:00:30Z", "2026-01-01T12:00:30Z"]
    );
    assert_eq!(times("@every 1h30m", "2025-12-01T00:00:00Z", 1), ["2026-01-01T01:30:30Z"], "never before it");
    assert_eq!(times("@every 10ms", "2026-01-01T00:00:30Z", 1), ["2026-01-01T00:00:31Z"]);
}

#[test]
fn a_star_decides_whether_one_field_for_days_must_fit_or_both_as_with_robfig() {
    let days = |text: &str| -> Vec<String> {
        times(text, "2026-06-01T12:00:00Z", 4).iter().map(|time| time[5..10].to_owned()).collect()
    };
    assert_eq!(days("0 0 15 * 1"), ["06-08", "06-15", "06-22", "06-29"], "either, and the 15th is a Monday");
    assert_eq!(days("0 0 */10 * 1"), ["06-08", "06-11", "06-15", "06-21"], "a star with a step is no star");
    assert_eq!(days("0 0 1,* * 1"), ["06-08", "06-15", "06-22", "06-29"], "a star in a list is one");
    assert_eq!(days("0 0 ? * MON"), ["06-08", "06-15", "06-22", "06-29"]);
    assert_eq!(days("0 0 */1 * 1"), ["06-08", "06-15", "06-22", "06-29"]);
    assert_eq!(days("0 0 * * 7"), ["06-07", "06-14", "06-21", "06-28"], "Sunday");
    assert_eq!(days("0 0 L * *"), ["06-30", "07-31", "08-31", "09-30"], "the library's own");
}

#[test]
fn what_robfig_refuses_is_refused_with_what_would_do() {
    for text in [
        "",
        "* * * *",
        "* * * * * *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * 32 * *",
        "* * * 13 *",
        "* * * * 8",
        "5-1 * * * *",
        "*/0 * * * *",
        "a * * * *",
        "-1 * * * *",
        "1- * * * *",
        "@reboot",
        "@every",
        "@every soon",
        "@every -1h",
        "TZ=UTC",
        "TZ=Mars/Base 0 0 * * *",
        ", * * * *",
        "1,x,2 * * * *",
        "+ * * * *",
    ] {
        let refused = Cron::read(text, &setting(None)).map(|_| ()).unwrap_err();
        assert!(
            matches!(&refused, Unreadable::Expression(why) if why.contains(';')),
            "{text:?}: {refused:?}"
        );
    }
}

/// robfig/cron splits lists so that empty parts vanish, reads numbers as Go does, and ignores what is behind a star.
#[test]
fn what_robfig_accepts_by_the_way_is_accepted_too() {
    let same = |text: &str, plain: &str| {
        assert_eq!(times(text, "2026-01-01T00:00:00Z", 5), times(plain, "2026-01-01T00:00:00Z", 5), "{text}");
    };
    same("1,,2 * * * *", "1,2 * * * *");
    same(",5, 3 * * *", "5 3 * * *");
    same("+7 +3 * * *", "7 3 * * *");
    same("*-5/20 * * * *", "*/20 * * * *");
}

#[test]
fn h_is_chosen_by_the_namespace_and_stays() {
    let uid = |uid: &str| Cron::read("H H * * *", &Setting { hashed: uid, ..setting(None) }).unwrap();
    let at = |cron: &Cron| cron.next("2026-01-01T00:00:00Z".parse().unwrap()).unwrap();
    let first = at(&uid("a"));
    assert_eq!(first, at(&uid("a")));
    let others: std::collections::BTreeSet<_> = (0..100).map(|one| at(&uid(&format!("{one}")))).collect();
    assert!(others.len() > 50, "{} of 100 differ", others.len());
    assert!(uid("a").is_spread() && !cron("0 0 * * *").is_spread());
}

#[test]
fn starts_are_spread_unless_the_minute_differs_between_namespaces() {
    for (text, is_spread) in [
        ("H 0 * * *", true),
        ("H/15 * * * *", true),
        ("H(0-4) 0 * * *", true),
        ("H 0 * * THU#2", true),
        ("0 0 * * THU#2", false),
        ("0 0 * * thu#2", false),
        ("0 H(1-5) L * *", false),
        ("0 0 * * H", false),
        ("H(0-0) 0 * * *", false),
        ("H/1 0 * * *", false),
        ("0,H 0 * * *", false),
        (",H, 0 * * *", true),
    ] {
        assert_eq!(cron(text).is_spread(), is_spread, "{text}");
    }
}

/// `H` in a field, for many namespaces: for each the numbers that it stands for.
fn chosen(field: &str, shown: std::ops::Range<usize>, many: usize) -> Vec<Vec<u32>> {
    let of = |uid: u32| {
        let cron = Cron::read(field, &Setting { hashed: &uid.to_string(), ..setting(None) }).unwrap();
        let due: Vec<_> = cron.after("2025-12-31T23:59:59Z".parse().unwrap()).take(many).collect();
        due.iter().map(|due| due.to_string()[shown.clone()].parse().unwrap()).collect()
    };
    (0..200).map(of).collect()
}

#[test]
fn h_takes_a_range_and_a_step_as_in_jenkins() {
    let first = |of: &[Vec<u32>]| of.iter().map(|one| one[0]).collect::<std::collections::BTreeSet<_>>();
    let quarters = chosen("H/15 * * * *", 14..16, 4);
    assert_eq!(first(&quarters), (0..15).collect());
    for one in &quarters {
        assert_eq!(one, &[one[0], one[0] + 15, one[0] + 30, one[0] + 45]);
    }
    assert_eq!(first(&chosen("0 H(1-5) * * *", 11..13, 1)), (1..=5).collect());
    let thirds = chosen("H(0-29)/10 * * * *", 14..16, 4);
    assert_eq!(first(&thirds), (0..10).collect());
    for one in &thirds {
        assert_eq!(one, &[one[0], one[0] + 10, one[0] + 20, one[0]], "nothing after minute 29");
    }
    let days = chosen("0 0 H * *", 8..10, 12);
    assert_eq!(first(&days), (1..=28).collect(), "a day that every month has");
    assert!(days.iter().all(|one| one.iter().all(|day| *day == one[0])));
    let once = chosen("H/90 * * * *", 14..16, 2);
    assert!(once.iter().all(|one| one[0] == one[1]), "a step longer than the range chooses one");
    assert!(first(&once).len() > 50, "of all sixty minutes");
    for refused in [
        "H(5-70) * * * *",
        "H(5-1) * * * *",
        "H/0 * * * *",
        "H(5) * * * *",
        "H5 * * * *",
        "H- * * * *",
        "H(0-4294967295) * * * *",
        "H/4294967296 * * * *",
    ] {
        let refused = Cron::read(refused, &setting(None)).map(|_| ()).unwrap_err();
        assert!(matches!(&refused, Unreadable::Expression(why) if why.contains(';')), "{refused}");
    }
}

#[test]
fn h_in_one_field_says_nothing_about_another() {
    let minutes = chosen("H H * * *", 14..16, 1);
    let hours = chosen("H H * * *", 11..13, 1);
    let both: std::collections::BTreeSet<_> = minutes.iter().zip(&hours).collect();
    assert!(both.len() > 150, "{} times for 200 namespaces", both.len());
}

#[test]
fn when_clocks_change_nothing_is_lost_and_nothing_runs_twice() {
    let berlin = |text: &str, after: &str, many| times(&format!("TZ=Europe/Berlin {text}"), after, many);
    // On 29 March 2026 clocks go from 02:00 to 03:00, at 01:00 UTC.
    assert_eq!(
        berlin("30 2 * * *", "2026-03-28T00:00:00Z", 3),
        ["2026-03-28T01:30:00Z", "2026-03-29T01:30:00Z", "2026-03-30T00:30:00Z"]
    );
    assert_eq!(
        berlin("0 * * * *", "2026-03-29T00:00:00Z", 3),
        ["2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z", "2026-03-29T03:00:00Z"]
    );
    // On 25 October 2026 clocks go from 03:00 back to 02:00, at 01:00 UTC.
    assert_eq!(
        berlin("30 2 * * *", "2026-10-24T12:00:00Z", 2),
        ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]
    );
    assert_eq!(
        berlin("*/30 * * * *", "2026-10-25T00:00:00Z", 4),
        ["2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:00:00Z"]
    );
    assert_eq!(
        berlin("0 3 * * *", "2026-10-25T00:00:00Z", 1),
        ["2026-10-25T02:00:00Z"],
        "the hour after it is not repeated"
    );
    // Hours with a step are hours that are named: 02:30 is among them.
    assert_eq!(
        berlin("30 */2 * * *", "2026-03-28T23:00:00Z", 3),
        ["2026-03-28T23:30:00Z", "2026-03-29T01:30:00Z", "2026-03-29T02:30:00Z"]
    );
    assert_eq!(
        berlin("30 */2 * * *", "2026-10-24T23:00:00Z", 2),
        ["2026-10-25T00:30:00Z", "2026-10-25T03:30:00Z"]
    );
    // Half an hour, and clocks that change at midnight.
    let howe = times("TZ=Australia/Lord_Howe 15 2 * * *", "2026-10-03T00:00:00Z", 2);
    assert_eq!(howe, ["2026-10-03T15:45:00Z", "2026-10-04T15:15:00Z"]);
}

#[test]
fn the_latest_time_is_found_however_many_there_were() {
    let every_minute = cron("* * * * *");
    let (start, now) = ("2020-01-01T00:00:00Z".parse().unwrap(), "2026-01-01T00:00:59Z".parse().unwrap());
    assert_eq!(every_minute.latest(start, now).unwrap().to_string(), "2026-01-01T00:00:00Z");
    let yearly = cron("@yearly");
    assert_eq!(yearly.latest(start, now).unwrap().to_string(), "2026-01-01T00:00:00Z");
    assert_eq!(yearly.latest(now, now), None);
    let leap = cron("0 0 29 2 *");
    assert_eq!(leap.latest(start, now).unwrap().to_string(), "2024-02-29T00:00:00Z");
    assert_eq!(leap.next(now).unwrap().to_string(), "2028-02-29T00:00:00Z");
    assert_eq!(cron("0 0 31 2 *").next(now), None);
}

/// An oracle that shares nothing with the library: it reads a field by hand and tries minute after minute.
mod oracle {
    use jiff::civil::DateTime;
    use jiff::tz::{Offset, TimeZone};
    use jiff::{SignedDuration, Timestamp};

    #[derive(Clone, Debug)]
    pub(super) struct Part {
        pub(super) low: u32,
        pub(super) high: u32,
        pub(super) step: u32,
        pub(super) star: bool,
    }

    fn fits(parts: &[Part], number: i8) -> bool {
        let number = u32::from(number.unsigned_abs());
        parts
            .iter()
            .any(|part| (part.low..=part.high).contains(&number) && (number - part.low) % part.step == 0)
    }

    fn star(parts: &[Part]) -> bool {
        parts.iter().any(|part| part.star && part.step == 1)
    }

    fn fit(fields: &[Vec<Part>], time: DateTime) -> bool {
        let week = time.weekday().to_sunday_zero_offset();
        let (month_day, week_day) = (fits(&fields[2], time.day()), fits(&fields[4], week));
        let day =
            if star(&fields[2]) || star(&fields[4]) { month_day && week_day } else { month_day || week_day };
        day && fits(&fields[0], time.minute())
            && fits(&fields[1], time.hour())
            && fits(&fields[3], time.month())
    }

    /// How clocks have changed at most an hour before: from this offset, and whether forward.
    fn changed(zone: &TimeZone, at: Timestamp) -> Option<(Offset, bool)> {
        [30, 60].into_iter().find_map(|minutes| {
            let by = SignedDuration::from_mins(minutes);
            let (before, now) = (zone.to_offset(at - by), zone.to_offset(at));
            let jump = now.duration_since(before);
            (jump.abs() == by).then_some((before, jump.is_positive()))
        })
    }

    pub(super) fn next(
        fields: &[Vec<Part>],
        zone: &TimeZone,
        after: Timestamp,
        minutes: u32,
    ) -> Option<Timestamp> {
        let first = after.as_second().div_euclid(60) * 60 + 60;
        (0..minutes).find_map(|minute| {
            let at = Timestamp::from_second(first + i64::from(minute) * 60).ok()?;
            let shown = fit(fields, zone.to_offset(at).to_datetime(at));
            let due = match changed(zone, at).filter(|_| !star(&fields[1])) {
                None => shown,
                Some((before, true)) => shown || fit(fields, before.to_datetime(at)),
                Some((_, false)) => false,
            };
            due.then_some(at)
        })
    }
}

fn part(min: u32, max: u32) -> impl Strategy<Value = (String, (u32, u32, u32, bool))> {
    (min..=max, min..=max, 1..7_u32, 0..5_u8).prop_map(move |(one, other, step, shape)| {
        let (low, high) = (one.min(other), one.max(other));
        match shape {
            0 => ("*".to_owned(), (min, max, 1, true)),
            1 => (format!("*/{step}"), (min, max, step, true)),
            2 => (format!("{low}-{high}/{step}"), (low, high, step, false)),
            3 => (format!("{low}/{step}"), (low, max, step, false)),
            _ => (low.to_string(), (low, low, 1, false)),
        }
    })
}

fn field(min: u32, max: u32) -> impl Strategy<Value = (String, Vec<oracle::Part>)> {
    proptest::collection::vec(part(min, max), 1..3).prop_map(|parts| {
        let text = parts.iter().map(|(text, _)| text.clone()).collect::<Vec<_>>().join(",");
        let parts =
            parts.into_iter().map(|(_, (low, high, step, star))| oracle::Part { low, high, step, star });
        (text, parts.collect())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Against minutes that are tried one by one.
    #[test]
    fn times_are_those_of_an_independent_oracle(
        fields in (field(0, 59), field(0, 23), field(1, 31), field(1, 12), field(0, 6)),
        second in 1_700_000_000_i64..1_800_000_000,
    ) {
        let (minute, hour, day, month, week) = fields;
        let text = [&minute.0, &hour.0, &day.0, &month.0, &week.0].map(String::as_str).join(" ");
        let parts = [minute.1, hour.1, day.1, month.1, week.1];
        let after = Timestamp::from_second(second).unwrap();
        let minutes = 40 * 24 * 60;
        let expected = oracle::next(&parts, &jiff::tz::TimeZone::UTC, after, minutes);
        let end = Timestamp::from_second(second + i64::from(minutes) * 60).unwrap();
        let found = cron(&text).next(after).filter(|due| *due <= end);
        prop_assert_eq!(found, expected, "{}", text);
    }

    /// The same on days on which clocks change.
    #[test]
    fn times_are_those_of_the_oracle_when_clocks_change(
        fields in (field(0, 59), field(0, 23)),
        (zone, change) in prop::sample::select(vec![
            ("Europe/Berlin", "2026-03-29T01:00:00Z"), ("Europe/Berlin", "2026-10-25T01:00:00Z"),
            ("America/New_York", "2026-03-08T07:00:00Z"), ("America/New_York", "2026-11-01T06:00:00Z"),
            ("Australia/Lord_Howe", "2026-04-04T15:00:00Z"), ("Australia/Lord_Howe", "2026-10-03T15:30:00Z"),
            ("Asia/Kathmandu", "2026-03-29T01:00:00Z"),
        ]),
        minutes_before in 0..600_i64,
    ) {
        let (minute, hour) = fields;
        let text = format!("{} {} * * *", minute.0, hour.0);
        let star = || vec![oracle::Part { low: 0, high: 31, step: 1, star: true }];
        let parts = [minute.1, hour.1, star(), star(), star()];
        let cron = Cron::read(&text, &setting(Some(zone))).unwrap();
        let mut after: Timestamp = change.parse::<Timestamp>().unwrap() - jiff::SignedDuration::from_mins(minutes_before);
        for _ in 0..6 {
            let expected = oracle::next(&parts, cron.zone(), after, 3 * 24 * 60);
            prop_assert_eq!(cron.next(after), expected, "{} in {} after {}", text, zone, after);
            after = expected.unwrap();
        }
    }

    /// In any time zone: times rise, and the latest is the last of them.
    #[test]
    fn times_rise_in_every_zone(
        zone in prop::sample::select(vec!["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Kathmandu"]),
        text in prop::sample::select(vec!["30 2 * * *", "*/15 * * * *", "0 1-3 * * *", "0 0 1 * *", "59 23 * * 0", "0 */2 * * *"]),
        second in 1_700_000_000_i64..1_800_000_000,
    ) {
        let cron = Cron::read(text, &setting(Some(zone))).unwrap();
        let start = Timestamp::from_second(second).unwrap();
        let mut last = start;
        for _ in 0..40 {
            let next = cron.next(last).unwrap();
            prop_assert!(next > last);
            prop_assert_eq!(cron.latest(last, next), Some(next));
            last = next;
        }
        prop_assert_eq!(cron.latest(start, last), Some(last));
    }
}
