//! A Velero for tenants alone, without cluster-admin: what it needs, what it does not, and what a forged backup gets.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::{NonAdminBackup, RestoredFrom};
use bed::{Bed, Requests, eventually};
use e2e::{Tenant, TestCluster, VELERO};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::core::v1::{
    ConfigMap, Namespace, PersistentVolumeClaim, Secret, Service, ServiceAccount,
};
use k8s_openapi::api::rbac::v1::{ClusterRole, RoleBinding};
use kube::api::{DeleteParams, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::fence::cluster::Fenced;
use crate::forged::{self, genuine_backup, tenant_storage};

pub(crate) const ACCOUNT: &str = "system:serviceaccount:velero:velero";
const TIMEOUT: Duration = Duration::from_mins(2);
const MIGRATION: &str = include_str!("migration.yaml");

/// A cluster with Velero in it, and nacre installed with --fence as an administrator does it.
pub(crate) async fn fenced_velero(bed: bed::Builder, definitions: &[&str]) -> Result<TestCluster> {
    let bed = bed.with_idle_velero().velero_flag("--disable-informer-cache=true");
    let cluster = TestCluster::build_on(bed.api_server_flag("--allow-privileged=true")).await?;
    cluster.bed.apply_yaml(MIGRATION).await?;
    install(&cluster.bed, &["--image", "nacre:test", "--fence"]).await?;
    // Velero looks for kinds when it starts.
    for yaml in definitions.iter().chain([&KIND]) {
        cluster.bed.apply_yaml(yaml).await?;
    }
    cluster.bed.velero_start().await?;
    Ok(cluster)
}

async fn install(bed: &Bed, args: &[&str]) -> Result<String> {
    let output = tokio::process::Command::new(e2e::command_line()?)
        .arg("install")
        .args(args)
        .env("KUBECONFIG", bed.kubeconfig())
        .kill_on_drop(true)
        .output()
        .await?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "install {args:?}: {text}");
    Ok(text)
}

/// Whether Velero may do this; an empty namespace means all of them.
async fn velero_may(bed: &Bed, verb: &str, group: &str, resource: &str, namespace: &str) -> Result<bool> {
    let attributes = json!({"verb": verb, "group": group, "resource": resource, "namespace": namespace});
    let review = json!({"metadata": {}, "spec": {"user": ACCOUNT, "resourceAttributes": attributes}});
    let reviews = Api::<SubjectAccessReview>::all(bed.client().await?);
    let answer = reviews.create(&PostParams::default(), &serde_json::from_value(review)?).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

/// What a tenant has: one object each of the kinds that most have, and one of a kind that only a CRD knows.
async fn fill(shop: &Tenant<'_>) -> Result<()> {
    let labels = json!({"app": "web"});
    let pod =
        json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}});
    shop.create::<ConfigMap>("prices", json!({"data": {"tea": "3"}})).await?;
    shop.create::<Secret>("till", json!({"stringData": {"pin": "1234"}})).await?;
    shop.create::<ServiceAccount>("clerk", json!({})).await?;
    shop.create::<Service>("front", json!({"spec": {"ports": [{"port": 80}]}})).await?;
    let spec = json!({"spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": pod}});
    shop.create::<Deployment>("web", spec).await?;
    let size = json!({"requests": {"storage": "1Gi"}});
    let claim =
        json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": size, "storageClassName": "none"}});
    shop.create::<PersistentVolumeClaim>("data", claim).await.map(drop)
}

async fn lose(shop: &Tenant<'_>) -> Result<()> {
    shop.delete::<ConfigMap>("prices").await?;
    shop.delete::<Secret>("till").await?;
    shop.delete::<Service>("front").await?;
    shop.delete::<ServiceAccount>("clerk").await?;
    shop.delete::<Deployment>("web").await?;
    shop.gone::<Deployment>("web").await
}

/// What the API server refused Velero.
pub(crate) fn refused(requests: &Requests) -> Vec<String> {
    let refused = requests.only(|request| request.user == ACCOUNT && request.code == 403);
    refused.tally().into_keys().collect()
}

/// What Velero needs for CSI snapshots and bound claims alone. `csi` shows that it uses each of these.
pub(crate) const OF_SNAPSHOTS: [&str; 5] = [
    "persistentvolumes",
    "storageclasses",
    "volumesnapshotcontents",
    "volumesnapshotclasses",
    "volumesnapshots",
];

/// What data movers alone need. Velero's node agent lists it when it accepts a DataUpload, to run the data mover where the
/// claim's volume is attached (`GetPVCAttachingNodeOS`). `node/moved.rs` shows that it does.
const OF_DATA_MOVERS: [&str; 1] = ["volumeattachments"];

/// A kind that only a CRD knows.
const KIND: &str = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n\
    metadata: {name: widgets.example.com}\nspec:\n  group: example.com\n  scope: Namespaced\n  \
    names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}\n  \
    versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]\n";

/// An object of it, and a role in all namespaces for a service account, for which Velero looks.
const MORE: &str = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: one, namespace: shop}\n---\n\
    apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: clerk}\n\
    roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}\n\
    subjects: [{kind: ServiceAccount, name: clerk, namespace: shop}]\n";

/// The resources of the role for all namespaces that were never asked for.
async fn unused(bed: &Bed, requests: &Requests) -> Result<Vec<String>> {
    let role = Api::<ClusterRole>::all(bed.client().await?).get("nacre:velero").await?;
    let resources = role.rules.into_iter().flatten().flat_map(|rule| rule.resources.unwrap_or_default());
    let used = |resource: &String| {
        let of_velero = requests.only(|request| request.user == ACCOUNT && request.resource == *resource);
        !of_velero.is_empty()
    };
    let elsewhere = |one: &str| OF_SNAPSHOTS.contains(&one) || OF_DATA_MOVERS.contains(&one);
    Ok(resources.filter(|one| !elsewhere(one) && !used(one)).collect())
}

/// The verbs of the role for tenants' namespaces that Velero neither used there nor needs to bring Roles back: it cannot give
/// what it has not, and a tenant's Role can have every verb that the cluster's role `admin` has.
async fn unneeded_verbs(bed: &Bed, requests: &Requests) -> Result<Vec<String>> {
    let roles = Api::<ClusterRole>::all(bed.client().await?);
    let verbs = async |role: &str| {
        let granted = roles.get(role).await?.rules.into_iter().flatten();
        anyhow::Ok(granted.flat_map(|rule| rule.verbs).collect::<BTreeSet<_>>())
    };
    let of_admins = verbs("admin").await?;
    let used = |verb: &String| {
        let of_velero = |request: &bed::Request| request.user == ACCOUNT && request.namespace == "shop";
        !requests.only(|request| of_velero(request) && request.verb == *verb).is_empty()
    };
    let all = verbs("nacre:velero-tenant").await?;
    ensure!(all.contains("create"), "{all:?}");
    Ok(all.into_iter().filter(|verb| !of_admins.contains(verb) && !used(verb)).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn backups_and_restores_work_without_cluster_admin_and_no_permission_is_missing() -> Result<()> {
    let cluster = fenced_velero(Bed::builder().audit_reads(), &[]).await?;
    let bed = &cluster.bed;
    ensure!(!velero_may(bed, "create", "", "namespaces", "").await?, "Velero is still cluster-admin");
    ensure!(!velero_may(bed, "get", "", "secrets", "kube-system").await?, "Velero reads other namespaces");
    // What Velero does when it starts belongs to it.
    bed.velero_stop()?;
    let mark = bed.audit().mark().await?;
    bed.velero_start().await?;
    let _nacre = cluster.start_nacre_in(&cluster.account().await?, &[("FENCE", "true")]).await?;
    let shop = cluster.tenant("shop", "ada").await?;
    fill(&shop).await?;
    bed.apply_yaml(MORE).await?;

    shop.back_up("daily").await?;
    assert_eq!(shop.backup_ends("daily").await?, "Completed");
    let backup = shop.api::<NonAdminBackup>().get("daily").await?;
    let velero = backup.status.and_then(|status| status.velero_backup?.status).context("Velero's status")?;
    let velero = serde_json::to_value(velero)?;
    ensure!(velero["warnings"].is_null() && velero["errors"].is_null(), "{velero}");
    lose(&shop).await?;
    shop.restore("back", "daily").await?;
    assert_eq!(shop.restore_ends("back").await?, "Completed");
    assert_eq!(shop.api::<ConfigMap>().get("prices").await?.data.unwrap_or_default()["tea"], "3");
    shop.api::<Secret>().get("till").await?;
    shop.api::<Deployment>().get("web").await?;

    let requests = bed.audit().since(mark).await?;
    assert_eq!(refused(&requests), [""; 0], "Velero needs more than it may");
    assert_eq!(unused(bed, &requests).await?, [""; 0], "Velero may more than it needs");
    assert_eq!(
        unneeded_verbs(bed, &requests).await?,
        [""; 0],
        "Velero may more than it needs in tenants' namespaces"
    );

    // A namespace that the policy closes is not Velero's any more.
    ensure!(velero_may(bed, "get", "", "secrets", "shop").await?, "the namespace is open");
    cluster.set_policy("namespaces: {excluded: [shop]}").await?;
    eventually("Velero to lose its permissions", TIMEOUT, async || {
        ensure!(!velero_may(bed, "get", "", "secrets", "shop").await?, "they are still there");
        Ok(())
    })
    .await?;
    let bindings = Api::<RoleBinding>::namespaced(bed.client().await?, "shop");
    ensure!(bindings.get_opt("nacre-velero").await?.is_none(), "its RoleBinding is gone");
    Ok(())
}

/// The kinds that a Velero which is cluster-admin can list, and a Velero for tenants cannot list in a tenant's namespace,
/// would make every backup PartiallyFailed.
#[tokio::test(flavor = "multi_thread")]
async fn velero_may_list_every_kind_that_the_cluster_serves_in_a_tenants_namespace() -> Result<()> {
    let cluster = fenced_velero(Bed::builder(), &[]).await?;
    let _nacre = cluster.start_nacre_in(&cluster.account().await?, &[("FENCE", "true")]).await?;
    cluster.tenant("shop", "ada").await?;
    let bindings = Api::<RoleBinding>::namespaced(cluster.bed.client().await?, "shop");
    eventually("Velero to be bound", TIMEOUT, async || bindings.get("nacre-velero").await.map(drop)).await?;
    let velero = cluster.bed.service_account_client(VELERO, "velero").await?;
    let served = kube::discovery::Discovery::new(velero.clone()).run().await?;
    let mut asked = 0;
    for (resource, capabilities) in served.groups().flat_map(kube::discovery::ApiGroup::recommended_resources)
    {
        let namespaced = capabilities.scope == kube::discovery::Scope::Namespaced;
        if namespaced && capabilities.supports_operation("list") {
            let api = Api::<DynamicObject>::namespaced_with(velero.clone(), "shop", &resource);
            api.list(&kube::api::ListParams::default()).await.with_context(|| resource.plural.clone())?;
            asked += 1;
        }
    }
    ensure!(asked > 30, "only {asked} kinds are served");
    Ok(())
}

/// Takes every admission policy of nacre's away.
async fn without_admission(bed: &Bed) -> Result<()> {
    let bindings = Api::<ValidatingAdmissionPolicyBinding>::all(bed.client().await?);
    for binding in bindings.list(&kube::api::ListParams::default()).await? {
        bindings.delete(&binding.name_any(), &DeleteParams::default()).await?;
    }
    let velero = bed.service_account_client(VELERO, "velero").await?;
    let role = json!({"metadata": {"name": "probe"}, "rules": []});
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("rbac.authorization.k8s.io", "v1", "Role"));
    let roles = Api::<DynamicObject>::namespaced_with(velero, "shop", &kind);
    let mut probe: DynamicObject = serde_json::from_value(role)?;
    probe.types = Some(kube::core::TypeMeta {
        api_version: "rbac.authorization.k8s.io/v1".to_owned(),
        kind: "Role".to_owned(),
    });
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    eventually("the policies to be gone", TIMEOUT, async || roles.create(&dry, &probe).await.map(drop)).await
}

/// What of a forged backup is not in the tenant's own namespace.
const OUTSIDE: [&str; 4] = ["ClusterRoleBinding", "PersistentVolume", "Namespace", "labels of the namespace"];

/// planted: Velero is cluster-admin again
#[tokio::test(flavor = "multi_thread")]
async fn a7_a9_a14_a_velero_for_tenants_creates_nothing_outside_their_namespace_even_without_admission()
-> Result<()> {
    let cluster = fenced_velero(Bed::builder(), &[]).await?;
    let client = cluster.bed.client().await?;
    let nacre = cluster.start_nacre_in(&cluster.account().await?, &[("FENCE", "true")]).await?;
    let shop = cluster.tenant("shop", "ada").await?;
    tenant_storage(&cluster, &shop).await?;
    shop.create::<ConfigMap>("prices", json!({"data": {"tea": "3"}})).await?;
    let (backup, contents) = genuine_backup(&cluster, &shop).await?;
    shop.delete::<ConfigMap>("prices").await?;
    drop((nacre, shop));
    let uid = Api::<Namespace>::all(client.clone()).get("shop").await?.uid().context("a uid")?;
    let fenced = Fenced::on(cluster, backup, uid).await?;
    forge(&contents)?;

    // The Restore is wide open, as if every filter of nacre's had failed.
    fenced.restore(RestoredFrom::TenantStorage, &fenced.backup).await?;
    assert_eq!(forged::arrived(&client).await?, [""; 0]);
    fenced.shop().await?.api::<ConfigMap>().get("prices").await.context("the innocent part")?;

    // As if the policies had failed too: RBAC alone.
    without_admission(&fenced.cluster.bed).await?;
    fenced.restore(RestoredFrom::TenantStorage, &fenced.backup).await?;
    let arrived = forged::arrived(&client).await?;
    ensure!(!arrived.iter().any(|one| OUTSIDE.contains(one)), "{arrived:?}");
    ensure!(!arrived.contains(&"RoleBinding"), "Velero gives more than it has: {arrived:?}");
    ensure!(arrived.contains(&"Pod"), "the forgery is a good one: {arrived:?}");

    // The planted weakness: Velero is cluster-admin again.
    let binding = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: weakness}\n\
                   roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\n\
                   subjects: [{kind: ServiceAccount, name: velero, namespace: velero}]\n";
    fenced.cluster.bed.apply_yaml(binding).await?;
    fenced.restore(RestoredFrom::TenantStorage, &fenced.backup).await?;
    let arrived = forged::arrived(&client).await?;
    ensure!(arrived.contains(&"ClusterRoleBinding"), "the forgery is a good one: {arrived:?}");
    Ok(())
}

fn forge(contents: &Path) -> Result<()> {
    let tarball = crate::tarball::Tarball::open(contents)?;
    forged::forge(&tarball)?;
    tarball.save()
}
