//! A start over objects as large as the API server stores them.

use anyhow::{Result, ensure};
use e2e::{TestCluster, VELERO, at_length};
use futures::{StreamExt, TryStreamExt, stream};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, PostParams};
use serde_json::json;

/// What Velero imports from buckets, where its size is the tenant's choice.
const KINDS: [(&str, &str); 2] = [("v2alpha1", "DataUpload"), ("v1", "PodVolumeBackup")];

/// Half of what a pod of nacre may have.
const LIMIT: u64 = 256 << 20;

fn huge((version, kind): (&str, &str), number: usize) -> Result<DynamicObject> {
    Ok(serde_json::from_value(json!({
        "apiVersion": format!("velero.io/{version}"), "kind": kind,
        "metadata": {"name": format!("huge-{number}"), "namespace": VELERO},
        "spec": {
            "backupStorageLocation": "default", "sourceNamespace": "shop", "node": "none", "repoIdentifier": "", "volume": "",
            "pod": {"kind": "Pod", "namespace": "shop", "name": "web"}, "sourcePVC": "data", "operationTimeout": "1h",
            "snapshotType": "CSI",
        },
        "status": {"phase": "Completed", "message": format!("{kind} {}", "x".repeat(1 << 20))},
    }))?)
}

/// H9: hundreds of megabytes that a bucket brought along, and nacre starts
/// in make test: 200 of 1000 objects
#[tokio::test(flavor = "multi_thread")]
async fn h9_a_start_over_a_thousand_objects_of_a_mebibyte_takes_little_memory() -> Result<()> {
    let many = at_length(200, 1000);
    let test_cluster = TestCluster::build_with_idle_velero().await?;
    for (version, kind) in KINDS {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("velero.io", version, kind));
        let api = Api::<DynamicObject>::namespaced_with(test_cluster.bed.client().await?, VELERO, &resource);
        stream::iter(0..many / KINDS.len())
            .map(async |number| -> Result<()> {
                let made = api.create(&PostParams::default(), &huge((version, kind), number)?).await?;
                let size = serde_json::to_vec(&made)?.len();
                ensure!(size > 1 << 20, "{kind}: only {size} bytes were stored");
                Ok(())
            })
            .buffer_unordered(4)
            .try_collect::<Vec<_>>()
            .await?;
    }
    let nacre = test_cluster.start_nacre().await?;
    let peak = nacre.process.usage()?.peak_rss;
    ensure!(peak < LIMIT, "{} MiB for {many} objects", peak >> 20);
    Ok(())
}
