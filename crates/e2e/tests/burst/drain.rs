//! Velero works through all of them.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use e2e::House;
use kube::api::ListParams;
use kube::{Api, Resource};
use serde_json::{Value, json};

use crate::asked::{Asked, velero_says};
use crate::measure::each;
use crate::witness::Witness;

/// How Velero says that it is done.
pub(crate) fn done() -> Value {
    json!({"phase": "Completed", "completionTimestamp": "2026-01-01T00:00:00Z"})
}

/// Velero ends all that are unfinished in the order in which they were made, the last so many at 20 a second: the last
/// request shows it within two seconds, all show that they are done, and nobody was sent back on the way.
pub(crate) async fn shows_at_once<K: Asked + Send + 'static>(house: &House, last: usize) -> Result<()> {
    let (bed, kind) = (&house.bed, K::Velero::kind(&()));
    let witness = Witness::of::<K>(bed).await?;
    let objects = house.admin::<K::Velero>().await?;
    let mut all = objects.list(&ListParams::default()).await?.items;
    // What Velero has not touched has the version it was made with.
    all.sort_by_key(|object| {
        object.meta().resource_version.as_deref().and_then(|text| text.parse::<u64>().ok())
    });
    let names: Vec<_> =
        all.iter().map(|object| object.meta().name.clone().context("a name")).collect::<Result<_>>()?;
    let (first, paced) = names.split_at(names.len().saturating_sub(last));
    each(first.len(), |number| velero_says(&objects, &first[number], done())).await?;

    let requests = Api::<K>::all(bed.client().await?);
    let unfinished = async |many: usize| -> Result<(), String> {
        let shown = requests.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        let ended = shown.items.iter().filter(|request| request.velero()["phase"] == "Completed");
        let ended = ended.filter(|request| request.position() == Some(0)).count();
        if ended >= many { Ok(()) } else { Err(format!("{ended} of {many} show the end")) }
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
    let ended = Instant::now();
    bed::eventually("every request to show the end", Duration::from_secs(10), async || {
        unfinished(names.len()).await
    })
    .await?;
    let lag = ended.elapsed();
    println!(
        "drained {} x {kind}, the last {last} at 20 a second; the last request showed it within {lag:.1?}",
        names.len()
    );
    ensure!(lag < Duration::from_secs(2), "{lag:?}");
    witness.testify(paced.len())
}
