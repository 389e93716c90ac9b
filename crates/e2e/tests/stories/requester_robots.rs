//! Robots as requesters, what is said in advance, commands in restores, and who asked for what afterwards: on the real API
//! server, with real Velero.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::velero::DownloadRequest;
use api::{NonAdminBackup, NonAdminRestore, condition, labels};
use bed::{Output, eventually};
use e2e::{Tenant, TestCluster};
use k8s_openapi::api::core::v1::{ConfigMap, Event, Secret};
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::downloads;
use crate::program::nacre;
use crate::requester::{grant, operator, record};
use crate::requester_rules::restore_refused;

/// More than an answer about permissions is used for.
const TIMEOUT: Duration = Duration::from_mins(3);

const ROBOT: &str = "system:serviceaccount:ci:robot";

/// What a job of CI, or Argo CD, applies.
fn manifest(name: &str) -> Value {
    json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminRestore",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"restoreSpec": {"backupName": "daily", "includedResources": ["configmaps", "secrets"]}}})
}

/// The real kubectl, with the token of the robot's service account.
async fn apply(test_cluster: &TestCluster, name: &str, more: &[&str]) -> Result<Output> {
    let bed = &test_cluster.bed;
    let file = bed.folder().join(format!("{name}.json"));
    std::fs::write(&file, manifest(name).to_string())?;
    let kubeconfig = bed.service_account_kubeconfig("ci", "robot").await?;
    let (file, kubeconfig) = (file.display().to_string(), kubeconfig.display().to_string());
    let apply = ["--kubeconfig", kubeconfig.as_str(), "apply", "-f", file.as_str()];
    bed.kubectl(&[&apply, more].concat()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn robots_are_judged_by_their_account_and_everything_names_who_asked() -> Result<()> {
    let test_cluster = TestCluster::build().await?;
    test_cluster.set_policy("downloads: {platformStorage: all}").await?;
    test_cluster.admission().await?;
    test_cluster.record_requesters().await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    let (controller, _) = test_cluster.start_answering(&shop, &[]).await?;
    shop.create::<Secret>("till", json!({"stringData": {"pin": "1234"}})).await?;
    shop.create::<ConfigMap>("plans", json!({"data": {"a": "b"}})).await?;
    shop.back_up("daily").await?;
    ensure!(shop.backup_ends("daily").await? == "Completed");

    a_robot_gets_what_its_account_may_create(&test_cluster, &shop).await?;
    let eve = operator(&test_cluster, "shop", "eve").await?;
    commands_of_a_restore_run_for_those_who_may_run_them(&test_cluster, &eve).await?;

    told_in_advance_with_the_line_for_what_is_in_the_backup(&test_cluster).await?;

    // ada downloads, and eve has the data deleted that ada asked for.
    downloads::ask(&shop, "log", "BackupLog", "daily").await?;
    downloads::link(&shop, "log").await?;
    let links = test_cluster.admin::<DownloadRequest>().await?.list(&ListParams::default()).await?;
    let by_ada =
        |link: &&DownloadRequest| link.annotations().get(labels::REQUESTER).is_some_and(|by| by == "ada");
    ensure!(links.iter().any(|link| by_ada(&link)), "administrators see who downloads");
    eve.edit::<NonAdminBackup>("daily", json!({"spec": {"deleteBackup": true}})).await?;
    shop.gone::<NonAdminBackup>("daily").await?;
    let trail = [
        ("BackupScheduled", "ada"),
        ("RestoreScheduled", ROBOT),
        ("DownloadRequested", "ada"),
        ("DeletionRequested", "eve"),
    ];
    events_name_who_asked(&test_cluster, &trail).await?;
    let metrics = controller.metrics().await?;
    for (reason, _) in trail {
        let counted = |line: &&str| {
            let ours = line.starts_with("nacre_asked_total{") && line.contains("\"shop\"");
            ours && line.contains(&format!("\"{reason}\"")) && !line.ends_with(" 0")
        };
        ensure!(metrics.lines().any(|line| counted(&line)), "{reason} is not counted");
    }
    for (_, user) in trail {
        ensure!(!metrics.contains(&format!("\"{user}\"")), "a metric names {user}");
    }
    Ok(())
}

/// With just too little it is told so by the API server, with the line that gives it just enough.
async fn a_robot_gets_what_its_account_may_create(
    test_cluster: &TestCluster,
    shop: &Tenant<'_>,
) -> Result<()> {
    let bed = &test_cluster.bed;
    let account = "apiVersion: v1\nkind: Namespace\nmetadata: {name: ci}\n---\n\
                   apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: robot, namespace: ci}\n";
    bed.apply_yaml(account).await?;
    operator(test_cluster, "shop", ROBOT).await?;
    let maps = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]}]);
    grant(bed, "shop", ROBOT, "makes-maps", maps).await?;
    bed.wait_allowed(ROBOT, "shop", "create", "", "configmaps").await?;

    lose(shop).await?;
    let warned = apply(test_cluster, "first", &[]).await?;
    ensure!(warned.success, "it is only a warning: {warned:?}");
    let left_out =
        format!("\"{ROBOT}\" does not have the permissions for all of it; this is left out: secrets");
    ensure!(warned.stderr.contains(&format!("Warning: {left_out}\n")), "{}", warned.stderr);
    let made = shop.api::<NonAdminRestore>().get("first").await?;
    let by = record(&made).context("a record")?;
    ensure!(by.contains(ROBOT) && by.contains("system:serviceaccounts:ci"), "{by}");
    ensure!(shop.restore_ends("first").await? == "Completed");
    ensure!(is_back(shop).await? == (true, false), "a ConfigMap, and no Secret");
    let status = shop.api::<NonAdminRestore>().get("first").await?.status.context("a status")?;
    let named =
        condition::get(&status.conditions, condition::REQUESTER_PERMITTED).context("what was left out")?;
    ensure!(named.message.contains(ROBOT) && named.message.ends_with(": secrets"), "{}", named.message);

    // An administrator types what the warning says.
    let remedy = warned.stderr.lines().find_map(|line| line.split_once("an administrator can permit it: "));
    let (_, remedy) = remedy.with_context(|| warned.stderr.clone())?;
    ensure!(remedy.contains("--serviceaccount=ci:robot"), "{remedy}");
    for command in remedy.split(" && ") {
        let words: Vec<&str> = command.split(' ').skip(1).collect();
        bed.kubectl(&words).await?.ok()?;
    }
    eventually("nothing to be left out any more", TIMEOUT, async || {
        let tried = apply(test_cluster, "second", &["--dry-run=server"]).await?;
        ensure!(tried.success && !tried.stderr.contains("Warning"), "{}", tried.stderr);
        Ok(())
    })
    .await?;
    lose(shop).await?;
    apply(test_cluster, "second", &[]).await?.ok()?;
    ensure!(shop.restore_ends("second").await? == "Completed");
    ensure!(is_back(shop).await? == (true, true), "a ConfigMap and a Secret");
    Ok(())
}

/// The objects that the backup holds are removed.
async fn lose(shop: &Tenant<'_>) -> Result<()> {
    shop.delete::<ConfigMap>("plans").await?;
    if shop.api::<Secret>().get_opt("till").await?.is_some() {
        shop.delete::<Secret>("till").await?;
    }
    Ok(())
}

/// Whether the ConfigMap and the Secret are back.
async fn is_back(shop: &Tenant<'_>) -> Result<(bool, bool)> {
    let map = shop.api::<ConfigMap>().get_opt("plans").await?.is_some();
    Ok((map, shop.api::<Secret>().get_opt("till").await?.is_some()))
}

/// The hooks of a restore run commands in pods, so they take what `kubectl exec` takes.
async fn commands_of_a_restore_run_for_those_who_may_run_them(
    test_cluster: &TestCluster,
    eve: &Tenant<'_>,
) -> Result<()> {
    let bed = &test_cluster.bed;
    let bob = operator(test_cluster, "shop", "bob").await?;
    let rules = |verb: &str| {
        json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]},
            {"apiGroups": [""], "resources": ["pods/exec"], "verbs": [verb]}])
    };
    grant(bed, "shop", "eve", "reads-exec", rules("get")).await?;
    grant(bed, "shop", "bob", "creates-exec", rules("create")).await?;
    bed.wait_allowed("eve", "shop", "create", "", "configmaps").await?;
    bed.wait_allowed("bob", "shop", "create", "", "pods/exec").await?;
    let hook = json!({"name": "warm-up", "postHooks": [{"exec": {"command": ["true"]}}]});
    let hooked = json!({"spec": {"restoreSpec": {"backupName": "daily", "includedResources": ["configmaps"],
        "hooks": {"resources": [hook]}}}});
    eve.create::<NonAdminRestore>("hers", hooked.clone()).await?;
    let why = restore_refused(eve, "hers").await?;
    let expected = "RequesterNotPermitted: spec.restoreSpec.hooks: \"eve\" may not create pods/exec";
    ensure!(why.starts_with(expected) && why.contains("--resource=pods/exec"), "{why}");
    bob.create::<NonAdminRestore>("his", hooked).await?;
    ensure!(bob.restore_ends("his").await? == "Completed");
    Ok(())
}

/// By `restore preview` and `explain`, as eve: she may create ConfigMaps, and nothing else.
async fn told_in_advance_with_the_line_for_what_is_in_the_backup(test_cluster: &TestCluster) -> Result<()> {
    let bed = &test_cluster.bed;
    let as_eve = ["-n", "shop", "--as", "eve"];
    let preview = [&["restore", "preview", "--from-backup", "daily", "-o", "json"][..], &as_eve].concat();
    let preview = nacre(&bed.kubeconfig(), &preview).await?.json(3)?;
    let commands: Vec<String> = serde_json::from_value(preview["commands"].clone())?;
    let commands = commands.join("\n");
    ensure!(commands.contains("secrets") && commands.contains("--user=eve"), "{preview:#}");
    for absent in ["deployments.apps", "pods", "configmaps"] {
        ensure!(!commands.contains(absent), "{absent}: {commands}");
    }
    let file = bed.folder().join("hers.json");
    std::fs::write(&file, manifest("hers-too").to_string())?;
    let file = file.display().to_string();
    let explained =
        nacre(&bed.kubeconfig(), &[&["explain", "-f", file.as_str()][..], &as_eve].concat()).await?;
    ensure!(explained.stdout.contains("left out") && explained.stdout.contains("secrets"), "{explained:#?}");
    ensure!(
        explained.stdout.contains("an administrator can permit it: kubectl create role"),
        "{explained:#?}"
    );
    Ok(())
}

/// For each reason there is an Event in the namespace that names who asked.
async fn events_name_who_asked(test_cluster: &TestCluster, trail: &[(&str, &str)]) -> Result<()> {
    let events = Api::<Event>::namespaced(test_cluster.bed.client().await?, "shop");
    eventually("an Event for everything that was asked", TIMEOUT, async || {
        let all = events.list(&ListParams::default()).await?;
        for (reason, user) in trail {
            let found: Vec<&Event> =
                all.iter().filter(|event| event.reason.as_deref() == Some(reason)).collect();
            let by = format!("asked for by \"{user}\"");
            let is_named = |event: &Event| event.message.as_deref().is_some_and(|text| text.contains(&by));
            ensure!(found.iter().any(|event| is_named(event)), "{reason} by {user}: {found:#?}");
        }
        Ok(())
    })
    .await
}
