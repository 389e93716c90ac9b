//! A background task that ends or panics ends the process: a leader never renews its lease over a stale cache.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::labels;
use bed::eventually;
use e2e::two_replicas::{created, leads, only_holders_act};
use e2e::{Nacre, Tenant, TestCluster, VELERO};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use tokio::time::timeout;

const TIMEOUT: Duration = Duration::from_mins(3);

/// Tasks that must be among those found, so that a log that says nothing fails. The webhook's listener and server start
/// only where a webhook is configured and has its certificate.
const AMONG_THEM: [&str; 29] = [
    "leader election",
    "watch NonAdminBackup",
    "watch Backup",
    "watch copies of Backup",
    "probes",
    "metrics",
    "events",
    "webhook",
    "webhook listener",
    "webhook server",
    "policy",
    "vanished policy",
    "policy copy",
    "usage",
    "live migration",
    "queue positions",
    "credentials",
    "Velero view",
    "snapshot classes",
    "fence",
    "results",
    "Velero version",
    "Velero log",
    "Velero's pauses",
    "terms",
    "sync",
    "garbage collection",
    "worker 0",
    "worker 31",
];

/// The tasks that a program has started, by its log.
fn started(log: &str) -> BTreeSet<String> {
    let names = log.lines().filter_map(|line| line.split_once("task \"")?.1.strip_suffix("\" started"));
    names.map(str::to_owned).collect()
}

/// How many programs are started at a time.
const AT_A_TIME: usize = 4;

/// Whether this one stands for others of its kind: the watches of two kinds, those of copies of one, and the last worker.
fn is_tried(task: &str) -> bool {
    match task.split_once(' ') {
        Some(("watch", kind)) => ["NonAdminBackup", "Backup", "copies of Backup"].contains(&kind),
        Some(("worker", number)) => number == "31",
        _ => true,
    }
}

async fn ends(nacre: &Nacre, task: &str) -> Result<()> {
    let code = timeout(TIMEOUT, nacre.process.exited())
        .await
        .with_context(|| format!("{task:?} panicked and nacre went on:\n{}", nacre.process.output()))?;
    let log = nacre.process.output();
    ensure!(code == Some(1), "{task:?}: exit code {code:?}\n{log}");
    ensure!(log.contains(&format!("task {task:?} panicked")), "{task:?} is not named\n{log}");
    Ok(())
}

/// Copies of Velero's objects are watched by the leader, and only once a namespace wants them.
async fn want_copies(shop: &Tenant<'_>) -> Result<()> {
    let labels = json!({"metadata": {"labels": {labels::VELERO_VIEW: "true"}}});
    let namespaces = Api::<Namespace>::all(shop.bed.client().await?);
    namespaces.patch(&shop.namespace, &PatchParams::default(), &Patch::Merge(labels)).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_panics_ends_the_process_and_is_named() -> Result<()> {
    let test_cluster = TestCluster::build_with_idle_velero().await?;
    test_cluster.admission().await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    test_cluster.allow_velero_view().await?;
    want_copies(&shop).await?;
    let (nacre, _) = test_cluster.start_answering(&shop, &[]).await?;
    let tasks = eventually("all tasks to be started", TIMEOUT, async || {
        let tasks = started(&nacre.process.output());
        let missing: Vec<_> = AMONG_THEM.into_iter().filter(|task| !tasks.contains(*task)).collect();
        ensure!(missing.is_empty(), "{missing:?} were not started: {tasks:?}");
        Ok(tasks)
    })
    .await?;
    // So the next one is leader at once.
    nacre.process.terminate(TIMEOUT).await?;
    let account = test_cluster.account().await?;
    let panic = async |(number, task): (usize, String)| {
        let environment = [("NACRE_PANIC_TASK", task.as_str()), ("WEBHOOK_BIND_ADDRESS", "127.0.0.1:0")];
        let nacre = test_cluster.launch(&format!("nacre-{number}"), VELERO, &account, &environment)?;
        ends(&nacre, &task).await
    };
    let tried = tasks.into_iter().filter(|task| is_tried(task)).enumerate();
    stream::iter(tried).map(panic).buffer_unordered(AT_A_TIME).try_collect().await
}

/// The task starts when a namespace wants copies, so the leader has led for a while when it panics.
#[tokio::test(flavor = "multi_thread")]
async fn after_a_task_of_the_leader_has_panicked_the_standby_is_leader() -> Result<()> {
    const TASK: &str = "watch copies of Backup";
    let test_cluster = TestCluster::build_with_idle_velero().await?;
    test_cluster.hand_over_at_once().await?;
    test_cluster.allow_velero_view().await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    let mark = test_cluster.bed.audit().mark().await?;
    let launch = async |name: &str, environment: &[(&str, &str)]| {
        test_cluster.launch(name, VELERO, &test_cluster.account_of(VELERO).await?, environment)
    };
    let first = launch("first", &[("NACRE_PANIC_TASK", TASK)]).await?;
    leads(&first, true).await?;
    let second = launch("second", &[]).await?;
    second.until_ready().await?;
    leads(&second, false).await?;
    shop.back_up("before").await?;
    created(&shop, "before").await?;

    want_copies(&shop).await?;
    ends(&first, TASK).await?;
    leads(&second, true).await?;
    let leases = Api::<Lease>::namespaced(test_cluster.bed.client().await?, "kube-system");
    let holder = leases.get("nacre").await?.spec.and_then(|spec| spec.holder_identity).unwrap_or_default();
    ensure!(holder.starts_with("velero/second_"), "{holder:?} holds the Lease");
    shop.back_up("after").await?;
    created(&shop, "after").await?;
    eventually("the second to run that task", TIMEOUT, async || {
        ensure!(started(&second.process.output()).contains(TASK), "{}", second.process.output());
        Ok(())
    })
    .await?;
    only_holders_act(&test_cluster.bed.audit().since(mark).await?)
}

#[tokio::test(flavor = "multi_thread")]
async fn so_does_one_of_the_operator() -> Result<()> {
    let test_cluster = TestCluster::build_for_operator().await?;
    let account = test_cluster.bed.service_account_kubeconfig(VELERO, "nacre-operator").await?;
    let panic = async |task: &'static str| {
        let environment = [("NACRE_PANIC_TASK", task)];
        let operator = test_cluster.launch_operator(&task.replace(' ', "-"), &account, &environment)?;
        ends(&operator, task).await
    };
    let tasks = ["leader election", "applications", "events", "probes", "metrics"];
    stream::iter(tasks).map(panic).buffer_unordered(AT_A_TIME).try_collect().await
}
