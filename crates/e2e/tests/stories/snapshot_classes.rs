//! How volumes are saved where nobody says it: what Velero is given for claims whose driver can take snapshots, and for
//! others. There is no CSI driver here, so the claims have no volume; the classes, the claims and what nacre makes of them
//! are real.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::NonAdminBackup;
use api::velero::Backup;
use bed::eventually;
use e2e::{Tenant, TestCluster};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim};
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

const TIMEOUT: Duration = Duration::from_mins(3);

pub(crate) const CLASSES: &str = "
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: fast}
provisioner: fast.csi.test
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: slow}
provisioner: slow.csi.test
---
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshotClass
metadata: {name: fast, labels: {velero.io/csi-volumesnapshot-class: 'true'}}
driver: fast.csi.test
deletionPolicy: Retain
---
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshotClass
metadata: {name: slow}
driver: slow.csi.test
deletionPolicy: Retain
";

/// A node agent that says it runs, with the features of Velero.
pub(crate) async fn node_agent(test_cluster: &TestCluster) -> Result<()> {
    let labels = json!({"name": "node-agent"});
    let container =
        json!({"name": "a", "image": "a", "args": ["node-agent", "server", "--features=EnableCSI"]});
    let agent = json!({"metadata": {"name": "node-agent"}, "spec": {"selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}}});
    let agents = test_cluster.admin::<DaemonSet>().await?;
    agents.create(&PostParams::default(), &serde_json::from_value(agent)?).await?;
    let status = json!({"status": {"currentNumberScheduled": 1, "numberMisscheduled": 0,
        "desiredNumberScheduled": 1, "numberReady": 1}});
    agents.patch_status("node-agent", &PatchParams::default(), &Patch::Merge(status)).await?;
    Ok(())
}

pub(crate) async fn claim(tenant: &Tenant<'_>, class: &str) -> Result<()> {
    let spec = json!({"accessModes": ["ReadWriteOnce"], "storageClassName": class,
        "resources": {"requests": {"storage": "1Gi"}}});
    tenant.create::<PersistentVolumeClaim>(class, json!({"spec": spec})).await?;
    Ok(())
}

/// What Velero is given for a backup that says nothing about volumes.
async fn given(test_cluster: &TestCluster, tenant: &Tenant<'_>, spec: Value) -> Result<Backup> {
    let name = format!("b-{}", jiff::Timestamp::now().as_millisecond());
    tenant.create::<NonAdminBackup>(&name, json!({"spec": {"backupSpec": spec}})).await?;
    let velero = tenant.backup_starts(&name).await?;
    Ok(test_cluster.admin::<Backup>().await?.get(&velero).await?)
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_whose_driver_has_a_class_for_velero_get_snapshots_and_others_are_saved_file_by_file()
-> Result<()> {
    let test_cluster = TestCluster::build().await?;
    test_cluster.bed.apply_yaml(include_str!("snapshots.yaml")).await?;
    eventually("the classes", TIMEOUT, async || test_cluster.bed.apply_yaml(CLASSES).await).await?;
    let endpoints = "storageLocations: {requireApproval: false, endpoints: {allow: ['127.0.0.1']}}";
    test_cluster.set_policy(endpoints).await?;
    let _nacre = test_cluster.start_nacre().await?;
    node_agent(&test_cluster).await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    claim(&shop, "fast").await?;
    claim(&shop, "slow").await?;

    // Velero is asked for its version, and the classes are read once there is a claim.
    let maps = test_cluster.admin::<ConfigMap>().await?;
    let mixed = eventually("nacre's choice", TIMEOUT, async || {
        let given = given(&test_cluster, &shop, json!({})).await?;
        let map = maps.get_opt("nacre-volumes").await?.context("no nacre-volumes")?;
        let text = map.data.unwrap_or_default().remove("policy.yaml").unwrap_or_default();
        ensure!(text.contains("fast.csi.test") && text.contains(r#""type":"snapshot""#), "{text}");
        ensure!(!text.contains("slow.csi.test"), "{text}");
        Ok(given)
    })
    .await?;
    ensure!(mixed.spec.default_volumes_to_fs_backup == Some(true), "{:#?}", mixed.spec);
    ensure!(mixed.spec.snapshot_move_data != Some(true), "{:#?}", mixed.spec);
    ensure!(mixed.spec.resource_policy.is_some_and(|named| named.name == "nacre-volumes"));

    // Nothing in a tenant's own bucket comes back from a snapshot in the cluster: it is moved.
    shop.keep_keys("keys", &test_cluster.bed.store()?.credentials()).await?;
    shop.bring_bucket("mine", "shop-bucket", "keys").await?;
    shop.location_available("mine").await?;
    let moved = given(&test_cluster, &shop, json!({"storageLocation": "mine"})).await?;
    ensure!(moved.spec.snapshot_move_data == Some(true), "{:#?}", moved.spec);

    // Only snapshots; a volume that is not of that driver would still be saved file by file.
    let fast = test_cluster.tenant("fast-only", "fay").await?;
    claim(&fast, "fast").await?;
    let snapshots = given(&test_cluster, &fast, json!({})).await?;
    ensure!(snapshots.spec.default_volumes_to_fs_backup == Some(true), "{:#?}", snapshots.spec);
    ensure!(snapshots.spec.snapshot_move_data != Some(true), "{:#?}", snapshots.spec);
    ensure!(snapshots.spec.resource_policy.is_some_and(|named| named.name == "nacre-volumes"));
    Ok(())
}
