//! `kubectl nacre backup`: the backups of a namespace.

mod create;
mod delete;
mod get;

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

pub(crate) use create::config_map;

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
    Describe(describe::Describe),
    /// Print Velero's log of a backup.
    Logs(logs::Logs),
    /// Download the contents of a backup to a file.
    Download(file::Download),
    /// Wait until a backup is finished, and show its progress.
    Wait(wait::Wait),
    /// Delete backups, with or without their data.
    Delete(delete::Delete),
}

pub(crate) async fn run(session: &Session, args: Args) -> Result<Outcome> {
    match args.verb {
        Verb::Create(verb) => Box::pin(create::run(session, *verb)).await,
        Verb::Get(verb) => get::run(session, &verb).await,
        Verb::Describe(verb) => describe::backup(session, &verb).await,
        Verb::Logs(verb) => logs::run(session, "BackupLog", &verb).await,
        Verb::Download(verb) => file::run(session, &verb).await,
        Verb::Wait(verb) => wait::run::<NonAdminBackup>(session, &verb).await,
        Verb::Delete(verb) => delete::run(session, &verb).await,
    }
}
