//! nacre installed by the Helm chart, and the way OADP does it, with the image named in a DataProtectionApplication. Each on
//! a node of its own. Part of `make long`.

use std::time::Duration;

use anyhow::{Result, ensure};
use bed::{eventually, wait_until};
use e2e::{NodeCluster, VELERO, deploy};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use serde_json::json;

use crate::arriving::{each_is_created_once, meanwhile};
use crate::disturbed::{gone, kubelet_restarts, node_agent_is_killed};
use crate::failover::leader_is_killed;
use crate::installed::pods_are_probed_and_limited;
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
    let install = async || {
        let args = ["install", "nacre", &chart, "-n", VELERO, "--set", &image, "--wait", "--timeout", "4m"];
        helm(&args).await?.ok()?;
        cluster.nacre_pods_ready(2).await.map(drop)
    };
    install().await?;
    // Who may bring storage is for administrators to say.
    cluster.set_policy("storageLocations: { requireApproval: true }").await?;
    // The leader writes the certificate of the webhook a moment later.
    eventually("doctor to find no problem", PATIENCE, async || cluster.cli(&["doctor"]).await?.with_code(0))
        .await?;
    a_volume_comes_back(&cluster, "by-helm").await?;
    disturbed(&cluster, 2).await?;
    // Its last Job lets go of what is in flight.
    let uninstall = async || helm(&["uninstall", "nacre", "-n", VELERO, "--wait"]).await?.ok().map(drop);
    uninstalled_in_flight(&cluster, uninstall, install).await
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
    let ask = async |enable: bool| {
        let overrides = json!({"nonAdminControllerImageFqin": cluster.image});
        let application = json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "DataProtectionApplication",
            "metadata": {"name": "velero", "namespace": VELERO},
            "spec": {"nonAdmin": {"enable": enable}, "unsupportedOverrides": overrides}});
        cluster.site.apply(&[serde_json::from_value(application)?]).await
    };
    let install = async || {
        ask(true).await?;
        eventually("nacre's pods", PATIENCE, async || {
            let pods = cluster.nacre_pods().await?;
            let images = pods.iter().filter_map(|pod| pod.spec.as_ref()?.containers.first()?.image.clone());
            let all = images.clone().count() > 0 && images.clone().all(|image| image == cluster.image);
            ensure!(all, "{pods:?}");
            Ok(())
        })
        .await?;
        let number = cluster.nacre_pods().await?.len();
        cluster.nacre_pods_ready(number).await.map(drop)
    };
    install().await?;
    a_volume_comes_back(&cluster, "by-oadp").await?;
    disturbed(&cluster, cluster.nacre_pods().await?.len()).await?;
    // Once its pods are gone, the operator lets go of what is in flight, and deletes the Deployment.
    let uninstall = async || {
        ask(false).await?;
        let deployments = Api::<Deployment>::namespaced(cluster.site.client().await?, VELERO);
        let is_gone = |seen: Option<&Deployment>| if seen.is_none() { Some(()) } else { None };
        wait_until("the Deployment to be gone", PATIENCE, deployments, "non-admin-controller", is_gone).await
    };
    uninstalled_in_flight(&cluster, uninstall, install).await
}

/// What holds for `kubectl nacre install` holds here: probes, limits and the disruption budget, the strictest level of Pod Security, and data that
/// is safe while the leader and the node agent are killed and kubelet restarts.
async fn disturbed(cluster: &NodeCluster, pods: usize) -> Result<()> {
    pods_are_probed_and_limited(cluster, pods).await?;
    // Where there is one pod, another one has to be started first.
    leader_is_killed(cluster, pods, PATIENCE).await?;
    node_agent_is_killed(cluster).await?;
    kubelet_restarts(cluster).await
}

/// Uninstalls while requests arrive all the time. No request is stuck: a namespace with one that was only just made goes.
/// What was asked for and not done is done by the next installation, once.
async fn uninstalled_in_flight(
    cluster: &NodeCluster,
    uninstall: impl AsyncFn() -> Result<()>,
    install: impl AsyncFn() -> Result<()>,
) -> Result<()> {
    let tenant = cluster.tenant("in-flight", "hal").await?;
    let leaving = cluster.tenant("leaving", "leo").await?;
    tenant.request_backup("created").await?;
    tenant.backup_created("created", PATIENCE).await?;
    let uninstall = async {
        leaving.request_backup("last").await?;
        uninstall().await
    };
    let (requested, ()) = Box::pin(meanwhile(&tenant, uninstall)).await?;
    ensure!(!requested.is_empty(), "no request arrived meanwhile");
    ensure!(cluster.nacre_pods().await?.is_empty());
    let finalizers = "--output=jsonpath={.items[*].metadata.finalizers}";
    let finalizers =
        cluster.site.kubectl(&["get", "nonadminbackups", "--all-namespaces", finalizers]).await?.ok()?;
    ensure!(finalizers.trim().is_empty(), "{finalizers}");
    gone(cluster, "leaving").await?;

    install().await?;
    let all = [vec!["created".to_owned()], requested].concat();
    each_is_created_once(&tenant, &all).await
}
