//! An upgrade from the release before, in each of the ways in which nacre is installed, while requests arrive all the
//! time: none is lost and none is doubled. Each on a node of its own. Part of `make long`.
//!
//! The release before is that of `NACRE_PREVIOUS` (`make upgrade FROM=COMMIT`), else this one under another name.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bed::eventually;
use e2e::{NodeCluster, Release, VELERO};
use serde_json::json;

use crate::arriving::{each_is_created_once, meanwhile};
use crate::say;

const PATIENCE: Duration = Duration::from_mins(4);

/// Installs a release, or upgrades to it.
trait Way {
    /// Whether admission policies and webhook are installed with it. OADP's operator installs none, and doctor names that.
    const WITH_ADMISSION: bool = true;

    async fn install(&self, cluster: &NodeCluster, release: &Release, is_first: bool) -> Result<()>;
}

/// Installs the release before, and upgrades to this one.
async fn upgraded<W: Way>(way: &W, namespace: &str) -> Result<()> {
    if !NodeCluster::can_run()? {
        return Ok(());
    }
    let cluster = NodeCluster::start_without_nacre().await?;
    let (previous, this) = (cluster.previous_release().await?, cluster.this_release()?);
    way.install(&cluster, &previous, true).await?;
    let before = all_run(&cluster, &previous.image).await?;
    let tenant = cluster.tenant(namespace, "uma").await?;
    tenant.request_backup("before").await?;
    tenant.backup_created("before", PATIENCE).await?;

    let upgrade = async {
        way.install(&cluster, &this, false).await?;
        all_run(&cluster, &this.image).await
    };
    let (mut requested, after) = meanwhile(&tenant, upgrade).await?;
    ensure!(after.iter().all(|pod| !before.contains(pod)), "the old pods are still there: {after:?}");
    ensure!(requested.len() > 5, "only {} requests arrived meanwhile", requested.len());
    let from = if previous.is_other { "another release" } else { "the same program under another name" };
    say(&format!("{namespace}: upgraded from {from}, {} requests arrived meanwhile", requested.len()))?;
    requested.insert(0, "before".to_owned());
    each_is_created_once(&tenant, &requested).await?;
    // Who may bring storage is for administrators to say.
    cluster.set_policy("storageLocations: { requireApproval: true }").await?;
    let code = i32::from(!W::WITH_ADMISSION);
    let page =
        eventually("doctor", PATIENCE, async || cluster.cli(&["doctor"]).await?.with_code(code)).await?;
    ensure!(page.contains("CRDs are there and current"), "{page}");
    Ok(())
}

/// Waits until every pod of nacre is ready and runs this image, and returns their names.
async fn all_run(cluster: &NodeCluster, image: &str) -> Result<Vec<String>> {
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

struct CommandLine;

impl Way for CommandLine {
    async fn install(&self, cluster: &NodeCluster, release: &Release, _is_first: bool) -> Result<()> {
        let args = ["install", "--image", &release.image, "--wait", "--timeout", "4m"];
        let admin = cluster.site.kubeconfig();
        cluster.site.run_as(&admin, &release.command_line, &args).await?.with_code(0).map(drop)
    }
}

#[tokio::test]
async fn an_upgrade_by_the_command_line_loses_and_doubles_no_request() -> Result<()> {
    upgraded(&CommandLine, "by-command").await
}

struct Helm;

impl Way for Helm {
    async fn install(&self, cluster: &NodeCluster, release: &Release, is_first: bool) -> Result<()> {
        let (chart, image) = (release.deploy.join("chart"), format!("image={}", release.image));
        if !is_first {
            // Helm never changes CRDs once they exist.
            apply_crds(cluster, release).await?;
        }
        let verb: &[&str] = if is_first { &["install"] } else { &["upgrade", "--reset-then-reuse-values"] };
        let chart = chart.display().to_string();
        let rest = ["nacre", &chart, "-n", VELERO, "--set", &image, "--wait", "--timeout", "4m"];
        let args = [verb, &rest].concat();
        cluster.site.run_as(&cluster.site.kubeconfig(), "helm", &args).await?.ok().map(drop)
    }
}

async fn apply_crds(cluster: &NodeCluster, release: &Release) -> Result<()> {
    let crds = release.deploy.join("crds").display().to_string();
    let apply = ["apply", "--server-side", "--force-conflicts", "--filename", &crds];
    cluster.site.kubectl(&apply).await?.ok().map(drop)
}

#[tokio::test]
async fn an_upgrade_by_the_chart_loses_and_doubles_no_request() -> Result<()> {
    upgraded(&Helm, "by-chart").await
}

/// `nacre operator` in place of OADP's, with the image named in the DataProtectionApplication.
struct Oadp;

impl Way for Oadp {
    const WITH_ADMISSION: bool = false;

    async fn install(&self, cluster: &NodeCluster, release: &Release, _is_first: bool) -> Result<()> {
        apply_crds(cluster, release).await?;
        let operator = std::fs::read_to_string(release.deploy.join("operator.yaml"))?;
        cluster.site.node()?.apply_yaml(&with_image(&operator, &release.image)).await?;
        let application = json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "DataProtectionApplication",
            "metadata": {"name": "velero", "namespace": VELERO}, "spec": {"nonAdmin": {"enable": true},
                "unsupportedOverrides": {"nonAdminControllerImageFqin": release.image}}});
        let application = serde_json::from_value(application).context("a DataProtectionApplication")?;
        cluster.site.apply(&[application]).await
    }
}

/// The operator's manifests with this image.
pub(crate) fn with_image(operator: &str, image: &str) -> String {
    let lines = operator.lines().map(|line| match line.split_once("image: ") {
        Some((before, _)) if !line.trim_start().starts_with('#') => format!("{before}image: {image}"),
        _ => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn an_upgrade_the_way_of_oadp_loses_and_doubles_no_request() -> Result<()> {
    Box::pin(upgraded(&Oadp, "by-operator")).await
}
