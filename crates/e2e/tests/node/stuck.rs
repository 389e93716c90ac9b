//! A restore whose pod goes away: nacre cancels its volumes, and the neighbour's restore goes on.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use e2e::NodeTenant;
use jiff::{SignedDuration, Timestamp};

use crate::{alone, say};

const BYTES: u64 = 1 << 20;
/// After so long nacre takes a pod for gone.
const GONE: SignedDuration = SignedDuration::from_secs(10);
/// What a neighbour may wait from then on.
const WITHIN: SignedDuration = SignedDuration::from_mins(1);
const OUTCOME: &str =
    "jsonpath={.status.conditions[?(@.type=='DataRestored')].reason} {.status.claims[*].state}";

/// How long a Backup or Restore waited from its request until Velero began with it.
pub(crate) async fn waited(tenant: &NodeTenant<'_>, kind: &str, name: &str) -> Result<SignedDuration> {
    let started = format!("{{.status.velero{kind}.status.startTimestamp}}");
    let times = format!("jsonpath={{.metadata.creationTimestamp}} {started}");
    let resource = format!("nonadmin{}", kind.to_lowercase());
    let times = tenant.kubectl(&["get", &resource, name, "-o", &times]).await?.ok()?;
    let (asked, started) = times.trim().split_once(' ').context("two times")?;
    Ok(started.parse::<Timestamp>()?.duration_since(asked.parse()?))
}

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
    cluster.site.add_volumes(1).await?;
    neighbour.lose_namespace_contents().await?;

    shop.cli(&["restore", "create", "back", "--from-backup", "good"]).await?.with_code(0)?;
    let began = Instant::now();
    let back = ["restore", "create", "back", "--from-backup", "good", "--wait", "--timeout", "5m"];
    neighbour.cli(&back).await?.with_code(0)?;
    ensure!(began.elapsed() < Duration::from_mins(3), "the neighbour waited {:?}", began.elapsed());
    assert_eq!(neighbour.checksum("db").await?, written);
    let waited = waited(&neighbour, "Restore", "back").await?;
    say(&format!("next to a restore whose pod is gone, another one started after {waited:#}"))?;
    ensure!(waited < GONE + WITHIN, "it started after {waited:#}");

    shop.cli(&["restore", "wait", "back", "--timeout", "2m"]).await?.with_code(3)?;
    let found = shop.kubectl(&["get", "nonadminrestore", "back", "-o", OUTCOME]).await?.ok()?;
    assert_eq!(found.trim(), "VolumesCancelled Cancelled");
    cluster.set_policy("").await
}
