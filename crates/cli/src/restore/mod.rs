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
    /// List restores and how they stand.
    #[command(alias = "list")]
    Get(get::Get),
    /// Tell the whole story of a restore: what is in effect, what happened, what to do next.
    Describe(describe::Describe),
    /// Print Velero's log of a restore.
    Logs(logs::Logs),
    /// Wait until a restore is over, watching how it goes.
    Wait(wait::Wait),
    /// Delete restores: the records of them, not what they brought back.
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
