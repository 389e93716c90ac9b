//! Progress of one among many.

use std::time::Duration;

use anyhow::{Context, Result};
use kube::api::ListParams;
use kube::{Api, Resource};
use serde_json::json;

use super::{LoadKind, Meter, Reached, velero_says};
use crate::TestCluster;

/// How often progress is made.
const TICKS: usize = 10;

/// One that Velero works on while the others wait.
pub struct Ticker<K: LoadKind> {
    objects: Api<K::Velero>,
    object: String,
    requests: Api<K>,
    /// The namespace of its request.
    pub namespace: String,
    /// The name of its request.
    pub request: String,
}

impl<K: LoadKind + Send + 'static> Ticker<K> {
    /// Velero takes up one of them, and its request shows it.
    pub async fn begin(test_cluster: &TestCluster, timeout: Duration) -> Result<Self> {
        let objects = test_cluster.admin::<K::Velero>().await?;
        let first = objects.list(&ListParams::default().limit(1)).await?.items.remove(0);
        let object = first.meta().name.clone().context("a name")?;
        let owner = first.meta().annotations.clone().unwrap_or_default();
        let [namespace, request] = K::ORIGIN.map(|key| owner[key].clone());
        let requests = Api::<K>::namespaced(test_cluster.bed.client().await?, &namespace);
        let ticker = Self { objects, object, requests, namespace, request };
        velero_says(
            &ticker.objects,
            &ticker.object,
            json!({"phase": "InProgress", "progress": {K::ITEMS: 1}}),
        )
        .await?;
        ticker.shows(1, timeout).await?;
        Ok(ticker)
    }

    async fn shows(&self, items: usize, within: Duration) -> Result<()> {
        let shown = |request: Option<&K>| (request?.velero()["progress"][K::ITEMS] == items).then_some(());
        bed::wait_until("the tick to be shown", within, self.requests.clone(), &self.request, shown).await
    }

    /// Velero says ten times how far it is, each time once the request shows what was said before.
    pub async fn tick(&self, meter: &Meter<'_>, timeout: Duration) -> Result<Reached> {
        for tick in 1..=TICKS {
            velero_says(&self.objects, &self.object, json!({"progress": {K::ITEMS: tick * 10}})).await?;
            let left = timeout.saturating_sub(meter.elapsed());
            if self.shows(tick * 10, left).await.is_err() {
                return Ok(Reached { done: tick - 1, of: TICKS, took: meter.elapsed() });
            }
        }
        Ok(Reached { done: TICKS, of: TICKS, took: meter.elapsed() })
    }
}
