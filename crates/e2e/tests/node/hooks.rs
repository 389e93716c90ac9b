//! Hooks that hang in a pod: nobody can cancel them, so they are bounded. Part of `make long`.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::stuck::waited;
use crate::{alone, say};

/// Two hooks hang, each for so long.
const TIMEOUT: SignedDuration = SignedDuration::from_secs(10);
/// What a neighbour may wait from then on.
const WITHIN: SignedDuration = SignedDuration::from_mins(1);
/// nacre reads Velero's errors once the backup is over.
const SOON: Duration = Duration::from_mins(1);
const HANG: [&str; 3] = ["/bin/sh", "-c", "sleep 3600"];

/// A pod without volumes.
fn pod(name: &str, annotations: &Value) -> Value {
    let mut spec = e2e::pod_spec(name);
    spec["volumes"] = json!([]);
    spec["containers"][0]["volumeMounts"] = json!([]);
    json!({"apiVersion": "v1", "kind": "Pod", "spec": spec,
        "metadata": {"name": name, "labels": {"app": name}, "annotations": annotations}})
}

#[tokio::test]
async fn f2_h7_hooks_that_hang_are_bounded_and_another_tenants_backup_goes_on() -> Result<()> {
    let Some(cluster) = alone().await? else { return Ok(()) };
    cluster.set_policy("backup: {hookTimeout: 10s}").await?;
    let (slow, neighbour) =
        (cluster.tenant("hooks-hang", "hiro").await?, cluster.tenant("hooks-next", "nils").await?);
    neighbour.kubectl(&["create", "configmap", "settings", "--from-literal=key=value"]).await?.ok()?;

    // One in the annotations of a pod. They win over every spec, so a timeout that is too long does not get there.
    let annotated = |timeout: &str| {
        let command = json!(HANG).to_string();
        pod(
            "annotated",
            &json!({"pre.hook.backup.velero.io/container": "main", "pre.hook.backup.velero.io/command": command,
                "pre.hook.backup.velero.io/timeout": timeout}),
        )
    };
    let refused = slow.apply(&annotated("2h")).await.err().context("two hours were allowed")?;
    ensure!(refused.to_string().contains("a hook may take at most an hour"), "{refused:#}");
    slow.apply(&annotated("10s")).await?;
    // And one in the request, for another pod. It asks for an hour, and gets what the policy allows.
    slow.apply(&pod("asked", &json!({}))).await?;
    for name in ["annotated", "asked"] {
        slow.pod_ready(name).await?;
    }
    let exec = json!({"container": "main", "command": HANG, "timeout": "1h"});
    let hooks = json!({"resources": [{"name": "hang", "labelSelector": {"matchLabels": {"app": "asked"}},
        "pre": [{"exec": exec}]}]});
    slow.apply(&json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackup",
        "metadata": {"name": "slow"}, "spec": {"backupSpec": {"hooks": hooks}}}))
        .await?;
    slow.backup_created("slow", SOON).await?;

    neighbour.cli(&["backup", "create", "next", "--wait", "--timeout", "5m"]).await?.with_code(0)?;
    let waited = waited(&neighbour, "Backup", "next").await?;
    say(&format!("next to a backup with two hooks that hang, another one started after {waited:#}"))?;
    ensure!(waited < TIMEOUT * 2 + WITHIN, "it started after {waited:#}");

    // Both were stopped, and the tenant reads that.
    slow.cli(&["backup", "wait", "slow", "--timeout", "2m"]).await?.with_code(3)?;
    let counts = "jsonpath={.status.veleroBackup.status.hookStatus.hooksFailed}";
    let failed = slow.kubectl(&["get", "nonadminbackup", "slow", "-o", counts]).await?.ok()?;
    assert_eq!(failed.trim(), "2");
    bed::eventually("Velero's errors", SOON, async || {
        let page = slow.cli(&["backup", "describe", "slow"]).await?.stdout;
        ensure!(page.contains("timed out after 10s"), "{page}");
        Ok(())
    })
    .await
}
