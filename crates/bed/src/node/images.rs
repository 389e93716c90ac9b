//! The images of a node: made from the programs that are there anyway.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::binaries::Binaries;

use super::image::Image;
use super::programs::{PATH, Programs, libraries};

/// Holds a pod's namespaces.
pub(crate) const PAUSE: &str = "node.test/pause:bed";
/// An image for workloads: a shell and the usual small programs.
pub const BUSYBOX: &str = "node.test/busybox:bed";
/// Velero's server, its node agent and the init container of restored pods.
pub(crate) const VELERO: &str = "node.test/velero:v1.18.3";
/// Copies Velero's plugin to where the server looks for it.
pub(crate) const VELERO_PLUGIN: &str = "node.test/velero-plugin-for-aws:v1.14.3";

/// Makes the archives of all images below `work`.
pub(crate) fn archives(binaries: &Binaries, programs: &Programs, work: &Path) -> Result<Vec<PathBuf>> {
    [pause(programs), busybox()?, velero(binaries, programs)?, velero_plugin(binaries)?]
        .iter()
        .map(|image| image.archive(work))
        .collect()
}

fn pause(programs: &Programs) -> Image {
    Image {
        name: PAUSE.to_owned(),
        entrypoint: vec!["/pause"],
        files: vec![(programs.path("pause"), "/pause".into())],
        ..Image::default()
    }
}

fn busybox() -> Result<Image> {
    let program = busybox_path()?;
    let output = Command::new(&program).arg("--list").output()?;
    ensure!(output.status.success(), "busybox --list failed");
    let applets = String::from_utf8(output.stdout)?;
    let links = applets.lines().filter(|name| *name != "busybox");
    Ok(Image {
        name: BUSYBOX.to_owned(),
        entrypoint: vec!["/bin/sh"],
        files: vec![(program, "/bin/busybox".into())],
        links: links.map(|name| (Path::new("/bin").join(name), "busybox")).collect(),
    })
}

fn velero(binaries: &Binaries, programs: &Programs) -> Result<Image> {
    let velero = binaries.path("velero");
    let mut files: Vec<_> = libraries(&velero)?.into_iter().map(|path| (path.clone(), path)).collect();
    files.push((velero, "/velero".into()));
    files.push((programs.path("velero-restore-helper"), "/velero-restore-helper".into()));
    Ok(Image { name: VELERO.to_owned(), entrypoint: vec!["/velero"], files, ..Image::default() })
}

fn velero_plugin(binaries: &Binaries) -> Result<Image> {
    let plugin = "/plugins/velero-plugin-for-aws";
    Ok(Image {
        name: VELERO_PLUGIN.to_owned(),
        entrypoint: vec!["/bin/busybox", "cp", plugin, "/target/"],
        files: vec![
            (busybox_path()?, "/bin/busybox".into()),
            (binaries.path("velero-plugin-for-aws"), plugin.into()),
        ],
        ..Image::default()
    })
}

fn busybox_path() -> Result<PathBuf> {
    let mut folders = PATH.split(':').map(|folder| Path::new(folder).join("busybox"));
    folders.find(|path| path.is_file()).context("busybox is not installed (package busybox-static)")
}
