//! `schedule preview`: which backups there will be after a while, and which go next.

use std::fmt::Write as _;

use anyhow::{Result, anyhow};
use api::{NonAdminBackup, NonAdminSchedule, labels};
use jiff::Timestamp;
use planner::schedule::{self, label_value, retention::Finished};
use serde::Serialize;

use super::find;
use crate::{
    allowed,
    connect::Session,
    describe::page::{Page, section},
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

/// Which backups there will be, and which go next, as tables.
pub(crate) async fn look(session: &Session, name: &str) -> Result<Page> {
    let (found, _) = list::one::<NonAdminSchedule>(session, name).await?;
    let (shown, times) = read(session, &found, DAYS).await?;
    let zone = times.cron.zone().clone();
    let day = |time: Timestamp| time.to_zoned(zone.clone()).strftime("%a %Y-%m-%d %H:%M").to_string();
    let (mut kept, mut gone) = (Table::new(&["TIME", "BACKUP"]), Table::new(&["GOES", "BACKUP"]));
    for line in &shown.kept {
        kept.row([day(line.time), line.name.clone()]);
    }
    for line in shown.gone.iter().take(NEXT) {
        gone.row([line.goes.map(day).unwrap_or_default(), line.name.clone()]);
    }
    let title = format!("In {DAYS} days it has {} backups, if every run goes well", shown.kept.len());
    Ok(section(&title, kept) + section(&format!("Next to go, of {}", shown.gone.len()), gone))
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
    let _ = writeln!(page, "In {days} days, {name} has {} backups:", shown.kept.len());
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
