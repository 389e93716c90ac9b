//! nacre in place of OADP's controller: in OADP's namespace, with the role, the CRDs, the service account and the Deployment
//! that OADP brings. Volumes come back from the cluster's storage, and from tenants' own with what `doctor` prints. On a
//! node of its own. Part of `make long`.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use api::{NonAdminBackup, NonAdminRestore, condition};
use bed::eventually;
use e2e::{NodeCluster, NodeTenant, OADP};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::Value;

use crate::own_bucket::{LOSE, bring_location};

const PATIENCE: Duration = Duration::from_mins(4);
const BYTES: u64 = 8 << 20;

#[tokio::test]
async fn volumes_come_back_under_oadps_role_and_from_own_buckets_with_what_doctor_prints() -> Result<()> {
    if !NodeCluster::can_run()? {
        return Ok(());
    }
    let cluster = NodeCluster::start_as_oadp().await?;
    let shop = cluster.tenant("shop", "ada").await?;
    shop.start_deployment("db", BYTES).await?;
    let written = shop.checksum("db").await?;

    // With OADP's role alone.
    back_up(&shop, &["one", "--default-volumes-to-fs-backup"]).await?;
    lose(&shop).await?;
    restore(&shop, "one").await?;
    assert_eq!(shop.checksum("db").await?, written);
    bring_approved_location(&shop).await?;
    back_up(&shop, &["own", "--default-volumes-to-fs-backup", "--storage-location", "mine"]).await?;
    lose(&shop).await?;
    let early = ["restore", "create", "early", "--from-backup", "own", "--wait"];
    let refused = shop.cli(&early).await?;
    let why = "pods do not come back from your own storage";
    ensure!(refused.code == Some(1) && refused.stdout.contains(why), "{refused:#?}");

    // With what doctor prints the refused restore starts by itself.
    apply_what_doctor_prints(&cluster).await?;
    eventually("the refused restore to start and end", PATIENCE, async || {
        shop.cli(&["restore", "wait", "early"]).await?.with_code(0).map(drop)
    })
    .await?;
    assert_eq!(shop.checksum("db").await?, written);
    let restored = shop.api::<NonAdminRestore>().get("early").await?.status.unwrap_or_default();
    ensure!(is_true(&restored.conditions, condition::DATA_RESTORED), "{restored:#?}");

    // Nobody has to ask for volumes any more.
    for (name, location) in [("two", None), ("three", Some("mine"))] {
        shop.overwrite_data("db").await?;
        let written = shop.checksum("db").await?;
        let location = location.map(|location| ["--storage-location", location]);
        back_up(&shop, &[&[name][..], location.as_ref().map_or(&[], |args| args)].concat()).await?;
        let saved = shop.api::<NonAdminBackup>().get(name).await?.status.unwrap_or_default();
        ensure!(is_true(&saved.conditions, condition::DATA_PROTECTED), "{saved:#?}");
        lose(&shop).await?;
        restore(&shop, name).await?;
        assert_eq!(shop.checksum("db").await?, written, "{name}");
    }
    Ok(())
}

fn is_true(conditions: &[Condition], kind: &str) -> bool {
    condition::get(conditions, kind).is_some_and(|condition| condition.status == "True")
}

async fn back_up(tenant: &NodeTenant<'_>, args: &[&str]) -> Result<()> {
    tenant.cli(&[&["backup", "create", "--wait"], args].concat()).await?.with_code(0).map(drop)
}

async fn restore(tenant: &NodeTenant<'_>, backup: &str) -> Result<()> {
    tenant.cli(&["restore", "create", "--from-backup", backup, "--wait"]).await?.with_code(0).map(drop)
}

/// Loses the workload with its data. The key to the bucket stays.
async fn lose(tenant: &NodeTenant<'_>) -> Result<()> {
    tenant.kubectl(&LOSE).await?.ok()?;
    let left = tenant.kubectl(&["get", "pods,pvc", "--output=name"]).await?.ok()?;
    ensure!(left.is_empty(), "{left}");
    tenant.cluster.site.add_volumes(1).await
}

/// The tenant brings a bucket, and an administrator of OADP approves it.
async fn bring_approved_location(tenant: &NodeTenant<'_>) -> Result<()> {
    bring_location(tenant, "own-bucket", &[]).await?;
    let location = format!("{}/mine", tenant.namespace);
    let approve = ["request", "approve", &location, "--wait", "--velero-namespace", OADP];
    eventually("the request to be approved", PATIENCE, async || {
        tenant.cluster.cli(&approve).await?.with_code(0).map(drop)
    })
    .await
}

/// Runs the one command that doctor prints, and waits until nothing is missing.
async fn apply_what_doctor_prints(cluster: &NodeCluster) -> Result<()> {
    let found = findings(cluster).await?;
    let commands: BTreeSet<_> = fixes_of(&found).filter(|fix| fix.contains("kubectl apply")).collect();
    let command = commands.first().with_context(|| format!("no command: {found:#?}"))?;
    ensure!(commands.len() == 1, "one command is enough: {commands:#?}");
    cluster.type_command(command).await?.ok()?;
    // What OLM lets viewers read has a command of its own.
    let patch = fixes_of(&found).find(|fix| fix.starts_with("kubectl patch clusterrole view "));
    cluster.type_command(patch.context("no command about viewers")?).await?.ok()?;
    cluster.until_webhook_answers().await?;
    eventually("doctor to find nothing missing", PATIENCE, async || {
        let found = findings(cluster).await?;
        let is_complete = |one: &Value| {
            let message = one["message"].as_str().unwrap_or_default();
            one["verdict"] == "ok" && message.contains("has every permission that nacre uses")
        };
        ensure!(found.iter().any(is_complete), "{found:#?}");
        ensure!(!found.iter().any(|one| one["verdict"] == "problem"), "{found:#?}");
        let is_command = |one: &Value| one["fix"].as_str().is_some_and(|fix| fix.contains("nacre render"));
        ensure!(!found.iter().any(is_command), "{found:#?}");
        Ok(())
    })
    .await
}

fn fixes_of(found: &[Value]) -> impl Iterator<Item = &str> {
    found.iter().filter_map(|one| one["fix"].as_str())
}

/// What `doctor` finds, by an administrator.
async fn findings(cluster: &NodeCluster) -> Result<Vec<Value>> {
    let printed = cluster.cli(&["doctor", "--output", "json", "--namespace", OADP]).await?;
    let diagnosis: Value = serde_json::from_str(&printed.stdout).with_context(|| format!("{printed:?}"))?;
    Ok(diagnosis["findings"].as_array().cloned().unwrap_or_default())
}
