//! `restore create --replace`: back to a backup, in place. The rules and the steps are the planner's.

mod cluster;
pub(crate) mod drive;
mod start;

use anyhow::{Context as _, Result, anyhow, bail};
use api::NonAdminRestore;
use clap::Parser as _;
use jiff::Timestamp;

use super::{create::checked, filters::Filters};
use crate::{
    backup::in_one_line,
    confirm::Consent,
    connect::Session,
    download::Fetching,
    output::{Format, Outcome, print, remark},
    send::{DryRun, Sending, generated},
    style,
    text::printable,
};
pub(crate) use cluster::StoredRecord;
pub(crate) use start::{Prepared, Replacement};

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
    match start::prepare(session, args, &restore, &Fetching::default()).await? {
        Prepared::Ready(replacement) => {
            let people = matches!(session.format, Format::Table | Format::Wide);
            let preview = &replacement.preview;
            if people || sending.dry_run.is_some() {
                print(session.format, preview, || preview.page().to_string(), || preview.names())?;
            }
            if sending.dry_run.is_some() {
                return Ok(preview.outcome());
            }
            if !consent.given(&replacement.question).context("nothing was changed")? {
                remark("nothing was changed");
                return Ok(Outcome::Failed);
            }
            let kept = StoredRecord::create(session, replacement.record).await?;
            Box::pin(drive::until_done(session, kept, sending.timeout())).await
        }
        Prepared::NothingToRemove => {
            remark("no claim has to be removed; restoring what is missing");
            sending.send_and_wait(session, restore).await
        }
        Prepared::Impossible(problems) => {
            remark(style::bad("this cannot be replaced, and nothing was changed:"));
            for problem in problems {
                remark(format_args!("  {}", printable(&problem)));
            }
            Ok(Outcome::Failed)
        }
        Prepared::Interrupted => Ok(Outcome::Interrupted),
    }
}

/// The flags alone, for somebody who fills in a form instead.
#[derive(Debug, clap::Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Flags {
    #[command(flatten)]
    replace: ReplaceArgs,
    #[command(flatten)]
    filters: Filters,
}

/// A replacement as these flags describe it.
pub(crate) async fn prepared(
    session: &Session,
    backup: &str,
    flags: &[String],
    fetching: &Fetching,
) -> Result<Prepared> {
    let flags = Flags::try_parse_from(flags).map_err(|error| anyhow!("{}", in_one_line(&error)))?;
    let name = generated(backup, Timestamp::now());
    let restore = checked(session, name, flags.filters.spec(backup.to_owned())).await?;
    start::prepare(session, &flags.replace, &restore, fetching).await
}
