//! A cluster that outlives the command that started it, until `down`.
//!
//! `up` starts `serve` and leaves once that is ready; `serve` holds a lock on the folder for as long as it
//! lives, so `down` never mistakes a stranger's process for it, and knows when it is gone.

use std::fs::{self, File, TryLockError};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use bed::{Bed, Node};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::Parts;

const READY: &str = "ready";
const KEEP: &str = "keep";

/// Starts `serve`, waits until it is ready and lets go of it.
pub(crate) fn up(dir: &Path, parts: Parts) -> Result<String> {
    if parts.with_node {
        Node::check()?;
    }
    fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
    let dir = dir.canonicalize()?;
    if lock(&dir)?.is_none() {
        return Ok(usage(&dir, "The cluster was up already."));
    }
    if parts.with_node {
        Node::build()?;
    }
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("serve").arg("--dir").arg(&dir);
    let flags = [(parts.with_velero, "--with-velero"), (parts.with_node, "--with-node")];
    command.args(flags.into_iter().filter(|(wanted, _)| *wanted).map(|(_, flag)| flag));
    // Nothing of ours may stay open in it, or whoever reads our output waits for its end too.
    let complaints = tempfile::NamedTempFile::new()?;
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(complaints.reopen()?);
    // Its own group, so that a later Ctrl-C in this terminal does not reach it. Until it is told to keep
    // going, our end is its end: the pipe closes whatever happens to us.
    let mut serve = command.process_group(0).spawn()?;
    let mut lifeline = serve.stdin.take().context("no way to talk to `bed serve`")?;
    let said = serve.stdout.take().context("no way to hear `bed serve`")?;
    let mut line = String::new();
    BufReader::new(said).read_line(&mut line)?;
    if line.trim_end() != READY {
        serve.wait()?;
        bail!("the cluster did not start:\n{}", fs::read_to_string(complaints.path())?.trim_end());
    }
    writeln!(lifeline, "{KEEP}")?;
    Ok(usage(&dir, "The cluster is up."))
}

fn usage(dir: &Path, state: &str) -> String {
    let (config, enter, dir) = (kubeconfig(dir), enter(dir), dir.display());
    if enter.exists() {
        let enter = enter.display();
        return format!(
            "{state} It has a network of its own. Start commands in it with\n\n  {enter} kubectl get pods --all-namespaces\n\nIts logs are in {dir}/cluster, those of pods in \
             {dir}/cluster/pods. `make down` stops it."
        );
    }
    let config = config.display();
    format!(
        "{state} Use it with\n\n  export KUBECONFIG={config}\n\nIts logs are in {dir}/cluster. `make down` stops it."
    )
}

/// Runs the cluster: until standard input ends, or until a signal if that says `keep` first.
pub(crate) fn serve(dir: &Path, parts: Parts) -> Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
    let dir = dir.canonicalize()?;
    let Some(_lock) = lock(&dir)? else { bail!("a cluster runs in {} already", dir.display()) };
    fs::write(pid_file(&dir), std::process::id().to_string())?;
    let runtime = tokio::runtime::Runtime::new()?;
    let folder = cluster(&dir);
    if parts.with_node {
        return runtime.block_on(run(Node::start_in(&folder)));
    }
    let mut builder = Bed::builder().folder(folder);
    if parts.with_velero {
        builder = builder.with_velero();
    }
    runtime.block_on(run(builder.start()))
}

async fn run<T>(start: impl Future<Output = Result<T>>) -> Result<()> {
    let (mut terminated, mut interrupted) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let cluster = async {
        let bed = start.await?;
        writeln!(std::io::stdout(), "{READY}")?;
        // Nothing is left to do but to hold it.
        std::future::pending::<()>().await;
        drop(bed);
        Ok(())
    };
    tokio::select! {
        ended = cluster => ended,
        () = abandoned() => Ok(()),
        _ = terminated.recv() => Ok(()),
        _ = interrupted.recv() => Ok(()),
    }
}

/// Returns once standard input ends without having said `keep`.
async fn abandoned() {
    let (sender, ended) = oneshot::channel();
    // A thread, since reading standard input cannot be cancelled: it goes when the process goes.
    std::thread::spawn(move || {
        let told_to_stay = std::io::stdin().lines().map_while(Result::ok).any(|line| line == KEEP);
        sender.send(told_to_stay)
    });
    if let Ok(true) = ended.await {
        std::future::pending::<()>().await;
    }
}

/// Stops the `serve` of a folder, waits until it is gone and removes what it left.
pub(crate) fn down(dir: &Path) -> Result<String> {
    if !lock_file(dir).exists() {
        return Ok(format!("No cluster was started in {}.", dir.display()));
    }
    let was_running = lock(dir)?.is_none();
    if was_running {
        let pid = fs::read_to_string(pid_file(dir))?.parse().context("reading the cluster's process id")?;
        bed::send_signal(pid, "TERM")?;
        File::open(lock_file(dir))?.lock().context("waiting for the cluster's end")?;
    }
    if cluster(dir).exists() {
        fs::remove_dir_all(cluster(dir))?;
    }
    fs::remove_file(pid_file(dir))?;
    fs::remove_file(lock_file(dir))?;
    fs::remove_dir(dir)?;
    Ok(if was_running { "The cluster is down." } else { "The cluster was down already." }.to_owned())
}

/// Shell commands for `eval`.
pub(crate) fn env(dir: &Path) -> Result<String> {
    let config = kubeconfig(&dir.canonicalize().context("no cluster was started here")?);
    Ok(format!("export KUBECONFIG='{}' PATH='{}':\"$PATH\"", config.display(), bed::programs()?.display()))
}

/// Takes the folder, unless another process has it.
fn lock(dir: &Path) -> Result<Option<File>> {
    let file = File::create(lock_file(dir))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error).context("locking the folder"),
    }
}

fn cluster(dir: &Path) -> PathBuf {
    dir.join("cluster")
}

fn kubeconfig(dir: &Path) -> PathBuf {
    cluster(dir).join("kubeconfig/admin")
}

/// Starts a command in the network of a cluster with a node.
fn enter(dir: &Path) -> PathBuf {
    cluster(dir).join("enter")
}

fn lock_file(dir: &Path) -> PathBuf {
    dir.join("lock")
}

fn pid_file(dir: &Path) -> PathBuf {
    dir.join("pid")
}
