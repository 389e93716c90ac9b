//! How fast `kubectl nacre` answers with a thousand backups in the namespace. It is a program of its own, so that
//! nothing else disturbs the measurement.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use api::NonAdminBackup;
use bed::Bed;
use e2e::TestCluster;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::process::Command;

const BACKUPS: usize = 1000;
const AT_A_TIME: usize = 32;
/// Every command answers within this.
const ANSWER: Duration = Duration::from_millis(300);
/// The program itself starts within this.
const START: Duration = Duration::from_millis(30);
/// A build without optimisation reads JSON about this much slower; only the release build is held to the letter.
const UNOPTIMISED: u32 = 12;
/// A machine that is busy with something else for a moment only ever makes a measurement worse: the best counts.
const ATTEMPTS: usize = 5;

async fn fastest(program: &Path, kubeconfig: &Path, arguments: &[&str]) -> Result<Duration> {
    let mut best = Duration::MAX;
    for _ in 0..ATTEMPTS {
        let began = Instant::now();
        let status = Command::new(program)
            .args(arguments)
            .env("KUBECONFIG", kubeconfig)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .await?;
        best = best.min(began.elapsed());
        let code = status.code().context("an exit code")?;
        anyhow::ensure!(code == 0 || code == 3, "{arguments:?} ended with {code}");
    }
    Ok(best)
}

async fn fill(test_cluster: &TestCluster) -> Result<()> {
    let client = test_cluster.bed.client().await?;
    let api = Api::<NonAdminBackup>::namespaced(client, "many");
    stream::iter(0..BACKUPS)
        .map(|number| {
            let api = api.clone();
            async move {
                let name = format!("b{number}");
                let body = json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackup",
                    "metadata": {"name": name}, "spec": {"backupSpec": {"ttl": "720h"}}});
                api.create(&PostParams::default(), &serde_json::from_value(body)?).await?;
                // As long as what nacre leaves out of every backup; one of those names, so that the backups are good.
                let excluded = ["nonadminbackups.oadp.openshift.io"; 16];
                let status = json!({"status": {"phase": "Created", "queueInfo": {"estimatedQueuePosition": 0},
                    "conditions": [{"type": "Accepted", "status": "True", "reason": "BackupAccepted", "message": "the backup is allowed",
                        "lastTransitionTime": "2026-11-15T12:00:00Z"}],
                    "veleroBackup": {"name": format!("many-{name}-00000000-0000-4000-8000-000000000000"), "namespace": "velero",
                        "spec": {"includedNamespaces": ["many"], "excludedResources": excluded, "ttl": "720h0m0s"},
                        "status": {"phase": "Completed", "progress": {"totalItems": 42, "itemsBackedUp": 42},
                            "startTimestamp": "2026-11-15T12:00:00Z", "completionTimestamp": "2026-11-15T12:00:12Z"}}}});
                api.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await?;
                anyhow::Ok(())
            }
        })
        .buffer_unordered(AT_A_TIME)
        .try_collect()
        .await
}

/// Far more than a pipe holds, to somebody who reads one line of it.
async fn a_reader_that_leaves_is_no_error(program: &Path, kubeconfig: &Path) -> Result<()> {
    let line = r#"set -o pipefail; "$0" backup get -n many -o yaml | head -n 1"#;
    let output =
        Command::new("bash").args(["-c", line]).arg(program).env("KUBECONFIG", kubeconfig).output().await?;
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_answers_at_once_with_a_thousand_backups() -> Result<()> {
    let test_cluster = TestCluster::build_on(Bed::builder()).await?;
    test_cluster.bed.namespace("many").await?;
    fill(&test_cluster).await?;
    let (program, kubeconfig) = (e2e::command_line()?, test_cluster.bed.kubeconfig());
    let slack = if program.components().any(|part| part.as_os_str() == "debug") { UNOPTIMISED } else { 1 };
    a_reader_that_leaves_is_no_error(&program, &kubeconfig).await?;
    let commands: [&[&str]; 15] = [
        &["--version"],
        &["backup", "get"],
        &["backup", "get", "-o", "wide"],
        &["backup", "get", "-o", "json"],
        &["backup", "get", "-o", "name"],
        &["backup", "describe", "b1"],
        &["backup", "wait", "b1"],
        &["backup", "create", "--dry-run"],
        &["restore", "create", "--dry-run"],
        &["restore", "get"],
        &["status"],
        &["explain", "backup", "b1"],
        &["request", "list"],
        &["policy", "show"],
        &["__complete", "--", "-n", "many", "backup", "describe", ""],
    ];
    for (at, command) in commands.into_iter().enumerate() {
        let said = at == 0 || command.contains(&"many");
        let arguments = [command, if said { &[] } else { &["-n", "many"][..] }].concat();
        let took = fastest(&program, &kubeconfig, &arguments).await?;
        let limit = if at == 0 { START } else { ANSWER } * slack;
        println!("{:>4} ms  kubectl nacre {}", took.as_millis(), command.join(" "));
        assert!(took <= limit, "{command:?} took {took:?}, more than {limit:?}");
    }
    Ok(())
}
