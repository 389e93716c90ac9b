//! A restart on a settled cluster, which costs next to nothing; then everything is deleted.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::load::{Contender, LoadKind, Meter, delete, restart};
use e2e::{Nacre, TestCluster};

pub(crate) const TIMEOUT: Duration = Duration::from_mins(2);

/// A start where everything is settled is a matter of seconds, and writes nothing.
pub(crate) async fn of_a_restart(test_cluster: &TestCluster, nacre: Nacre) -> Result<Nacre> {
    nacre.process.kill().await?;
    let (nacre, took, cost) = restart(&Contender::Nacre, test_cluster, TIMEOUT).await?;
    let took = took.context("it did not come to rest")?;
    println!("ready again after {took:.1?}, {} writes", cost.total());
    ensure!(cost.total() + cost.events == 0, "{:#?}", cost.writes);
    ensure!(took < Duration::from_secs(5), "{took:?}");
    Ok(nacre)
}

/// All of them go, by two writes each: Velero's object, and the finalizer.
pub(crate) async fn after_all<K: LoadKind>(
    test_cluster: &TestCluster,
    nacre: &Nacre,
    many: usize,
) -> Result<()> {
    let mut meter = Meter::start(test_cluster, nacre).await?;
    let took = delete::<K>(&mut meter, many, TIMEOUT).await?.all()?;
    let cost = meter.cost().await?;
    println!("{many} x {} gone in {took:.1?}, {} writes", K::kind(&()), cost.total());
    ensure!(cost.conflicts == 0 && cost.total() <= many * 201 / 100, "{:#?}", cost.writes);
    Ok(())
}
