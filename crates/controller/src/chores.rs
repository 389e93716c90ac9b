//! Periodic jobs, independent of watch events: importing backups found in storage, and garbage collection.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use api::Kind;
use engine::{Cluster, Executor, Leadership, chain};
use planner::{Action, Event, Key, Plan, Target, backup, gc, restore, sync};
use serde_json::Value;
use tokio::time::{Instant, sleep};
use tracing::{debug, info, warn};

use crate::metrics::Metrics;

/// How often to check whether a periodic job is due; the policy may change its period at any time.
const INTERVAL: Duration = Duration::from_secs(1);
/// How often to look whether something holds up Velero.
const BLOCKED: Duration = Duration::from_secs(30);
/// How often to look whether Velero pauses.
const PAUSE: Duration = Duration::from_secs(1);
/// Maximum number of remembered Events; beyond it, Events may be repeated.
const MOST_LOGGED: usize = 10_000;

/// Events that were already recorded for backups that are decided about repeatedly.
#[derive(Debug, Default)]
pub(crate) struct Chores {
    reported: Mutex<HashSet<(Key, &'static str)>>,
}

impl Chores {
    /// Whether this Event was not recorded before.
    pub(crate) fn is_news(&self, key: &Key, event: &Event) -> bool {
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        if reported.len() >= MOST_LOGGED {
            reported.clear();
        }
        reported.insert((key.clone(), event.reason))
    }
}

/// Enqueues all Velero Backups at the period of the policy, so that one missed by the watch is imported too.
pub(crate) async fn synchronise(cluster: Arc<Cluster>, leadership: Leadership) {
    let mut last = Instant::now();
    loop {
        sleep(INTERVAL).await;
        leadership.until_leader().await;
        let look = cluster.look();
        let period = look.policy("").and_then(|policy| policy.sync.every());
        if period.is_none_or(|period| last.elapsed() < period) {
            continue;
        }
        let keys = sync::candidates(&look);
        drop(look);
        last = Instant::now();
        cluster.enqueue(keys);
    }
}

/// Deletes objects whose owner is gone: at start, then at the period of the policy. A failed delete does not stop the
/// others.
pub(crate) async fn collect(cluster: Arc<Cluster>, executor: Executor, leadership: Leadership) {
    let mut last: Option<Instant> = None;
    loop {
        sleep(INTERVAL).await;
        leadership.until_leader().await;
        let (leftovers, outlived, ended) = {
            let look = cluster.look();
            let period = look.policy("").and_then(|policy| policy.garbage_collection.every());
            if period.is_none_or(|period| last.is_some_and(|last| last.elapsed() < period)) {
                continue;
            }
            (gc::leftovers(&look), gc::outlived(&look), gc::ended(&look))
        };
        last = Some(Instant::now());
        let delete =
            |target: Target| (Action::Delete(target.clone()), target, "deleting object whose owner is gone");
        let patch = |(target, body): (Target, Value), why| (Action::Patch(target.clone(), body), target, why);
        let gone = leftovers.into_iter().map(delete);
        let outlived =
            outlived.into_iter().map(|one| patch(one, "moving the expiration, since the schedule is gone"));
        let ended = ended.into_iter().map(|one| patch(one, "labelling a Restore that ended"));
        for (action, target, why) in gone.chain(outlived).chain(ended) {
            let (kind, name) = (target.kind.name(), &target.name);
            info!(kind, name, "garbage collection: {why}");
            let about = Key::new(target.kind, &target.namespace, name);
            let plan = Plan::done().then(action);
            if let Err(failure) = executor.execute(&about, &plan).await {
                warn!(failure = %chain(&failure), "garbage collection: write failed; retrying at the next collection");
            }
        }
    }
}

/// Keeps one tenant's storage from holding up Velero for all: ends the Restores from it that Velero does not finish, and
/// sets Velero's queue of backups going again where it stands still.
pub(crate) async fn unblock_velero(
    cluster: Arc<Cluster>,
    executor: Executor,
    leadership: Leadership,
    metrics: Metrics,
) {
    loop {
        sleep(BLOCKED).await;
        leadership.until_leader().await;
        let (unfinished, blocking) = {
            let look = cluster.look();
            (restore::unfinished(&look), backup::standstill(&look))
        };
        if let Some((target, body)) = unfinished {
            let about = Key::new(target.kind, &target.namespace, &target.name);
            warn!(name = target.name, "restore: Velero does not finish it: ending it");
            if is_written(&executor, &about, Action::Patch(target, body)).await {
                metrics.gave_up();
            }
        }
        if let Some((name, action)) = blocking {
            let about = Key::new(Kind::Backup, cluster.look().admin_namespace(), &name);
            // What stands in for a backup that is gone is made before, and deleted afterwards.
            let is_try = matches!(action, Action::Patch(..));
            if is_try {
                warn!(
                    name,
                    "backup: Velero has others in its queue and begins none: making it look at this one"
                );
            }
            if is_written(&executor, &about, action).await && is_try {
                metrics.restarted_queue();
            }
        }
    }
}

/// Keeps Velero from pausing while backups are in its queue.
pub(crate) async fn keep_velero_busy(cluster: Arc<Cluster>, executor: Executor, leadership: Leadership) {
    loop {
        sleep(PAUSE).await;
        leadership.until_leader().await;
        let paused = backup::paused(&cluster.look());
        if let Some((name, action)) = paused {
            let about = Key::new(Kind::Backup, cluster.look().admin_namespace(), &name);
            debug!(name, "backup: Velero has some in its queue and begins none: queueing the last one again");
            is_written(&executor, &about, action).await;
        }
    }
}

async fn is_written(executor: &Executor, about: &Key, action: Action) -> bool {
    let written = executor.execute(about, &Plan::done().then(action)).await;
    if let Err(failure) = &written {
        warn!(name = about.name, failure = %chain(failure), "Velero is held up: write failed; retrying in 30s");
    }
    written.is_ok()
}
