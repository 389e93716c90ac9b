//! `schedule describe`: everything about one schedule.

use std::fmt::Write as _;

use anyhow::Result;
use api::NonAdminSchedule;
use jiff::Timestamp;

use super::{find, get::word, kept};
use crate::{
    connect::Session,
    list::qualified,
    object_name::ObjectName,
    output::{Outcome, print},
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

fn page(schedule: &NonAdminSchedule, now: Timestamp) -> String {
    let status = schedule.status.clone().unwrap_or_default();
    let zone = schedule.spec.time_zone.as_deref().unwrap_or("UTC");
    let mut page = String::new();
    let mut line = |name: &str, text: &str| {
        // Writing to a String does not fail.
        let _ = writeln!(page, "{name:<12}{}", printable(text));
    };
    line("Name:", schedule.metadata.name.as_deref().unwrap_or_default());
    line("Namespace:", schedule.metadata.namespace.as_deref().unwrap_or_default());
    line("Schedule:", &format!("{} ({zone})", schedule.spec.schedule));
    line("Status:", word(schedule));
    let next = status.next_run.as_ref().map(|next| format!("{}, in {}", next.0, age(now, next.0)));
    line("Next run:", next.as_deref().unwrap_or("none"));
    if let Some(confirmation) = &status.confirmation {
        let asked = planner::requester::of(&schedule.metadata);
        let by = asked.user().unwrap_or("somebody unknown");
        line("Asked by:", &format!("{by}, to be confirmed until {}", confirmation.until.0));
    }
    line("Keeps:", &kept(schedule));
    let good = status.last_good_backup.as_deref().zip(status.last_good_time.as_ref());
    let good = good.map(|(name, time)| format!("{name}, completed {} ago", age(time.0, now)));
    line("Last good:", good.as_deref().unwrap_or("none"));
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
