//! What a story leaves running goes when the next one begins. Restored pods would fill a small node: they keep the CPU that
//! Velero's init container asked for.

use std::time::Duration;

use anyhow::{Result, ensure};
use bed::eventually;

use crate::cluster;

const PATIENCE: Duration = Duration::from_mins(4);
const BYTES: u64 = 1 << 10;

#[tokio::test]
async fn the_pods_of_a_story_that_is_over_go_when_the_next_one_begins() -> Result<()> {
    let Some(cluster) = cluster().await? else { return Ok(()) };
    let over = cluster.tenant("over", "otto").await?;
    over.start_deployment("db", BYTES).await?;
    over.start_pod("single", BYTES).await?;
    let namespace = over.namespace.clone();
    drop(over);
    let next = cluster.tenant("after", "otto").await?;
    next.start_pod("single", BYTES).await?;

    eventually("the pods to be gone", PATIENCE, async || {
        let pods =
            cluster.site.kubectl(&["get", "pods", "--namespace", &namespace, "--output=name"]).await?.ok()?;
        ensure!(pods.is_empty(), "{pods}");
        Ok(())
    })
    .await?;
    next.checksum("single").await.map(drop)
}
