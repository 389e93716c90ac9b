//! Progress of one among many.

use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::load::{LoadKind, Meter, Ticker};
use e2e::{Nacre, TestCluster};
use kube::Resource;

/// A tick is shown at once, or at any rate within this on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(2);

/// Ten progress ticks of one that runs among many that wait: ten writes to its request, and to others no more than the
/// queue's budget allows.
pub(crate) async fn write_to_one<K: LoadKind + Send + 'static>(
    test_cluster: &TestCluster,
    nacre: &Nacre,
) -> Result<()> {
    let ticker = Ticker::<K>::begin(test_cluster, TIMEOUT).await?;
    let mut meter = Meter::start(test_cluster, nacre).await?;
    let took = ticker.tick(&meter, TIMEOUT).await?.all()?;
    let cost = meter.cost().await?;
    let place = (format!("{}/status", K::plural(&())), ticker.namespace.clone(), ticker.request.clone());
    let own = cost.objects.get(&place).copied().unwrap_or_default();
    let others = cost.total() - own;
    println!(
        "ten ticks of a {}: {own} writes to its request, {others} to others; {:.2} s of CPU",
        K::Velero::kind(&()),
        cost.cpu_seconds
    );
    ensure!(own == 10, "{:#?}", cost.writes);
    ensure!(others <= (usize::try_from(took.as_secs())? + 1) * 10, "{others} in {took:?}");
    ensure!(cost.cpu_seconds < 0.5, "{} s of CPU", cost.cpu_seconds);
    Ok(())
}
