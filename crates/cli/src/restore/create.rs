//! `restore create`, with the flags of `velero restore create` as far as a namespace owner can use them.

use anyhow::{Result, anyhow, bail};
use api::{NonAdminRestore, NonAdminRestoreSpec, velero::RestoreSpec};
use clap::Parser as _;
use jiff::Timestamp;
use kube::core::ObjectMeta;
use planner::Policy;

use super::{
    choose,
    filters::{Filters, check_resources},
    preview,
    replace::{self, ReplaceArgs},
};
use crate::{
    backup::in_one_line,
    confirm::Consent,
    connect::Session,
    download::Fetching,
    output::{Outcome, remark},
    send::{DryRun, Sending, generated},
};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre restore create --from-backup daily --wait
  kubectl nacre restore create                         from the last good backup of the namespace
  kubectl nacre restore create --from-backup daily --dry-run=server
  kubectl nacre restore create --from-backup daily --replace
  kubectl nacre restore create back --from-backup daily --include-resources configmaps -l app=shop
  kubectl nacre restore create --from-backup daily --existing-resource-policy update

Existing objects stay as they are unless --existing-resource-policy update is set.
Without --from-backup the last good backup is taken: the newest that is Completed, holds something, covers the
namespace (no filters) and can be restored now. If a newer one is not good, you are asked first.
The data of a claim that exists is not restored either: the answer names such claims.
With --replace the data goes back to the backup, in place: what is there now is saved in a safety backup, then the claims and
the workloads that use them are removed and restored. You are asked first. The same command resumes after an interruption.
With --dry-run=server nothing is restored; it is shown object by object what would be, as by `restore preview`.
With --wait the exit code is the outcome: 0 Completed with all volume data back, 3 PartiallyFailed, 0 items or volume
data that was not restored, 1 Failed or refused.")]
pub(super) struct Create {
    /// Name of the restore. Default: the backup's name and the time.
    name: Option<String>,

    /// The backup to restore. Default: the last completed one.
    #[arg(long, value_name = "BACKUP")]
    from_backup: Option<String>,

    #[command(flatten)]
    sending: Sending,

    #[command(flatten)]
    consent: Consent,

    #[command(flatten)]
    replace: ReplaceArgs,

    #[command(flatten)]
    filters: Filters,
}

/// The flags alone, for somebody who fills in a form instead.
#[derive(Debug, clap::Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Flags {
    #[command(flatten)]
    filters: Filters,
}

/// A restore as these flags describe it, checked as far as that is possible without sending it.
pub(crate) async fn prepared(
    session: &Session,
    name: String,
    backup: String,
    flags: &[String],
) -> Result<NonAdminRestore> {
    let flags = Flags::try_parse_from(flags).map_err(|error| anyhow!("{}", in_one_line(&error)))?;
    checked(session, name, flags.filters.spec(backup)).await
}

/// A restore with this spec, if some policy can allow it.
pub(super) async fn checked(session: &Session, name: String, spec: RestoreSpec) -> Result<NonAdminRestore> {
    if let Some(refusal) = planner::restore::check_spec(&spec, &session.namespace, &Policy::default()) {
        bail!("this restore would be refused: {refusal}");
    }
    check_resources(session, &spec).await?;
    Ok(request(name, spec))
}

fn request(name: String, spec: RestoreSpec) -> NonAdminRestore {
    NonAdminRestore {
        metadata: ObjectMeta { name: Some(name), ..ObjectMeta::default() },
        spec: NonAdminRestoreSpec { restore_spec: spec },
        status: None,
    }
}

pub(super) async fn run(session: &Session, args: Create) -> Result<Outcome> {
    let named = args.name.is_some();
    let backup = match &args.from_backup {
        Some(backup) => Some(backup.clone()),
        None => choose::last_good(session, &args.consent, args.sending.dry_run.is_some()).await?,
    };
    let Some(backup) = backup else {
        remark("nothing was restored");
        return Ok(Outcome::Failed);
    };
    let name = args.name.clone().unwrap_or_else(|| generated(&backup, Timestamp::now()));
    let spec = args.filters.spec(backup);
    // What no policy can allow need not be sent.
    if let Some(refusal) = planner::restore::check_spec(&spec, &session.namespace, &Policy::default()) {
        bail!("this restore would be refused: {refusal}");
    }
    // A dry run on the client asks nobody.
    if args.sending.dry_run != Some(DryRun::Client) {
        check_resources(session, &spec).await?;
    }
    let restore = request(name, spec);
    if args.replace.replace {
        return Box::pin(replace::run(session, &args.replace, &args.sending, &args.consent, restore)).await;
    }
    if args.sending.dry_run == Some(DryRun::Server) {
        return Box::pin(preview::show(session, &restore, &Fetching::default())).await;
    }
    Box::pin(args.sending.send(session, restore, named)).await
}
