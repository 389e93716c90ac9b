//! Where stories about pods and volumes run: on a node of the bed, or in a cluster that somebody else made.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use bed::{BUSYBOX, ExistingCluster, Node, Output, STORAGE_CLASS};
use kube::Client;
use kube::api::DynamicObject;
use serde_json::{Value, json};

/// The kubeconfig file of a cluster that exists. `make stories KUBECONFIG=...` sets it.
const KUBECONFIG: &str = "NACRE_STORIES_KUBECONFIG";
/// The image of workloads there: anything with a shell, `find`, `sort`, `xargs` and `sha256sum`.
const IMAGE: &str = "NACRE_STORIES_IMAGE";
/// The StorageClass of claims there; empty for the default one.
const CLASS: &str = "NACRE_STORIES_STORAGE_CLASS";

/// Where nacre runs.
pub enum Site {
    /// A node of the bed, which the stories may disturb.
    Node(Box<Node>),
    /// A cluster that exists. Stories make namespaces in it, and disturb nothing else.
    Existing(ExistingCluster),
}

/// What a variable is set to.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

impl Site {
    /// The cluster that was named, if one was.
    pub(crate) fn existing() -> Result<Option<Self>> {
        let named =
            variable(KUBECONFIG).map(|path| ExistingCluster::new(Path::new(&path)).map(Self::Existing));
        named.transpose()
    }

    /// Whether a cluster that exists was named.
    pub(crate) fn is_existing_named() -> bool {
        variable(KUBECONFIG).is_some()
    }

    /// The node of the bed; fails in a cluster that exists.
    pub fn node(&self) -> Result<&Node> {
        match self {
            Self::Node(node) => Some(&**node),
            Self::Existing(_) => None,
        }
        .context("this takes a node of the bed")
    }

    /// The namespace for a story with this name. In a cluster of somebody else it is known by its prefix.
    pub(crate) fn namespace(&self, name: &str) -> String {
        match self {
            Self::Node(_) => name.to_owned(),
            Self::Existing(_) => format!("nacre-story-{name}"),
        }
    }

    /// The kubeconfig file of an administrator.
    pub fn kubeconfig(&self) -> PathBuf {
        match self {
            Self::Node(node) => node.kubeconfig(),
            Self::Existing(cluster) => cluster.kubeconfig(),
        }
    }

    /// The kubeconfig file of somebody, with this namespace as default.
    pub fn kubeconfig_as(&self, user: &str, namespace: &str) -> Result<PathBuf> {
        match self {
            Self::Node(node) => node.kubeconfig_as(user, namespace),
            Self::Existing(cluster) => cluster.kubeconfig_as(user, namespace),
        }
    }

    /// A client of an administrator.
    pub async fn client(&self) -> Result<Client> {
        match self {
            Self::Node(node) => node.client().await,
            Self::Existing(cluster) => cluster.client().await,
        }
    }

    /// A client of somebody else.
    pub async fn client_as(&self, user: &str) -> Result<Client> {
        match self {
            Self::Node(node) => node.client_as(user, &[]).await,
            Self::Existing(cluster) => cluster.client_as(user, &[]).await,
        }
    }

    /// Runs a program where it reaches the cluster.
    pub async fn run_as(
        &self,
        kubeconfig: &Path,
        program: impl AsRef<Path>,
        args: &[&str],
    ) -> Result<Output> {
        match self {
            Self::Node(node) => node.run_as(kubeconfig, program, args).await,
            Self::Existing(cluster) => cluster.run_as(kubeconfig, program, args).await,
        }
    }

    /// Runs kubectl as an administrator.
    pub async fn kubectl(&self, args: &[&str]) -> Result<Output> {
        self.run_as(&self.kubeconfig(), "kubectl", args).await
    }

    /// Applies objects as an administrator.
    pub async fn apply(&self, objects: &[DynamicObject]) -> Result<()> {
        match self {
            Self::Node(node) => node.apply(objects).await,
            Self::Existing(cluster) => cluster.apply(objects).await,
        }
    }

    /// A folder for files of the stories.
    pub fn folder(&self) -> &Path {
        match self {
            Self::Node(node) => node.folder(),
            Self::Existing(cluster) => cluster.folder(),
        }
    }

    /// Makes more volumes. Where claims are provisioned, nothing has to be done.
    pub async fn add_volumes(&self, number: usize) -> Result<()> {
        match self {
            Self::Node(node) => node.add_volumes(number).await,
            Self::Existing(_) => Ok(()),
        }
    }
}

/// The image of workloads.
pub(crate) fn workload_image() -> String {
    variable(IMAGE).unwrap_or_else(|| BUSYBOX.to_owned())
}

/// The StorageClass of claims, or null for the cluster's default one.
pub(crate) fn storage_class() -> Value {
    match variable(CLASS) {
        Some(class) => json!(class),
        None if Site::is_existing_named() => Value::Null,
        None => json!(STORAGE_CLASS),
    }
}
