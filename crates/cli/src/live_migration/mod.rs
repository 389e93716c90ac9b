//! `kubectl nacre migration`: the right to live-migrate, from the roles to single grants.

mod bridge;
mod explain;
mod gather;
mod grant;
mod preview;
mod review;
mod roles;
mod show;
pub(crate) mod who_can;

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
    /// Install the four KubeVirt roles and the guard, and maintain them.
    Install(roles::Install),
    /// Who would lose what if the roles were upgraded; exit code 3 if anybody would.
    Preview(preview::Preview),
    /// Take migrations out of admin and edit, in an order that disrupts nobody who keeps the right.
    #[command(after_help = "Examples:
  kubectl nacre migration upgrade --dry-run            what it would do
  kubectl nacre migration upgrade")]
    Upgrade(roles::Change),
    /// Put migrations back into admin and edit; grants and labels stay for the next upgrade.
    #[command(after_help = "Examples:
  kubectl nacre migration rollback --dry-run           what it would do
  kubectl nacre migration rollback")]
    Rollback(roles::Change),
    /// Temporary roles that keep admin and edit as they were during an upgrade.
    #[command(subcommand)]
    Bridge(bridge::Bridge),
    /// Grant the permission to migrate.
    Grant(grant::Grant),
    /// Revoke the permission to migrate; exit code 3 if they still have it by another path.
    Revoke(grant::Revoke),
    /// List everybody who can start, change or delete a migration, and by which path.
    WhoCan(who_can::WhoCan),
    /// Show why somebody may or may not migrate, and what would change it; exit code 3 if they may not.
    Explain(explain::Explain),
}

impl Verb {
    /// Whether it makes roles or bindings, which mean nothing where there is no KubeVirt. What reads or takes away works
    /// everywhere.
    const fn gives(&self) -> bool {
        match self {
            Self::Install(_) | Self::Upgrade(_) | Self::Rollback(_) | Self::Grant(_) => true,
            Self::Bridge(verb) => verb.gives(),
            Self::Preview(_) | Self::Revoke(_) | Self::WhoCan(_) | Self::Explain(_) => false,
        }
    }
}

/// Does what was asked; `given` is the namespace on the command line.
pub(crate) async fn run(session: &Session, args: Args, given: Option<&str>) -> Result<Outcome> {
    if let Verb::Grant(verb) = &args.verb {
        verb.says_where(given)?;
    }
    if args.verb.gives() {
        gather::kubevirt(&session.client).await?;
    }
    match args.verb {
        Verb::Install(verb) => roles::install(session, &verb).await,
        Verb::Preview(verb) => preview::run(session, &verb).await,
        Verb::Upgrade(verb) => roles::upgrade(session, &verb).await,
        Verb::Rollback(verb) => roles::rollback(session, &verb).await,
        Verb::Bridge(verb) => bridge::run(session, &verb).await,
        Verb::Grant(verb) => grant::grant(session, &verb).await,
        Verb::Revoke(verb) => grant::revoke(session, &verb).await,
        Verb::WhoCan(verb) => who_can::run(session, &verb).await,
        Verb::Explain(verb) => explain::run(session, &verb).await,
    }
}
