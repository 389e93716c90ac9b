//! `schedule delete`: with or without the backups it made.

use anyhow::Result;
use api::{NonAdminBackup, NonAdminSchedule, labels};
use kube::api::{DeleteParams, Preconditions};
use planner::schedule::label_value;

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
        let deletion = Deletion::find(session, name.of::<NonAdminSchedule>()?).await?;
        if !args.consent.given(&deletion.question(session, args.with_backups))? {
            remark("nothing was deleted");
            return Ok(Outcome::Failed);
        }
        deletion.carry_out(session, args.with_backups).await?;
        done.push(qualified::<NonAdminSchedule>(&deletion.name));
    }
    let table = || lines(done.iter().map(|name| format!("{name} deleted")));
    let format = if session.format == Format::Wide { Format::Table } else { session.format };
    print(format, &done, table, || done.clone())?;
    Ok(Outcome::Good)
}

/// A schedule that somebody may want to delete, and the backups that it made.
pub(crate) struct Deletion {
    name: String,
    schedule: NonAdminSchedule,
    /// How many backups there are when the question is asked.
    runs: usize,
}

impl Deletion {
    pub(crate) async fn find(session: &Session, name: &str) -> Result<Self> {
        let (schedule, _) = list::one::<NonAdminSchedule>(session, name).await?;
        Ok(Self { name: name.to_owned(), schedule, runs: runs(session, name).await?.len() })
    }

    /// What to ask first.
    pub(crate) fn question(&self, session: &Session, with_backups: bool) -> String {
        let number = count(i64::try_from(self.runs).unwrap_or(i64::MAX), "backup");
        let what = if with_backups {
            format!("and its {number} with their data")
        } else {
            format!("and keep its {number}")
        };
        format!("Delete schedule {} of namespace {} {what}?", self.name, session.namespace)
    }

    /// The schedule goes first, so that it makes no more of them. It may have made one since the question was asked.
    pub(crate) async fn carry_out(&self, session: &Session, with_backups: bool) -> Result<()> {
        delete(session, &self.schedule, &self.name).await?;
        if with_backups {
            for run in runs(session, &self.name).await? {
                ask_to_delete(session, &run).await?;
            }
        }
        Ok(())
    }
}

/// The backups that a schedule made.
async fn runs(session: &Session, name: &str) -> Result<Vec<NonAdminBackup>> {
    let selector = format!("{}={}", labels::NAS_NAME, label_value(name));
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
