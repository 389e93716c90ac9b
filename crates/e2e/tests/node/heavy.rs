//! Metadata of a backup that are larger than Velero's memory, in a tenant's bucket: the node ends Velero at each look at
//! the bucket, until administrators have it look at no tenant's. Part of `make long`.

use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bed::eventually;
use e2e::{NodeCluster, VELERO};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;

use crate::bombed::contents;
use crate::fenced::fence;
use crate::own_bucket::own_location;
use crate::{alone, say};

const PATIENCE: Duration = Duration::from_mins(10);
const LIMITS: &str = "--limits=memory=512Mi,ephemeral-storage=1Gi";
const HEAVY: u64 = 2 << 30;

/// How often Velero was ended since it needed more memory than it may have.
async fn ended(cluster: &NodeCluster) -> Result<i32> {
    let pods = Api::<Pod>::namespaced(cluster.site.client().await?, VELERO);
    let found = pods.list(&ListParams::default().labels("deploy=velero")).await?;
    let statuses = found.items.into_iter().filter_map(|pod| pod.status?.container_statuses).flatten();
    Ok(statuses
        .filter(|container| {
            let states = [&container.state, &container.last_state].into_iter().flatten();
            let mut ends = states.filter_map(|state| state.terminated.as_ref());
            ends.any(|end| end.reason.as_deref() == Some("OOMKilled"))
        })
        .map(|container| container.restart_count)
        .sum())
}

/// X8: own bucket: a backup whose metadata are larger than Velero's memory, so that Velero ends at each look at the bucket
/// planted: Velero imports from tenants' storage
#[tokio::test]
async fn x8_metadata_larger_than_veleros_memory_end_nobodys_work_where_velero_does_not_import() -> Result<()>
{
    let Some(cluster) = alone().await? else { return Ok(()) };
    let node = cluster.site.node()?;
    fence(&cluster).await?;
    node.kubectl(&["set", "resources", "deployment", "velero", "-n", VELERO, LIMITS]).await?.ok()?;
    node.kubectl(&["rollout", "status", "deployment/velero", "-n", VELERO, "--timeout=4m"]).await?.ok()?;
    let (shop, farm) = (cluster.tenant("heavy", "hedy").await?, cluster.tenant("light", "lea").await?);
    own_location(&shop, "heavy").await?;
    shop.cli(&["backup", "create", "one", "--storage-location", "mine", "--wait"]).await?.with_code(0)?;

    // The planted weakness, which is the default.
    let genuine = contents(&node.platform_bucket().with_file_name("heavy"))?;
    let backups = genuine.parent().and_then(Path::parent).context("the folder of all backups")?;
    let folder = backups.join("heavy-two-0b8d1a52-3c0f-4d8e-9f4e-1c2b3a4d5e6f");
    fs::create_dir_all(&folder)?;
    File::create(folder.join("velero-backup.json"))?.set_len(HEAVY)?;
    eventually("Velero to be ended again and again", PATIENCE, async || {
        let ended = ended(&cluster).await?;
        ensure!(ended >= 2, "{ended} times");
        Ok(())
    })
    .await?;

    let host =
        node.store_url().trim_start_matches("http://").split(':').next().unwrap_or_default().to_owned();
    cluster
        .set_policy(&format!(
            "storageLocations: {{requireApproval: false, endpoints: {{allow: ['{host}']}}, import: off}}"
        ))
        .await?;
    let start = std::time::Instant::now();
    farm.cli(&["backup", "create", "daily", "--wait", "--timeout=8m"]).await?.with_code(0)?;
    let before = ended(&cluster).await?;
    shop.cli(&["backup", "create", "three", "--storage-location", "mine", "--wait"]).await?.with_code(0)?;
    assert_eq!(ended(&cluster).await?, before, "Velero ends no more");
    say(&format!(
        "metadata of {HEAVY} bytes ended Velero {before} times; without imports a neighbour's backup was complete after {:.0?}",
        start.elapsed()
    ))
}
