//! Reads whether Velero has a VolumeSnapshotLocation: then it deletes the native snapshots that a backup's files name, and
//! tenants bring no storage. They change rarely, so they are listed periodically, not watched.

use std::sync::Arc;
use std::time::Duration;

use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams};
use kube::{Api, Client, ResourceExt};
use planner::State;

use crate::cluster::Cluster;
use crate::error::status;
use crate::poll::Poll;

/// Reads them once a tenant has storage of its own. Every replica does, since the webhook warns.
pub async fn poll_native_snapshots(client: Client, namespace: String, cluster: Arc<Cluster>) {
    let poll = Poll {
        what: "VolumeSnapshotLocations",
        disabled: "storage that tenants bring is not refused where Velero has a VolumeSnapshotLocation, since \
                   VolumeSnapshotLocations may not be listed",
        // Somebody who removes one waits for the locations to come back.
        period: Duration::from_secs(15),
        is_needed: State::has_locations,
        set: |state, found: Vec<String>| state.set_takes_native_snapshots(!found.is_empty()),
    };
    poll.run(cluster, || snapshot_locations(&client, &namespace)).await;
}

/// The names of Velero's VolumeSnapshotLocations.
pub async fn snapshot_locations(client: &Client, namespace: &str) -> kube::Result<Vec<String>> {
    let kind = GroupVersionKind::gvk("velero.io", "v1", "VolumeSnapshotLocation");
    let locations =
        Api::<DynamicObject>::namespaced_with(client.clone(), namespace, &ApiResource::from_gvk(&kind));
    match locations.list_metadata(&ListParams::default()).await {
        Ok(found) => Ok(found.items.iter().map(ResourceExt::name_any).collect()),
        // There is no such kind in this cluster.
        Err(error) if status(&error).is_some_and(|status| status.code == 404) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
