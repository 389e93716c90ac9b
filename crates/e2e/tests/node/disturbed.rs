//! What happens to an installation: pods are evicted and killed, the leader hangs, the node agent is killed, kubelet
//! restarts, and nacre is uninstalled, with requests in flight. The same in each way of installing it ([`crate::ways`]),
//! each on a node of its own. Part of `make long`.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use bed::{Output, eventually, send_signal, wait_until};
use e2e::{NodeCluster, NodeTenant, VELERO};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use crate::arriving::{each_is_created_once, meanwhile};
use crate::failover::leader_is_killed;
use crate::installed::pods_are_probed_and_limited;
use crate::say;
use crate::ways::{CommandLine, Helm, Oadp, Way, all_run};

const PATIENCE: Duration = Duration::from_mins(4);
const SMALL: u64 = 1 << 20;
/// So many bytes that Velero is still busy with them when something happens.
const BYTES: u64 = 512 << 20;

const BACK_UP: [&str; 5] = ["backup", "create", "one", "--default-volumes-to-fs-backup", "--wait"];
const RESTORE: [&str; 5] = ["restore", "create", "--from-backup", "one", "--wait"];

#[tokio::test]
async fn what_the_command_line_installed_keeps_every_request_and_all_data_whatever_happens() -> Result<()> {
    Box::pin(disturbed(&CommandLine)).await
}

#[tokio::test]
async fn what_the_chart_installed_keeps_every_request_and_all_data_whatever_happens() -> Result<()> {
    Box::pin(disturbed(&Helm)).await
}

#[tokio::test]
async fn what_an_application_installed_keeps_every_request_and_all_data_whatever_happens() -> Result<()> {
    Box::pin(disturbed(&Oadp)).await
}

/// Everything, one after the other.
async fn disturbed<W: Way>(way: &W) -> Result<()> {
    if !NodeCluster::can_run()? {
        return Ok(());
    }
    let cluster = NodeCluster::start_without_nacre().await?;
    let release = cluster.this_release()?;
    let install = async |is_first: bool| {
        way.install(&cluster, &release, is_first).await?;
        anyhow::Ok(all_run(&cluster, &release.image).await?.len())
    };
    let pods = timed::<W, _>("installed", install(true)).await?;
    // Who may bring storage is for administrators to say: without a policy, doctor names that.
    cluster.set_policy("storageLocations: { requireApproval: true }").await?;
    // The leader writes the certificate of the webhook a moment later.
    eventually("doctor to find no problem", PATIENCE, async || cluster.cli(&["doctor"]).await?.with_code(0))
        .await?;
    cluster.until_webhook_answers().await?;
    pods_are_probed_and_limited(&cluster, pods).await?;
    timed::<W, _>("a volume was lost and came back", a_volume_comes_back(&cluster)).await?;

    let arriving = cluster.tenant("arriving", "ari").await?;
    let replaced = async {
        a_pod_is_evicted(&cluster, pods).await?;
        leader_is_killed(&cluster, pods, PATIENCE).await
    };
    let replaced = timed::<W, _>("a pod was evicted and the leader was killed", replaced);
    let (requested, ()) = Box::pin(meanwhile(&arriving, replaced)).await?;
    say(&format!("{}: {} requests arrived meanwhile", W::NAME, requested.len()))?;
    each_is_created_once(&arriving, &requested).await?;

    timed::<W, _>("the leader hung and was restarted", leader_hangs(&cluster, pods)).await?;
    timed::<W, _>("the node agent was killed", node_agent_is_killed(&cluster)).await?;
    timed::<W, _>("kubelet restarted", kubelet_restarts(&cluster)).await?;
    let uninstalled = uninstalled_in_flight(&cluster, way.uninstall(&cluster), install(true));
    timed::<W, _>("uninstalled and installed", uninstalled).await
}

/// Says how long something took.
async fn timed<W: Way, T>(what: &str, work: impl Future<Output = Result<T>>) -> Result<T> {
    let began = Instant::now();
    let done = work.await.with_context(|| format!("{}: {what}", W::NAME))?;
    say(&format!("{}: {what}, {:.0} s", W::NAME, began.elapsed().as_secs_f64()))?;
    Ok(done)
}

/// What a tenant of any installation gets: the data comes back.
async fn a_volume_comes_back(cluster: &NodeCluster) -> Result<()> {
    let tenant = cluster.tenant("quiet", "ida").await?;
    tenant.start_deployment("db", SMALL).await?;
    let written = tenant.checksum("db").await?;
    tenant.cli(&["backup", "create", "one", "--wait"]).await?.with_code(0)?;
    comes_back(&tenant, &written).await
}

/// Everything of the tenant is lost and comes back with the same bytes.
async fn comes_back(tenant: &NodeTenant<'_>, written: &str) -> Result<()> {
    tenant.lose_namespace_contents().await?;
    tenant.cli(&RESTORE).await?.with_code(0)?;
    assert_eq!(tenant.checksum("db").await?, written);
    Ok(())
}

/// As when the node is drained. Nothing was evicted before, so the disruption budget allows one.
async fn a_pod_is_evicted(cluster: &NodeCluster, number: usize) -> Result<()> {
    let leader = cluster.leader().await?;
    let others = cluster.nacre_pods_ready(number).await?.into_iter().filter(|pod| *pod != leader);
    evict(cluster, &leader).await?.ok()?;
    // The others stay until it is replaced.
    for other in others {
        let refused = evict(cluster, &other).await?;
        ensure!(!refused.success && refused.stderr.contains("disruption budget"), "{refused:#?}");
    }
    let ready = cluster.nacre_pods_ready(number).await?;
    ensure!(!ready.contains(&leader), "{leader} is still there: {ready:?}");
    Ok(())
}

/// By kubectl, since the client of these stories asks again whenever it is refused for now.
async fn evict(cluster: &NodeCluster, pod: &str) -> Result<Output> {
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction",
        "metadata": {"name": pod, "namespace": VELERO}});
    let file = cluster.site.folder().join(format!("evict-{pod}.json"));
    std::fs::write(&file, eviction.to_string())?;
    let path = format!("/api/v1/namespaces/{VELERO}/pods/{pod}/eviction");
    cluster.site.kubectl(&["create", "--raw", &path, "--filename", &file.display().to_string()]).await
}

/// A process that hangs answers no probe. A standby becomes leader, and kubelet restarts its container.
async fn leader_hangs(cluster: &NodeCluster, number: usize) -> Result<()> {
    let tenant = cluster.tenant("hangs", "hana").await?;
    let leader = cluster.leader().await?;
    let before = restarts(cluster).await?;
    send_signal(cluster.process_of(&leader).await?, "STOP")?;
    let hung = Instant::now();
    tenant.request_backup("meanwhile").await?;
    tenant.backup_created("meanwhile", PATIENCE).await?;
    let seconds = hung.elapsed().as_secs_f64();
    say(&format!("a request was Created {seconds:.1} s after the leader hung"))?;
    let after: Vec<_> =
        before.into_iter().map(|(pod, count)| (pod.clone(), count + i32::from(pod == leader))).collect();
    eventually("kubelet to restart the container", PATIENCE, async || {
        let seen = restarts(cluster).await?;
        ensure!(seen == after, "{seen:?}");
        Ok(())
    })
    .await?;
    cluster.nacre_pods_ready(number).await?;
    assert_eq!(tenant.velero_backups().await?, ["meanwhile"]);
    Ok(())
}

/// nacre's pods, and how often each was restarted.
async fn restarts(cluster: &NodeCluster) -> Result<Vec<(String, i32)>> {
    let count = |pod: &Pod| {
        let started = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
        started.into_iter().flatten().map(|container| container.restart_count).sum()
    };
    let mut pods: Vec<_> =
        cluster.nacre_pods().await?.iter().map(|pod| (pod.name_any(), count(pod))).collect();
    pods.sort();
    Ok(pods)
}

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

/// A backup goes on, and so does nacre.
async fn kubelet_restarts(cluster: &NodeCluster) -> Result<()> {
    let tenant = cluster.tenant("kubelet-restarts", "ken").await?;
    tenant.start_deployment("db", BYTES).await?;
    let written = tenant.checksum("db").await?;
    let before = restarts(cluster).await?;
    let restart = async {
        volume_is_read(&tenant).await?;
        cluster.site.node()?.restart("kubelet").await
    };
    let (ended, restarted) = tokio::join!(tenant.cli(&BACK_UP), restart);
    restarted?;
    ended?.with_code(0)?;
    comes_back(&tenant, &written).await?;
    assert_eq!(restarts(cluster).await?, before, "nacre's own pods");
    Ok(())
}

/// A backup never claims bytes that it does not have.
async fn node_agent_is_killed(cluster: &NodeCluster) -> Result<()> {
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

/// Uninstalls while requests arrive all the time. No request is stuck: a namespace with one that was only just made goes.
/// What was asked for and not done is done by the next installation, once.
async fn uninstalled_in_flight(
    cluster: &NodeCluster,
    uninstall: impl Future<Output = Result<()>>,
    install: impl Future<Output = Result<usize>>,
) -> Result<()> {
    let tenant = cluster.tenant("in-flight", "hal").await?;
    let leaving = cluster.tenant("leaving", "leo").await?;
    tenant.request_backup("created").await?;
    tenant.backup_created("created", PATIENCE).await?;
    let uninstall = async {
        leaving.request_backup("last").await?;
        uninstall.await
    };
    let (requested, ()) = Box::pin(meanwhile(&tenant, uninstall)).await?;
    ensure!(!requested.is_empty(), "no request arrived meanwhile");
    ensure!(cluster.nacre_pods().await?.is_empty());
    // Nobody is there to remove a finalizer.
    let finalizers = "--output=jsonpath={.items[*].metadata.finalizers}";
    let finalizers =
        cluster.site.kubectl(&["get", "nonadminbackups", "--all-namespaces", finalizers]).await?.ok()?;
    ensure!(finalizers.trim().is_empty(), "{finalizers}");
    gone(cluster, "leaving").await?;

    install.await?;
    let all = [vec!["created".to_owned()], requested].concat();
    each_is_created_once(&tenant, &all).await
}

/// Deletes a namespace, and waits until it is gone.
async fn gone(cluster: &NodeCluster, name: &str) -> Result<()> {
    let namespaces = Api::<Namespace>::all(cluster.site.client().await?);
    namespaces.delete(name, &DeleteParams::default()).await?;
    wait_until("the namespace to be gone", PATIENCE, namespaces, name, |seen| {
        if seen.is_none() { Some(()) } else { None }
    })
    .await
}
