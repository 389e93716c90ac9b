//! Volumes are saved by default, and a backup without the data of a claim says so.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::{cluster, cluster_of_bed};

const BYTES: u64 = 8 << 20;

/// The README's own commands, with no flag about volumes.
#[tokio::test]
async fn a_backup_without_any_flag_brings_the_data_back() -> Result<()> {
    let Some(cluster) = cluster().await? else { return Ok(()) };
    let shop = cluster.tenant("by-default", "dora").await?;
    shop.start_deployment("db", BYTES).await?;
    let written = shop.checksum("db").await?;

    let said = shop.cli(&["backup", "create", "daily", "--wait"]).await?.with_code(0)?;
    ensure!(said.contains("complete"), "{said}");
    let columns =
        "jsonpath={.status.conditions[?(@.type=='DataProtected')].reason} {.status.claims[*].state}";
    let found = shop.kubectl(&["get", "nonadminbackup", "daily", "-o", columns]).await?.ok()?;
    assert_eq!(found.trim(), "AllClaimsSaved Saved");
    // Only the claim: the pod's other volumes are not worth saving.
    let counts = "jsonpath={.status.fileSystemPodVolumeBackups}";
    let counts = shop.kubectl(&["get", "nonadminbackup", "daily", "-o", counts]).await?.ok()?;
    let counts: Value = serde_json::from_str(&counts)?;
    assert_eq!((&counts["total"], &counts["completed"]), (&Value::from(1), &Value::from(1)));

    shop.lose_namespace_contents().await?;
    shop.cli(&["restore", "create", "--from-backup", "daily", "--wait"]).await?.with_code(0)?;
    assert_eq!(shop.checksum("db").await?, written);
    Ok(())
}

#[tokio::test]
async fn a_claim_that_no_pod_mounts_is_reported_with_exit_code_3() -> Result<()> {
    let Some(cluster) = cluster().await? else { return Ok(()) };
    let shop = cluster.tenant("unmounted", "uma").await?;
    shop.start_deployment("db", BYTES).await?;
    shop.start_pod("idle", BYTES).await?;
    // The claim keeps its volume and its data.
    shop.kubectl(&["delete", "pod", "idle", "--now"]).await?.ok()?;

    let said = shop.cli(&["backup", "create", "daily", "--wait"]).await?.with_code(3)?;
    ensure!(said.contains("volume data of claim \"idle\" is NOT in this backup"), "{said}");
    ensure!(!said.contains("daily: complete"), "{said}");
    shop.cli(&["backup", "describe", "daily"]).await?.with_code(3)?;
    let status = shop.cli(&["status"]).await?.with_code(3)?;
    ensure!(status.contains("Not protected     daily: volume data of claim \"idle\""), "{status}");
    let columns = "jsonpath={.status.conditions[?(@.type=='DataProtected')].status}";
    let found = shop.kubectl(&["get", "nonadminbackup", "daily", "-o", columns]).await?.ok()?;
    assert_eq!(found.trim(), "False");
    Ok(())
}

/// Velero saves no folder of a node, and does not report it.
#[tokio::test]
async fn a_claim_whose_volume_is_a_folder_of_the_node_is_named_with_that_cause() -> Result<()> {
    let Some(cluster) = cluster_of_bed().await? else { return Ok(()) };
    let shop = cluster.tenant("on-host", "hera").await?;
    let path = cluster.site.folder().join("on-host");
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "on-host"},
        "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "storageClassName": "on-host",
            "hostPath": {"path": path, "type": "DirectoryOrCreate"}}});
    cluster.site.apply(&[serde_json::from_value(volume)?]).await?;
    let mut claim = e2e::claim("files");
    claim["spec"]["storageClassName"] = json!("on-host");
    shop.apply(&claim).await?;
    let mut pod =
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "files", "labels": {"app": "files"}}});
    pod["spec"] = e2e::pod_spec("files");
    shop.apply(&pod).await?;
    shop.write_data("files", BYTES).await?;

    let asked = shop.cli(&["backup", "create", "daily", "--wait"]).await?;
    let warned = "volume data of claim \"files\" will NOT be in this backup, since its volume is a folder of a node (hostPath)";
    ensure!(asked.code == Some(3) && asked.stderr.contains(warned), "{asked:#?}");
    let column = "jsonpath={.status.conditions[?(@.type=='DataProtected')].message}";
    let found = shop.kubectl(&["get", "nonadminbackup", "daily", "-o", column]).await?.ok()?;
    ensure!(
        found.contains("\"files\" is NOT in this backup: its volume is a folder of a node (hostPath)"),
        "{found}"
    );
    Ok(())
}
