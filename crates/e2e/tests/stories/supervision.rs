//! A background task that ends or panics ends the process: a leader never renews its lease over a stale cache.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::{Nacre, TestCluster, VELERO};
use tokio::time::timeout;

/// Tasks that must be among those found, so that a log that says nothing fails. The webhook's listener and server start
/// only where a webhook is configured and has its certificate.
const AMONG_THEM: [&str; 24] = [
    "watch NonAdminBackup",
    "watch Backup",
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

/// Whether this one stands for others of its kind: the watches of two kinds, and the last worker.
fn is_tried(task: &str) -> bool {
    match task.split_once(' ') {
        Some(("watch", kind)) => ["NonAdminBackup", "Backup"].contains(&kind),
        Some(("worker", number)) => number == "31",
        _ => true,
    }
}

async fn ends(nacre: &Nacre, task: &str) -> Result<()> {
    let code = timeout(Duration::from_mins(1), nacre.process.exited())
        .await
        .with_context(|| format!("{task:?} panicked and nacre went on:\n{}", nacre.process.output()))?;
    let log = nacre.process.output();
    ensure!(code == Some(1), "{task:?}: exit code {code:?}\n{log}");
    ensure!(log.contains(&format!("task {task:?} panicked")), "{task:?} is not named\n{log}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_panics_ends_the_process_and_is_named() -> Result<()> {
    let test_cluster = TestCluster::build_with_idle_velero().await?;
    test_cluster.admission().await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    let (nacre, address) = test_cluster.start_answering(&shop, &[]).await?;
    let tasks = started(&nacre.process.output());
    for task in AMONG_THEM {
        ensure!(tasks.contains(task), "{task:?} was not started: {tasks:?}");
    }
    nacre.process.kill().await?;
    let (account, here) = (test_cluster.account().await?, address.to_string());
    for task in tasks.iter().filter(|task| is_tried(task)) {
        let environment = [("NACRE_PANIC_TASK", task.as_str()), ("WEBHOOK_BIND_ADDRESS", here.as_str())];
        let nacre = test_cluster.launch("nacre", VELERO, &account, &environment)?;
        ends(&nacre, task).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn so_does_one_of_the_operator() -> Result<()> {
    let test_cluster = TestCluster::build_for_operator().await?;
    let account = test_cluster.bed.service_account_kubeconfig(VELERO, "nacre-operator").await?;
    for task in ["applications", "events", "probes", "metrics"] {
        let operator = test_cluster.launch_operator("operator", &account, &[("NACRE_PANIC_TASK", task)])?;
        ends(&operator, task).await?;
    }
    Ok(())
}
