//! The contents of a backup in a bucket, to be rewritten as their owner could.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};
use serde_json::Value;

/// A tarball, unpacked.
pub(crate) struct Tarball {
    file: PathBuf,
    folder: tempfile::TempDir,
}

impl Tarball {
    /// Unpacks a file of a bucket.
    pub(crate) fn open(file: &Path) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut tar = Command::new("tar");
        // Velero's clock is ahead by fractions of a second, which is nothing to write about.
        tar.arg("--warning=no-timestamp").arg("-xzf").arg(file).arg("-C").arg(folder.path());
        let status = tar.status()?;
        ensure!(status.success(), "unpacking {}", file.display());
        Ok(Self { file: file.to_owned(), folder })
    }

    /// Puts an object of a namespace into it, by its group-resource.
    pub(crate) fn add(&self, resource: &str, object: &Value) -> Result<()> {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        self.write(&format!("resources/{resource}/namespaces/{namespace}"), object)
    }

    /// Puts an object without a namespace into it.
    pub(crate) fn add_cluster(&self, resource: &str, object: &Value) -> Result<()> {
        self.write(&format!("resources/{resource}/cluster"), object)
    }

    fn write(&self, folder: &str, object: &Value) -> Result<()> {
        let folder = self.folder.path().join(folder);
        fs::create_dir_all(&folder)?;
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        Ok(fs::write(folder.join(format!("{name}.json")), object.to_string())?)
    }

    /// Puts a file of so many zeros into it.
    pub(crate) fn zeros(&self, name: &str, bytes: u64) -> Result<()> {
        let file = self.folder.path().join(name);
        fs::create_dir_all(file.parent().unwrap_or(&file))?;
        Ok(fs::File::create(file)?.set_len(bytes)?)
    }

    /// Puts it back into the bucket.
    pub(crate) fn save(&self) -> Result<()> {
        let status = Command::new("tar")
            .arg("-czf")
            .arg(&self.file)
            .arg("-C")
            .arg(self.folder.path())
            .args(["metadata", "resources"])
            .status()?;
        ensure!(status.success(), "packing {}", self.file.display());
        Ok(())
    }
}
