//! The bursts, drains and silences of `main.rs` at full length.

#![expect(clippy::print_stdout, reason = "measured figures belong in the output of a test run")]

mod costs;
mod drain;
mod in_flight;
mod measure;
mod new_cluster;
mod people;
mod rest;
mod schedules;
mod ticks;
mod turns;
mod witness;

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use api::{NonAdminBackup, NonAdminRestore};
use e2e::load::{LoadKind, Meter, at_rest, bring, finished_backups};
use e2e::{Nacre, TestCluster};

use measure::{ATTEMPTS, SLACK, TIMEOUT, against_a_bare_client, crowded};
use witness::Witness;

const MANY: usize = 1000;

/// Ticks, a drain that takes a while, a restart when all is settled, and then all go.
async fn and_then<K: LoadKind + Send + 'static>(test_cluster: &TestCluster, nacre: Nacre) -> Result<()> {
    let witness = Witness::of::<K>(&test_cluster.bed).await?;
    ticks::write_to_one::<K>(test_cluster, &nacre).await?;
    drain::shows_at_once::<K>(test_cluster, MANY).await?;
    witness.testify(MANY)?;
    let nacre = rest::of_a_restart(test_cluster, nacre).await?;
    rest::after_all::<K>(test_cluster, &nacre, MANY).await
}

/// Holding requests back costs little where Velero is fast.
#[tokio::test(flavor = "multi_thread")]
async fn in_turn_and_all_at_once_take_about_as_long() -> Result<()> {
    let mut ratio = f64::INFINITY;
    for _ in 0..ATTEMPTS {
        ratio = ratio.min(turns::with_a_fast_velero(MANY).await?);
        if ratio <= SLACK {
            return Ok(());
        }
    }
    bail!("{ratio:.2} times what a bare client needs, after {ATTEMPTS} attempts")
}

/// What the default of `queue.inFlight` goes by: a real Velero is as busy with it as if it had everything at once.
#[tokio::test(flavor = "multi_thread")]
async fn in_turn_keeps_a_real_velero_as_busy_as_all_at_once() -> Result<()> {
    let [all_at_once, by_default, one_at_a_time] = in_flight::with_a_real_velero().await?;
    let ratio = |took: Duration| took.as_secs_f64() / all_at_once.as_secs_f64();
    println!(
        "in turn by default takes {:.2} times as long as all at once, one at a time {:.2} times",
        ratio(by_default),
        ratio(one_at_a_time)
    );
    // A pause of Velero's lasts up to two seconds, and how many there are is chance.
    ensure!(ratio(by_default) <= 1.5, "{by_default:?} in turn, {all_at_once:?} all at once");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_backups_from_the_first_to_the_last() -> Result<()> {
    let mut ratio = f64::INFINITY;
    for _ in 0..ATTEMPTS {
        let test_cluster = crowded().await?;
        let nacre;
        (nacre, ratio) = against_a_bare_client::<NonAdminBackup>(&test_cluster, MANY).await?;
        if ratio < SLACK {
            return and_then::<NonAdminBackup>(&test_cluster, nacre).await;
        }
    }
    bail!("{ratio:.2} times what a bare client needs, after {ATTEMPTS} attempts")
}

/// A machine that is busy with something else only ever makes it worse.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_of_twenty_people_take_no_longer_because_they_are_recorded() -> Result<()> {
    let mut ratio = f64::INFINITY;
    for _ in 0..ATTEMPTS {
        ratio = ratio.min(people::who_are_recorded(MANY).await?);
        if ratio <= 1.02 {
            return Ok(());
        }
    }
    bail!("{ratio:.3} times as long as without a record of who asks, after {ATTEMPTS} attempts")
}

#[tokio::test(flavor = "multi_thread")]
async fn five_thousand_schedules_that_wait_cost_nothing() -> Result<()> {
    schedules::idle(5000, Duration::from_mins(2)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_schedules_due_at_once_start_spread() -> Result<()> {
    schedules::due_at_once(500, 60).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_restores_from_the_first_to_the_last() -> Result<()> {
    let mut ratio = f64::INFINITY;
    for _ in 0..ATTEMPTS {
        let test_cluster = crowded().await?;
        let nacre = test_cluster.start_nacre().await?;
        finished_backups(&test_cluster, TIMEOUT).await?;
        // Events are rate-limited.
        Meter::start(&test_cluster, &nacre).await?.until_quiet(TIMEOUT).await?;
        nacre.process.kill().await?;
        let nacre;
        (nacre, ratio) = against_a_bare_client::<NonAdminRestore>(&test_cluster, MANY).await?;
        if ratio < SLACK {
            return and_then::<NonAdminRestore>(&test_cluster, nacre).await;
        }
    }
    bail!("{ratio:.2} times what a bare client needs, after {ATTEMPTS} attempts")
}

/// Every Secret is looked at twice a minute, Velero writes down its looks, and nacre does next to nothing.
#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_locations_at_rest_cost_next_to_nothing() -> Result<()> {
    let test_cluster = TestCluster::build_with_idle_velero().await?;
    let nacre = test_cluster.start_nacre().await?;
    let mut meter = Meter::start(&test_cluster, &nacre).await?;
    let took = bring(&mut meter, 500, rest::TIMEOUT).await?.all()?;
    println!("500 locations handed over in {:.1} s", took.as_secs_f64());
    let rest = at_rest(&test_cluster, &nacre, Duration::from_mins(1), rest::TIMEOUT).await?;
    let share = rest.cost.cpu_seconds / rest.watched.as_secs_f64();
    println!("idle: {:.2} % of a core, {} writes", share * 100.0, rest.cost.total());
    ensure!(rest.cost.total() + rest.cost.events == 0, "{:#?}", rest.cost.writes);
    ensure!(share < 0.02, "{:.2} % of a core", share * 100.0);
    Ok(())
}
