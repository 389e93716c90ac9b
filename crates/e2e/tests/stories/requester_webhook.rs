//! The person behind a request on API servers without policies that change objects, as before Kubernetes 1.36: nacre's
//! webhook records who asks, and what it cannot record nobody can forge.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::{NonAdminBackup, NonAdminSchedule, condition, labels};
use bed::{Bed, eventually};
use e2e::{NACRE, Tenant, TestCluster, before_1_36, refused_by};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::requester::{operator, record};
use crate::requester_extra::{TEAM, backup, forgeries, requests, until_recorded};

const POLICY: &str = "nacre-requester";
pub(crate) const FORGED: &str = r#"{"user":"root","uid":"","groups":["system:masters"],"scopes":[]}"#;

/// A backup that runs commands in pods, which takes a permission.
fn with_hooks() -> Value {
    let hook = json!({"name": "dump", "pre": [{"exec": {"command": ["dump"]}}]});
    json!({"spec": {"backupSpec": {"hooks": {"resources": [hook]}}}})
}

fn annotated(value: &Value) -> Patch<Value> {
    Patch::Merge(json!({"metadata": {"annotations": {labels::REQUESTER: value}}}))
}

pub(crate) fn is_of(request: &impl ResourceExt, user: &str) -> Result<()> {
    let found = record(request).context("no record")?;
    ensure!(found.starts_with(&format!(r#"{{"user":"{user}""#)), "{found}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn e1_before_1_36_the_webhook_records_who_asks_and_without_it_nobody_can_forge_that() -> Result<()> {
    let test_cluster = TestCluster::build_on(before_1_36(Bed::builder().with_idle_velero())).await?;
    let listing = |unrecorded: &str| {
        format!("{{queue: {{inFlight: 0}}, requester: {{extra: [{TEAM}], unrecorded: {unrecorded}}}}}")
    };
    test_cluster.set_policy(&listing("ignore")).await?;
    test_cluster.admission().await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    let eve = operator(&test_cluster, "shop", "eve").await?;
    test_cluster.record_by_webhook().await?;
    let (nacre, _) = test_cluster.start_answering(&shop, &[]).await?;
    test_cluster.until_recorded().await?;

    while_nacre_runs(&test_cluster, &shop, &eve).await?;
    let own = until_recorded(&requests(&test_cluster, "ann").await?, &[TEAM]).await?;
    let process = nacre.process;
    process.kill().await?;
    while_nacre_is_down(&shop, &eve).await?;
    extra_fields_while_nacre_is_down(&test_cluster, &own).await?;
    // What was not recorded is for the policy to decide about.
    test_cluster.set_policy(&listing("enforce")).await?;
    let (_nacre, _) = test_cluster.start_answering(&shop, &[]).await?;
    what_nobody_recorded_is_refused(&shop).await
}

async fn while_nacre_runs(test_cluster: &TestCluster, shop: &Tenant<'_>, eve: &Tenant<'_>) -> Result<()> {
    let (mine, hers) = (shop.api::<NonAdminBackup>(), eve.api::<NonAdminBackup>());
    let mark = test_cluster.bed.audit().mark().await?;
    let body = json!({"metadata": {"annotations": {labels::REQUESTER: FORGED}}, "spec": {"backupSpec": {}}});
    let made = shop.create::<NonAdminBackup>("daily", body).await?;
    is_of(&made, "ada")?;
    ensure!(made.finalizers() == [labels::NAB_FINALIZER], "{:?}", made.finalizers());
    let own = record(&made).context("a record")?.clone();
    // The finalizer is there: two writes to `Created` are left.
    shop.backup_starts("daily").await?;
    let writes = test_cluster.bed.audit().since(mark).await?.writes().by(NACRE);
    let writes = writes.only(|write| {
        ["backups", "nonadminbackups", "nonadminbackups/status"].contains(&write.resource.as_str())
    });
    let kinds: Vec<_> = writes.as_slice().iter().map(|write| write.resource.as_str()).collect();
    ensure!(kinds == ["backups", "nonadminbackups/status"], "{kinds:?}");

    let params = PatchParams::default();
    for api in [&mine, &hers] {
        refused_by(POLICY, api.patch("daily", &params, &annotated(&json!(FORGED))).await)?;
        let applied = json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackup",
            "metadata": {"name": "daily", "annotations": {labels::REQUESTER: FORGED}}});
        let by_another = PatchParams::apply("somebody").force();
        refused_by(POLICY, api.patch("daily", &by_another, &Patch::Apply(applied)).await)?;
    }
    let kept = hers.patch("daily", &params, &annotated(&Value::Null)).await?;
    ensure!(record(&kept) == Some(&own), "removed: {:?}", record(&kept));
    let labelled = Patch::Merge(json!({"metadata": {"labels": {"team": "a"}}}));
    ensure!(record(&hers.patch("daily", &params, &labelled).await?) == Some(&own), "a label changed it");
    let changed = Patch::Merge(json!({"spec": {"backupSpec": {"ttl": "2h"}}}));
    is_of(&hers.patch("daily", &params, &changed).await?, "eve")?;
    let spec = json!({"spec": {"schedule": "0 0 1 1 *", "template": {"backupSpec": {}}}});
    is_of(&shop.create::<NonAdminSchedule>("yearly", spec).await?, "ada")?;

    // What looks like JSON, and more groups than a record holds: the policy compares byte by byte.
    let groups: Vec<String> = (0..1500).map(|number| format!("gr\"oup-é-{number}")).collect();
    let groups: Vec<&str> = groups.iter().map(String::as_str).chain(["system:masters"]).collect();
    let odd = test_cluster.bed.client_as("o\"dd\\", &["a\",\"b", "system:masters"]).await?;
    let many = test_cluster.bed.client_as("many", &groups).await?;
    for (name, client) in [("odd", odd), ("many", many)] {
        let requests = Api::<NonAdminBackup>::namespaced(client, "shop");
        let request = json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackup",
            "metadata": {"name": name}, "spec": {"backupSpec": {}}});
        let made = requests.create(&PostParams::default(), &serde_json::from_value(request)?).await?;
        let read: Value = serde_json::from_str(record(&made).context("a record")?)?;
        let expected = if name == "odd" { "a\",\"b" } else { "gr\"oup-é-0" };
        ensure!(read["groups"][0] == expected, "{read}");
    }
    Ok(())
}

/// Nothing is recorded, nothing can be forged, and nobody is locked out of what is their own.
async fn while_nacre_is_down(shop: &Tenant<'_>, eve: &Tenant<'_>) -> Result<()> {
    let (mine, hers) = (shop.api::<NonAdminBackup>(), eve.api::<NonAdminBackup>());
    let params = PatchParams::default();
    let forged = json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackup",
        "metadata": {"name": "forged", "annotations": {labels::REQUESTER: FORGED}}, "spec": {"backupSpec": {}}});
    refused_by(POLICY, hers.create(&PostParams::default(), &serde_json::from_value(forged)?).await)?;
    let unrecorded = shop.create::<NonAdminBackup>("unrecorded", with_hooks()).await?;
    ensure!(record(&unrecorded).is_none(), "{:?}", record(&unrecorded));
    refused_by(POLICY, hers.patch("unrecorded", &params, &annotated(&json!(FORGED))).await)?;
    // eve is the requester of `daily`: ada cannot act as her, or remove the record.
    for change in [annotated(&Value::Null), Patch::Merge(json!({"spec": {"backupSpec": {"ttl": "3h"}}}))] {
        refused_by(POLICY, mine.patch("daily", &params, &change).await)?;
    }
    let own = Patch::Merge(json!({"spec": {"backupSpec": {"ttl": "4h"}}}));
    is_of(&hers.patch("daily", &params, &own).await?, "eve")?;
    let _ = hers.patch_status("daily", &params, &annotated(&json!(FORGED))).await;
    is_of(&mine.get("daily").await?, "eve")
}

/// They are neither forged nor dropped, also where the list is gone.
async fn extra_fields_while_nacre_is_down(test_cluster: &TestCluster, own: &str) -> Result<()> {
    let ann = requests(test_cluster, "ann").await?;
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let make = async |record: Option<&str>| anyhow::Ok(ann.create(&dry, &backup("extra", record)?).await);
    let (base, _) = own.split_once(",\"extra\"").context("extra fields")?;
    let dropped = format!("{base}}}");
    make(Some(own)).await??;
    make(None).await??;
    for forged in forgeries(own).iter().chain([&dropped]) {
        refused_by(POLICY, make(Some(forged)).await?).with_context(|| forged.clone())?;
    }
    let lists = test_cluster.admin::<ConfigMap>().await?;
    lists.delete("nacre-requester", &DeleteParams::default()).await?;
    eventually("the list to be gone", Duration::from_mins(2), async || {
        anyhow::Ok(make(Some(&dropped)).await??)
    })
    .await?;
    make(Some(own)).await??;
    for forged in forgeries(own) {
        refused_by(POLICY, make(Some(&forged)).await?).with_context(|| forged.clone())?;
    }
    Ok(())
}

async fn what_nobody_recorded_is_refused(shop: &Tenant<'_>) -> Result<()> {
    let is_refused = |backup: Option<&NonAdminBackup>| {
        let accepted = condition::get(&backup?.status.as_ref()?.conditions, condition::ACCEPTED)?.clone();
        (accepted.status == "False").then_some(accepted.message)
    };
    let why = shop.wait("it to be refused", "unrecorded", is_refused).await?;
    ensure!(why.contains("it was not recorded who asked"), "{why}");
    // Whoever changes what is asked for becomes the requester, and ada may run commands in pods.
    let changed = json!({"spec": {"backupSpec": {"ttl": "2h"}}});
    shop.edit::<NonAdminBackup>("unrecorded", changed).await?;
    is_of(&shop.api::<NonAdminBackup>().get("unrecorded").await?, "ada")?;
    shop.backup_starts("unrecorded").await?;
    Ok(())
}
