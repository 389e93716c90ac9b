//! The image of nacre: both programs, the licence and the list of what is compiled in, on nothing else.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

use crate::{Image, libraries, sbom};

/// Who runs it: a number, so that `runAsNonRoot` can be checked. Any other will do as well, as on OpenShift.
pub const USER: &str = "65532:65532";
/// Metrics, probes, webhook.
pub const PORTS: [u16; 3] = [8080, 8081, 9443];
/// Runs the controller, configured by its environment, as OADP's operator starts it.
pub const ENTRYPOINT: &str = "/nacre";
/// The controller and the command line, as they are called below the build folder and in the root of the image.
pub const PROGRAMS: [&str; 2] = ["nacre", "kubectl-nacre"];
/// Where the list of what is compiled in is.
pub const SBOM: &str = "/sbom.cdx.json";
/// The version of nacre.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The image that ships, of the static programs in a folder.
pub fn image(name: &str, programs: &Path) -> Result<Image> {
    let mut image = layout(name, programs)?;
    let shared =
        image.files.iter().map(|(program, _)| libraries(program)).collect::<Result<Vec<_>>>()?.concat();
    ensure!(shared.is_empty(), "the programs in {} are not static: {shared:?}", programs.display());
    image.texts.push((SBOM.into(), format!("{:#}\n", sbom::of_nacre()?)));
    image.compressed = true;
    Ok(image)
}

/// The same layout with programs that need the C library, which comes with them: made in a second, for tests. The list of
/// what is compiled in is left out.
pub fn test_image(name: &str, programs: &Path) -> Result<Image> {
    let mut image = layout(name, programs)?;
    let mut shared =
        image.files.iter().map(|(program, _)| libraries(program)).collect::<Result<Vec<_>>>()?.concat();
    shared.sort();
    shared.dedup();
    image.files.extend(shared.into_iter().map(|path| (path.clone(), path)));
    Ok(image)
}

fn layout(name: &str, programs: &Path) -> Result<Image> {
    let mut files: Vec<(PathBuf, PathBuf)> =
        PROGRAMS.iter().map(|program| (programs.join(program), Path::new("/").join(program))).collect();
    for (program, _) in &files {
        ensure!(program.is_file(), "{} is not there", program.display());
    }
    let licence = root().join("LICENSE");
    let texts = vec![(PathBuf::from("/LICENSE"), std::fs::read_to_string(licence)?)];
    files.sort();
    Ok(Image {
        name: name.to_owned(),
        entrypoint: vec![ENTRYPOINT.to_owned()],
        user: USER.to_owned(),
        ports: PORTS.to_vec(),
        labels: labels(),
        created: git(&["log", "-1", "--format=%cI"]),
        files,
        texts,
        ..Image::default()
    })
}

/// Labels by which people and scanners know an image.
pub fn labels() -> BTreeMap<String, String> {
    let mut labels = BTreeMap::from(
        [
            ("title", "nacre"),
            ("description", "Backup and restore for namespace owners, on top of Velero"),
            ("version", VERSION),
            ("licenses", env!("CARGO_PKG_LICENSE")),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned())),
    );
    if let Some(revision) = git(&["rev-parse", "HEAD"]) {
        labels.insert("revision".to_owned(), revision);
    }
    labels.into_iter().map(|(key, value)| (format!("org.opencontainers.image.{key}"), value)).collect()
}

/// What git answers, where the sources are in a git repository.
fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(root()).args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}

/// Where the repository is.
pub(crate) fn root() -> &'static Path {
    // crates/image is two below the root, always.
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().and_then(Path::parent).unwrap_or(here)
}
