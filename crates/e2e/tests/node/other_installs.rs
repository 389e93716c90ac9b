//! nacre installed by the Helm chart, and the way OADP does it, with the image named in a DataProtectionApplication. Each on
//! a node of its own. Part of `make long`.

use std::time::Duration;

use anyhow::{Result, ensure};
use bed::eventually;
use e2e::{NodeCluster, VELERO, deploy};
use serde_json::json;

use crate::upgraded::with_image;

const PATIENCE: Duration = Duration::from_mins(4);
const BYTES: u64 = 1 << 20;

/// What a tenant of any installation gets: the data comes back.
async fn a_volume_comes_back(cluster: &NodeCluster, namespace: &str) -> Result<()> {
    let tenant = cluster.tenant(namespace, "ida").await?;
    tenant.start_deployment("db", BYTES).await?;
    let written = tenant.checksum("db").await?;
    tenant.cli(&["backup", "create", "one", "--wait"]).await?.with_code(0)?;
    tenant.lose_namespace_contents().await?;
    tenant.cli(&["restore", "create", "--from-backup", "one", "--wait"]).await?.with_code(0)?;
    assert_eq!(tenant.checksum("db").await?, written);
    Ok(())
}

#[tokio::test]
async fn the_chart_installs_what_brings_a_volume_back_and_removes_it() -> Result<()> {
    if !NodeCluster::can_run()? {
        return Ok(());
    }
    let cluster = NodeCluster::start_without_nacre().await?;
    let helm = async |args: &[&str]| cluster.site.run_as(&cluster.site.kubeconfig(), "helm", args).await;
    let (chart, image) = (deploy("chart").display().to_string(), format!("image={}", cluster.image));
    helm(&["install", "nacre", &chart, "-n", VELERO, "--set", &image, "--wait", "--timeout", "4m"])
        .await?
        .ok()?;
    cluster.nacre_pods_ready(2).await?;
    // Who may bring storage is for administrators to say.
    cluster.set_policy("storageLocations: { requireApproval: true }").await?;
    // The leader writes the certificate of the webhook a moment later.
    eventually("doctor to find no problem", PATIENCE, async || cluster.cli(&["doctor"]).await?.with_code(0))
        .await?;
    a_volume_comes_back(&cluster, "by-helm").await?;
    // Its last Job lets go of what is in flight.
    let shop = cluster.tenant("in-flight", "hal").await?;
    shop.request_backup("last").await?;
    shop.backup_created("last", PATIENCE).await?;
    helm(&["uninstall", "nacre", "-n", VELERO, "--wait"]).await?.ok()?;
    let finalizers = ["get", "nonadminbackup", "last", "-o", "jsonpath={.metadata.finalizers}"];
    let left = shop.kubectl(&finalizers).await?.ok()?;
    ensure!(left.trim().is_empty(), "{left}");
    ensure!(cluster.nacre_pods().await?.is_empty());
    Ok(())
}

/// OADP names another image than the one it ships with in `unsupportedOverrides`.
#[tokio::test]
async fn an_application_that_names_the_image_has_nacre_run_it() -> Result<()> {
    if !NodeCluster::can_run()? {
        return Ok(());
    }
    let cluster = NodeCluster::start_without_nacre().await?;
    let folder = deploy("crds").display().to_string();
    cluster.site.kubectl(&["apply", "--server-side", "--filename", &folder]).await?.ok()?;
    let operator = std::fs::read_to_string(deploy("operator.yaml"))?;
    cluster.site.node()?.apply_yaml(&with_image(&operator, &cluster.image)).await?;
    let overrides = json!({"nonAdminControllerImageFqin": cluster.image});
    let application = json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "DataProtectionApplication",
        "metadata": {"name": "velero", "namespace": VELERO},
        "spec": {"nonAdmin": {"enable": true}, "unsupportedOverrides": overrides}});
    cluster.site.apply(&[serde_json::from_value(application)?]).await?;
    eventually("nacre's pods", PATIENCE, async || {
        let pods = cluster.nacre_pods().await?;
        let images = pods.iter().filter_map(|pod| pod.spec.as_ref()?.containers.first()?.image.clone());
        ensure!(images.clone().count() > 0 && images.clone().all(|image| image == cluster.image), "{pods:?}");
        Ok(())
    })
    .await?;
    let number = cluster.nacre_pods().await?.len();
    cluster.nacre_pods_ready(number).await?;
    a_volume_comes_back(&cluster, "by-oadp").await
}
