//! Where the bed's programs are.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// Everything `make tools` builds.
const PROGRAMS: [&str; 8] = [
    "etcd",
    "helm",
    "kube-apiserver",
    "kube-controller-manager",
    "kubectl",
    "velero",
    "velero-plugin-for-aws",
    "versitygw",
];

/// A folder that holds every program of the bed.
#[derive(Debug, Clone)]
pub(crate) struct Binaries(PathBuf);

impl Binaries {
    /// Asks `tools/build.sh`, which alone knows the key of the pins and the variables that override it.
    pub(crate) fn find() -> Result<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/build.sh");
        let output = Command::new("bash").arg(&script).arg("--where").output().context("running bash")?;
        ensure!(
            output.status.success(),
            "{} failed: {}",
            script.display(),
            String::from_utf8_lossy(&output.stderr)
        );
        Self::complete(PathBuf::from(String::from_utf8(output.stdout)?.trim_end()))
    }

    fn complete(folder: PathBuf) -> Result<Self> {
        let missing: Vec<_> =
            PROGRAMS.into_iter().filter(|program| !folder.join(program).is_file()).collect();
        ensure!(
            missing.is_empty(),
            "{} has no {}: run `make tools`, or set NACRE_BED_BIN to a folder that has them all",
            folder.display(),
            missing.join(", ")
        );
        Ok(Self(folder))
    }

    pub(crate) fn path(&self, program: &str) -> PathBuf {
        self.0.join(program)
    }
}

/// The folder that holds the programs of the bed: etcd, kubectl, velero and so on.
pub fn programs() -> Result<PathBuf> {
    Binaries::find().map(|binaries| binaries.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_named_and_so_is_the_way_to_get_it() {
        let folder = tempfile::tempdir().unwrap();
        for program in PROGRAMS.iter().filter(|program| **program != "velero") {
            std::fs::write(folder.path().join(program), "").unwrap();
        }
        let error = Binaries::complete(folder.path().into()).unwrap_err().to_string();
        assert!(error.contains("has no velero:") && error.contains("make tools"), "{error}");
    }
}
