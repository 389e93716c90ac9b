//! Back to a backup in place, for every kind of workload that uses a claim, and for what gets in the way. Part of
//! `make long`.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bed::eventually;
use e2e::NodeTenant;
use serde_json::{Value, json};

use crate::damaged::damage_data;
use crate::{alone, cluster, cluster_of_bed, say};

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
    tenant.cluster.site.add_volumes(1).await?;
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
    cluster.site.add_volumes(3).await?;
    tenant.cli(&REPLACE).await?.with_code(0)?;
    assert_eq!(tenant.checksums_of_replicas("web").await?, written);
    Ok(())
}

/// The other claim belongs to a pod whose name does not change, so it is known that Velero leaves it alone.
#[tokio::test]
async fn only_the_chosen_claim_goes_back_and_without_a_safety_backup_where_that_is_said() -> Result<()> {
    let Some(cluster) = cluster().await? else { return Ok(()) };
    let tenant = cluster.tenant("back-one", "olaf").await?;
    tenant.start_pod("other", BYTES).await?;
    tenant.start_deployment("db", BYTES).await?;
    only_db_goes_back(&tenant, &["--only-claim", "db", "--no-safety-backup"]).await?;
    let backups = tenant.kubectl(&["get", "nonadminbackups", "-o", "name"]).await?.ok()?;
    ensure!(!backups.contains("before-good"), "a safety backup was taken: {backups}");
    Ok(())
}

/// A pod of a Deployment may be another one by now, and Velero would write the old data over its claim. Whether it is, the
/// contents of the backup say. To read them takes a policy, and the permission to read every kind in them.
#[tokio::test]
async fn one_claim_of_two_deployments_goes_back_where_the_backup_may_be_read() -> Result<()> {
    let Some(cluster) = alone().await? else { return Ok(()) };
    let tenant = cluster.tenant("back-read", "rhea").await?;
    tenant.start_deployment("other", BYTES).await?;
    tenant.start_deployment("db", BYTES).await?;
    tenant.cli(&BACK_UP).await?.with_code(0)?;
    let only_db = [&REPLACE[..], &["--only-claim", "db"]].concat();
    let refused = tenant.cli(&only_db).await?;
    ensure!(refused.code == Some(1), "{refused:#?}");
    ensure!(refused.stderr.contains("ask the administrators to allow downloads"), "{refused:#?}");

    tenant.kubectl(&["delete", "nonadminbackup", "good", "--wait", "--timeout=2m"]).await?.ok()?;
    cluster.set_policy("downloads: {platformStorage: all}").await?;
    let resources = "--resource=roles.rbac.authorization.k8s.io,rolebindings.rbac.authorization.k8s.io";
    let role = ["create", "role", "reader", "-n", "back-read", "--verb=get,list", resources];
    cluster.site.kubectl(&role).await?.ok()?;
    let binding = ["create", "rolebinding", "reader", "-n", "back-read", "--role=reader", "--user=rhea"];
    cluster.site.kubectl(&binding).await?.ok()?;
    only_db_goes_back(&tenant, &["--only-claim", "db"]).await?;
    // The preview said exactly that.
    let name = ["get", "nonadminrestores", "-o", "jsonpath={.items[0].status.claims}"];
    let happened: Vec<Value> = serde_json::from_str(&tenant.kubectl(&name).await?.ok()?)?;
    let state =
        |claim: &str| happened.iter().find(|one| one["name"] == claim).map(|one| one["state"].clone());
    assert_eq!(
        [state("db"), state("other")],
        [Some(json!("Restored")), Some(json!("Kept"))],
        "{happened:#?}"
    );
    Ok(())
}

/// Of a replacement of `db` alone.
async fn preview_fits(tenant: &NodeTenant<'_>, replace: &[&str]) -> Result<()> {
    let dry_run = [replace, &["--dry-run=server", "-o", "json"]].concat();
    let said = tenant.cli(&dry_run).await?;
    let said: Value = serde_json::from_str(&said.stdout).with_context(|| format!("{said:#?}"))?;
    assert_eq!(said["removed"]["claims"], json!(["db"]));
    assert_eq!(said["removed"]["workloads"], json!(["Deployment db"]));
    assert_eq!(said["removed"]["kept"], json!([["other", "the request does not ask for it"]]));
    let volumes = said["volumes"].as_array().cloned().unwrap_or_default();
    for volume in volumes {
        let effect = match volume["claim"].as_str() {
            // What has which labels in the backup is known only with its contents.
            _ if replace.contains(&"-l") => "unknown",
            Some("db") => "restored",
            _ => "kept",
        };
        assert_eq!(volume["effect"], effect, "{said:#}");
        assert_eq!(volume["bytes"], BYTES, "{said:#}");
    }
    Ok(())
}

/// Two apps are overwritten; of them, flags choose the one that goes back.
async fn only_db_goes_back(tenant: &NodeTenant<'_>, flags: &[&str]) -> Result<()> {
    let written = overwritten(tenant).await?;
    tenant.overwrite_data("other").await?;
    tenant.kubectl(&["delete", "configmaps", "--selector=app"]).await?.ok()?;
    let kept = tenant.checksum("other").await?;
    let uid = ["get", "pvc", "other", "-o", "jsonpath={.metadata.uid}"];
    let same = tenant.kubectl(&uid).await?.ok()?;
    let only_db = [&REPLACE[..], flags].concat();
    preview_fits(tenant, &only_db).await?;
    tenant.cli(&only_db).await?.with_code(0)?;
    assert_eq!(tenant.checksum("db").await?, written);
    assert_eq!(tenant.checksum("other").await?, kept);
    assert_eq!(tenant.kubectl(&uid).await?.ok()?, same, "the other claim was replaced");
    Ok(())
}

/// Two apps, each with settings that are deleted after the backup. Returns the settings that came back with `db`.
async fn with_settings(tenant: &NodeTenant<'_>, flags: &[&str]) -> Result<Vec<String>> {
    tenant.start_pod("other", BYTES).await?;
    tenant.start_deployment("db", BYTES).await?;
    // Its template has the label, and its pods; a selector asks for the Deployment's own.
    tenant.kubectl(&["label", "deployment", "db", "app=db"]).await?.ok()?;
    for app in ["db", "other"] {
        tenant
            .apply(&json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"key": "old"},
                "metadata": {"name": format!("{app}-settings"), "labels": {"app": app}}}))
            .await?;
    }
    only_db_goes_back(tenant, flags).await?;
    let found = tenant.kubectl(&["get", "configmaps", "--selector=app", "-o", "name"]).await?.ok()?;
    Ok(found.lines().map(ToOwned::to_owned).collect())
}

#[tokio::test]
async fn only_what_has_the_labels_goes_back() -> Result<()> {
    let Some(cluster) = cluster().await? else { return Ok(()) };
    let tenant = cluster.tenant("back-labels", "lena").await?;
    cluster.site.add_volumes(3).await?;
    assert_eq!(with_settings(&tenant, &["-l", "app=db"]).await?, ["configmap/db-settings"]);
    Ok(())
}

#[tokio::test]
async fn only_the_resources_that_are_asked_for_come_back() -> Result<()> {
    let Some(cluster) = cluster().await? else { return Ok(()) };
    let tenant = cluster.tenant("back-kinds", "kees").await?;
    cluster.site.add_volumes(3).await?;
    let kinds = "deployments,pods,persistentvolumeclaims";
    let flags = ["--only-claim", "db", "--include-resources", kinds];
    assert_eq!(with_settings(&tenant, &flags).await?, Vec::<String>::new());
    Ok(())
}

/// The command gets a little longer each time before it is killed, so it is killed in every step.
#[tokio::test]
async fn killed_in_every_step_the_same_command_brings_the_data_back() -> Result<()> {
    let Some(cluster) = cluster().await? else { return Ok(()) };
    let tenant = cluster.tenant("back-killed", "kara").await?;
    tenant.start_deployment("db", BYTES).await?;
    let written = overwritten(&tenant).await?;
    let mut killed = 0;
    let ended = loop {
        let time = Duration::from_millis(400) * (killed + 1);
        match tokio::time::timeout(time, tenant.cli(&REPLACE)).await {
            Ok(ended) => break ended?,
            Err(_) => killed += 1,
        }
    };
    ended.with_code(0)?;
    say(&format!("a replacement was killed {killed} times and went on"))?;
    ensure!(killed > 2, "it was killed {killed} times");
    assert_eq!(tenant.checksum("db").await?, written);
    for (kind, number) in [("nonadminbackups", 2), ("nonadminrestores", 1)] {
        let found = tenant.kubectl(&["get", kind, "-o", "name"]).await?.ok()?;
        assert_eq!(found.lines().count(), number, "{found}");
    }
    Ok(())
}

/// The data in the bucket is damaged, which shows only when the restore needs it. The command that is printed then brings
/// back what was there before, typed as it is.
#[tokio::test]
async fn the_way_back_that_is_printed_after_a_failure_works_as_it_is_printed() -> Result<()> {
    let Some(cluster) = cluster_of_bed().await? else { return Ok(()) };
    let tenant = cluster.tenant("back-damaged", "dora").await?;
    tenant.start_deployment("db", BYTES).await?;
    overwritten(&tenant).await?;
    let before = tenant.checksum("db").await?;
    damage_data(&tenant)?;
    // One for the way there was made; one for the way back.
    cluster.site.add_volumes(1).await?;

    let failed = tenant.cli(&REPLACE).await?;
    ensure!(failed.code == Some(1), "{failed:#?}");
    ensure!(failed.stderr.contains("where it stands:"), "{failed:#?}");
    let mut printed = failed.stderr.lines().map(str::trim);
    let printed = printed.find(|line| line.starts_with("kubectl nacre restore create"));
    let printed = printed.with_context(|| format!("no way back: {failed:#?}"))?;
    tenant.type_and_confirm(printed).await?.with_code(0)?;
    assert_eq!(tenant.checksum("db").await?, before);
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
