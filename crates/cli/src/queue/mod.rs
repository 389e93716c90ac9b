//! `queue`: in which order Velero and nacre work, and what an administrator changes about it.

pub(crate) mod list;
pub(crate) mod mark;
mod order;

use anyhow::Result;
use clap::Subcommand;

use crate::{connect::Session, output::Outcome};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List what runs and what waits, in order.
    #[command(visible_alias = "ls")]
    List(list::List),
    /// Move requests that wait to the front of the queue.
    Promote(mark::Promote),
    /// Hold requests that wait, until they are released.
    Hold(mark::Hold),
    /// Give requests that were promoted or held their usual place again.
    Release(mark::Release),
}

pub(crate) async fn run(session: &Session, args: Args, given: Option<&str>) -> Result<Outcome> {
    match args.command {
        Command::List(verb) => list::run(session, &verb, given).await,
        Command::Promote(verb) => verb.run(session, given).await,
        Command::Hold(verb) => verb.run(session, given).await,
        Command::Release(verb) => verb.run(session, given).await,
    }
}
