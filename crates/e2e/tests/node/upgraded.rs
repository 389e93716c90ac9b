//! An upgrade from the release before, and back to it, in each of the ways in which nacre is installed, while requests arrive
//! all the time: none is lost and none is doubled, and what is stored stays. Each on a node of its own. Part of `make long`.
//!
//! The release before is that of `NACRE_PREVIOUS` (`make upgrade FROM=COMMIT`), else this one under another name.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use api::{NonAdminBackup, condition};
use bed::{eventually, wait_until};
use e2e::{NodeCluster, NodeTenant, Release, VELERO};
use kube::ResourceExt;
use kube::api::PostParams;
use serde_json::{Value, json};

use crate::arriving::{each_is_created_once, meanwhile};
use crate::say;

const PATIENCE: Duration = Duration::from_mins(4);

/// Installs a release, or upgrades to it.
trait Way {
    /// Whether admission policies and webhook are installed with it. OADP's operator installs none, and doctor names that.
    const WITH_ADMISSION: bool = true;

    async fn install(&self, cluster: &NodeCluster, release: &Release, is_first: bool) -> Result<()>;

    /// Goes back to a release that was installed before.
    async fn go_back(&self, cluster: &NodeCluster, release: &Release) -> Result<()> {
        self.install(cluster, release, false).await
    }
}

/// Installs the release before, upgrades to this one, and goes back.
async fn upgraded<W: Way>(way: &W, namespace: &str) -> Result<()> {
    if !NodeCluster::can_run()? {
        return Ok(());
    }
    let cluster = NodeCluster::start_without_nacre().await?;
    let (previous, this) = (cluster.previous_release().await?, cluster.this_release()?);
    way.install(&cluster, &previous, true).await?;
    all_run(&cluster, &previous.image).await?;
    let tenant = cluster.tenant(namespace, "uma").await?;
    let policy = policy(&cluster)?;
    cluster.set_policy(&policy).await?;
    tenant.cli(&["backup", "create", "before", "--wait"]).await?.with_code(0)?;
    let stored = store(&tenant).await?;
    let from = if previous.is_other { "another release" } else { "the same program under another name" };

    let upgrade = way.install(&cluster, &this, false);
    let mut requested = replaced(&cluster, &tenant, upgrade, &this).await?;
    say(&format!("{namespace}: upgraded from {from}, {} requests arrived meanwhile", requested.len()))?;
    requested.insert(0, "before".to_owned());
    each_is_created_once(&tenant, &requested).await?;
    assert_eq!(stored_now(&tenant).await?, stored, "after the upgrade");
    doctor_finds_crds_current::<W>(&cluster, &this).await?;

    // In another namespace: names of requests begin from the start again.
    let later = cluster.tenant(&format!("{namespace}-back"), "uma").await?;
    let arrived = replaced(&cluster, &later, way.go_back(&cluster, &previous), &previous).await?;
    say(&format!("{namespace}: back to {from}, {} requests arrived meanwhile", arrived.len()))?;
    each_is_created_once(&later, &arrived).await?;
    // What the newer release stored is what the older one finds.
    each_is_created_once(&tenant, &requested).await?;
    assert_eq!(stored_now(&tenant).await?, stored, "after going back");
    let kept = ["get", "configmap", "nacre-policy", "-n", VELERO, "-o", "jsonpath={.data.policy\\.yaml}"];
    ensure!(cluster.site.kubectl(&kept).await?.ok()? == policy, "the policy did not stay");
    let why = brief_is_refused(&tenant).await?;
    ensure!(why.contains("spec.backupSpec.ttl") && why.contains("1h"), "{why}");
    doctor_finds_crds_current::<W>(&cluster, &previous).await
}

/// Backups are kept for an hour at least, and an administrator decides who brings storage.
fn policy(cluster: &NodeCluster) -> Result<String> {
    let url = cluster.site.node()?.store_url();
    let host = url.trim_start_matches("http://").split(':').next().unwrap_or_default();
    let locations =
        format!("storageLocations: {{ requireApproval: true, endpoints: {{ allow: ['{host}'] }} }}");
    Ok(format!("backup: {{ ttl: {{ min: 1h }} }}\n{locations}"))
}

/// Has the release that runs store a restore, a schedule and a location that waits for approval.
async fn store(tenant: &NodeTenant<'_>) -> Result<Vec<Value>> {
    let node = tenant.cluster.site.node()?;
    let request = |kind: &str, name: &str, spec: Value| json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec});
    let back = json!({"restoreSpec": {"backupName": "before"}});
    tenant.apply(&request("NonAdminRestore", "back", back)).await?;
    let yearly = json!({"schedule": "@yearly", "template": {"backupSpec": {}}});
    tenant.apply(&request("NonAdminSchedule", "yearly", yearly)).await?;
    let keys = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"},
        "stringData": {"cloud": node.store_credentials()}});
    tenant.apply(&keys).await?;
    node.make_bucket("upgraded")?;
    let location = json!({"provider": "aws", "objectStorage": {"bucket": "upgraded"},
        "config": {"region": bed::REGION, "s3ForcePathStyle": "true", "s3Url": node.store_url()},
        "credential": {"name": "keys", "key": "cloud"}});
    let location = json!({ "backupStorageLocationSpec": location });
    tenant.apply(&request("NonAdminBackupStorageLocation", "mine", location)).await?;
    eventually("all of it to be decided about", PATIENCE, async || {
        let stored = stored_now(tenant).await?;
        // Velero has a name for the restore and the location. The schedule's are those of its runs.
        let is_decided = |one: &Value| {
            one["phase"].is_string() && (one["velero"].is_string() || one["kind"] == "NonAdminSchedule")
        };
        ensure!(stored.len() == 3 && stored.iter().all(is_decided), "{stored:#?}");
        Ok(stored)
    })
    .await
}

/// What is stored of restores, schedules and locations: what was asked for, how far it is, and what Velero calls it.
async fn stored_now(tenant: &NodeTenant<'_>) -> Result<Vec<Value>> {
    let kinds = "nonadminrestores,nonadminschedules,nonadminbackupstoragelocations";
    let list = tenant.kubectl(&["get", kinds, "--output", "json"]).await?.ok()?;
    let list: Value = serde_json::from_str(&list).context("a list")?;
    let short = |one: &Value| {
        let status = &one["status"];
        let reference = ["veleroRestore", "veleroBackupStorageLocation"].map(|field| &status[field]["name"]);
        json!({"kind": one["kind"], "uid": one["metadata"]["uid"], "spec": one["spec"], "phase": status["phase"],
            "velero": reference.into_iter().find(|name| name.is_string())})
    };
    Ok(list["items"].as_array().into_iter().flatten().map(short).collect())
}

/// Asks for a backup that is kept too briefly, and returns why it is refused: before it is stored, or by its condition.
async fn brief_is_refused(tenant: &NodeTenant<'_>) -> Result<String> {
    let request = json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackup",
        "metadata": {"name": "brief"}, "spec": {"backupSpec": {"ttl": "1s"}}});
    let backups = tenant.api::<NonAdminBackup>();
    let request = serde_json::from_value(request)?;
    if let Some(why) = e2e::refusal(backups.create(&PostParams::default(), &request).await)? {
        return Ok(why);
    }
    wait_until("it to be refused", PATIENCE, backups, "brief", |backup: Option<&NonAdminBackup>| {
        let accepted = condition::get(&backup?.status.as_ref()?.conditions, condition::ACCEPTED)?;
        (accepted.status == "False").then(|| accepted.message.clone())
    })
    .await
}

/// Replaces the release that runs while requests arrive, and returns their names.
async fn replaced(
    cluster: &NodeCluster,
    tenant: &NodeTenant<'_>,
    change: impl Future<Output = Result<()>>,
    to: &Release,
) -> Result<Vec<String>> {
    let before: Vec<_> = cluster.nacre_pods().await?.iter().map(ResourceExt::name_any).collect();
    let (requested, after) = meanwhile(tenant, async {
        change.await?;
        all_run(cluster, &to.image).await
    })
    .await?;
    ensure!(after.iter().all(|pod| !before.contains(pod)), "the old pods are still there: {after:?}");
    ensure!(requested.len() > 5, "only {} requests arrived meanwhile", requested.len());
    Ok(requested)
}

/// The release's own doctor finds its own CRDs.
async fn doctor_finds_crds_current<W: Way>(cluster: &NodeCluster, release: &Release) -> Result<()> {
    let (code, admin) = (i32::from(!W::WITH_ADMISSION), cluster.site.kubeconfig());
    let page = eventually("doctor", PATIENCE, async || {
        cluster.site.run_as(&admin, &release.command_line, &["doctor"]).await?.with_code(code)
    })
    .await?;
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
async fn an_upgrade_by_the_command_line_and_back_loses_and_doubles_no_request() -> Result<()> {
    Box::pin(upgraded(&CommandLine, "by-command")).await
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

    async fn go_back(&self, cluster: &NodeCluster, release: &Release) -> Result<()> {
        let args = ["rollback", "nacre", "-n", VELERO, "--wait", "--timeout", "4m"];
        cluster.site.run_as(&cluster.site.kubeconfig(), "helm", &args).await?.ok()?;
        // The newer program needs the newer CRDs as long as it runs.
        apply_crds(cluster, release).await
    }
}

async fn apply_crds(cluster: &NodeCluster, release: &Release) -> Result<()> {
    let crds = release.deploy.join("crds").display().to_string();
    let apply = ["apply", "--server-side", "--force-conflicts", "--filename", &crds];
    cluster.site.kubectl(&apply).await?.ok().map(drop)
}

#[tokio::test]
async fn an_upgrade_by_the_chart_and_back_loses_and_doubles_no_request() -> Result<()> {
    Box::pin(upgraded(&Helm, "by-chart")).await
}

/// `nacre operator` in place of OADP's, with the image named in the DataProtectionApplication.
struct Oadp;

impl Way for Oadp {
    const WITH_ADMISSION: bool = false;

    async fn install(&self, cluster: &NodeCluster, release: &Release, _is_first: bool) -> Result<()> {
        apply_crds(cluster, release).await?;
        self.run(cluster, release).await
    }

    async fn go_back(&self, cluster: &NodeCluster, release: &Release) -> Result<()> {
        self.run(cluster, release).await?;
        all_run(cluster, &release.image).await?;
        apply_crds(cluster, release).await
    }
}

impl Oadp {
    /// Runs the operator of a release, and has it run the controller.
    async fn run(&self, cluster: &NodeCluster, release: &Release) -> Result<()> {
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
async fn an_upgrade_the_way_of_oadp_and_back_loses_and_doubles_no_request() -> Result<()> {
    Box::pin(upgraded(&Oadp, "by-operator")).await
}
