//! The demo without a node: finishes in time, and leaves nothing behind, however it ends.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bed::{eventually, send_signal};
use e2e::at_length;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// What the second demo on a machine may take.
const IN_TIME: Duration = Duration::from_mins(3);
const TIMEOUT: Duration = Duration::from_mins(2);

/// The processes that have this folder in their command line or environment: all that a demo has started there.
fn processes(folder: &Path) -> Vec<String> {
    let needle = folder.display().to_string();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let read = |path: &Path, file: &str| {
        let bytes = fs::read(path.join(file)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).replace('\0', " ")
    };
    let all = entries.map(|entry| (read(&entry.path(), "cmdline"), read(&entry.path(), "environ")));
    all.filter(|(line, environment)| line.contains(&needle) || environment.contains(&needle))
        .map(|(line, _)| line)
        .filter(|line| !line.is_empty())
        .collect()
}

async fn all_gone(folder: &Path) -> Result<()> {
    eventually("every process of the demo to be gone", TIMEOUT, async || {
        let left = processes(folder);
        if left.is_empty() { Ok(()) } else { Err(left) }
    })
    .await
}

fn demo(folder: &Path) -> Result<Child> {
    let mut demo = Command::new(env!("CARGO_BIN_EXE_demo"));
    demo.arg("--without-node");
    Ok(demo.env("TMPDIR", folder).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true).spawn()?)
}

/// Waits until the demo says this.
async fn says(demo: &mut Child, words: &str) -> Result<()> {
    let mut lines = BufReader::new(demo.stdout.take().context("its output is piped")?).lines();
    while let Some(line) = lines.next_line().await? {
        if line.contains(words) {
            return Ok(());
        }
    }
    anyhow::bail!("the demo never said {words:?}")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_is_through_in_time_and_leaves_nothing_behind() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let began = Instant::now();
    let ended = demo(folder.path())?.wait_with_output().await?;
    let said = String::from_utf8_lossy(&ended.stdout).into_owned() + &String::from_utf8_lossy(&ended.stderr);
    ensure!(ended.status.success() && said.contains("SUCCESS"), "{said}");
    // How to open the console on one that is kept: with its kubeconfig, and with these programs.
    let words =
        ["KUBECONFIG=$PWD/.bed/cluster/kubeconfig/admin", "PATH=/", "kubectl-nacre --as=ada -n shop console"];
    ensure!(said.lines().any(|line| words.iter().all(|words| line.contains(words))), "{said}");
    ensure!(began.elapsed() < IN_TIME, "{:?}", began.elapsed());
    all_gone(folder.path()).await?;
    ensure!(fs::read_dir(folder.path())?.next().is_none(), "its folder is gone too");

    // Killed in the middle, or interrupted: nacre and all of the cluster go with it.
    for signal in at_length(&["KILL"][..], &["KILL", "INT"]) {
        let mut demo = demo(folder.path())?;
        says(&mut demo, "ada owns the namespace").await?;
        let running = processes(folder.path());
        for part in ["etcd", "kube-apiserver", "velero", "nacre"] {
            ensure!(running.iter().any(|line| line.contains(part)), "no {part} in {running:#?}");
        }
        send_signal(demo.id().context("it runs")?, signal)?;
        demo.wait().await?;
        all_gone(folder.path()).await?;
    }
    Ok(())
}
