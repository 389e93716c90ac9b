//! What the fence costs: restores with it and without it, in turn, with many old Restores in the namespace.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use api::{RestoredFrom, labels, restore_name};
use e2e::{TestCluster, VELERO, at_length};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use super::cluster::Fenced;
use super::platform_backup;

/// Objects in the restore.
const OBJECTS: usize = 1000;
/// What one restore may take longer, as a part of what it takes without the fence.
const SLOWER: f64 = 0.05;
/// What clocks and other programs on the machine may make of it.
const NOISE: Duration = Duration::from_millis(500);

/// So many finished Restores of tenants, as they pile up in a month.
async fn old_restores(cluster: &TestCluster, many: usize) -> Result<()> {
    let restores = cluster.bed.velero_api("Restore").await?;
    futures::stream::iter(0..many)
        .map(|number| {
            let uid = format!("11111111-0000-4000-8000-{number:012}");
            let name = restore_name(RestoredFrom::PlatformStorage, ("old", &uid), ("back", &uid));
            let restore = json!({"apiVersion": "velero.io/v1", "kind": "Restore",
                "metadata": {"name": name, "namespace": VELERO, "labels": {labels::NAR_NACUUID: name}},
                "spec": {"backupName": "gone"}, "status": {"phase": "Completed"}});
            let restores = restores.clone();
            async move {
                restores.create(&PostParams::default(), &serde_json::from_value(restore)?).await?;
                anyhow::Ok(())
            }
        })
        .buffer_unordered(16)
        .try_collect()
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_of_a_thousand_objects_is_hardly_slower_behind_the_fence() -> Result<()> {
    let cluster = TestCluster::build().await?;
    cluster.bed.namespace("shop").await?;
    let client = cluster.bed.client().await?;
    let maps = Api::<ConfigMap>::namespaced(client.clone(), "shop");
    futures::stream::iter(0..OBJECTS)
        .map(|number| {
            let map = json!({"metadata": {"name": format!("map-{number}")}, "data": {"a": "b"}});
            let maps = maps.clone();
            async move { anyhow::Ok(maps.create(&PostParams::default(), &serde_json::from_value(map)?).await?) }
        })
        .buffer_unordered(16)
        .try_for_each(|_| async { Ok(()) })
        .await?;
    platform_backup(&cluster, "big", "shop").await?;
    let many = at_length(500, 5000);
    old_restores(&cluster, many).await?;
    let uid = Api::<Namespace>::all(client.clone()).get("shop").await?.uid().unwrap_or_default();
    let fenced = Fenced::on(cluster, "big".to_owned(), uid).await?;
    let (mut with, mut without) = (Duration::MAX, Duration::MAX);
    for _ in 0..at_length(2, 3) {
        fenced.put_the_fence_up().await?;
        with = with.min(timed(&fenced, &maps).await?);
        fenced.take_the_fence_away().await?;
        without = without.min(timed(&fenced, &maps).await?);
    }
    println!("{OBJECTS} objects, {many} old Restores: {with:.2?} behind the fence, {without:.2?} without it");
    ensure!(with <= without.mul_f64(1.0 + SLOWER) + NOISE, "{with:?} instead of {without:?}");
    Ok(())
}

/// How long Velero takes to bring everything back.
async fn timed(fenced: &Fenced, maps: &Api<ConfigMap>) -> Result<Duration> {
    maps.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
    let begun = Instant::now();
    let phase = fenced.restore(RestoredFrom::PlatformStorage, "big").await?;
    let taken = begun.elapsed();
    ensure!(phase == "Completed", "the restore ended as {phase}");
    ensure!(maps.list(&ListParams::default()).await?.items.len() >= OBJECTS, "not all came back");
    Ok(taken)
}
