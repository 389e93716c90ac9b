//! Rules about the person behind a request, with real Velero: for each, somebody with just too little and somebody with
//! just enough.

use anyhow::{Context, Result, ensure};
use api::velero::DeleteBackupRequest;
use api::{NonAdminBackup, NonAdminRestore, NonAdminSchedule, condition};
use e2e::{NACRE, Tenant, TestCluster};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::Role;
use kube::api::ListParams;
use serde_json::{Value, json};

use crate::downloads;
use crate::program::nacre;
use crate::requester::{grant, operator, record};

const POLICY: &str = "backup: {delete: own}";

/// A condition of a backup that is False, once it is.
async fn refused(tenant: &Tenant<'_>, name: &str, type_: &str) -> Result<String> {
    let is_false = |backup: Option<&NonAdminBackup>| {
        let found = condition::get(&backup?.status.as_ref()?.conditions, type_)?.clone();
        (found.status == "False").then(|| format!("{}: {}", found.reason, found.message))
    };
    tenant.wait("it to be refused", name, is_false).await
}

/// planted: `backup.delete: anyone`
#[tokio::test(flavor = "multi_thread")]
async fn b2_e3_hooks_deletion_and_confirmation_are_for_those_who_may() -> Result<()> {
    let test_cluster = TestCluster::build().await?;
    test_cluster.set_policy(POLICY).await?;
    test_cluster.admission().await?;
    test_cluster.record_requesters().await?;
    let _nacre = test_cluster.start_nacre().await?;
    let bed = &test_cluster.bed;
    let shop = test_cluster.tenant("shop", "ada").await?;
    shop.create::<ConfigMap>("plans", json!({"data": {"a": "b"}})).await?;
    let eve = operator(&test_cluster, "shop", "eve").await?;
    let bob = operator(&test_cluster, "shop", "bob").await?;
    let exec = |verb: &str| json!([{"apiGroups": [""], "resources": ["pods/exec"], "verbs": [verb]}]);
    grant(bed, "shop", "eve", "reads-exec", exec("get")).await?;
    grant(bed, "shop", "bob", "creates-exec", exec("create")).await?;
    bed.wait_allowed("bob", "shop", "create", "", "pods/exec").await?;

    commands_run_for_those_who_may_run_them(&eve, &bob).await?;
    data_is_deleted_by_who_asked_for_it(&test_cluster, &eve, &bob).await?;
    a_plain_deletion_takes_two_writes(&test_cluster, &shop).await?;
    whoami_names_what_is_missing(&test_cluster).await?;
    whoever_confirms_a_schedule_asks_for_its_runs(&test_cluster, &shop).await
}

/// Beyond creating: updating what exists, Roles where the policy lets them back, and all or nothing.
#[tokio::test(flavor = "multi_thread")]
async fn e2_e4_updates_and_roles_are_for_those_who_may_and_the_policy_may_want_all_or_nothing() -> Result<()>
{
    let test_cluster = TestCluster::build().await?;
    let policy = |requester: &str| format!("downloads: {{platformStorage: all}}\nrequester: {requester}\n");
    test_cluster.set_policy(&policy("{mode: enforce}")).await?;
    test_cluster.admission().await?;
    test_cluster.record_requesters().await?;
    let _nacre = test_cluster.start_nacre().await?;
    let bed = &test_cluster.bed;
    let shop = test_cluster.tenant("shop", "ada").await?;
    let eve = operator(&test_cluster, "shop", "eve").await?;
    let bob = operator(&test_cluster, "shop", "bob").await?;
    let maps = |verbs: &[&str]| json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs}]);
    grant(bed, "shop", "eve", "creates", maps(&["create"])).await?;
    grant(bed, "shop", "bob", "updates", maps(&["create", "update"])).await?;
    bed.wait_allowed("bob", "shop", "update", "", "configmaps").await?;
    shop.create::<ConfigMap>("plans", json!({"data": {"a": "b"}})).await?;
    let rules = json!({"rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]});
    shop.create::<Role>("reads-secrets", rules).await?;
    shop.back_up("daily").await?;
    ensure!(shop.backup_ends("daily").await? == "Completed");
    // Logs need no more than the request.
    downloads::ask(&eve, "log", "BackupLog", "daily").await?;
    downloads::link(&eve, "log").await?;

    shop.edit::<ConfigMap>("plans", json!({"data": {"a": "c"}})).await?;
    let update = json!({"spec": {"restoreSpec": {"backupName": "daily", "existingResourcePolicy": "update",
        "includedResources": ["configmaps"]}}});
    eve.create::<NonAdminRestore>("hers", update.clone()).await?;
    let why = restore_refused(&eve, "hers").await?;
    ensure!(why.contains("\"eve\" may not update configmaps"), "{why}");
    bob.create::<NonAdminRestore>("his", update).await?;
    ensure!(bob.restore_ends("his").await? == "Completed");
    let plans = shop.api::<ConfigMap>().get("plans").await?.data.unwrap_or_default();
    ensure!(plans["a"] == "b", "{plans:?}");

    test_cluster.set_policy(&policy("{notPermitted: refuse}")).await?;
    eve.restore("all-or-nothing", "daily").await?;
    let why = restore_refused(&eve, "all-or-nothing").await?;
    ensure!(
        why.starts_with("RequesterNotPermitted: spec: \"eve\" may not")
            && why.contains("kubectl create role"),
        "{why}"
    );
    eve.delete::<NonAdminRestore>("all-or-nothing").await?;

    // Roles from the administrators' storage, for everybody: by the policy alone.
    shop.delete::<Role>("reads-secrets").await?;
    let only_roles = json!({"spec": {"restoreSpec": {"backupName": "daily", "includedResources": ["roles.rbac.authorization.k8s.io"]}}});
    eve.create::<NonAdminRestore>("roles", only_roles).await?;
    let why = restore_refused(&eve, "roles").await?;
    ensure!(why.contains("escalate") && why.contains("roles.rbac.authorization.k8s.io"), "{why}");
    test_cluster.set_policy(&policy("{rolesFromPlatformStorage: true}")).await?;
    ensure!(eve.restore_ends("roles").await? == "Completed");
    ensure!(shop.api::<Role>().get_opt("reads-secrets").await?.is_some(), "the Role is not back");
    Ok(())
}

/// Why a restore is not accepted, once it is not.
pub(crate) async fn restore_refused(tenant: &Tenant<'_>, name: &str) -> Result<String> {
    let is_false = |restore: Option<&NonAdminRestore>| {
        let found = condition::get(&restore?.status.as_ref()?.conditions, condition::ACCEPTED)?.clone();
        (found.status == "False").then(|| format!("{}: {}", found.reason, found.message))
    };
    tenant.wait("it to be refused", name, is_false).await
}

async fn commands_run_for_those_who_may_run_them(eve: &Tenant<'_>, bob: &Tenant<'_>) -> Result<()> {
    let hook = json!({"name": "dump", "pre": [{"exec": {"command": ["dump"]}}]});
    let dump = json!({"spec": {"backupSpec": {"hooks": {"resources": [hook]}}}});
    eve.create::<NonAdminBackup>("dumped-by-eve", dump.clone()).await?;
    let why = refused(eve, "dumped-by-eve", condition::ACCEPTED).await?;
    ensure!(
        why.starts_with("RequesterNotPermitted: spec.backupSpec.hooks: \"eve\" may not create pods/exec"),
        "{why}"
    );
    ensure!(why.contains(" -n shop --verb=create --resource=pods/exec"), "{why}");
    bob.create::<NonAdminBackup>("dumped", dump).await?;
    ensure!(bob.backup_ends("dumped").await? == "Completed");
    Ok(())
}

/// eve may delete the request, as bob may; but it was bob who asked for the backup.
async fn data_is_deleted_by_who_asked_for_it(
    test_cluster: &TestCluster,
    eve: &Tenant<'_>,
    bob: &Tenant<'_>,
) -> Result<()> {
    let deletion = json!({"spec": {"deleteBackup": true}});
    eve.edit::<NonAdminBackup>("dumped", deletion.clone()).await?;
    let why = refused(eve, "dumped", condition::SPEC_APPLIED).await?;
    ensure!(why.starts_with("RequesterNotPermitted: spec.deleteBackup: the data is for \"bob\""), "{why}");
    let asked = test_cluster.admin::<DeleteBackupRequest>().await?.list(&ListParams::default()).await?;
    ensure!(asked.items.is_empty(), "{:?}", asked.items);
    bob.edit::<NonAdminBackup>("dumped", json!({"spec": {"deleteBackup": false}})).await?;
    bob.edit::<NonAdminBackup>("dumped", deletion.clone()).await?;
    bob.gone::<NonAdminBackup>("dumped").await?;

    // The planted weakness: where anybody may delete data, eve does.
    bob.back_up("kept").await?;
    ensure!(bob.backup_ends("kept").await? == "Completed");
    test_cluster.set_policy("backup: {delete: anyone}").await?;
    eve.edit::<NonAdminBackup>("kept", deletion).await?;
    eve.gone::<NonAdminBackup>("kept").await?;
    test_cluster.set_policy(POLICY).await
}

/// The Velero Backup and the finalizer; nobody could see a phase in between.
async fn a_plain_deletion_takes_two_writes(test_cluster: &TestCluster, shop: &Tenant<'_>) -> Result<()> {
    shop.back_up("daily").await?;
    ensure!(shop.backup_ends("daily").await? == "Completed");
    test_cluster.bed.audit().until_quiet(NACRE, std::time::Duration::from_secs(1)).await?;
    let mark = test_cluster.bed.audit().mark().await?;
    shop.delete::<NonAdminBackup>("daily").await?;
    shop.gone::<NonAdminBackup>("daily").await?;
    test_cluster.bed.audit().until_quiet(NACRE, std::time::Duration::from_secs(1)).await?;
    let writes = test_cluster.bed.audit().since(mark).await?.writes().by(NACRE);
    // What was used is recorded for all namespaces together, at most once in five seconds. On a slow machine nacre still
    // writes what it needs when it starts, its certificate.
    let writes = writes.only(|write| ["backups", "nonadminbackups"].contains(&write.resource.as_str()));
    let kinds: Vec<_> =
        writes.as_slice().iter().map(|write| format!("{} {}", write.verb, write.resource)).collect();
    ensure!(kinds == ["delete backups", "patch nonadminbackups"], "{kinds:?}");
    Ok(())
}

async fn whoami_names_what_is_missing(test_cluster: &TestCluster) -> Result<()> {
    let kubeconfig = test_cluster.bed.kubeconfig();
    let whoami = async |user: &str| -> Result<Value> {
        let arguments = ["whoami", "-n", "shop", "--as", user, "-o", "json"];
        nacre(&kubeconfig, &arguments).await?.json(0)
    };
    let names = |answer: &Value, field: &str| -> Vec<String> {
        serde_json::from_value(answer[field].clone()).unwrap_or_default()
    };
    let (eve, bob, ada) = (whoami("eve").await?, whoami("bob").await?, whoami("ada").await?);
    ensure!(eve["user"] == "eve" && eve["mayRunCommands"] == false, "{eve}");
    ensure!(names(&eve, "notRestored").contains(&"configmaps".to_owned()), "{eve}");
    ensure!(names(&eve, "notBackedUp").contains(&"secrets".to_owned()), "{eve}");
    let commands = names(&eve, "commands").join("\n");
    ensure!(commands.contains("--resource=") && commands.contains("--user=eve"), "{commands}");
    ensure!(bob["mayRunCommands"] == true, "{bob}");
    ensure!(!names(&ada, "notRestored").contains(&"configmaps".to_owned()), "{ada}");
    ensure!(names(&ada, "notRestored").contains(&"roles.rbac.authorization.k8s.io".to_owned()), "{ada}");
    ensure!(names(&ada, "notBackedUp").is_empty(), "{ada}");
    // Stock `edit`: nothing is missing but what brings back Roles. What only controllers write is not named.
    let bind = ["create", "rolebinding", "stock", "-n", "shop", "--clusterrole=edit", "--user=kim"];
    test_cluster.bed.kubectl(&bind).await?;
    test_cluster.bed.wait_allowed("kim", "shop", "create", "apps", "deployments").await?;
    let kim = whoami("kim").await?;
    let roles = ["rolebindings.rbac.authorization.k8s.io", "roles.rbac.authorization.k8s.io"];
    ensure!(names(&kim, "notRestored") == roles, "{kim}");
    Ok(())
}

/// Somebody who may not change the schedule cannot confirm it either.
async fn whoever_confirms_a_schedule_asks_for_its_runs(
    test_cluster: &TestCluster,
    shop: &Tenant<'_>,
) -> Result<()> {
    let spec = json!({"spec": {"schedule": "0 0 1 1 *", "template": {"backupSpec": {}}}});
    shop.create::<NonAdminSchedule>("yearly", spec).await?;
    let confirmed = |schedule: Option<&NonAdminSchedule>| schedule?.status.as_ref()?.confirmation.clone();
    let first = shop.wait("who asked to be noted", "yearly", confirmed).await?;
    let rules = json!([{"apiGroups": ["oadp.openshift.io"], "resources": ["nonadminschedules"], "verbs": ["get", "patch"]}]);
    grant(&test_cluster.bed, "shop", "dan", "confirms", rules).await?;
    test_cluster.bed.wait_allowed("dan", "shop", "patch", "oadp.openshift.io", "nonadminschedules").await?;
    let confirm = |user: &'static str| {
        let kubeconfig = test_cluster.bed.kubeconfig();
        async move { nacre(&kubeconfig, &["schedule", "confirm", "yearly", "-n", "shop", "--as", user]).await }
    };
    let refused = confirm("mia").await?;
    ensure!(refused.code == Some(1) && refused.stderr.contains("forbidden"), "{refused:#?}");
    let done = confirm("dan").await?.with(0)?;
    ensure!(done.contains("confirmed"), "{done}");
    let schedule = shop.api::<NonAdminSchedule>().get("yearly").await?;
    let by = record(&schedule).context("a record")?;
    ensure!(by.starts_with(r#"{"user":"dan""#), "{by}");
    let again = |schedule: Option<&NonAdminSchedule>| {
        confirmed(schedule).filter(|found| found.generation > first.generation)
    };
    shop.wait("the confirmation to be noted", "yearly", again).await?;
    Ok(())
}
