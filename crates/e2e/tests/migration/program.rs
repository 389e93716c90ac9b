//! The programs under test, as a user would run them.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tokio::process::Command;

/// A program of this workspace, built as this test was.
pub(crate) fn built(name: &str) -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let folder = BUILT.get_or_init(|| {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        let arguments = ["build", "--quiet", "-p", "cli", "-p", "operator"];
        let status = std::process::Command::new(cargo).args(arguments).status().unwrap();
        assert!(status.success(), "the programs do not build");
        // This test is target/debug/deps/migration-HASH.
        let test = std::env::current_exe().unwrap();
        test.parent().and_then(Path::parent).unwrap().to_owned()
    });
    folder.join(name)
}

/// How `kubectl nacre` ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs `kubectl nacre` with this kubeconfig.
pub(crate) async fn nacre(kubeconfig: &Path, arguments: &[&str]) -> Result<Ended> {
    let output = Command::new(built("kubectl-nacre"))
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
