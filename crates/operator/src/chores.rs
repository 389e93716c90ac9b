//! What is done now and then, beyond what events tell: looking for backups in storage, and collecting leftovers.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use engine::{Cluster, Executor, Leadership};
use planner::{Action, Event, Key, Plan, gc, sync};
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

/// How often to see whether a chore is due: periods can change while we run.
const LOOK: Duration = Duration::from_secs(1);
/// More than this is not remembered, and then told again.
const MOST_TOLD: usize = 10_000;

/// What was told already about backups that are looked at again and again.
#[derive(Debug, Default)]
pub(crate) struct Chores {
    told: Mutex<HashSet<(Key, &'static str)>>,
}

impl Chores {
    /// Whether this was not told before.
    pub(crate) fn is_news(&self, key: &Key, event: &Event) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() >= MOST_TOLD {
            told.clear();
        }
        told.insert((key.clone(), event.reason))
    }
}

/// Looks through all backups, as often as the policy says, so that one that no event told about is found too.
pub(crate) async fn synchronise(cluster: Arc<Cluster>, leadership: Leadership) {
    let mut last = Instant::now();
    loop {
        sleep(LOOK).await;
        leadership.granted().await;
        let look = cluster.look();
        let period = look.policy("").and_then(|policy| policy.sync.every());
        if period.is_none_or(|period| last.elapsed() < period) {
            continue;
        }
        let keys = sync::candidates(&*look);
        drop(look);
        last = Instant::now();
        cluster.wake(keys);
    }
}

/// Removes what has outlived its owner, at once and then as often as the policy says. One that fails does not keep the
/// others from going.
pub(crate) async fn collect(cluster: Arc<Cluster>, executor: Executor, leadership: Leadership) {
    let mut last: Option<Instant> = None;
    loop {
        sleep(LOOK).await;
        leadership.granted().await;
        let leftovers = {
            let look = cluster.look();
            let period = look.policy("").and_then(|policy| policy.garbage_collection.every());
            if period.is_none_or(|period| last.is_some_and(|last| last.elapsed() < period)) {
                continue;
            }
            gc::leftovers(&*look)
        };
        last = Some(Instant::now());
        for target in leftovers {
            info!(kind = target.kind.name(), name = target.name, "removing what has outlived its owner");
            let about = Key::new(target.kind, &target.namespace, &target.name);
            let plan = Plan::done().then(Action::Delete(target));
            if let Err(failure) = executor.execute(&about, &plan).await {
                warn!(%failure, "a leftover stays until the next collection");
            }
        }
    }
}
