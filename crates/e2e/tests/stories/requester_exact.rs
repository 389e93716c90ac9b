//! One permission makes the difference, with real Velero: rita has all but one, and sam has that one too, by the very
//! commands that rita is told.

use anyhow::{Context, Result, ensure};
use api::{NonAdminBackup, NonAdminRestore};
use bed::Bed;
use e2e::{Tenant, TestCluster};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use serde_json::{Value, json};

use crate::downloads;
use crate::requester::{excluded, grant, left_out, operator};
use crate::requester_rules::restore_refused;

const RBAC: &str = "rbac.authorization.k8s.io";

/// The rules to read every kind in a namespace, but for `list` on Secrets.
async fn reading_all_but_lists_of_secrets(bed: &Bed) -> Result<Value> {
    let asked = ["api-resources", "--namespaced", "--verbs=list", "-o", "name"];
    let kinds = bed.kubectl(&asked).await?.ok()?;
    let rules = kinds.lines().filter(|kind| *kind != "secrets").map(|kind| {
        let (plural, group) = kind.split_once('.').unwrap_or((kind, ""));
        json!({"apiGroups": [group], "resources": [plural], "verbs": ["get", "list"]})
    });
    let secrets = json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]});
    Ok(rules.chain([secrets]).collect())
}

/// Both get the same.
async fn grant_both(bed: &Bed, name: &str, rules: Value) -> Result<()> {
    for user in ["rita", "sam"] {
        grant(bed, "shop", user, &format!("{name}-{user}"), rules.clone()).await?;
    }
    Ok(())
}

/// Runs the commands in a message, for sam instead of rita. There is one role in it, of one resource.
async fn permit_sam(bed: &Bed, told: &str, verb: &str, resource: &str) -> Result<()> {
    let (_, commands) = told.split_once("an administrator can permit it: ").context("the commands")?;
    let commands: Vec<&str> = commands.split(" && ").collect();
    ensure!(commands.len() == 2, "more than one permission is missing: {told}");
    ensure!(commands[0].ends_with(&format!("--verb={verb} --resource={resource}")), "{told}");
    for command in commands {
        let command = command.replace("--user=rita", "--user=sam");
        let words: Vec<&str> = command.split_whitespace().skip(1).collect();
        bed.kubectl(&words).await?.ok()?;
    }
    let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
    bed.wait_allowed("sam", "shop", verb, group, plural).await
}

/// E1
/// E2
/// E4
#[tokio::test(flavor = "multi_thread")]
async fn e1_e2_e4_one_permission_makes_the_difference() -> Result<()> {
    let test_cluster = TestCluster::build().await?;
    let policy = "storageLocations: {endpoints: {allow: ['127.0.0.1']}}\ndownloads: {platformStorage: all}\n\
        requester: {mode: enforce}";
    test_cluster.set_policy(policy).await?;
    test_cluster.admission().await?;
    test_cluster.record_requesters().await?;
    let _nacre = test_cluster.start_nacre().await?;
    let bed = &test_cluster.bed;
    let shop = test_cluster.tenant("shop", "ada").await?;
    let rita = operator(&test_cluster, "shop", "rita").await?;
    let sam = operator(&test_cluster, "shop", "sam").await?;
    grant_both(bed, "reads", reading_all_but_lists_of_secrets(bed).await?).await?;
    bed.wait_allowed("sam", "shop", "list", "apps", "deployments").await?;
    bed.wait_allowed("rita", "shop", "list", "apps", "deployments").await?;
    shop.create::<Secret>("till", json!({"stringData": {"pin": "1234"}})).await?;
    shop.create::<ConfigMap>("plans", json!({"data": {"a": "b"}})).await?;
    shop.keep_keys("keys", &bed.store()?.credentials()).await?;
    shop.bring_bucket("own", "shop", "keys").await?;
    shop.location_available("own").await?;
    shop.back_up("daily").await?;
    ensure!(shop.backup_ends("daily").await? == "Completed");

    let told = a_download_is_refused(&rita).await?;
    permit_sam(bed, &told, "list", "secrets").await?;
    downloads::ask(&sam, "his", "BackupContents", "daily").await?;
    downloads::link(&sam, "his").await?;
    a_copy_lacks_secrets_or_nothing(&test_cluster, &rita, &sam).await?;
    roles_come_back_for_those_who_may_hand_them_out(bed, &shop, &rita, &sam).await
}

/// What rita is told when she asks for the contents of the backup.
async fn a_download_is_refused(rita: &Tenant<'_>) -> Result<String> {
    downloads::ask(rita, "hers", "BackupContents", "daily").await?;
    let told = downloads::refused(rita, "hers").await?;
    ensure!(told.contains("\"rita\" may not list secrets in this namespace"), "{told}");
    Ok(told)
}

/// Into the tenant's own storage: Velero is told to leave out one kind more for rita, and says so of no other.
async fn a_copy_lacks_secrets_or_nothing(
    test_cluster: &TestCluster,
    rita: &Tenant<'_>,
    sam: &Tenant<'_>,
) -> Result<()> {
    let own = json!({"spec": {"backupSpec": {"storageLocation": "own"}}});
    let mut kinds = Vec::new();
    for (who, name) in [(rita, "hers"), (sam, "his")] {
        who.create::<NonAdminBackup>(name, own.clone()).await?;
        ensure!(who.backup_ends(name).await? == "Completed", "{name} did not complete");
        kinds.push(excluded(test_cluster, &who.backup_starts(name).await?).await?);
    }
    let [hers, his] = kinds.try_into().ok().context("two backups")?;
    let more: Vec<&String> = hers.iter().filter(|kind| !his.contains(kind)).collect();
    ensure!(more == ["secrets"], "hers: {hers:?}, his: {his:?}");
    let says = async |who: &Tenant<'_>, name: &str| -> Result<Option<String>> {
        let status = who.api::<NonAdminBackup>().get(name).await?.status.context("a status")?;
        Ok(left_out(&status.conditions))
    };
    let hers = says(rita, "hers").await?.context("what was left out")?;
    ensure!(hers.contains("secrets") && !hers.contains("configmaps"), "{hers}");
    ensure!(says(sam, "his").await?.is_none(), "{:?}", says(sam, "his").await?);
    Ok(())
}

/// `create` is not enough: Roles take `escalate`, and RoleBindings take `bind`, on ClusterRoles too.
async fn roles_come_back_for_those_who_may_hand_them_out(
    bed: &Bed,
    shop: &Tenant<'_>,
    rita: &Tenant<'_>,
    sam: &Tenant<'_>,
) -> Result<()> {
    let rules = json!({"rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]});
    shop.create::<Role>("reads-secrets", rules).await?;
    let to_eve = json!({"roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "reads-secrets"},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": "eve"}]});
    shop.create::<RoleBinding>("reads-secrets", to_eve).await?;
    shop.back_up("with-roles").await?;
    ensure!(shop.backup_ends("with-roles").await? == "Completed");
    shop.delete::<RoleBinding>("reads-secrets").await?;
    shop.delete::<Role>("reads-secrets").await?;
    let rules = json!([{"apiGroups": [RBAC], "resources": ["roles", "rolebindings"], "verbs": ["create"]},
        {"apiGroups": [RBAC], "resources": ["roles"], "verbs": ["bind"]}]);
    grant_both(bed, "roles", rules).await?;
    for user in ["rita", "sam"] {
        bed.wait_allowed(user, "shop", "bind", RBAC, "roles").await?;
    }
    for (kind, verb, on) in [("roles", "escalate", "roles"), ("rolebindings", "bind", "clusterroles")] {
        let spec = json!({"backupName": "with-roles", "includedResources": [format!("{kind}.{RBAC}")]});
        let (hers, his) = (format!("her-{kind}"), format!("his-{kind}"));
        rita.create::<NonAdminRestore>(&hers, json!({"spec": {"restoreSpec": spec}})).await?;
        let told = restore_refused(rita, &hers).await?;
        permit_sam(bed, &told, verb, &format!("{on}.{RBAC}")).await?;
        sam.create::<NonAdminRestore>(&his, json!({"spec": {"restoreSpec": spec}})).await?;
        ensure!(sam.restore_ends(&his).await? == "Completed");
    }
    ensure!(shop.api::<Role>().get_opt("reads-secrets").await?.is_some(), "the Role is not back");
    ensure!(
        shop.api::<RoleBinding>().get_opt("reads-secrets").await?.is_some(),
        "the RoleBinding is not back"
    );
    Ok(())
}
