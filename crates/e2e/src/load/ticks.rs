//! Progress of one among many.

use std::time::Duration;

use anyhow::{Context, Result};
use kube::api::ListParams;
use kube::{Api, Resource};
use serde_json::json;

use super::{Asked, Meter, Reached, velero_says};
use crate::House;

/// How often progress is made.
const TICKS: usize = 10;

/// One that Velero works on while the others wait.
pub struct Ticker<K: Asked> {
    objects: Api<K::Velero>,
    object: String,
    requests: Api<K>,
    /// The namespace of its request.
    pub namespace: String,
    /// The name of its request.
    pub request: String,
}

impl<K: Asked + Send + 'static> Ticker<K> {
    /// Velero takes up one of them, and its request shows it.
    pub async fn begin(house: &House, patience: Duration) -> Result<Self> {
        let objects = house.admin::<K::Velero>().await?;
        let first = objects.list(&ListParams::default().limit(1)).await?.items.remove(0);
        let object = first.meta().name.clone().context("a name")?;
        let owner = first.meta().annotations.clone().unwrap_or_default();
        let [namespace, request] = K::ORIGIN.map(|key| owner[key].clone());
        let requests = Api::<K>::namespaced(house.bed.client().await?, &namespace);
        let ticker = Self { objects, object, requests, namespace, request };
        velero_says(
            &ticker.objects,
            &ticker.object,
            json!({"phase": "InProgress", "progress": {K::ITEMS: 1}}),
        )
        .await?;
        ticker.shows(1, patience).await?;
        Ok(ticker)
    }

    async fn shows(&self, items: usize, within: Duration) -> Result<()> {
        let shown = |request: Option<&K>| (request?.velero()["progress"][K::ITEMS] == items).then_some(());
        bed::wait_until("the tick to be shown", within, self.requests.clone(), &self.request, shown).await
    }

    /// Velero says ten times how far it is, each time once the request shows what was said before.
    pub async fn tick(&self, meter: &Meter<'_>, patience: Duration) -> Result<Reached> {
        for tick in 1..=TICKS {
            velero_says(&self.objects, &self.object, json!({"progress": {K::ITEMS: tick * 10}})).await?;
            let left = patience.saturating_sub(meter.elapsed());
            if self.shows(tick * 10, left).await.is_err() {
                return Ok(Reached { done: tick - 1, of: TICKS, took: meter.elapsed() });
            }
        }
        Ok(Reached { done: TICKS, of: TICKS, took: meter.elapsed() })
    }
}
