//! The periodic job that updates the queue positions in the status of waiting requests.

use std::sync::Arc;
use std::time::Duration;

use engine::{Cluster, Leadership};
use jiff::Timestamp;
use planner::refresh::Publisher;
use tokio::time::{MissedTickBehavior, interval};

/// Enqueues the requests with the most outdated position, once per second.
pub(crate) async fn keep_fresh(cluster: Arc<Cluster>, leadership: Leadership) {
    let mut pace = interval(Duration::from_secs(1));
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut publisher = Publisher::default();
    loop {
        pace.tick().await;
        leadership.until_leader().await;
        let look = cluster.look();
        let keys = publisher.next(&look, look.waiting(), Timestamp::now());
        drop(look);
        if !keys.is_empty() {
            cluster.publish_positions(keys);
        }
    }
}
