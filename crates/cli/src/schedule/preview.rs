//! `schedule preview`: which backups there will be after a while, and which go next.

use std::{collections::BTreeMap, fmt::Write as _};

use anyhow::{Result, anyhow};
use api::{NonAdminBackup, NonAdminSchedule, labels};
use jiff::{
    Timestamp,
    civil::{Date, Weekday},
};
use planner::schedule::{self, label_value, retention::Finished};
use serde::Serialize;

use super::find;
use crate::{
    allowed::{self, Source},
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
    /// What else is to be known about it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    remarks: Vec<String>,
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
    let page =
        || page(&name, &shown, &of_days(&shown, &times, Timestamp::now(), args.days), args.days, &times);
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
    /// What else is to be known about it.
    pub(crate) remarks: Vec<String>,
}

impl Calendar {
    /// Its days by weeks, which begin on Monday: what is before today is empty.
    pub(crate) fn weeks(&self) -> Vec<[Option<&Day>; 7]> {
        let before = self.days.first().map_or(0, |day| day.date.weekday().to_monday_zero_offset());
        let before = usize::try_from(before).unwrap_or_default();
        let mut days: Vec<Option<&Day>> =
            std::iter::repeat_n(None, before).chain(self.days.iter().map(Some)).collect();
        days.resize(days.len().next_multiple_of(7), None);
        days.as_chunks().0.to_vec()
    }
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
    Ok(of_days(&shown, &times, Timestamp::now(), DAYS))
}

fn of_days(shown: &Shown, times: &schedule::Times, now: Timestamp, ahead: u32) -> Calendar {
    let zoned = |time: Timestamp| time.to_zoned(times.cron.zone().clone());
    let day = |time: Timestamp| shown_at(time, times);
    let (mut kept, mut gone) = (Table::new(&["TIME", "BACKUP"]), Table::new(&["DELETED", "BACKUP"]));
    for line in &shown.kept {
        kept.row([day(line.time), line.name.clone()]);
    }
    for line in shown.gone.iter().take(NEXT) {
        gone.row([line.goes.map(day).unwrap_or_default(), line.name.clone()]);
    }
    let today = zoned(now).date();
    let dates = today.series(jiff::Span::new().days(1)).take(ahead as usize + 1);
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
            None => format!("In {ahead} days it has {} backups, if every run goes well", shown.kept.len()),
            Some(until) => format!(
                "There are too many runs in {ahead} days: on {} it has {} backups, if every run goes well",
                day(until),
                shown.kept.len()
            ),
        },
        days: days.collect(),
        kept,
        zone: times.cron.zone().iana_name().unwrap_or("UTC").to_owned(),
        gone_title: match shown.gone.len() {
            more if more > NEXT => format!("Deleted next: {NEXT} of {more} in {ahead} days"),
            _ => format!("Deleted in {ahead} days"),
        },
        gone,
        remarks: shown.remarks.clone(),
    }
}

async fn read(session: &Session, found: &NonAdminSchedule, days: u32) -> Result<(Shown, schedule::Times)> {
    let name = found.metadata.name.clone().unwrap_or_default();
    let namespace = allowed::namespace(session).await;
    let allowed = allowed::read(session, &namespace, None).await?;
    let now = Timestamp::now();
    let uid = namespace.metadata.uid.as_deref().unwrap_or_default();
    let unknown = match (allowed.source, &allowed.policy) {
        (Source::Unreadable, _) => Some("You may not read the policy: the default policy is counted with."),
        (_, None) => Some("The policy has errors: the default policy is counted with."),
        _ => None,
    };
    let mut remarks: Vec<_> = unknown.map(str::to_owned).into_iter().collect();
    let policy = allowed.policy.unwrap_or_default();
    let times = schedule::times(found, uid, &policy, now).map_err(|refusal| anyhow!("{refusal}"))?;
    let selector = format!("{}={}", labels::NAS_NAME, label_value(&name));
    let runs = list::all::<NonAdminBackup>(session, Some(&session.namespace), Some(&selector), false).await?;
    let there: Vec<Finished> = runs.items.iter().filter_map(|(run, _)| schedule::finished(run)).collect();
    let preview = schedule::preview(found, &times, &policy, there, now, days);
    if found.spec.paused == Some(true) {
        remarks.push("It is paused: no run is made until it is resumed.".to_owned());
    }
    if let Some(skipped) = preview.skipped {
        remarks.push(format!(
            "The run of {} is skipped, since spec.skipImmediately said so.",
            shown_at(skipped, &times)
        ));
    }
    let line = |run: Finished, goes| Line { name: run.name, time: run.time, goes };
    let shown = Shown {
        cut_at: preview.cut_at,
        kept: preview.kept.into_iter().map(|run| line(run, None)).collect(),
        gone: preview.gone.into_iter().map(|(run, goes)| line(run, Some(goes))).collect(),
        remarks,
    };
    Ok((shown, times))
}

/// How many of those that go are shown.
const NEXT: usize = 10;

/// A time, in the zone of the schedule.
fn shown_at(time: Timestamp, times: &schedule::Times) -> String {
    time.to_zoned(times.cron.zone().clone()).strftime("%a %Y-%m-%d %H:%M").to_string()
}

fn page(name: &str, shown: &Shown, calendar: &Calendar, days: u32, times: &schedule::Times) -> String {
    let mut page = String::new();
    let day = |time: Timestamp| shown_at(time, times);
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
    let _ = write!(page, "{}", grid(calendar));
    let today = calendar.days.first().map(|day| day.date);
    let date = |time: Timestamp| time.to_zoned(times.cron.zone().clone()).date();
    let is_older = |line: &&Line| today.is_some_and(|today| date(line.time) < today);
    let mut older = shown.kept.iter().filter(is_older).peekable();
    if older.peek().is_some() {
        let _ = writeln!(page, "Of those before today, there still are:");
    }
    for line in older {
        let _ = writeln!(page, "  {}  {}", day(line.time), line.name);
    }
    if shown.gone.is_empty() {
        let _ = writeln!(page, "None goes until then.");
    } else {
        let _ = writeln!(page, "Next to go, of {}:", shown.gone.len());
    }
    for line in shown.gone.iter().take(NEXT) {
        let _ = writeln!(page, "  {}  {}", line.goes.map(day).unwrap_or_default(), line.name);
    }
    for remark in &shown.remarks {
        let _ = writeln!(page, "{remark}");
    }
    page
}

/// The calendar as text: a line for each week.
fn grid(calendar: &Calendar) -> String {
    let cells = |cells: [String; 7]| cells.map(|cell| format!("{cell:<10}")).join("  ");
    let mut names = Weekday::Monday.cycle_forward();
    let header = std::array::from_fn(|_| names.next().map(short).unwrap_or_default().to_owned());
    let mut grid = format!("            {}\n", cells(header).trim_end());
    for week in calendar.weeks() {
        let first = week.iter().flatten().next();
        let month = first.map(|day| day.date.strftime("%b %Y").to_string()).unwrap_or_default();
        let line = format!("  {month:<8}  {}", cells(week.map(|day| day.map(cell).unwrap_or_default())));
        let _ = writeln!(grid, "{}", line.trim_end());
    }
    let _ = writeln!(
        grid,
        "  02:00: its backup is still there then; (02:00): it is deleted before; 2/24: so many of so many are still there."
    );
    let _ = writeln!(grid, "  Times are in {}.", calendar.zone);
    grid
}

fn cell(day: &Day) -> String {
    let kept = day.runs.iter().filter(|run| run.goes.is_none()).count();
    let runs = match day.runs.as_slice() {
        [] => "-".to_owned(),
        [DayRun { time, goes: None }] => time.clone(),
        [DayRun { time, goes: Some(_) }] => format!("({time})"),
        more => format!("{kept}/{}", more.len()),
    };
    format!("{:>2} {runs}", day.date.day())
}

/// The name of a day.
pub(crate) fn short(day: Weekday) -> &'static str {
    match day {
        Weekday::Monday => "Mon",
        Weekday::Tuesday => "Tue",
        Weekday::Wednesday => "Wed",
        Weekday::Thursday => "Thu",
        Weekday::Friday => "Fri",
        Weekday::Saturday => "Sat",
        Weekday::Sunday => "Sun",
    }
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
            remarks: vec!["It is paused.".to_owned()],
        };
        let calendar = of_days(&shown, &times, now, 30);
        let mut hourly = of_days(&shown, &times, now, 30);
        hourly.days[9].runs = vec![
            DayRun { time: String::new(), goes: None },
            DayRun { time: String::new(), goes: Some(calendar.days[0].date) },
        ];
        let printed = page("nightly", &shown, &hourly, 30, &times);
        for words in [
            "In 30 days, nightly has 2 backups:",
            "  Nov 2026  16 (02:00)  17 02:00    18 -",
            "25 1/2",
            "Times are in Europe/Berlin.",
            "there still are:\n  Tue 2026-11-10 02:00  2026-11-10T01:00:00Z",
            "Next to go, of 1:\n  Tue 2026-11-17 02:05  2026-11-16T01:00:00Z",
            "It is paused.",
        ] {
            assert!(printed.contains(words), "{words}: {printed}");
        }
        let cut = Shown {
            cut_at: Some("2026-11-17T01:00:00Z".parse().unwrap()),
            kept: Vec::new(),
            gone: Vec::new(),
            remarks: Vec::new(),
        };
        let page = page("nightly", &cut, &calendar, 30, &times);
        assert!(page.contains("those until Tue 2026-11-17 02:00 are counted"), "{page}");
        assert_eq!(calendar.days.len(), 31);
        let days = calendar.days.iter().take(3).map(|day| {
            let runs = day.runs.iter().map(|run| (run.time.as_str(), run.goes.map(|date| date.to_string())));
            (day.date.to_string(), runs.collect::<Vec<_>>())
        });
        insta::assert_snapshot!(format!("{:?}", days.collect::<Vec<_>>()), @r#"[("2026-11-16", [("02:00", Some("2026-11-17"))]), ("2026-11-17", [("02:00", None)]), ("2026-11-18", [])]"#);
    }
}
