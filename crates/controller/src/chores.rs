//! Periodic jobs, independent of watch events: importing backups found in storage, and garbage collection.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use engine::{Cluster, Executor, Leadership, chain};
use planner::{Action, Event, Key, Plan, gc, sync};
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

/// How often to check whether a periodic job is due; the policy may change its period at any time.
const INTERVAL: Duration = Duration::from_secs(1);
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
        let (leftovers, outlived) = {
            let look = cluster.look();
            let period = look.policy("").and_then(|policy| policy.garbage_collection.every());
            if period.is_none_or(|period| last.is_some_and(|last| last.elapsed() < period)) {
                continue;
            }
            (gc::leftovers(&look), gc::outlived(&look))
        };
        last = Some(Instant::now());
        let gone = leftovers.into_iter().map(|target| (target, None));
        for (target, change) in gone.chain(outlived.into_iter().map(|(target, body)| (target, Some(body)))) {
            let (kind, name) = (target.kind.name(), &target.name);
            let about = Key::new(target.kind, &target.namespace, name);
            let action = match change {
                None => {
                    info!(kind, name, "garbage collection: deleting object whose owner is gone");
                    Action::Delete(target)
                }
                Some(body) => {
                    info!(
                        kind,
                        name, "garbage collection: moving the expiration, since the schedule is gone"
                    );
                    Action::Patch(target, body)
                }
            };
            let plan = Plan::done().then(action);
            if let Err(failure) = executor.execute(&about, &plan).await {
                warn!(failure = %chain(&failure), "garbage collection: write failed; retrying at the next collection");
            }
        }
    }
}
