//! `restore create --replace`: back to a backup, in place. The rules and the steps are the planner's.

mod cluster;
mod drive;
mod start;

use anyhow::{Result, bail};
use api::NonAdminRestore;

use crate::{
    confirm::Consent,
    connect::Session,
    output::{Outcome, remark},
    send::{DryRun, Sending},
};
use cluster::StoredRecord;

/// What `--replace` takes.
#[derive(Debug, clap::Args)]
pub(super) struct ReplaceArgs {
    /// Remove the claims, and the workloads that use them, and restore them from the backup.
    #[arg(long)]
    pub(super) replace: bool,

    /// With --replace: only this claim; may be repeated.
    #[arg(long, value_name = "CLAIM", requires = "replace")]
    only_claim: Vec<String>,

    /// With --replace: do not save what is there now. What was written since the backup is lost for good.
    #[arg(long, requires = "replace")]
    no_safety_backup: bool,

    /// With --replace: an operator, Argo CD or Flux manages the workloads, and you have paused it.
    #[arg(long, requires = "replace")]
    ignore_managers: bool,
}

/// Replaces what the restore names, or goes on with that.
pub(super) async fn run(
    session: &Session,
    args: &ReplaceArgs,
    sending: &Sending,
    consent: &Consent,
    restore: NonAdminRestore,
) -> Result<Outcome> {
    if sending.dry_run == Some(DryRun::Client) {
        bail!("--replace depends on what is in the namespace; use --dry-run=server");
    }
    let backup = restore.spec.restore_spec.backup_name.clone().unwrap_or_default();
    if let Some(kept) = StoredRecord::find(session, &backup).await? {
        remark(format_args!("resuming the replacement from backup {backup} that was begun before"));
        if sending.dry_run.is_some() {
            return drive::report(session, &kept).await;
        }
        return Box::pin(drive::until_done(session, kept, sending.timeout())).await;
    }
    match start::prepare(session, args, sending, consent, &restore).await? {
        start::Prepared::Ready(record) => {
            let kept = StoredRecord::create(session, *record).await?;
            Box::pin(drive::until_done(session, kept, sending.timeout())).await
        }
        start::Prepared::NothingToRemove => {
            remark("no claim has to be removed; restoring what is missing");
            sending.send_and_wait(session, restore).await
        }
        start::Prepared::Ended(outcome) => Ok(outcome),
    }
}
