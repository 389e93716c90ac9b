//! The queue as it is by default, with a Velero that ends whatever it is given at once.

use anyhow::{Result, ensure};
use api::NonAdminBackup;
use e2e::load::{Meter, raw, sample, turns};

use crate::measure::{TIMEOUT, crowded};

/// So many backups are given to Velero in turn. Returns how many times as long that takes as a bare client does for the same
/// writes, all at once.
pub(crate) async fn with_a_fast_velero(many: usize) -> Result<f64> {
    let test_cluster = crowded().await?;
    let nacre = test_cluster.start_nacre().await?;
    let sample = sample::<NonAdminBackup>(&test_cluster.bed).await?;
    nacre.process.kill().await?;
    let bare = raw::in_turn::<NonAdminBackup>(&test_cluster.bed, &sample, many).await?;
    raw::delete::<NonAdminBackup>(&test_cluster.bed, many).await?;
    test_cluster.queue_by_default().await?;
    // As it is installed: the API server records who asks, and puts the finalizer on.
    test_cluster.record_requesters().await?;
    let nacre = test_cluster.start_nacre().await?;
    let mut meter = Meter::start(&test_cluster, &nacre).await?;
    let took = turns::<NonAdminBackup>(&mut meter, many, TIMEOUT).await?.all()?;
    let cost = meter.cost().await?;
    let ratio = took.as_secs_f64() / bare.as_secs_f64();
    println!(
        "{many} in turn: {took:.1?} until all showed their end, {bare:.1?} for a bare client ({ratio:.2} times); {} writes, \
         {} of them conflicts; {:.2} s of CPU",
        cost.total(),
        cost.conflicts,
        cost.cpu_seconds,
    );
    ensure!(cost.conflicts == 0, "{:#?}", cost.writes);
    // Held back, handed over, ended; and positions of those that wait.
    ensure!(cost.total() <= many * 3 + 300, "{} writes: {:#?}", cost.total(), cost.writes);
    Ok(ratio)
}
