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
use crate::ways::{CommandLine, Helm, Oadp, Way, all_run};

const PATIENCE: Duration = Duration::from_mins(4);

/// Installs the release before, upgrades to this one, and goes back.
async fn upgraded<W: Way>(way: &W) -> Result<()> {
    if !NodeCluster::can_run()? {
        return Ok(());
    }
    let cluster = NodeCluster::start_without_nacre().await?;
    let (previous, this) = (cluster.previous_release().await?, cluster.this_release()?);
    way.install(&cluster, &previous, true).await?;
    all_run(&cluster, &previous.image).await?;
    let tenant = cluster.tenant(W::NAME, "uma").await?;
    let policy = policy(&cluster)?;
    cluster.set_policy(&policy).await?;
    tenant.cli(&["backup", "create", "before", "--wait"]).await?.with_code(0)?;
    let stored = store(&tenant).await?;
    let from = if previous.is_other { "another release" } else { "the same program under another name" };

    let upgrade = way.install(&cluster, &this, false);
    let mut requested = replaced(&cluster, &tenant, upgrade, &this).await?;
    say(&format!("{}: upgraded from {from}, {} requests arrived meanwhile", W::NAME, requested.len()))?;
    requested.insert(0, "before".to_owned());
    each_is_created_once(&tenant, &requested).await?;
    assert_eq!(stored_now(&tenant).await?, stored, "after the upgrade");
    doctor_finds_crds_current(&cluster, &this).await?;

    // In another namespace: names of requests begin from the start again.
    let later = cluster.tenant(&format!("{}-back", W::NAME), "uma").await?;
    let arrived = replaced(&cluster, &later, way.go_back(&cluster, &previous), &previous).await?;
    say(&format!("{}: back to {from}, {} requests arrived meanwhile", W::NAME, arrived.len()))?;
    each_is_created_once(&later, &arrived).await?;
    // What the newer release stored is what the older one finds.
    each_is_created_once(&tenant, &requested).await?;
    assert_eq!(stored_now(&tenant).await?, stored, "after going back");
    let kept = ["get", "configmap", "nacre-policy", "-n", VELERO, "-o", "jsonpath={.data.policy\\.yaml}"];
    ensure!(cluster.site.kubectl(&kept).await?.ok()? == policy, "the policy did not stay");
    let why = brief_is_refused(&tenant).await?;
    ensure!(why.contains("spec.backupSpec.ttl") && why.contains("1h"), "{why}");
    doctor_finds_crds_current(&cluster, &previous).await
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
async fn doctor_finds_crds_current(cluster: &NodeCluster, release: &Release) -> Result<()> {
    let admin = cluster.site.kubeconfig();
    let page = eventually("doctor", PATIENCE, async || {
        cluster.site.run_as(&admin, &release.command_line, &["doctor"]).await?.with_code(0)
    })
    .await?;
    ensure!(page.contains("CRDs are there and current"), "{page}");
    Ok(())
}

#[tokio::test]
async fn an_upgrade_by_the_command_line_and_back_loses_and_doubles_no_request() -> Result<()> {
    Box::pin(upgraded(&CommandLine)).await
}

#[tokio::test]
async fn an_upgrade_by_the_chart_and_back_loses_and_doubles_no_request() -> Result<()> {
    Box::pin(upgraded(&Helm)).await
}

#[tokio::test]
async fn an_upgrade_the_way_of_oadp_and_back_loses_and_doubles_no_request() -> Result<()> {
    Box::pin(upgraded(&Oadp)).await
}
