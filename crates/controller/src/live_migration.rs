//! Keeps KubeVirt's live-migration roles and the guard as configured, and removes expired grants.
//!
//! RBAC changes rarely, so nothing is cached: a change triggers a round, and a round reads everything from the API
//! server.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use engine::live_migration::{
    Seen, VIRT_OPERATOR, execute_plan, grants, is_configured, knows_mutating_policies, rbac,
};
use engine::{Degraded, EventRecorder, Failure, Leadership, Retry, chain, everything};
use futures::stream::{BoxStream, SelectAll};
use futures::{FutureExt, StreamExt};
use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, RoleBinding};
use kube::core::PartialObjectMeta as Meta;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, Resource};
use live_migration::{audit, contest::counted, expiry, grant::GRANT, guard, reconcile, settings};
use planner::{Action, Plan};
use thiserror::Error;
use tokio::time::sleep;
use tracing::{debug, info, warn};

use crate::metrics::Metrics;

/// Debounce: an upgrade changes several roles at once.
const DEBOUNCE: Duration = Duration::from_millis(200);
/// Resync period, for changes that a watch missed, and for RoleBindings in tenants' namespaces, which are not watched.
const SAFETY_NET: Duration = Duration::from_mins(5);
/// How often to check whether the feature is configured and permitted. Until then it is disabled.
const OFF: Duration = Duration::from_mins(1);
/// Repairs older than this do not count as a conflict with another controller.
const MEMORY: Duration = Duration::from_mins(30);

/// Shown in `/readyz` while the permissions are missing.
const ROLES_NOT_MAINTAINED: &str = "KubeVirt live-migration roles are not maintained";
/// Shown in `/readyz` while nacre may not read all of RBAC.
const RIGHTS_NOT_WATCHED: &str = "changes of who can live-migrate machines are not reported";

/// Why a round failed.
#[derive(Debug, Error)]
enum RoundError {
    #[error("the cluster could not be read")]
    Look(#[from] kube::Error),
    #[error(transparent)]
    Write(#[from] Failure),
    #[error("{0}")]
    Settings(String),
}

/// Runs for the lifetime of the process.
pub(crate) async fn keep(
    client: Client,
    recorder: EventRecorder,
    leadership: Leadership,
    degraded: Arc<Degraded>,
    metrics: Metrics,
) {
    wait_for_permissions(&client, &degraded).await;
    let mut changes = watch_all(&client).await;
    let mut past = Past::default();
    let mut failures = 0;
    loop {
        leadership.until_leader().await;
        let pause = match round(&client, &recorder, &mut past).await {
            Ok(requeue_after) => {
                failures = 0;
                degraded.enable(ROLES_NOT_MAINTAINED);
                watch_rights(&client, &recorder, &degraded, &metrics).await;
                requeue_after.unwrap_or(SAFETY_NET).min(SAFETY_NET)
            }
            Err(round_error) => {
                failures += 1;
                if let Some(why) = round_error.missing_permission() {
                    degraded.disable(ROLES_NOT_MAINTAINED, why);
                }
                let retry = round_error.retry();
                match retry {
                    Retry::Now | Retry::WhenItChanges => {
                        debug!(round_error = %chain(&round_error), "live migration: cache was stale; retrying");
                    }
                    Retry::After(_) | Retry::BackOff => {
                        warn!(round_error = %chain(&round_error), "live migration: reconcile failed; retrying");
                    }
                }
                retry.after(failures).delay().unwrap_or(SAFETY_NET)
            }
        };
        tokio::select! {
            () = sleep(pause) => {}
            _ = changes.next() => {
                sleep(DEBOUNCE).await;
                // Changes during the pause are read by the same round.
                while changes.next().now_or_never().flatten().is_some() {}
            }
        }
    }
}

/// State that is kept between rounds.
#[derive(Default)]
struct Past {
    /// Repairs and their times.
    repairs: Vec<(String, Timestamp)>,
    /// The last Event, which is not repeated.
    reported: String,
}

/// One round: observe, decide, execute.
async fn round(
    client: &Client,
    recorder: &EventRecorder,
    past: &mut Past,
) -> Result<Option<Duration>, RoundError> {
    let (cluster, namespaced) = grants(client).await?;
    let seen = Seen::now(client).await?;
    let mut plans = vec![expiry::decide(&cluster, &namespaced, Timestamp::now())];
    let asked = seen.settings().map_err(RoundError::Settings)?;
    if let Some(asked) = &asked {
        plans.push(guard::decide(&seen.guard(asked, &past.repairs)));
        plans.push(reconcile::decide(&seen.roles(asked, &past.repairs)));
    }
    for (number, plan) in plans.iter().enumerate() {
        record(recorder, &seen, plan, &mut past.reported);
        for action in &plan.actions {
            execute_plan(client, &Plan::done().then(action.clone())).await?;
            // Removing an expired grant is not a repair, and neither is a failed write.
            if number > 0 {
                remember(&mut past.repairs, action);
            }
        }
    }
    Ok(plans.iter().filter_map(planner::Plan::delay).min())
}

/// Reports who can migrate, if that has changed. A failure is no reason to leave roles and guard alone.
async fn watch_rights(client: &Client, recorder: &EventRecorder, degraded: &Degraded, metrics: &Metrics) {
    match report_rights(client, recorder, metrics).await {
        Ok(()) => degraded.enable(RIGHTS_NOT_WATCHED),
        Err(error) => {
            if let Some(why) = error.missing_permission() {
                degraded.disable(RIGHTS_NOT_WATCHED, why);
            }
            warn!(error = %chain(&error), "live migration: who can migrate is not known; retrying in the next round");
        }
    }
}

async fn report_rights(
    client: &Client,
    recorder: &EventRecorder,
    metrics: &Metrics,
) -> Result<(), RoundError> {
    let Some(config) = Seen::config(client).await? else { return Ok(()) };
    let found = audit::audit(&rbac(client).await?);
    metrics.can_migrate(found.everywhere, found.in_namespaces);
    let plan = audit::decide(&config, &found);
    execute_plan(client, &plan).await?;
    for event in &plan.events {
        info!(reason = event.reason, "{}", event.note);
        recorder.record(api::Kind::ConfigMap, &config.metadata, event);
        metrics.rights_changed();
    }
    Ok(())
}

/// Records repairs and drops old ones.
fn remember(repairs: &mut Vec<(String, Timestamp)>, action: &Action) {
    let now = Timestamp::now();
    repairs.retain(|(_, at)| now.duration_since(*at).unsigned_abs() < MEMORY);
    repairs.push((counted(action), now));
}

fn record(recorder: &EventRecorder, seen: &Seen, plan: &Plan, reported: &mut String) {
    for event in plan.events.iter().filter(|event| event.note != *reported) {
        info!(reason = event.reason, "{}", event.note);
        if let Some(config) = &seen.config {
            recorder.record(api::Kind::ConfigMap, &config.metadata, event);
        }
    }
    if let Some(last) = plan.events.last() {
        reported.clone_from(&last.note);
    }
}

impl RoundError {
    /// The API server's message, if a permission is missing.
    fn missing_permission(&self) -> Option<&str> {
        let error = match self {
            Self::Look(error) => error,
            Self::Write(failure) => &failure.source,
            Self::Settings(_) => return None,
        };
        match error {
            kube::Error::Api(status) if status.code == 403 => Some(&status.message),
            _ => None,
        }
    }

    fn retry(&self) -> Retry {
        match self {
            Self::Look(_) => Retry::BackOff,
            Self::Write(failure) => failure.retry(),
            // A corrected ConfigMap triggers the next round.
            Self::Settings(_) => Retry::WhenItChanges,
        }
    }
}

/// Waits until live migration is configured. Until then only the settings ConfigMap is read, which nacre is always
/// permitted to read.
async fn wait_for_permissions(client: &Client, degraded: &Degraded) {
    loop {
        match configured_and_permitted(client).await {
            Ok(true) => return degraded.enable(ROLES_NOT_MAINTAINED),
            Ok(false) => degraded.enable(ROLES_NOT_MAINTAINED),
            Err(kube::Error::Api(status)) if status.code == 403 => {
                degraded.disable(ROLES_NOT_MAINTAINED, &status.message);
            }
            Err(error) => warn!(%error, "live migration: settings not readable; retrying"),
        }
        sleep(OFF).await;
    }
}

async fn configured_and_permitted(client: &Client) -> Result<bool, kube::Error> {
    if !is_configured(client).await? {
        return Ok(false);
    }
    Box::pin(Seen::now(client)).await.map(|_| true)
}

pub(crate) type Changes = SelectAll<BoxStream<'static, ()>>;

/// Watches everything a round reads. Only the fact of a change matters, so metadata is enough.
async fn watch_all(client: &Client) -> Changes {
    let config = Api::<Meta<ConfigMap>>::namespaced(client.clone(), settings::NAMESPACE);
    let mut changes = SelectAll::new();
    changes.push(changes_of(config, everything().fields(&format!("metadata.name={}", settings::NAME))));
    changes.push(changes_of(Api::<Meta<ClusterRole>>::all(client.clone()), everything()));
    changes.push(changes_of(Api::<Meta<ClusterRoleBinding>>::all(client.clone()), everything()));
    changes.push(changes_of(Api::<Meta<RoleBinding>>::all(client.clone()), everything().labels(GRANT)));
    changes
        .push(changes_of(Api::<Meta<Deployment>>::all(client.clone()), everything().labels(VIRT_OPERATOR)));
    changes.push(changes_of(Api::<Meta<ValidatingAdmissionPolicy>>::all(client.clone()), everything()));
    changes
        .push(changes_of(Api::<Meta<ValidatingAdmissionPolicyBinding>>::all(client.clone()), everything()));
    if knows_mutating_policies(client).await.unwrap_or_default() {
        changes.push(changes_of(Api::<Meta<MutatingAdmissionPolicy>>::all(client.clone()), everything()));
        changes
            .push(changes_of(Api::<Meta<MutatingAdmissionPolicyBinding>>::all(client.clone()), everything()));
    }
    changes
}

pub(crate) fn changes_of<K>(api: Api<Meta<K>>, config: watcher::Config) -> BoxStream<'static, ()>
where
    K: Resource<DynamicType = ()> + Clone + Debug + Send + Sync + 'static,
{
    // The watcher reconnects by itself, and lists again when it has to.
    watcher(api, config).default_backoff().filter_map(|change| async { change.ok().map(drop) }).boxed()
}
