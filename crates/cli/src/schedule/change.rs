//! `schedule pause`, `resume` and `run`.

use anyhow::Result;
use api::{NonAdminBackup, NonAdminBackupSpec, NonAdminSchedule};
use jiff::Timestamp;
use kube::{
    api::{Patch, PatchParams},
    core::ObjectMeta,
};
use serde_json::json;

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
    set_paused(session, &args.names, true).await
}

pub(super) async fn resume(session: &Session, args: &Resume) -> Result<Outcome> {
    set_paused(session, &args.names, false).await
}

async fn set_paused(session: &Session, names: &[ObjectName], paused: bool) -> Result<Outcome> {
    let mut done = Vec::new();
    for name in names {
        let name = name.of::<NonAdminSchedule>()?;
        let change = Patch::Merge(json!({"spec": {"paused": paused}}));
        session.api::<NonAdminSchedule>().patch(name, &PatchParams::default(), &change).await?;
        done.push(qualified::<NonAdminSchedule>(name));
    }
    let result = if paused { "paused" } else { "resumed" };
    let table = || lines(done.iter().map(|name| format!("{name} {result}")));
    let format = if session.format == Format::Wide { Format::Table } else { session.format };
    print(format, &done, table, || done.clone())?;
    Ok(Outcome::Good)
}

pub(super) async fn run_now(session: &Session, args: &Run) -> Result<Outcome> {
    let schedule = find(session, &args.name).await?;
    let stem = format!("{}-manual", schedule.metadata.name.as_deref().unwrap_or_default());
    let name = Some(generated(&stem, Timestamp::now()));
    let backup = NonAdminBackup {
        metadata: ObjectMeta { name, ..ObjectMeta::default() },
        spec: NonAdminBackupSpec { backup_spec: schedule.spec.template.backup_spec, delete_backup: None },
        status: None,
    };
    Box::pin(args.sending.send(session, backup, false)).await
}
