//! `kubectl nacre policy`: shows the policy in effect, and checks one before it is applied.

pub(crate) mod check;
pub(crate) mod egress;
pub(crate) mod show;
pub(crate) mod trial;

use anyhow::{Result, bail};
use clap::Subcommand;

use crate::{
    connect::Session,
    output::{Format, Outcome},
};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Show the policy in effect, and the source of each setting.
    #[command(alias = "get")]
    Show(show::Show),
    /// Check a policy, with the same messages as the controller, and try it on existing requests.
    Check(check::Check),
    /// Print a NetworkPolicy that keeps Velero from addresses inside the cluster.
    Egress(egress::Print),
}

impl Args {
    /// Whether it can be answered from here.
    pub(crate) const fn needs_no_cluster(&self) -> bool {
        matches!(&self.verb, Verb::Check(verb) if !verb.requests)
    }

    /// Answers what needs no cluster.
    pub(crate) fn checked(&self, format: Format) -> Result<Outcome> {
        match &self.verb {
            Verb::Check(verb) => check::run(verb, format),
            Verb::Show(_) | Verb::Egress(_) => bail!("that needs a cluster"),
        }
    }
}

/// Does what was asked; `given` is the namespace on the command line.
pub(crate) async fn run(session: &Session, args: Args, given: Option<&str>) -> Result<Outcome> {
    match args.verb {
        Verb::Show(_) => show::run(session, given).await,
        Verb::Egress(_) => egress::run(session).await,
        Verb::Check(verb) if verb.requests => Box::pin(check::run_on_requests(session, &verb)).await,
        Verb::Check(verb) => check::run(&verb, session.format),
    }
}
