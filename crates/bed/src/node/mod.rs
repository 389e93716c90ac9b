//! A cluster with a node: kubelet and containerd run pods, Velero and its node agent are pods, volumes hold bytes.
//!
//! Everything is in namespaces of its own (see [`namespaces`]), so several run next to each other with the same
//! addresses, nothing changes for the rest of the machine, and nothing is left behind. It needs Linux and root.
//!
//! Commands that talk to the cluster run inside its network: [`Node::command`], [`Node::kubectl`], [`Node::velero`].

mod control_plane;
mod forward;
mod images;
mod namespaces;
mod programs;
mod run;
mod runtime;
mod start;
mod velero;
mod volumes;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use kube::api::DynamicObject;
use kube::{Client, Config};

use crate::access::Access;
use crate::apply::apply;
use crate::audit::Audit;
use crate::binaries::Binaries;
use crate::folder::Folder;
use crate::process::{Process, Program};
use crate::store;

use self::forward::Forward;
use self::namespaces::Namespaces;
use self::programs::Programs;

pub use self::images::{BUSYBOX, busybox_image};
pub use self::volumes::STORAGE_CLASS;

/// The node's name.
pub const NODE: &str = "node";
/// The node's address, in its own network namespace.
pub(crate) const ADDRESS: &str = "10.1.0.1";

/// A running cluster with a node; dropping it ends everything and removes its folder.
#[derive(Debug)]
pub struct Node {
    // Dropped from top to bottom, and with the namespaces everything in them has ended.
    namespaces: Namespaces,
    forward: Forward,
    velero: String,
    running: BTreeMap<String, Running>,
    volumes: AtomicUsize,
    access: Access,
    audit_log: Option<PathBuf>,
    binaries: Binaries,
    programs: Programs,
    folder: Folder,
}

/// A program of the node, as it was started.
#[derive(Debug)]
struct Running {
    program: Program,
    process: Mutex<Arc<Process>>,
}

impl Node {
    /// Starts a cluster in a temporary folder and waits until the node is Ready and Velero can be used.
    pub async fn start() -> Result<Self> {
        Box::pin(start::start(None, velero::NAMESPACE)).await
    }

    /// The same with Velero in this namespace.
    pub async fn start_with_velero_in(namespace: &str) -> Result<Self> {
        Box::pin(start::start(None, namespace)).await
    }

    /// The same in this folder, which stays.
    pub async fn start_in(folder: &Path) -> Result<Self> {
        Box::pin(start::start(Some(folder), velero::NAMESPACE)).await
    }

    /// Fails with one sentence where a node cannot run, before anything is built or started.
    pub fn check() -> Result<()> {
        programs::check_root()
    }

    /// Builds the programs of the cluster and of the node where they are missing, and installs Debian packages where
    /// that is possible. Shows progress on standard error.
    pub fn build() -> Result<()> {
        programs::build()
    }

    /// Fails if a node cannot be started now, and says why.
    pub fn check_ready() -> Result<()> {
        programs::check_root()?;
        programs::check_packages()?;
        Binaries::find()?;
        Programs::find()?;
        Ok(())
    }

    /// One of the node's programs as it runs now.
    fn process(&self, name: &str) -> Option<Arc<Process>> {
        let process = self.running.get(name)?.process.lock().unwrap_or_else(PoisonError::into_inner);
        Some(Arc::clone(&process))
    }

    /// Where its files and logs are; the logs of pods are in `pods`.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The kubeconfig file of somebody in `system:masters`, for programs in the node's network.
    pub fn kubeconfig(&self) -> PathBuf {
        self.access.admin_kubeconfig()
    }

    /// The first process of the node's namespaces: with it, everything in them ends.
    pub fn first_process(&self) -> u32 {
        self.namespaces.first_process()
    }

    /// Where S3 is spoken, for pods and for programs in the node's network; path style only.
    pub fn store_url(&self) -> String {
        velero::store_url()
    }

    /// A key to the store, as a Secret of a storage location has it.
    pub fn store_credentials(&self) -> String {
        store::root_credentials()
    }

    /// The folder of the bucket that Velero's default location uses.
    pub fn platform_bucket(&self) -> PathBuf {
        store::buckets(self.folder()).join(crate::velero::BUCKET)
    }

    /// Makes a bucket in the store.
    pub fn make_bucket(&self, name: &str) -> Result<()> {
        Ok(std::fs::create_dir_all(store::buckets(self.folder()).join(name))?)
    }

    /// The namespace Velero lives in.
    pub fn velero_namespace(&self) -> &str {
        &self.velero
    }

    /// The audit log, with every request, reads too. A cluster whose folder stays has none.
    pub fn audit(&self) -> Result<Audit<'_>> {
        let log = self.audit_log.as_deref().context("a cluster whose folder stays has no audit log")?;
        Ok(Audit { log, access: &self.access, forward: Some(self.forward.address()) })
    }

    /// Installs another Velero with these flags, and waits until it can make a backup with volumes.
    pub async fn another_velero(&self, namespace: &str, flags: &[&str]) -> Result<()> {
        velero::install_another(self, namespace, flags).await?;
        velero::ready(&self.client().await?, namespace).await
    }

    /// A client in `system:masters`, for this process. It belongs to the async runtime it is made in.
    pub async fn client(&self) -> Result<Client> {
        self.forwarded(self.access.config(&self.kubeconfig(), crate::USER_AGENT).await?)
    }

    /// The same with the permissions of somebody else, whom it impersonates.
    pub async fn client_as(&self, user: &str, groups: &[&str]) -> Result<Client> {
        self.forwarded(self.access.config_as(user, groups).await?)
    }

    fn forwarded(&self, mut config: Config) -> Result<Client> {
        config.cluster_url = format!("https://{}", self.forward.address()).parse()?;
        Ok(Client::try_from(config)?)
    }

    /// Writes a kubeconfig file for somebody with this namespace as default, for programs in the node's network.
    pub fn kubeconfig_as(&self, user: &str, namespace: &str) -> Result<PathBuf> {
        self.access.write_as(user, namespace)
    }

    /// Applies objects by server-side apply; CRDs come first and are waited for.
    pub async fn apply(&self, objects: &[DynamicObject]) -> Result<()> {
        apply(&self.client().await?, objects).await
    }

    /// Applies the documents of a YAML text.
    pub async fn apply_yaml(&self, yaml: &str) -> Result<()> {
        self.apply(&crate::parse_manifests(yaml)?).await
    }
}
