//! An image as an archive in OCI's layout, which older `docker load` reads too. One layer.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use flate2::Compression;
use flate2::write::GzEncoder;
use ring::digest::{self, SHA256};
use serde_json::{Value, json};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";

/// An image to make.
#[derive(Debug, Default)]
pub struct Image {
    /// What it is called where it is loaded, with a tag: `localhost/nacre:0.1.0`.
    pub name: String,
    /// The program it runs, with arguments.
    pub entrypoint: Vec<String>,
    /// Who runs it, as numbers; root if nothing is said.
    pub user: String,
    /// Environment, `NAME=value`.
    pub env: Vec<String>,
    /// TCP ports the program listens on.
    pub ports: Vec<u16>,
    /// Labels, such as the version.
    pub labels: BTreeMap<String, String>,
    /// When it was made; left out unless known, so that the same files give the same image.
    pub created: Option<String>,
    /// Files of this machine, and their paths in the image.
    pub files: Vec<(PathBuf, PathBuf)>,
    /// Files in the image, and their content.
    pub texts: Vec<(PathBuf, String)>,
    /// Links in the image, and where they lead.
    pub links: Vec<(PathBuf, String)>,
    /// Empty folders in the image.
    pub folders: Vec<PathBuf>,
    /// Whether the layer is compressed: smaller, but it takes seconds.
    pub compressed: bool,
}

impl Image {
    /// Writes the archive. The same image gives the same bytes.
    pub fn write(&self, archive: &Path) -> Result<()> {
        self.write_archive(archive).with_context(|| format!("making image {}", self.name))
    }

    fn write_archive(&self, archive: &Path) -> Result<()> {
        let folder = archive.parent().filter(|folder| !folder.as_os_str().is_empty());
        let work = tempfile::tempdir_in(folder.unwrap_or_else(|| Path::new(".")))?;
        let blobs = work.path().join("blobs/sha256");
        fs::create_dir_all(&blobs)?;
        let (layer, diff_id) = self.layer(work.path(), &blobs)?;
        let config = self.config(&diff_id);
        let config_blob = blob(&blobs, CONFIG, &config)?;
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": config_blob,
            "layers": [layer],
        });
        let mut manifest_blob = blob(&blobs, MANIFEST, &manifest)?;
        let tag = self.name.rsplit_once(':').map_or("latest", |(_, tag)| tag);
        manifest_blob["annotations"] =
            json!({ "io.containerd.image.name": self.name, "org.opencontainers.image.ref.name": tag });
        manifest_blob["platform"] = json!({ "architecture": architecture(), "os": "linux" });
        let path_of = |blob: &Value| {
            let digest = blob["digest"].as_str().unwrap_or_default();
            format!("blobs/{}", digest.replace(':', "/"))
        };
        let docker = json!([{
            "Config": path_of(&config_blob),
            "RepoTags": [self.name],
            "Layers": [path_of(&layer)],
        }]);
        let index = json!({ "schemaVersion": 2, "manifests": [manifest_blob] });
        let version = json!({ "imageLayoutVersion": "1.0.0" });
        for (name, content) in [("oci-layout", version), ("index.json", index), ("manifest.json", docker)] {
            fs::write(work.path().join(name), content.to_string())?;
        }
        tar(archive, work.path(), &["oci-layout", "index.json", "manifest.json", "blobs"])
    }

    /// The layer as a blob, and its digest before compression.
    fn layer(&self, work: &Path, blobs: &Path) -> Result<(Value, String)> {
        let root = work.join("root");
        self.fill(&root)?;
        let plain = work.join("layer.tar");
        tar(&plain, &root, &["."])?;
        fs::remove_dir_all(&root)?;
        let diff_id = sha256(&plain)?;
        let (file, kind) = if self.compressed {
            let packed = work.join("layer.tar.gz");
            let mut encoder = GzEncoder::new(File::create(&packed)?, Compression::best());
            std::io::copy(&mut File::open(&plain)?, &mut encoder)?;
            encoder.finish()?.flush()?;
            fs::remove_file(&plain)?;
            (packed, format!("{LAYER}+gzip"))
        } else {
            (plain, LAYER.to_owned())
        };
        let digest = sha256(&file)?;
        let blob = json!({
            "mediaType": kind,
            "digest": format!("sha256:{digest}"),
            "size": fs::metadata(&file)?.len(),
        });
        fs::rename(file, blobs.join(digest))?;
        Ok((blob, format!("sha256:{diff_id}")))
    }

    fn config(&self, diff_id: &str) -> Value {
        let ports: BTreeMap<String, Value> =
            self.ports.iter().map(|port| (format!("{port}/tcp"), json!({}))).collect();
        let mut history = json!({ "created_by": "nacre's make image" });
        let mut config = json!({
            "architecture": architecture(),
            "os": "linux",
            "config": {
                "User": self.user,
                "ExposedPorts": ports,
                "Env": self.env,
                "Entrypoint": self.entrypoint,
                "WorkingDir": "/",
                "Labels": self.labels,
            },
            "rootfs": { "type": "layers", "diff_ids": [diff_id] },
        });
        if let Some(created) = &self.created {
            config["created"] = json!(created);
            history["created"] = json!(created);
        }
        config["history"] = json!([history]);
        config
    }

    /// Fills a folder with everything that is in the image.
    pub fn fill(&self, root: &Path) -> Result<()> {
        fs::create_dir_all(root)?;
        for folder in &self.folders {
            fs::create_dir_all(inside(root, folder)?)?;
        }
        for (source, target) in &self.files {
            let target = inside(root, target)?;
            fs::copy(source, &target).with_context(|| format!("copying {}", source.display()))?;
        }
        for (path, content) in &self.texts {
            fs::write(inside(root, path)?, content)?;
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
pub fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// Writes a JSON document as a blob, and returns how others refer to it.
fn blob(blobs: &Path, kind: &str, content: &Value) -> Result<Value> {
    let text = content.to_string();
    let digest = hex(digest::digest(&SHA256, text.as_bytes()).as_ref());
    fs::write(blobs.join(&digest), &text)?;
    Ok(json!({ "mediaType": kind, "digest": format!("sha256:{digest}"), "size": text.len() }))
}

/// Owners, times, order and modes do not depend on the machine.
fn tar(archive: &Path, folder: &Path, what: &[&str]) -> Result<()> {
    let output = Command::new("tar")
        .args(["--create", "--sort=name", "--mode=u=rwX,go=rX", "--mtime=@0", "--format=ustar"])
        .args(["--owner=0", "--group=0", "--numeric-owner", "--file"])
        .arg(archive)
        .arg("--directory")
        .arg(folder)
        .args(what)
        .output()
        .context("running tar")?;
    ensure!(output.status.success(), "tar: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

pub(crate) fn sha256(file: &Path) -> Result<String> {
    let mut context = digest::Context::new(&SHA256);
    let mut file = File::open(file)?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(context.finish().as_ref())),
            length => context.update(&buffer[..length]),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a text does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
