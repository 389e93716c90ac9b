//! Back to a backup in place, for every kind of workload that uses a claim, and for what gets in the way. Part of
//! `make long`.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bed::eventually;
use e2e::NodeTenant;
use serde_json::{Value, json};

use crate::cluster;

const BYTES: u64 = 2 << 20;
const PATIENCE: Duration = Duration::from_mins(4);
const BACK_UP: [&str; 4] = ["backup", "create", "good", "--wait"];
const REPLACE: [&str; 6] = ["restore", "create", "--from-backup", "good", "--replace", "--yes"];

/// A backup of a Deployment whose data is overwritten afterwards. Returns the checksum of what was there.
async fn overwritten(tenant: &NodeTenant<'_>) -> Result<String> {
    let written = tenant.checksum("db").await?;
    tenant.cli(&BACK_UP).await?.with_code(0)?;
    tenant.overwrite_data("db").await?;
    ensure!(tenant.checksum("db").await? != written, "nothing was overwritten");
    // A claim that is deleted uses up its volume.
    tenant.cluster.node.add_volumes(1).await?;
    Ok(written)
}

#[tokio::test]
async fn a_stateful_set_of_three_goes_back_with_each_replicas_own_bytes() -> Result<()> {
    let Some(cluster) = cluster().await? else { return Ok(()) };
    let tenant = cluster.tenant("back-three", "tess").await?;
    // With it the claims would go with the StatefulSet, unless it is deleted without them.
    let retention = json!({"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"}});
    let written = tenant.start_stateful_set("web", BYTES, &retention).await?;
    tenant.cli(&BACK_UP).await?.with_code(0)?;
    tenant.write_replicas("web", BYTES).await?;
    cluster.node.add_volumes(3).await?;
    tenant.cli(&REPLACE).await?.with_code(0)?;
    assert_eq!(tenant.checksums_of_replicas("web").await?, written);
    Ok(())
}

#[tokio::test]
async fn a_deployment_that_was_changed_since_goes_back_to_how_it_was() -> Result<()> {
    let Some(cluster) = cluster().await? else { return Ok(()) };
    let tenant = cluster.tenant("back-changed", "chen").await?;
    tenant.start_deployment("db", BYTES).await?;
    let written = overwritten(&tenant).await?;
    tenant.kubectl(&["set", "env", "deployment/db", "RELEASE=next"]).await?.ok()?;
    tenant.kubectl(&["rollout", "status", "deployment/db", "--timeout=3m"]).await?.ok()?;

    tenant.cli(&REPLACE).await?.with_code(0)?;
    assert_eq!(tenant.checksum("db").await?, written);
    let env = "jsonpath={.spec.template.spec.containers[0].env}";
    assert_eq!(tenant.kubectl(&["get", "deployment", "db", "-o", env]).await?.ok()?.trim(), "");
    Ok(())
}

/// It wants two replicas where the backup has one, and scales up whenever the Deployment is there.
#[tokio::test]
async fn an_autoscaler_that_scales_up_in_between_does_not_mix_old_and_new() -> Result<()> {
    let Some(cluster) = cluster().await? else { return Ok(()) };
    let tenant = cluster.tenant("back-scaled", "hugo").await?;
    tenant.start_deployment("db", BYTES).await?;
    let written = overwritten(&tenant).await?;
    tenant
        .apply(&json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "db"}, "spec": {"minReplicas": 2, "maxReplicas": 3,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "db"}}}))
        .await?;
    replicas(&tenant, 2).await?;
    tenant.cli(&REPLACE).await?.with_code(0)?;
    assert_eq!(tenant.checksum("db").await?, written);
    replicas(&tenant, 2).await
}

async fn replicas(tenant: &NodeTenant<'_>, number: u32) -> Result<()> {
    eventually("the autoscaler", PATIENCE, async || {
        let found =
            tenant.kubectl(&["get", "deployment", "db", "-o", "jsonpath={.spec.replicas}"]).await?.ok()?;
        ensure!(found.trim() == number.to_string(), "{found} replicas");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_cron_job_that_fires_meanwhile_holds_nothing_up() -> Result<()> {
    let Some(cluster) = cluster().await? else { return Ok(()) };
    let tenant = cluster.tenant("back-cron", "cora").await?;
    tenant.start_deployment("db", BYTES).await?;
    let mut spec = e2e::pod_spec("db");
    spec["restartPolicy"] = json!("Never");
    // Longer than the minute between two of them: one always uses the claim.
    spec["containers"][0]["args"] = json!(["-c", "cat /data/* > /dev/null; sleep 70"]);
    tenant
        .apply(&json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "report"},
            "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": spec}}}}}))
        .await?;
    eventually("the first Job", PATIENCE, async || {
        let jobs = tenant.kubectl(&["get", "jobs", "-o", "name"]).await?.ok()?;
        ensure!(!jobs.trim().is_empty(), "none");
        Ok(())
    })
    .await?;
    let written = overwritten(&tenant).await?;
    tenant.cli(&REPLACE).await?.with_code(0)?;
    assert_eq!(tenant.checksum("db").await?, written);
    tenant.kubectl(&["get", "cronjob", "report"]).await?.ok()?;
    Ok(())
}

/// The claim does not go until somebody else lets it. The command waits, and goes on where it was.
#[tokio::test]
async fn a_claim_that_somebody_elses_finalizer_holds_is_named_and_the_same_command_goes_on() -> Result<()> {
    let Some(cluster) = cluster().await? else { return Ok(()) };
    let tenant = cluster.tenant("back-held", "fritz").await?;
    tenant.start_deployment("db", BYTES).await?;
    let written = overwritten(&tenant).await?;
    let hold = |finalizers: Value| json!({"metadata": {"finalizers": finalizers}}).to_string();
    let patch = ["patch", "persistentvolumeclaim", "db", "--type=merge", "--patch"];
    let with_finalizer = hold(json!(["kubernetes.io/pvc-protection", "example.com/hold"]));
    tenant.kubectl(&[&patch[..], &[with_finalizer.as_str()]].concat()).await?.ok()?;

    let with_timeout: Vec<&str> = REPLACE.iter().copied().chain(["--wait", "--timeout", "90s"]).collect();
    let stopped = tenant.cli(&with_timeout).await?;
    ensure!(stopped.code == Some(4), "{stopped:#?}");
    let said = format!("{}{}", stopped.stdout, stopped.stderr);
    ensure!(said.contains("claim db (finalizers: ") && said.contains("example.com/hold"), "{said}");

    tenant.kubectl(&[&patch[..], &[hold(json!([])).as_str()]].concat()).await?.ok()?;
    tenant.cli(&REPLACE).await?.with_code(0).context("the same command goes on")?;
    assert_eq!(tenant.checksum("db").await?, written);
    Ok(())
}
