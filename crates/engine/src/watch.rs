//! Keeping the cluster as seen current.

use std::sync::Arc;
use std::time::Duration;

use api::{Kind, labels};
use futures::{StreamExt, pin_mut};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use planner::Key;
use tokio::sync::watch as signal;
use tracing::{debug, warn};

use crate::cluster::{Cluster, State};
use crate::guard::Guarded;
use crate::kept::Kept;
use crate::work::Work;

/// How far a watch has got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The first list is not complete.
    Listing,
    /// Everything that exists is known.
    Current,
    /// We may not look, or there is no such kind: it counts as empty.
    Closed(String),
}

/// The longest to wait before trying again to watch.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Watches one kind for ever and wakes whom each change concerns.
pub async fn watch<K: Kept>(
    client: Client,
    namespace: Option<String>,
    cluster: Arc<Cluster>,
    work: Arc<Work>,
    progress: signal::Sender<Progress>,
) {
    let api: Api<Guarded<K>> = match namespace {
        Some(namespace) => Api::namespaced(client, &namespace),
        None => Api::all(client),
    };
    let config = match K::KIND {
        // Of the administrators' Secrets, only the copies of tenants' credentials are any of our business.
        Kind::Secret => watcher::Config::default().labels(labels::NABSL_NACUUID),
        _ => watcher::Config::default(),
    };
    let stream = watcher(api, config);
    pin_mut!(stream);
    let mut pause = Duration::ZERO;
    while let Some(event) = stream.next().await {
        match event {
            Ok(event) => {
                pause = Duration::ZERO;
                let complete = matches!(event, Event::InitDone);
                work.wake(cluster.change(|state| take(state, event)));
                if complete {
                    progress.send_replace(Progress::Current);
                }
            }
            Err(error) => {
                pause = (pause * 2).clamp(Duration::from_millis(200), LONGEST_PAUSE);
                if *progress.borrow() != Progress::Current
                    && let Some(reason) = closed(&error)
                {
                    debug!(kind = K::KIND.name(), reason, "cannot be watched; it counts as empty");
                    progress.send_replace(Progress::Closed(reason));
                } else {
                    warn!(kind = K::KIND.name(), %error, "the watch broke; it is tried again");
                }
                tokio::time::sleep(pause).await;
            }
        }
    }
}

fn take<K: Kept>(state: &mut State, event: Event<Guarded<K>>) -> Vec<Key> {
    match event {
        Event::Apply(object) | Event::InitApply(object) => state.told(object),
        Event::Delete(object) => {
            let change = K::store_mut(state).told_gone(object.object.meta());
            state.follow(change)
        }
        Event::Init => {
            K::store_mut(state).list_begins();
            Vec::new()
        }
        Event::InitDone => {
            let changes = K::store_mut(state).list_ends();
            changes.into_iter().flat_map(|change| state.follow(Some(change))).collect()
        }
    }
}

/// Whether the API server does not let us look, or has nothing to look at.
pub(crate) fn closed(error: &watcher::Error) -> Option<String> {
    let (watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error)) = error else {
        return None;
    };
    let status = crate::error::status(error)?;
    matches!(status.code, 403 | 404).then(|| status.message.clone())
}
