//! `schedule create`.

use anyhow::{Result, anyhow, bail};
use api::{Concurrency, Duration, NonAdminSchedule, NonAdminScheduleSpec, Retention, ScheduleTemplate};
use clap::{Parser as _, ValueEnum};
use jiff::Timestamp;
use kube::{api::PostParams, core::ObjectMeta};
use planner::{Policy, schedule};

use crate::{
    allowed,
    backup::{Template, in_one_line},
    connect::Session,
    list::qualified,
    location::known::warn_of_missing,
    output::{Format, Outcome, print, remark, say},
    send::{DryRun, written_duration},
    warnings,
};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre schedule create nightly --schedule '0 2 * * *' --keep-daily 7 --keep-weekly 4
  kubectl nacre schedule create nightly --schedule 'H 2 * * *' --time-zone Europe/Berlin --keep-within 30d
  kubectl nacre schedule create often --schedule '@every 6h' --keep-last 8 --default-volumes-to-fs-backup
  kubectl nacre schedule create nightly --schedule @daily --dry-run -o yaml > nightly.yaml

H in place of a number lets nacre choose one for the namespace, so that not everybody starts at once.
H(1-5) is one of a range, H/15 every 15 from one on.
Without any --keep flag, each backup is kept for its --ttl. The last good backup is never deleted.")]
pub(super) struct Create {
    /// Name of the schedule.
    name: String,

    /// When to run: five fields of cron, @hourly, @daily, @weekly, @monthly, @yearly or @every 6h.
    #[arg(long, value_name = "CRON")]
    schedule: String,

    /// The time zone of the schedule. Default: UTC.
    #[arg(long, value_name = "ZONE")]
    time_zone: Option<String>,

    /// Make no runs until it is resumed.
    #[arg(long)]
    paused: bool,

    /// How late a run that was missed may start. Default: half of the time until the next run.
    #[arg(long, value_name = "DURATION", value_parser = written_duration)]
    starting_deadline: Option<Duration>,

    /// What happens when a run is due and the one before it is not finished: forbid skips it, allow starts it.
    #[arg(long, value_enum, value_name = "RULE", hide_possible_values = true)]
    concurrency: Option<Rule>,

    /// Change nothing. `client` prints the manifest, `server` asks the API server too.
    #[arg(long, value_name = "MODE", num_args = 0..=1, require_equals = true, default_missing_value = "client")]
    #[arg(value_enum, hide_possible_values = true)]
    dry_run: Option<DryRun>,

    #[command(flatten)]
    keep: Keep,

    #[command(flatten)]
    template: Template,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "What to keep")]
#[expect(clippy::struct_field_names, reason = "they are the flags")]
struct Keep {
    /// So many of the newest good backups.
    #[arg(long, value_name = "NUMBER")]
    keep_last: Option<u32>,
    /// The newest of each of so many hours.
    #[arg(long, value_name = "NUMBER")]
    keep_hourly: Option<u32>,
    /// The newest of each of so many days.
    #[arg(long, value_name = "NUMBER")]
    keep_daily: Option<u32>,
    /// The newest of each of so many weeks.
    #[arg(long, value_name = "NUMBER")]
    keep_weekly: Option<u32>,
    /// The newest of each of so many months.
    #[arg(long, value_name = "NUMBER")]
    keep_monthly: Option<u32>,
    /// The newest of each of so many years.
    #[arg(long, value_name = "NUMBER")]
    keep_yearly: Option<u32>,
    /// All that are at most so much older than the newest, such as 30d or 36h.
    #[arg(long, value_name = "TIME")]
    keep_within: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Rule {
    Forbid,
    Allow,
}

pub(super) async fn run(session: &Session, args: &Create) -> Result<Outcome> {
    let schedule = args.schedule(&session.namespace)?;
    check(&schedule, session).await?;
    let name = qualified::<NonAdminSchedule>(&args.name);
    let api = session.api::<NonAdminSchedule>();
    if let Some(mode) = args.dry_run {
        let mut shown = schedule;
        if mode == DryRun::Server {
            shown = api.create(&PostParams { dry_run: true, ..PostParams::default() }, &shown).await?;
            shown.metadata.managed_fields = None;
        }
        let format = if session.format == Format::Table { Format::Yaml } else { session.format };
        print(format, &shown, String::new, || vec![name])?;
        return Ok(Outcome::Good);
    }
    warn_of_missing(session, schedule.spec.template.backup_spec.storage_location.as_deref()).await?;
    let made = api.create(&PostParams::default(), &schedule).await?;
    for warning in warnings::received() {
        remark(format_args!("Warning: {warning}"));
    }
    if matches!(session.format, Format::Table | Format::Wide) {
        say(&format!("{name} created\n"))?;
        remark(format_args!("`kubectl nacre schedule describe {}` shows when it runs", args.name));
    } else {
        print(session.format, &made, String::new, || vec![name])?;
    }
    Ok(Outcome::Good)
}

/// The flags alone, for somebody who fills in a form instead.
#[derive(Debug, clap::Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Flags {
    #[command(flatten)]
    create: Create,
}

/// A schedule as these flags describe it, if some policy can allow it.
pub(crate) async fn prepared(session: &Session, name: &str, flags: &[String]) -> Result<NonAdminSchedule> {
    let arguments = flags.iter().map(String::as_str).chain(["--", name]);
    let flags = Flags::try_parse_from(arguments).map_err(|error| anyhow!("{}", in_one_line(&error)))?;
    let made = flags.create.schedule(&session.namespace)?;
    check(&made, session).await.map(|()| made)
}

/// What no policy can allow need not be sent. The uid of the namespace decides when an `H` is due: if the person may not
/// read the namespace, the API server alone can tell.
async fn check(made: &NonAdminSchedule, session: &Session) -> Result<()> {
    if !made.spec.schedule.contains('H') {
        return check_for(made, "");
    }
    allowed::namespace(session).await.metadata.uid.map_or(Ok(()), |uid| check_for(made, &uid))
}

fn check_for(made: &NonAdminSchedule, namespace_uid: &str) -> Result<()> {
    let (policy, now) = (Policy::default(), Timestamp::now());
    let refused = |refusal| anyhow!("this schedule would be refused: {refusal}");
    let times = schedule::times(made, namespace_uid, &policy, now).map_err(refused)?;
    match schedule::check(made, &times, "", &policy, now) {
        Some(refusal) => bail!(refused(refusal)),
        None => Ok(()),
    }
}

impl Create {
    fn schedule(&self, namespace: &str) -> Result<NonAdminSchedule> {
        let metadata = ObjectMeta {
            name: Some(self.name.clone()),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        };
        let spec = NonAdminScheduleSpec {
            schedule: self.schedule.clone(),
            template: ScheduleTemplate { backup_spec: self.template.spec()? },
            paused: self.paused.then_some(true),
            skip_immediately: None,
            time_zone: self.time_zone.clone(),
            starting_deadline: self.starting_deadline.clone(),
            concurrency: self.concurrency.map(|rule| match rule {
                Rule::Forbid => Concurrency::Forbid,
                Rule::Allow => Concurrency::Allow,
            }),
            retention: self.keep.retention(),
            confirmed_at: None,
        };
        Ok(NonAdminSchedule { metadata, spec, status: None })
    }
}

impl Keep {
    fn retention(&self) -> Option<Retention> {
        let retention = Retention {
            keep_last: self.keep_last,
            keep_hourly: self.keep_hourly,
            keep_daily: self.keep_daily,
            keep_weekly: self.keep_weekly,
            keep_monthly: self.keep_monthly,
            keep_yearly: self.keep_yearly,
            keep_within: self.keep_within.clone(),
        };
        (retention != Retention::default()).then_some(retention)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        create: Create,
    }

    fn made(arguments: &[&str]) -> Result<NonAdminSchedule> {
        made_for("", arguments)
    }

    fn made_for(namespace_uid: &str, arguments: &[&str]) -> Result<NonAdminSchedule> {
        let made = Program::parse_from([&["create"], arguments].concat()).create.schedule("shop")?;
        check_for(&made, namespace_uid).map(|()| made)
    }

    #[test]
    fn a_month_that_nacre_chooses_is_that_of_the_namespace() {
        let all: Vec<bool> = ["1", "2", "3", "4", "5", "6", "7", "8", "9"]
            .iter()
            .map(|uid| made_for(uid, &["yearly", "--schedule", "0 0 31 H *"]).is_ok())
            .collect();
        assert!(all.contains(&true) && all.contains(&false), "months with and without a 31st: {all:?}");
    }

    #[test]
    fn flags_become_the_fields_of_the_schedule() {
        let made =
            made(&["nightly", "--schedule", "0 2 * * *", "--keep-daily", "7", "--ttl", "72h"]).unwrap();
        let spec = serde_json::to_string(&made.spec).unwrap();
        insta::assert_snapshot!(spec, @r#"{"schedule":"0 2 * * *","template":{"backupSpec":{"ttl":"72h"}},"retention":{"keepDaily":7}}"#);
    }

    #[test]
    fn what_no_policy_allows_is_not_sent() {
        let refused = made(&["nightly", "--schedule", "0 25 * * *"]).unwrap_err().to_string();
        assert!(refused.starts_with("this schedule would be refused: spec.schedule: \"25\""), "{refused}");
    }
}
