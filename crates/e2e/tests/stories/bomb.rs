//! A backup that is small in its bucket and huge once it is unpacked.

use anyhow::{Result, ensure};
use bed::Bed;
use e2e::TestCluster;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

use crate::forged::{genuine_backup, tenant_storage};
use crate::tarball::Tarball;

const DISK: usize = 64 << 20;

/// A11
#[tokio::test(flavor = "multi_thread")]
async fn a11_a_bomb_ends_at_the_limit_of_veleros_disk_and_others_restore_after_it() -> Result<()> {
    let cluster = TestCluster::build_on(Bed::builder().with_velero().velero_disk(DISK)).await?;
    let _nacre = cluster.start_nacre().await?;
    let (shop, farm) = (cluster.tenant("shop", "ada").await?, cluster.tenant("farm", "fay").await?);
    tenant_storage(&cluster, &shop).await?;
    farm.create::<ConfigMap>("crops", json!({"data": {"rye": "1"}})).await?;
    farm.back_up("daily").await?;
    assert_eq!(farm.backup_ends("daily").await?, "Completed");
    farm.delete::<ConfigMap>("crops").await?;

    let (_, contents) = genuine_backup(&cluster, &shop).await?;
    let tarball = Tarball::open(&contents)?;
    tarball.zeros("resources/configmaps/namespaces/shop/bomb.json", 4 * DISK as u64)?;
    tarball.save()?;
    ensure!(std::fs::metadata(&contents)?.len() < 2 << 20, "it is small in the bucket");
    shop.restore("back", "daily").await?;
    assert_eq!(shop.restore_ends("back").await?, "PartiallyFailed");

    // Kubernetes starts a Velero that is beyond its limit again, with an empty disk.
    cluster.bed.velero_stop()?;
    cluster.bed.velero_start().await?;
    farm.restore("back", "daily").await?;
    assert_eq!(farm.restore_ends("back").await?, "Completed");
    farm.api::<ConfigMap>().get("crops").await?;
    Ok(())
}
