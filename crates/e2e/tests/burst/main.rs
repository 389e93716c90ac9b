//! Many requests at once, against what a bare client needs for the same writes; then progress ticks and a drain. It is a
//! program of its own, and tells one story at a time, so that nothing else runs beside what it measures. `long.rs` tells
//! the same at full length.

#![expect(clippy::print_stdout, reason = "measured figures belong in the output of a test run")]

mod drain;
mod measure;
mod rest;
mod ticks;
mod witness;

use anyhow::{Result, bail};
use api::{NonAdminBackup, NonAdminRestore};
use e2e::load::{Meter, burst, sample};
use e2e::{House, Nacre};

use measure::{ATTEMPTS, PATIENCE, SLACK, against_a_bare_client, crowded};
use witness::Witness;

/// A thousand backups, fewer restores of them, a restart, and restores that go: one cluster for all of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_at_once_cost_little_more_than_their_writes_and_nothing_at_rest() -> Result<()> {
    let mut ratio = f64::INFINITY;
    for _ in 0..ATTEMPTS {
        let house = crowded().await?;
        let nacre;
        (nacre, ratio) = against_a_bare_client::<NonAdminBackup>(&house, 1000).await?;
        if ratio < SLACK {
            ticks::write_to_one::<NonAdminBackup>(&house, &nacre).await?;
            drain::shows_at_once::<NonAdminBackup>(&house, 100).await?;
            let nacre = restores(&house, nacre).await?;
            let nacre = rest::of_a_restart(&house, nacre).await?;
            return rest::after_all::<NonAdminRestore>(&house, &nacre, 200).await;
        }
    }
    bail!("{ratio:.2} times what a bare client needs, after {ATTEMPTS} attempts")
}

/// Restores, watched from the first to the last, and nacre is killed in between: nobody is sent back.
async fn restores(house: &House, nacre: Nacre) -> Result<Nacre> {
    sample::<NonAdminRestore>(&house.bed).await?;
    let witness = Witness::of::<NonAdminRestore>(&house.bed).await?;
    let mut meter = Meter::start(house, &nacre).await?;
    burst::<NonAdminRestore>(&mut meter, 200, PATIENCE).await?.all()?;
    nacre.process.kill().await?;
    let nacre = house.start_nacre().await?;
    ticks::write_to_one::<NonAdminRestore>(house, &nacre).await?;
    drain::shows_at_once::<NonAdminRestore>(house, 100).await?;
    witness.testify(200)?;
    Ok(nacre)
}
