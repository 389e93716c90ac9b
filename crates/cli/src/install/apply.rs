//! `install`: observe, decide, dry run, execute; repeated until nothing is left to do.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use api::Kind;
use engine::Retry;
use engine::install::{execute_plan, found, marked, rehearse, unserved, velero};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use planner::install::{CONTROLLER, Found, Observed, Settings, Values, decide, place, settle};
use tokio::time::{Instant, sleep};

use super::changes::{InstallChanges, changes};
use super::settings::{InstallArgs, patience};
use crate::connect::Session;
use crate::output::{Outcome, print, remark};

/// Changes meanwhile lead to another round, up to this many.
const ROUNDS: usize = 10;
const LOOK_AGAIN: Duration = Duration::from_millis(500);

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubectl nacre install --image registry.example/nacre:0.1.0    in Velero's namespace velero
  kubectl nacre install -n backup --replicas 3 --wait           where Velero is in namespace backup
  kubectl nacre install --dry-run                               what it would change, field by field
  kubectl nacre install --egress                                with the NetworkPolicy of `kubectl nacre policy egress`
  kubectl nacre install --aggregate-to admin                    only admins of namespaces may use nacre
  kubectl nacre install --render                                the manifests, as `render` prints them

Installing again brings an installation up to date and does nothing if it is. What is not said stays as it was installed:
the values are kept in the ConfigMap nacre-install-values in Velero's namespace. CRDs and service accounts that somebody
else created, as OADP does, are left alone.")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct Install {
    #[command(flatten)]
    wishes: InstallArgs,

    /// Only show what would be done, field by field: what is there -> what would be.
    #[arg(long)]
    dry_run: bool,

    /// Also apply the NetworkPolicy that `policy egress` prints: Velero's pods reach nothing inside the cluster but what the
    /// policy allows.
    #[arg(long, conflicts_with = "render")]
    egress: bool,

    /// Print the manifests; change nothing.
    #[arg(long, conflicts_with = "dry_run")]
    render: bool,

    /// Wait until the Deployment is available and the API server can verify the webhook.
    #[arg(long)]
    wait: bool,

    /// How long to wait: 90s, 2m.
    #[arg(long, default_value = "2m", value_name = "DURATION", value_parser = patience)]
    timeout: Duration,
}

impl Install {
    /// Whether nothing but manifests is wanted, for which no cluster is needed.
    pub(crate) fn only_renders(&self) -> bool {
        self.render
    }

    pub(crate) fn rendered(&self, namespace: Option<&str>, format: crate::output::Format) -> Result<Outcome> {
        super::render::print(&self.wishes.settings(namespace)?, &[], false, format)
    }
}

pub(crate) async fn install(
    session: &Session,
    install: &Install,
    namespace: Option<&str>,
) -> Result<Outcome> {
    let print_changes = install.wishes.said()?;
    let looking = "looking at what is installed";
    let namespace = place(namespace, &marked(&session.client).await.context(looking)?);
    let seen = found(&session.client, &namespace).await.context(looking)?;
    // Settled once: what is changed below is not what was there before.
    let Values { settings, mut remarks } = match settle(&print_changes, &seen, &namespace) {
        Ok(values) => values,
        Err(refusals) => bail!("{}", refusals.join("\n       ")),
    };
    let unserved = unserved(&session.client).await.context(looking)?;
    let mut done = Vec::new();
    for round in 0..ROUNDS {
        let seen = found(&session.client, &namespace).await.context(looking)?;
        let velero = if settings.fence {
            Some(velero(&session.client, &namespace).await.context(looking)?)
        } else {
            None
        };
        let decision = decide(&Observed {
            settings: &settings,
            found: &seen,
            unserved: &unserved,
            velero: velero.as_ref(),
        });
        if !decision.refusals.is_empty() {
            bail!("{}", decision.refusals.join("\n       "));
        }
        if round == 0 {
            may(session, &decision.plan).await?;
        }
        if install.dry_run || decision.plan.actions.is_empty() {
            if install.dry_run {
                done = changes(&decision.plan, &seen);
            }
            let answer = InstallChanges {
                dry_run: install.dry_run,
                namespace: settings.namespace.clone(),
                changes: done,
                remarks: with_new(remarks, decision.remarks),
            };
            show(session, &answer)?;
            match (install.egress, install.dry_run) {
                (true, true) => remark(format_args!("would apply NetworkPolicy {}", planner::egress::NAME)),
                (true, false) => {
                    let here = Session { velero_namespace: settings.namespace.clone(), ..session.clone() };
                    crate::policy::egress::apply(&here).await?;
                }
                (false, _) => {}
            }
            if install.wait && !install.dry_run {
                running(session, &settings, install.timeout).await?;
            }
            return Ok(Outcome::Good);
        }
        match execute_plan(&session.client, &settings, &decision.plan).await {
            Ok(()) => {
                done.extend(changes(&decision.plan, &seen));
                // In the next round there may be nothing left that they are about.
                remarks = with_new(remarks, decision.remarks);
            }
            // Somebody else is at it too.
            Err(failure) if matches!(failure.retry(), Retry::Now | Retry::WhenItChanges) => {}
            Err(failure) => return Err(failure.into()),
        }
    }
    bail!("something else keeps changing what is installed; nothing more was done after {ROUNDS} rounds")
}

/// Adds the remarks that are not there yet.
fn with_new(mut remarks: Vec<String>, more: Vec<String>) -> Vec<String> {
    for remark in more {
        if !remarks.contains(&remark) {
            remarks.push(remark);
        }
    }
    remarks
}

/// Refuses before anything is half done.
async fn may(session: &Session, plan: &planner::Plan) -> Result<()> {
    let refused = rehearse(&session.client, plan).await?;
    let Some(first) = refused.first() else { return Ok(()) };
    let answer = first.status().map_or_else(|| first.source.to_string(), |status| status.message.clone());
    let why = answer.split(", CustomResourceDefinition").next().unwrap_or_default();
    bail!(
        "nothing was changed: the API server refuses {} of {} steps, the first being {}: {why}",
        refused.len(),
        plan.actions.len(),
        first.what,
    );
}

fn show(session: &Session, answer: &InstallChanges) -> Result<()> {
    for text in &answer.remarks {
        remark(format_args!("note: {text}"));
    }
    let nothing = format!("nacre is installed in {} as asked for; nothing to do", answer.namespace);
    print(session.format, answer, || answer.table(&nothing), || answer.names())
}

/// Waits until as many pods as asked for are available, and the API server can verify the webhook.
async fn running(session: &Session, settings: &Settings, patience: Duration) -> Result<()> {
    let deployments = Api::<Deployment>::namespaced(session.client.clone(), &settings.namespace);
    let deadline = Instant::now() + patience;
    loop {
        let found = deployments.get(CONTROLLER).await?;
        let status = found.status.unwrap_or_default();
        let wanted = i32::try_from(settings.replicas).unwrap_or(i32::MAX);
        let current = status.observed_generation >= found.metadata.generation;
        let (updated, available) =
            (status.updated_replicas.unwrap_or_default(), status.available_replicas.unwrap_or_default());
        let all_run = current && updated >= wanted && available >= wanted;
        // The leader writes the authority of its certificate. Without pods nobody does.
        let webhooks = if all_run && wanted > 0 { marked(&session.client).await? } else { Vec::new() };
        let unverified = without_authority(&webhooks);
        if all_run && unverified.is_none() {
            return Ok(());
        }
        if Instant::now() > deadline {
            let missing = unverified.map_or_else(
                || format!("{available} of {wanted} pods are available"),
                |name| format!("nacre has not written the caBundle of the {name}"),
            );
            bail!(
                "installed, but not running in time: {missing}; see `kubectl describe deployment {CONTROLLER} -n {}`",
                settings.namespace
            );
        }
        sleep(LOOK_AGAIN).await;
    }
}

/// A webhook of nacre's that the API server cannot verify yet.
fn without_authority(found: &[Found]) -> Option<String> {
    let is_webhook =
        |kind| matches!(kind, Kind::ValidatingWebhookConfiguration | Kind::MutatingWebhookConfiguration);
    let lacks_it = |one: &&Found| {
        let webhooks = one.body["webhooks"].as_array().into_iter().flatten();
        webhooks.into_iter().any(|webhook| webhook["clientConfig"]["caBundle"].is_null())
    };
    let webhooks = found.iter().filter(|one| is_webhook(one.kind));
    webhooks.filter(lacks_it).map(|one| format!("{} {}", one.kind.name(), one.name())).next()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_webhook_without_an_authority_is_waited_for() {
        let webhook = |kind, name: &str, config| {
            let body = json!({"metadata": {"name": name}, "webhooks": [{"clientConfig": config}]});
            Found::of(kind, &body)
        };
        let validating = |config| webhook(Kind::ValidatingWebhookConfiguration, "nacre", config);
        let recorder = |config| webhook(Kind::MutatingWebhookConfiguration, "nacre-requester", config);
        let (with, without) = (json!({"caBundle": "Y2E="}), json!({"service": {}}));
        assert_eq!(without_authority(&[]), None);
        assert_eq!(without_authority(&[validating(with.clone()), recorder(with.clone())]), None);
        let waits = without_authority(&[validating(without.clone()), recorder(with.clone())]);
        assert_eq!(waits.as_deref(), Some("ValidatingWebhookConfiguration nacre"));
        let waits = without_authority(&[validating(with), recorder(without)]);
        assert_eq!(waits.as_deref(), Some("MutatingWebhookConfiguration nacre-requester"));
    }
}
