//! `schedule delete`: with or without the backups it made.

use anyhow::Result;
use api::{NonAdminBackup, NonAdminSchedule, labels};
use kube::api::{DeleteParams, Preconditions};
use planner::schedule::label_value;

use super::find;
use crate::{
    confirm::Consent,
    connect::Session,
    delete::delete_with_data,
    list::{self, qualified},
    object_name::ObjectName,
    output::{Format, Outcome, lines, print, remark},
    text::count,
};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre schedule delete nightly                      its backups stay for the ttl of the template
  kubectl nacre schedule delete nightly --with-backups       and all of its backups go with their data

Retention ends with the schedule. Backups that stay expire after the ttl in the schedule's template, or 30 days without one,
counted from the deletion. A new schedule of the same name takes them over again.")]
pub(super) struct Delete {
    /// Which schedules.
    #[arg(value_name = "NAME", required = true)]
    names: Vec<ObjectName>,

    /// Delete all backups that the schedule made, with their data.
    #[arg(long)]
    with_backups: bool,

    #[command(flatten)]
    consent: Consent,
}

pub(super) async fn run(session: &Session, args: &Delete) -> Result<Outcome> {
    let mut done = Vec::new();
    for name in &args.names {
        let schedule = find(session, name).await?;
        let name = schedule.metadata.name.clone().unwrap_or_default();
        let runs = runs(session, &name).await?;
        let number = count(i64::try_from(runs.len()).unwrap_or(i64::MAX), "backup");
        let what = if args.with_backups {
            format!("and its {number} with their data")
        } else {
            format!("and keep its {number}")
        };
        let question = format!("Delete schedule {name} of namespace {} {what}?", session.namespace);
        if !args.consent.given(&question)? {
            remark("nothing was deleted");
            return Ok(Outcome::Failed);
        }
        // The schedule first, so that it makes no more of them.
        delete(session, &schedule, &name).await?;
        if args.with_backups {
            for run in &runs {
                ask_to_delete(session, run).await?;
            }
        }
        done.push(qualified::<NonAdminSchedule>(&name));
    }
    let table = || lines(done.iter().map(|name| format!("{name} deleted")));
    let format = if session.format == Format::Wide { Format::Table } else { session.format };
    print(format, &done, table, || done.clone())?;
    Ok(Outcome::Good)
}

async fn runs(session: &Session, schedule: &str) -> Result<Vec<NonAdminBackup>> {
    let selector = format!("{}={}", labels::NAS_NAME, label_value(schedule));
    let found =
        list::all::<NonAdminBackup>(session, Some(&session.namespace), Some(&selector), false).await?;
    Ok(found.items.into_iter().map(|(backup, _)| backup).collect())
}

/// The uid goes along, so that a namesake made meanwhile is never meant.
async fn delete(session: &Session, schedule: &NonAdminSchedule, name: &str) -> Result<()> {
    let preconditions = Preconditions { uid: schedule.metadata.uid.clone(), resource_version: None };
    let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    session.api::<NonAdminSchedule>().delete(name, &params).await?;
    Ok(())
}

async fn ask_to_delete(session: &Session, run: &NonAdminBackup) -> Result<()> {
    match delete_with_data(&session.api::<NonAdminBackup>(), run).await {
        // Somebody was faster.
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        done => Ok(done?),
    }
}
