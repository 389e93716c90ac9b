//! The S3 store on the node's address, and Velero with its node agent as pods.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::apps::v1::DaemonSet;
use kube::{Api, Client};

use crate::binaries::Binaries;
use crate::process::Program;
use crate::store::{self, REGION, root_credentials};
use crate::velero::{BUCKET, api};
use crate::wait::wait_until;

use super::images::{VELERO, VELERO_PLUGIN};
use super::{ADDRESS, Node};

const STORE_PORT: u16 = 7070;
pub(crate) const NAMESPACE: &str = "velero";
const PATIENCE: Duration = Duration::from_mins(3);

/// Where S3 is spoken, by pods and by programs in the node's network; path style only.
pub(crate) fn store_url() -> String {
    format!("http://{ADDRESS}:{STORE_PORT}")
}

/// The store, with the bucket of the default location.
pub(crate) fn store(binaries: &Binaries, folder: &Path) -> Result<Program> {
    fs::create_dir_all(store::buckets(folder).join(BUCKET))?;
    Ok(store::program_at(binaries, folder, &format!("{ADDRESS}:{STORE_PORT}")))
}

/// Installs Velero as its own installer does.
pub(crate) async fn install(node: &Node) -> Result<()> {
    install_with(node, &["--namespace", node.velero_namespace()]).await
}

/// Installs another Velero in a namespace of its own, with its own backups below that name in the bucket.
pub(crate) async fn install_another(node: &Node, namespace: &str, flags: &[&str]) -> Result<()> {
    let own = ["--namespace", namespace, "--prefix", namespace, "--wait"];
    install_with(node, &[&own, flags].concat()).await
}

async fn install_with(node: &Node, more: &[&str]) -> Result<()> {
    let credentials = node.folder().join("credentials");
    fs::write(&credentials, root_credentials())?;
    let credentials = format!("--secret-file={}", credentials.display());
    let location =
        format!("--backup-location-config=region={REGION},s3ForcePathStyle=true,s3Url={}", store_url());
    let (image, plugin) = (format!("--image={VELERO}"), format!("--plugins={VELERO_PLUGIN}"));
    let bucket = format!("--bucket={BUCKET}");
    let mut args = vec!["install", "--provider=aws", "--use-volume-snapshots=false", "--use-node-agent"];
    args.extend([&*image, &plugin, &bucket, &credentials, &location]);
    // No requests and no limits: the machine is small, and others use it too.
    let resources = ["velero-pod", "node-agent-pod"].into_iter().flat_map(|pod| {
        ["cpu-request", "cpu-limit", "mem-request", "mem-limit"].map(|what| format!("--{pod}-{what}=0"))
    });
    let resources: Vec<String> = resources.collect();
    args.extend(resources.iter().map(String::as_str).chain(more.iter().copied()));
    node.velero(&args).await?.ok()?;
    Ok(())
}

/// Waits until the Velero in a namespace can make a backup with volumes.
pub(crate) async fn ready(client: &Client, namespace: &str) -> Result<()> {
    let agents = Api::<DaemonSet>::namespaced(client.clone(), namespace);
    let agent = wait_until("Velero's node agent to be ready", PATIENCE, agents, "node-agent", |agents| {
        let status = agents?.status.as_ref()?;
        (status.number_ready > 0).then_some(())
    });
    let locations = api(client, namespace, "BackupStorageLocation");
    let location =
        wait_until("the default location to be available", PATIENCE, locations, "default", |location| {
            (location?.data["status"]["phase"] == "Available").then_some(())
        });
    tokio::try_join!(agent, location)?;
    Ok(())
}
