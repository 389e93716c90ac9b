//! Reads which drivers can take snapshots that Velero asks for: StorageClasses and labelled VolumeSnapshotClasses. They
//! change rarely, and VolumeSnapshotClass is a CRD that may be missing, so they are listed periodically, not watched.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams};
use kube::{Api, Client, ResourceExt};
use planner::State;
use planner::backup::SnapshotClasses;

use crate::cluster::Cluster;
use crate::error::status;
use crate::poll::Poll;

/// The label by which Velero finds the class to use for a driver.
const LABEL: &str = "velero.io/csi-volumesnapshot-class";

/// Reads the classes once there is a claim. Every replica does, since the webhook warns of claims that nothing saves.
pub async fn poll_snapshot_classes(client: Client, cluster: Arc<Cluster>) {
    let poll = Poll {
        what: "storage and snapshot classes",
        disabled: "no CSI snapshots are chosen for backups, since storage or snapshot classes may not be listed",
        period: Duration::from_mins(1),
        is_needed: State::has_claims,
        set: State::set_snapshot_classes,
    };
    poll.run(cluster, || read_snapshot_classes(&client)).await;
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
