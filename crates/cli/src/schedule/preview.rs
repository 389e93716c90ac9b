//! `schedule preview`: which backups there will be after a while, and which go next.

use std::{collections::BTreeMap, fmt::Write as _};

use anyhow::{Result, anyhow};
use api::{NonAdminBackup, NonAdminSchedule, labels};
use jiff::{Timestamp, civil::Date};
use planner::schedule::{self, label_value, retention::Finished};
use serde::Serialize;

use super::find;
use crate::{
    allowed,
    connect::Session,
    list::{self, qualified},
    object_name::ObjectName,
    output::{Outcome, print},
    table::Table,
};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre schedule preview nightly
  kubectl nacre schedule preview nightly --days 365

It counts on every run going well. Only users who may read the policy see its bounds.")]
pub(super) struct Preview {
    /// Which schedule.
    name: ObjectName,

    /// How many days ahead.
    #[arg(long, value_name = "NUMBER", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=3660))]
    days: u32,
}

/// What there will be, for programs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    kept: Vec<Line>,
    gone: Vec<Line>,
    /// Up to when runs are counted, if there are too many for all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    cut_at: Option<Timestamp>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    name: String,
    time: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    goes: Option<Timestamp>,
}

pub(super) async fn run(session: &Session, args: &Preview) -> Result<Outcome> {
    let found = find(session, &args.name).await?;
    let name = found.metadata.name.clone().unwrap_or_default();
    let (shown, times) = read(session, &found, args.days).await?;
    let page = || page(&name, &shown, args.days, &times);
    print(session.format, &shown, page, || vec![qualified::<NonAdminSchedule>(&name)])?;
    Ok(Outcome::Good)
}

/// How far the console looks ahead.
const DAYS: u32 = 30;

/// What a schedule does from today on, if every run goes well.
pub(crate) struct Calendar {
    pub(crate) title: String,
    /// The zone of its times.
    pub(crate) zone: String,
    /// Every day from today on.
    pub(crate) days: Vec<Day>,
    /// All backups there are at the end.
    pub(crate) kept: Table,
    pub(crate) gone_title: String,
    /// Those that go next.
    pub(crate) gone: Table,
}

/// One day, in the zone of the schedule.
pub(crate) struct Day {
    pub(crate) date: Date,
    pub(crate) runs: Vec<DayRun>,
}

/// A run on that day.
pub(crate) struct DayRun {
    pub(crate) time: String,
    /// When its backup goes; none if it is still there at the end.
    pub(crate) goes: Option<Date>,
}

/// What a schedule does in the next days; it need not exist.
pub(crate) async fn calendar(session: &Session, found: &NonAdminSchedule) -> Result<Calendar> {
    let (shown, times) = read(session, found, DAYS).await?;
    Ok(of_days(&shown, &times, Timestamp::now()))
}

fn of_days(shown: &Shown, times: &schedule::Times, now: Timestamp) -> Calendar {
    let zoned = |time: Timestamp| time.to_zoned(times.cron.zone().clone());
    let day = |time: Timestamp| zoned(time).strftime("%a %Y-%m-%d %H:%M").to_string();
    let (mut kept, mut gone) = (Table::new(&["TIME", "BACKUP"]), Table::new(&["DELETED", "BACKUP"]));
    for line in &shown.kept {
        kept.row([day(line.time), line.name.clone()]);
    }
    for line in shown.gone.iter().take(NEXT) {
        gone.row([line.goes.map(day).unwrap_or_default(), line.name.clone()]);
    }
    let today = zoned(now).date();
    let dates = today.series(jiff::Span::new().days(1)).take(DAYS as usize + 1);
    let mut days: BTreeMap<Date, Vec<(Timestamp, Option<Timestamp>)>> =
        dates.map(|date| (date, Vec::new())).collect();
    for line in shown.kept.iter().chain(&shown.gone) {
        if let Some(runs) = days.get_mut(&zoned(line.time).date()) {
            runs.push((line.time, line.goes));
        }
    }
    let run = |(time, goes): (Timestamp, Option<Timestamp>)| DayRun {
        time: zoned(time).strftime("%H:%M").to_string(),
        goes: goes.map(|goes| zoned(goes).date()),
    };
    let days = days.into_iter().map(|(date, mut runs)| {
        runs.sort_unstable();
        Day { date, runs: runs.into_iter().map(run).collect() }
    });
    Calendar {
        title: match shown.cut_at {
            None => format!("In {DAYS} days it has {} backups, if every run goes well", shown.kept.len()),
            Some(until) => format!(
                "There are too many runs in {DAYS} days: on {} it has {} backups, if every run goes well",
                day(until),
                shown.kept.len()
            ),
        },
        days: days.collect(),
        kept,
        zone: times.cron.zone().iana_name().unwrap_or("UTC").to_owned(),
        gone_title: match shown.gone.len() {
            more if more > NEXT => format!("Deleted next: {NEXT} of {more} in {DAYS} days"),
            _ => format!("Deleted in {DAYS} days"),
        },
        gone,
    }
}

async fn read(session: &Session, found: &NonAdminSchedule, days: u32) -> Result<(Shown, schedule::Times)> {
    let name = found.metadata.name.clone().unwrap_or_default();
    let namespace = allowed::namespace(session).await;
    let policy = allowed::read(session, &namespace, None).await?.policy.unwrap_or_default();
    let now = Timestamp::now();
    let uid = namespace.metadata.uid.as_deref().unwrap_or_default();
    let times = schedule::times(found, uid, &policy, now).map_err(|refusal| anyhow!("{refusal}"))?;
    let selector = format!("{}={}", labels::NAS_NAME, label_value(&name));
    let runs = list::all::<NonAdminBackup>(session, Some(&session.namespace), Some(&selector), false).await?;
    let there: Vec<Finished> = runs.items.iter().filter_map(|(run, _)| schedule::finished(run)).collect();
    let preview = schedule::preview(found, &times, &policy, there, now, days);
    let line = |run: Finished, goes| Line { name: run.name, time: run.time, goes };
    let shown = Shown {
        cut_at: preview.cut_at,
        kept: preview.kept.into_iter().map(|run| line(run, None)).collect(),
        gone: preview.gone.into_iter().map(|(run, goes)| line(run, Some(goes))).collect(),
    };
    Ok((shown, times))
}

/// How many of those that go are shown.
const NEXT: usize = 10;

fn page(name: &str, shown: &Shown, days: u32, times: &schedule::Times) -> String {
    let mut page = String::new();
    let day =
        |time: Timestamp| time.to_zoned(times.cron.zone().clone()).strftime("%a %Y-%m-%d %H:%M").to_string();
    // Writing to a String does not fail.
    match shown.cut_at {
        None => _ = writeln!(page, "In {days} days, {name} has {} backups:", shown.kept.len()),
        Some(until) => {
            let (until, number) = (day(until), shown.kept.len());
            let _ =
                writeln!(page, "There are too many runs in {days} days: those until {until} are counted.");
            let _ = writeln!(page, "Then {name} has {number} backups:");
        }
    }
    for line in &shown.kept {
        let _ = writeln!(page, "  {}  {}", day(line.time), line.name);
    }
    if shown.gone.is_empty() {
        let _ = writeln!(page, "None goes until then.");
        return page;
    }
    let _ = writeln!(page, "Next to go, of {}:", shown.gone.len());
    for line in shown.gone.iter().take(NEXT) {
        let _ = writeln!(page, "  {}  {}", line.goes.map(day).unwrap_or_default(), line.name);
    }
    page
}

#[cfg(test)]
mod tests {
    use planner::Policy;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_calendar_has_every_day_with_its_runs_and_when_they_go() {
        let nightly: NonAdminSchedule = serde_json::from_value(json!({"metadata": {"name": "nightly"},
            "spec": {"schedule": "0 2 * * *", "timeZone": "Europe/Berlin", "template": {"backupSpec": {}}}}))
        .unwrap();
        let now = "2026-11-15T23:30:00Z".parse().unwrap();
        let times = schedule::times(&nightly, "", &Policy::default(), now).unwrap();
        let line = |time: &str, goes: Option<&str>| Line {
            name: time.to_owned(),
            time: time.parse().unwrap(),
            goes: goes.map(|goes| goes.parse().unwrap()),
        };
        let shown = Shown {
            kept: vec![line("2026-11-17T01:00:00Z", None), line("2026-11-10T01:00:00Z", None)],
            gone: vec![line("2026-11-16T01:00:00Z", Some("2026-11-17T01:05:00Z"))],
            cut_at: None,
        };
        assert!(page("nightly", &shown, 30, &times).starts_with("In 30 days, nightly has 2 backups:"));
        let cut = Shown {
            cut_at: Some("2026-11-17T01:00:00Z".parse().unwrap()),
            kept: Vec::new(),
            gone: Vec::new(),
        };
        let page = page("nightly", &cut, 30, &times);
        assert!(page.contains("those until Tue 2026-11-17 02:00 are counted"), "{page}");
        let calendar = of_days(&shown, &times, now);
        assert_eq!(calendar.days.len(), 31);
        let days = calendar.days.iter().take(3).map(|day| {
            let runs = day.runs.iter().map(|run| (run.time.as_str(), run.goes.map(|date| date.to_string())));
            (day.date.to_string(), runs.collect::<Vec<_>>())
        });
        insta::assert_snapshot!(format!("{:?}", days.collect::<Vec<_>>()), @r#"[("2026-11-16", [("02:00", Some("2026-11-17"))]), ("2026-11-17", [("02:00", None)]), ("2026-11-18", [])]"#);
    }
}
