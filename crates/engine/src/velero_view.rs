//! The Velero view: copies of Velero objects in tenant namespaces. They are watched only while the view is enabled, and
//! cached separately from Velero's own objects.

use std::sync::Arc;
use std::time::Duration;

use api::Kind;
use futures::{StreamExt, pin_mut};
use kube::runtime::watcher::{Event, watcher};
use kube::{Api, Client};
use planner::state::RawObject;
use planner::velero_view::{self, RECORD, WATCHED};
use planner::{Key, Plan, State};
use tokio::sync::watch as signal;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tracing::{info, warn};

use crate::client::everything;
use crate::cluster::Cluster;
use crate::error::chain;
use crate::execute::Executor;
use crate::leadership::Leadership;
use crate::supervisor::Supervisor;
use crate::watch::{LONGEST_PAUSE, Progress, closed, update};

/// How often to check whether the view is enabled for any namespace.
const INTERVAL: Duration = Duration::from_secs(1);

/// Name of the disabled feature if the permissions are missing.
const VIEW_DISABLED: &str = "the Velero view is disabled";

/// Maintains the copies of Velero objects in tenant namespaces while the view is enabled; until then it sends no
/// requests.
pub async fn run_velero_view(
    client: Client,
    executor: Executor,
    cluster: Arc<Cluster>,
    leadership: Leadership,
    supervisor: Supervisor,
) {
    loop {
        leadership.until_leader().await;
        if velero_view::in_use(&cluster.look()) {
            show(&client, &executor, &cluster, &leadership, &supervisor).await;
            cluster.degraded().enable(VIEW_DISABLED);
            // The cache is stale once the watches stop.
            cluster.change(|state| {
                state.forget_velero_view();
                Vec::new()
            });
        }
        sleep(INTERVAL).await;
    }
}

async fn show(
    client: &Client,
    executor: &Executor,
    cluster: &Arc<Cluster>,
    leadership: &Leadership,
    supervisor: &Supervisor,
) {
    // They end with this. One that ends by itself ends the process: over a stale cache nothing may be decided.
    let mut watches = JoinSet::new();
    let mut progress = Vec::new();
    for kind in WATCHED {
        let (sender, receiver) = signal::channel(Progress::Listing);
        let watch = watch_velero_view(client.clone(), kind, cluster.clone(), sender);
        watches.spawn(supervisor.supervise(format!("watch copies of {}", kind.name()), watch));
        progress.push(receiver);
    }
    info!("Velero view: enabled; watching Velero objects in tenant namespaces");
    loop {
        let started = progress.iter().all(|progress| *progress.borrow() == Progress::Current);
        let (plan, over) = velero_view::record(&cluster.look());
        let noted = started && note(executor, cluster, &plan).await;
        if noted && over {
            info!("Velero view: disabled; no copies are left");
            return;
        }
        if noted && !cluster.look().velero_view_active() {
            cluster.degraded().enable(VIEW_DISABLED);
            cluster.change(State::velero_view_listed);
        }
        // Only the leader watches; a new leader starts with an empty cache.
        if !velero_view::in_use(&cluster.look()) || !leadership.is_leader() {
            return;
        }
        sleep(INTERVAL).await;
    }
}

/// Writes the record of copies, a ConfigMap in Velero's namespace. Without it no copy is created.
async fn note(executor: &Executor, cluster: &Arc<Cluster>, plan: &Plan) -> bool {
    let about = Key::new(Kind::ConfigMap, cluster.look().admin_namespace(), RECORD);
    match executor.execute(&about, plan).await {
        Ok(()) => true,
        Err(failure) => {
            warn!(failure = %chain(&failure), "Velero view: record of copies could not be written; retrying");
            false
        }
    }
}

async fn watch_velero_view(
    client: Client,
    kind: Kind,
    cluster: Arc<Cluster>,
    progress: signal::Sender<Progress>,
) {
    let api: Api<RawObject> = Api::all_with(client, &kind.resource());
    // Velero's own objects are watched already.
    let elsewhere = format!("metadata.namespace!={}", cluster.look().admin_namespace());
    let stream = watcher(api, everything().fields(&elsewhere));
    pin_mut!(stream);
    let mut pause = Duration::ZERO;
    while let Some(event) = stream.next().await {
        match event {
            Ok(event) => {
                pause = Duration::ZERO;
                let complete = matches!(event, Event::InitDone);
                cluster.drive(|runtime, now| runtime.on_velero_view_event(kind, update(&event), now));
                if complete {
                    progress.send_replace(Progress::Current);
                }
            }
            Err(error) => {
                pause = (pause * 2).clamp(Duration::from_millis(200), LONGEST_PAUSE);
                let shut = closed(&error).filter(|_| *progress.borrow() != Progress::Current);
                if let Some(reason) = shut {
                    cluster.degraded().disable(VIEW_DISABLED, &reason);
                    progress.send_replace(Progress::Closed);
                } else {
                    warn!(kind = kind.name(), %error, "watch failed; retrying");
                }
                sleep(pause).await;
            }
        }
    }
}
