//! `schedule pause`, `resume`, `confirm` and `run`.

use anyhow::{Result, ensure};
use api::{NonAdminBackup, NonAdminBackupSpec, NonAdminSchedule};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{
    api::{Patch, PatchParams},
    core::ObjectMeta,
};
use serde_json::{Value, json};

use super::find;
use crate::{
    connect::Session,
    list::qualified,
    object_name::ObjectName,
    output::{Format, Outcome, lines, print},
    send::{Sending, generated},
};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre schedule pause nightly
  kubectl nacre schedule pause nightly hourly

What is due while a schedule is paused is not made up for. Backups that are not kept any more still go.")]
pub(super) struct Pause {
    /// Which schedules.
    #[arg(value_name = "NAME", required = true)]
    names: Vec<ObjectName>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre schedule resume nightly
  kubectl nacre schedule resume nightly hourly")]
pub(super) struct Resume {
    /// Which schedules.
    #[arg(value_name = "NAME", required = true)]
    names: Vec<ObjectName>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre schedule confirm nightly
  kubectl nacre schedule confirm nightly --as jane

From then on you are the one who asks for the runs, with your permissions. Any change of the spec does the same.
`kubectl nacre schedule describe` shows until when a schedule has to be confirmed.")]
pub(super) struct Confirm {
    /// Which schedules.
    #[arg(value_name = "NAME", required = true)]
    names: Vec<ObjectName>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre schedule run nightly
  kubectl nacre schedule run nightly --wait

The backup is made as the schedule makes its runs, but is not one of them: it stays until you delete it or it expires.")]
pub(super) struct Run {
    /// Which schedule.
    name: ObjectName,

    #[command(flatten)]
    sending: Sending,
}

pub(super) async fn pause(session: &Session, args: &Pause) -> Result<Outcome> {
    change(session, &args.names, "paused", async |name| set_paused(session, name, true).await).await
}

pub(super) async fn resume(session: &Session, args: &Resume) -> Result<Outcome> {
    change(session, &args.names, "resumed", async |name| set_paused(session, name, false).await).await
}

/// Pauses or resumes a schedule.
pub(crate) async fn set_paused(session: &Session, name: &str, paused: bool) -> Result<()> {
    patch(session, name, &json!({"paused": paused})).await.map(drop)
}

async fn patch(session: &Session, name: &str, spec: &Value) -> Result<NonAdminSchedule> {
    let change = Patch::Merge(json!({ "spec": spec }));
    Ok(session.api::<NonAdminSchedule>().patch(name, &PatchParams::default(), &change).await?)
}

pub(super) async fn confirm(session: &Session, args: &Confirm) -> Result<Outcome> {
    change(session, &args.names, "confirmed", async |name| confirm_one(session, name).await).await
}

/// The API server records again who asks, since the spec changes.
pub(crate) async fn confirm_one(session: &Session, name: &str) -> Result<()> {
    let now = Time(Timestamp::from_second(Timestamp::now().as_second())?);
    let stored = patch(session, name, &json!({"confirmedAt": now})).await?;
    ensure!(
        stored.spec.confirmed_at.is_some(),
        "spec.confirmedAt: this cluster's CRD does not have the field; change another field of the spec instead"
    );
    Ok(())
}

async fn change(
    session: &Session,
    names: &[ObjectName],
    result: &str,
    change: impl AsyncFn(&str) -> Result<()>,
) -> Result<Outcome> {
    let mut done = Vec::new();
    for name in names {
        let name = name.of::<NonAdminSchedule>()?;
        change(name).await?;
        done.push(qualified::<NonAdminSchedule>(name));
    }
    let table = || lines(done.iter().map(|name| format!("{name} {result}")));
    let format = if session.format == Format::Wide { Format::Table } else { session.format };
    print(format, &done, table, || done.clone())?;
    Ok(Outcome::Good)
}

pub(super) async fn run_now(session: &Session, args: &Run) -> Result<Outcome> {
    let schedule = find(session, &args.name).await?;
    Box::pin(args.sending.send(session, as_run(schedule), false)).await
}

/// A backup as the schedule makes them, now.
pub(crate) fn as_run(schedule: NonAdminSchedule) -> NonAdminBackup {
    let stem = format!("{}-manual", schedule.metadata.name.as_deref().unwrap_or_default());
    let name = Some(generated(&stem, Timestamp::now()));
    NonAdminBackup {
        metadata: ObjectMeta { name, ..ObjectMeta::default() },
        spec: NonAdminBackupSpec { backup_spec: schedule.spec.template.backup_spec, delete_backup: None },
        status: None,
    }
}
