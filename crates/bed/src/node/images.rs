//! The images of a node: made from the programs that are there anyway.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use image::{Image, libraries};

use crate::binaries::Binaries;

use super::programs::{PATH, Programs};

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
    std::fs::create_dir_all(work)?;
    let images = [
        pause(programs),
        busybox_image(BUSYBOX, Vec::new())?,
        velero(binaries, programs)?,
        velero_plugin(binaries)?,
    ];
    let archive = |(number, image): (usize, &Image)| {
        let path = work.join(format!("{number}.tar"));
        image.write(&path).map(|()| path)
    };
    images.iter().enumerate().map(archive).collect()
}

/// An image that runs this; programs expect a folder for temporary files.
fn image(name: &str, entrypoint: &[&str], files: Vec<(PathBuf, PathBuf)>) -> Image {
    Image {
        name: name.to_owned(),
        entrypoint: entrypoint.iter().map(|&word| word.to_owned()).collect(),
        env: vec!["PATH=/bin".to_owned()],
        files,
        folders: vec!["/tmp".into()],
        ..Image::default()
    }
}

fn pause(programs: &Programs) -> Image {
    image(PAUSE, &["/pause"], vec![(programs.path("pause"), "/pause".into())])
}

/// An image for workloads with a shell, the usual small programs, and more files of this machine.
pub fn busybox_image(name: &str, more: Vec<(PathBuf, PathBuf)>) -> Result<Image> {
    let program = busybox_path()?;
    let output = Command::new(&program).arg("--list").output()?;
    ensure!(output.status.success(), "busybox --list failed");
    let applets = String::from_utf8(output.stdout)?;
    let links = applets.lines().filter(|name| *name != "busybox");
    Ok(Image {
        links: links.map(|name| (Path::new("/bin").join(name), "busybox".to_owned())).collect(),
        ..image(name, &["/bin/sh"], [vec![(program, "/bin/busybox".into())], more].concat())
    })
}

fn velero(binaries: &Binaries, programs: &Programs) -> Result<Image> {
    let velero = binaries.path("velero");
    let mut files: Vec<_> = libraries(&velero)?.into_iter().map(|path| (path.clone(), path)).collect();
    files.push((velero, "/velero".into()));
    files.push((programs.path("velero-restore-helper"), "/velero-restore-helper".into()));
    Ok(image(VELERO, &["/velero"], files))
}

fn velero_plugin(binaries: &Binaries) -> Result<Image> {
    let plugin = "/plugins/velero-plugin-for-aws";
    let files = vec![
        (busybox_path()?, "/bin/busybox".into()),
        (binaries.path("velero-plugin-for-aws"), plugin.into()),
    ];
    Ok(image(VELERO_PLUGIN, &["/bin/busybox", "cp", plugin, "/target/"], files))
}

fn busybox_path() -> Result<PathBuf> {
    let mut folders = PATH.split(':').map(|folder| Path::new(folder).join("busybox"));
    folders.find(|path| path.is_file()).context("busybox is not installed (package busybox-static)")
}
