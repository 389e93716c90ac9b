//! `kubectl nacre location`: storage that a namespace owner brings.

mod create;
mod delete;
pub(crate) mod get;
pub(crate) mod known;
pub(crate) mod state;

use anyhow::Result;
use api::NonAdminBackupStorageLocation;
use clap::Subcommand;

pub(crate) use create::prepared;

use crate::{connect::Session, describe, object_name::ObjectName, output::Outcome, wait};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Request to use your own bucket.
    Create(Box<create::Create>),
    /// List locations and their status.
    #[command(alias = "list")]
    Get(get::Get),
    /// Show details of a location: its spec, its status and Events, and what to do next.
    Describe(Describe),
    /// Wait until a location is available, or is refused.
    #[command(after_help = "Examples:
  kubectl nacre location wait mine
  kubectl nacre location wait mine --timeout 30m || echo not yet

Exit codes: 0 Velero can use it, 1 refused, rejected, unavailable or deleted, 4 still not decided, 130 interrupted.
Ctrl-C ends the wait, not the location.")]
    Wait(wait::Wait),
    /// Delete locations and the backup objects in them; the data in the bucket stays.
    Delete(delete::Delete),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre location describe mine")]
struct Describe {
    /// The name of the location, as `get` lists it.
    name: ObjectName,
}

pub(crate) async fn run(session: &Session, args: Args) -> Result<Outcome> {
    match args.verb {
        Verb::Create(verb) => Box::pin(create::run(session, *verb)).await,
        Verb::Get(verb) => get::run(session, &verb).await,
        Verb::Describe(verb) => {
            describe::location(session, verb.name.of::<NonAdminBackupStorageLocation>()?).await
        }
        Verb::Wait(verb) => wait::run::<NonAdminBackupStorageLocation>(session, &verb).await,
        Verb::Delete(verb) => delete::run(session, &verb).await,
    }
}
