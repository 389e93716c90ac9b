//! Whatever happens to the parent, nothing stays behind.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bed::{Bed, Process, Program, eventually, send_signal};

const TIMEOUT: Duration = Duration::from_secs(90);

/// The command lines of all living processes that mention a folder; what belongs to a bed does.
fn processes(folder: &Path) -> Vec<String> {
    let needle = folder.display().to_string();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(&needle)).collect()
}

async fn all_gone(folder: &Path) -> Result<()> {
    eventually("every process of the bed to be gone", TIMEOUT, async || {
        let left = processes(folder);
        if left.is_empty() { Ok(()) } else { Err(left) }
    })
    .await
}

/// The bed's own program, as somebody's parent process.
fn serve(folder: &Path) -> Result<Child> {
    let mut serve = Command::new(env!("CARGO_BIN_EXE_bed"));
    serve.args(["serve", "--with-velero", "--dir"]).arg(folder);
    Ok(serve.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?)
}

fn wait_ready(serve: &mut Child) -> Result<()> {
    let mut line = String::new();
    BufReader::new(serve.stdout.take().context("its output is piped")?).read_line(&mut line)?;
    ensure!(line == "ready\n", "it said {line:?}");
    Ok(())
}

#[tokio::test]
async fn a_killed_parent_leaves_no_child() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut parent = serve(folder.path())?;
    wait_ready(&mut parent)?;
    let running = processes(folder.path());
    for part in ["etcd", "kube-apiserver", "kube-controller-manager", "versitygw", "velero"] {
        assert!(running.iter().any(|line| line.contains(part)), "no {part} in {running:#?}");
    }
    parent.kill()?;
    parent.wait()?;
    all_gone(folder.path()).await
}

#[tokio::test]
async fn a_parent_killed_while_starting_leaves_no_child() -> Result<()> {
    let folder = tempfile::tempdir()?;
    for first in ["etcd", "kube-apiserver", "kube-controller-manager", "velero server"] {
        let mut parent = serve(folder.path())?;
        eventually(&format!("{first} to run"), TIMEOUT, async || {
            let running = processes(folder.path());
            if running.iter().any(|line| line.contains(first)) { Ok(()) } else { Err(running) }
        })
        .await?;
        parent.kill()?;
        parent.wait()?;
        all_gone(folder.path()).await?;
    }
    Ok(())
}

#[tokio::test]
async fn an_interrupted_parent_leaves_no_child() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut parent = serve(folder.path())?;
    wait_ready(&mut parent)?;
    send_signal(parent.id(), "INT")?;
    assert!(parent.wait()?.success());
    all_gone(folder.path()).await
}

#[tokio::test]
async fn a_cluster_is_kept_in_the_background_until_it_is_stopped() -> Result<()> {
    let home = tempfile::tempdir()?;
    let folder = home.path().join("bed");
    let bed = |command: &str| -> Result<(bool, String)> {
        let output =
            Command::new(env!("CARGO_BIN_EXE_bed")).args([command, "--dir"]).arg(&folder).output()?;
        let text = [output.stdout, output.stderr].concat();
        Ok((output.status.success(), String::from_utf8(text)?))
    };
    let (success, said) = bed("up")?;
    assert!(success && said.contains("KUBECONFIG="), "{said}");
    let (success, said) = bed("up")?;
    assert!(success && said.contains("already"), "{said}");
    let script = format!("{}\nkubectl get namespace default --output=name", bed("env")?.1);
    let listed = Command::new("bash").args(["-c", &script]).env("HOME", home.path()).output()?;
    assert_eq!(String::from_utf8(listed.stdout)?, "namespace/default\n");

    let (success, said) = bed("down")?;
    assert!(success && said.contains("is down"), "{said}");
    assert!(!folder.exists());
    all_gone(&folder).await
}

#[tokio::test]
async fn a_failing_child_is_told_with_the_end_of_its_log() -> Result<()> {
    let home = tempfile::tempdir()?;
    let folder = home.path().join("bed");
    let start = Bed::builder().folder(&folder).api_server_flag("--no-such-flag").start();
    let error = format!("{:?}", start.await.unwrap_err());
    assert!(error.contains("kube-apiserver ended with code 1"), "{error}");
    assert!(error.contains("unknown flag: --no-such-flag"), "{error}");
    all_gone(&folder).await
}

#[tokio::test]
async fn a_program_can_be_paused_asked_and_killed_with_all_it_started() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let log = folder.path().join("log");
    // It starts a child of its own, and says goodbye when asked to end.
    let file = folder.path().join("file").display().to_string();
    let script = r#"trap 'echo bye; exit 7' TERM; tail -F "$FILE" >/dev/null 2>&1 & echo hello; wait"#;
    let shell = Program::new("/bin/bash", &log).args(["-c", script]).env("FILE", &file);
    let up = async |process: &Process| {
        eventually("it and its child to run", TIMEOUT, async || {
            let running = processes(folder.path());
            let is_up = running.iter().any(|line| line.contains(&file)) && process.output().contains("hello");
            if is_up { Ok(()) } else { Err(running) }
        })
        .await
    };

    let process = shell.start()?;
    up(&process).await?;
    assert!(process.is_running());
    assert!(process.usage()?.peak_rss > 0);
    process.signal("STOP")?;
    eventually("it to be stopped", TIMEOUT, async || {
        let state = fs::read_to_string(format!("/proc/{}/stat", process.pid()))?;
        ensure!(state.contains(") T "), state);
        Ok(())
    })
    .await?;
    process.signal("CONT")?;
    assert_eq!(process.terminate(TIMEOUT).await?, Some(7));
    assert_eq!(process.output(), "hello\nbye\n");
    all_gone(folder.path()).await?;

    fs::remove_file(&log)?;
    let process = shell.start()?;
    up(&process).await?;
    process.kill().await?;
    assert_eq!(process.exited().await, Some(128 + 9));
    all_gone(folder.path()).await
}
