//! How large a request may be, while nacre is down: the real API server evaluates the policies.

use anyhow::{Result, ensure};
use api::{Kind, labels};
use e2e::{TestCluster, refused_by};
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Map, Value, json};

fn request(kind: Kind, name: &str, metadata: &Value, spec: &Value) -> Result<DynamicObject> {
    let mut object =
        json!({"apiVersion": kind.api_version(), "kind": kind.name(), "metadata": metadata, "spec": spec});
    object["metadata"]["name"] = json!(name);
    Ok(serde_json::from_value(object)?)
}

/// The same attempts with the policies off, and on: the API server itself has no objection to a megabyte.
/// planted: the policies about sizes are not in force
#[tokio::test(flavor = "multi_thread")]
async fn b8_a_megabyte_is_refused_while_nacre_is_down() -> Result<()> {
    let test_cluster = TestCluster::build_with_idle_velero().await?;
    test_cluster.tenant("shop", "ada").await?;
    let client = test_cluster.bed.client_as("ada", &[]).await?;
    let api = |kind: Kind| Api::<DynamicObject>::namespaced_with(client.clone(), "shop", &kind.resource());
    let dry = PostParams { dry_run: true, ..PostParams::default() };

    let names: Vec<_> = (0..40_000).map(|number| format!("resource-number-{number}")).collect();
    let long = "x".repeat(900_000);
    let many: Map<_, _> = (0..200).map(|number| (format!("label-{number}"), json!("x"))).collect();
    let hook = json!([{"name": "h", "pre": [{"exec": {"command": ["/bin/sh", "-c", long]}}]}]);
    let init = json!([{"name": "h", "postHooks": [{"init": {"initContainers": [{"image": long}]}}]}]);
    let bucket = json!({"bucket": "b", "caCert": "eHh4".repeat(100_000)});
    let attempts = [
        (
            "nacre-backup-sizes",
            Kind::NonAdminBackup,
            json!({}),
            json!({"backupSpec": {"includedResources": names}}),
        ),
        (
            "nacre-backup-sizes",
            Kind::NonAdminBackup,
            json!({}),
            json!({"backupSpec": {"orderedResources": {"pods": long}}}),
        ),
        (
            "nacre-backup-sizes",
            Kind::NonAdminBackup,
            json!({}),
            json!({"backupSpec": {"hooks": {"resources": hook}}}),
        ),
        (
            "nacre-restore-sizes",
            Kind::NonAdminRestore,
            json!({}),
            json!({"restoreSpec": {"backupName": "b", "hooks": {"resources": init}}}),
        ),
        (
            "nacre-location-sizes",
            Kind::NonAdminBackupStorageLocation,
            json!({}),
            json!({"backupStorageLocationSpec": {"provider": "aws", "objectStorage": bucket}}),
        ),
        ("nacre-request-metadata", Kind::NonAdminBackup, json!({"labels": many}), json!({"backupSpec": {}})),
    ];
    for (policy, kind, metadata, spec) in &attempts {
        let large = request(*kind, "large", metadata, spec)?;
        let stored = api(*kind).create(&dry, &large).await;
        ensure!(stored.is_ok(), "{policy} has nothing to refuse: {stored:?}");
    }
    // One is stored before the policies come.
    let (_, kind, metadata, spec) = &attempts[0];
    let old = request(*kind, "old", metadata, spec)?;
    api(*kind).create(&PostParams::default(), &old).await?;

    test_cluster.admission().await?;
    for (policy, kind, metadata, spec) in &attempts {
        let large = request(*kind, "large", metadata, spec)?;
        refused_by(policy, api(*kind).create(&dry, &large).await)?;
    }
    // It can be edited and deleted.
    let held = Patch::Merge(json!({"metadata": {"finalizers": [labels::NAB_FINALIZER]}}));
    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    let requests = api(Kind::NonAdminBackup);
    requests.patch("old", &PatchParams::default(), &held).await?;
    requests.delete("old", &DeleteParams::default()).await?;
    requests.patch("old", &PatchParams::default(), &free).await?;
    ensure!(requests.get_opt("old").await?.is_none(), "it is still there");
    Ok(())
}
