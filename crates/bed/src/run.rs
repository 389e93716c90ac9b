//! The real command lines, run against the bed.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Result, ensure};
use tokio::process::Command;

use crate::Bed;

/// How a command ended.
#[derive(Debug, Clone)]
pub struct Output {
    /// The command as it was given.
    pub command: String,
    /// Whether it ended with code 0.
    pub success: bool,
    /// The code it ended with; none if a signal ended it.
    pub code: Option<i32>,
    /// What it printed.
    pub stdout: String,
    /// What it complained about.
    pub stderr: String,
}

impl Output {
    /// What it printed, or an error with its complaints if it failed.
    pub fn ok(self) -> Result<String> {
        ensure!(self.success, "`{}` failed: {}{}", self.command, self.stderr, self.stdout);
        Ok(self.stdout)
    }

    /// What it printed, or an error with everything about it if it did not end with this code.
    pub fn with_code(self, code: i32) -> Result<String> {
        ensure!(self.code == Some(code), "expected exit code {code}: {self:#?}");
        Ok(self.stdout)
    }
}

impl Bed {
    /// Runs the real kubectl as the bed's helper; `--as=ada` makes it somebody else.
    pub async fn kubectl(&self, args: &[&str]) -> Result<Output> {
        self.run("kubectl", &self.kubeconfig(), args).await
    }

    /// Runs the real velero command line as the bed's helper.
    pub async fn velero_cli(&self, args: &[&str]) -> Result<Output> {
        self.run("velero", &self.kubeconfig(), args).await
    }

    /// Runs the real helm as the bed's helper.
    pub async fn helm(&self, args: &[&str]) -> Result<Output> {
        self.run("helm", &self.kubeconfig(), args).await
    }

    /// Runs the real velero command line as whoever this kubeconfig is for.
    pub async fn velero_cli_with(&self, kubeconfig: &Path, args: &[&str]) -> Result<Output> {
        self.run("velero", kubeconfig, args).await
    }

    async fn run(&self, program: &str, kubeconfig: &Path, args: &[&str]) -> Result<Output> {
        let mut command = Command::new(self.binaries.path(program));
        command
            .env("KUBECONFIG", kubeconfig)
            // Both keep caches and settings there, by the server's address: those of another bed must not be met.
            .env("HOME", self.folder())
            .env("KUBECACHEDIR", self.folder().join("kubectl-cache"))
            .stdin(Stdio::null())
            .kill_on_drop(true);
        output(command, program, args).await
    }
}

/// Runs a command with these arguments; `name` is for messages.
pub(crate) async fn output(mut command: Command, name: &str, args: &[&str]) -> Result<Output> {
    let output = command.args(args).output().await?;
    Ok(Output {
        command: format!("{name} {}", args.join(" ")),
        success: output.status.success(),
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}
