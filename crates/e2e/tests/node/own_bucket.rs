//! Volumes in a tenant's own bucket, file by file, with real bytes. Part of `make long`.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::alone;

const BYTES: u64 = 8 << 20;
/// Loses the workloads with their data. The key to the bucket stays.
const LOSE: [&str; 5] =
    ["delete", "deployments,statefulsets,pods,persistentvolumeclaims", "--all", "--wait", "--timeout=3m"];

#[tokio::test]
async fn a_volume_comes_back_from_the_tenants_own_bucket() -> Result<()> {
    let Some(cluster) = alone().await? else { return Ok(()) };
    let (url, keys) = (cluster.site.node()?.store_url(), cluster.site.node()?.store_credentials());
    cluster.site.node()?.make_bucket("own-bucket")?;
    let host = url.trim_start_matches("http://").split(':').next().unwrap_or_default().to_owned();
    cluster
        .set_policy(&format!(
            "storageLocations: {{requireApproval: false, endpoints: {{allow: ['{host}']}}}}"
        ))
        .await?;
    let tenant = cluster.tenant("own-bucket", "olga").await?;
    tenant
        .apply(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"},
            "stringData": {"cloud": keys}}))
        .await?;
    let config = format!("s3Url={url},s3ForcePathStyle=true");
    let location = [
        "location",
        "create",
        "mine",
        "--provider",
        "aws",
        "--bucket",
        "own-bucket",
        "--region",
        bed::REGION,
        "--credential",
        "keys=cloud",
        "--config",
        &config,
        "--wait",
    ];
    tenant.cli(&location).await?.with_code(0)?;
    tenant.start_deployment("db", BYTES).await?;
    let written = tenant.checksum("db").await?;

    let back_up = ["backup", "create", "one", "--storage-location", "mine", "--wait"];
    tenant.cli(&back_up).await?.with_code(0)?;
    tenant.kubectl(&LOSE).await?.ok()?;
    cluster.site.add_volumes(1).await?;
    tenant.cli(&["restore", "create", "--from-backup", "one", "--wait"]).await?.with_code(0)?;
    assert_eq!(tenant.checksum("db").await?, written);

    // The same for three replicas, each with a claim of its own.
    tenant.kubectl(&LOSE).await?.ok()?;
    cluster.site.add_volumes(3).await?;
    let written = tenant.start_stateful_set("web", BYTES, &json!({})).await?;
    tenant.cli(&["backup", "create", "three", "--storage-location", "mine", "--wait"]).await?.with_code(0)?;
    tenant.kubectl(&LOSE).await?.ok()?;
    cluster.site.add_volumes(3).await?;
    tenant.cli(&["restore", "create", "--from-backup", "three", "--wait"]).await?.with_code(0)?;
    assert_eq!(tenant.checksums_of_replicas("web").await?, written);

    // A typing error ends with a word, and does not wait.
    let typo = ["backup", "create", "two", "--storage-location", "mien", "--wait"];
    let refused = tenant.cli(&typo).await?;
    ensure!(refused.code == Some(1) && refused.stderr.contains("it has mine"), "{refused:#?}");
    Ok(())
}
