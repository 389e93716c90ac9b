//! A restore whose pod goes away: nacre cancels its volumes, and the neighbour's restore goes on.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::alone;

const BYTES: u64 = 1 << 20;
const OUTCOME: &str =
    "jsonpath={.status.conditions[?(@.type=='DataRestored')].reason} {.status.claims[*].state}";

/// The Deployment was scaled to zero since the backup: Velero creates the pod, and its ReplicaSet removes it at once. Velero
/// itself would wait for hours, and works on one restore at a time.
#[tokio::test]
async fn a_restore_whose_pod_is_gone_holds_nobody_up() -> Result<()> {
    let Some(cluster) = alone().await? else { return Ok(()) };
    cluster.set_policy("volumes: {podGone: 10s}").await?;
    let (shop, neighbour) = (cluster.tenant("stuck", "stan").await?, cluster.tenant("next", "nora").await?);
    shop.start_deployment("db", BYTES).await?;
    neighbour.start_deployment("db", BYTES).await?;
    let written = neighbour.checksum("db").await?;
    for tenant in [&shop, &neighbour] {
        tenant.cli(&["backup", "create", "good", "--wait"]).await?.with_code(0)?;
    }
    shop.kubectl(&["scale", "deployment", "db", "--replicas=0"]).await?.ok()?;
    shop.kubectl(&["wait", "--for=delete", "pod", "--selector=app=db", "--timeout=2m"]).await?.ok()?;
    shop.kubectl(&["delete", "persistentvolumeclaim", "db", "--wait", "--timeout=2m"]).await?.ok()?;
    cluster.node.add_volumes(1).await?;
    neighbour.lose_namespace_contents().await?;

    shop.cli(&["restore", "create", "back", "--from-backup", "good"]).await?.with_code(0)?;
    let began = Instant::now();
    let back = ["restore", "create", "back", "--from-backup", "good", "--wait", "--timeout", "5m"];
    neighbour.cli(&back).await?.with_code(0)?;
    ensure!(began.elapsed() < Duration::from_mins(3), "the neighbour waited {:?}", began.elapsed());
    assert_eq!(neighbour.checksum("db").await?, written);

    shop.cli(&["restore", "wait", "back", "--timeout", "2m"]).await?.with_code(3)?;
    let found = shop.kubectl(&["get", "nonadminrestore", "back", "-o", OUTCOME]).await?.ok()?;
    assert_eq!(found.trim(), "VolumesCancelled Cancelled");
    cluster.set_policy("").await
}
