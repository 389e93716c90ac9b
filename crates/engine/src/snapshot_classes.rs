//! Reads which drivers can take snapshots that Velero asks for: StorageClasses and labelled VolumeSnapshotClasses. They
//! change rarely, and VolumeSnapshotClass is a CRD that may be missing, so they are listed periodically, not watched.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams};
use kube::{Api, Client, ResourceExt};
use planner::backup::SnapshotClasses;
use tokio::time::sleep;
use tracing::debug;

use crate::cluster::Cluster;
use crate::degraded::is_missing_permission;
use crate::error::status;

/// How long what was read is good for.
const PERIOD: Duration = Duration::from_mins(1);
const SECOND: Duration = Duration::from_secs(1);
/// The label by which Velero finds the class to use for a driver.
const LABEL: &str = "velero.io/csi-volumesnapshot-class";
/// Name of the disabled feature if the classes may not be listed.
const UNKNOWN: &str =
    "no CSI snapshots are chosen for backups, since storage or snapshot classes may not be listed";

/// Reads the classes once there is a claim, and periodically again. Every replica does, since the webhook warns of claims
/// that nothing saves.
pub async fn poll_snapshot_classes(client: Client, cluster: Arc<Cluster>) {
    loop {
        while !cluster.look().has_claims() {
            sleep(SECOND).await;
        }
        match read_snapshot_classes(&client).await {
            Ok(classes) => {
                cluster.degraded().enable(UNKNOWN);
                cluster.change(|state| state.set_snapshot_classes(classes));
            }
            Err(error) => {
                debug!(%error, "storage and snapshot classes could not be read; retrying");
                if let Some(answer) = status(&error).filter(|status| is_missing_permission(status)) {
                    cluster.degraded().disable(UNKNOWN, &answer.message);
                }
            }
        }
        sleep(PERIOD).await;
    }
}

/// Which drivers can take snapshots now.
pub async fn read_snapshot_classes(client: &Client) -> kube::Result<SnapshotClasses> {
    let kind = GroupVersionKind::gvk("snapshot.storage.k8s.io", "v1", "VolumeSnapshotClass");
    let classes = Api::<DynamicObject>::all_with(client.clone(), &ApiResource::from_gvk(&kind));
    let labelled = match classes.list(&ListParams::default().labels(LABEL)).await {
        Ok(classes) => drivers(classes.items),
        // There is no such kind in this cluster.
        Err(error) if status(&error).is_some_and(|status| status.code == 404) => BTreeSet::new(),
        Err(error) => return Err(error),
    };
    let storage = Api::<StorageClass>::all(client.clone()).list(&ListParams::default()).await?;
    let of = |class: StorageClass| (class.name_any(), class.provisioner);
    Ok(SnapshotClasses { drivers: storage.items.into_iter().map(of).collect::<BTreeMap<_, _>>(), labelled })
}

fn drivers(classes: Vec<DynamicObject>) -> BTreeSet<String> {
    let driver = |class: DynamicObject| class.data["driver"].as_str().map(str::to_owned);
    classes.into_iter().filter_map(driver).collect()
}
