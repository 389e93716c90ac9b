//! Velero's data mover without cluster-admin: a snapshot is moved into the store and comes back, with real bytes. The CSI
//! driver and the snapshot controller are stand-ins (`e2e/src/csi_driver.rs`). Part of `make long`.

use std::time::Duration;

use anyhow::{Result, ensure};
use bed::{Node, eventually};
use e2e::csi_driver::{Driver, Snapshots};
use e2e::{NodeCluster, VELERO};
use serde_json::json;

use crate::fenced::fence;

const PATIENCE: Duration = Duration::from_mins(4);
const ACCOUNT: &str = "system:serviceaccount:velero:velero";
const CLASSES: &str = "
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: fast}
provisioner: fast.csi.test
---
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshotClass
metadata: {name: fast, labels: {velero.io/csi-volumesnapshot-class: 'true'}}
driver: fast.csi.test
deletionPolicy: Retain
";

/// Has Velero and its node agent look at snapshots, as its installer does with that flag.
async fn enable_snapshots(node: &Node) -> Result<()> {
    node.apply_yaml(include_str!("../stories/snapshots.yaml")).await?;
    eventually("the classes", PATIENCE, async || node.apply_yaml(CLASSES).await).await?;
    let flag = json!([{"op": "add", "path": "/spec/template/spec/containers/0/args/-",
        "value": "--features=EnableCSI"}])
    .to_string();
    for workload in ["deployment/velero", "daemonset/node-agent"] {
        node.kubectl(&["patch", workload, "-n", VELERO, "--type=json", "-p", &flag]).await?.ok()?;
        node.kubectl(&["rollout", "status", workload, "-n", VELERO, "--timeout=4m"]).await?.ok()?;
    }
    Ok(())
}

/// A cluster of its own, since Velero looks at snapshots in no other story.
#[tokio::test]
async fn a_snapshot_is_moved_and_comes_back_without_cluster_admin() -> Result<()> {
    if !NodeCluster::can_run()? {
        return Ok(());
    }
    let cluster = NodeCluster::start().await?;
    let node = cluster.site.node()?;
    enable_snapshots(node).await?;
    fence(&cluster).await?;
    let driver = Driver::start_on_node(node.client().await?, Snapshots::Ready, node.folder().join("disks"));
    let shop = cluster.tenant("moved", "mo").await?;
    let size = json!({"requests": {"storage": "1Gi"}});
    let claim = json!({"accessModes": ["ReadWriteOnce"], "storageClassName": "fast", "resources": size});
    shop.apply(&json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": claim}))
        .await?;
    eventually("the claim's volume", PATIENCE, async || driver.write("moved", "data", "orders").await)
        .await?;

    let mark = node.audit()?.mark().await?;
    let back_up = ["backup", "create", "daily", "--snapshot-move-data", "--wait", "--timeout=6m"];
    shop.cli(&back_up).await?.with_code(0)?;
    eventually("the snapshot to go, since its data were moved", PATIENCE, async || {
        ensure!(driver.snapshots() == 0, "{} are kept", driver.snapshots());
        Ok(())
    })
    .await?;
    shop.kubectl(&["delete", "persistentvolumeclaims", "data", "--wait", "--timeout=2m"]).await?.ok()?;
    let restore = ["restore", "create", "--from-backup", "daily", "--wait", "--timeout=6m"];
    shop.cli(&restore).await?.with_code(0)?;
    assert_eq!(driver.read("moved", "data").await?, "orders");

    // Both data movers ran, and what they need is what the role has.
    let requests = node.audit()?.since(mark).await?.only(|request| request.user == ACCOUNT);
    let refused = requests.only(|request| request.code == 403).tally();
    ensure!(refused.is_empty(), "Velero needs more than it may: {refused:?}");
    for (verb, resource) in
        [("list", "volumeattachments"), ("patch", "persistentvolumes"), ("create", "pods")]
    {
        let used = requests.only(|request| request.verb == verb && request.resource == resource);
        ensure!(!used.is_empty(), "Velero does not {verb} {resource}");
    }
    Ok(())
}
