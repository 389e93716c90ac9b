//! A tenant's volume: backed up, lost, restored, compared by checksum.

use anyhow::Result;

use crate::cluster;

const BYTES: u64 = 8 << 20;

#[tokio::test]
async fn a_tenant_gets_a_lost_volume_back_from_platform_storage() -> Result<()> {
    let Some(cluster) = cluster().await? else { return Ok(()) };
    let shop = cluster.tenant("shop", "ada").await?;
    shop.start_pod("single", BYTES).await?;
    shop.start_deployment("db", BYTES).await?;
    let (single, db) = (shop.checksum("single").await?, shop.checksum("db").await?);

    let backup = ["backup", "create", "one", "--default-volumes-to-fs-backup", "--wait"];
    shop.cli(&backup).await?.with_code(0)?;
    // Neither bytes nor objects are there any more.
    shop.lose_namespace_contents().await?;
    let left = shop.kubectl(&["get", "pods,pvc", "--output=name"]).await?.ok()?;
    assert_eq!(left, "");

    shop.cli(&["restore", "create", "back", "--from-backup", "one", "--wait"]).await?.with_code(0)?;
    assert_eq!(shop.checksum("single").await?, single);
    assert_eq!(shop.checksum("db").await?, db);

    // The comparison can fail.
    shop.overwrite_data("db").await?;
    assert_ne!(shop.checksum("db").await?, db);
    Ok(())
}
