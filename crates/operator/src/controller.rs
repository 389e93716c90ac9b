//! The controller: watch everything, then decide about whatever is woken and carry it out.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use api::velero::{
    Backup, BackupStorageLocation, DataDownload, DataUpload, DeleteBackupRequest, DownloadRequest,
    PodVolumeBackup, PodVolumeRestore, Restore,
};
use api::{
    DataProtectionApplication, HiddenSecret, Kind, NonAdminBackup, NonAdminBackupStorageLocation,
    NonAdminBackupStorageLocationRequest, NonAdminDownloadRequest, NonAdminRestore,
};
use engine::{Cluster, Executor, Kept, Leadership, Progress, Retry, State, Teller, Work, watch};
use futures::FutureExt;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Client;
use kube::core::ObjectMeta;
use planner::view::View;
use planner::{Key, Plan, backup, copies, download, location, restore, sync};
use prometheus_client::registry::Registry;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch as channel;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tracing::{debug, error, info, warn};

use crate::admin::{self, Readiness};
use crate::admission::{Note, Webhook};
use crate::args::Args;
use crate::chores::{self, Chores};
use crate::lease::Leader;
use crate::measures::Measured;
use crate::metrics::{self, Metrics, Written};
use crate::migration;
use crate::policy;
use crate::queue::{self, Due};

/// The kinds that own what is collected when they are gone.
const OWNERS: [Kind; 4] =
    [Kind::Namespace, Kind::NonAdminBackup, Kind::NonAdminRestore, Kind::NonAdminBackupStorageLocation];

/// How long writes on their way may take to come to their end, and the lease to be handed back, once we are to stop. A
/// lease that is not handed back runs out by itself.
pub(crate) const FAREWELL: Duration = Duration::from_secs(10);

/// What a worker needs.
struct Shared {
    leadership: Leadership,
    cluster: Arc<Cluster>,
    work: Arc<Work>,
    executor: Executor,
    teller: Teller,
    metrics: Metrics,
    due: Arc<Due>,
    chores: Chores,
}

/// Runs until told to stop.
pub(crate) async fn run(args: Args) -> Result<()> {
    let Some(namespace) = args.watch_namespace.clone().filter(|namespace| !namespace.is_empty()) else {
        bail!("WATCH_NAMESPACE is not set; it names the namespace Velero is installed in");
    };
    let seat = args.lease.seat(&namespace, &hostname())?;
    let leadership = Leadership::default();
    let unreachable = "cannot reach the API server";
    let client = engine::connect_behind(&leadership).await.context(unreachable)?;
    let lease_client = engine::connect().await.context(unreachable)?;
    let cluster = Arc::new(Cluster::new(&namespace));
    cluster.reached_at(&engine::api_server().await.context("cannot tell where the API server is")?);
    let work = Arc::new(Work::default());
    let executor = Executor::new(client.clone(), cluster.clone(), work.clone());

    let mut registry = Registry::default();
    let metrics = Metrics::register(&mut registry);
    let ready = Arc::new(AtomicBool::new(false));
    let note = Note::default();
    let readiness = note.clone().beside(readiness(cluster.clone(), ready.clone(), leadership.clone()));
    admin::probes(args.health_probe_bind_address, readiness).await?;
    registry.register_collector(Box::new(Written(executor.writes())));
    registry.register_collector(Box::new(Measured {
        cluster: cluster.clone(),
        writes: executor.writes(),
        metrics: metrics.clone(),
    }));
    registry.register_collector(Box::new(Leader { leadership: leadership.clone(), me: seat.me.clone() }));
    admin::metrics(args.metrics_bind_address, Arc::new(move || metrics::text(&registry))).await?;

    // Standbys watch as well, so that they can act the moment they lead.
    let watches = start_watches(&client, &namespace, &cluster, &work);
    info!(namespace, version = env!("CARGO_PKG_VERSION"), "looking at the cluster");
    let unwatched = all_known(watches).await;
    cluster.read_policy();
    // An owner that we may not see is not one that is gone.
    let everything_seen = unwatched.iter().all(|kind| !OWNERS.contains(kind));
    ready.store(true, Ordering::Release);
    info!("ready");

    // Whoever leads acts at once, so only now.
    let campaign = tokio::spawn(engine::campaign(lease_client, seat, leadership.clone()));

    // Whoever is asked answers, whether it leads or not; its writes are the executor's.
    let mut tasks = JoinSet::new();
    tasks.spawn(Webhook::new(&args, &client, &namespace, &cluster, &executor, note).keep());

    let teller = Teller::start(client.clone(), hostname(), cluster.lacking().clone());
    let context = Arc::new(Shared {
        leadership: leadership.clone(),
        cluster,
        work,
        executor,
        teller,
        metrics,
        due: Arc::default(),
        chores: Chores::default(),
    });
    tasks.spawn(policy::tell_problems(context.cluster.clone(), context.teller.clone(), leadership.clone()));
    tasks.spawn(policy::end_vanished(context.cluster.clone(), context.work.clone()));
    tasks.spawn(policy::keep_copy(context.cluster.clone(), context.executor.clone(), leadership.clone()));
    let lacking = context.cluster.lacking().clone();
    tasks.spawn(migration::keep(client.clone(), context.teller.clone(), leadership.clone(), lacking));
    tasks.spawn(queue::keep_fresh(
        context.cluster.clone(),
        context.work.clone(),
        context.due.clone(),
        leadership.clone(),
    ));
    tasks.spawn(engine::look_after_credentials(
        client.clone(),
        context.cluster.clone(),
        context.work.clone(),
        leadership.clone(),
    ));
    tasks.spawn(engine::show_velero(
        client.clone(),
        context.executor.clone(),
        context.cluster.clone(),
        context.work.clone(),
        leadership.clone(),
    ));
    tasks.spawn(engine::ask_velero(
        client,
        namespace,
        context.cluster.clone(),
        context.work.clone(),
        leadership.clone(),
    ));
    tasks.spawn(chores::synchronise(context.cluster.clone(), context.work.clone(), leadership.clone()));
    if everything_seen {
        tasks.spawn(chores::collect(context.cluster.clone(), context.executor.clone(), leadership.clone()));
    }
    for _ in 0..args.workers.max(1) {
        tasks.spawn(worker(context.clone()));
    }
    told_to_stop().await?;
    info!("stopping");
    leadership.close();
    if timeout(FAREWELL, campaign).await.is_err() {
        warn!("writes on their way did not come to their end; the lease is left to run out");
    }
    Ok(())
}

/// Ready once everything has been seen, leading or not, since a rolling update waits for a successor to be ready; with a
/// word on who leads, on what is switched off, and on what is wrong with the policy.
fn readiness(
    cluster: Arc<Cluster>,
    ready: Arc<AtomicBool>,
    leadership: Leadership,
) -> impl Fn() -> Readiness {
    move || {
        let mut details = vec![leadership.standing().to_string()];
        details.extend(cluster.lacking().told());
        let look = cluster.look();
        details.extend(look.policy_vanished().iter().map(|vanished| format!("policy: {vanished}")));
        details.extend(look.policy_problems().iter().map(|problem| format!("policy: {problem}")));
        drop(look);
        Readiness { ready: ready.load(Ordering::Acquire), details }
    }
}

/// Watches every kind that decisions look at: tenants' everywhere, Velero's and the administrators' in one namespace.
fn start_watches(
    client: &Client,
    namespace: &str,
    cluster: &Arc<Cluster>,
    work: &Arc<Work>,
) -> Vec<(Kind, channel::Receiver<Progress>)> {
    let starter = Starter { client, cluster, work, namespace };
    vec![
        starter.everywhere::<Namespace>(),
        starter.everywhere::<NonAdminBackup>(),
        starter.everywhere::<NonAdminRestore>(),
        starter.everywhere::<NonAdminBackupStorageLocation>(),
        starter.everywhere::<NonAdminDownloadRequest>(),
        starter.in_namespace::<DownloadRequest>(),
        starter.in_namespace::<NonAdminBackupStorageLocationRequest>(),
        starter.in_namespace::<HiddenSecret>(),
        starter.in_namespace::<Backup>(),
        starter.in_namespace::<Restore>(),
        starter.in_namespace::<BackupStorageLocation>(),
        starter.in_namespace::<DeleteBackupRequest>(),
        starter.in_namespace::<ConfigMap>(),
        starter.in_namespace::<DataProtectionApplication>(),
        starter.in_namespace::<PodVolumeBackup>(),
        starter.in_namespace::<PodVolumeRestore>(),
        starter.in_namespace::<DataUpload>(),
        starter.in_namespace::<DataDownload>(),
    ]
}

struct Starter<'a> {
    client: &'a Client,
    cluster: &'a Arc<Cluster>,
    work: &'a Arc<Work>,
    namespace: &'a str,
}

impl Starter<'_> {
    fn everywhere<K: Kept>(&self) -> (Kind, channel::Receiver<Progress>) {
        self.start::<K>(None)
    }

    fn in_namespace<K: Kept>(&self) -> (Kind, channel::Receiver<Progress>) {
        self.start::<K>(Some(self.namespace.to_owned()))
    }

    fn start<K: Kept>(&self, namespace: Option<String>) -> (Kind, channel::Receiver<Progress>) {
        let (sender, receiver) = channel::channel(Progress::Listing);
        tokio::spawn(watch::<K>(
            self.client.clone(),
            namespace,
            self.cluster.clone(),
            self.work.clone(),
            sender,
        ));
        (K::KIND, receiver)
    }
}

/// Waits until everything that exists is known, so that nothing is decided because its like is merely not seen yet.
/// Returns what we may not look at.
async fn all_known(watches: Vec<(Kind, channel::Receiver<Progress>)>) -> Vec<Kind> {
    let mut closed = Vec::new();
    for (kind, mut progress) in watches {
        // A watch ends only with the process.
        if let Ok(progress) = progress.wait_for(|progress| *progress != Progress::Listing).await
            && *progress == Progress::Closed
        {
            closed.push(kind);
        }
    }
    closed
}

async fn worker(context: Arc<Shared>) {
    loop {
        let key = context.work.next().await;
        context.leadership.granted().await;
        let began = Instant::now();
        // One odd object must not stop the others, not even by a bug of ours.
        let outcome = AssertUnwindSafe(reconcile(&context, &key)).catch_unwind().await;
        let retry = match outcome {
            Ok(retry) => retry,
            Err(_) => Some(Retry::BackOff),
        };
        context.metrics.decided(&key, began.elapsed(), retry.is_none());
        let failures = context.work.done(&key, retry.is_none());
        if let Some(delay) = retry.and_then(|retry| retry.delay(failures)) {
            context.work.wake_in(key, delay);
        }
    }
}

/// Observe, decide, execute. Returns when to try again if it did not go through.
async fn reconcile(context: &Shared, key: &Key) -> Option<Retry> {
    if let Err(failure) = context.executor.make_sure(key).await {
        warn!(%failure, "what became of a write is not known yet");
        return Some(failure.retry());
    }
    let (kind, about, plan) = decide(context, key)?;
    debug!(
        kind = key.kind.name(),
        namespace = key.namespace,
        name = key.name,
        actions = plan.actions.len(),
        "decided"
    );
    if let Err(failure) = context.executor.execute(key, &plan).await {
        let retry = failure.retry();
        match retry {
            Retry::Now | Retry::WhenItChanges => debug!(%failure, "what we knew was out of date"),
            Retry::After(_) | Retry::BackOff => error!(%failure, "not carried out; it is tried again"),
        }
        return Some(retry);
    }
    for event in &plan.events {
        // A backup found in storage is looked at again and again, but its story is told once.
        let found_in_storage = key.kind == Kind::Backup && kind != Kind::Backup;
        if !found_in_storage || context.chores.is_news(key, event) {
            context.teller.tell(kind, &about, event);
            context.metrics.told(kind, &about, event);
            if event.reason == sync::IGNORED {
                context.metrics.ignored();
            }
        }
    }
    match plan.wake {
        // What is half done is gone on with before anything else is begun.
        Some(Duration::ZERO) => return Box::pin(reconcile(context, key)).await,
        Some(delay) => context.work.wake_in(key.clone(), delay),
        None => {}
    }
    None
}

/// What shall be done about one object, and what its Events are about; none if it is gone.
fn decide(context: &Shared, key: &Key) -> Option<(Kind, ObjectMeta, Plan)> {
    let look = context.cluster.look();
    let position_due = context.due.take(key);
    if key.kind.group() == Kind::Backup.group() && key.namespace != look.admin_namespace() {
        return decide_shown(&look, key);
    }
    match key.kind {
        Kind::NonAdminBackup => {
            let seen =
                backup::Observed { position_due, ..backup::observe(&*look, &key.namespace, &key.name)? };
            drop(look);
            Some((key.kind, seen.backup.metadata.clone(), backup::decide(&seen)))
        }
        Kind::NonAdminRestore => {
            let seen =
                restore::Observed { position_due, ..restore::observe(&*look, &key.namespace, &key.name)? };
            drop(look);
            Some((key.kind, seen.restore.metadata.clone(), restore::decide(&seen)))
        }
        Kind::NonAdminBackupStorageLocation => {
            let seen = location::observe(&*look, &key.namespace, &key.name)?;
            drop(look);
            Some((key.kind, seen.location.metadata.clone(), location::decide(&seen)))
        }
        Kind::Backup => {
            let (about, plan) = sync::decide(&*look, &key.name)?;
            let meta = ObjectMeta {
                name: Some(about.name),
                namespace: Some(about.namespace),
                ..ObjectMeta::default()
            };
            Some((about.kind, meta, plan))
        }
        Kind::NonAdminDownloadRequest => {
            let seen = download::observe(&*look, &key.namespace, &key.name)?;
            drop(look);
            Some((key.kind, seen.request.metadata.clone(), download::decide(&seen)))
        }
        Kind::DownloadRequest => {
            let seen = download::observe_leftover(&*look, &key.name)?;
            drop(look);
            Some((key.kind, seen.velero.metadata.clone(), download::decide_leftover(&seen)))
        }
        _ => None,
    }
}

/// The same for what there is of Velero's kinds in a tenant's namespace.
fn decide_shown(look: &State, key: &Key) -> Option<(Kind, ObjectMeta, Plan)> {
    if key.kind == Kind::DownloadRequest {
        let seen = download::observe_shown(look, &key.namespace, &key.name)?;
        return Some((key.kind, seen.request.metadata.clone(), download::decide(&seen)));
    }
    let seen = copies::observe(look, key)?;
    Some((key.kind, seen.about(), copies::decide(&seen)))
}

pub(crate) async fn told_to_stop() -> Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = terminate.recv() => {}
        result = tokio::signal::ctrl_c() => result?,
    }
    Ok(())
}

pub(crate) fn hostname() -> String {
    let name = std::env::var("HOSTNAME").ok().filter(|name| !name.is_empty());
    name.unwrap_or_else(|| format!("nacre-{}", std::process::id()))
}
