//! nacre in pods on a real node, and volumes with real bytes. Needs Linux and root: `make node`, `make long`.
//!
//! One cluster serves all stories, each story has a namespace of its own. A story calls [`cluster`], which is `None` where
//! no node can run. Stories run in parallel, so one that disturbs nacre or Velero calls [`alone`] instead. Whatever it
//! leaves behind, also if it fails, is tidied up before the next story: their order makes no difference.
//!
//! `make stories KUBECONFIG=...` runs those that disturb nobody in a cluster that exists.

mod arriving;
mod bombed;
mod choices;
mod console;
mod damaged;
mod demo;
mod disturbed;
mod evicted;
mod failover;
mod fenced;
mod finished;
mod flood;
mod given_up;
mod heavy;
mod hooks;
mod installed;
mod interrupted;
mod moved;
mod on_oadp;
mod overwritten;
mod own_bucket;
mod refused_imports;
mod relocated;
mod replaced;
mod roundtrip;
mod saved_by_default;
mod stuck;
mod upgraded;
mod verify;
mod volumes;
mod ways;

use std::io::Write as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

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

/// Prints past the test runner, which keeps to itself what a passing test prints.
fn say(text: &str) -> Result<()> {
    Ok(writeln!(std::io::stderr(), "{text}")?)
}

/// Held for reading by stories next to each other, for writing by one that wants to be alone.
fn turns() -> &'static RwLock<()> {
    static TURNS: OnceLock<RwLock<()>> = OnceLock::new();
    TURNS.get_or_init(RwLock::default)
}

/// A story was alone on the cluster, and nobody has tidied up since.
static DISTURBED: AtomicBool = AtomicBool::new(false);

/// The cluster, shared with other stories.
async fn cluster() -> Result<Option<Shared<RwLockReadGuard<'static, ()>>>> {
    if let Some(cluster) = existing().await? {
        return Ok(Some(Shared { cluster, _guard: turns().read().await }));
    }
    let Some(cluster) = started().await? else { return Ok(None) };
    loop {
        let guard = turns().read().await;
        if !DISTURBED.load(Ordering::Acquire) {
            return Ok(Some(Shared { cluster, _guard: guard }));
        }
        drop(guard);
        drop(tidied(cluster).await?);
    }
}

/// The same for what only a node of the bed can do.
async fn cluster_of_bed() -> Result<Option<Shared<RwLockReadGuard<'static, ()>>>> {
    if NodeCluster::can_run()? { cluster().await } else { Ok(None) }
}

/// The cluster, with no other story on it meanwhile.
async fn alone() -> Result<Option<Shared<RwLockWriteGuard<'static, ()>>>> {
    let Some(cluster) = started().await? else { return Ok(None) };
    let guard = tidied(cluster).await?;
    DISTURBED.store(true, Ordering::Release);
    Ok(Some(Shared { cluster, _guard: guard }))
}

/// The cluster as a story expects it, with nobody else on it.
async fn tidied(cluster: &NodeCluster) -> Result<RwLockWriteGuard<'static, ()>> {
    let guard = turns().write().await;
    if DISTURBED.load(Ordering::Acquire) {
        cluster.tidy_up().await?;
        DISTURBED.store(false, Ordering::Release);
    }
    Ok(guard)
}

async fn started() -> Result<Option<&'static NodeCluster>> {
    static CLUSTER: OnceCell<NodeCluster> = OnceCell::const_new();
    if !NodeCluster::can_run()? {
        return Ok(None);
    }
    CLUSTER.get_or_try_init(NodeCluster::start).await.map(Some)
}

/// The cluster that exists, if one was named.
async fn existing() -> Result<Option<&'static NodeCluster>> {
    static CLUSTER: OnceCell<Option<NodeCluster>> = OnceCell::const_new();
    Ok(CLUSTER.get_or_try_init(NodeCluster::existing).await?.as_ref())
}
