//! `nacre operator`: the controller comes and goes as a DataProtectionApplication says, where OADP is not there to see to it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use api::{DataProtectionApplication, Kind, condition};
use engine::applications::{Lookout, Seen};
use engine::{Failure, Lacking, Leadership, Supervisor, Teller, everything};
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
use crate::controller::{FAREWELL, hostname, told_to_stop};
use crate::lease::Leader;
use crate::metrics;
use crate::migration::{Changes, changes_of};

/// What operators of one namespace contend for, beside the applications.
const LEASE: &str = "nacre-operator";
/// How long changes are gathered before a round.
const GATHER: Duration = Duration::from_millis(200);
/// How soon to look again while something is waited for, or did not go through.
const SOON: Duration = Duration::from_secs(1);
const LATER: Duration = Duration::from_secs(15);
/// How often to look though nothing seems to have changed.
const SAFETY_NET: Duration = Duration::from_mins(10);
/// So many rounds may follow each other at once; more is a fight with somebody.
const AT_ONCE: u32 = 10;
/// So often a condition is put right that somebody else changed.
const PATIENCE: u32 = 3;

/// Runs until told to stop.
pub(crate) async fn run(args: Args, image: Option<String>) -> Result<()> {
    let Some(namespace) = args.watch_namespace.clone().filter(|namespace| !namespace.is_empty()) else {
        bail!(
            "WATCH_NAMESPACE is not set; it names the namespace whose DataProtectionApplication is looked after"
        );
    };
    let image = image.filter(|image| !image.is_empty()).unwrap_or_else(|| Settings::default().image);
    let mut seat = args.lease.seat(&namespace, &hostname())?;
    let times = seat.times;
    seat.namespace.clone_from(&namespace);
    LEASE.clone_into(&mut seat.name);
    let leadership = Leadership::default();
    let supervisor = Supervisor::new(args.panic_task.as_deref());
    let unreachable = "cannot reach the API server";
    let client = engine::connect_behind(&leadership).await.context(unreachable)?;
    let lease_client = engine::connect().await.context(unreachable)?;

    let looked = Arc::new(AtomicBool::new(false));
    let lacking = Arc::<Lacking>::default();
    let ready = {
        let (looked, leadership, lacking) = (looked.clone(), leadership.clone(), lacking.clone());
        move || Readiness {
            ready: looked.load(Ordering::Relaxed),
            details: [vec![leadership.standing().to_string()], lacking.told()].concat(),
        }
    };
    admin::probes(args.health_probe_bind_address, ready, &supervisor).await?;
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Leader { leadership: leadership.clone(), me: seat.me.clone() }));
    admin::metrics(args.metrics_bind_address, Arc::new(move || metrics::text(&registry)), &supervisor)
        .await?;

    info!(namespace, version = env!("CARGO_PKG_VERSION"), "looking after DataProtectionApplications");
    let mut campaign = tokio::spawn(engine::campaign(lease_client, seat, leadership.clone()));
    let keeper = Keeper {
        teller: Teller::start(client.clone(), hostname(), lacking, &supervisor),
        lookout: Lookout::new(client.clone(), &namespace, times),
        client,
        namespace,
        image,
        told: HashMap::new(),
        standing_aside: false,
    };
    supervisor.spawn("applications", keeper.keep(leadership.clone(), looked));
    let outcome = tokio::select! {
        stop = told_to_stop() => stop,
        ended = supervisor.ended() => Err(ended.into()),
        ended = &mut campaign => bail!("task \"leader election\" ended: {ended:?}"),
    };
    info!("stopping");
    leadership.close();
    // Leader election ends once no write is in flight any more.
    let _ = timeout(FAREWELL, campaign).await;
    outcome
}

struct Keeper {
    client: Client,
    teller: Teller,
    lookout: Lookout,
    namespace: String,
    image: String,
    /// What each application was told last, and how often again though nothing had changed.
    told: HashMap<String, (String, u32)>,
    standing_aside: bool,
}

/// What came of a round.
enum Outcome {
    Settled,
    /// There is more to do.
    More,
    /// Something is waited for.
    Waiting(String),
}

impl Keeper {
    async fn keep(mut self, leadership: Leadership, looked: Arc<AtomicBool>) {
        let mut changes = self.watch();
        let mut busy = 0;
        let mut waited_for = String::new();
        loop {
            // A standby is ready to lead.
            looked.store(true, Ordering::Relaxed);
            leadership.granted().await;
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
                        info!("waiting for {who} to end");
                        waited_for = who;
                    }
                    SOON
                }
                Err(failure) => {
                    warn!(%failure, "it is tried again");
                    LATER
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

    async fn round(&mut self) -> Result<Outcome, Failure> {
        let looking = |source| Failure { what: "look".to_owned(), source };
        let seen = self.lookout.look().await.map_err(looking)?;
        if seen.oadp != self.standing_aside {
            self.standing_aside = seen.oadp;
            let word = if seen.oadp { "is here: its applications are left to it" } else { "is not here" };
            info!("OADP's operator {word}");
        }
        let contested = self.told.values().any(|(_, times)| *times >= PATIENCE);
        let mut held = None;
        let mut decision = decide(&self.observed(&seen, None, contested));
        if decision.look_at_held {
            held = Some(engine::install::held(&self.client).await.map_err(looking)?);
            decision = decide(&self.observed(&seen, held.as_deref(), contested));
        }
        debug!(actions = decision.plan.actions.len(), "decided");
        if let Some(who) = decision.waiting_for {
            return Ok(Outcome::Waiting(who));
        }
        if decision.plan.actions.is_empty() {
            return Ok(Outcome::Settled);
        }
        self.remember(&decision.plan);
        if let Err(failure) = self.carry_out(&decision.plan).await {
            let conflict = failure.status().is_some_and(|status| status.code == 409);
            if !conflict {
                let told = failed(&self.observed(&seen, held.as_deref(), contested), &failure.to_string());
                self.remember(&told);
                // What cannot be told now is told when it is tried again.
                let _ = self.carry_out(&told).await;
            }
            return if conflict { Ok(Outcome::More) } else { Err(failure) };
        }
        self.tell(&seen, &decision);
        Ok(Outcome::More)
    }

    fn observed<'a>(
        &'a self,
        seen: &'a Seen,
        held: Option<&'a [planner::Target]>,
        contested: bool,
    ) -> Observed<'a> {
        Observed {
            namespace: &self.namespace,
            applications: &seen.applications,
            elsewhere: &seen.elsewhere,
            found: &seen.found,
            held,
            acting: seen.acting(),
            oadp: seen.oadp,
            contested,
            image: &self.image,
            now: Timestamp::now(),
        }
    }

    async fn carry_out(&self, plan: &Plan) -> Result<(), Failure> {
        let settings = Settings { namespace: self.namespace.clone(), ..Settings::default() };
        engine::install::carry_out(&self.client, &settings, plan).await
    }

    /// Telling the same twice in a row means that somebody else said something in between.
    fn remember(&mut self, plan: &Plan) {
        for action in &plan.actions {
            let Action::PatchStatus(target, body) = action else { continue };
            let all = body["status"]["conditions"].as_array().into_iter().flatten();
            let words: Vec<_> = all.filter(|one| one["type"] == condition::RECONCILED).collect();
            let words = words.iter().map(|one| format!("{}{}", one["message"], one["observedGeneration"]));
            let words: String = words.collect();
            let before = self.told.remove(&target.uid);
            let again = before.filter(|(last, _)| *last == words).map_or(0, |(_, times)| times + 1);
            if again == PATIENCE {
                warn!(name = target.name, "somebody else keeps writing its conditions; they are left alone");
            }
            self.told.insert(target.uid.clone(), (words, again));
        }
    }

    fn tell(&self, seen: &Seen, decision: &Decision) {
        let Some((namespace, name)) = &decision.about else { return };
        let is_it = |one: &&DataProtectionApplication| {
            one.metadata.name.as_ref() == Some(name) && one.metadata.namespace.as_ref() == Some(namespace)
        };
        let Some(about) = seen.applications.iter().find(is_it) else { return };
        for event in &decision.plan.events {
            info!(reason = event.reason, "{}", event.note);
            self.teller.tell(Kind::DataProtectionApplication, &about.metadata, event);
        }
    }

    /// Everything a round looks at that others change; only that it changed matters.
    fn watch(&self) -> Changes {
        let mut changes: Changes = SelectAll::new();
        let applications = Api::<Meta<DataProtectionApplication>>::all(self.client.clone());
        changes.push(changes_of(applications, everything()));
        let programs = Api::<Meta<Deployment>>::namespaced(self.client.clone(), &self.namespace);
        changes.push(changes_of(programs, everything()));
        changes
    }
}
