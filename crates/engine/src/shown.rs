//! What there is of Velero's kinds in tenants' namespaces: looked at only while somebody is to see it there, and kept
//! apart from Velero's own, which it must never be taken for.

use std::sync::Arc;
use std::time::Duration;

use api::Kind;
use futures::{StreamExt, pin_mut};
use kube::runtime::watcher::{Event, watcher};
use kube::{Api, Client};
use planner::copies::{self, RECORD, WATCHED};
use planner::state::RawObject;
use planner::{Key, Plan};
use tokio::sync::watch as signal;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tracing::{info, warn};

use crate::client::everything;
use crate::cluster::Cluster;
use crate::execute::Executor;
use crate::leadership::Leadership;
use crate::watch::{LONGEST_PAUSE, Progress, closed, update};

/// How often to see whether somebody is to see Velero's objects: an administrator labels a namespace now and then.
const LOOK: Duration = Duration::from_secs(1);

/// What does not work where a namespace is labelled and nacre was not given the rights.
const UNSHOWN: &str = "Velero's objects are not shown in tenants' namespaces";

/// Looks after copies of Velero's objects in tenants' namespaces while there are to be any; until then it asks the API
/// server for nothing.
pub async fn show_velero(client: Client, executor: Executor, cluster: Arc<Cluster>, leadership: Leadership) {
    loop {
        leadership.granted().await;
        if copies::in_use(&*cluster.look()) {
            show(&client, &executor, &cluster, &leadership).await;
            cluster.lacking().on(UNSHOWN);
            // What was seen is out of date as soon as nobody looks.
            cluster.change(|state| {
                state.forget_velero_view();
                Vec::new()
            });
        }
        sleep(LOOK).await;
    }
}

async fn show(client: &Client, executor: &Executor, cluster: &Arc<Cluster>, leadership: &Leadership) {
    let mut watches = JoinSet::new();
    let mut progress = Vec::new();
    for kind in WATCHED {
        let (sender, receiver) = signal::channel(Progress::Listing);
        watches.spawn(watch_shown(client.clone(), kind, cluster.clone(), sender));
        progress.push(receiver);
    }
    info!("tenants are to see Velero's objects in their namespaces; looking at those");
    loop {
        // Over a stale cache nothing may be decided: this panics, and ends the process.
        if let Some(ended) = watches.try_join_next() {
            panic!("a watch of Velero's objects in tenants' namespaces ended: {ended:?}");
        }
        let started = progress.iter().all(|progress| *progress.borrow() == Progress::Current);
        let (plan, over) = copies::record(&*cluster.look());
        let noted = started && note(executor, cluster, &plan).await;
        if noted && over {
            info!("nobody is to see Velero's objects any more, and no copies are left");
            return;
        }
        if noted && !cluster.look().shows_velero() {
            cluster.lacking().on(UNSHOWN);
            cluster.change(|state| state.velero_view_listed());
        }
        // Whoever leads looks; the one who takes over begins anew.
        if !copies::in_use(&*cluster.look()) || !leadership.leads() {
            return;
        }
        sleep(LOOK).await;
    }
}

/// Notes beside Velero whether there may be copies. Without that note none is made.
async fn note(executor: &Executor, cluster: &Arc<Cluster>, plan: &Plan) -> bool {
    let about = Key::new(Kind::ConfigMap, cluster.look().admin_namespace(), RECORD);
    match executor.execute(&about, plan).await {
        Ok(()) => true,
        Err(failure) => {
            warn!(%failure, "it could not be noted whether there are copies of Velero's objects; it is tried again");
            false
        }
    }
}

async fn watch_shown(client: Client, kind: Kind, cluster: Arc<Cluster>, progress: signal::Sender<Progress>) {
    let api: Api<RawObject> = Api::all_with(client, &kind.resource());
    // Velero's own are watched already.
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
                    cluster.lacking().off(UNSHOWN, &reason);
                    progress.send_replace(Progress::Closed);
                } else {
                    warn!(kind = kind.name(), %error, "the watch broke; it is tried again");
                }
                sleep(pause).await;
            }
        }
    }
}
