//! A VolumeSnapshotLocation: with it, Velero deletes snapshots that are named in a bucket.

use anyhow::Result;
use api::condition;
use e2e::{TestCluster, VELERO};
use kube::api::{DeleteParams, PostParams};
use serde_json::json;

use crate::location::{OPEN, reference, says};

/// H4: own bucket: ids of native snapshots, deleted with the backup that names them
#[tokio::test(flavor = "multi_thread")]
async fn h4_a_tenants_bucket_and_native_snapshots_are_not_offered_together() -> Result<()> {
    let test_cluster = TestCluster::build().await?;
    let _nacre = test_cluster.start_nacre().await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    test_cluster.set_policy(OPEN).await?;
    shop.keep_keys("keys", &test_cluster.bed.store()?.credentials()).await?;
    shop.bring_bucket("bucket", "shop-bucket", "keys").await?;
    let name = reference(&shop.location_available("bucket").await?);

    let snapshots = test_cluster.bed.velero_api("VolumeSnapshotLocation").await?;
    let ebs = json!({"apiVersion": "velero.io/v1", "kind": "VolumeSnapshotLocation",
        "metadata": {"name": "ebs", "namespace": VELERO}, "spec": {"provider": "velero.io/aws"}});
    let ebs = serde_json::from_value(ebs)?;
    let refused = async || {
        shop.location_is("the location to be refused", "bucket", |status| {
            says(status, condition::ACCEPTED, condition::BSL_SPEC_VALIDATION, "has a VolumeSnapshotLocation")
        })
        .await?;
        test_cluster.gone_from_velero::<api::velero::BackupStorageLocation>(&name).await
    };
    snapshots.create(&PostParams::default(), &ebs).await?;
    refused().await?;

    // It goes on by itself once there is none.
    snapshots.delete("ebs", &DeleteParams::default()).await?;
    shop.location_available("bucket").await?;

    // The administrators accept it in so many words, and only then.
    snapshots.create(&PostParams::default(), &ebs).await?;
    refused().await?;
    test_cluster.set_policy(&format!("{OPEN}  nativeSnapshots: accept\n")).await?;
    shop.location_available("bucket").await?;
    Ok(())
}
