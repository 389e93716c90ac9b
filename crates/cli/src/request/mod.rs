//! `kubectl nacre request`: administrators decide about storage that tenants want to bring.

mod decide;
mod facts;
mod list;
mod show;

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
    /// List who asks for which storage, and where the decision stands.
    #[command(alias = "get")]
    List(list::List),
    /// Tell all there is to know before deciding about a request.
    #[command(alias = "describe")]
    Show(show::Show),
    /// Let Velero use the storage.
    Approve(decide::Decide),
    /// Do not let Velero use the storage; what was approved is taken from it.
    Reject(decide::Reject),
    /// Take an approval back, so that it is to be decided anew: the storage is taken from Velero, backups stay.
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
