//! The chore that keeps other tenants' queue positions fresh.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine::{Cluster, Work};
use planner::view::View;
use planner::{Key, refresh};
use tokio::time::{MissedTickBehavior, interval};

/// Writes a second, in all.
const BUDGET: usize = 10;

/// The requests whose position may be written at the next decision, though nothing else is new.
#[derive(Debug, Default)]
pub(crate) struct Due(Mutex<HashSet<Key>>);

impl Due {
    /// Whether it is this one's turn. It is then no more.
    pub(crate) fn take(&self, key: &Key) -> bool {
        self.lock().remove(key)
    }

    fn grant(&self, keys: &[Key]) {
        self.lock().extend(keys.iter().cloned());
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<Key>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes the requests whose shown position is most out of date, so many a second, while positions change.
pub(crate) async fn keep_fresh(cluster: Arc<Cluster>, work: Arc<Work>, due: Arc<Due>) {
    let mut pace = interval(Duration::from_secs(1));
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut settled_at = None;
    loop {
        pace.tick().await;
        let look = cluster.look();
        let changes = (look.backup_queue().changes(), look.restore_queue().changes());
        if settled_at == Some(changes) {
            continue;
        }
        let keys = refresh::out_of_date(&*look, BUDGET);
        drop(look);
        if keys.is_empty() {
            settled_at = Some(changes);
        }
        due.grant(&keys);
        work.wake(keys);
    }
}
