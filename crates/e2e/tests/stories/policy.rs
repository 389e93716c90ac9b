//! A changed policy takes effect while nacre runs; an invalid policy changes nothing and is reported.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use api::{
    ApprovalDecision, NonAdminBackup, NonAdminBackupStorageLocation, NonAdminBackupStorageLocationRequest,
    Phase, condition, labels,
};
use bed::{eventually, wait_until};
use e2e::{Nacre, Tenant, TestCluster, VELERO};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event;
use kube::api::{DeleteParams, ListParams};
use serde_json::json;

async fn write_policy(test_cluster: &TestCluster, text: &str) -> Result<()> {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "nacre-policy", "namespace": VELERO}, "data": {"policy.yaml": text}});
    test_cluster.bed.apply(&[serde_json::from_value(map)?]).await
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
    let test_cluster = TestCluster::build_with_idle_velero().await?;
    write_policy(&test_cluster, "backup: { ttl: { max: 24h } }").await?;
    let nacre = test_cluster.start_nacre().await?;
    let shop = test_cluster.tenant("shop", "ada").await?;

    ask(&shop, "long", "48h").await?;
    let words = refusal(&shop, "long").await?;
    ensure!(words.contains("spec.backupSpec.ttl") && words.contains("24h"), "{words}");

    // What was refused goes on by itself.
    write_policy(&test_cluster, "backup: { ttl: { max: 72h } }").await?;
    let changed = Instant::now();
    created(&shop, "long").await?;
    ensure!(changed.elapsed() < Duration::from_secs(2), "{:?}", changed.elapsed());

    // An invalid one: the last valid one stays in effect, and the problem is reported.
    write_policy(&test_cluster, "backup: { ttl: { maximum: 1h } }").await?;
    let reported = async || {
        let details = nacre.details().await?;
        ensure!(details.contains("maximum"), "{details}");
        anyhow::Ok(())
    };
    bed::eventually("the mistake to show in /readyz", Duration::from_mins(2), reported).await?;
    ask(&shop, "fine", "60h").await?;
    created(&shop, "fine").await?;
    ask(&shop, "longer", "100h").await?;
    let words = refusal(&shop, "longer").await?;
    ensure!(words.contains("72h"), "{words}");
    Ok(())
}

const SOON: Duration = Duration::from_mins(2);

/// Asks for storage that an administrator has to approve; what the request is called.
async fn pending(shop: &Tenant<'_>, name: &str) -> Result<String> {
    let spec = json!({"provider": "aws", "objectStorage": {"bucket": name}, "config": {"region": "eu-west-1"},
        "credential": {"name": "keys", "key": "cloud"}});
    let body = json!({"spec": {"backupStorageLocationSpec": spec}});
    shop.create::<NonAdminBackupStorageLocation>(name, body).await?;
    shop.approval_pending(name).await
}

/// Until `/readyz`, `/metrics` and an Event agree on whether the policy has vanished.
async fn vanished(test_cluster: &TestCluster, nacre: &Nacre, wanted: bool) -> Result<()> {
    let reason = if wanted { "PolicyVanished" } else { "PolicyReturned" };
    let events = test_cluster.admin::<Event>().await?;
    eventually(reason, SOON, async || {
        let details = nacre.details().await?;
        ensure!(details.contains("policy: ConfigMap nacre-policy vanished at") == wanted, "{details}");
        ensure!((nacre.metric("nacre_policy_vanished").await? > 0.5) == wanted, "not in /metrics");
        let reported = events.list(&ListParams::default()).await?.items.into_iter().any(|event| {
            event.reason.as_deref() == Some(reason)
                && event.regarding.is_some_and(|about| about.name.as_deref() == Some("nacre-policy"))
        });
        ensure!(reported, "no Event {reason}");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_vanishes_opens_nothing_and_survives_a_restart() -> Result<()> {
    const APPROVAL: &str = "storageLocations: { requireApproval: true }";
    let test_cluster = TestCluster::build_with_idle_velero().await?;
    write_policy(&test_cluster, APPROVAL).await?;
    let nacre = test_cluster.start_nacre().await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    shop.keep_keys("keys", "[default]\naws_access_key_id=a\naws_secret_access_key=hunter2\n").await?;
    let mut names = vec![pending(&shop, "before").await?];
    let maps = test_cluster.admin::<ConfigMap>().await?;
    let copied = |key: &'static str| {
        move |copy: Option<&ConfigMap>| copy?.data.as_ref()?.contains_key(key).then_some(())
    };
    let copy = "nacre-policy-in-force";
    wait_until("a copy of the policy", SOON, maps.clone(), copy, copied("policy.yaml")).await?;

    // Gone: what waits goes on waiting, and so does what comes now.
    maps.delete("nacre-policy", &DeleteParams::default()).await?;
    vanished(&test_cluster, &nacre, true).await?;
    names.push(pending(&shop, "meanwhile").await?);
    // Back: as if nothing had been.
    write_policy(&test_cluster, APPROVAL).await?;
    vanished(&test_cluster, &nacre, false).await?;
    names.push(pending(&shop, "after").await?);

    // Gone again, and nacre is stopped and started while it is.
    maps.delete("nacre-policy", &DeleteParams::default()).await?;
    wait_until("when it went", SOON, maps.clone(), copy, copied("policy.yaml.vanished")).await?;
    nacre.process.terminate(Duration::from_mins(2)).await?;
    drop(nacre);
    let nacre = test_cluster.start_nacre().await?;
    names.push(pending(&shop, "restarted").await?);
    ensure!(nacre.metric("nacre_policy_vanished").await? > 0.5);
    let requests = test_cluster.admin::<NonAdminBackupStorageLocationRequest>().await?;
    for name in &names {
        let decision = requests.get(name).await?.spec.approval_decision;
        ensure!(decision == Some(ApprovalDecision::Pending), "{name}: {decision:?}");
    }

    // An administrator who means it says so; then it is written down that nobody approved it by hand.
    write_policy(&test_cluster, "storageLocations: { requireApproval: false }").await?;
    for name in &names {
        wait_until("it to be approved", SOON, requests.clone(), name, |request| {
            let request: &NonAdminBackupStorageLocationRequest = request?;
            let by = request.metadata.annotations.as_ref()?.get(labels::APPROVED_BY)?;
            (request.spec.approval_decision == Some(ApprovalDecision::Approve) && by == "policy")
                .then_some(())
        })
        .await?;
    }
    Ok(())
}
