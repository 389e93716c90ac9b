//! Keeping migration rights as they were asked for: roles and guard repaired, grants ended in time.
//!
//! RBAC changes seldom, so nothing is kept in memory: a change of anything below wakes a round, and a round looks afresh.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use engine::migration::{Seen, VIRT_OPERATOR, carry_out, grants, is_asked_for, knows_mutating_policies};
use engine::{Failure, Lacking, Leadership, Retry, Teller, everything};
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
use planner::migration::{contest::counted, expiry, grant::GRANT, guard, reconcile, settings};
use planner::{Action, Plan};
use thiserror::Error;
use tokio::time::sleep;
use tracing::{debug, info, warn};

/// How long changes are gathered before a round: an upgrade touches several roles at once.
const GATHER: Duration = Duration::from_millis(200);
/// How often to look though nothing seems to have changed, for whatever a watch may have missed.
const SAFETY_NET: Duration = Duration::from_mins(10);
/// How often to see whether somebody wants this, or gave the rights. Until then it is an extra that is off.
const OFF: Duration = Duration::from_mins(1);
/// Repairs older than this say nothing about a contest any more.
const MEMORY: Duration = Duration::from_mins(30);

/// What is off where the rights are missing.
const UNKEPT: &str = "KubeVirt migration rights are not looked after";

/// Why a round did not come to its end.
#[derive(Debug, Error)]
enum Trouble {
    #[error("looking: {0}")]
    Look(#[from] kube::Error),
    #[error(transparent)]
    Write(#[from] Failure),
    #[error("{0}")]
    Settings(String),
}

/// Keeps them for as long as the process runs.
pub(crate) async fn keep(client: Client, teller: Teller, leadership: Leadership, lacking: Arc<Lacking>) {
    wait_for_rights(&client, &lacking).await;
    let mut changes = watch_all(&client).await;
    let mut past = Past::default();
    let mut failures = 0;
    loop {
        leadership.granted().await;
        let pause = match round(&client, &teller, &mut past).await {
            Ok(wake) => {
                failures = 0;
                lacking.on(UNKEPT);
                wake.unwrap_or(SAFETY_NET).min(SAFETY_NET)
            }
            Err(trouble) => {
                failures += 1;
                if let Some(why) = trouble.missing_right() {
                    lacking.off(UNKEPT, why);
                }
                let retry = trouble.retry();
                match retry {
                    Retry::Now | Retry::WhenItChanges => debug!(%trouble, "what we knew was out of date"),
                    Retry::After(_) | Retry::BackOff => {
                        warn!(%trouble, "migration rights; it is tried again");
                    }
                }
                retry.delay(failures).unwrap_or(SAFETY_NET)
            }
        };
        tokio::select! {
            () = sleep(pause) => {}
            _ = changes.next() => {
                sleep(GATHER).await;
                // What came meanwhile is seen by the same round.
                while changes.next().now_or_never().flatten().is_some() {}
            }
        }
    }
}

/// What earlier rounds did, as far as it matters to later ones.
#[derive(Default)]
struct Past {
    /// What was repaired, and when.
    repairs: Vec<(String, Timestamp)>,
    /// Said last, and not said again.
    told: String,
}

/// One look, one decision, one hand.
async fn round(client: &Client, teller: &Teller, past: &mut Past) -> Result<Option<Duration>, Trouble> {
    let (cluster, namespaced) = grants(client).await?;
    let seen = Seen::now(client).await?;
    let mut plans = vec![expiry::decide(&cluster, &namespaced, Timestamp::now())];
    let asked = seen.settings().map_err(Trouble::Settings)?;
    if let Some(asked) = &asked {
        plans.push(guard::decide(&seen.guard(asked, &past.repairs)));
        plans.push(reconcile::decide(&seen.roles(asked, &past.repairs)));
    }
    for (number, plan) in plans.iter().enumerate() {
        tell(teller, &seen, plan, &mut past.told);
        for action in &plan.actions {
            carry_out(client, &Plan::done().then(action.clone())).await?;
            // The end of a grant is no repair, and neither is what did not come about.
            if number > 0 {
                remember(&mut past.repairs, action);
            }
        }
    }
    Ok(plans.iter().filter_map(|plan| plan.delay()).min())
}

/// Keeps in mind what was repaired, and forgets what is long ago.
fn remember(repairs: &mut Vec<(String, Timestamp)>, action: &Action) {
    let now = Timestamp::now();
    repairs.retain(|(_, at)| now.duration_since(*at).unsigned_abs() < MEMORY);
    repairs.push((counted(action), now));
}

fn tell(teller: &Teller, seen: &Seen, plan: &Plan, told: &mut String) {
    for event in plan.events.iter().filter(|event| event.note != *told) {
        info!(reason = event.reason, "{}", event.note);
        if let Some(config) = &seen.config {
            teller.tell(api::Kind::ConfigMap, &config.metadata, event);
        }
    }
    if let Some(last) = plan.events.last() {
        told.clone_from(&last.note);
    }
}

impl Trouble {
    /// What the API server said, if it was that nacre may not.
    fn missing_right(&self) -> Option<&str> {
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
            // Whoever corrects them wakes us.
            Self::Settings(_) => Retry::WhenItChanges,
        }
    }
}

/// Waits until somebody has set nacre up to look after migration rights. Until then one object is looked for, which nacre may
/// always look for.
async fn wait_for_rights(client: &Client, lacking: &Lacking) {
    loop {
        match asked_and_allowed(client).await {
            Ok(true) => return lacking.on(UNKEPT),
            Ok(false) => lacking.on(UNKEPT),
            Err(kube::Error::Api(status)) if status.code == 403 => lacking.off(UNKEPT, &status.message),
            Err(error) => warn!(%error, "migration rights"),
        }
        sleep(OFF).await;
    }
}

async fn asked_and_allowed(client: &Client) -> Result<bool, kube::Error> {
    if !is_asked_for(client).await? {
        return Ok(false);
    }
    Box::pin(Seen::now(client)).await.map(|_| true)
}

pub(crate) type Changes = SelectAll<BoxStream<'static, ()>>;

/// Everything a round looks at; only that it changed matters, so metadata is enough.
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
    // The watcher mends its own connection, and lists anew when it must.
    watcher(api, config).default_backoff().filter_map(|change| async { change.ok().map(drop) }).boxed()
}
