//! `kubectl nacre schedule`: backups of a namespace at set times.

pub(crate) mod change;
mod create;
pub(crate) mod delete;
pub(crate) mod describe;
pub(crate) mod get;
pub(crate) mod preview;

use anyhow::Result;
use api::NonAdminSchedule;
use clap::Subcommand;

pub(crate) use create::prepared;
pub(crate) use get::word;

use crate::{connect::Session, list, object_name::ObjectName, output::Outcome};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Back up the namespace at set times.
    Create(Box<create::Create>),
    /// List schedules, their next run and their last good backup.
    #[command(alias = "list")]
    Get(get::Get),
    /// Show details of a schedule: its times, its latest runs, what it keeps, and its conditions.
    Describe(describe::Describe),
    /// Have no runs until the schedule is resumed.
    Pause(change::Pause),
    /// Have runs again.
    #[command(alias = "unpause")]
    Resume(change::Resume),
    /// Confirm schedules: from then on their runs are asked for by you.
    Confirm(change::Confirm),
    /// Make a backup now, as the schedule does.
    Run(change::Run),
    /// Show which backups there will be after a month, and which go next.
    Preview(preview::Preview),
    /// Delete schedules. Their backups stay, unless they shall go too.
    Delete(delete::Delete),
}

pub(crate) async fn run(session: &Session, args: Args) -> Result<Outcome> {
    match args.verb {
        Verb::Create(verb) => create::run(session, &verb).await,
        Verb::Get(verb) => get::run(session, &verb).await,
        Verb::Describe(verb) => describe::run(session, &verb).await,
        Verb::Pause(verb) => change::pause(session, &verb).await,
        Verb::Resume(verb) => change::resume(session, &verb).await,
        Verb::Confirm(verb) => change::confirm(session, &verb).await,
        Verb::Run(verb) => change::run_now(session, &verb).await,
        Verb::Preview(verb) => preview::run(session, &verb).await,
        Verb::Delete(verb) => delete::run(session, &verb).await,
    }
}

/// Reads a schedule by its name.
async fn find(session: &Session, name: &ObjectName) -> Result<NonAdminSchedule> {
    Ok(list::one::<NonAdminSchedule>(session, name.of::<NonAdminSchedule>()?).await?.0)
}

/// What a schedule keeps, in a few words.
fn kept(schedule: &NonAdminSchedule) -> String {
    let Some(retention) = &schedule.spec.retention else {
        let ttl = &schedule.spec.template.backup_spec.ttl;
        return ttl.as_ref().map_or_else(|| "until it expires".to_owned(), |ttl| format!("for {ttl}"));
    };
    let numbers = [
        ("last", retention.keep_last),
        ("hourly", retention.keep_hourly),
        ("daily", retention.keep_daily),
        ("weekly", retention.keep_weekly),
        ("monthly", retention.keep_monthly),
        ("yearly", retention.keep_yearly),
    ];
    let numbers = numbers.into_iter().filter_map(|(name, number)| Some(format!("{} {name}", number?)));
    let within = retention.keep_within.as_ref().map(|within| format!("within {within}"));
    numbers.chain(within).collect::<Vec<_>>().join(", ")
}
