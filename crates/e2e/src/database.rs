//! A real database for stories and for the demo: SQLite, from the Debian package of this machine.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use bed::busybox_image;
use image::libraries;
use serde_json::{Value, json};

use crate::{NodeCluster, pod_spec};

/// Debian's package `sqlite3` has it.
const SQLITE: &str = "/usr/bin/sqlite3";
const IMAGE: &str = "localhost/sqlite:test";

/// Fails with the command that installs SQLite where it is missing.
pub fn check_sqlite() -> Result<()> {
    ensure!(
        Path::new(SQLITE).is_file(),
        "{SQLITE} is missing: sudo apt-get install -y --no-install-recommends sqlite3"
    );
    Ok(())
}

/// A pod like that of [`pod_spec`], with `sqlite3` in its image. [`NodeCluster::load_sqlite`] comes first.
pub fn sqlite_pod_spec(claim: &str) -> Value {
    let mut spec = pod_spec(claim);
    spec["containers"][0]["image"] = json!(IMAGE);
    spec
}

impl NodeCluster {
    /// Makes an image with `sqlite3` and a shell, and loads it into the node.
    pub async fn load_sqlite(&self) -> Result<()> {
        check_sqlite()?;
        let program = Path::new(SQLITE);
        let mut files: Vec<(PathBuf, PathBuf)> =
            libraries(program)?.into_iter().map(|path| (path.clone(), path)).collect();
        files.push((program.into(), "/bin/sqlite3".into()));
        let archive = self.site.folder().join("sqlite.tar");
        busybox_image(IMAGE, files)?.write(&archive)?;
        self.site.node()?.load_image(&archive).await
    }
}
