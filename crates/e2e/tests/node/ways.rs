//! The ways in which nacre is installed on a node, upgraded and uninstalled: by the command line, by the Helm chart, and by
//! `nacre operator`, which does what OADP's operator does, with the image named in a DataProtectionApplication.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bed::{eventually, wait_until};
use e2e::{NodeCluster, Release, VELERO};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use serde_json::json;

const PATIENCE: Duration = Duration::from_mins(4);

/// Installs a release, or upgrades to it.
pub(crate) trait Way {
    /// In namespaces and in what is printed.
    const NAME: &str;

    /// Installs a release where none is (`is_first`), or upgrades to it.
    async fn install(&self, cluster: &NodeCluster, release: &Release, is_first: bool) -> Result<()>;

    /// Goes back to a release that was installed before.
    async fn go_back(&self, cluster: &NodeCluster, release: &Release) -> Result<()> {
        self.install(cluster, release, false).await
    }

    /// Removes this release. Requests and CRDs stay.
    async fn uninstall(&self, cluster: &NodeCluster) -> Result<()>;
}

/// Waits until every pod of nacre is ready and runs this image, and returns their names.
pub(crate) async fn all_run(cluster: &NodeCluster, image: &str) -> Result<Vec<String>> {
    eventually("nacre's pods", PATIENCE, async || {
        let pods = cluster.nacre_pods().await?;
        let images: Vec<_> =
            pods.iter().filter_map(|pod| pod.spec.as_ref()?.containers[0].image.clone()).collect();
        ensure!(!images.is_empty() && images.iter().all(|one| one == image), "{images:?}");
        Ok(())
    })
    .await?;
    let number = cluster.nacre_pods().await?.len();
    cluster.nacre_pods_ready(number).await
}

/// Applies files of a release.
async fn apply(cluster: &NodeCluster, release: &Release, files: &[&str]) -> Result<()> {
    for file in files {
        let path = release.deploy.join(file).display().to_string();
        let apply = ["apply", "--server-side", "--force-conflicts", "--filename", &path];
        cluster.site.kubectl(&apply).await?.ok()?;
    }
    Ok(())
}

/// `kubectl nacre install`.
pub(crate) struct CommandLine;

impl Way for CommandLine {
    const NAME: &str = "by-command";

    async fn install(&self, cluster: &NodeCluster, release: &Release, _is_first: bool) -> Result<()> {
        let args = ["install", "--image", &release.image, "--wait", "--timeout", "4m"];
        let admin = cluster.site.kubeconfig();
        cluster.site.run_as(&admin, &release.command_line, &args).await?.with_code(0).map(drop)
    }

    async fn uninstall(&self, cluster: &NodeCluster) -> Result<()> {
        cluster.cli(&["uninstall", "--yes"]).await?.with_code(0).map(drop)
    }
}

/// The chart.
pub(crate) struct Helm;

impl Helm {
    async fn run(cluster: &NodeCluster, args: &[&str]) -> Result<()> {
        let args = [args, &["-n", VELERO, "--wait", "--timeout", "4m"]].concat();
        cluster.site.run_as(&cluster.site.kubeconfig(), "helm", &args).await?.ok().map(drop)
    }
}

impl Way for Helm {
    const NAME: &str = "by-chart";

    async fn install(&self, cluster: &NodeCluster, release: &Release, is_first: bool) -> Result<()> {
        let chart = release.deploy.join("chart").display().to_string();
        let image = format!("image={}", release.image);
        if !is_first {
            // Helm never changes CRDs once they exist.
            apply(cluster, release, &["crds"]).await?;
        }
        let verb: &[&str] = if is_first { &["install"] } else { &["upgrade", "--reset-then-reuse-values"] };
        Self::run(cluster, &[verb, &["nacre", &chart, "--set", &image]].concat()).await
    }

    async fn go_back(&self, cluster: &NodeCluster, release: &Release) -> Result<()> {
        Self::run(cluster, &["rollback", "nacre"]).await?;
        // The newer program needs the newer CRDs as long as it runs.
        apply(cluster, release, &["crds"]).await
    }

    /// The chart's last Job removes the finalizers of what is in flight.
    async fn uninstall(&self, cluster: &NodeCluster) -> Result<()> {
        Self::run(cluster, &["uninstall", "nacre"]).await
    }
}

/// `nacre operator` in place of OADP's.
pub(crate) struct Oadp;

impl Way for Oadp {
    const NAME: &str = "by-operator";

    async fn install(&self, cluster: &NodeCluster, release: &Release, _is_first: bool) -> Result<()> {
        apply(cluster, release, &Self::AROUND).await?;
        Self::run(cluster, release).await
    }

    async fn go_back(&self, cluster: &NodeCluster, release: &Release) -> Result<()> {
        Self::run(cluster, release).await?;
        all_run(cluster, &release.image).await?;
        apply(cluster, release, &Self::AROUND).await
    }

    /// Once its pods are gone, the operator removes the finalizers of what is in flight, and then the Deployment.
    async fn uninstall(&self, cluster: &NodeCluster) -> Result<()> {
        Self::ask(cluster, &cluster.image, false).await?;
        let deployments = Api::<Deployment>::namespaced(cluster.site.client().await?, VELERO);
        let is_gone = |seen: Option<&Deployment>| if seen.is_none() { Some(()) } else { None };
        wait_until("the Deployment to be gone", PATIENCE, deployments, "non-admin-controller", is_gone).await
    }
}

impl Oadp {
    /// What an administrator applies next to the operator.
    const AROUND: [&str; 3] = ["crds", "admission.yaml", "requester.yaml"];

    /// Runs the operator of a release, and has it run the controller.
    async fn run(cluster: &NodeCluster, release: &Release) -> Result<()> {
        let operator = std::fs::read_to_string(release.deploy.join("operator.yaml"))?;
        cluster.site.node()?.apply_yaml(&with_image(&operator, &release.image)).await?;
        Self::ask(cluster, &release.image, true).await
    }

    /// OADP names another image than the one it ships with in `unsupportedOverrides`.
    async fn ask(cluster: &NodeCluster, image: &str, enable: bool) -> Result<()> {
        let application = json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "DataProtectionApplication",
            "metadata": {"name": "velero", "namespace": VELERO}, "spec": {"nonAdmin": {"enable": enable},
                "unsupportedOverrides": {"nonAdminControllerImageFqin": image}}});
        let application = serde_json::from_value(application).context("a DataProtectionApplication")?;
        cluster.site.apply(&[application]).await
    }
}

/// The operator's manifests with this image.
fn with_image(operator: &str, image: &str) -> String {
    let lines = operator.lines().map(|line| match line.split_once("image: ") {
        Some((before, _)) if !line.trim_start().starts_with('#') => format!("{before}image: {image}"),
        _ => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}
