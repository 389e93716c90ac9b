//! `grant` and `revoke`, in kubectl's own words.

use std::time::Duration;

use anyhow::{Result, bail};
use jiff::Timestamp;
use live_migration::grant::{self, GrantRequest};
use planner::{
    plan::Plan,
    rbac::{Scope, subject::Who},
};

use super::{
    gather::{self, Done, execute_plan},
    show,
};
use crate::{
    connect::Session,
    output::{Outcome, print, remark},
};

/// How often a plan is made again because something changed meanwhile.
const TRIES: usize = 5;

/// Who, in the words of `kubectl create rolebinding`.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = true)]
pub(super) struct Subjects {
    /// A user; may be repeated.
    #[arg(long = "user", value_name = "NAME")]
    users: Vec<String>,

    /// A group; may be repeated.
    #[arg(long = "group", value_name = "NAME")]
    groups: Vec<String>,

    /// A service account; may be repeated.
    #[arg(long = "serviceaccount", value_name = "NAMESPACE:NAME", value_parser = account)]
    accounts: Vec<Who>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre migration grant --user ann -n shop
  kubectl nacre migration grant --group ops --cluster
  kubectl nacre migration grant --serviceaccount ops:mover -n shop --expires 24h
  kubectl nacre migration grant --user ann -n shop --dry-run -o yaml

The namespace of the context is not taken: say -n or --cluster. Granting again changes the grant: a new end replaces
the old one, and no --expires makes the grant permanent.")]
pub(super) struct Grant {
    #[command(flatten)]
    subjects: Subjects,

    /// In every namespace, instead of one.
    #[arg(long, conflicts_with = "namespace")]
    cluster: bool,

    /// When the grant ends, from now: 30m, 24h, 168h.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    expires: Option<Duration>,

    /// Grant it even to groups that include everybody.
    #[arg(long)]
    force: bool,

    /// Print what would be created; change nothing.
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre migration revoke --user ann -n shop
  kubectl nacre migration revoke --group ops --cluster --dry-run")]
pub(super) struct Revoke {
    #[command(flatten)]
    subjects: Subjects,

    /// The grant for every namespace, instead of the one for a namespace.
    #[arg(long, conflicts_with = "namespace")]
    cluster: bool,

    /// Print what would be done; change nothing.
    #[arg(long)]
    dry_run: bool,
}

impl Grant {
    /// Refuses a grant that does not say where: in the namespace a context happens to name, nobody means it.
    pub(super) fn says_where(&self, given: Option<&str>) -> Result<()> {
        if !self.cluster && given.is_none() {
            bail!(
                "-n: say in which namespace they may migrate, as in -n shop, or --cluster for every namespace"
            );
        }
        Ok(())
    }
}

impl Subjects {
    fn all(&self) -> Vec<Who> {
        let users = self.users.iter().map(|name| Who::named(name));
        let groups = self.groups.iter().cloned().map(Who::Group);
        users.chain(groups).chain(self.accounts.iter().cloned()).collect()
    }
}

pub(super) async fn grant(session: &Session, args: &Grant) -> Result<Outcome> {
    let now = Timestamp::now();
    let expires = args.expires.map(|after| now.checked_add(after)).transpose()?;
    let request = GrantRequest {
        who: args.subjects.all(),
        scope: scope(session, args.cluster),
        expires: expires.map(to_seconds),
        force: args.force,
    };
    for _ in 0..TRIES {
        let rbac = gather::rbac(&session.client).await?;
        let refusals = grant::refusals(&request, &rbac, now);
        if !refusals.is_empty() {
            bail!("{}", refusals.join("; "));
        }
        let plan = grant::decide(&request, &rbac, now);
        if args.dry_run || execute_plan(&session.client, &plan).await? == Done::Yes {
            for warning in grant::warnings(&request, &rbac) {
                remark(format_args!("warning: {warning}"));
            }
            return answer(session, &plan, args.dry_run, Outcome::Good);
        }
    }
    bail!("the bindings keep changing; try again")
}

pub(super) async fn revoke(session: &Session, args: &Revoke) -> Result<Outcome> {
    let (who, scope) = (args.subjects.all(), scope(session, args.cluster));
    for _ in 0..TRIES {
        let rbac = gather::rbac(&session.client).await?;
        let plan = grant::revoke(&who, &scope, &rbac);
        if args.dry_run || execute_plan(&session.client, &plan).await? == Done::Yes {
            let left = grant::left_after_revoking(&who, &scope, &rbac);
            for right in &left {
                let (power, place) = (right.power.name(), show::place(&right.scope));
                remark(format_args!(
                    "{} can still {power} in {place}: {}",
                    right.who,
                    show::sources(&right.paths)
                ));
            }
            return answer(session, &plan, args.dry_run, Outcome::attention_if(!left.is_empty()));
        }
    }
    bail!("the bindings keep changing; try again")
}

fn answer(session: &Session, plan: &Plan, dry_run: bool, outcome: Outcome) -> Result<Outcome> {
    let table = || show::plan(plan, dry_run, "nothing to do");
    match show::manifests(plan).filter(|_| dry_run) {
        Some(manifests) => print(session.format, &manifests, table, || show::objects(plan))?,
        None => print(session.format, &show::steps(plan), table, || show::objects(plan))?,
    }
    Ok(outcome)
}

fn scope(session: &Session, cluster: bool) -> Scope {
    if cluster { Scope::Cluster } else { Scope::Namespace(session.namespace.clone()) }
}

/// Nobody needs to know the nanosecond a grant ends in.
fn to_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// Reads `namespace:name`.
pub(super) fn account(text: &str) -> Result<Who, String> {
    match text.split_once(':') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => {
            Ok(Who::account(namespace, name))
        }
        _ => Err("a service account is NAMESPACE:NAME".to_owned()),
    }
}

/// Reads `24h`, `1h30m`, `90s`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    api::Duration::from(text).to_std().ok_or_else(|| "a duration is like 90s, 1h30m or 24h".to_owned())
}
