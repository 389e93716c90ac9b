//! `kubectl nacre restore`: bringing back what a backup holds.

mod choose;
mod create;
mod delete;
mod get;

use anyhow::Result;
use api::NonAdminRestore;
use clap::Subcommand;

use crate::{connect::Session, describe, download::logs, output::Outcome, wait};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Restore a backup into the namespace.
    Create(Box<create::Create>),
    /// List restores and their status.
    #[command(alias = "list")]
    Get(get::Get),
    /// Show details of a restore: the spec in effect, its status and Events, and what to do next.
    Describe(describe::Describe),
    /// Print Velero's log of a restore.
    Logs(logs::Logs),
    /// Wait until a restore is finished, and show its progress.
    Wait(wait::Wait),
    /// Delete restores; the restored objects stay.
    Delete(delete::Delete),
}

pub(crate) async fn run(session: &Session, args: Args) -> Result<Outcome> {
    match args.verb {
        Verb::Create(verb) => Box::pin(create::run(session, *verb)).await,
        Verb::Get(verb) => get::run(session, &verb).await,
        Verb::Describe(verb) => describe::restore(session, &verb).await,
        Verb::Logs(verb) => logs::run(session, "RestoreLog", &verb).await,
        Verb::Wait(verb) => wait::run::<NonAdminRestore>(session, &verb).await,
        Verb::Delete(verb) => delete::run(session, &verb).await,
    }
}
