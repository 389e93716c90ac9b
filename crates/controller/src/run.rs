//! The controller: starts the watches, then reconciles the objects of the work queue.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use api::velero::{
    Backup, BackupStorageLocation, DataDownload, DataUpload, DeleteBackupRequest, DownloadRequest,
    PodVolumeBackup, PodVolumeRestore, Restore, Schedule,
};
use api::{
    Claim, DataProtectionApplication, HiddenSecret, Kind, NodeAgent, NonAdminBackup,
    NonAdminBackupStorageLocation, NonAdminBackupStorageLocationRequest, NonAdminDownloadRequest,
    NonAdminRestore, NonAdminSchedule, RestoredPod, Volume,
};
use engine::{Cluster, EventRecorder, Executor, Leadership, Progress, Supervisor, chain, watch};
use futures::FutureExt;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::Client;
use planner::state::WatchedKind;
use planner::{Key, sync};
use prometheus_client::registry::Registry;
use runtime::Retry;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch as channel;
use tokio::time::timeout;
use tracing::{Instrument, debug, error, info, info_span, warn};

use crate::admin::{self, Readiness};
use crate::admission::{Webhook, WebhookStatus};
use crate::args::Args;
use crate::chores::{self, Chores};
use crate::lease::Leader;
use crate::live_migration;
use crate::measures::Measured;
use crate::metrics::{self, Metrics, Written};
use crate::policy;
use crate::queue;
use crate::records;

/// The kinds that own what is collected when they are gone.
const OWNERS: [Kind; 5] = [
    Kind::Namespace,
    Kind::NonAdminBackup,
    Kind::NonAdminRestore,
    Kind::NonAdminBackupStorageLocation,
    Kind::NonAdminSchedule,
];

/// Shutdown timeout: how long writes in flight may take to finish, and the lease to be released. A lease that is not
/// released expires.
pub(crate) const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// What the workers share.
struct Shared {
    leadership: Leadership,
    cluster: Arc<Cluster>,
    executor: Executor,
    recorder: EventRecorder,
    metrics: Metrics,
    chores: Chores,
}

/// Runs until SIGTERM or SIGINT.
pub(crate) async fn run(args: Args) -> Result<()> {
    let Some(namespace) = args.watch_namespace.clone().filter(|namespace| !namespace.is_empty()) else {
        bail!("WATCH_NAMESPACE is not set; it names the namespace Velero is installed in");
    };
    let lease_config = args.lease.lease_config(&namespace, &hostname())?;
    let leadership = Leadership::default();
    let unreachable = "cannot reach the API server";
    let client = engine::connect_behind(&leadership).await.context(unreachable)?;
    let lease_client = engine::connect().await.context(unreachable)?;
    let cluster = nothing_seen(&namespace, args.fence).await?;
    let executor = Executor::new(client.clone(), cluster.clone());
    let supervisor = Supervisor::new(args.panic_task.as_deref());

    let mut registry = Registry::default();
    let metrics = Metrics::register(&mut registry);
    let ready = Arc::new(AtomicBool::new(false));
    let reported_status = WebhookStatus::default();
    let readiness =
        reported_status.clone().add_to(readiness(cluster.clone(), ready.clone(), leadership.clone()));
    admin::probes(args.health_probe_bind_address, readiness, &supervisor).await?;
    registry.register_collector(Box::new(Written(executor.writes())));
    registry.register_collector(Box::new(Measured {
        cluster: cluster.clone(),
        writes: executor.writes(),
        metrics: metrics.clone(),
    }));
    registry
        .register_collector(Box::new(Leader { leadership: leadership.clone(), me: lease_config.me.clone() }));
    admin::metrics(args.metrics_bind_address, Arc::new(move || metrics::text(&registry)), &supervisor)
        .await?;

    // Standbys watch as well, so that they can start at once when they become leader.
    let watches = start_watches(&client, &namespace, &cluster, &supervisor, args.fence);
    info!(namespace, version = env!("CARGO_PKG_VERSION"), "listing objects");
    let unwatched = tokio::select! {
        unwatched = all_known(watches) => unwatched,
        ended = supervisor.ended() => return Err(ended.into()),
    };
    cluster.read_policy();
    // An owner that nacre is not permitted to read does not count as deleted.
    let everything_seen = unwatched.iter().all(|kind| !OWNERS.contains(kind));
    ready.store(true, Ordering::Release);
    info!("controller: all caches are synced");

    // Leader election starts only now, since a leader starts writing at once.
    let election = engine::run_election(lease_client, lease_config, leadership.clone());
    let election = supervisor.spawn("leader election", election);

    // Every replica answers the webhook, leader or not.
    if args.webhook_bind_address.is_some() {
        let webhook =
            Webhook::new(&args, &client, &namespace, &cluster, &executor, reported_status, &supervisor);
        supervisor.spawn("webhook", webhook.keep());
    }

    let recorder = EventRecorder::start(client.clone(), hostname(), cluster.degraded().clone(), &supervisor);
    let context = Arc::new(Shared {
        leadership: leadership.clone(),
        cluster: cluster.clone(),
        executor: executor.clone(),
        recorder: recorder.clone(),
        metrics,
        chores: Chores::default(),
    });
    supervisor
        .spawn("policy", policy::report_problems(cluster.clone(), recorder.clone(), leadership.clone()));
    supervisor.spawn("vanished policy", policy::end_vanished(cluster.clone()));
    records::keep_all(&supervisor, &cluster, &executor, &leadership);
    let degraded = cluster.degraded().clone();
    supervisor.spawn(
        "live migration",
        live_migration::keep(client.clone(), recorder, leadership.clone(), degraded, context.metrics.clone()),
    );
    supervisor.spawn("queue positions", queue::keep_fresh(cluster.clone(), leadership.clone()));
    supervisor
        .spawn("credentials", engine::watch_credentials(client.clone(), cluster.clone(), leadership.clone()));
    keep_velero_view(&supervisor, &client, &context);
    poll(&supervisor, &client, &namespace, &cluster);
    let reviewed = context.metrics.clone();
    supervisor
        .spawn("reviews", engine::answer_asks(client.clone(), cluster.clone(), move || reviewed.reviewed()));
    supervisor.spawn("results", engine::read_results(client.clone(), cluster.clone(), leadership.clone()));
    supervisor.spawn(
        "Velero version",
        engine::poll_velero_version(client.clone(), namespace.clone(), cluster.clone(), leadership.clone()),
    );
    start_chores(&supervisor, &context, everything_seen);
    supervisor.spawn(
        "Velero log",
        engine::watch_velero_log(client.clone(), namespace, cluster.clone(), leadership.clone()),
    );
    supervisor.spawn("terms", engine::begin_terms(client, cluster.clone(), leadership.clone()));
    for number in 0..args.workers.max(1) {
        supervisor.spawn(format!("worker {number}"), worker(context.clone()));
    }
    let outcome = tokio::select! {
        stop = stop_signal() => stop,
        // Nothing more is written over what may be out of date; the standby takes over.
        ended = supervisor.ended() => Err(ended.into()),
    };
    info!("stopping");
    leadership.close();
    if timeout(SHUTDOWN_TIMEOUT, election).await.is_err() {
        warn!("writes in flight did not finish; the lease is left to run out");
    }
    outcome
}

/// Shows Velero's objects in the namespaces that want it. Its watches come and go, under the same supervisor.
fn keep_velero_view(supervisor: &Supervisor, client: &Client, shared: &Shared) {
    let Shared { cluster, executor, leadership, .. } = shared;
    let (client, executor) = (client.clone(), executor.clone());
    let view =
        engine::run_velero_view(client, executor, cluster.clone(), leadership.clone(), supervisor.clone());
    supervisor.spawn("Velero view", view);
}

/// Starts what is done periodically. Without having seen everything, nothing is deleted for a missing owner.
fn start_chores(supervisor: &Supervisor, shared: &Shared, everything_seen: bool) {
    let Shared { cluster, executor, leadership, metrics, .. } = shared;
    let (cluster, executor, leadership) = (|| cluster.clone(), || executor.clone(), || leadership.clone());
    supervisor.spawn("sync", chores::synchronise(cluster(), leadership()));
    supervisor.spawn(
        "what holds up Velero",
        chores::unblock_velero(cluster(), executor(), leadership(), metrics.clone()),
    );
    supervisor.spawn("Velero's pauses", chores::keep_velero_busy(cluster(), executor(), leadership()));
    if everything_seen {
        supervisor.spawn("garbage collection", chores::collect(cluster(), executor(), leadership()));
    }
}

/// The cluster of which nothing is known but how it is reached, and whether Velero is for tenants alone.
async fn nothing_seen(namespace: &str, fence: bool) -> Result<Arc<Cluster>> {
    let api_server = engine::api_server().await.context("cannot determine the address of the API server")?;
    let cluster = Cluster::new(namespace);
    cluster.reached_at(&api_server);
    cluster.set_dedicated(fence);
    Ok(Arc::new(cluster))
}

/// Reads periodically what changes rarely. Every replica does, since the webhook needs it too.
fn poll(supervisor: &Supervisor, client: &Client, namespace: &str, cluster: &Arc<Cluster>) {
    let (client, namespace) = (|| client.clone(), || namespace.to_owned());
    supervisor.spawn("snapshot classes", engine::poll_snapshot_classes(client(), cluster.clone()));
    supervisor
        .spawn("native snapshots", engine::poll_native_snapshots(client(), namespace(), cluster.clone()));
    supervisor.spawn("fence", engine::poll_fence(client(), namespace(), cluster.clone()));
}

/// Ready once all caches are synced, leader or not: a rolling update waits for the new pod to be ready. The details
/// name the leader, what is disabled, and the problems of the policy.
fn readiness(
    cluster: Arc<Cluster>,
    ready: Arc<AtomicBool>,
    leadership: Leadership,
) -> impl Fn() -> Readiness {
    move || {
        let mut details = vec![leadership.leader_status().to_string()];
        details.extend(cluster.degraded().lines());
        let look = cluster.look();
        details.extend(look.policy_vanished().iter().map(|vanished| format!("policy: {vanished}")));
        details.extend(look.policy_problems().iter().map(|problem| format!("policy: {problem}")));
        drop(look);
        Readiness { ready: ready.load(Ordering::Acquire), details }
    }
}

/// Watches every kind that decisions read: tenants' kinds in all namespaces, Velero's and the administrators' in
/// Velero's namespace.
fn start_watches(
    client: &Client,
    namespace: &str,
    cluster: &Arc<Cluster>,
    supervisor: &Supervisor,
    fence: bool,
) -> Vec<(Kind, channel::Receiver<Progress>)> {
    let starter = Starter { client, cluster, supervisor, namespace };
    let bindings = fence.then(|| starter.everywhere::<RoleBinding>());
    let mut watches = vec![
        starter.everywhere::<Namespace>(),
        starter.everywhere::<NonAdminBackup>(),
        starter.everywhere::<NonAdminRestore>(),
        starter.everywhere::<NonAdminBackupStorageLocation>(),
        starter.everywhere::<NonAdminDownloadRequest>(),
        starter.everywhere::<NonAdminSchedule>(),
        starter.in_namespace::<DownloadRequest>(),
        starter.in_namespace::<NonAdminBackupStorageLocationRequest>(),
        starter.in_namespace::<HiddenSecret>(),
        starter.in_namespace::<Backup>(),
        starter.in_namespace::<Restore>(),
        starter.in_namespace::<Schedule>(),
        starter.in_namespace::<BackupStorageLocation>(),
        starter.in_namespace::<DeleteBackupRequest>(),
        starter.in_namespace::<ConfigMap>(),
        starter.in_namespace::<DataProtectionApplication>(),
        starter.in_namespace::<PodVolumeBackup>(),
        starter.in_namespace::<PodVolumeRestore>(),
        starter.in_namespace::<DataUpload>(),
        starter.in_namespace::<DataDownload>(),
        starter.everywhere::<Claim>(),
        starter.everywhere::<Volume>(),
        starter.everywhere::<RestoredPod>(),
        starter.in_namespace::<NodeAgent>(),
    ];
    watches.extend(bindings);
    watches
}

struct Starter<'a> {
    client: &'a Client,
    cluster: &'a Arc<Cluster>,
    supervisor: &'a Supervisor,
    namespace: &'a str,
}

impl Starter<'_> {
    fn everywhere<K: WatchedKind>(&self) -> (Kind, channel::Receiver<Progress>) {
        self.start::<K>(None)
    }

    fn in_namespace<K: WatchedKind>(&self) -> (Kind, channel::Receiver<Progress>) {
        self.start::<K>(Some(self.namespace.to_owned()))
    }

    fn start<K: WatchedKind>(&self, namespace: Option<String>) -> (Kind, channel::Receiver<Progress>) {
        let (sender, receiver) = channel::channel(Progress::Listing);
        let watch = watch::<K>(self.client.clone(), namespace, self.cluster.clone(), sender);
        self.supervisor.spawn(format!("watch {}", K::KIND.name()), watch);
        (K::KIND, receiver)
    }
}

/// Waits until all caches are synced, so that nothing is decided on an incomplete list. Returns the kinds that nacre is
/// not permitted to list.
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
        let key = context.cluster.next().await;
        context.leadership.until_term_begun().await;
        let span =
            info_span!("reconcile", kind = key.kind.name(), namespace = key.namespace, name = key.name);
        let began = Instant::now();
        // One invalid object must not stop the others, not even through a panic.
        let outcome =
            AssertUnwindSafe(reconcile(&context, &key)).catch_unwind().instrument(span.clone()).await;
        let well = outcome.unwrap_or_else(|_| {
            span.in_scope(|| error!("the decision panicked: retrying"));
            context.cluster.back_off(&key);
            false
        });
        context.metrics.decided(&key, began.elapsed(), well);
    }
}

/// Observe, decide, execute. Returns whether the plan was carried out to its end.
async fn reconcile(context: &Shared, key: &Key) -> bool {
    let (outcome, failure) = context.executor.reconcile(key).await;
    for report in &outcome.reports {
        // A backup found in storage is looked at again and again, but reported once.
        let found_in_storage = key.kind == Kind::Backup && report.kind != Kind::Backup;
        if !found_in_storage || context.chores.is_news(key, &report.event) {
            info!(reason = report.event.reason, "{}", report.event.note);
            context.recorder.record(report.kind, &report.meta, &report.event);
            context.metrics.reported(report.kind, &report.meta, &report.event);
            if report.event.reason == sync::IGNORED {
                context.metrics.ignored();
            }
        }
    }
    let Some(failure) = failure else {
        debug!(
            because = %outcome.because,
            requeue = ?outcome.requeue,
            events = outcome.reports.len(),
            "decided"
        );
        return true;
    };
    if let Retry::Now | Retry::WhenItChanges = failure.retry() {
        debug!(failure = %chain(&failure), "the cached object was out of date");
    } else {
        let delay = outcome.requeue.delay().unwrap_or_default();
        error!(because = %outcome.because, failure = %chain(&failure), "write failed: retrying in {delay:?}");
    }
    false
}

pub(crate) async fn stop_signal() -> Result<()> {
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
