//! `kubectl nacre backup`: the backups of a namespace.

mod create;
mod delete;
pub(crate) mod get;

use anyhow::Result;
use api::NonAdminBackup;
use clap::Subcommand;

use crate::{
    connect::Session,
    describe,
    download::{file, logs},
    output::Outcome,
    wait,
};

pub(crate) use create::{Template, config_map, in_one_line, prepared};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Back up the namespace.
    Create(Box<create::Create>),
    /// List backups and their status.
    #[command(alias = "list")]
    Get(get::Get),
    /// Show details of a backup: the spec in effect, its status and Events, and what to do next.
    #[command(after_help = "Examples:
  kubectl nacre backup describe daily
  kubectl nacre backup describe daily --details         with every error and warning of Velero's
  kubectl nacre backup describe daily -o json

Only users who may read the policy can see whether a field was added by the policy or by Velero.")]
    Describe(describe::Describe),
    /// Print Velero's log of a backup.
    Logs(logs::Logs),
    /// Download the contents of a backup to a file.
    Download(file::Download),
    /// Wait until a backup is finished, and show its progress.
    #[command(after_help = "Examples:
  kubectl nacre backup wait daily
  kubectl nacre backup wait daily --timeout 30m || echo not yet

Exit codes: 0 Completed, 3 PartiallyFailed or 0 items, 1 Failed, refused or gone, 4 still not over, 130 interrupted.
Ctrl-C ends the wait, not the backup.")]
    Wait(wait::Wait),
    /// Delete backups, with or without their data.
    Delete(delete::Delete),
}

pub(crate) async fn run(session: &Session, args: Args) -> Result<Outcome> {
    match args.verb {
        Verb::Create(verb) => Box::pin(create::run(session, *verb)).await,
        Verb::Get(verb) => get::run(session, &verb).await,
        Verb::Describe(verb) => describe::backup(session, &verb).await,
        Verb::Logs(verb) => logs::run::<NonAdminBackup>(session, "BackupLog", &verb).await,
        Verb::Download(verb) => file::run(session, &verb).await,
        Verb::Wait(verb) => wait::run::<NonAdminBackup>(session, &verb).await,
        Verb::Delete(verb) => delete::run(session, &verb).await,
    }
}
