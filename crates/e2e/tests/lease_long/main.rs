//! The contest for the lease, fifty times over: too long for every day.

use anyhow::{Context, Result};
use e2e::House;

#[tokio::test(flavor = "multi_thread")]
async fn of_two_installs_started_together_fifty_times_never_do_both_act() -> Result<()> {
    let house = House::build().await?;
    house.bed.velero_stop()?;
    house.install_second().await?;
    for round in 0..50 {
        house.contest(round).await.with_context(|| format!("round {round}"))?;
    }
    Ok(())
}
