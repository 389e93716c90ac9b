//! Volumes are saved by default, and a backup without the data of a claim says so.

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::cluster;

const BYTES: u64 = 8 << 20;

/// The README's own commands, with no flag about volumes.
#[tokio::test]
async fn a_backup_without_any_flag_brings_the_data_back() -> Result<()> {
    let Some(cluster) = cluster().await? else { return Ok(()) };
    let shop = cluster.tenant("by-default", "dora").await?;
    shop.start_deployment("db", BYTES).await?;
    let written = shop.checksum("db").await?;

    let said = shop.cli(&["backup", "create", "daily", "--wait"]).await?.with_code(0)?;
    ensure!(said.contains("complete"), "{said}");
    let columns =
        "jsonpath={.status.conditions[?(@.type=='DataProtected')].reason} {.status.claims[*].state}";
    let found = shop.kubectl(&["get", "nonadminbackup", "daily", "-o", columns]).await?.ok()?;
    assert_eq!(found.trim(), "AllClaimsSaved Saved");
    // Only the claim: the pod's other volumes are not worth saving.
    let counts = "jsonpath={.status.fileSystemPodVolumeBackups}";
    let counts = shop.kubectl(&["get", "nonadminbackup", "daily", "-o", counts]).await?.ok()?;
    let counts: Value = serde_json::from_str(&counts)?;
    assert_eq!((&counts["total"], &counts["completed"]), (&Value::from(1), &Value::from(1)));

    shop.lose_namespace_contents().await?;
    shop.cli(&["restore", "create", "--from-backup", "daily", "--wait"]).await?.with_code(0)?;
    assert_eq!(shop.checksum("db").await?, written);
    Ok(())
}

#[tokio::test]
async fn a_claim_that_no_pod_mounts_is_reported_with_exit_code_3() -> Result<()> {
    let Some(cluster) = cluster().await? else { return Ok(()) };
    let shop = cluster.tenant("unmounted", "uma").await?;
    shop.start_deployment("db", BYTES).await?;
    shop.start_pod("idle", BYTES).await?;
    // The claim keeps its volume and its data.
    shop.kubectl(&["delete", "pod", "idle", "--now"]).await?.ok()?;

    let said = shop.cli(&["backup", "create", "daily", "--wait"]).await?.with_code(3)?;
    ensure!(said.contains("volume data of claim \"idle\" is NOT in this backup"), "{said}");
    ensure!(!said.contains("daily: complete"), "{said}");
    shop.cli(&["backup", "describe", "daily"]).await?.with_code(3)?;
    let status = shop.cli(&["status"]).await?.with_code(3)?;
    ensure!(status.contains("Not protected     daily: volume data of claim \"idle\""), "{status}");
    let columns = "jsonpath={.status.conditions[?(@.type=='DataProtected')].status}";
    let found = shop.kubectl(&["get", "nonadminbackup", "daily", "-o", columns]).await?.ok()?;
    assert_eq!(found.trim(), "False");
    Ok(())
}
