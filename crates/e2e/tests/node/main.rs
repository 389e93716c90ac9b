//! nacre in pods on a real node, and volumes with real bytes. Needs Linux and root: `make node`, `make long`.
//!
//! One cluster serves all stories, each story has a namespace of its own. A story calls [`cluster`], which is `None` where
//! no node can run. Stories run in parallel, so one that disturbs nacre or Velero calls [`alone`] instead.

mod demo;
mod disturbed;
mod failover;
mod installed;
mod overwritten;
mod roundtrip;
mod saved_by_default;
mod stuck;
mod verify;
mod volumes;

use std::sync::OnceLock;

use anyhow::Result;
use e2e::NodeCluster;
use tokio::sync::{OnceCell, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The cluster, and who works with it.
struct Shared<Guard> {
    cluster: &'static NodeCluster,
    _guard: Guard,
}

impl<Guard> std::ops::Deref for Shared<Guard> {
    type Target = NodeCluster;

    fn deref(&self) -> &NodeCluster {
        self.cluster
    }
}

/// Held for reading by stories next to each other, for writing by one that wants to be alone.
fn turns() -> &'static RwLock<()> {
    static TURNS: OnceLock<RwLock<()>> = OnceLock::new();
    TURNS.get_or_init(RwLock::default)
}

/// The cluster, shared with other stories.
async fn cluster() -> Result<Option<Shared<RwLockReadGuard<'static, ()>>>> {
    let cluster = started().await?;
    let guard = turns().read().await;
    Ok(cluster.map(|cluster| Shared { cluster, _guard: guard }))
}

/// The cluster, with no other story on it meanwhile.
async fn alone() -> Result<Option<Shared<RwLockWriteGuard<'static, ()>>>> {
    let cluster = started().await?;
    let guard = turns().write().await;
    Ok(cluster.map(|cluster| Shared { cluster, _guard: guard }))
}

async fn started() -> Result<Option<&'static NodeCluster>> {
    static CLUSTER: OnceCell<NodeCluster> = OnceCell::const_new();
    if !NodeCluster::can_run()? {
        return Ok(None);
    }
    CLUSTER.get_or_try_init(NodeCluster::start).await.map(Some)
}
