//! Programs are killed, removed and replaced while requests arrive. Part of `make long`.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bed::{eventually, wait_until};
use e2e::{NodeCluster, NodeTenant, VELERO};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams};
use kube::{Api, ResourceExt as _};

use crate::alone;
use crate::arriving::{each_is_created_once, meanwhile};

const PATIENCE: Duration = Duration::from_mins(4);
/// So many bytes that Velero is still busy with them when something happens.
const BYTES: u64 = 512 << 20;

const BACK_UP: [&str; 5] = ["backup", "create", "one", "--default-volumes-to-fs-backup", "--wait"];
const RESTORE: [&str; 5] = ["restore", "create", "--from-backup", "one", "--wait"];

/// Waits until the node agent works on a volume of this tenant.
async fn volume_is_read(tenant: &NodeTenant<'_>) -> Result<()> {
    let kind = GroupVersionKind::gvk("velero.io", "v1", "PodVolumeBackup");
    let client = tenant.cluster.site.client().await?;
    let backups = Api::<DynamicObject>::namespaced_with(client, VELERO, &ApiResource::from_gvk(&kind));
    eventually("the volume to be read", PATIENCE, async || {
        let all = backups.list(&ListParams::default()).await?.items;
        let own = all.iter().find(|backup| backup.data["spec"]["pod"]["namespace"] == *tenant.namespace);
        let phase = own.context("no PodVolumeBackup yet")?.data["status"]["phase"].clone();
        ensure!(phase == "InProgress", "it is {phase}");
        Ok(())
    })
    .await
}

/// Everything of the tenant is lost and comes back with the same bytes.
async fn comes_back(tenant: &NodeTenant<'_>, written: &str) -> Result<()> {
    tenant.lose_namespace_contents().await?;
    tenant.cli(&RESTORE).await?.with_code(0)?;
    assert_eq!(tenant.checksum("db").await?, written);
    Ok(())
}

#[tokio::test]
async fn a_backup_goes_on_while_kubelet_restarts() -> Result<()> {
    let Some(cluster) = alone().await? else { return Ok(()) };
    kubelet_restarts(&cluster).await
}

/// In whatever way nacre was installed.
pub(crate) async fn kubelet_restarts(cluster: &NodeCluster) -> Result<()> {
    let tenant = cluster.tenant("kubelet-restarts", "ken").await?;
    tenant.start_deployment("db", BYTES).await?;
    let written = tenant.checksum("db").await?;
    let restart = async {
        volume_is_read(&tenant).await?;
        cluster.site.node()?.restart("kubelet").await
    };
    let (ended, restarted) = tokio::join!(tenant.cli(&BACK_UP), restart);
    restarted?;
    ended?.with_code(0)?;
    comes_back(&tenant, &written).await
}

#[tokio::test]
async fn a_backup_whose_node_agent_was_killed_never_claims_bytes_it_does_not_have() -> Result<()> {
    let Some(cluster) = alone().await? else { return Ok(()) };
    node_agent_is_killed(&cluster).await
}

/// In whatever way nacre was installed.
pub(crate) async fn node_agent_is_killed(cluster: &NodeCluster) -> Result<()> {
    let tenant = cluster.tenant("agent-killed", "ann").await?;
    tenant.start_deployment("db", BYTES).await?;
    let written = tenant.checksum("db").await?;
    let kill = async {
        volume_is_read(&tenant).await?;
        let agents = Api::<Pod>::namespaced(cluster.site.client().await?, VELERO);
        let agent = agents.list(&ListParams::default().labels("name=node-agent")).await?;
        let agent = agent.items.first().context("no node agent")?.name_any();
        agents.delete(&agent, &DeleteParams::default().grace_period(0)).await?;
        Ok::<_, anyhow::Error>(())
    };
    let (ended, killed) = tokio::join!(tenant.cli(&BACK_UP), kill);
    killed?;
    let ended = ended?;
    if ended.code != Some(0) {
        // Then the exit code says so, and the next one is whole.
        ensure!(matches!(ended.code, Some(1 | 3)), "{ended:#?}");
        tenant.cli(&["backup", "delete", "one", "--yes"]).await?.with_code(0)?;
        eventually("a new node agent to make a backup", PATIENCE, async || {
            let (deleted, backup) = (["backup", "delete", "one", "--yes"], tenant.cli(&BACK_UP).await?);
            if backup.code != Some(0) {
                tenant.cli(&deleted).await?;
            }
            backup.with_code(0)
        })
        .await?;
    }
    comes_back(&tenant, &written).await
}

#[tokio::test]
async fn uninstalling_with_requests_in_flight_leaves_nothing_stuck_and_loses_none() -> Result<()> {
    let Some(cluster) = alone().await? else { return Ok(()) };
    let tenant = cluster.tenant("uninstalled", "ute").await?;
    let leaving = cluster.tenant("leaving", "leo").await?;
    cluster.nacre_pods_ready(2).await?;
    let uninstall = async {
        leaving.request_backup("last").await?;
        cluster.cli(&["uninstall", "--yes"]).await?.with_code(0)
    };
    let (requested, _) = Box::pin(meanwhile(&tenant, uninstall)).await?;
    ensure!(!requested.is_empty(), "no request arrived meanwhile");

    // Nobody is there to remove a finalizer.
    assert!(cluster.nacre_pods().await?.is_empty());
    gone(&cluster, "leaving").await?;

    // What was asked for and not done is done by the next installation.
    cluster.install().await?;
    each_is_created_once(&tenant, &requested).await
}

/// Deletes a namespace, and waits until it is gone.
pub(crate) async fn gone(cluster: &NodeCluster, name: &str) -> Result<()> {
    let namespaces = Api::<Namespace>::all(cluster.site.client().await?);
    namespaces.delete(name, &DeleteParams::default()).await?;
    wait_until("the namespace to be gone", PATIENCE, namespaces, name, |seen| {
        if seen.is_none() { Some(()) } else { None }
    })
    .await
}
