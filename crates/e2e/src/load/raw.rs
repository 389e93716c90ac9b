//! What a bare client needs for the same writes: the most that the API server gives.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bed::Bed;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::{LoadKind, Sample, done, each, make_namespaces, namespace, numbered};
use crate::VELERO;

/// Where a bare client writes.
const SERIES: &str = "raw";

fn object(number: usize) -> String {
    format!("raw-{number}")
}

/// Writes for each of so many, with a client for requests and one for Velero's objects, and says how long that took.
async fn timed<K: LoadKind, F: Future<Output = Result<()>>>(
    bed: &Bed,
    many: usize,
    step: impl Fn(usize, Api<K>, Api<K::Velero>) -> F,
) -> Result<Duration> {
    let client = bed.client().await?;
    let began = Instant::now();
    each(many, |number| {
        let requests = Api::namespaced(client.clone(), &namespace(SERIES, number));
        step(number, requests, Api::namespaced(client.clone(), VELERO))
    })
    .await?;
    Ok(began.elapsed())
}

/// Four writes for each from a bare client: submit, finalizer, Velero's object, status.
pub async fn create<K: LoadKind>(bed: &Bed, sample: &Sample, many: usize) -> Result<Duration> {
    make_namespaces(bed, SERIES).await?;
    timed::<K, _>(bed, many, |number, requests, objects| async move {
        let request = K::request(&numbered(number), number)?;
        let made = requests.create(&PostParams::default(), &request).await?;
        let name = made.meta().name.clone().context("a name")?;
        let held = json!({"metadata": {"finalizers": ["nacre.dev/raw"]}});
        requests.patch(&name, &PatchParams::default(), &Patch::Merge(held)).await?;
        objects.create(&PostParams::default(), &serde_json::from_value(sample.numbered(number))?).await?;
        let status = json!({"status": sample.status});
        requests.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await?;
        Ok(())
    })
    .await
}

/// Two writes for each: Velero's status, and the same in the request.
pub async fn drain<K: LoadKind>(bed: &Bed, many: usize) -> Result<Duration> {
    timed::<K, _>(bed, many, |number, requests, objects| async move {
        end::<K>(number, &requests, &objects).await
    })
    .await
}

async fn end<K: LoadKind>(number: usize, requests: &Api<K>, objects: &Api<K::Velero>) -> Result<()> {
    let said = Patch::Merge(json!({ "status": done() }));
    objects.patch(&object(number), &PatchParams::default(), &said).await?;
    let shown = json!({"status": {"queueInfo": {"estimatedQueuePosition": 0}, K::SHOWN: {"status": done()}}});
    requests.patch_status(&numbered(number), &PatchParams::default(), &Patch::Merge(shown)).await?;
    Ok(())
}

impl Sample {
    /// Velero's object under a name of its own.
    fn numbered(&self, number: usize) -> Value {
        let mut velero = self.velero.clone();
        velero["metadata"]["name"] = json!(object(number));
        velero
    }
}

/// What one costs that waits for its turn, where the API server puts the finalizer on. Five writes for each: submit, the
/// status that it waits, Velero's object, Velero's status, and the status that shows both.
pub async fn in_turn<K: LoadKind>(bed: &Bed, sample: &Sample, many: usize) -> Result<Duration> {
    make_namespaces(bed, SERIES).await?;
    timed::<K, _>(bed, many, |number, requests, objects| async move {
        let request = K::request(&numbered(number), number)?;
        let made = requests.create(&PostParams::default(), &request).await?;
        let name = made.meta().name.clone().context("a name")?;
        let status = json!({"status": sample.status});
        requests.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await?;
        objects.create(&PostParams::default(), &serde_json::from_value(sample.numbered(number))?).await?;
        end::<K>(number, &requests, &objects).await
    })
    .await
}

/// Three writes for each, after which all is gone: delete, Velero's object, finalizer.
pub async fn delete<K: LoadKind>(bed: &Bed, many: usize) -> Result<Duration> {
    timed::<K, _>(bed, many, |number, requests, objects| async move {
        let name = numbered(number);
        requests.delete(&name, &DeleteParams::default()).await?;
        objects.delete(&object(number), &DeleteParams::default()).await?;
        let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        requests.patch(&name, &PatchParams::default(), &free).await?;
        Ok(())
    })
    .await
}
