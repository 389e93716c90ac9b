//! Watches: keep the cache current.

use std::sync::Arc;
use std::time::Duration;

use api::{Kind, labels};
use futures::{StreamExt, pin_mut};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use planner::state::{RawObject, Update, WatchedKind};
use tokio::sync::watch as signal;
use tokio::time::sleep;
use tracing::warn;

use crate::client::everything;
use crate::cluster::Cluster;

/// State of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The first list is not complete.
    Listing,
    /// The cache is synced.
    Current,
    /// Not permitted, or the kind does not exist: it counts as empty.
    Closed,
}

/// List period for kinds that may be listed but not watched.
const BETWEEN_LISTS: Duration = Duration::from_secs(5);
/// Maximum backoff of a watch.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Watches one kind for the lifetime of the process, and enqueues the affected objects.
pub async fn watch<K: WatchedKind>(
    client: Client,
    namespace: Option<String>,
    cluster: Arc<Cluster>,
    progress: signal::Sender<Progress>,
) {
    let kind = K::KIND.resource();
    let api: Api<RawObject> = match namespace {
        Some(namespace) => Api::namespaced_with(client, &namespace, &kind),
        None => Api::all_with(client, &kind),
    };
    let config = match K::KIND {
        // In Velero's namespace, only the Secrets that nacre created for tenants are watched.
        Kind::Secret => everything().labels(labels::NABSL_NACUUID),
        // Of pods, only those that Velero restored.
        Kind::Pod => everything().labels(labels::VELERO_RESTORE_NAME),
        // Of RoleBindings, only those that nacre created for Velero.
        Kind::RoleBinding => everything().labels(labels::VELERO_ACCESS),
        _ => everything(),
    };
    loop {
        follow::<K>(api.clone(), config.clone(), &cluster, &progress).await;
        // Permitted to list but not to watch: it is listed periodically.
        sleep(BETWEEN_LISTS).await;
    }
}

/// Lists and watches one kind, until a watch is rejected as forbidden.
async fn follow<K: WatchedKind>(
    api: Api<RawObject>,
    config: watcher::Config,
    cluster: &Cluster,
    progress: &signal::Sender<Progress>,
) {
    let unseen = format!("{} is not seen", K::KIND.plural());
    let unwatched = format!("{} is not watched", K::KIND.plural());
    let stream = watcher(api, config);
    pin_mut!(stream);
    let mut pause = Duration::ZERO;
    while let Some(event) = stream.next().await {
        let error = match event {
            Ok(event) => {
                pause = Duration::ZERO;
                match event {
                    Event::InitDone => cluster.degraded().enable(&unseen),
                    Event::Apply(_) | Event::Delete(_) => cluster.degraded().enable(&unwatched),
                    Event::Init | Event::InitApply(_) => {}
                }
                let complete = matches!(event, Event::InitDone);
                cluster.drive(|runtime, now| runtime.on_event(K::KIND, update(&event), now));
                if complete {
                    progress.send_replace(Progress::Current);
                }
                continue;
            }
            Err(error) => error,
        };
        pause = (pause * 2).clamp(Duration::from_millis(200), LONGEST_PAUSE);
        let reason = closed(&error);
        match (&*progress.borrow(), &error, &reason) {
            (Progress::Current, watcher::Error::WatchStartFailed(_), Some(reason)) => {
                let why = format!("it is listed every {} s instead: {reason}", BETWEEN_LISTS.as_secs());
                cluster.degraded().disable(&unwatched, &why);
                return;
            }
            (Progress::Listing | Progress::Closed, _, Some(reason)) => {
                cluster.degraded().disable(&unseen, &format!("it counts as empty: {reason}"));
            }
            _ => warn!(kind = K::KIND.name(), %error, "watch failed; retrying"),
        }
        progress.send_if_modified(|progress| {
            let closes = reason.is_some() && *progress == Progress::Listing;
            if closes {
                *progress = Progress::Closed;
            }
            closes
        });
        sleep(pause).await;
    }
}

/// A watch event as the runtime takes it.
pub(crate) fn update(event: &Event<RawObject>) -> Update<'_, RawObject> {
    match event {
        Event::Apply(object) | Event::InitApply(object) => Update::Observed(object),
        Event::Delete(object) => Update::ObservedGone(object),
        Event::Init => Update::ListBegins,
        Event::InitDone => Update::ListEnds,
    }
}

/// Whether listing is forbidden, or the kind does not exist.
pub(crate) fn closed(error: &watcher::Error) -> Option<String> {
    let (watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error)) = error else {
        return None;
    };
    let status = crate::error::status(error)?;
    matches!(status.code, 403 | 404).then(|| status.message.clone())
}
