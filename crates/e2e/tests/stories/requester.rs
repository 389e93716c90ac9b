//! The person behind a request, on the real API server: the record cannot be forged while nacre is down, and with real
//! Velero somebody with just too little gets less than somebody with just enough.

use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::velero::{Backup, DeleteBackupRequest, DownloadRequest, Restore, Schedule};
use api::{
    NonAdminBackup, NonAdminBackupStorageLocation, NonAdminDownloadRequest, NonAdminRestore,
    NonAdminSchedule, condition, labels,
};
use bed::{Bed, eventually};
use e2e::{NACRE, Tenant, TestCluster, refused_by};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::rbac::v1::Role;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::downloads;

const POLICY: &str = "nacre-requester";
const FORGED: &str = r#"{"user":"root","uid":"","groups":["system:masters"],"scopes":[]}"#;

/// A role in a namespace, and its binding.
pub(crate) async fn grant(bed: &Bed, namespace: &str, user: &str, name: &str, rules: Value) -> Result<()> {
    let group = "rbac.authorization.k8s.io";
    let role = json!({"apiVersion": format!("{group}/v1"), "kind": "Role",
        "metadata": {"name": name, "namespace": namespace}, "rules": rules});
    let binding = json!({"apiVersion": format!("{group}/v1"), "kind": "RoleBinding",
        "metadata": {"name": name, "namespace": namespace},
        "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}]});
    bed.apply(&[serde_json::from_value(role)?, serde_json::from_value(binding)?]).await
}

/// Somebody who may make requests in a namespace that exists, and nothing else.
pub(crate) async fn operator<'a>(
    test_cluster: &'a TestCluster,
    namespace: &str,
    user: &str,
) -> Result<Tenant<'a>> {
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": format!("ask-{user}"), "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "nonadminbackup-editor-role"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]});
    test_cluster.bed.apply(&[serde_json::from_value(binding)?]).await?;
    test_cluster.bed.wait_allowed(user, namespace, "create", "oadp.openshift.io", "nonadminbackups").await?;
    test_cluster.user(namespace, user).await
}

pub(crate) fn record(request: &impl ResourceExt) -> Option<&String> {
    request.annotations().get(labels::REQUESTER)
}

fn merge(change: Value) -> Patch<Value> {
    Patch::Merge(change)
}

/// The message of the condition about permissions.
pub(crate) fn left_out(conditions: &[Condition]) -> Option<String> {
    condition::get(conditions, condition::REQUESTER_PERMITTED).map(|found| found.message.clone())
}

/// Neither on creation nor later.
async fn cannot_be_forged<K>(shop: &Tenant<'_>, spec: Value) -> Result<()>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned,
{
    let forged = json!({"annotations": {labels::REQUESTER: FORGED}});
    let made = shop.create::<K>("forged", json!({"metadata": forged, "spec": spec})).await?;
    let own = record(&made).context("a record")?;
    ensure!(own.starts_with(r#"{"user":"ada""#), "{own}");
    let change = merge(json!({ "metadata": forged }));
    refused_by(POLICY, shop.api::<K>().patch("forged", &PatchParams::default(), &change).await)?;
    // The whole object is replaced without it: it comes back.
    let mut bare = shop.api::<K>().get("forged").await?;
    bare.annotations_mut().remove(labels::REQUESTER);
    let replaced = shop.api::<K>().replace("forged", &PostParams::default(), &bare).await?;
    ensure!(record(&replaced) == Some(own), "{:?}", record(&replaced));
    Ok(())
}

/// The same for Velero's kinds, by which tenants ask with Velero's own tools.
async fn veleros_kinds_cannot_be_forged(shop: &Tenant<'_>, bed: &Bed) -> Result<()> {
    let rules = json!([{"apiGroups": ["velero.io"], "resources": ["*"], "verbs": ["get", "create", "patch", "update"]}]);
    grant(bed, "shop", "ada", "velero", rules).await?;
    bed.wait_allowed("ada", "shop", "update", "velero.io", "schedules").await?;
    cannot_be_forged::<Backup>(shop, json!({})).await?;
    cannot_be_forged::<Restore>(shop, json!({"backupName": "daily"})).await?;
    cannot_be_forged::<DeleteBackupRequest>(shop, json!({"backupName": "daily"})).await?;
    let log = json!({"target": {"kind": "BackupLog", "name": "daily"}});
    cannot_be_forged::<DownloadRequest>(shop, log).await?;
    cannot_be_forged::<Schedule>(shop, json!({"schedule": "@daily", "template": {}})).await
}

/// E1: a forged record of who asked: set by hand, changed, removed, through the status, by another field manager, by impersonation
#[tokio::test(flavor = "multi_thread")]
async fn e1_with_nacre_down_the_record_of_who_asked_cannot_be_forged() -> Result<()> {
    let test_cluster = TestCluster::build_with_idle_velero().await?;
    test_cluster.admission().await?;
    test_cluster.record_requesters().await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    let eve = operator(&test_cluster, "shop", "eve").await?;
    let (mine, hers) = (shop.api::<NonAdminBackup>(), eve.api::<NonAdminBackup>());

    // Set by hand on creation: the API server writes the truth over it, and the finalizer.
    let body = json!({"metadata": {"annotations": {labels::REQUESTER: FORGED}}, "spec": {"backupSpec": {}}});
    let made = shop.create::<NonAdminBackup>("daily", body).await?;
    let own = record(&made).context("a record")?.clone();
    ensure!(own.starts_with(r#"{"user":"ada""#) && own.contains("system:authenticated"), "{own}");
    ensure!(made.finalizers() == [labels::NAB_FINALIZER], "{:?}", made.finalizers());

    // Changed, by the requester and by somebody else; in a patch, and by server-side apply with another manager.
    let change = json!({"metadata": {"annotations": {labels::REQUESTER: FORGED}}});
    for api in [&mine, &hers] {
        refused_by(POLICY, api.patch("daily", &PatchParams::default(), &merge(change.clone())).await)?;
        let applied = json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackup",
            "metadata": {"name": "daily", "annotations": {labels::REQUESTER: FORGED}}});
        let by_another = PatchParams::apply("somebody").force();
        refused_by(POLICY, api.patch("daily", &by_another, &Patch::Apply(applied)).await)?;
    }
    // Removed: it is back at once.
    let removal = json!({"metadata": {"annotations": {labels::REQUESTER: null}}});
    let kept = hers.patch("daily", &PatchParams::default(), &merge(removal)).await?;
    ensure!(record(&kept) == Some(&own), "{:?}", record(&kept));
    // Through the status, even with the permission to write that.
    grant(
        &test_cluster.bed,
        "shop",
        "eve",
        "statuses",
        json!([{"apiGroups": ["oadp.openshift.io"],
        "resources": ["nonadminbackups/status"], "verbs": ["patch", "update"]}]),
    )
    .await?;
    test_cluster
        .bed
        .wait_allowed("eve", "shop", "patch", "oadp.openshift.io", "nonadminbackups/status")
        .await?;
    // The API server refuses it, or takes no annotation that way.
    let through_status = hers.patch_status("daily", &PatchParams::default(), &merge(change.clone())).await;
    ensure!(through_status.is_err() || record(&through_status?) == Some(&own), "the status changed it");
    ensure!(record(&mine.get("daily").await?) == Some(&own), "the status changed it");
    // Somebody's label changes nothing; somebody's spec makes that somebody the requester.
    let labelled = json!({"metadata": {"labels": {"team": "a"}}});
    let labelled = hers.patch("daily", &PatchParams::default(), &merge(labelled)).await?;
    ensure!(record(&labelled) == Some(&own), "a label made somebody else the requester");
    let changed = json!({"spec": {"backupSpec": {"ttl": "2h"}}});
    let changed = hers.patch("daily", &PatchParams::default(), &merge(changed)).await?;
    ensure!(
        record(&changed).is_some_and(|record| record.starts_with(r#"{"user":"eve""#)),
        "{:?}",
        record(&changed)
    );

    // Every other kind of request is recorded in the same way.
    cannot_be_forged::<NonAdminRestore>(&shop, json!({"restoreSpec": {"backupName": "daily"}})).await?;
    cannot_be_forged::<NonAdminDownloadRequest>(
        &shop,
        json!({"target": {"kind": "BackupLog", "name": "daily"}}),
    )
    .await?;
    let bucket = json!({"provider": "aws", "objectStorage": {"bucket": "b"}, "credential": {"name": "keys", "key": "cloud"}});
    cannot_be_forged::<NonAdminBackupStorageLocation>(&shop, json!({"backupStorageLocationSpec": bucket}))
        .await?;
    let nightly = json!({"schedule": "@daily", "template": {"backupSpec": {}}});
    cannot_be_forged::<NonAdminSchedule>(&shop, nightly).await?;
    veleros_kinds_cannot_be_forged(&shop, &test_cluster.bed).await?;

    // Impersonation is for those who may impersonate: the API server says so before anything is recorded.
    let robot = test_cluster.bed.service_account_kubeconfig("shop", "default").await?;
    let robot = robot.display().to_string();
    let as_root =
        ["--kubeconfig", robot.as_str(), "--as=root", "annotate", "nab", "daily", "-n", "shop", "a=b"];
    let answer = test_cluster.bed.kubectl(&as_root).await?.stderr;
    ensure!(answer.contains("Forbidden"), "{answer}");

    // Deleting the data is judged as whoever sets the field, and recorded apart.
    let editors = json!([{"apiGroups": ["oadp.openshift.io"], "resources": ["nonadminbackups"], "verbs": ["get", "patch"]}]);
    grant(&test_cluster.bed, "shop", "bob", "editor", editors).await?;
    test_cluster.bed.wait_allowed("bob", "shop", "patch", "oadp.openshift.io", "nonadminbackups").await?;
    let bob = test_cluster.user("shop", "bob").await?;
    let deletion = merge(json!({"spec": {"deleteBackup": true}}));
    let params = PatchParams::default();
    refused_by("nacre-deletion", bob.api::<NonAdminBackup>().patch("daily", &params, &deletion).await)?;
    let deleted = mine.patch("daily", &params, &deletion).await?;
    let by = deleted.annotations().get(labels::DELETION_REQUESTER).cloned().unwrap_or_default();
    ensure!(by.starts_with(r#"{"user":"ada""#), "{by}");
    let forged = merge(json!({"metadata": {"annotations": {labels::DELETION_REQUESTER: FORGED}}}));
    refused_by(POLICY, mine.patch("daily", &params, &forged).await)?;
    let removal = merge(json!({"metadata": {"annotations": {labels::DELETION_REQUESTER: null}}}));
    let kept = hers.patch("daily", &params, &removal).await?;
    ensure!(kept.annotations().get(labels::DELETION_REQUESTER) == Some(&by), "{:?}", kept.annotations());
    ensure!(
        record(&deleted).is_some_and(|record| record.starts_with(r#"{"user":"eve""#)),
        "the backup is eve's"
    );

    // Names and groups that look like JSON stay what they are.
    let odd = test_cluster.bed.client_as("o\"dd\\", &["a\",\"b", "system:masters"]).await?;
    let odd = Api::<NonAdminBackup>::namespaced(odd, "shop");
    let request = json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackup",
        "metadata": {"name": "odd"}, "spec": {"backupSpec": {}}});
    let made = odd.create(&PostParams::default(), &serde_json::from_value(request)?).await?;
    let read: Value = serde_json::from_str(record(&made).context("a record")?)?;
    ensure!(read["user"] == "o\"dd\\" && read["groups"][0] == "a\",\"b", "{read}");
    scaled_down_nobody_is_given_a_finalizer(&test_cluster, &shop).await
}

/// Nobody would remove it. `nacre operator` scales down, removes finalizers, and then deletes the Deployment.
async fn scaled_down_nobody_is_given_a_finalizer(
    test_cluster: &TestCluster,
    shop: &Tenant<'_>,
) -> Result<()> {
    let none = merge(json!({"spec": {"replicas": 0}}));
    let deployments = test_cluster.admin::<Deployment>().await?;
    deployments.patch("non-admin-controller", &PatchParams::default(), &none).await?;
    let request = json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackup",
        "metadata": {"name": "probe"}, "spec": {"backupSpec": {}}});
    let request = serde_json::from_value(request)?;
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    eventually("requests without a finalizer", Duration::from_secs(30), async || {
        let made = shop.api::<NonAdminBackup>().create(&dry, &request).await?;
        ensure!(made.finalizers().is_empty() && record(&made).is_some(), "{:?}", made.metadata);
        Ok(())
    })
    .await
}

/// E1
/// E2
/// E4
/// C16
/// planted: `requester.mode: ignore`
#[tokio::test(flavor = "multi_thread")]
async fn e1_e2_e4_c16_somebody_with_just_too_little_gets_less_than_somebody_with_just_enough() -> Result<()> {
    let test_cluster = TestCluster::build().await?;
    let policy = "storageLocations: {endpoints: {allow: ['127.0.0.1']}}\ndownloads: {platformStorage: all}";
    test_cluster.set_policy(policy).await?;
    test_cluster.admission().await?;
    test_cluster.record_requesters().await?;
    let nacre = test_cluster.start_nacre().await?;
    let bed = &test_cluster.bed;
    let shop = test_cluster.tenant("shop", "ada").await?;
    let eve = operator(&test_cluster, "shop", "eve").await?;
    // ada is an admin who may also hand out permissions; eve may only make requests, and read and make ConfigMaps.
    let over_roles = json!([{"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "clusterroles"],
        "verbs": ["bind", "escalate"]}]);
    grant(bed, "shop", "ada", "over-roles", over_roles).await?;
    bed.wait_allowed("ada", "shop", "escalate", "rbac.authorization.k8s.io", "roles").await?;
    let maps = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "create"]}]);
    grant(bed, "shop", "eve", "maps", maps).await?;
    bed.wait_allowed("eve", "shop", "create", "", "configmaps").await?;
    shop.create::<Secret>("till", json!({"stringData": {"pin": "1234"}})).await?;
    shop.create::<ConfigMap>("plans", json!({"data": {"a": "b"}})).await?;
    let rules = json!({"rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]});
    shop.create::<Role>("reads-secrets", rules).await?;

    shop.keep_keys("keys", &bed.store()?.credentials()).await?;
    shop.bring_bucket("own", "shop", "keys").await?;
    shop.location_available("own").await?;
    a_location_takes_the_permission_to_read_its_secret(&test_cluster, &eve).await?;
    a_copy_holds_what_one_may_read(&test_cluster, &shop, &eve).await?;
    contents_are_for_those_who_may_read_them(&shop, &eve).await?;
    a_restore_brings_back_what_one_may_create(&test_cluster, &shop, &eve).await?;

    // About 35 kinds, two people, two verbs to read and one to create: and not one more for the second request.
    let reviews = nacre.metric("nacre_access_reviews_total").await?;
    ensure!((1.0..400.0).contains(&reviews), "{reviews} reviews");
    test_cluster.set_policy(&format!("{policy}\nrequester: {{mode: ignore}}")).await?;
    without_the_check_all_of_it_works(&test_cluster, &shop, &eve).await
}

/// The planted weakness: the attempts are good ones, and nothing but the check of permissions stands in their way.
async fn without_the_check_all_of_it_works(
    test_cluster: &TestCluster,
    shop: &Tenant<'_>,
    eve: &Tenant<'_>,
) -> Result<()> {
    eve.location_available("hers").await?;
    downloads::link(eve, "all").await?;
    let own = json!({"spec": {"backupSpec": {"storageLocation": "own"}}});
    eve.create::<NonAdminBackup>("stolen", own).await?;
    ensure!(eve.backup_ends("stolen").await? == "Completed", "it did not complete");
    let out = excluded(test_cluster, &eve.backup_starts("stolen").await?).await?;
    ensure!(!out.contains(&"secrets".to_owned()), "{out:?}");
    lose(shop).await?;
    eve.restore("smuggled", "daily").await?;
    ensure!(eve.restore_ends("smuggled").await? == "Completed", "it did not complete");
    ensure!(shop.api::<Secret>().get_opt("till").await?.is_some(), "the Secret is not back");
    ensure!(shop.api::<Role>().get_opt("reads-secrets").await?.is_some(), "the Role is not back");
    Ok(())
}

/// C16: eve names ada's Secret as the key to a bucket. bob may read that Secret, and no other.
async fn a_location_takes_the_permission_to_read_its_secret(
    test_cluster: &TestCluster,
    eve: &Tenant<'_>,
) -> Result<()> {
    eve.bring_bucket("hers", "hers", "keys").await?;
    let is_refused = |location: Option<&NonAdminBackupStorageLocation>| {
        let conditions = &location?.status.as_ref()?.conditions;
        let accepted = condition::get(conditions, condition::ACCEPTED)?;
        (accepted.status == "False").then(|| accepted.message.clone())
    };
    let refused = eve.wait("hers to be refused", "hers", is_refused).await?;
    ensure!(refused.contains("\"eve\" may not get secrets/keys"), "{refused}");
    let bed = &test_cluster.bed;
    let bob = operator(test_cluster, "shop", "bob").await?;
    let keys =
        json!([{"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["keys"], "verbs": ["get"]}]);
    grant(bed, "shop", "bob", "reads-keys", keys).await?;
    eventually("bob to be allowed", Duration::from_mins(1), async || {
        bed.kubectl(&["auth", "can-i", "get", "secrets/keys", "-n", "shop", "--as=bob"]).await?.ok().map(drop)
    })
    .await?;
    bob.bring_bucket("his", "his", "keys").await?;
    bob.location_available("his").await?;
    Ok(())
}

/// What Velero was told to leave out of a backup.
pub(crate) async fn excluded(test_cluster: &TestCluster, velero: &str) -> Result<Vec<String>> {
    let backup = test_cluster.admin::<Backup>().await?.get(velero).await?;
    Ok(backup.spec.excluded_resources.unwrap_or_default())
}

/// E1: into a bucket of one's own goes what one may read; into the administrators' storage goes everything.
async fn a_copy_holds_what_one_may_read(
    test_cluster: &TestCluster,
    shop: &Tenant<'_>,
    eve: &Tenant<'_>,
) -> Result<()> {
    let own = json!({"spec": {"backupSpec": {"storageLocation": "own"}}});
    eve.create::<NonAdminBackup>("copy", own.clone()).await?;
    ensure!(eve.backup_ends("copy").await? == "Completed", "it did not complete");
    let status = eve.api::<NonAdminBackup>().get("copy").await?.status.context("a status")?;
    let named = left_out(&status.conditions).context("what was left out")?;
    ensure!(named.contains("\"eve\""), "{named}");
    let velero = eve.backup_starts("copy").await?;
    let out = excluded(test_cluster, &velero).await?;
    ensure!(out.contains(&"secrets".to_owned()) && !out.contains(&"configmaps".to_owned()), "{out:?}");
    let backup = test_cluster.admin::<Backup>().await?.get(&velero).await?;
    let shown = backup.annotations().get(labels::REQUESTER).map(String::as_str);
    ensure!(shown == Some("eve"), "administrators see who asked: {shown:?}");

    shop.create::<NonAdminBackup>("mine", own).await?;
    ensure!(shop.backup_ends("mine").await? == "Completed", "it did not complete");
    let out = excluded(test_cluster, &shop.backup_starts("mine").await?).await?;
    ensure!(!out.contains(&"secrets".to_owned()), "{out:?}");
    let status = shop.api::<NonAdminBackup>().get("mine").await?.status.context("a status")?;
    let named = left_out(&status.conditions);
    ensure!(named.is_none(), "an admin may read everything: {named:?}");

    let mark = test_cluster.bed.audit().mark().await?;
    eve.back_up("daily").await?;
    ensure!(eve.backup_ends("daily").await? == "Completed", "it did not complete");
    // The API server has put the finalizer on: two writes to `Created` are left.
    let writes = test_cluster.bed.audit().since(mark).await?.writes().by(NACRE);
    let writes = writes.only(|write| write.resource != "events" && write.code < 300);
    let kinds: Vec<_> = writes.as_slice().iter().take(2).map(|write| write.resource.as_str()).collect();
    ensure!(kinds == ["backups", "nonadminbackups/status"], "{kinds:?}");
    let status = eve.api::<NonAdminBackup>().get("daily").await?.status.context("a status")?;
    ensure!(left_out(&status.conditions).is_none(), "nobody sees it, so it is whole");
    Ok(())
}

/// E1: eve may not download what she may not read; ada may.
async fn contents_are_for_those_who_may_read_them(shop: &Tenant<'_>, eve: &Tenant<'_>) -> Result<()> {
    downloads::ask(eve, "all", "BackupContents", "daily").await?;
    let refused = downloads::refused(eve, "all").await?;
    ensure!(refused.contains("\"eve\" may not get and list"), "{refused}");
    ensure!(refused.contains("kubectl create role"), "{refused}");
    downloads::ask(shop, "everything", "BackupContents", "daily").await?;
    downloads::link(shop, "everything").await?;
    Ok(())
}

/// E2, E4: a Role and a Secret were removed on purpose. What somebody brings back is what they may create.
async fn a_restore_brings_back_what_one_may_create(
    test_cluster: &TestCluster,
    shop: &Tenant<'_>,
    eve: &Tenant<'_>,
) -> Result<()> {
    lose(shop).await?;
    eve.restore("again", "daily").await?;
    ensure!(eve.restore_ends("again").await? == "Completed", "it did not complete");
    ensure!(shop.api::<ConfigMap>().get_opt("plans").await?.is_some(), "the ConfigMap is not back");
    ensure!(shop.api::<Secret>().get_opt("till").await?.is_none(), "eve brought the Secret back");
    ensure!(shop.api::<Role>().get_opt("reads-secrets").await?.is_none(), "eve brought the Role back");
    let status = eve.api::<NonAdminRestore>().get("again").await?.status.context("a status")?;
    let named = left_out(&status.conditions).context("what was left out")?;
    ensure!(named.contains("\"eve\"") && !named.contains("endpointslices"), "{named}");

    // ada, who may hand out permissions, gets all of it.
    lose(shop).await?;
    shop.restore("whole", "daily").await?;
    ensure!(shop.restore_ends("whole").await? == "Completed", "it did not complete");
    ensure!(shop.api::<Secret>().get_opt("till").await?.is_some(), "the Secret is not back");
    ensure!(shop.api::<Role>().get_opt("reads-secrets").await?.is_some(), "the Role is not back");
    let status = shop.api::<NonAdminRestore>().get("whole").await?.status.context("a status")?;
    ensure!(left_out(&status.conditions).is_none(), "{:?}", left_out(&status.conditions));
    let restores = test_cluster.admin::<Restore>().await?.list(&ListParams::default()).await?;
    let by_ada = |one: &&Restore| one.annotations().get(labels::REQUESTER).is_some_and(|user| user == "ada");
    ensure!(restores.iter().filter(by_ada).count() == 1, "administrators see who asked");
    Ok(())
}

/// The objects that the backup holds are removed.
async fn lose(shop: &Tenant<'_>) -> Result<()> {
    for result in [
        shop.api::<Secret>().delete("till", &DeleteParams::default()).await.map(drop),
        shop.api::<ConfigMap>().delete("plans", &DeleteParams::default()).await.map(drop),
        shop.api::<Role>().delete("reads-secrets", &DeleteParams::default()).await.map(drop),
    ] {
        match result {
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            other => other?,
        }
    }
    Ok(())
}
