//! What it costs that the API server records who asks, and that nacre checks what they are permitted.

use std::time::Duration;

use anyhow::{Result, ensure};
use api::NonAdminBackup;
use e2e::load::{Destination, Meter, NAMESPACES, People, delete, drain, in_order};
use e2e::{Nacre, TestCluster};

use super::measure::{TIMEOUT, crowded};

/// How often both are measured, in turn.
const ROUNDS: usize = 3;

/// Into the administrators' storage nothing is asked, and a request is two writes instead of three; into storage of their
/// own each person is asked about once, however many requests there are. Returns how many times as long it takes.
pub(crate) async fn who_are_recorded(many: usize) -> Result<f64> {
    let test_cluster = crowded().await?;
    test_cluster.admission().await?;
    let people = People::settle(&test_cluster).await?;
    let nacre = test_cluster.start_nacre().await?;
    let (mut without, mut with) = (Duration::MAX, Duration::MAX);
    for round in 0..ROUNDS {
        without = without.min(burst(&test_cluster, &nacre, &people, (many, 3)).await?);
        test_cluster.record_requesters().await?;
        with = with.min(burst(&test_cluster, &nacre, &people, (many, 2)).await?);
        if round + 1 < ROUNDS {
            test_cluster.forget_requesters().await?;
        }
    }
    let ratio = with.as_secs_f64() / without.as_secs_f64();
    println!(
        "{many} backups of {NAMESPACES} people: {without:.2?} without a record of who asks, {with:.2?} with it ({ratio:.3} times)"
    );
    own_storage(&test_cluster, &nacre, &people, many).await?;
    Ok(ratio)
}

/// So many backups with so many writes each, deleted again with two each.
async fn burst(
    test_cluster: &TestCluster,
    nacre: &Nacre,
    people: &People,
    (many, writes): (usize, usize),
) -> Result<Duration> {
    let mut meter = Meter::start(test_cluster, nacre).await?;
    let took = people.burst(&mut meter, many, Destination::Platform, TIMEOUT).await?.all()?;
    meter.until_quiet(TIMEOUT).await?;
    let cost = meter.cost().await?;
    // What was used is recorded for all namespaces together, now and then.
    ensure!(cost.total() <= many * writes + many / 100 + 2, "{} writes: {:#?}", cost.total(), cost.writes);
    ensure!(
        cost.reviews == 0 && cost.conflicts == 0,
        "{} reviews, {} conflicts",
        cost.reviews,
        cost.conflicts
    );
    // While others go, those that wait in the queue would show a new position.
    let names = in_order::<NonAdminBackup>(test_cluster).await?;
    let mut meter = Meter::start(test_cluster, nacre).await?;
    drain::<NonAdminBackup>(&mut meter, &names, many, TIMEOUT).await?.all()?;
    meter.until_quiet(TIMEOUT).await?;
    let mut meter = Meter::start(test_cluster, nacre).await?;
    delete::<NonAdminBackup>(&mut meter, many, TIMEOUT).await?.all()?;
    meter.until_quiet(TIMEOUT).await?;
    let gone = meter.cost().await?;
    ensure!(gone.total() <= many * 2 + many / 100 + 2, "{} writes: {:#?}", gone.total(), gone.writes);
    println!(
        "{many} backups of {NAMESPACES} people: {took:.2?}, {} writes, {} reviews, {:.2} s of CPU; deleted with {} writes",
        cost.total(),
        cost.reviews,
        cost.cpu_seconds,
        gone.total()
    );
    Ok(took)
}

async fn own_storage(test_cluster: &TestCluster, nacre: &Nacre, people: &People, many: usize) -> Result<()> {
    let mut meter = Meter::start(test_cluster, nacre).await?;
    test_cluster.give_own_storage(&mut meter, TIMEOUT).await?;
    meter.until_quiet(TIMEOUT).await?;
    let mut meter = Meter::start(test_cluster, nacre).await?;
    let took = people.burst(&mut meter, many, Destination::Own, TIMEOUT).await?.all()?;
    let cost = meter.cost().await?;
    println!(
        "{many} backups of {NAMESPACES} people into storage of their own: {took:.2?}, {} writes, {} reviews, {:.2} s of CPU",
        cost.total(),
        cost.reviews,
        cost.cpu_seconds
    );
    // About forty kinds, two verbs, and the wildcard before: for each person once a minute.
    let minutes = usize::try_from(took.as_secs() / 60)? + 1;
    ensure!(cost.reviews > 0 && cost.reviews <= NAMESPACES * 120 * minutes, "{} reviews", cost.reviews);
    Ok(())
}
