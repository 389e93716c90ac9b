//! The demo on a node: it brings a volume back, lost or overwritten, and leaves nothing behind.

use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use e2e::NodeCluster;
use tokio::process::Command;

/// What the second demo on a machine may take.
const IN_TIME: Duration = Duration::from_mins(2);

#[tokio::test]
async fn the_demo_brings_lost_and_overwritten_data_back_in_time_and_leaves_no_folder() -> Result<()> {
    if !NodeCluster::can_run()? {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let mut demo = Command::new(env!("CARGO_BIN_EXE_demo"));
    let began = Instant::now();
    let ended = demo.env("TMPDIR", folder.path()).stdin(Stdio::null()).kill_on_drop(true).output().await?;
    let printed =
        String::from_utf8_lossy(&ended.stdout).into_owned() + &String::from_utf8_lossy(&ended.stderr);
    ensure!(ended.status.success() && printed.contains("SUCCESS"), "{printed}");
    // The console of such a cluster is in the network of its node.
    let console = ".bed/cluster/enter kubectl-nacre --as=ada -n shop console --no-open";
    ensure!(printed.contains("make up NODE=1") && printed.contains(console), "{printed}");
    // Before the loss, after the restore, and after the ransomware.
    ensure!(printed.matches("60000|").count() == 3, "{printed}");
    ensure!(printed.contains("file is not a database"), "{printed}");
    ensure!(printed.contains("The same checksum: the volume is back"), "{printed}");
    ensure!(printed.contains("The same checksum again: what was overwritten is back"), "{printed}");
    ensure!(began.elapsed() < IN_TIME, "{:?}", began.elapsed());
    ensure!(std::fs::read_dir(folder.path())?.next().is_none(), "its folder is still there");
    Ok(())
}
