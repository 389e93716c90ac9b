//! The fence around what Velero creates for tenants, with real Velero. Each attack fails with it, and the same steps
//! succeed without it.

pub(crate) mod cluster;
pub(crate) mod finished;

use anyhow::{Context, Result, ensure};
use api::RestoredFrom;
use bed::{Bed, wait_until};
use e2e::{TestCluster, VELERO, refused_by};
use k8s_openapi::api::core::v1::{
    ConfigMap, Namespace, PersistentVolumeClaim, Pod, SecurityContext, Service, ServiceAccount,
};
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use self::cluster::{Fenced, TIMEOUT, reported};
use crate::forged::{self, in_shop};
use crate::tarball::Tarball;

const NAMESPACE: (&str, &str, &str) = ("", "v1", "Namespace");
const SNAPSHOT: (&str, &str, &str) = ("snapshot.storage.k8s.io", "v1", "VolumeSnapshot");

/// Kinds with sources, as CDI and KubeVirt have them, in brief.
pub(crate) const SOURCES: &str = include_str!("sources.yaml");
pub(crate) const SNAPSHOTS: &str = include_str!("../snapshots.yaml");
pub(crate) const MIGRATION: &str = include_str!("../migration.yaml");

/// A backup in the cluster's own storage of a namespace, made by an administrator.
async fn platform_backup(cluster: &TestCluster, name: &str, namespace: &str) -> Result<()> {
    let backup = json!({"apiVersion": "velero.io/v1", "kind": "Backup", "metadata": {"name": name, "namespace": VELERO},
        "spec": {"includedNamespaces": [namespace]}});
    let backups = cluster.bed.velero_api("Backup").await?;
    backups.create(&PostParams::default(), &serde_json::from_value(backup)?).await?;
    let phase = wait_until("the backup to end", TIMEOUT, backups, name, |backup| {
        let status = &backup?.data["status"];
        status["completionTimestamp"].as_str().and_then(|_| status["phase"].as_str().map(str::to_owned))
    })
    .await?;
    ensure!(phase == "Completed", "the backup ended as {phase}");
    Ok(())
}

/// Something that passes every filter of Velero's, in a namespace that does not exist, and that namespace.
fn forge_a_namespace(tarball: &Tarball) -> Result<()> {
    let upload = json!({"apiVersion": "velero.io/v2alpha1", "kind": "DataUpload",
        "metadata": {"name": "x", "namespace": "newns"}, "spec": {}, "status": {"phase": "Completed"}});
    tarball.add("datauploads.velero.io", &upload)?;
    let labels = json!({"pod-security.kubernetes.io/enforce": "privileged"});
    tarball.add_cluster(
        "namespaces",
        &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "newns", "labels": labels}}),
    )
}

/// H3: forged tarball: a new namespace with labels of the tenant's choice
/// planted: the policies around Velero are not in force
#[tokio::test(flavor = "multi_thread")]
async fn h3_no_namespace_comes_out_of_a_tenants_backup_and_administrators_still_recover_theirs() -> Result<()>
{
    let fenced = Fenced::prepare(Bed::builder().with_idle_velero(), &[]).await?;
    fenced.fence_is_there().await?;
    fenced.forge(forge_a_namespace)?;
    for from in RestoredFrom::ALL {
        reported(&fenced.restore(from, &fenced.backup).await?)?;
        ensure!(!fenced.has(NAMESPACE, "", "newns").await?, "Velero made a namespace for a tenant");
    }

    // Disaster recovery with the same fence: the namespace and all in it is gone, and comes back.
    fenced.cluster.bed.namespace("accounts").await?;
    let maps = Api::<ConfigMap>::namespaced(fenced.client.clone(), "accounts");
    let map = serde_json::from_value(json!({"metadata": {"name": "ledger"}, "data": {"a": "1"}}))?;
    maps.create(&PostParams::default(), &map).await?;
    let grants = json!({"metadata": {"name": "grant"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole", "name": "view"}, "subjects": []});
    let bindings = Api::<RoleBinding>::namespaced(fenced.client.clone(), "accounts");
    bindings.create(&PostParams::default(), &serde_json::from_value(grants)?).await?;
    platform_backup(&fenced.cluster, "nightly", "accounts").await?;
    let namespaces = Api::<Namespace>::all(fenced.client.clone());
    namespaces.delete("accounts", &DeleteParams::default()).await?;
    wait_until("the namespace to be gone", TIMEOUT, namespaces, "accounts", |space| {
        space.is_none().then_some(())
    })
    .await?;
    let phase = fenced.restore_as_administrator("recover", json!({"backupName": "nightly"})).await?;
    assert_eq!(phase, "Completed");
    maps.get("ledger").await.context("the administrator's object")?;
    bindings.get("grant").await.context("the administrator's binding")?;

    fenced.take_the_fence_away().await?;
    fenced.restore(RestoredFrom::TenantStorage, &fenced.backup).await?;
    let made = Api::<Namespace>::all(fenced.client.clone())
        .get("newns")
        .await
        .context("the forgery is a good one")?;
    assert_eq!(
        made.metadata
            .labels
            .unwrap_or_default()
            .get("pod-security.kubernetes.io/enforce")
            .map(String::as_str),
        Some("privileged")
    );
    Ok(())
}

/// A kind that has the plural of one of Kubernetes' own, in another group.
const DISGUISE: &str = include_str!("disguise.yaml");

/// A token of a service account; and an object of one group in the folder of another, since Velero takes the group from
/// the object.
fn forge_credentials(tarball: &Tarball) -> Result<()> {
    let mut token = in_shop("v1", "Secret", "token", &json!({"type": "kubernetes.io/service-account-token"}));
    token["metadata"]["annotations"] = json!({"kubernetes.io/service-account.name": "default"});
    tarball.add("secrets", &token)?;
    let rbac = "rbac.authorization.k8s.io";
    let role = json!({"kind": "ClusterRole", "name": "cluster-admin", "apiGroup": rbac});
    let subjects = json!([{"kind": "User", "name": "ada", "apiGroup": rbac}]);
    let binding = in_shop(
        &format!("{rbac}/v1"),
        "RoleBinding",
        "disguised",
        &json!({"roleRef": role, "subjects": subjects}),
    );
    tarball.add("rolebindings.disguise.example.com", &binding)
}

/// What of these arrived.
async fn credentials_arrived(fenced: &Fenced) -> Result<[bool; 2]> {
    let token = fenced.has(("", "v1", "Secret"), "shop", "token").await?;
    let binding = fenced.has(("rbac.authorization.k8s.io", "v1", "RoleBinding"), "shop", "disguised").await?;
    Ok([token, binding])
}

/// A16: forged tarball: service account tokens
/// H13: forged tarball: a RoleBinding in the folder of another group's kind
/// planted: the policies around Velero are not in force
#[tokio::test(flavor = "multi_thread")]
async fn a16_h13_neither_tokens_nor_a_disguised_kind_pass_the_fence() -> Result<()> {
    let fenced = Fenced::prepare(Bed::builder().with_idle_velero(), &[DISGUISE]).await?;
    fenced.fence_is_there().await?;
    fenced.forge(forge_credentials)?;
    reported(&fenced.restore(RestoredFrom::TenantStorage, &fenced.backup).await?)?;
    assert_eq!(credentials_arrived(&fenced).await?, [false, false]);
    fenced.shop().await?.api::<ConfigMap>().get("prices").await.context("the innocent part")?;

    fenced.take_the_fence_away().await?;
    fenced.restore(RestoredFrom::TenantStorage, &fenced.backup).await?;
    assert_eq!(credentials_arrived(&fenced).await?, [true, true], "the forgery is a good one");
    Ok(())
}

/// planted: the policies around Velero are not in force
#[tokio::test(flavor = "multi_thread")]
async fn a7_a8_a9_a12_a13_a14_a15_g1_of_a_forged_backup_only_the_innocent_part_passes_the_fence() -> Result<()>
{
    let bed = Bed::builder().with_idle_velero().api_server_flag("--allow-privileged=true");
    let fenced = Fenced::prepare(bed, &[MIGRATION]).await?;
    fenced.fence_is_there().await?;
    fenced.forge(forged::forge)?;
    reported(&fenced.restore(RestoredFrom::TenantStorage, &fenced.backup).await?)?;
    assert_eq!(forged::arrived(&fenced.client).await?, [""; 0]);
    let shop = fenced.shop().await?;
    shop.api::<ConfigMap>().get("prices").await.context("the innocent part")?;
    shop.api::<PersistentVolumeClaim>().get("data").await?;

    fenced.take_the_fence_away().await?;
    forged::drop_claim(&shop, &fenced.client).await?;
    fenced.restore(RestoredFrom::TenantStorage, &fenced.backup).await?;
    let arrived = forged::arrived(&fenced.client).await?;
    for expected in [
        "ClusterRoleBinding",
        "RoleBinding",
        "Pod",
        "PersistentVolume",
        "Migration",
        "NonAdminBackup",
        "ResourceQuota",
        "Namespace",
        "elsewhere",
        "the address of a service",
    ] {
        assert!(arrived.contains(&expected), "{expected} is not in {arrived:?}");
    }
    shop.api::<Service>().get("front").await?;
    Ok(())
}

/// Init containers in a Restore's hooks: nacre passes none on, and the API server lets none through.
/// planted: the policies around Velero are not in force
#[tokio::test(flavor = "multi_thread")]
async fn b1_a_hook_adds_no_privileged_init_container_to_a_restored_pod() -> Result<()> {
    let bed = Bed::builder().with_idle_velero().api_server_flag("--allow-privileged=true");
    let fenced = Fenced::prepare(bed, &[]).await?;
    fenced.fence_is_there().await?;
    let plain = json!({"spec": {"containers": [{"name": "web", "image": "web"}]}});
    fenced.forge(|tarball| tarball.add("pods", &in_shop("v1", "Pod", "web", &plain)))?;
    let init =
        json!({"name": "hook", "image": "any", "command": ["any"], "securityContext": {"privileged": true}});
    let hook = json!({"name": "h", "postHooks": [{"init": {"initContainers": [init]}}]});
    let spec =
        json!({"backupName": fenced.backup, "includedNamespaces": ["shop"], "hooks": {"resources": [hook]}});
    let pods = Api::<Pod>::namespaced(fenced.client.clone(), "shop");
    let attempt =
        async || fenced.attempt(RestoredFrom::TenantStorage, spec.clone(), TIMEOUT).await?.context("stuck");

    let ended = attempt().await?;
    reported(ended.data["status"]["phase"].as_str().unwrap_or_default())?;
    ensure!(pods.get_opt("web").await?.is_none(), "a privileged pod");
    fenced.shop().await?.api::<ConfigMap>().get("prices").await.context("the innocent part")?;

    fenced.take_the_fence_away().await?;
    attempt().await?;
    let pod = pods.get("web").await.context("the planted weakness")?;
    let init = pod.spec.and_then(|spec| spec.init_containers).unwrap_or_default();
    let privileged = |context: &SecurityContext| context.privileged == Some(true);
    ensure!(
        init.iter().any(|one| one.security_context.as_ref().is_some_and(privileged)),
        "the hook is a good one: {init:?}"
    );
    Ok(())
}

/// A15: a container that is added to a restored pod later, with more than Pod Security level baseline allows
/// planted: the policies around Velero are not in force
#[tokio::test(flavor = "multi_thread")]
async fn a15_velero_adds_no_privileged_container_to_a_restored_pod() -> Result<()> {
    let bed = Bed::builder().with_idle_velero().api_server_flag("--allow-privileged=true");
    let fenced = Fenced::prepare(bed, &[]).await?;
    fenced.fence_is_there().await?;
    let velero = fenced.cluster.bed.service_account_client(VELERO, "velero").await?;
    let pods = Api::<Pod>::namespaced(velero, "shop");
    let labels = json!({"velero.io/restore-name": fenced.upcoming(RestoredFrom::TenantStorage)});
    let pod = json!({"metadata": {"name": "web", "labels": labels},
        "spec": {"containers": [{"name": "web", "image": "web"}]}});
    pods.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
    let add = async |privileged: bool| {
        let added = json!({"name": format!("added-{privileged}"), "image": "any",
            "securityContext": {"privileged": privileged}});
        let change = Patch::Strategic(json!({"spec": {"ephemeralContainers": [added]}}));
        pods.patch_ephemeral_containers("web", &PatchParams::default(), &change).await
    };
    refused_by("nacre-restored-pods", add(true).await)?;
    add(false).await.context("a container at baseline")?;

    fenced.take_the_fence_away().await?;
    let changed = add(true).await.context("the planted weakness")?;
    let added = changed.spec.and_then(|spec| spec.ephemeral_containers).unwrap_or_default();
    assert_eq!(added.len(), 2, "{added:?}");
    Ok(())
}

/// A Deployment without replicas, whose pods would have a claim with a source.
fn with_claim(namespace: &str) -> Value {
    let source =
        json!({"apiGroup": "", "kind": "PersistentVolumeClaim", "name": "disk", "namespace": namespace});
    let claim = json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
        "dataSourceRef": source}});
    let labels = json!({"app": "x"});
    json!({"replicas": 0, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {
        "containers": [{"name": "x", "image": "x"}],
        "volumes": [{"name": "d", "ephemeral": {"volumeClaimTemplate": claim}}]}}})
}

/// Objects with a source in another namespace, by resource, kind and spec.
fn with_sources(namespace: &str) -> Vec<(&'static str, (&'static str, &'static str, &'static str), Value)> {
    let disk = json!({"source": {"pvc": {"namespace": namespace, "name": "disk"}}});
    vec![
        ("datavolumes.cdi.kubevirt.io", ("cdi.kubevirt.io", "v1beta1", "DataVolume"), disk.clone()),
        ("datasources.cdi.kubevirt.io", ("cdi.kubevirt.io", "v1beta1", "DataSource"), disk.clone()),
        (
            "virtualmachines.kubevirt.io",
            ("kubevirt.io", "v1", "VirtualMachine"),
            json!({"dataVolumeTemplates": [{"metadata": {"name": "d"}, "spec": disk}]}),
        ),
        ("deployments.apps", ("apps", "v1", "Deployment"), with_claim(namespace)),
    ]
}

/// H1: a restored DataVolume, DataSource or VirtualMachine whose disk is another tenant's
/// planted: the policies around Velero are not in force
#[tokio::test(flavor = "multi_thread")]
async fn h1_no_restored_object_takes_its_data_from_another_namespace() -> Result<()> {
    let fenced = Fenced::prepare(Bed::builder().with_idle_velero(), &[SOURCES, SNAPSHOTS]).await?;
    fenced.fence_is_there().await?;
    fenced.cluster.bed.namespace("victim").await?;
    fenced.cluster.bed.namespace("images").await?;
    // Disks in this namespace are for everybody, as golden images are.
    fenced.cluster.bed.apply_yaml(include_str!("images.yaml")).await?;
    let from = [("stolen", "victim"), ("own", "shop"), ("image", "images")];
    fenced.forge(|tarball| {
        for (name, namespace) in from {
            for (resource, (group, version, kind), spec) in with_sources(namespace) {
                let object = in_shop(&format!("{group}/{version}"), kind, name, &json!({"spec": spec}));
                tarball.add(resource, &object)?;
            }
        }
        let content = json!({"spec": {"source": {"volumeSnapshotContentName": "loot"}}});
        let (group, version, kind) = SNAPSHOT;
        let snapshot = in_shop(&format!("{group}/{version}"), kind, "stolen", &content);
        tarball.add("volumesnapshots.snapshot.storage.k8s.io", &snapshot)
    })?;
    for storage in RestoredFrom::ALL {
        reported(&fenced.restore(storage, &fenced.backup).await?)?;
        for (_, kind, _) in with_sources("victim") {
            ensure!(!fenced.has(kind, "shop", "stolen").await?, "{kind:?} with a stolen disk came back");
            ensure!(fenced.has(kind, "shop", "own").await?, "{kind:?} with an own disk did not come back");
            // Kubernetes itself has nobody to ask whether a claim's source is for everybody.
            ensure!(
                fenced.has(kind, "shop", "image").await? != (kind.0 == "apps"),
                "{kind:?} with a disk for everybody"
            );
        }
        ensure!(!fenced.has(SNAPSHOT, "shop", "stolen").await?, "a snapshot of a stolen disk came back");
    }
    fenced.take_the_fence_away().await?;
    fenced.restore(RestoredFrom::TenantStorage, &fenced.backup).await?;
    for (_, kind, _) in with_sources("victim") {
        ensure!(fenced.has(kind, "shop", "stolen").await?, "the forgery of {kind:?} is not a good one");
    }
    ensure!(fenced.has(SNAPSHOT, "shop", "stolen").await?, "the forged snapshot is not a good one");
    Ok(())
}

/// X3: forged tarball: additions to a service account of another namespace, which Velero makes to accounts that exist
/// planted: the policies around Velero are not in force
#[tokio::test(flavor = "multi_thread")]
async fn x3_a_tenants_restore_changes_no_service_account_elsewhere() -> Result<()> {
    let fenced = Fenced::prepare(Bed::builder().with_idle_velero(), &[]).await?;
    fenced.fence_is_there().await?;
    fenced.cluster.bed.namespace("victim").await?;
    let added = json!({"imagePullSecrets": [{"name": "planted"}]});
    fenced.forge(|tarball| {
        for namespace in ["shop", "victim"] {
            let mut account = in_shop("v1", "ServiceAccount", "default", &added);
            account["metadata"]["namespace"] = json!(namespace);
            tarball.add("serviceaccounts", &account)?;
        }
        Ok(())
    })?;
    let has_it = async |namespace: &str| {
        let accounts = Api::<ServiceAccount>::namespaced(fenced.client.clone(), namespace);
        let account =
            wait_until("the account", TIMEOUT, accounts, "default", |found| Some(found?.clone())).await?;
        anyhow::Ok(account.image_pull_secrets.is_some_and(|secrets| !secrets.is_empty()))
    };
    ensure!(!has_it("victim").await?);
    fenced.restore(RestoredFrom::TenantStorage, &fenced.backup).await?;
    ensure!(!has_it("victim").await?, "Velero changed somebody else's account");
    ensure!(has_it("shop").await?, "the tenant's own is the tenant's");

    fenced.take_the_fence_away().await?;
    fenced.restore(RestoredFrom::TenantStorage, &fenced.backup).await?;
    ensure!(has_it("victim").await?, "the forgery is a good one");
    Ok(())
}

/// X4: forged tarball: an object in the folder of another kind, so that Velero's cache waits for a kind that does not exist
/// for ever, and everybody's restores with it
/// planted: Velero with its cache
#[tokio::test(flavor = "multi_thread")]
async fn x4_without_its_cache_velero_waits_for_no_kind_that_does_not_exist() -> Result<()> {
    for (flag, ends) in [("--disable-informer-cache=true", true), ("--disable-informer-cache=false", false)] {
        let fenced = Fenced::prepare(Bed::builder().with_idle_velero().velero_flag(flag), &[]).await?;
        fenced.forge(|tarball| {
            tarball.add("configmaps", &in_shop("batch/v1", "Job", "odd", &json!({"data": {"a": "b"}})))
        })?;
        let spec = json!({"backupName": fenced.backup, "includedNamespaces": ["shop"], "includedResources": ["configmaps"]});
        // The planted weakness is the other way round: with its cache Velero is still waiting.
        let within = if ends { TIMEOUT } else { TIMEOUT / 6 };
        let ended = fenced.attempt(RestoredFrom::TenantStorage, spec, within).await?;
        assert_eq!(ended.is_some(), ends, "{flag}");
    }
    Ok(())
}

/// A snapshot of somebody else's disk that says it was made by this backup.
fn forge_a_snapshot(backup: &str, tarball: &Tarball) -> Result<()> {
    let content = json!({"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotContent",
        "metadata": {"name": "loot", "uid": "u", "labels": {"velero.io/backup-name": backup}},
        "spec": {"driver": "disk.example.com", "deletionPolicy": "Delete", "source": {"volumeHandle": "v"},
            "volumeSnapshotRef": {"namespace": "victim", "name": "nightly"}},
        "status": {"snapshotHandle": "somebody-elses-disk", "readyToUse": true}});
    tarball.add_cluster("volumesnapshotcontents.snapshot.storage.k8s.io", &content)
}

/// Deletes a backup with its data, and returns what became of the snapshots that Velero wanted to create for it.
async fn deleted(fenced: &Fenced, backup: &str) -> Result<Vec<u16>> {
    let mark = fenced.cluster.bed.audit().mark().await?;
    let request = json!({"apiVersion": "velero.io/v1", "kind": "DeleteBackupRequest",
        "metadata": {"name": format!("delete-{backup}").chars().take(60).collect::<String>(), "namespace": VELERO},
        "spec": {"backupName": backup}});
    let requests = fenced.cluster.bed.velero_api("DeleteBackupRequest").await?;
    requests.create(&PostParams::default(), &serde_json::from_value(request)?).await?;
    let backups = fenced.cluster.bed.velero_api("Backup").await?;
    wait_until("the backup to be gone", TIMEOUT, backups, backup, |found| found.is_none().then_some(()))
        .await?;
    let seen = fenced.cluster.bed.audit().since(mark).await?;
    let created = seen
        .only(|request| request.verb == "create" && request.resource.starts_with("volumesnapshotcontents"));
    Ok(created.as_slice().iter().map(|request| request.code).collect())
}

/// H4: forged tarball: another tenant's snapshot, deleted with the backup that names it
#[tokio::test(flavor = "multi_thread")]
async fn a10_h4_neither_restore_nor_deletion_of_a_tenants_backup_touches_anybodys_snapshot() -> Result<()> {
    let bed = Bed::builder().with_idle_velero().velero_flag("--features=EnableCSI");
    let fenced = Fenced::prepare(bed, &[SNAPSHOTS]).await?;
    fenced.fence_is_there().await?;
    fenced.forge(forged::forge_snapshots)?;
    fenced.forge(|tarball| forge_a_snapshot(&fenced.backup, tarball))?;
    fenced.restore(RestoredFrom::TenantStorage, &fenced.backup).await?;
    assert_eq!(forged::snapshots_arrived(&fenced.client).await?, [""; 0]);
    assert_eq!(deleted(&fenced, &fenced.backup).await?, [403], "Velero tried, and the API server refused");

    // A snapshot of a backup in the cluster's own storage still goes.
    fenced.cluster.bed.namespace("accounts").await?;
    platform_backup(&fenced.cluster, "nightly", "accounts").await?;
    let store = fenced.cluster.bed.store()?;
    let contents = store.path(bed::BUCKET, "backups/nightly/nightly.tar.gz");
    let tarball = Tarball::open(&contents)?;
    forge_a_snapshot("nightly", &tarball)?;
    tarball.save()?;
    assert_eq!(deleted(&fenced, "nightly").await?, [201]);
    Ok(())
}

/// planted: the policies around Velero are not in force
#[tokio::test(flavor = "multi_thread")]
async fn h4_without_the_fence_a_tenants_backup_deletes_anybodys_snapshot() -> Result<()> {
    let bed = Bed::builder().with_idle_velero().velero_flag("--features=EnableCSI");
    let fenced = Fenced::prepare(bed, &[SNAPSHOTS]).await?;
    fenced.forge(|tarball| forge_a_snapshot(&fenced.backup, tarball))?;
    fenced.take_the_fence_away().await?;
    assert_eq!(deleted(&fenced, &fenced.backup).await?, [201], "the planted weakness");
    Ok(())
}
