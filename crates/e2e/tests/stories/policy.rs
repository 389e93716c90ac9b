//! What an administrator allows takes effect while nacre runs; a broken policy changes nothing and is visible.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use api::{NonAdminBackup, Phase, condition};
use e2e::{House, Tenant, VELERO};
use serde_json::json;

async fn write_policy(house: &House, text: &str) -> Result<()> {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "nacre-policy", "namespace": VELERO}, "data": {"policy.yaml": text}});
    house.bed.apply(&[serde_json::from_value(map)?]).await
}

async fn ask(tenant: &Tenant<'_>, name: &str, ttl: &str) -> Result<NonAdminBackup> {
    tenant.create(name, json!({"spec": {"backupSpec": {"ttl": ttl}}})).await
}

/// Waits until a request is accepted or refused, and returns the refusal.
async fn refusal(tenant: &Tenant<'_>, name: &str) -> Result<String> {
    tenant
        .wait("it to be refused", name, |backup: Option<&NonAdminBackup>| {
            let accepted = condition::get(&backup?.status.as_ref()?.conditions, condition::ACCEPTED)?;
            (accepted.status == "False").then(|| accepted.message.clone())
        })
        .await
}

async fn created(tenant: &Tenant<'_>, name: &str) -> Result<()> {
    tenant
        .wait("it to be Created", name, |backup: Option<&NonAdminBackup>| {
            (backup?.status.as_ref()?.phase == Some(Phase::Created)).then_some(())
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_policy_holds_at_once_and_a_broken_one_changes_nothing() -> Result<()> {
    let house = House::build_with_idle_velero().await?;
    write_policy(&house, "backup: { ttl: { max: 24h } }").await?;
    let nacre = house.start_nacre().await?;
    let shop = house.tenant("shop", "ada").await?;

    ask(&shop, "long", "48h").await?;
    let words = refusal(&shop, "long").await?;
    ensure!(words.contains("spec.backupSpec.ttl") && words.contains("24h"), "{words}");

    // What was refused goes on by itself.
    write_policy(&house, "backup: { ttl: { max: 72h } }").await?;
    let changed = Instant::now();
    created(&shop, "long").await?;
    ensure!(changed.elapsed() < Duration::from_secs(2), "{:?}", changed.elapsed());

    // A broken one: the last good one goes on counting, and whoever looks is told.
    write_policy(&house, "backup: { ttl: { maximum: 1h } }").await?;
    let told = async || {
        let details = nacre.details().await?;
        ensure!(details.contains("maximum"), "{details}");
        anyhow::Ok(())
    };
    bed::eventually("the mistake to show in /readyz", Duration::from_secs(5), told).await?;
    ask(&shop, "fine", "60h").await?;
    created(&shop, "fine").await?;
    ask(&shop, "longer", "100h").await?;
    let words = refusal(&shop, "longer").await?;
    ensure!(words.contains("72h"), "{words}");
    Ok(())
}
