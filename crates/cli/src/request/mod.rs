//! `kubectl nacre request`: administrators decide about storage that tenants want to bring.

pub(crate) mod decide;
mod facts;
pub(crate) mod list;
pub(crate) mod show;

use anyhow::Result;
use clap::Subcommand;

use crate::{connect::Session, output::Outcome};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List requests for storage and their approval status.
    #[command(alias = "get")]
    List(list::List),
    /// Show everything needed to decide about a request.
    #[command(alias = "describe")]
    Show(show::Show),
    /// Approve the storage for Velero.
    Approve(decide::Decide),
    /// Reject the storage; if it was approved, Velero loses it.
    Reject(decide::Reject),
    /// Revoke an approval: Velero loses the storage until a new decision; backups stay.
    Revoke(decide::Revoke),
}

/// Does what was asked; `given` is the namespace on the command line.
pub(crate) async fn run(session: &Session, args: Args, given: Option<&str>) -> Result<Outcome> {
    match args.verb {
        Verb::List(verb) => list::run(session, &verb, given).await,
        Verb::Show(verb) => show::run(session, &verb, given).await,
        Verb::Approve(verb) => decide::approve(session, &verb, given).await,
        Verb::Reject(verb) => decide::reject(session, &verb, given).await,
        Verb::Revoke(verb) => decide::revoke(session, &verb, given).await,
    }
}
