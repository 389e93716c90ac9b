//! The periodic job that updates the queue positions in the status of waiting requests.

use std::sync::Arc;
use std::time::Duration;

use engine::{Cluster, Leadership};
use planner::refresh;
use tokio::time::{MissedTickBehavior, interval};

/// Maximum number of writes per second.
const BUDGET: usize = 10;
/// Up to this many waiting requests, each position is kept exact.
const FEW: usize = 20;
/// Changes of the queue per second above which position updates are delayed.
const LARGE_BACKLOG: u64 = 40;
/// How many seconds position updates may be delayed.
const MAX_SKIPPED_ROUNDS: u32 = 30;

/// Enqueues the requests with the most outdated position, within the budget. New requests go first.
pub(crate) async fn keep_fresh(cluster: Arc<Cluster>, leadership: Leadership) {
    let mut pace = interval(Duration::from_secs(1));
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut settled_at = None;
    let mut seen = 0;
    let mut held_back = 0;
    loop {
        pace.tick().await;
        leadership.until_leader().await;
        let look = cluster.look();
        let queues = [look.backup_queue(), look.restore_queue()];
        let changes: u64 = queues.iter().map(|queue| queue.changes()).sum();
        let (new, waiting) = (changes - seen, queues.iter().map(|queue| queue.queue_length()).sum::<usize>());
        seen = changes;
        let pouring = waiting > FEW && (new > LARGE_BACKLOG || look.waiting() > 0);
        if settled_at == Some(changes) || (pouring && held_back < MAX_SKIPPED_ROUNDS) {
            held_back += u32::from(pouring);
            continue;
        }
        held_back = 0;
        let keys = refresh::out_of_date(&look, BUDGET);
        drop(look);
        if keys.is_empty() {
            settled_at = Some(changes);
        }
        cluster.publish_positions(keys);
    }
}
