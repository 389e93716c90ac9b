//! The folder a bed lives in, which goes when the bed goes.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};

/// Removes the folder once standard input ends, which it does even if we are killed: a bed is some 100 MB.
/// The programs that write there are being killed at the same moment, so it may take more than one try.
const JANITOR: &str = r#"
read -r line
for try in {1..50}; do
    rm -rf -- "$1" 2>/dev/null && exit
    sleep 0.1
done
"#;

/// The file by which a folder is known to be a bed's.
const MARKER: &str = "a-bed";

/// A folder, removed on drop and after a crash unless it was given by name or is to be kept.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    janitor: Option<Child>,
}

impl Folder {
    /// A fresh folder under the system's temporary one. `NACRE_BED_KEEP=1` leaves it there for a look at the logs.
    pub(crate) fn temporary() -> Result<Self> {
        let path = tempfile::Builder::new().prefix("nacre-bed-").tempdir().context("making a folder")?.keep();
        let keep = std::env::var_os("NACRE_BED_KEEP").is_some();
        let janitor = (!keep).then(|| janitor(&path)).transpose()?;
        Ok(Self { path, janitor })
    }

    /// A folder of the caller's choice, which stays. What an earlier bed left there is removed; a folder
    /// with anything else in it is refused.
    pub(crate) fn named(path: &Path) -> Result<Self> {
        let marker = path.join(MARKER);
        if path.exists() {
            let is_empty = std::fs::read_dir(path)?.next().is_none();
            ensure!(is_empty || marker.is_file(), "{} is no bed and not empty", path.display());
            std::fs::remove_dir_all(path).with_context(|| format!("emptying {}", path.display()))?;
        }
        std::fs::create_dir_all(path).with_context(|| format!("making {}", path.display()))?;
        std::fs::write(&marker, "Made by nacre's bed, which removes this folder at its next start.\n")?;
        // Programs get this path, and they do not all run in our working directory.
        let path = path.canonicalize()?;
        Ok(Self { path, janitor: None })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Some(mut janitor) = self.janitor.take() {
            drop(janitor.stdin.take());
            // What cannot be removed stays in the temporary folder, which is nobody's loss.
            let _ = janitor.wait();
        }
    }
}

fn janitor(path: &Path) -> Result<Child> {
    Command::new("bash")
        .args(["-c", JANITOR, "janitor"])
        .arg(path)
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("starting bash to clean up later")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_earlier_bed_is_removed() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("bed");
        drop(Folder::named(&path).unwrap());
        std::fs::write(path.join("old.log"), "").unwrap();
        drop(Folder::named(&path).unwrap());
        assert!(path.exists() && !path.join("old.log").exists());

        let error = Folder::named(home.path()).unwrap_err().to_string();
        assert!(error.contains("is no bed"), "{error}");
        assert!(path.exists());
    }

    #[test]
    fn a_temporary_folder_goes_with_its_owner() {
        let folder = Folder::temporary().unwrap();
        let path = folder.path().to_owned();
        std::fs::write(path.join("file"), "").unwrap();
        drop(folder);
        assert!(!path.exists());
    }
}
