//! A backup that is small in its bucket and gigabytes once it is unpacked: Velero's pod ends at its limits and comes back,
//! the restore is over, and the neighbour's goes on. Part of `make long`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::{NonAdminRestore, Phase};
use bed::{eventually, wait_until};
use e2e::{NodeCluster, NodeTenant, VELERO};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use serde_json::json;

use crate::fenced::fence;
use crate::own_bucket::own_location;
use crate::{alone, say};

const PATIENCE: Duration = Duration::from_mins(4);
const SMALL: u64 = 1 << 20;
/// What the backup unpacks to.
const BOMB: u64 = 2 << 30;
/// Less than what `install --fence` sets, so that it takes little time and disk.
const LIMITS: &str = "--limits=memory=512Mi,ephemeral-storage=512Mi";

/// The contents of the only backup in a bucket.
pub(crate) fn contents(bucket: &Path) -> Result<PathBuf> {
    let mut folders = vec![bucket.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.parent().and_then(Path::file_name).zip(path.file_name()).is_some_and(
                |(folder, file)| file.to_string_lossy() == format!("{}.tar.gz", folder.to_string_lossy()),
            ) {
                return Ok(path);
            }
        }
    }
    Err(anyhow::anyhow!("no backup in {}", bucket.display()))
}

/// Adds a file of so many zeros, where Velero expects an object of the tenant's.
fn forge(contents: &Path, namespace: &str, bytes: u64) -> Result<()> {
    let unpacked = tempfile::tempdir()?;
    let tar = |args: &[&str]| -> Result<()> {
        let mut tar = Command::new("tar");
        tar.arg("--warning=no-timestamp").args(args).arg("-f").arg(contents).arg("-C").arg(unpacked.path());
        let status =
            if args.contains(&"-c") { tar.args(["metadata", "resources"]).status() } else { tar.status() };
        ensure!(status?.success(), "tar {args:?}");
        Ok(())
    };
    tar(&["-x", "-z"])?;
    let folder = unpacked.path().join("resources/configmaps/namespaces").join(namespace);
    fs::create_dir_all(&folder)?;
    File::create(folder.join("bomb.json"))?.set_len(bytes)?;
    tar(&["-c", "-z"])
}

/// How Velero's pods ended, as the node says it: evicted, or killed and started again.
pub(crate) async fn ends(cluster: &NodeCluster) -> Result<Vec<String>> {
    let pods = Api::<Pod>::namespaced(cluster.site.client().await?, VELERO);
    let found = pods.list(&ListParams::default().labels("deploy=velero")).await?;
    let mut ends = Vec::new();
    for status in found.items.into_iter().filter_map(|pod| pod.status) {
        ends.extend(status.reason.map(|reason| format!("{reason}: {}", status.message.unwrap_or_default())));
        for container in status.container_statuses.into_iter().flatten() {
            let last = container.last_state.and_then(|state| state.terminated);
            ends.extend(
                last.map(|end| format!("{}, exit code {}", end.reason.unwrap_or_default(), end.exit_code)),
            );
        }
    }
    Ok(ends)
}

/// Waits until Velero has been given a restore.
pub(crate) async fn until_velero_has(tenant: &NodeTenant<'_>, restore: &str) -> Result<()> {
    let restores = tenant.api::<NonAdminRestore>();
    wait_until("the restore to be Velero's", PATIENCE, restores, restore, |restore| {
        (restore?.status.as_ref()?.phase == Some(Phase::Created)).then_some(())
    })
    .await
}

/// A11
#[tokio::test]
async fn a11_a_bomb_ends_veleros_pod_at_its_limits_and_the_neighbours_restore_goes_on() -> Result<()> {
    let Some(cluster) = alone().await? else { return Ok(()) };
    let node = cluster.site.node()?;
    fence(&cluster).await?;
    let limits = "jsonpath={.spec.template.spec.containers[0].resources.limits}";
    let given = node.kubectl(&["get", "deployment", "velero", "-n", VELERO, "-o", limits]).await?.ok()?;
    ensure!(
        given.contains(r#""ephemeral-storage":"10Gi""#) && given.contains(r#""memory":"1Gi""#),
        "{given}"
    );
    // As the remark of the installer says.
    node.kubectl(&["set", "resources", "deployment", "velero", "-n", VELERO, LIMITS]).await?.ok()?;
    node.kubectl(&["rollout", "status", "deployment/velero", "-n", VELERO, "--timeout=4m"]).await?.ok()?;

    let (shop, farm) = (cluster.tenant("bomber", "bea").await?, cluster.tenant("bombed", "ben").await?);
    farm.start_deployment("db", SMALL).await?;
    let written = farm.checksum("db").await?;
    farm.cli(&["backup", "create", "daily", "--wait"]).await?.with_code(0)?;
    farm.lose_namespace_contents().await?;
    own_location(&shop, "bomb").await?;
    shop.apply(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "prices"}})).await?;
    shop.cli(&["backup", "create", "one", "--storage-location", "mine", "--wait"]).await?.with_code(0)?;
    let bucket = node.platform_bucket().with_file_name("bomb");
    let contents = contents(&bucket)?;
    forge(&contents, &shop.namespace, BOMB)?;
    ensure!(fs::metadata(&contents)?.len() < 8 << 20, "it is small in the bucket");

    // The neighbour asks while Velero works on the bomb.
    shop.cli(&["restore", "create", "boom", "--from-backup", "one"]).await?.with_code(0)?;
    until_velero_has(&shop, "boom").await?;
    let start = std::time::Instant::now();
    farm.cli(&["restore", "create", "back", "--from-backup", "daily", "--wait", "--timeout=8m"])
        .await?
        .with_code(0)?;
    assert_eq!(farm.checksum("db").await?, written);
    let took = start.elapsed();

    let ended = shop.cli(&["restore", "wait", "boom", "--timeout=1m"]).await?;
    ensure!(
        ended.code != Some(0) && ended.code != Some(4),
        "the bomb is no good, or is not over: {ended:#?}"
    );
    let phase = "jsonpath={.status.veleroRestore.status.phase}";
    let phase = shop.kubectl(&["get", "nonadminrestore", "boom", "-o", phase]).await?.ok()?;
    let ends = ends(&cluster).await?;
    say(&format!(
        "a backup of {BOMB} bytes of zeros, {LIMITS}: the restore is {phase}, Velero's pods ended as {ends:?}, and the \
         neighbour's restore was complete after {took:.0?}"
    ))?;
    ensure!(["Failed", "PartiallyFailed"].contains(&phase.trim()), "{phase}");
    eventually("Velero to run", PATIENCE, async || {
        node.kubectl(&["rollout", "status", "deployment/velero", "-n", VELERO, "--timeout=10s"]).await?.ok()
    })
    .await
    .context("after the bomb")?;
    let failed = ["delete", "pods", "-n", VELERO, "--field-selector=status.phase=Failed"];
    node.kubectl(&failed).await?.ok().map(drop)
}
