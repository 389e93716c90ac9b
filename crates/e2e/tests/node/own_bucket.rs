//! Volumes in a tenant's own bucket, file by file, with real bytes. Part of `make long`.

use anyhow::{Context as _, Result, ensure};
use e2e::NodeTenant;
use serde_json::json;

use crate::alone;

const BYTES: u64 = 8 << 20;
/// Loses the workloads with their data. The key to the bucket stays.
pub(crate) const LOSE: [&str; 5] =
    ["delete", "deployments,statefulsets,pods,persistentvolumeclaims", "--all", "--wait", "--timeout=3m"];

/// Lets tenants bring storage, and makes a location `mine` of a bucket of this name.
pub(crate) async fn own_location(tenant: &NodeTenant<'_>, bucket: &str) -> Result<()> {
    let url = tenant.cluster.site.node()?.store_url();
    let host = url.trim_start_matches("http://").split(':').next().unwrap_or_default().to_owned();
    let endpoints = format!("endpoints: {{allow: ['{host}']}}");
    let policy = format!("storageLocations: {{requireApproval: false, {endpoints}}}");
    tenant.cluster.set_policy(&policy).await?;
    bring_location(tenant, bucket, &["--wait"]).await
}

/// Makes a location `mine` of a bucket of this name.
pub(crate) async fn bring_location(tenant: &NodeTenant<'_>, bucket: &str, more: &[&str]) -> Result<()> {
    let node = tenant.cluster.site.node()?;
    let url = node.store_url();
    node.make_bucket(bucket)?;
    tenant
        .apply(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"},
            "stringData": {"cloud": node.store_credentials()}}))
        .await?;
    let config = format!("s3Url={url},s3ForcePathStyle=true");
    let create = ["location", "create", "mine", "--provider", "aws", "--bucket", bucket];
    let access = ["--region", bed::REGION, "--credential", "keys=cloud", "--config", &config];
    tenant.cli(&[&create[..], &access, more].concat()).await?.with_code(0).map(drop)
}

#[tokio::test]
async fn a_volume_comes_back_from_the_tenants_own_bucket() -> Result<()> {
    let Some(cluster) = alone().await? else { return Ok(()) };
    let tenant = cluster.tenant("own-bucket", "olga").await?;
    own_location(&tenant, "own-bucket").await?;
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

    // A typing error is named, with what there is. The location may still come, so it waits.
    let typo = ["backup", "create", "two", "--storage-location", "mien", "--wait", "--timeout", "5s"];
    let waits = tenant.cli(&typo).await?;
    ensure!(waits.code == Some(4) && waits.stderr.contains("it has mine"), "{waits:#?}");
    Ok(())
}

/// nacre itself connects to no endpoint that a tenant chose: the tenant's own command line does.
#[tokio::test]
async fn warnings_of_a_restore_from_the_tenants_own_bucket_are_fetched_by_the_command_line() -> Result<()> {
    let Some(cluster) = alone().await? else { return Ok(()) };
    let tenant = cluster.tenant("own-warnings", "wim").await?;
    own_location(&tenant, "own-warnings").await?;
    let settings = |value: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"key": value}});
    tenant.apply(&settings("old")).await?;
    tenant.cli(&["backup", "create", "one", "--storage-location", "mine", "--wait"]).await?.with_code(0)?;
    tenant.apply(&settings("new")).await?;
    tenant.cli(&["restore", "create", "back", "--from-backup", "one", "--wait"]).await?.with_code(0)?;

    let page = tenant.cli(&["restore", "describe", "back"]).await?.with_code(0)?;
    ensure!(!page.contains("\nWarnings:\n") && !page.contains("already exists"), "{page}");
    let page = tenant.cli(&["restore", "describe", "back", "--details"]).await?.with_code(0)?;
    let (_, warnings) = page.split_once("\nWarnings:\n").with_context(|| format!("no warnings: {page}"))?;
    ensure!(warnings.contains("ConfigMap:settings already exists"), "{page}");
    let status = ["get", "nonadminrestore", "back", "-o", "jsonpath={.status.results}"];
    assert_eq!(tenant.kubectl(&status).await?.ok()?.trim(), "", "nacre read the tenant's bucket");
    // The request for the link is gone.
    let requests = tenant.kubectl(&["get", "nonadmindownloadrequests", "-o", "name"]).await?.ok()?;
    assert_eq!(requests.trim(), "");
    Ok(())
}
