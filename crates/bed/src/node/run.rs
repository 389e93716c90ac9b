//! Commands in the node's namespaces, and what can be done to its programs.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use anyhow::{Context as _, Result};
use tokio::process::Command;

use crate::run::{Output, output};

use super::{Node, volumes};

impl Node {
    /// A command in the node's network, with the files of the rest of the machine: `kubectl`, `velero`, `helm`, or the
    /// path of any program. `KUBECONFIG` is that of somebody in `system:masters`.
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        let program = program.as_ref();
        let of_cluster = self.binaries.path(&program.to_string_lossy());
        let program = if of_cluster.is_file() { &of_cluster } else { program };
        let starter = self.namespaces.network();
        let mut command = Command::new(&starter[0]);
        command
            .args(&starter[1..])
            .arg(program)
            .env("KUBECONFIG", self.kubeconfig())
            // Caches and settings are kept there, by the server's address, which all nodes have in common.
            .env("HOME", self.folder())
            .env("KUBECACHEDIR", self.folder().join("kubectl-cache"))
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    /// Runs a program in the node's network as whoever this kubeconfig is for.
    pub async fn run_as(
        &self,
        kubeconfig: &Path,
        program: impl AsRef<Path>,
        args: &[&str],
    ) -> Result<Output> {
        let name = program.as_ref().file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut command = self.command(program);
        command.env("KUBECONFIG", kubeconfig);
        output(command, &name, args).await
    }

    /// Runs kubectl; `--as=ada` makes it somebody else.
    pub async fn kubectl(&self, args: &[&str]) -> Result<Output> {
        output(self.command("kubectl"), "kubectl", args).await
    }

    /// Runs Velero's command line.
    pub async fn velero(&self, args: &[&str]) -> Result<Output> {
        output(self.command("velero"), "velero", args).await
    }

    /// Loads an image from an archive in Docker's or OCI's format, so that pods find it without a registry.
    pub async fn load_image(&self, archive: &Path) -> Result<()> {
        self.images(&["import", &archive.display().to_string()]).await
    }

    /// Gives a loaded image another name, as if it were another release.
    pub async fn tag_image(&self, image: &str, name: &str) -> Result<()> {
        self.images(&["tag", "--force", image, name]).await
    }

    /// A command about containerd's images.
    async fn images(&self, args: &[&str]) -> Result<()> {
        let starter = self.namespaces.inside();
        let mut command = Command::new(&starter[0]);
        command.args(&starter[1..]).arg(self.programs.path("ctr")).kill_on_drop(true);
        let socket = super::runtime::CONTAINERD_SOCKET;
        command.args(["--address", socket, "--namespace", "k8s.io", "images"]);
        output(command, "ctr images", args).await?.ok()?;
        Ok(())
    }

    /// Makes more volumes for claims of the StorageClass `local`.
    pub async fn add_volumes(&self, number: usize) -> Result<()> {
        let first = self.volumes.fetch_add(number, Ordering::Relaxed);
        self.apply(&volumes::volumes(self.folder(), first..first + number)?).await
    }

    /// Kills a program of the node, such as `kubelet`, and starts it again.
    pub async fn restart(&self, program: &str) -> Result<()> {
        let running = self.running.get(program).with_context(|| format!("no {program} runs here"))?;
        if let Some(process) = self.process(program) {
            process.kill().await?;
        }
        let fresh = Arc::new(running.program.start()?);
        *running.process.lock().unwrap_or_else(PoisonError::into_inner) = fresh;
        Ok(())
    }
}

impl Node {
    /// Writes scripts for people who look around: `enter kubectl get pods`, `inside ctr --namespace k8s.io images list`.
    pub(super) fn write_commands(&self) -> Result<()> {
        let kubeconfig = self.kubeconfig();
        let folders = format!("{}:{}", self.binaries.path("").display(), self.programs.folder().display());
        for (name, starter) in [("enter", self.namespaces.network()), ("inside", self.namespaces.inside())] {
            let path = self.folder().join(name);
            let script = format!(
                "#!/bin/sh\nexport KUBECONFIG=\"${{KUBECONFIG:-{}}}\" PATH=\"{folders}:$PATH\"\nexec {} \"$@\"\n",
                kubeconfig.display(),
                starter.join(" ")
            );
            fs::write(&path, script)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        }
        Ok(())
    }
}
