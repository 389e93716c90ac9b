//! The namespaces a node lives in: network, mounts, processes and cgroups.
//!
//! They exist as long as their first process. When that ends, also by `kill -9`, the kernel ends every other process
//! in them, pods included, and with the last process go the mounts and the network.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};

use crate::access::random_token;
use crate::process::{Process, Program, send_signal};
use crate::wait::eventually;

use super::ADDRESS;

const PATIENCE: Duration = Duration::from_secs(30);
/// How long the kernel may take to end everything.
const END: Duration = Duration::from_secs(20);

/// The scripts, as they are written to the node's folder.
const SCRIPTS: [(&str, &str); 3] = [
    ("outer.sh", include_str!("outer.sh")),
    ("init.sh", include_str!("init.sh")),
    ("join.sh", include_str!("join.sh")),
];

/// The running namespaces; dropping them ends everything in them.
#[derive(Debug)]
pub(crate) struct Namespaces {
    starter: Process,
    first: u32,
    folder: PathBuf,
}

impl Namespaces {
    /// Makes the namespaces and what has to be in them before any program starts.
    pub(crate) async fn start(folder: &Path) -> Result<Self> {
        for (name, script) in SCRIPTS {
            fs::write(folder.join(name), script)?;
        }
        let starter = Program::new("/bin/bash", folder.join("init.log"))
            .arg(folder.join("outer.sh").display().to_string())
            .arg(folder.display().to_string())
            .arg(format!("nacre-node-{}", random_token()?))
            .env("NODE_ADDRESS", ADDRESS)
            .start()?;
        let marker = folder.join("started");
        let done = eventually("the node's namespaces", PATIENCE, async || fs::read(&marker));
        starter.must_do(done).await?;
        let first = first_process(starter.pid())?;
        Ok(Self { starter, first, folder: folder.to_owned() })
    }

    /// The first process, as the rest of the machine numbers it.
    pub(crate) fn first_process(&self) -> u32 {
        self.first
    }

    /// What starts a program of the node: in all namespaces and in the node's cgroups.
    pub(crate) fn inside(&self) -> Vec<String> {
        let target = self.first.to_string();
        let script = self.folder.join("join.sh").display().to_string();
        ["nsenter", "--target", &target, "--net", "--mount", "--pid", "--cgroup", "--", "bash", &script]
            .map(str::to_owned)
            .into()
    }

    /// What starts a program that only talks to the cluster: in the network namespace alone, with the files of the
    /// rest of the machine.
    pub(crate) fn network(&self) -> Vec<String> {
        let target = self.first.to_string();
        ["nsenter", "--target", &target, "--net", "--"].map(str::to_owned).into()
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        // Before the starter, which waits for it: then nothing writes to the folder any more when the starter has ended.
        if self.starter.is_running() && send_signal(self.first, "KILL").is_ok() {
            let begin = Instant::now();
            while self.starter.is_running() && begin.elapsed() < END {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
}

/// The child of `parent` that is process 1 of a namespace.
fn first_process(parent: u32) -> Result<u32> {
    let statuses = fs::read_dir("/proc")?.flatten().map(|entry| entry.path().join("status"));
    let found = statuses.filter_map(|path| fs::read_to_string(path).ok()).find_map(|status| {
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
        let ids: Vec<u32> = field("NSpid:")?.split_whitespace().filter_map(|id| id.parse().ok()).collect();
        let is_first = ids.len() > 1 && ids.last() == Some(&1);
        let is_child = field("PPid:")?.trim() == parent.to_string();
        if is_first && is_child { ids.first().copied() } else { None }
    });
    found
        .ok_or_else(|| anyhow!("process {parent} has no child that is the first of a namespace"))
        .context("looking for the node's first process")
}
