//! Velero works through all of them.

use std::time::Duration;

use anyhow::{Context, Result};
use kube::Resource;
use kube::api::ListParams;

use super::{Asked, Meter, Reached, done, each, velero_says};
use crate::House;

/// Velero's objects in the order in which they were made.
pub async fn in_order<K: Asked>(house: &House) -> Result<Vec<String>> {
    let mut all = house.admin::<K::Velero>().await?.list(&ListParams::default()).await?.items;
    // What Velero has not touched has the version it was made with.
    all.sort_by_key(|object| {
        object.meta().resource_version.as_deref().and_then(|text| text.parse::<u64>().ok())
    });
    all.iter().map(|object| object.meta().name.clone().context("a name")).collect()
}

/// Whether a request shows that Velero is done with it, and that it waits no more.
pub fn ended<K: Asked>(request: &K) -> bool {
    request.velero()["phase"] == "Completed" && request.position() == Some(0)
}

/// Velero ends all of these as fast as the API server takes it, and so many requests come to show it.
pub async fn drain<K: Asked>(
    meter: &mut Meter<'_>,
    names: &[String],
    many: usize,
    patience: Duration,
) -> Result<Reached> {
    let objects = meter.house.admin::<K::Velero>().await?;
    each(names.len(), |number| velero_says(&objects, &names[number], done())).await?;
    meter.until_shown::<K>(many, patience, ended).await
}
