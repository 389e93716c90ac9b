//! Data overwritten in place, while its pod runs: a plain restore reports that it brought nothing back, and one command
//! brings it back.

use std::time::Duration;

use anyhow::{Result, ensure};

use crate::cluster;

const BYTES: u64 = 8 << 20;
/// nacre reads them once the restore is over.
const SOON: Duration = Duration::from_mins(1);
/// The reason of the condition, and the state of each claim.
const OUTCOME: &str =
    "jsonpath={.status.conditions[?(@.type=='DataRestored')].reason} {.status.claims[*].state}";

#[tokio::test]
async fn a_restore_over_a_claim_that_exists_is_not_called_complete() -> Result<()> {
    let Some(cluster) = cluster().await? else { return Ok(()) };
    let shop = cluster.tenant("kept", "kim").await?;
    shop.start_deployment("db", BYTES).await?;
    shop.cli(&["backup", "create", "good", "--wait"]).await?.with_code(0)?;
    shop.overwrite_data("db").await?;
    let overwritten = shop.checksum("db").await?;

    let said =
        shop.cli(&["restore", "create", "back", "--from-backup", "good", "--wait"]).await?.with_code(3)?;
    ensure!(said.contains("volume data of claim \"db\" was NOT restored: the claim exists"), "{said}");
    ensure!(said.contains("kubectl nacre restore create --from-backup good --replace"), "{said}");
    ensure!(!said.contains("back: complete"), "{said}");
    let found = shop.kubectl(&["get", "nonadminrestore", "back", "-o", OUTCOME]).await?.ok()?;
    assert_eq!(found.trim(), "ClaimsKept Kept");
    // What Velero warned of is on the page, without any flag, and the exit code says that something is missing.
    bed::eventually("Velero's warnings", SOON, async || {
        let page = shop.cli(&["restore", "describe", "back"]).await?.with_code(3)?;
        ensure!(page.contains("\nWarnings:\n") && page.contains("already exists"), "{page}");
        Ok(())
    })
    .await?;
    // And so it is.
    assert_eq!(shop.checksum("db").await?, overwritten);
    Ok(())
}

#[tokio::test]
async fn data_that_was_overwritten_in_place_comes_back_with_one_command() -> Result<()> {
    let Some(cluster) = cluster().await? else { return Ok(()) };
    let shop = cluster.tenant("ransom", "rita").await?;
    shop.start_deployment("db", BYTES).await?;
    let written = shop.checksum("db").await?;
    shop.cli(&["backup", "create", "good", "--wait"]).await?.with_code(0)?;
    shop.overwrite_data("db").await?;
    assert_ne!(shop.checksum("db").await?, written);

    // A claim that is deleted uses up its volume.
    cluster.site.add_volumes(1).await?;
    shop.cli(&["restore", "create", "--from-backup", "good", "--replace", "--yes"]).await?.with_code(0)?;
    assert_eq!(shop.checksum("db").await?, written);
    Ok(())
}

#[tokio::test]
async fn a_restore_over_a_claim_without_its_pod_says_that_newer_files_stay() -> Result<()> {
    let Some(cluster) = cluster().await? else { return Ok(()) };
    let shop = cluster.tenant("mixed", "mia").await?;
    shop.start_deployment("db", BYTES).await?;
    shop.cli(&["backup", "create", "good", "--wait"]).await?.with_code(0)?;
    shop.shell("db", "echo newer > /data/newer && sync").await?;
    shop.kubectl(&["delete", "deployment", "db", "--wait", "--cascade=foreground", "--timeout=2m"])
        .await?
        .ok()?;

    let back = ["restore", "create", "back", "--from-backup", "good", "--wait"];
    let said = shop.cli(&back).await?.with_code(3)?;
    ensure!(said.contains("volume data of claim \"db\" was written over what was there"), "{said}");
    ensure!(said.contains("--replace"), "{said}");
    let found = shop.kubectl(&["get", "nonadminrestore", "back", "-o", OUTCOME]).await?.ok()?;
    assert_eq!(found.trim(), "ClaimsMixed Mixed");
    // And so it is.
    assert_eq!(shop.shell("db", "cat /data/newer").await?.trim(), "newer");
    Ok(())
}
