//! `kubectl nacre restore`: bringing back what a backup holds.

mod choose;
mod create;
mod delete;
mod filters;
pub(crate) mod get;
pub(crate) mod preview;
pub(crate) mod replace;

use anyhow::Result;
use api::NonAdminRestore;
use clap::Subcommand;

pub(crate) use create::prepared;

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
    /// Show object by object what a restore would do; change nothing.
    Preview(Box<preview::PreviewArgs>),
    /// List restores and their status.
    #[command(alias = "list")]
    Get(get::Get),
    /// Show details of a restore: the spec in effect, its status and Events, and what to do next.
    #[command(after_help = "Examples:
  kubectl nacre restore describe back
  kubectl nacre restore describe back --details         with every error and warning of Velero's
  kubectl nacre restore describe back -o json

Only users who may read the policy can see whether a field was added by the policy or by Velero.")]
    Describe(describe::Describe),
    /// Print Velero's log of a restore.
    Logs(logs::Logs),
    /// Wait until a restore is finished, and show its progress.
    #[command(after_help = "Examples:
  kubectl nacre restore wait back
  kubectl nacre restore wait back --timeout 30m || echo not yet

Exit codes: 0 Completed, 3 PartiallyFailed or 0 items, 1 Failed, refused or gone, 4 still not over, 130 interrupted.
Ctrl-C ends the wait, not the restore.")]
    Wait(wait::Wait),
    /// Delete restores; the restored objects stay.
    Delete(delete::Delete),
}

pub(crate) async fn run(session: &Session, args: Args) -> Result<Outcome> {
    match args.verb {
        Verb::Create(verb) => Box::pin(create::run(session, *verb)).await,
        Verb::Preview(verb) => Box::pin(preview::run(session, *verb)).await,
        Verb::Get(verb) => get::run(session, &verb).await,
        Verb::Describe(verb) => describe::restore(session, &verb).await,
        Verb::Logs(verb) => logs::run::<NonAdminRestore>(session, "RestoreLog", &verb).await,
        Verb::Wait(verb) => wait::run::<NonAdminRestore>(session, &verb).await,
        Verb::Delete(verb) => delete::run(session, &verb).await,
    }
}
