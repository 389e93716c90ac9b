//! The chore that keeps other tenants' queue positions fresh.

use std::sync::Arc;
use std::time::Duration;

use engine::{Cluster, Leadership};
use planner::refresh;
use tokio::time::{MissedTickBehavior, interval};

/// Writes a second, in all.
const BUDGET: usize = 10;
/// So few may wait that each position is kept exact.
const FEW: usize = 20;
/// Comings and goings a second that count as a flood.
const POURING: u64 = 40;
/// How many seconds a flood may hold positions back.
const PATIENCE: u32 = 30;

/// Wakes the requests whose shown position is most out of date, so many a second, while positions change. While requests
/// pour in, those come first.
pub(crate) async fn keep_fresh(cluster: Arc<Cluster>, leadership: Leadership) {
    let mut pace = interval(Duration::from_secs(1));
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut settled_at = None;
    let mut seen = 0;
    let mut held_back = 0;
    loop {
        pace.tick().await;
        leadership.granted().await;
        let look = cluster.look();
        let queues = [look.backup_queue(), look.restore_queue()];
        let changes: u64 = queues.iter().map(|queue| queue.changes()).sum();
        let (new, waiting) = (changes - seen, queues.iter().map(|queue| queue.in_line()).sum::<usize>());
        seen = changes;
        let pouring = waiting > FEW && (new > POURING || look.waiting() > 0);
        if settled_at == Some(changes) || (pouring && held_back < PATIENCE) {
            held_back += u32::from(pouring);
            continue;
        }
        held_back = 0;
        let keys = refresh::out_of_date(&*look, BUDGET);
        drop(look);
        if keys.is_empty() {
            settled_at = Some(changes);
        }
        cluster.publish_positions(keys);
    }
}
