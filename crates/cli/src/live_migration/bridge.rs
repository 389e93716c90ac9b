//! `bridge create` and `bridge remove`.

use std::time::Duration;

use anyhow::{Result, bail};
use clap::Subcommand;
use jiff::Timestamp;
use live_migration::{bridge, preview::grant_command};
use tokio::time::Instant;

use super::{
    gather::{self, Done, execute_plan},
    show,
};
use crate::{
    connect::Session,
    output::{Outcome, print, remark},
};

const LOOK_AGAIN: Duration = Duration::from_millis(200);

#[derive(Debug, Subcommand)]
pub(super) enum Bridge {
    /// Create the bridge roles, and wait until they are aggregated into admin and edit.
    #[command(after_help = "Examples:
  kubectl nacre migration bridge create
  kubectl nacre migration bridge create --dry-run -o yaml      the manifests, to apply by hand")]
    Create {
        /// Print what would be created; change nothing.
        #[arg(long)]
        dry_run: bool,

        /// How long to wait for the aggregation controller.
        #[arg(long, default_value = "60s", value_parser = super::grant::duration)]
        timeout: Duration,
    },
    /// Remove the bridge roles, unless somebody would lose permissions; exit code 3 if so.
    #[command(after_help = "Examples:
  kubectl nacre migration bridge remove --dry-run      who would be cut off
  kubectl nacre migration bridge remove")]
    Remove {
        /// Remove it even so.
        #[arg(long)]
        force: bool,

        /// Print what would be done and who is affected; change nothing.
        #[arg(long)]
        dry_run: bool,
    },
}

impl Bridge {
    /// Whether it makes roles.
    pub(super) const fn gives(&self) -> bool {
        matches!(self, Self::Create { .. })
    }
}

pub(super) async fn run(session: &Session, verb: &Bridge) -> Result<Outcome> {
    match *verb {
        Bridge::Create { dry_run, timeout } => create(session, dry_run, timeout).await,
        Bridge::Remove { force, dry_run } => remove(session, force, dry_run).await,
    }
}

async fn create(session: &Session, dry_run: bool, timeout: Duration) -> Result<Outcome> {
    let deadline = Instant::now() + timeout;
    let plan = bridge::create(&gather::rbac(&session.client).await?);
    if !dry_run {
        execute_plan(&session.client, &plan).await?;
        loop {
            let missing = bridge::missing(&gather::rbac(&session.client).await?);
            let Some((role, power)) = missing.first() else { break };
            if Instant::now() > deadline {
                bail!("the aggregation controller has yet to give {} to {role}", power.name());
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
    let table = || show::plan(&plan, dry_run, "the bridge stands already");
    match show::manifests(&plan).filter(|_| dry_run) {
        Some(manifests) => print(session.format, &manifests, table, || show::objects(&plan))?,
        None => print(session.format, &show::steps(&plan), table, || show::objects(&plan))?,
    }
    Ok(Outcome::Good)
}

async fn remove(session: &Session, force: bool, dry_run: bool) -> Result<Outcome> {
    loop {
        let rbac = gather::rbac(&session.client).await?;
        let cut_off = bridge::cut_off(&rbac);
        for loss in &cut_off {
            let (who, place) = (&loss.who, show::place(&loss.scope));
            remark(format_args!("{who} would lose {} in {place}", show::powers(&loss.loses)));
            remark(format_args!("  {}", grant_command(who, &loss.scope)));
        }
        let plan = bridge::remove(&rbac, force, Timestamp::now());
        let refused = !cut_off.is_empty() && !force;
        if let (Some(wait), false) = (plan.delay(), dry_run) {
            tokio::time::sleep(wait).await;
            continue;
        }
        if !dry_run && execute_plan(&session.client, &plan).await? == Done::Stale {
            continue;
        }
        let nothing =
            if refused { "the bridge stays: somebody would be cut off" } else { "there is no bridge" };
        let table = || show::plan(&plan, dry_run, nothing);
        let answer = serde_json::json!({ "steps": show::steps(&plan), "cutOff": cut_off });
        print(session.format, &answer, table, || show::objects(&plan))?;
        return Ok(Outcome::attention_if(refused));
    }
}
