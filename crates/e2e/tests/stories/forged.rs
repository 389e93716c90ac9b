//! A forged tarball: a tenant rewrites a backup in its own bucket and restores it through real Velero. What would give
//! rights, lift limits or reach beyond the namespace does not come back; the innocent rest does.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use api::{Kind, NonAdminBackup, NonAdminRestore};
use bed::{Bed, wait_until};
use e2e::{Tenant, TestCluster, VELERO};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, PersistentVolumeClaim, Secret, Service};
use kube::api::{DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::downloads;
use crate::tarball::Tarball;

/// The tenant's bucket.
const BUCKET: &str = "tenants";
/// Tenants may bring storage, once an administrator has said yes; the bed's own store is on this machine.
pub(crate) const POLICY: &str =
    "storageLocations: {requireApproval: true, endpoints: {allow: [\"127.0.0.1\"]}}";
const TIMEOUT: std::time::Duration = std::time::Duration::from_secs(90);

/// Velero's word that whatever an object brings along comes back, whatever the filters say.
const MUST_INCLUDE: &str = "restore.velero.io/must-include-additional-items";

/// The tenant brings a bucket, and an administrator approves it.
pub(crate) async fn tenant_storage(test_cluster: &TestCluster, shop: &Tenant<'_>) -> Result<()> {
    test_cluster.set_policy(POLICY).await?;
    shop.keep_keys("keys", &test_cluster.bed.store()?.credentials()).await?;
    shop.bring_bucket("own", BUCKET, "keys").await?;
    test_cluster.decide(&shop.approval_pending("own").await?, "approve").await?;
    shop.location_available("own").await.map(drop)
}

/// A genuine backup in it. Returns what Velero calls it, and where its contents are.
pub(crate) async fn genuine_backup(
    test_cluster: &TestCluster,
    shop: &Tenant<'_>,
) -> Result<(String, PathBuf)> {
    let spec = json!({"spec": {"backupSpec": {"storageLocation": "own"}}});
    shop.create::<NonAdminBackup>("daily", spec).await?;
    let ended = shop.backup_ends("daily").await?;
    ensure!(ended == "Completed", "the backup ended as {ended}");
    let backup = shop.api::<NonAdminBackup>().get("daily").await?;
    let name = backup.status.and_then(|status| status.velero_backup?.name).context("a reference")?;
    let contents = test_cluster.bed.store()?.path(BUCKET, &format!("shop/backups/{name}/{name}.tar.gz"));
    Ok((name, contents))
}

pub(crate) fn in_shop(api_version: &str, kind: &str, name: &str, rest: &Value) -> Value {
    let mut object = json!({"apiVersion": api_version, "kind": kind});
    object["metadata"] = json!({"name": name, "namespace": "shop"});
    for (key, value) in rest.as_object().into_iter().flatten() {
        object[key] = value.clone();
    }
    object
}

fn web() -> Value {
    let labels = json!({"app": "web"});
    json!({"spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": {
        "metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}}})
}

fn claim() -> Value {
    let size = json!({"requests": {"storage": "1Gi"}});
    json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": size, "storageClassName": "none"}})
}

/// Deletes the claim, which nobody on the bed lets go of by itself.
pub(crate) async fn drop_claim(shop: &Tenant<'_>, client: &Client) -> Result<()> {
    shop.delete::<PersistentVolumeClaim>("data").await?;
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    let claims = Api::<PersistentVolumeClaim>::namespaced(client.clone(), "shop");
    claims.patch("data", &PatchParams::default(), &release).await?;
    shop.gone::<PersistentVolumeClaim>("data").await
}

/// Puts into the tarball what its owner may not have.
pub(crate) fn forge(tarball: &Tarball) -> Result<()> {
    let subjects = json!([{"kind": "User", "name": "ada", "apiGroup": "rbac.authorization.k8s.io"}]);
    let role =
        json!({"kind": "ClusterRole", "name": "cluster-admin", "apiGroup": "rbac.authorization.k8s.io"});
    let rbac = "rbac.authorization.k8s.io/v1";
    let binding = json!({"roleRef": role, "subjects": subjects});
    let cluster = |api_version: &str, kind: &str, name: &str, rest: &Value| {
        let mut object = in_shop(api_version, kind, name, rest);
        object["metadata"] = json!({"name": name});
        object
    };
    tarball.add_cluster(
        "clusterrolebindings.rbac.authorization.k8s.io",
        &cluster(rbac, "ClusterRoleBinding", "evil", &binding),
    )?;
    tarball.add("rolebindings.rbac.authorization.k8s.io", &in_shop(rbac, "RoleBinding", "evil", &binding))?;
    let container =
        json!({"name": "x", "image": "x", "securityContext": {"privileged": true}, "command": ["x"]});
    tarball.add("pods", &in_shop("v1", "Pod", "evil", &json!({"spec": {"containers": [container]}})))?;
    let volume = json!({"spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/"},
        "persistentVolumeReclaimPolicy": "Retain", "storageClassName": "none",
    }});
    tarball.add_cluster("persistentvolumes", &cluster("v1", "PersistentVolume", "evil", &volume))?;
    // A claim that is bound to it, and says that it must come along.
    let mut bound = in_shop("v1", "PersistentVolumeClaim", "data", &claim());
    bound["metadata"]["annotations"] = json!({MUST_INCLUDE: "true"});
    bound["spec"]["volumeName"] = json!("evil");
    bound["status"] = json!({"phase": "Bound"});
    tarball.add("persistentvolumeclaims", &bound)?;
    let migration = json!({"spec": {"vmiName": "vm"}});
    tarball.add(
        "virtualmachineinstancemigrations.kubevirt.io",
        &in_shop("kubevirt.io/v1", "VirtualMachineInstanceMigration", "evil", &migration),
    )?;
    // Requests that say they have got what they never asked for.
    let got = |spec: Value, field: &str| {
        json!({"spec": spec, "status": {"phase": "Created",
            field: {"nacuuid": "somebody-elses", "name": "somebody-elses"}}})
    };
    let location =
        json!({"backupStorageLocationSpec": {"provider": "aws", "objectStorage": {"bucket": "x"}}});
    for (kind, rest) in [
        (Kind::NonAdminBackup, got(json!({"backupSpec": {}}), "veleroBackup")),
        (Kind::NonAdminRestore, got(json!({"restoreSpec": {"backupName": "daily"}}), "veleroRestore")),
        (Kind::NonAdminBackupStorageLocation, got(location, "veleroBackupStorageLocation")),
        (
            Kind::NonAdminDownloadRequest,
            got(json!({"target": {"kind": "BackupLog", "name": "daily"}}), "velero"),
        ),
    ] {
        let resource = format!("{}.oadp.openshift.io", kind.plural());
        tarball.add(&resource, &in_shop(&kind.api_version(), kind.name(), "evil", &rest))?;
    }
    let quota = json!({"spec": {"hard": {"count/jobs.batch": "1000"}}});
    tarball.add("resourcequotas", &in_shop("v1", "ResourceQuota", "evil", &quota))?;
    // The own namespace with other labels, a new one, and something in Velero's.
    let labelled = |name: &str| {
        let mut object = cluster("v1", "Namespace", name, &json!({}));
        object["metadata"]["labels"] = json!({"pod-security.kubernetes.io/enforce": "privileged"});
        object
    };
    tarball.add_cluster("namespaces", &labelled("shop"))?;
    tarball.add_cluster("namespaces", &labelled("evil"))?;
    let mut elsewhere = in_shop("v1", "ConfigMap", "evil", &json!({"data": {"a": "b"}}));
    elsewhere["metadata"]["namespace"] = json!(VELERO);
    tarball.add("configmaps", &elsewhere)?;
    // A service that says it has somebody's address.
    let mut service = in_shop(
        "v1",
        "Service",
        "front",
        &json!({"spec": {"type": "LoadBalancer",
        "ports": [{"port": 80}]}, "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}}),
    );
    service["metadata"]["annotations"] = json!({"velero.io/restore-status": "true"});
    tarball.add("services", &service)
}

/// Makes room for another restore.
async fn empty(shop: &Tenant<'_>, client: &Client) -> Result<()> {
    drop_claim(shop, client).await?;
    shop.delete::<Service>("front").await?;
    shop.gone::<Service>("front").await
}

/// Restores the tarball as a careless administrator, and returns how it ended.
async fn unfenced(bed: &Bed, backup: &str, name: &str, more: Value) -> Result<String> {
    let mut spec =
        json!({"backupName": backup, "includeClusterResources": true, "includedNamespaces": ["shop"]});
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    let restore = json!({"apiVersion": "velero.io/v1", "kind": "Restore",
        "metadata": {"name": name, "namespace": VELERO}, "spec": spec});
    let restores = bed.velero_api("Restore").await?;
    restores.create(&PostParams::default(), &serde_json::from_value(restore)?).await?;
    wait_until("the restore to end", TIMEOUT, restores, name, |restore| {
        let status = &restore?.data["status"];
        status["completionTimestamp"].as_str().and_then(|_| status["phase"].as_str().map(str::to_owned))
    })
    .await
}

/// What of the forgery can be found by name: what to call it, its kind, and where it would be.
const FORGED: [(&str, &str, &str, &str, &str); 12] = [
    ("ClusterRoleBinding", "rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", ""),
    ("RoleBinding", "rbac.authorization.k8s.io", "v1", "RoleBinding", "shop"),
    ("Pod", "", "v1", "Pod", "shop"),
    ("PersistentVolume", "", "v1", "PersistentVolume", ""),
    ("Migration", "kubevirt.io", "v1", "VirtualMachineInstanceMigration", "shop"),
    ("NonAdminBackup", "oadp.openshift.io", "v1alpha1", "NonAdminBackup", "shop"),
    ("NonAdminRestore", "oadp.openshift.io", "v1alpha1", "NonAdminRestore", "shop"),
    ("location", "oadp.openshift.io", "v1alpha1", "NonAdminBackupStorageLocation", "shop"),
    ("download", "oadp.openshift.io", "v1alpha1", "NonAdminDownloadRequest", "shop"),
    ("ResourceQuota", "", "v1", "ResourceQuota", "shop"),
    ("Namespace", "", "v1", "Namespace", ""),
    ("elsewhere", "", "v1", "ConfigMap", VELERO),
];

/// What of the forgery is in the cluster.
pub(crate) async fn arrived(client: &Client) -> Result<Vec<&'static str>> {
    let mut arrived = Vec::new();
    for (what, group, version, kind, namespace) in FORGED {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let api: Api<DynamicObject> = match namespace {
            "" => Api::all_with(client.clone(), &resource),
            namespace => Api::namespaced_with(client.clone(), namespace, &resource),
        };
        if api.get_opt("evil").await?.is_some() {
            arrived.push(what);
        }
    }
    let shop = "shop";
    let own = Api::<Namespace>::all(client.clone()).get(shop).await?;
    if own.metadata.labels.is_some_and(|labels| labels.contains_key("pod-security.kubernetes.io/enforce")) {
        arrived.push("labels of the namespace");
    }
    let front = Api::<Service>::namespaced(client.clone(), shop).get_opt("front").await?;
    let address = front.and_then(|front| front.status?.load_balancer?.ingress);
    if address.is_some_and(|ingress| !ingress.is_empty()) {
        arrived.push("the address of a service");
    }
    Ok(arrived)
}

/// A7: forged tarball: a RoleBinding and a ClusterRoleBinding to `cluster-admin`
/// A8: quotas and limits that a restore would overwrite
/// A9: forged tarball: a PersistentVolume with a hostPath
/// A12: forged tarball: a KubeVirt live migration
/// A13: forged tarball: requests of nacre's kinds with a forged status
/// A14: forged tarball: Namespaces with labels
/// A15: forged tarball: a privileged pod
/// G1: a live migration in a restored backup
/// planted: a Restore without nacre's filters
#[tokio::test(flavor = "multi_thread")]
async fn a7_a8_a9_a12_a13_a14_a15_g1_of_a_forged_tarball_only_the_innocent_part_comes_back() -> Result<()> {
    // The forged pod is a good one: the API server would take it.
    let bed = Bed::builder().with_velero().api_server_flag("--allow-privileged=true");
    let test_cluster = TestCluster::build_on(bed).await?;
    test_cluster.bed.apply_yaml(include_str!("migration.yaml")).await?;
    let _nacre = test_cluster.start_nacre().await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    let client = test_cluster.bed.client().await?;
    tenant_storage(&test_cluster, &shop).await?;
    shop.create::<ConfigMap>("prices", json!({"data": {"tea": "3"}})).await?;
    shop.create::<Secret>("till", json!({"stringData": {"pin": "1234"}})).await?;
    shop.create::<Deployment>("web", web()).await?;
    shop.create::<PersistentVolumeClaim>("data", claim()).await?;
    let (backup, contents) = genuine_backup(&test_cluster, &shop).await?;
    // What is in storage of one's own can be fetched whole, whatever the policy says about the cluster's.
    downloads::ask(&shop, "all", "BackupContents", "daily").await?;
    ensure!(downloads::fetch(&downloads::link(&shop, "all").await?).await? == std::fs::read(&contents)?);

    shop.delete::<ConfigMap>("prices").await?;
    shop.delete::<Secret>("till").await?;
    shop.delete::<Deployment>("web").await?;
    drop_claim(&shop, &client).await?;
    shop.gone::<Deployment>("web").await?;
    let tarball = Tarball::open(&contents)?;
    forge(&tarball)?;
    tarball.save()?;

    // The tenant restores it, with nothing but the `admin` role.
    shop.restore("back", "daily").await?;
    let ended = shop.restore_ends("back").await?;
    // If Velero happens to follow the claim to its volume, nacre's modifier makes that an error.
    assert!(["Completed", "PartiallyFailed"].contains(&ended.as_str()), "{ended}");
    assert_eq!(arrived(&client).await?, [""; 0]);
    let prices = shop.api::<ConfigMap>().get("prices").await?;
    assert_eq!(prices.data.unwrap_or_default().get("tea").map(String::as_str), Some("3"));
    shop.api::<Secret>().get("till").await?;
    shop.api::<Deployment>().get("web").await?;
    shop.api::<Service>().get("front").await?;
    let data = shop.api::<PersistentVolumeClaim>().get("data").await?;
    assert_eq!(data.spec.context("a spec")?.volume_name, None, "the claim let go of its volume");

    // A request for what cannot be restored is refused, and creates nothing.
    let ask =
        json!({"spec": {"restoreSpec": {"backupName": "daily", "includedResources": ["rolebindings"]}}});
    shop.create::<NonAdminRestore>("more", ask).await?;
    let refusal = shop.restore_refused("more").await?;
    assert!(refusal.contains("\"rolebindings\" does not come back from your own storage"), "{refusal}");

    // nacre's modifier holds alone, should Velero take more than the filters say.
    empty(&shop, &client).await?;
    let modifier = json!({"kind": "ConfigMap", "name": "nacre-restore-from-tenant-storage"});
    // Namespaces are made before a modifier sees them; they are left out by name.
    let more = json!({"resourceModifier": modifier, "excludedResources": ["namespaces"]});
    let ended = unfenced(&test_cluster.bed, &backup, "modified", more).await?;
    assert_eq!(ended, "PartiallyFailed", "Velero says that something was not brought back");
    assert_eq!(arrived(&client).await?, [""; 0]);
    shop.api::<Service>().get("front").await?;

    // The same without any fence: the forgery was a good one.
    empty(&shop, &client).await?;
    unfenced(&test_cluster.bed, &backup, "unfenced", json!({"includedNamespaces": ["*"]})).await?;
    let arrived = arrived(&client).await?;
    for expected in [
        "ClusterRoleBinding",
        "RoleBinding",
        "Pod",
        "PersistentVolume",
        "Migration",
        "NonAdminBackup",
        "NonAdminRestore",
        "location",
        "download",
        "ResourceQuota",
        "Namespace",
        "elsewhere",
        "the address of a service",
    ] {
        assert!(arrived.contains(&expected), "{expected} is not in {arrived:?}");
    }
    Ok(())
}

/// Puts into the tarball a snapshot of somebody else's disk, and a word that a Secret in another namespace must come
/// along with it.
pub(crate) fn forge_snapshots(tarball: &Tarball) -> Result<()> {
    let group = "snapshot.storage.k8s.io";
    let api_version = "snapshot.storage.k8s.io/v1";
    let mut snapshot = in_shop(
        api_version,
        "VolumeSnapshot",
        "evil",
        &json!({
            "spec": {"source": {"persistentVolumeClaimName": "data"}},
            "status": {"boundVolumeSnapshotContentName": "evil", "readyToUse": true},
        }),
    );
    snapshot["metadata"]["annotations"] = json!({MUST_INCLUDE: "true"});
    tarball.add(&format!("volumesnapshots.{group}"), &snapshot)?;
    let mut content = in_shop(
        api_version,
        "VolumeSnapshotContent",
        "evil",
        &json!({
            "spec": {"driver": "disk.example.com", "deletionPolicy": "Retain", "source": {"volumeHandle": "v"},
                "volumeSnapshotRef": {"namespace": "shop", "name": "evil"}},
            "status": {"snapshotHandle": "somebody-elses-disk", "readyToUse": true},
        }),
    );
    content["metadata"] = json!({"name": "evil", "annotations": {
        MUST_INCLUDE: "true",
        "csi.storage.k8s.io/snapshotter-secret-name": "evil",
        "csi.storage.k8s.io/snapshotter-secret-namespace": VELERO,
    }});
    tarball.add_cluster(&format!("volumesnapshotcontents.{group}"), &content)?;
    let mut secret = in_shop("v1", "Secret", "evil", &json!({"stringData": {"a": "b"}}));
    secret["metadata"]["namespace"] = json!(VELERO);
    tarball.add("secrets", &secret)?;
    let mut bound = in_shop("v1", "PersistentVolumeClaim", "data", &claim());
    bound["metadata"]["annotations"] = json!({
        MUST_INCLUDE: "true", "velero.io/volume-snapshot-name": "evil",
    });
    tarball.add("persistentvolumeclaims", &bound)
}

/// What of the forged snapshots is in the cluster. Velero gives them names of its own.
pub(crate) async fn snapshots_arrived(client: &Client) -> Result<Vec<String>> {
    let mut arrived = Vec::new();
    for kind in ["VolumeSnapshot", "VolumeSnapshotContent"] {
        let gvk = GroupVersionKind::gvk("snapshot.storage.k8s.io", "v1", kind);
        let api = Api::<DynamicObject>::all_with(client.clone(), &ApiResource::from_gvk(&gvk));
        let found = api.list(&ListParams::default()).await?.items;
        arrived.extend(found.iter().map(|_| kind.to_owned()));
    }
    if Api::<Secret>::namespaced(client.clone(), VELERO).get_opt("evil").await?.is_some() {
        arrived.push("Secret".to_owned());
    }
    Ok(arrived)
}

/// A10: forged tarball: VolumeSnapshots with another tenant's snapshot handle
/// planted: a Restore without nacre's filters
#[tokio::test(flavor = "multi_thread")]
async fn of_forged_snapshots_nothing_comes_back() -> Result<()> {
    let test_cluster =
        TestCluster::build_on(Bed::builder().with_idle_velero().velero_flag("--features=EnableCSI")).await?;
    test_cluster.bed.apply_yaml(include_str!("snapshots.yaml")).await?;
    // Velero looks for new kinds when it starts.
    test_cluster.bed.velero_start().await?;
    let _nacre = test_cluster.start_nacre().await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    let client = test_cluster.bed.client().await?;
    tenant_storage(&test_cluster, &shop).await?;
    shop.create::<ConfigMap>("prices", json!({"data": {"tea": "3"}})).await?;
    let (backup, contents) = genuine_backup(&test_cluster, &shop).await?;
    let tarball = Tarball::open(&contents)?;
    forge_snapshots(&tarball)?;
    tarball.save()?;

    shop.restore("back", "daily").await?;
    assert_eq!(shop.restore_ends("back").await?, "Completed");
    assert_eq!(snapshots_arrived(&client).await?, [""; 0]);
    shop.api::<PersistentVolumeClaim>().get("data").await?;

    // Without the fence: the forgery was a good one, even for a restore of claims alone.
    drop_claim(&shop, &client).await?;
    let more = json!({"includeClusterResources": false, "includedResources": ["persistentvolumeclaims"]});
    unfenced(&test_cluster.bed, &backup, "unfenced", more).await?;
    let arrived = snapshots_arrived(&client).await?;
    for expected in ["VolumeSnapshot", "VolumeSnapshotContent", "Secret"] {
        assert!(arrived.iter().any(|kind| kind == expected), "{expected} is not in {arrived:?}");
    }
    Ok(())
}
