//! A burst, and what it may cost.

use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::load::{LoadKind, Meter, burst, make_namespaces, raw, sample};
use e2e::{Nacre, TestCluster};

/// A machine that is busy with something else for a moment only ever makes a measurement worse: the best of three counts.
pub(crate) const ATTEMPTS: usize = 3;
/// How much longer than the bare client it may take.
pub(crate) const SLACK: f64 = 1.3;
/// How long anything may take on a busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_mins(2);

/// A cluster with tenants in it, and with Velero standing still.
pub(crate) async fn crowded() -> Result<TestCluster> {
    let test_cluster = TestCluster::build_with_idle_velero().await?;
    test_cluster.hand_over_at_once().await?;
    make_namespaces(&test_cluster.bed, e2e::load::SHOPS).await?;
    Ok(test_cluster)
}

/// One burst: prints its cost, and requires what does not depend on the machine's speed. Returns how many times as long
/// it took as the bare client.
async fn measured<K: LoadKind>(
    test_cluster: &TestCluster,
    nacre: &Nacre,
    many: usize,
    raw: Duration,
) -> Result<f64> {
    let mut meter = Meter::start(test_cluster, nacre).await?;
    let took = burst::<K>(&mut meter, many, TIMEOUT).await?.all()?;
    let cost = meter.cost().await?;
    let ratio = took.as_secs_f64() / raw.as_secs_f64();
    println!(
        "{many} x {}: {took:.1?} until all were Created, {raw:.1?} for a bare client ({ratio:.2} times); \
         {} writes, {} of them conflicts, {} Events; {:.2} s of CPU, {} MiB at most",
        K::kind(&()),
        cost.total(),
        cost.conflicts,
        cost.events,
        cost.cpu_seconds,
        cost.peak_rss >> 20,
    );
    ensure!(cost.conflicts == 0, "{:#?}", cost.writes);
    ensure!(cost.total() <= many * 301 / 100, "{} writes: {:#?}", cost.total(), cost.writes);
    ensure!(cost.peak_rss < 40 << 20, "{} bytes", cost.peak_rss);
    Ok(ratio)
}

/// A bare client and then nacre do the same, one after the other on one cluster.
pub(crate) async fn against_a_bare_client<K: LoadKind + Send + 'static>(
    test_cluster: &TestCluster,
    many: usize,
) -> Result<(Nacre, f64)> {
    let nacre = test_cluster.start_nacre().await?;
    let sample = sample::<K>(&test_cluster.bed).await?;
    nacre.process.kill().await?;
    let raw = raw::create::<K>(&test_cluster.bed, &sample, many).await?;
    raw::delete::<K>(&test_cluster.bed, many).await?;
    let nacre = test_cluster.start_nacre().await?;
    let ratio = measured::<K>(test_cluster, &nacre, many, raw).await?;
    Ok((nacre, ratio))
}
