//! `kubectl nacre location`: storage that a namespace owner brings.

mod create;
mod delete;
mod get;
pub(crate) mod known;
pub(crate) mod state;

use anyhow::Result;
use api::NonAdminBackupStorageLocation;
use clap::Subcommand;

use crate::{connect::Session, describe, output::Outcome, wait};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Ask for a bucket of your own to be used.
    Create(Box<create::Create>),
    /// List locations and how they stand.
    #[command(alias = "list")]
    Get(get::Get),
    /// Tell the whole story of a location: what was asked for, what happened, what to do next.
    Describe(Describe),
    /// Wait until a location can be used, or is refused.
    Wait(wait::Wait),
    /// Delete locations: the backups in them go too, what is in the bucket stays.
    Delete(delete::Delete),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre location describe mine")]
struct Describe {
    /// Which one.
    name: String,
}

pub(crate) async fn run(session: &Session, args: Args) -> Result<Outcome> {
    match args.verb {
        Verb::Create(verb) => Box::pin(create::run(session, *verb)).await,
        Verb::Get(verb) => get::run(session, &verb).await,
        Verb::Describe(verb) => describe::location(session, &verb.name).await,
        Verb::Wait(verb) => wait::run::<NonAdminBackupStorageLocation>(session, &verb).await,
        Verb::Delete(verb) => delete::run(session, &verb).await,
    }
}
