//! Reads whether Velero has a VolumeSnapshotLocation: then it deletes the native snapshots that a backup's files name, and
//! tenants bring no storage. They change rarely, so they are listed periodically, not watched.

use std::sync::Arc;
use std::time::Duration;

use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams};
use kube::{Api, Client, ResourceExt};
use tokio::time::sleep;
use tracing::debug;

use crate::cluster::Cluster;
use crate::degraded::is_missing_permission;
use crate::error::status;

/// How long what was read is good for. Somebody who removes one waits for the locations to come back.
const PERIOD: Duration = Duration::from_secs(15);
const SECOND: Duration = Duration::from_secs(1);
/// Name of the disabled feature if they may not be listed.
const UNKNOWN: &str = "storage that tenants bring is not refused where Velero has a VolumeSnapshotLocation, since \
                       VolumeSnapshotLocations may not be listed";

/// Reads them once a tenant has storage of its own, and periodically again. Every replica does, since the webhook warns.
pub async fn poll_native_snapshots(client: Client, namespace: String, cluster: Arc<Cluster>) {
    loop {
        while !cluster.look().has_locations() {
            sleep(SECOND).await;
        }
        match snapshot_locations(&client, &namespace).await {
            Ok(found) => {
                cluster.degraded().enable(UNKNOWN);
                cluster.change(|state| state.set_takes_native_snapshots(!found.is_empty()));
            }
            Err(error) => {
                debug!(%error, "VolumeSnapshotLocations could not be read; retrying");
                if let Some(answer) = status(&error).filter(|status| is_missing_permission(status)) {
                    cluster.degraded().disable(UNKNOWN, &answer.message);
                    cluster.change(|state| state.set_takes_native_snapshots(false));
                }
            }
        }
        sleep(PERIOD).await;
    }
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
