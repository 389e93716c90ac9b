//! `nacre operator`: installs and removes the controller as a DataProtectionApplication says, in clusters without
//! OADP's operator.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use api::{DataProtectionApplication, Kind, condition};
use engine::applications::{Lookout, Seen};
use engine::{Degraded, EventRecorder, Failure, Leadership, Supervisor, chain, everything};
use futures::stream::SelectAll;
use futures::{FutureExt, StreamExt};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use kube::core::PartialObjectMeta as Meta;
use kube::{Api, Client};
use planner::dpa_operator::{Decision, Observed, decide, failed};
use planner::install::Settings;
use planner::{Action, Plan};
use prometheus_client::registry::Registry;
use tokio::time::{sleep, timeout};
use tracing::{debug, info, warn};

use crate::admin::{self, Readiness};
use crate::args::Args;
use crate::lease::Leader;
use crate::live_migration::{Changes, changes_of};
use crate::metrics;
use crate::run::{SHUTDOWN_TIMEOUT, hostname, stop_signal};

/// The operator's own lease, in the namespace of the applications.
const LEASE: &str = "nacre-operator";
/// Debounce: how long changes are collected before a round.
const DEBOUNCE: Duration = Duration::from_millis(200);
/// Retry period while waiting, or after a failure.
const SOON: Duration = Duration::from_secs(1);
const LATER: Duration = Duration::from_secs(15);
/// Resync period.
const SAFETY_NET: Duration = Duration::from_mins(10);
/// Rounds without a pause; more than this means another controller reverts the changes.
const AT_ONCE: u32 = 10;
/// How many times a condition is restored after another controller changed it.
const LOG_AFTER_TRIES: u32 = 3;

/// Runs until SIGTERM or SIGINT.
pub(crate) async fn run(args: Args, image: Option<String>) -> Result<()> {
    let Some(namespace) = args.watch_namespace.clone().filter(|namespace| !namespace.is_empty()) else {
        bail!(
            "WATCH_NAMESPACE is not set; it names the namespace whose DataProtectionApplication is reconciled"
        );
    };
    let image = image.filter(|image| !image.is_empty()).unwrap_or_else(|| Settings::default().image);
    let mut lease_config = args.lease.lease_config(&namespace, &hostname())?;
    let times = lease_config.times;
    lease_config.namespace.clone_from(&namespace);
    LEASE.clone_into(&mut lease_config.name);
    lease_config.secret_namespace = None;
    let leadership = Leadership::default();
    let supervisor = Supervisor::new(args.panic_task.as_deref());
    let unreachable = "cannot reach the API server";
    let client = engine::connect_behind(&leadership).await.context(unreachable)?;
    let lease_client = engine::connect().await.context(unreachable)?;

    let looked = Arc::new(AtomicBool::new(false));
    let degraded = Arc::<Degraded>::default();
    let ready = {
        let (looked, leadership, degraded) = (looked.clone(), leadership.clone(), degraded.clone());
        move || Readiness {
            ready: looked.load(Ordering::Relaxed),
            details: [vec![leadership.leader_status().to_string()], degraded.lines()].concat(),
        }
    };
    admin::probes(args.health_probe_bind_address, ready, &supervisor).await?;
    let mut registry = Registry::default();
    registry
        .register_collector(Box::new(Leader { leadership: leadership.clone(), me: lease_config.me.clone() }));
    admin::metrics(args.metrics_bind_address, Arc::new(move || metrics::text(&registry)), &supervisor)
        .await?;

    info!(namespace, version = env!("CARGO_PKG_VERSION"), "operator: watching DataProtectionApplications");
    let election = engine::run_election(lease_client, lease_config, leadership.clone());
    let election = supervisor.spawn("leader election", election);
    let keeper = Keeper {
        recorder: EventRecorder::start(client.clone(), hostname(), degraded, &supervisor),
        lookout: Lookout::new(client.clone(), &namespace, times),
        client,
        namespace,
        image,
        reported: HashMap::new(),
        standing_aside: false,
    };
    supervisor.spawn("applications", keeper.keep(leadership.clone(), looked));
    let outcome = tokio::select! {
        stop = stop_signal() => stop,
        ended = supervisor.ended() => Err(ended.into()),
    };
    info!("stopping");
    leadership.close();
    // Leader election ends once no write is in flight any more.
    let _ = timeout(SHUTDOWN_TIMEOUT, election).await;
    outcome
}

struct Keeper {
    client: Client,
    recorder: EventRecorder,
    lookout: Lookout,
    namespace: String,
    image: String,
    /// The last condition written to each application, and how often it was repeated without a change of ours.
    reported: HashMap<String, (String, u32)>,
    standing_aside: bool,
}

/// Result of a round.
enum Outcome {
    Settled,
    /// There is more to do.
    More,
    /// Waiting for an object or process to go away.
    Waiting(String),
}

impl Keeper {
    async fn keep(mut self, leadership: Leadership, looked: Arc<AtomicBool>) {
        let mut changes = self.watch();
        let mut busy = 0;
        let mut waited_for = String::new();
        loop {
            // A standby is ready: it can become leader.
            looked.store(true, Ordering::Relaxed);
            leadership.until_leader().await;
            let pause = match self.round().await {
                Ok(Outcome::Settled) => {
                    busy = 0;
                    SAFETY_NET
                }
                Ok(Outcome::More) => {
                    busy += 1;
                    if busy < AT_ONCE { Duration::ZERO } else { LATER }
                }
                Ok(Outcome::Waiting(who)) => {
                    if who != waited_for {
                        info!("operator: waiting for {who} to stop");
                        waited_for = who;
                    }
                    SOON
                }
                Err(failure) => {
                    warn!(failure = %chain(&failure), "operator: reconcile failed; retrying");
                    LATER
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

    async fn round(&mut self) -> Result<Outcome, Failure> {
        let looking = |source| Failure { what: "look".to_owned(), source };
        let seen = self.lookout.look().await.map_err(looking)?;
        if seen.oadp != self.standing_aside {
            self.standing_aside = seen.oadp;
            let word = if seen.oadp { "is here: its applications are left to it" } else { "is not here" };
            info!("OADP's operator {word}");
        }
        let contested = self.reported.values().any(|(_, times)| *times >= LOG_AFTER_TRIES);
        let (mut with_finalizer, mut copies) = (None, Vec::new());
        let mut decision = decide(&self.observed(&seen, None, &copies, contested));
        if decision.needs_finalizers {
            with_finalizer = Some(engine::install::with_finalizer(&self.client).await.map_err(looking)?);
            let listed = engine::install::permitted_copies(&self.client, &self.namespace).await;
            copies = listed.map_err(looking)?.unwrap_or_else(|| {
                info!("operator: copies of Velero's objects, if any, stay: deploy/velero-view.yaml is not applied");
                Vec::new()
            });
            decision = decide(&self.observed(&seen, with_finalizer.as_deref(), &copies, contested));
        }
        debug!(actions = decision.plan.actions.len(), "decided");
        if let Some(who) = decision.waiting_for {
            return Ok(Outcome::Waiting(who));
        }
        if decision.plan.actions.is_empty() {
            return Ok(Outcome::Settled);
        }
        self.remember(&decision.plan);
        if let Err(failure) = self.execute_plan(&decision.plan).await {
            let conflict = failure.status().is_some_and(|status| status.code == 409);
            if !conflict {
                let observed = self.observed(&seen, with_finalizer.as_deref(), &copies, contested);
                let reported = failed(&observed, &chain(&failure).to_string());
                self.remember(&reported);
                // A condition that cannot be written now is written at the next retry.
                let _ = self.execute_plan(&reported).await;
            }
            return if conflict { Ok(Outcome::More) } else { Err(failure) };
        }
        self.record(&seen, &decision);
        Ok(Outcome::More)
    }

    fn observed<'a>(
        &'a self,
        seen: &'a Seen,
        with_finalizer: Option<&'a [planner::Target]>,
        copies: &'a [planner::Target],
        contested: bool,
    ) -> Observed<'a> {
        Observed {
            namespace: &self.namespace,
            applications: &seen.applications,
            elsewhere: &seen.elsewhere,
            found: &seen.found,
            with_finalizer,
            copies,
            acting: seen.acting(),
            oadp: seen.oadp,
            contested,
            image: &self.image,
            now: Timestamp::now(),
        }
    }

    async fn execute_plan(&self, plan: &Plan) -> Result<(), Failure> {
        let settings = Settings { namespace: self.namespace.clone(), ..Settings::default() };
        engine::install::execute_plan(&self.client, &settings, plan).await
    }

    /// Writing the same condition twice in a row means that another controller changed it in between.
    fn remember(&mut self, plan: &Plan) {
        for action in &plan.actions {
            let Action::PatchStatus(target, body) = action else { continue };
            let all = body["status"]["conditions"].as_array().into_iter().flatten();
            let words: Vec<_> = all.filter(|one| one["type"] == condition::RECONCILED).collect();
            let words = words.iter().map(|one| format!("{}{}", one["message"], one["observedGeneration"]));
            let words: String = words.collect();
            let before = self.reported.remove(&target.uid);
            let again = before.filter(|(last, _)| *last == words).map_or(0, |(_, times)| times + 1);
            if again == LOG_AFTER_TRIES {
                warn!(
                    name = target.name,
                    "DataProtectionApplication: another controller keeps changing its conditions; not updating them"
                );
            }
            self.reported.insert(target.uid.clone(), (words, again));
        }
    }

    fn record(&self, seen: &Seen, decision: &Decision) {
        let Some((namespace, name)) = &decision.about else { return };
        let is_it = |one: &&DataProtectionApplication| {
            one.metadata.name.as_ref() == Some(name) && one.metadata.namespace.as_ref() == Some(namespace)
        };
        let Some(about) = seen.applications.iter().find(is_it) else { return };
        for event in &decision.plan.events {
            info!(reason = event.reason, "{}", event.note);
            self.recorder.record(Kind::DataProtectionApplication, &about.metadata, event);
        }
    }

    /// Watches everything a round reads. The content is not used: a change only triggers a round.
    fn watch(&self) -> Changes {
        let mut changes: Changes = SelectAll::new();
        let applications = Api::<Meta<DataProtectionApplication>>::all(self.client.clone());
        changes.push(changes_of(applications, everything()));
        let programs = Api::<Meta<Deployment>>::namespaced(self.client.clone(), &self.namespace);
        changes.push(changes_of(programs, everything()));
        changes
    }
}
