//! A release: everything that somebody needs to install nacre, in one folder, from programs that are built already. The same
//! commit and programs give the same bytes.

mod documents;
mod pack;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::nacre::{self, VERSION, root};
use crate::{architecture, sbom};
use pack::{Pack, sha256_of};

/// What a release is made of.
#[derive(Debug)]
pub struct Release {
    /// The folder with the programs.
    pub programs: PathBuf,
    /// The programs need shared libraries: for trying the packaging, not to ship.
    pub with_libraries: bool,
    /// The commit that the programs were built from.
    pub commit: String,
    /// The time of that commit, in seconds since 1970: the time of every file.
    pub time: u64,
    /// The tag; none if this is only a try.
    pub tag: Option<String>,
}

/// The platform that the programs are for, as names of files have it.
fn platform() -> String {
    format!("linux-{}", architecture())
}

/// The parts of the manifests that differ by Velero's namespace, and the namespaces for which they are in a release.
const PARTS: [&str; 7] =
    ["controller", "admission", "requester", "requester-webhook", "velero-view", "operator", "oadp"];
const NAMESPACES: [&str; 2] = ["velero", "openshift-adp"];

impl Release {
    /// Writes all files of the release to an empty folder, and returns their names.
    pub fn write(&self, to: &Path) -> Result<Vec<String>> {
        ensure!(
            !to.exists() || fs::read_dir(to)?.next().is_none(),
            "{} is not empty: a release is written to an empty folder",
            to.display()
        );
        fs::create_dir_all(to)?;
        let programs = self.programs(to)?;
        self.image(to)?;
        self.chart(to)?;
        self.manifests(to)?;
        self.folder("deploy/olm", "nacre-olm-bundle.tar.gz", to)?;
        self.folder("deploy/man", "nacre-man.tar.gz", to)?;
        self.completions(to)?;
        fs::write(to.join("nacre-sbom.cdx.json"), format!("{:#}\n", sbom::of_nacre()?))?;
        fs::write(to.join("nacre-krew.yaml"), documents::krew(&programs))?;
        let files = sums(to)?;
        let provenance = documents::provenance(self, &files)?;
        fs::write(to.join("nacre-provenance.json"), format!("{provenance:#}\n"))?;
        let lines: Vec<String> = sums(to)?.iter().map(|(name, sum)| format!("{sum}  {name}")).collect();
        fs::write(to.join("SHA256SUMS"), lines.join("\n") + "\n")?;
        names(to)
    }

    fn pack(&self) -> Result<Pack> {
        Pack::new(self.time)
    }

    /// An archive of each program; the checksums of these.
    fn programs(&self, to: &Path) -> Result<BTreeMap<String, String>> {
        let mut sums = BTreeMap::new();
        for program in nacre::PROGRAMS {
            let path = self.programs.join(program);
            ensure!(path.is_file(), "{} is not there", path.display());
            ensure!(
                self.with_libraries || crate::libraries(&path)?.is_empty(),
                "{} is not static",
                path.display()
            );
            let mut pack = self.pack()?;
            pack.program(&path, program)?;
            pack.file(&root().join("LICENSE"), "LICENSE")?;
            let archive = to.join(format!("{program}-{}.tar.gz", platform()));
            pack.write(&archive)?;
            sums.insert(program.to_owned(), sha256_of(&archive)?);
        }
        Ok(sums)
    }

    fn image(&self, to: &Path) -> Result<()> {
        let name = format!("localhost/nacre:{VERSION}");
        let image = if self.with_libraries {
            nacre::test_image(&name, &self.programs)?
        } else {
            nacre::image(&name, &self.programs)?
        };
        image.write(&to.join(format!("nacre-image-{}.tar", platform())))
    }

    /// The chart as `helm package` lays it out: one folder, named after the chart.
    fn chart(&self, to: &Path) -> Result<()> {
        let mut pack = self.pack()?;
        pack.folder(&root().join("deploy/chart"), "nacre")?;
        pack.write(&to.join(format!("nacre-{VERSION}.tgz")))
    }

    /// CRDs, and every manifest for each namespace, as the program itself renders them.
    fn manifests(&self, to: &Path) -> Result<()> {
        let mut pack = self.pack()?;
        pack.folder(&root().join("deploy/crds"), "nacre/crds")?;
        pack.folder(&root().join("deploy/monitoring"), "nacre/monitoring")?;
        for namespace in NAMESPACES {
            for part in PARTS {
                let text = self.ask(&["render", "--only", part, "-n", namespace])?;
                pack.text(&text, &format!("nacre/{namespace}/{part}.yaml"))?;
            }
        }
        pack.write(&to.join("nacre-manifests.tar.gz"))
    }

    fn completions(&self, to: &Path) -> Result<()> {
        let mut pack = self.pack()?;
        for (shell, name) in [
            ("bash", "kubectl-nacre.bash"),
            ("zsh", "_kubectl-nacre"),
            ("fish", "kubectl-nacre.fish"),
            ("kubectl", "kubectl_complete-nacre"),
        ] {
            pack.text(&self.ask(&["completion", shell])?, &format!("completions/{name}"))?;
        }
        pack.write(&to.join("nacre-completions.tar.gz"))
    }

    fn folder(&self, from: &str, name: &str, to: &Path) -> Result<()> {
        let mut pack = self.pack()?;
        let within = Path::new(from).file_name().context("a folder without a name")?;
        pack.folder(&root().join(from), &within.to_string_lossy())?;
        pack.write(&to.join(name))
    }

    /// What the command line of this release prints.
    fn ask(&self, args: &[&str]) -> Result<String> {
        let program = self.programs.join("kubectl-nacre");
        let output = Command::new(&program)
            .args(args)
            .env_remove("KUBECONFIG")
            .output()
            .with_context(|| format!("running {}", program.display()))?;
        ensure!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?)
    }
}

/// The names of all files of a folder, sorted.
fn names(folder: &Path) -> Result<Vec<String>> {
    let mut names: Vec<String> = fs::read_dir(folder)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<Result<_>>()?;
    names.sort();
    Ok(names)
}

fn sums(folder: &Path) -> Result<Vec<(String, String)>> {
    names(folder)?
        .into_iter()
        .map(|name| {
            let sum = sha256_of(&folder.join(&name))?;
            Ok((name, sum))
        })
        .collect()
}
