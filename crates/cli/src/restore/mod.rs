//! `kubectl nacre restore`: bringing back what a backup holds.

mod get;

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
    /// List restores and how they stand.
    #[command(alias = "list")]
    Get(get::Get),
}

pub(crate) async fn run(session: &Session, args: Args) -> Result<Outcome> {
    match args.verb {
        Verb::Get(verb) => get::run(session, &verb).await,
    }
}
