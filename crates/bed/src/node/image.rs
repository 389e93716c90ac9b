//! Container images without a registry: archives in Docker's format, one layer each.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

/// An image to make.
#[derive(Debug, Default)]
pub(crate) struct Image {
    /// Where an archive would be pulled from, if it were: `node.test/pause:bed`.
    pub(crate) name: String,
    pub(crate) entrypoint: Vec<&'static str>,
    /// Files of this machine, and their paths in the image.
    pub(crate) files: Vec<(PathBuf, PathBuf)>,
    /// Links in the image, and where they lead.
    pub(crate) links: Vec<(PathBuf, &'static str)>,
}

impl Image {
    /// Writes the archive to a folder of its own below `work` and returns its path.
    pub(crate) fn archive(&self, work: &Path) -> Result<PathBuf> {
        let short = self.name.rsplit('/').next().unwrap_or(&self.name).replace(':', "-");
        let folder = work.join(short);
        let root = folder.join("root");
        self.fill(&root).with_context(|| format!("making image {}", self.name))?;
        let layer = folder.join("layer.tar");
        tar(&layer, &root, &["."])?;
        let config = json!({
            "architecture": architecture(),
            "os": "linux",
            "config": { "Entrypoint": self.entrypoint, "Env": ["PATH=/bin"], "WorkingDir": "/" },
            "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{}", sha256(&layer)?)] },
            "history": [{ "created_by": "nacre's bed" }],
        });
        fs::write(folder.join("config.json"), config.to_string())?;
        let manifest = json!([{ "Config": "config.json", "RepoTags": [self.name], "Layers": ["layer.tar"] }]);
        fs::write(folder.join("manifest.json"), manifest.to_string())?;
        let archive = folder.join("image.tar");
        tar(&archive, &folder, &["manifest.json", "config.json", "layer.tar"])?;
        Ok(archive)
    }

    fn fill(&self, root: &Path) -> Result<()> {
        // Programs expect a folder for temporary files.
        fs::create_dir_all(root.join("tmp"))?;
        for (source, target) in &self.files {
            let target = inside(root, target)?;
            fs::copy(source, &target).with_context(|| format!("copying {}", source.display()))?;
        }
        for (link, leads_to) in &self.links {
            symlink(leads_to, inside(root, link)?)?;
        }
        Ok(())
    }
}

/// A path in the image as a path on this machine; its folder is made.
fn inside(root: &Path, path: &Path) -> Result<PathBuf> {
    let path = root.join(path.strip_prefix("/").unwrap_or(path));
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    Ok(path)
}

/// The machine's architecture as images name it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn tar(archive: &Path, folder: &Path, what: &[&str]) -> Result<()> {
    let output = Command::new("tar")
        .args(["--create", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0", "--file"])
        .arg(archive)
        .arg("--directory")
        .arg(folder)
        .args(what)
        .output()
        .context("running tar")?;
    ensure!(output.status.success(), "tar: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

fn sha256(file: &Path) -> Result<String> {
    let output = Command::new("sha256sum").arg(file).output().context("running sha256sum")?;
    ensure!(output.status.success(), "sha256sum: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout)?;
    Ok(text.split_whitespace().next().context("sha256sum printed nothing")?.to_owned())
}
