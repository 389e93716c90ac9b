//! What a node needs from the machine: root, Debian packages and programs.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};

/// Everything `make node-tools` builds.
const PROGRAMS: [&str; 12] = [
    "bridge",
    "containerd",
    "containerd-shim-runc-v2",
    "ctr",
    "host-local",
    "kube-proxy",
    "kube-scheduler",
    "kubelet",
    "loopback",
    "pause",
    "runc",
    "velero-restore-helper",
];

/// Commands and files of Debian packages.
const NEEDS: [(&str, &str); 5] = [
    ("nft", "nftables"),
    ("busybox", "busybox-static"),
    ("ip", "iproute2"),
    ("unshare", "util-linux"),
    ("nsenter", "util-linux"),
];

/// Where Debian has commands for root, which are not in everybody's `PATH`.
pub(crate) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A folder that holds every program of a node.
#[derive(Debug, Clone)]
pub(crate) struct Programs(PathBuf);

impl Programs {
    /// Asks `tools/node/build.sh`, which alone knows the key of the pins.
    pub(crate) fn find() -> Result<Self> {
        let output = Command::new("bash").arg(script("node/build.sh")).arg("--where").output()?;
        ensure!(output.status.success(), "tools/node/build.sh: {}", String::from_utf8_lossy(&output.stderr));
        let folder = PathBuf::from(String::from_utf8(output.stdout)?.trim_end());
        let missing: Vec<_> = PROGRAMS.into_iter().filter(|name| !folder.join(name).is_file()).collect();
        ensure!(
            missing.is_empty(),
            "{} has no {}: run `make node-tools`, or set NACRE_NODE_BIN to a folder that has them all",
            folder.display(),
            missing.join(", ")
        );
        Ok(Self(folder))
    }

    pub(crate) fn path(&self, program: &str) -> PathBuf {
        self.0.join(program)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.0
    }
}

/// Fails with one sentence where no node can run whatever is installed.
pub(crate) fn check_root() -> Result<()> {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    ensure!(
        is_root,
        "a cluster with a node needs Linux and root, since it makes namespaces and mounts: run this as root (sudo), or \
         start a cluster without a node"
    );
    Ok(())
}

/// Fails with the command that installs what is missing.
pub(crate) fn check_packages() -> Result<()> {
    let exists = |command: &str| PATH.split(':').any(|folder| Path::new(folder).join(command).is_file());
    let mut packages: Vec<_> =
        NEEDS.into_iter().filter(|(command, _)| !exists(command)).map(|(_, package)| package).collect();
    packages.dedup();
    ensure!(
        packages.is_empty(),
        "missing packages; on Debian or Ubuntu install them with: sudo apt-get install -y --no-install-recommends {}",
        packages.join(" ")
    );
    Ok(())
}

/// Builds the programs of the cluster and of the node where they are missing, and installs packages where that is
/// possible; shows progress on standard error.
pub(crate) fn build() -> Result<()> {
    for name in ["build.sh", "node/build.sh"] {
        let status = Command::new("bash").arg(script(name)).stdout(Stdio::null()).status()?;
        ensure!(status.success(), "the cluster's programs could not be built (tools/{name})");
    }
    Ok(())
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools").join(name)
}
