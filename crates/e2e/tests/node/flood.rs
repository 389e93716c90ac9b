//! The queue on a node, with volumes: nobody waits behind somebody else's many.

use std::time::Duration;

use anyhow::{Result, ensure};

use crate::{alone, say};

const BYTES: u64 = 4 << 20;
/// So many are asked for at once, of which Velero would take more than half an hour to do all.
const MANY: usize = 500;
const PATIENCE: Duration = Duration::from_mins(3);

#[tokio::test]
async fn one_backup_starts_within_two_of_somebody_elses_many() -> Result<()> {
    let Some(cluster) = alone().await? else { return Ok(()) };
    let (flood, other) = (cluster.tenant("flood", "ada").await?, cluster.tenant("drop", "bob").await?);
    flood.start_pod("data", BYTES).await?;
    other.start_pod("data", BYTES).await?;
    for number in 0..MANY {
        flood.request_backup(&format!("b{number:03}")).await?;
    }
    flood.backup_created("b000", PATIENCE).await?;

    let before = flood.velero_backups().await?.len();
    other.request_backup("only").await?;
    other.backup_created("only", PATIENCE).await?;
    let after = flood.velero_backups().await?.len();
    other.cli(&["backup", "wait", "only", "--timeout=5m"]).await?.with_code(0)?;
    let given = flood.velero_backups().await?.len();
    say(&format!(
        "of {MANY}, Velero had {before} when another tenant asked, and {after} when it had that one too"
    ))?;
    ensure!(after <= before + 2, "{before} before, {after} after");
    ensure!(given < MANY, "the flood was over by then");
    Ok(())
}
