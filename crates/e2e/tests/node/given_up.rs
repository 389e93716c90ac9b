//! Volumes that cannot end, because no node takes their pod or no node agent runs: nacre gives them up, reports why, and
//! the next try succeeds. Part of `make long`.

use std::time::Duration;

use anyhow::{Result, ensure};
use bed::eventually;
use e2e::{NodeTenant, VELERO};
use jiff::SignedDuration;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams};
use serde_json::json;

use crate::stuck::waited;
use crate::{alone, say};

const PATIENCE: Duration = Duration::from_mins(4);
/// So many bytes that Velero is still busy with them when something happens.
const BYTES: u64 = 512 << 20;
const SMALL: u64 = 1 << 20;
/// A label of nodes that pods ask for.
const POOL: &str = "example.com/pool";
/// After so long nacre takes a pod for one that never starts, and what a neighbour may wait from then on.
const PENDING: SignedDuration = SignedDuration::from_secs(10);
const WITHIN: SignedDuration = SignedDuration::from_mins(1);
const BACK_UP: [&str; 4] = ["backup", "create", "good", "--wait"];
const BACK: [&str; 7] = ["restore", "create", "back", "--from-backup", "good", "--wait", "--timeout=5m"];
const REPLACE: [&str; 6] = ["restore", "create", "--from-backup", "good", "--replace", "--yes"];
const OUTCOME: &str =
    "jsonpath={.status.conditions[?(@.type=='DataRestored')].reason} {.status.claims[*].state}";
const MESSAGE: &str = "jsonpath={.status.conditions[?(@.type=='DataRestored')].message}";

/// The nodes that the pod asks for are there when it is backed up, and not when it comes back.
#[tokio::test]
async fn a_restored_pod_that_no_node_takes_holds_nobody_up_and_what_is_printed_brings_it_back() -> Result<()>
{
    let Some(cluster) = alone().await? else { return Ok(()) };
    let label = async |change: &str| {
        cluster.site.kubectl(&["label", "nodes", "--all", "--overwrite", change]).await?.ok()
    };
    label(&format!("{POOL}=fast")).await?;
    let (shop, neighbour) =
        (cluster.tenant("unscheduled", "ursa").await?, cluster.tenant("scheduled", "sven").await?);
    let mut pod =
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "db", "labels": {"app": "db"}}});
    pod["spec"] = e2e::pod_spec("db");
    pod["spec"]["nodeSelector"] = json!({POOL: "fast"});
    shop.apply(&e2e::claim("db")).await?;
    shop.apply(&pod).await?;
    shop.write_data("db", SMALL).await?;
    neighbour.start_deployment("db", SMALL).await?;
    let (written, of_neighbour) = (shop.checksum("db").await?, neighbour.checksum("db").await?);
    for tenant in [&shop, &neighbour] {
        tenant.cli(&BACK_UP).await?.with_code(0)?;
        tenant.lose_namespace_contents().await?;
    }
    label(&format!("{POOL}-")).await?;
    cluster.set_policy("volumes: {podPending: 10s}").await?;

    shop.cli(&["restore", "create", "back", "--from-backup", "good"]).await?.with_code(0)?;
    neighbour.cli(&BACK).await?.with_code(0)?;
    assert_eq!(neighbour.checksum("db").await?, of_neighbour);
    let waited = waited(&neighbour, "Restore", "back").await?;
    say(&format!("next to a restore whose pod no node takes, another one started after {waited:#}"))?;
    ensure!(waited < PENDING + WITHIN, "it started after {waited:#}");

    let said = shop.cli(&["restore", "wait", "back", "--timeout", "2m"]).await?.with_code(3)?;
    let found = shop.kubectl(&["get", "nonadminrestore", "back", "-o", OUTCOME]).await?.ok()?;
    assert_eq!(found.trim(), "VolumesCancelled Cancelled");
    let message = shop.kubectl(&["get", "nonadminrestore", "back", "-o", MESSAGE]).await?.ok()?;
    for words in [
        "volume data of claim \"db\" was NOT restored: cancelled by nacre: pod \"db\" does not start",
        "node affinity/selector",
        "pod \"db\" waits for this data for ever, delete it",
        "To try again: kubectl nacre restore create --from-backup good --replace",
    ] {
        ensure!(message.contains(words), "no {words:?} in {message}");
    }
    ensure!(said.contains("was NOT restored") && !said.contains("back: complete"), "{said}");

    // There is a node again. The pod waits for its data, so no safety backup can have it, which is said before anything
    // is removed.
    cluster.set_policy("").await?;
    label(&format!("{POOL}=fast")).await?;
    cluster.site.add_volumes(1).await?;
    let stopped = shop.cli(&REPLACE).await?;
    ensure!(stopped.code == Some(1), "{stopped:#?}");
    ensure!(stopped.stderr.contains("add --no-safety-backup; nothing was removed"), "{stopped:#?}");
    shop.cli(&[&REPLACE[..], &["--no-safety-backup"]].concat()).await?.with_code(0)?;
    assert_eq!(shop.checksum("db").await?, written);
    label(&format!("{POOL}-")).await?;
    Ok(())
}

/// Takes the node agent away while a volume of a tenant is moving.
async fn agent_leaves_meanwhile(tenant: &NodeTenant<'_>, kind: &str) -> Result<()> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("velero.io", "v1", kind));
    let client = tenant.cluster.site.client().await?;
    let volumes = Api::<DynamicObject>::namespaced_with(client, VELERO, &resource);
    eventually("a volume to move", PATIENCE, async || {
        let all = volumes.list(&ListParams::default()).await?.items;
        let own = all.iter().filter(|volume| volume.data["spec"]["pod"]["namespace"] == *tenant.namespace);
        let phases: Vec<_> = own.map(|volume| &volume.data["status"]["phase"]).collect();
        ensure!(phases.iter().any(|phase| **phase == "InProgress"), "{phases:?}");
        Ok(())
    })
    .await?;
    tenant.cluster.node_agent(false).await
}

#[tokio::test]
async fn without_a_node_agent_volumes_are_given_up_and_once_it_is_back_everything_works_again() -> Result<()>
{
    let Some(cluster) = alone().await? else { return Ok(()) };
    let tenant = cluster.tenant("agentless", "agnes").await?;
    // One after the other: while one moves, the other waits.
    tenant.start_deployment("db", BYTES).await?;
    tenant.start_deployment("second", SMALL).await?;
    let written = [tenant.checksum("db").await?, tenant.checksum("second").await?];
    let impatient = "volumes: {noProgress: 20s}";

    // In the middle of a backup.
    cluster.set_policy(impatient).await?;
    let lost = ["backup", "create", "lost", "--wait", "--timeout=5m"];
    let (ended, left) = tokio::join!(tenant.cli(&lost), agent_leaves_meanwhile(&tenant, "PodVolumeBackup"));
    left?;
    let said = ended?.with_code(3)?;
    ensure!(said.contains("is NOT in this backup: cancelled by nacre: "), "{said}");
    ensure!(said.contains("\"db\"") && said.contains("\"second\""), "{said}");
    ensure!(!said.contains("lost: complete"), "{said}");

    // It is put back, and the next backup is whole.
    cluster.node_agent(true).await?;
    cluster.set_policy("").await?;
    tenant.cli(&BACK_UP).await?.with_code(0)?;
    tenant.lose_namespace_contents().await?;

    // In the middle of a restore.
    cluster.set_policy(impatient).await?;
    let (ended, left) = tokio::join!(tenant.cli(&BACK), agent_leaves_meanwhile(&tenant, "PodVolumeRestore"));
    left?;
    let said = ended?.with_code(3)?;
    ensure!(said.contains("was NOT restored: cancelled by nacre: "), "{said}");
    ensure!(said.contains("--from-backup good --replace") && !said.contains("back: complete"), "{said}");
    let found = tenant.kubectl(&["get", "nonadminrestore", "back", "-o", OUTCOME]).await?.ok()?;
    ensure!(found.starts_with("VolumesCancelled Cancelled"), "{found}");

    // One that begins without a node agent ends too.
    tenant.lose_namespace_contents().await?;
    let none = ["restore", "create", "none", "--from-backup", "good", "--wait", "--timeout=5m"];
    let said = tenant.cli(&none).await?.with_code(3)?;
    ensure!(said.contains("cancelled by nacre: no node agent has run for 20s"), "{said}");
    ensure!(!said.contains("none: complete"), "{said}");

    cluster.node_agent(true).await?;
    cluster.set_policy("").await?;
    tenant.lose_namespace_contents().await?;
    tenant.cli(&["restore", "create", "again", "--from-backup", "good", "--wait"]).await?.with_code(0)?;
    assert_eq!([tenant.checksum("db").await?, tenant.checksum("second").await?], written);
    Ok(())
}
