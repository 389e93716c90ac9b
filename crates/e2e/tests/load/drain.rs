//! Velero works through all of them, the last at a pace that people can follow.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use e2e::TestCluster;
use e2e::load::{LoadKind, done, each, ended, in_order, velero_says};
use kube::api::ListParams;
use kube::{Api, Resource};

use crate::witness::Witness;

/// Velero ends all that are unfinished in the order in which they were made, the last so many at 20 a second: the last
/// request shows it within two seconds, all show that they are done, and nobody was sent back on the way.
pub(crate) async fn shows_at_once<K: LoadKind + Send + 'static>(
    test_cluster: &TestCluster,
    last: usize,
) -> Result<()> {
    let (bed, kind) = (&test_cluster.bed, K::Velero::kind(&()));
    let witness = Witness::of::<K>(bed).await?;
    let objects = test_cluster.admin::<K::Velero>().await?;
    let names = in_order::<K>(test_cluster).await?;
    let (first, paced) = names.split_at(names.len().saturating_sub(last));
    each(first.len(), |number| velero_says(&objects, &first[number], done())).await?;

    let requests = Api::<K>::all(bed.client().await?);
    let unfinished = async |many: usize| -> Result<(), String> {
        let shown = requests.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        let over = shown.items.iter().filter(|request| ended(*request)).count();
        if over >= many { Ok(()) } else { Err(format!("{over} of {many} show the end")) }
    };
    bed::eventually("the first to show the end", Duration::from_secs(30), async || {
        unfinished(first.len()).await
    })
    .await?;
    let mut pace = tokio::time::interval(Duration::from_millis(50));
    for name in paced {
        pace.tick().await;
        velero_says(&objects, name, done()).await?;
    }
    let since = Instant::now();
    bed::eventually("every request to show the end", Duration::from_secs(10), async || {
        unfinished(names.len()).await
    })
    .await?;
    let lag = since.elapsed();
    println!(
        "drained {} x {kind}, the last {last} at 20 a second; the last request showed it within {lag:.1?}",
        names.len()
    );
    ensure!(lag < Duration::from_secs(2), "{lag:?}");
    witness.testify(paced.len())
}
