//! From nothing to a Ready node with Velero.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1;
use kube::{Api, Client};

use crate::apply::apply;
use crate::binaries::Binaries;
use crate::control_plane::answers;
use crate::folder::Folder;
use crate::process::Program;
use crate::wait::{eventually, wait_until};

use super::control_plane::{API_PORT, ControlPlane};
use super::forward::Forward;
use super::namespaces::Namespaces;
use super::programs::Programs;
use super::{ADDRESS, NODE, Node, Running, images, programs, runtime, velero, volumes};

/// It takes seconds on an idle machine; a machine that compiles at the same time needs patience.
const PATIENCE: Duration = Duration::from_mins(3);

/// With Velero in this namespace.
pub(super) async fn start(folder: Option<&Path>, velero_namespace: &str) -> Result<Node> {
    programs::check_root()?;
    programs::check_packages()?;
    let (binaries, programs) = (Binaries::find()?, Programs::find()?);
    // In a folder that stays it would fill the disk.
    let has_audit_log = folder.is_none();
    let volumes = if folder.is_none() { volumes::AT_FIRST } else { volumes::WITHOUT_MORE };
    let folder = match folder {
        Some(path) => Folder::named(path)?,
        None => Folder::temporary()?,
    };
    let path = folder.path();
    let audit_log = has_audit_log.then(|| path.join("audit.log"));
    let archives = {
        let (binaries, programs, work) = (binaries.clone(), programs.clone(), path.join("images"));
        tokio::task::spawn_blocking(move || images::archives(&binaries, &programs, &work))
    };
    let namespaces = Namespaces::start(path).await?;
    let control_plane = ControlPlane::prepare(&binaries, &programs, path, audit_log.as_deref())?;
    let forward = Forward::start(namespaces.first_process(), SocketAddr::new(ADDRESS.parse()?, API_PORT))?;
    let (etcd, api_server) = (control_plane.etcd, control_plane.api_server);
    let mut node = Node {
        namespaces,
        forward,
        velero: velero_namespace.to_owned(),
        running: BTreeMap::new(),
        volumes: AtomicUsize::new(volumes),
        access: control_plane.access,
        audit_log,
        binaries,
        programs,
        folder,
    };
    let path = node.folder().to_owned();
    fs::create_dir_all(path.join("tmp"))?;
    node.write_commands()?;

    node.run("etcd", etcd)?;
    node.run("kube-apiserver", api_server)?;
    node.run("containerd", runtime::containerd(&node.programs, &path)?)?;
    node.run("versitygw", velero::store(&node.binaries, &path)?)?;
    let client = node.client().await?;
    let archives = archives.await??;
    let (api, images) = tokio::join!(
        node.must_live("etcd", node.must_live("kube-apiserver", answers(&client, "readyz"))),
        node.must_live("containerd", load_images(&node, &archives)),
    );
    api?;
    images?;
    fs::remove_dir_all(path.join("images"))?;

    node.run("kube-controller-manager", control_plane.controller_manager)?;
    node.run("kube-scheduler", control_plane.scheduler)?;
    node.run("kubelet", runtime::kubelet(&node.programs, &path, &control_plane.pki)?)?;
    node.run("kube-proxy", runtime::kube_proxy(&node.programs, &path))?;
    tokio::try_join!(
        node.must_live("kubelet", node_is_ready(&client)),
        storage(&client, &path, volumes),
        velero::install(&node),
    )?;
    velero::ready(&client, node.velero_namespace()).await?;
    Ok(node)
}

impl Node {
    /// Starts a program in the node's namespaces.
    fn run(&mut self, name: &str, program: Program) -> Result<()> {
        let program = program
            .within(self.namespaces.inside())
            .env("TMPDIR", self.folder().join("tmp").display().to_string());
        let process = Mutex::new(Arc::new(program.start()?));
        self.running.insert(name.to_owned(), Running { program, process });
        Ok(())
    }

    /// Does some work, and fails with the end of a program's log if that ends meanwhile.
    async fn must_live<T>(&self, name: &str, work: impl Future<Output = Result<T>>) -> Result<T> {
        match self.process(name) {
            Some(process) => process.must_do(work).await,
            None => work.await,
        }
    }
}

/// Loads the images one after the other, as soon as containerd listens.
async fn load_images(node: &Node, archives: &[PathBuf]) -> Result<()> {
    for archive in archives {
        eventually("containerd to load an image", PATIENCE, async || node.load_image(archive).await).await?;
    }
    Ok(())
}

async fn storage(client: &Client, folder: &Path, number: usize) -> Result<()> {
    let mut objects = vec![serde_json::from_value(volumes::storage_class())?];
    objects.extend(volumes::volumes(folder, 0..number)?);
    apply(client, &objects).await
}

async fn node_is_ready(client: &Client) -> Result<()> {
    let nodes = Api::<v1::Node>::all(client.clone());
    wait_until("the node to be Ready", PATIENCE, nodes, NODE, |node| {
        let conditions = node?.status.as_ref()?.conditions.as_ref()?;
        conditions
            .iter()
            .any(|condition| condition.type_ == "Ready" && condition.status == "True")
            .then_some(())
    })
    .await
}
