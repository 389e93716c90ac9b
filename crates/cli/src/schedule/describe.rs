//! `schedule describe`: everything about one schedule.

use std::fmt::Write as _;

use anyhow::Result;
use api::NonAdminSchedule;
use jiff::Timestamp;

use super::{find, get::word, kept};
use crate::{
    connect::Session,
    describe::page::{Page, conditions, fields, moment, section},
    list::qualified,
    object_name::ObjectName,
    output::{Outcome, print},
    table::Table,
    text::{age, printable},
};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre schedule describe nightly
  kubectl nacre schedule describe nightly -o yaml")]
pub(super) struct Describe {
    /// Which schedule.
    name: ObjectName,
}

pub(super) async fn run(session: &Session, args: &Describe) -> Result<Outcome> {
    let schedule = find(session, &args.name).await?;
    let name = schedule.metadata.name.clone().unwrap_or_default();
    let page = || page(&schedule, Timestamp::now());
    print(session.format, &schedule, page, || vec![qualified::<NonAdminSchedule>(&name)])?;
    Ok(Outcome::Good)
}

/// The same in parts.
pub(crate) fn parts(schedule: &NonAdminSchedule) -> Page {
    let now = Timestamp::now();
    let status = schedule.status.clone().unwrap_or_default();
    let head: Vec<_> = head(schedule, now).into_iter().map(|(name, value)| (name, Some(value))).collect();
    let mut runs = Table::new(&["RUN", "STATUS"]);
    for run in &status.recent_backups {
        runs.row([run.name.as_str(), run.phase.as_deref().unwrap_or("being made")]);
    }
    fields(&head) + section("Latest runs", runs) + section("Conditions", conditions(&status.conditions, now))
}

/// What stands above the lists.
fn head(schedule: &NonAdminSchedule, now: Timestamp) -> Vec<(&'static str, String)> {
    let status = schedule.status.clone().unwrap_or_default();
    let zone = schedule.spec.time_zone.as_deref().unwrap_or("UTC");
    let next = status.next_run.as_ref().map(|next| moment(next.0, now));
    let good = status.last_good_backup.as_deref().zip(status.last_good_time.as_ref());
    let good = good.map(|(name, time)| format!("{name}, completed {} ago", age(time.0, now)));
    let mut head = vec![
        ("Name", schedule.metadata.name.clone().unwrap_or_default()),
        ("Namespace", schedule.metadata.namespace.clone().unwrap_or_default()),
        ("Schedule", format!("{} ({zone})", schedule.spec.schedule)),
        ("Status", word(schedule).to_owned()),
        ("Next run", next.unwrap_or_else(|| "none".to_owned())),
    ];
    if let Some(confirmation) = &status.confirmation {
        let asked = planner::requester::of(&schedule.metadata);
        let by = asked.user().unwrap_or("somebody unknown");
        let until = moment(confirmation.until.0, now);
        head.push(("Asked by", format!("{by}, to be confirmed until {until}")));
    }
    head.push(("Keeps", kept(schedule)));
    head.push(("Last good", good.unwrap_or_else(|| "none".to_owned())));
    head
}

fn page(schedule: &NonAdminSchedule, now: Timestamp) -> String {
    let status = schedule.status.clone().unwrap_or_default();
    let mut page = String::new();
    let mut line = |name: &str, text: &str| {
        // Writing to a String does not fail.
        let _ = writeln!(page, "{name:<12}{}", printable(text));
    };
    for (name, value) in head(schedule, now) {
        line(&format!("{name}:"), &value);
    }
    if !status.recent_backups.is_empty() {
        line("Latest runs:", "");
        for run in &status.recent_backups {
            line("", &format!("{}  {}", run.name, run.phase.as_deref().unwrap_or("being made")));
        }
    }
    if !status.conditions.is_empty() {
        line("Conditions:", "");
        for found in &status.conditions {
            line("", &format!("{}={} ({}): {}", found.type_, found.status, found.reason, found.message));
        }
    }
    page
}
