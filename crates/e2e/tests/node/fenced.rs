//! A Velero for tenants alone, without cluster-admin, saves volumes and brings them back.

use anyhow::{Context, Result, ensure};
use e2e::NodeCluster;

use crate::alone;

const BYTES: u64 = 8 << 20;
const VELERO: &str = "--as=system:serviceaccount:velero:velero";

/// What stands between these in a text.
fn between<'a>(text: &'a str, before: &str, after: &str) -> Result<&'a str> {
    let found = text.split_once(before).and_then(|(_, rest)| rest.split_once(after));
    found.map(|(inside, _)| inside).with_context(|| format!("no {before:?} in {text}"))
}

/// Takes cluster-admin away from Velero, as an administrator does, and returns the installer's remarks.
pub(crate) async fn fence(cluster: &NodeCluster) -> Result<String> {
    let node = cluster.site.node()?;
    // As it was installed it would wait for ever in a restore. What the refusal says is done as it says.
    let refused = cluster.cli(&["install", "--fence"]).await?;
    ensure!(refused.stderr.contains("--disable-informer-cache"), "{refused:?}");
    let patch = between(&refused.stderr, "-p '", "'")?;
    node.kubectl(&["patch", "deployment", "velero", "-n", "velero", "--type=json", "-p", patch])
        .await?
        .ok()?;
    node.kubectl(&["rollout", "status", "deployment/velero", "-n", "velero", "--timeout=4m"]).await?.ok()?;

    let installed = cluster.cli(&["install", "--fence", "--wait", "--timeout", "4m"]).await?;
    let remarks = installed.stderr.clone();
    installed.ok()?;
    node.kubectl(&["rollout", "status", "deployment/velero", "-n", "velero", "--timeout=4m"]).await?.ok()?;
    Ok(remarks)
}

#[tokio::test]
async fn a_velero_without_cluster_admin_brings_volumes_back() -> Result<()> {
    let Some(cluster) = alone().await? else { return Ok(()) };
    let node = cluster.site.node()?;

    let remarks = fence(&cluster).await?;
    let binding = between(&remarks, "kubectl create clusterrolebinding ", " ")?.to_owned();
    let may = node.kubectl(&["auth", "can-i", "create", "namespaces", "--all-namespaces", VELERO]).await?;
    ensure!(may.stdout.trim() == "no", "Velero is still cluster-admin: {may:?}");
    let doctor = cluster.cli(&["doctor"]).await?;
    ensure!(doctor.stdout.contains("dedicated mode"), "{doctor:?}");

    let shop = cluster.tenant("fenced", "fay").await?;
    shop.start_deployment("db", BYTES).await?;
    let written = shop.checksum("db").await?;
    shop.cli(&["backup", "create", "daily", "--wait"]).await?.with_code(0)?;
    shop.lose_namespace_contents().await?;
    shop.cli(&["restore", "create", "--from-backup", "daily", "--wait"]).await?.with_code(0)?;
    assert_eq!(shop.checksum("db").await?, written);

    // And back, as the remark of the installer says.
    let account = "--serviceaccount=velero:velero";
    node.kubectl(&["create", "clusterrolebinding", &binding, "--clusterrole=cluster-admin", account])
        .await?
        .ok()?;
    cluster.cli(&["install", "--fence=false", "--wait", "--timeout", "4m"]).await?.ok()?;
    let left = node.kubectl(&["get", "rolebindings", "-n", "fenced", "-o", "name"]).await?.ok()?;
    ensure!(!left.contains("nacre-velero"), "{left}");
    Ok(())
}
