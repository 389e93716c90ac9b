//! Many requests at once, against what a bare client needs for the same writes; then progress ticks and a drain. It is
//! a program of its own, and runs one story at a time, so that nothing else disturbs the measurement. `long.rs` tells
//! the same at full length.

#![expect(clippy::print_stdout, reason = "measured figures belong in the output of a test run")]

mod drain;
mod measure;
mod people;
mod rest;
#[expect(dead_code, reason = "what is due at once takes minutes, and is measured by long.rs")]
mod schedules;
mod ticks;
mod witness;

use anyhow::{Result, bail};
use api::{NonAdminBackup, NonAdminRestore};
use e2e::load::{Meter, burst, sample};
use e2e::{Nacre, TestCluster};

use measure::{ATTEMPTS, SLACK, TIMEOUT, against_a_bare_client, crowded};
use witness::Witness;

/// A thousand backups, fewer restores of them, a restart, and restores that go: one cluster for all of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_at_once_cost_little_more_than_their_writes_and_nothing_at_rest() -> Result<()> {
    let mut ratio = f64::INFINITY;
    for _ in 0..ATTEMPTS {
        let test_cluster = crowded().await?;
        let nacre;
        (nacre, ratio) = against_a_bare_client::<NonAdminBackup>(&test_cluster, 1000).await?;
        if ratio < SLACK {
            ticks::write_to_one::<NonAdminBackup>(&test_cluster, &nacre).await?;
            drain::shows_at_once::<NonAdminBackup>(&test_cluster, 100).await?;
            let nacre = restores(&test_cluster, nacre).await?;
            let nacre = rest::of_a_restart(&test_cluster, nacre).await?;
            return rest::after_all::<NonAdminRestore>(&test_cluster, &nacre, 200).await;
        }
    }
    bail!("{ratio:.2} times what a bare client needs, after {ATTEMPTS} attempts")
}

/// The times of so few say little; what is counted does.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_of_who_asks_saves_a_write_and_costs_no_review_in_the_administrators_storage() -> Result<()>
{
    people::who_are_recorded(100).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn schedules_that_wait_cost_nothing() -> Result<()> {
    schedules::idle(500, std::time::Duration::from_secs(20)).await
}

/// Restores, watched from the first to the last, and nacre is killed in between: nobody is sent back.
async fn restores(test_cluster: &TestCluster, nacre: Nacre) -> Result<Nacre> {
    sample::<NonAdminRestore>(&test_cluster.bed).await?;
    let witness = Witness::of::<NonAdminRestore>(&test_cluster.bed).await?;
    let mut meter = Meter::start(test_cluster, &nacre).await?;
    burst::<NonAdminRestore>(&mut meter, 200, TIMEOUT).await?.all()?;
    nacre.process.kill().await?;
    let nacre = test_cluster.start_nacre().await?;
    ticks::write_to_one::<NonAdminRestore>(test_cluster, &nacre).await?;
    drain::shows_at_once::<NonAdminRestore>(test_cluster, 100).await?;
    witness.testify(200)?;
    Ok(nacre)
}
