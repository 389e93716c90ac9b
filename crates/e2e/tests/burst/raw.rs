//! What a bare client needs for the same writes.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bed::Bed;
use e2e::VELERO;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::asked::{Asked, Sample, make_namespaces, namespace};
use crate::measure::each;

/// Four writes for each from a bare client: submit, finalizer, Velero's object, status. All is removed afterwards.
pub(crate) async fn ceiling<K: Asked>(bed: &Bed, sample: &Sample, many: usize) -> Result<Duration> {
    make_namespaces(bed, "raw").await?;
    let client = bed.client().await?;
    let began = Instant::now();
    each(many, |number| {
        let requests = Api::<K>::namespaced(client.clone(), &namespace("raw", number));
        let objects = Api::<K::Velero>::namespaced(client.clone(), VELERO);
        async move {
            let request = K::request(&format!("b{number}"), number)?;
            let made = requests.create(&PostParams::default(), &request).await?;
            let name = made.meta().name.clone().context("a name")?;
            let held = json!({"metadata": {"finalizers": ["nacre.dev/raw"]}});
            requests.patch(&name, &PatchParams::default(), &Patch::Merge(held)).await?;
            let mut velero = sample.velero.clone();
            velero["metadata"]["name"] = json!(format!("raw-{number}"));
            objects.create(&PostParams::default(), &serde_json::from_value(velero)?).await?;
            let status = json!({"status": sample.status});
            requests.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await?;
            Ok(())
        }
    })
    .await?;
    let took = began.elapsed();
    each(many, |number| {
        let requests = Api::<K>::namespaced(client.clone(), &namespace("raw", number));
        let objects = Api::<K::Velero>::namespaced(client.clone(), VELERO);
        async move {
            let name = format!("b{number}");
            let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
            requests.patch(&name, &PatchParams::default(), &free).await?;
            requests.delete(&name, &DeleteParams::default()).await?;
            objects.delete(&format!("raw-{number}"), &DeleteParams::default()).await?;
            Ok(())
        }
    })
    .await?;
    Ok(took)
}
