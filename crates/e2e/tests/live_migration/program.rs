//! The command line under test, as a user would run it.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tokio::process::Command;

/// How `kubectl nacre` ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs `kubectl nacre` with this kubeconfig.
pub(crate) async fn nacre(kubeconfig: &Path, arguments: &[&str]) -> Result<Ended> {
    let output = Command::new(e2e::command_line()?)
        .args(arguments)
        .env("KUBECONFIG", kubeconfig)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await?;
    Ok(Ended {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

impl Ended {
    /// What it printed, if it ended with this code.
    pub(crate) fn with(self, code: i32) -> Result<String> {
        ensure!(self.code == Some(code), "expected exit code {code}: {self:#?}");
        Ok(self.stdout)
    }

    /// The same, as JSON.
    pub(crate) fn json(self, code: i32) -> Result<Value> {
        let text = self.with(code)?;
        serde_json::from_str(&text).with_context(|| format!("no JSON: {text}"))
    }
}
