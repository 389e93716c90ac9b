//! `install`, `upgrade` and `rollback`: ask for a state of roles and guard, and see it come about.

use std::time::Duration;

use ::live_migration::{
    access, guard,
    preview::preview,
    reconcile,
    report::{Report, report},
    roles::Era,
    settings::{self, Settings},
};
use anyhow::{Result, bail};
use clap::ValueEnum;
use engine::live_migration::{self, Seen};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use planner::{
    plan::Plan,
    rbac::{Rbac, subject::Who},
};
use serde::Serialize;
use tokio::time::Instant;

use super::{gather::execute_plan, show};
use crate::{
    connect::Session,
    output::{Outcome, lines, print, remark},
    table::Table,
};

/// How soon to look again while something else is at work.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre migration install                   roles, and a guard that warns
  kubectl nacre migration install --guard deny      once the warnings are understood
  kubectl nacre migration install --dry-run         what it would do

On a cluster whose admin and edit roles still include migrations, install stops and says who would lose them:
see preview, bridge and upgrade. Where KubeVirt's own operator manages the roles, they are left to it.")]
pub(super) struct Install {
    /// What the guard does. Default: unchanged, `warn` at first.
    #[arg(long, value_enum)]
    guard: Option<Level>,

    /// Namespace of KubeVirt's service accounts. Default: unchanged, `kubevirt` at first.
    #[arg(long, value_name = "NAMESPACE")]
    kubevirt_namespace: Option<String>,

    /// Manage roles that a KubeVirt operator left behind. One that still runs is never contested.
    #[arg(long)]
    take_over: bool,

    /// Let nacre's controller, running as this service account, maintain roles and guard. Default: the service account
    /// of the installation.
    #[arg(long, value_name = "NAMESPACE:NAME", value_parser = super::grant::account)]
    controller: Option<Who>,

    #[command(flatten)]
    change: Change,
}

#[derive(Debug, clap::Args)]
pub(super) struct Change {
    /// Print what would be done; change nothing.
    #[arg(long)]
    dry_run: bool,

    /// How long to wait for the aggregation controller.
    #[arg(long, default_value = "60s", value_parser = super::grant::duration)]
    timeout: Duration,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Level {
    /// No guard.
    Off,
    /// Let requests pass, with a warning.
    Warn,
    /// Refuse them.
    Deny,
}

/// What a command has done and how things stand.
#[derive(Serialize)]
struct RolesReport {
    dry_run: bool,
    changes: Vec<String>,
    guard: &'static str,
    #[serde(flatten)]
    report: Report,
}

/// All that was read for one decision.
struct Looked {
    seen: Seen,
    rbac: Rbac,
}

impl Looked {
    async fn now(session: &Session) -> Result<Self> {
        let (seen, rbac) = tokio::try_join!(
            Box::pin(Seen::now(&session.client)),
            Box::pin(live_migration::rbac(&session.client))
        )?;
        Ok(Self { seen, rbac })
    }

    fn settings(&self) -> Result<Option<Settings>> {
        self.seen.settings().map_err(anyhow::Error::msg)
    }

    /// The service account nacre's own installation names.
    fn controller(&self) -> Option<Who> {
        let installed = |binding: &&ClusterRoleBinding| binding.metadata.name.as_deref() == Some("nacre");
        let binding = self.rbac.cluster_role_bindings.iter().find(installed)?;
        binding.subjects.iter().flatten().find_map(|subject| Who::of(subject, ""))
    }
}

pub(super) async fn install(session: &Session, install: &Install) -> Result<Outcome> {
    let looked = Looked::now(session).await?;
    let before = looked.settings()?;
    let mut asked =
        before.clone().unwrap_or_else(|| Settings { guard: settings::Guard::Warn, ..Settings::default() });
    asked.guard = install.guard.map_or(asked.guard, Into::into);
    asked.take_over |= install.take_over;
    if let Some(namespace) = &install.kubevirt_namespace {
        asked.kubevirt_namespace.clone_from(namespace);
    }
    match looked.seen.roles(&asked, &[]).step_aside() {
        // Should the operator ever go, nobody has asked nacre to take its place.
        Some(_) => asked.roles = None,
        None => asked.roles = asked.roles.or(Some(Era::Current)),
    }
    let losses = preview(&looked.rbac, None).losses;
    if asked.roles == Some(Era::Current) && !losses.is_empty() {
        remark(format_args!(
            "admin and edit still include migrations here, and {} would lose them: see `kubectl nacre migration preview`, \
             then `bridge create` or `grant`, then `upgrade`",
            losses.iter().map(|loss| loss.who.to_string()).collect::<Vec<_>>().join(", ")
        ));
        return Ok(Outcome::Attention);
    }
    let controller = install.controller.clone().or_else(|| looked.controller());
    converge(session, &asked, controller.as_ref(), &install.change).await
}

pub(super) async fn upgrade(session: &Session, change: &Change) -> Result<Outcome> {
    let looked = Looked::now(session).await?;
    for loss in preview(&looked.rbac, None).losses {
        remark(format_args!(
            "{} loses {} in {}",
            loss.who,
            show::powers(&loss.loses),
            show::place(&loss.scope)
        ));
    }
    let before = looked.settings()?.unwrap_or_default();
    converge(session, &Settings { roles: Some(Era::Current), ..before }, None, change).await
}

pub(super) async fn rollback(session: &Session, change: &Change) -> Result<Outcome> {
    let before = Looked::now(session).await?.settings()?.unwrap_or_default();
    converge(session, &Settings { roles: Some(Era::Old), ..before }, None, change).await
}

/// Decides and carries out until everything is as asked for and the aggregation controller has caught up.
async fn converge(
    session: &Session,
    asked: &Settings,
    controller: Option<&Who>,
    change: &Change,
) -> Result<Outcome> {
    let deadline = Instant::now() + change.timeout;
    let mut changes = Vec::new();
    loop {
        let looked = Looked::now(session).await?;
        // What nacre has written down meanwhile stays.
        let Settings { remembered, before_upgrade, .. } = looked.settings()?.unwrap_or_default();
        let asked = Settings { remembered, before_upgrade, ..asked.clone() };
        let roles = looked.seen.roles(&asked, &[]);
        // What the roles were stands in the settings as soon as these ask for an upgrade.
        let noted = settings::decide(looked.seen.config.as_ref(), &reconcile::noted(&roles));
        let roles = reconcile::Observed { config: None, ..roles };
        let steps = [
            controller.map_or_else(Plan::done, |who| access::decide(&looked.rbac, who)),
            noted,
            guard::decide(&looked.seen.guard(&asked, &[])),
            reconcile::decide(&roles),
        ];
        let report = report(&roles);
        if change.dry_run {
            let outline = [&steps[0], &steps[1], &steps[2], &reconcile::outline(&roles)];
            let changes =
                outline.into_iter().flat_map(|plan| plan.actions.iter().map(show::action)).collect();
            return answer(
                session,
                &RolesReport { dry_run: true, changes, guard: asked.guard.name(), report },
            );
        }
        let nothing_left = steps.iter().all(|plan| plan.actions.is_empty());
        if nothing_left && (report.converged || report.managed_elsewhere.is_some()) {
            return answer(
                session,
                &RolesReport { dry_run: false, changes, guard: asked.guard.name(), report },
            );
        }
        for plan in &steps {
            changes.extend(plan.actions.iter().map(show::action));
            // What changed meanwhile is seen in the next round.
            execute_plan(&session.client, plan).await?;
        }
        if Instant::now() > deadline {
            bail!("not done in time; still waiting for {}", waiting_for(&report));
        }
        if nothing_left {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
}

fn waiting_for(report: &Report) -> String {
    if report.waiting_for.is_empty() {
        return "the roles to stay as they are written: something else changes them".to_owned();
    }
    format!("the aggregation controller to bring up to date: {}", report.waiting_for.join(", "))
}

fn answer(session: &Session, answer: &RolesReport) -> Result<Outcome> {
    if let Some(why) = &answer.report.managed_elsewhere {
        remark(format_args!("the roles are left alone, since {why}; nacre only audits, grants and guards"));
    }
    for warning in &answer.report.warnings {
        remark(format_args!("warning: {warning}"));
    }
    print(session.format, answer, || table(answer), || answer.changes.clone())?;
    Ok(Outcome::Good)
}

fn table(answer: &RolesReport) -> String {
    let mut roles = Table::new(&["ROLE", "STATE"]);
    for role in &answer.report.roles {
        roles.row([role.role.to_owned(), role.state.to_owned()]);
    }
    let verb = if answer.dry_run { "would " } else { "" };
    let changes = lines(answer.changes.iter().map(|change| format!("{verb}{change}")));
    let opt_ins = lines(answer.report.opt_ins.iter().map(|given| {
        let steps: Vec<String> =
            given.via.iter().map(|via| format!("{} ({})", via.role, via.label)).collect();
        let since = given.since.as_ref().map_or_else(String::new, |time| format!(" since {time}"));
        let by = given
            .set_by
            .as_ref()
            .map_or_else(String::new, |manager| format!(", labelled by {manager}{since}"));
        format!("{} includes {} <- {}{by}", given.role, show::powers(&given.powers), steps.join(" <- "))
    }));
    format!("{changes}{roles}guard: {}\n{opt_ins}", answer.guard)
}

impl From<Level> for settings::Guard {
    fn from(level: Level) -> Self {
        match level {
            Level::Off => Self::Off,
            Level::Warn => Self::Warn,
            Level::Deny => Self::Deny,
        }
    }
}
