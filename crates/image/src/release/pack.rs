//! An archive whose bytes depend on nothing but its files: names are sorted, owners and modes are fixed, every time is that of
//! the commit.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::TempDir;

use crate::archive;

pub(super) struct Pack {
    work: TempDir,
    time: u64,
}

impl Pack {
    pub(super) fn new(time: u64) -> Result<Self> {
        Ok(Self { work: tempfile::tempdir()?, time })
    }

    fn place(&self, name: &str) -> Result<PathBuf> {
        let path = self.work.path().join("all").join(name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        Ok(path)
    }

    /// A file that can be run.
    pub(super) fn program(&mut self, from: &Path, name: &str) -> Result<()> {
        self.file(from, name)?;
        Ok(fs::set_permissions(self.place(name)?, fs::Permissions::from_mode(0o755))?)
    }

    pub(super) fn file(&mut self, from: &Path, name: &str) -> Result<()> {
        let to = self.place(name)?;
        fs::copy(from, &to).with_context(|| format!("copying {}", from.display()))?;
        Ok(fs::set_permissions(to, fs::Permissions::from_mode(0o644))?)
    }

    pub(super) fn text(&mut self, text: &str, name: &str) -> Result<()> {
        let to = self.place(name)?;
        fs::write(&to, text)?;
        Ok(fs::set_permissions(to, fs::Permissions::from_mode(0o644))?)
    }

    /// Everything below a folder, under this name.
    pub(super) fn folder(&mut self, from: &Path, name: &str) -> Result<()> {
        let entries = fs::read_dir(from).with_context(|| format!("reading {}", from.display()))?;
        for entry in entries {
            let path = entry?.path();
            let within = path.file_name().context("a file without a name")?.to_string_lossy().into_owned();
            let name = format!("{name}/{within}");
            if path.is_dir() { self.folder(&path, &name)? } else { self.file(&path, &name)? }
        }
        Ok(())
    }

    /// Writes it, compressed.
    pub(super) fn write(self, to: &Path) -> Result<()> {
        let (all, plain) = (self.work.path().join("all"), self.work.path().join("plain.tar"));
        let output = Command::new("tar")
            .args(["--create", "--sort=name", "--format=ustar", "--owner=0", "--group=0", "--numeric-owner"])
            .arg(format!("--mtime=@{}", self.time))
            .args(["--mode=u=rwX,go=rX", "--transform=s,^\\./,,", "--file"])
            .arg(&plain)
            .arg("--directory")
            .arg(&all)
            .args(super::names(&all)?)
            .output()
            .context("running tar")?;
        ensure!(output.status.success(), "tar: {}", String::from_utf8_lossy(&output.stderr));
        let mut encoder = GzEncoder::new(File::create(to)?, Compression::best());
        io::copy(&mut File::open(&plain)?, &mut encoder)?;
        encoder.finish()?.sync_all()?;
        Ok(())
    }
}

pub(super) fn sha256_of(file: &Path) -> Result<String> {
    archive::sha256(file)
}
