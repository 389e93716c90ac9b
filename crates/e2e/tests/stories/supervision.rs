//! A background task that ends or panics ends the process: a leader never renews its lease over a stale cache.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::{TestCluster, VELERO};
use tokio::time::timeout;

/// One of each kind of task. The webhook's listener and server start only where a webhook is configured.
const TASKS: [&str; 16] = [
    "watch NonAdminBackup",
    "watch Backup",
    "probes",
    "metrics",
    "events",
    "webhook",
    "policy",
    "vanished policy",
    "policy copy",
    "live migration",
    "queue positions",
    "credentials",
    "Velero view",
    "sync",
    "garbage collection",
    "worker 31",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_panics_ends_the_process_and_is_named() -> Result<()> {
    let test_cluster = TestCluster::build_with_idle_velero().await?;
    let account = test_cluster.account().await?;
    for task in TASKS {
        let nacre = test_cluster.launch("nacre", VELERO, &account, &[("NACRE_PANIC_TASK", task)])?;
        let code = timeout(Duration::from_secs(30), nacre.process.exited())
            .await
            .with_context(|| format!("{task:?} panicked and nacre went on:\n{}", nacre.process.output()))?;
        let log = nacre.process.output();
        ensure!(code == Some(1), "{task:?}: exit code {code:?}\n{log}");
        ensure!(log.contains(&format!("task {task:?} panicked")), "{task:?} is not named\n{log}");
    }
    Ok(())
}
