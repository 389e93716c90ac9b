//! `nacre console`: runs `kubectl-nacre console --in-cluster`, which is next to this program in the image. The controller has
//! permissions, so what answers browsers is not part of it.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::args::Args;

/// Becomes that program; returns only if that fails.
pub(crate) fn run(args: &Args, arguments: &[String]) -> Result<()> {
    let own = std::env::current_exe().context("finding this program")?;
    let program = own.with_file_name("kubectl-nacre");
    let mut command = Command::new(&program);
    command.args(["console", "--in-cluster"]).args(arguments);
    if let Some(namespace) = args.watch_namespace.as_deref().filter(|namespace| !namespace.is_empty()) {
        command.args(["--velero-namespace", namespace]);
    }
    Err(command.exec()).with_context(|| format!("running {}", program.display()))
}
