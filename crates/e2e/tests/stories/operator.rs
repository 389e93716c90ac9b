//! `nacre operator` on a cluster without OADP: the controller is installed and removed as a DataProtectionApplication
//! says. No kubelet runs here, so the test starts and stops the program as the Deployment says.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::velero::{Backup, DownloadRequest, Schedule};
use api::{DataProtectionApplication, NonAdminBackup, condition, labels};
use bed::eventually;
use e2e::two_replicas::{created, leads, only_holders_act, sender};
use e2e::{NACRE, Nacre, TestCluster, VELERO};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::events::v1::Event;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

const TIMEOUT: Duration = Duration::from_mins(2);
/// A standby that looks often.
const BRISK: [(&str, &str); 1] = [("NACRE_LEASE_RETRY_PERIOD", "500ms")];
const FINALIZER: &str = "nonadminbackup.oadp.openshift.io/finalizer";

async fn ask(test_cluster: &TestCluster, namespace: &str, spec: Value) -> Result<()> {
    let body = json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "DataProtectionApplication",
        "metadata": {"name": "dpa"}, "spec": spec});
    let api = Api::<DataProtectionApplication>::namespaced(test_cluster.bed.client().await?, namespace);
    api.patch("dpa", &PatchParams::apply("administrator").force(), &Patch::Apply(body)).await?;
    Ok(())
}

/// Waits until the application's condition is current, and returns its message.
async fn reported(test_cluster: &TestCluster, well: bool) -> Result<String> {
    let api = test_cluster.admin::<DataProtectionApplication>().await?;
    bed::wait_until("the application to be told", TIMEOUT, api, "dpa", |one| {
        let one: &DataProtectionApplication = one?;
        let found = condition::get(&one.status.as_ref()?.conditions, condition::RECONCILED)?;
        let current = found.observed_generation == one.metadata.generation;
        (current && (found.status == "True") == well).then(|| format!("{}: {}", found.reason, found.message))
    })
    .await
}

async fn deployment(
    test_cluster: &TestCluster,
    what: &str,
    is: impl Fn(Option<&Deployment>) -> bool,
) -> Result<Option<Deployment>> {
    let api = test_cluster.admin::<Deployment>().await?;
    bed::wait_until(what, TIMEOUT, api, "non-admin-controller", |one| is(one).then(|| one.cloned())).await
}

/// What the kubelet would do.
async fn play_pod(test_cluster: &TestCluster, deployment: &Deployment) -> Result<Nacre> {
    let spec = serde_json::to_value(&deployment.spec)?;
    let container = &spec["template"]["spec"]["containers"][0];
    ensure!(container["args"].is_null(), "OADP's operator gives no arguments either: {container}");
    let env = container["env"].as_array().cloned().unwrap_or_default();
    let watch = env.iter().find(|one| one["name"] == "WATCH_NAMESPACE").context("WATCH_NAMESPACE")?;
    ensure!(watch["value"] == VELERO, "{watch}");
    let nacre = test_cluster.launch("pod", VELERO, &test_cluster.account_of(VELERO).await?, &[])?;
    leads(&nacre, true).await?;
    Ok(nacre)
}

fn replicas(deployment: &Deployment) -> Option<i32> {
    deployment.spec.as_ref()?.replicas
}

fn image(deployment: &Deployment) -> Option<&str> {
    deployment.spec.as_ref()?.template.spec.as_ref()?.containers.first()?.image.as_deref()
}

/// Of two in one namespace the first is used, and the other gets a condition.
async fn two_beside_each_other(test_cluster: &TestCluster) -> Result<()> {
    let api = test_cluster.admin::<DataProtectionApplication>().await?;
    let second = json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "DataProtectionApplication",
        "metadata": {"name": "second"}, "spec": {"nonAdmin": {"enable": false}}});
    api.create(&PostParams::default(), &serde_json::from_value(second)?).await?;
    bed::wait_until("the second to be told", TIMEOUT, api.clone(), "second", |one| {
        let found = condition::get(&one?.status.as_ref()?.conditions, condition::RECONCILED)?;
        (found.status == "False" && found.message.contains("dpa")).then_some(())
    })
    .await?;
    deployment(test_cluster, "it to stay", |one| one.and_then(replicas) == Some(2)).await?;
    api.delete("second", &DeleteParams::default()).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_controller_comes_and_goes_as_the_application_says() -> Result<()> {
    let test_cluster = TestCluster::build_for_operator().await?;
    let mark = test_cluster.bed.audit().mark().await?;
    let operator = test_cluster.start_operator().await?;
    leads(&operator, true).await?;
    // Of two, one is leader; the other names it, and takes its place below.
    let other = test_cluster.account_named(VELERO, "nacre-operator").await?;
    let standby = test_cluster.launch_operator("second", &other, &BRISK)?;
    let standing_by = async || {
        let details = standby.details().await?;
        ensure!(details.contains("standby: velero/operator_"), "{details}");
        anyhow::Ok(())
    };
    eventually("the second operator to say who leads", TIMEOUT, standing_by).await?;

    // Off unless asked for.
    ask(&test_cluster, VELERO, json!({"configuration": {"velero": {}}})).await?;
    ensure!(reported(&test_cluster, true).await? == "Complete: Reconcile complete");
    deployment(&test_cluster, "no Deployment", |one| one.is_none()).await?;

    // On.
    ask(&test_cluster, VELERO, json!({"nonAdmin": {"enable": true}})).await?;
    let made = deployment(&test_cluster, "the Deployment", |one| one.is_some()).await?.context("it")?;
    reported(&test_cluster, true).await?;
    let pod = play_pod(&test_cluster, &made).await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    shop.back_up("daily").await?;
    shop.back_up("weekly").await?;
    created(&shop, "daily").await?;
    created(&shop, "weekly").await?;

    // Changed, and a wish that makes no sense changes nothing.
    let overrides = json!({"nonAdminControllerImageFqin": "mine:1"});
    ask(&test_cluster, VELERO, json!({"nonAdmin": {"enable": true}, "unsupportedOverrides": overrides}))
        .await?;
    deployment(&test_cluster, "the image", |one| one.and_then(image) == Some("mine:1")).await?;
    let wrong = json!({"enable": true, "enforceBackupSpec": {"includedNamespaces": ["other"]}});
    ask(&test_cluster, VELERO, json!({"nonAdmin": wrong})).await?;
    let words = reported(&test_cluster, false).await?;
    ensure!(words.starts_with("Error: ") && words.contains("includedNamespaces"), "{words}");
    deployment(&test_cluster, "the image to stay", |one| one.and_then(image) == Some("mine:1")).await?;

    two_beside_each_other(&test_cluster).await?;

    // Silence, once settled; a `false` elsewhere is no reason to act.
    ask(&test_cluster, VELERO, json!({"nonAdmin": {"enable": true}})).await?;
    reported(&test_cluster, true).await?;
    test_cluster.bed.namespace("elsewhere").await?;
    ask(&test_cluster, "elsewhere", json!({"nonAdmin": {"enable": false}})).await?;
    let silent = async || test_cluster.bed.audit().quiet(NACRE, Duration::from_secs(2)).await;
    eventually("silence", TIMEOUT, silent).await?;

    // Off: to rest, and once the last pod is gone requests are let go and the Deployment is removed.
    ask(&test_cluster, VELERO, json!({"nonAdmin": {"enable": false}})).await?;
    deployment(&test_cluster, "rest", |one| one.and_then(replicas) == Some(0)).await?;
    let finalizers = async |name: &str| {
        let found = shop.api::<NonAdminBackup>().get(name).await?;
        anyhow::Ok(found.metadata.finalizers.unwrap_or_default())
    };
    // In the middle of that the other operator takes over: what was begun is there to be read.
    ensure!(operator.process.terminate(TIMEOUT).await? == Some(0), "the operator ends in peace");
    let operator = standby;
    leads(&operator, true).await?;
    let patient = async || {
        let log = operator.process.output();
        ensure!(log.contains("waiting for velero/pod_"), "{log}");
        Ok(())
    };
    eventually("the operator to wait for the pod", TIMEOUT, patient).await?;
    ensure!(finalizers("daily").await? == [FINALIZER], "while a pod lives, nobody takes it off");
    ensure!(pod.process.terminate(TIMEOUT).await? == Some(0), "as the kubelet ends it");
    deployment(&test_cluster, "the Deployment to be gone", |one| one.is_none()).await?;
    reported(&test_cluster, true).await?;
    ensure!(finalizers("daily").await?.is_empty() && finalizers("weekly").await?.is_empty());
    shop.delete::<NonAdminBackup>("weekly").await?;
    shop.gone::<NonAdminBackup>("weekly").await?;

    // On again, said in the other place: finalizers come back.
    ask(&test_cluster, VELERO, json!({"features": {"nonAdmin": {"enable": true}}})).await?;
    let made = deployment(&test_cluster, "the Deployment", |one| one.is_some()).await?.context("it")?;
    let _pod = play_pod(&test_cluster, &made).await?;
    let back = async || {
        let found = finalizers("daily").await?;
        ensure!(found == [FINALIZER], "{found:?}");
        Ok(())
    };
    eventually("the finalizer to come back", TIMEOUT, back).await?;
    let events = test_cluster.admin::<Event>().await?.list(&ListParams::default()).await?.items;
    for reason in ["NonAdminDeploymentReconciled", "NonAdminDeploymentDeleteSucceed"] {
        ensure!(events.iter().any(|event| event.reason.as_deref() == Some(reason)), "{reason}");
    }

    // Where OADP's operator comes, the applications are its own.
    let body = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "openshift-adp-controller-manager", "namespace": VELERO},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": {
            "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "manager", "image": "oadp:1"}]}}}});
    test_cluster.bed.apply(&[serde_json::from_value(body)?]).await?;
    let aside = async || {
        let log = operator.process.output();
        ensure!(log.contains("its applications are left to it"), "{log}");
        Ok(())
    };
    eventually("the operator to stand aside", TIMEOUT, aside).await?;
    // What the program writes after it started is over.
    test_cluster.bed.audit().until_quiet(NACRE, Duration::from_secs(3)).await?;
    ask(&test_cluster, VELERO, json!({"nonAdmin": {"enable": false}})).await?;
    test_cluster.bed.audit().quiet(NACRE, Duration::from_secs(3)).await?;
    deployment(&test_cluster, "it to stay", |one| one.and_then(replicas) == Some(2)).await?;
    let account = format!("system:serviceaccount:{VELERO}:nacre-operator");
    let both = test_cluster.bed.audit().since(mark).await?.only(|request| request.user == account);
    let senders: std::collections::BTreeSet<_> =
        both.writes().as_slice().iter().map(|one| sender(one).1.to_owned()).collect();
    ensure!(senders.len() == 2, "both acted, one after the other: {senders:?}");
    only_holders_act(&both)
}

/// Nobody would keep them true: copies of Velero's objects go with the controller that made them.
#[tokio::test(flavor = "multi_thread")]
async fn disabling_removes_copies_of_veleros_objects_and_download_links_from_tenants_namespaces() -> Result<()>
{
    let test_cluster = TestCluster::build_for_operator().await?;
    test_cluster.allow_velero_view().await?;
    let _operator = test_cluster.start_operator().await?;
    ask(&test_cluster, VELERO, json!({"nonAdmin": {"enable": true}})).await?;
    deployment(&test_cluster, "the Deployment", |one| one.is_some()).await?;

    // As the controller would have made them, and one that a tenant's own Velero has.
    test_cluster.bed.namespace("shop").await?;
    let object = |kind: &str, name: &str, metadata: Value, spec: Value| {
        let mut metadata = metadata;
        metadata["name"] = json!(name);
        metadata["namespace"] = json!("shop");
        json!({"apiVersion": "velero.io/v1", "kind": kind, "metadata": metadata, "spec": spec})
    };
    let download = |name: &str, metadata: Value| {
        let target = json!({"target": {"kind": "BackupContents", "name": "daily"}});
        let mut download = object("DownloadRequest", name, metadata, target);
        download["status"] = json!({"phase": "Processed", "downloadURL": "http://store/signed"});
        download
    };
    let copy = json!({"labels": {labels::SHOWN: labels::SHOWN_COPY}});
    let held =
        json!({"labels": {labels::SHOWN: labels::SHOWN_COPY}, "finalizers": [labels::VELERO_VIEW_FINALIZER]});
    let objects = [
        object("Backup", "daily", copy, json!({})),
        object("Schedule", "nightly", held, json!({"schedule": "@daily", "template": {}})),
        object("Backup", "foreign", json!({}), json!({})),
        download("answered", json!({"labels": {labels::EXCLUDE_FROM_BACKUP: "true"}})),
        download("foreign", json!({})),
    ];
    let objects = objects.into_iter().map(serde_json::from_value).collect::<Result<Vec<_>, _>>()?;
    test_cluster.bed.apply(&objects).await?;

    ask(&test_cluster, VELERO, json!({"nonAdmin": {"enable": false}})).await?;
    deployment(&test_cluster, "the Deployment to be gone", |one| one.is_none()).await?;
    let client = test_cluster.bed.client().await?;
    let backups = Api::<Backup>::namespaced(client.clone(), "shop").list(&ListParams::default()).await?;
    let names: Vec<_> = backups.items.iter().map(ResourceExt::name_any).collect();
    ensure!(names == ["foreign"], "{names:?}");
    let schedules = Api::<Schedule>::namespaced(client.clone(), "shop").list(&ListParams::default()).await?;
    ensure!(schedules.items.is_empty(), "{:?}", schedules.items);
    // A link that nacre gave opens everything in a backup.
    let links = Api::<DownloadRequest>::namespaced(client, "shop").list(&ListParams::default()).await?;
    let names: Vec<_> = links.items.iter().map(ResourceExt::name_any).collect();
    ensure!(names == ["foreign"], "{names:?}");
    Ok(())
}
