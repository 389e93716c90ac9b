//! The chore that keeps other tenants' queue positions fresh.

use std::sync::Arc;
use std::time::Duration;

use engine::{Cluster, Work};
use planner::refresh;
use planner::view::View;
use tokio::time::{MissedTickBehavior, interval};

/// Writes a second, in all.
const BUDGET: usize = 10;

/// Wakes the requests whose shown position is most out of date, so many a second, while positions change.
pub(crate) async fn keep_fresh(cluster: Arc<Cluster>, work: Arc<Work>) {
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
        work.wake(keys);
    }
}
