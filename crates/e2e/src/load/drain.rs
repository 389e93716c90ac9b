//! Velero works through all of them.

use std::time::Duration;

use anyhow::{Context, Result};
use kube::Resource;
use kube::api::ListParams;

use super::{LoadKind, Meter, Reached, done, each, velero_says};
use crate::TestCluster;

/// Velero's objects in the order in which they were made.
pub async fn in_order<K: LoadKind>(test_cluster: &TestCluster) -> Result<Vec<String>> {
    let mut all = test_cluster.admin::<K::Velero>().await?.list(&ListParams::default()).await?.items;
    // What Velero has not touched has the version it was made with.
    all.sort_by_key(|object| {
        object.meta().resource_version.as_deref().and_then(|text| text.parse::<u64>().ok())
    });
    all.iter().map(|object| object.meta().name.clone().context("a name")).collect()
}

/// Whether a request shows that Velero is done with it, and that it waits no more.
pub fn ended<K: LoadKind>(request: &K) -> bool {
    request.velero()["phase"] == "Completed" && request.position() == Some(0)
}

/// Velero ends all of these as fast as the API server takes it, and so many requests come to show it.
pub async fn drain<K: LoadKind>(
    meter: &mut Meter<'_>,
    names: &[String],
    many: usize,
    timeout: Duration,
) -> Result<Reached> {
    let objects = meter.test_cluster.admin::<K::Velero>().await?;
    each(names.len(), |number| velero_says(&objects, &names[number], done())).await?;
    meter.until_shown::<K>(many, timeout, ended).await
}
