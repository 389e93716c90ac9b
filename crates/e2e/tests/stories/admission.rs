//! What must hold even while nacre is down: nacre is never started here. The attacker has every right that RBAC can give in
//! a namespace, in their own and even in Velero's, so that nothing but a policy refuses.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use api::velero::{Backup, BackupStorageLocation, DeleteBackupRequest, DownloadRequest, Restore};
use api::{
    NonAdminBackup, NonAdminBackupStorageLocation, NonAdminBackupStorageLocationRequest,
    NonAdminDownloadRequest, NonAdminRestore, labels,
};
use bed::{Bed, eventually, wait_until};
use e2e::{Tenant, TestCluster, VELERO, refused_by};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, NamespaceResourceScope};
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const TIMEOUT: Duration = Duration::from_mins(2);
const MARKS: &str = "nacre-reserved-marks";
/// A name that nacre could have given a backup.
const FOUND: &str = "evil-found-0b8d1a52-3c0f-4d8e-9f4e-1c2b3a4d5e6f";

/// The labels and annotations that name an object's owner, as released clients and nacre use them.
const RESERVED: [&str; 18] = [
    "openshift.io/oadp",
    "openshift.io/oadp-nab-origin-nacuuid",
    "openshift.io/oadp-nar-origin-nacuuid",
    "openshift.io/oadp-nabsl-origin-nacuuid",
    "openshift.io/oadp-nadr-origin-nacuuid",
    labels::SYNCED_FROM,
    "openshift.io/oadp-nab-origin-name",
    "openshift.io/oadp-nab-origin-namespace",
    "openshift.io/oadp-nar-origin-name",
    "openshift.io/oadp-nar-origin-namespace",
    "openshift.io/oadp-nabsl-origin-name",
    "openshift.io/oadp-nabsl-origin-namespace",
    "openshift.io/oadp-nadr-origin-name",
    "openshift.io/oadp-nadr-origin-namespace",
    labels::ORIGIN_UID,
    labels::ORIGIN_NAMESPACE_UID,
    labels::QUEUE,
    "nacre.dev/whatever-comes",
];

/// Everything in a namespace: the most that RBAC can give a tenant.
async fn everything_in(bed: &Bed, namespace: &str, user: &str) -> Result<()> {
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": format!("{user}-everything"), "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    });
    bed.apply(&[serde_json::from_value(binding)?]).await?;
    bed.wait_allowed(user, namespace, "update", "oadp.openshift.io", "nonadminbackups/status").await?;
    bed.wait_allowed(user, namespace, "create", "velero.io", "backups").await
}

/// An administrator as there are on every cluster, who is not in `system:masters`.
async fn administrator(bed: &Bed) -> Result<Client> {
    bed.apply_yaml(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: root}\n\
         roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\n\
         subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: root}]\n",
    )
    .await?;
    bed.wait_allowed("root", "", "create", "velero.io", "backups").await?;
    bed.client_as("root", &[]).await
}

fn object<K>(name: &str, rest: &Value) -> Result<K>
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    let mut body = rest.clone();
    body["apiVersion"] = json!(K::api_version(&()));
    body["kind"] = json!(K::kind(&()));
    body["metadata"]["name"] = json!(name);
    Ok(serde_json::from_value(body)?)
}

fn dry() -> PostParams {
    PostParams { dry_run: true, ..PostParams::default() }
}

fn merge(change: Value) -> Patch<Value> {
    Patch::Merge(change)
}

fn plain() -> PatchParams {
    PatchParams::default()
}

/// Whether nacre's policies are in the cluster.
#[derive(Clone, Copy)]
enum Policies {
    There,
    /// The planted weakness: whatever they refuse passes, so nothing else stands in its way.
    Gone,
}

impl Policies {
    /// Whether an attempt met with what it should: a refusal by this policy, or success without it.
    fn meet<T>(self, policy: &str, answer: kube::Result<T>) -> Result<()> {
        match self {
            Self::There => refused_by(policy, answer),
            Self::Gone => answer.map(drop).with_context(|| format!("without {policy}")),
        }
    }
}

/// A tenant cannot make a request of any kind with any of nacre's marks on it.
async fn marks(shop: &Tenant<'_>, policies: Policies) -> Result<()> {
    let location = json!({"provider": "aws", "objectStorage": {"bucket": "b"}});
    marks_of::<NonAdminBackup>(shop, json!({"backupSpec": {}}), policies).await?;
    marks_of::<NonAdminRestore>(shop, json!({"restoreSpec": {"backupName": "b"}}), policies).await?;
    let location = json!({"backupStorageLocationSpec": location});
    marks_of::<NonAdminBackupStorageLocation>(shop, location, policies).await?;
    let download = json!({"target": {"kind": "BackupLog", "name": "b"}});
    marks_of::<NonAdminDownloadRequest>(shop, download, policies).await
}

async fn marks_of<K>(shop: &Tenant<'_>, spec: Value, policies: Policies) -> Result<()>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + Serialize
        + DeserializeOwned,
{
    let api = shop.api::<K>();
    api.create(&dry(), &object("plain", &json!({"spec": spec}))?).await?;
    for map in ["labels", "annotations"] {
        for key in RESERVED {
            let marked = object("marked", &json!({"spec": spec, "metadata": {map: {key: "x"}}}))?;
            policies.meet(MARKS, api.create(&dry(), &marked).await)?;
        }
    }
    Ok(())
}

/// F6
/// planted: no policy is in force
#[tokio::test(flavor = "multi_thread")]
async fn f6_with_nacre_down_tenants_leave_marks_and_statuses_alone_and_everything_else_goes_on() -> Result<()>
{
    let test_cluster = TestCluster::build_with_idle_velero().await?;
    test_cluster.admission().await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    everything_in(&test_cluster.bed, "shop", "ada").await?;
    let root = administrator(&test_cluster.bed).await?;
    let nacre = test_cluster.bed.service_account_client(VELERO, "non-admin-controller").await?;

    marks(&shop, Policies::There).await?;

    // One that nacre found in storage carries a mark: it is edited, replaced and applied like any other.
    let mark = json!({"metadata": {"labels": {labels::SYNCED_FROM: "shop-daily"}, "finalizers": [labels::NAB_FINALIZER]},
        "spec": {"backupSpec": {}}});
    Api::namespaced(nacre.clone(), "shop")
        .create(&PostParams::default(), &object::<NonAdminBackup>("found", &mark)?)
        .await?;
    let mine = shop.api::<NonAdminBackup>();
    mine.patch("found", &plain(), &merge(json!({"spec": {"backupSpec": {"ttl": "1h"}}}))).await?;
    mine.patch("found", &plain(), &merge(json!({"metadata": {"labels": {"team": "a"}}}))).await?;
    for change in [
        json!({"metadata": {"labels": {labels::SYNCED_FROM: "rival-daily"}}}),
        json!({"metadata": {"labels": {labels::SYNCED_FROM: null}}}),
        json!({"metadata": {"labels": null}}),
        json!({"metadata": {"annotations": {labels::ORIGIN_UID: "u"}}}),
    ] {
        refused_by(MARKS, mine.patch("found", &plain(), &merge(change)).await)?;
    }
    let file = test_cluster.bed.folder().join("found.yaml");
    let file = file.display().to_string();
    let shown = test_cluster
        .bed
        .kubectl(&["get", "nab", "found", "-n", "shop", "-o", "yaml", "--as=ada"])
        .await?
        .ok()?;
    std::fs::write(&file, shown.replace("ttl: 1h", "ttl: 2h"))?;
    test_cluster.bed.kubectl(&["replace", "-f", &file, "--as=ada"]).await?.ok()?;
    let kept = shown.lines().filter(|line| !line.contains("resourceVersion")).collect::<Vec<_>>().join("\n");
    std::fs::write(&file, kept.replace("ttl: 1h", "ttl: 2h"))?;
    test_cluster.bed.kubectl(&["apply", "-f", &file, "--as=ada"]).await?.ok()?;
    test_cluster
        .bed
        .kubectl(&["annotate", "nab", "found", "-n", "shop", "note=mine", "--as=ada"])
        .await?
        .ok()?;
    ensure!(mine.get("found").await?.spec.backup_spec.ttl == Some("2h".into()));

    // Its status is nacre's, an administrator's if need be, and nobody else's.
    let forged = json!({"status": {"phase": "Created", "veleroBackup": {"nacuuid": "rival-daily"}}});
    refused_by("nacre-statuses", mine.patch_status("found", &plain(), &merge(forged.clone())).await)?;
    let everywhere = |client: &Client| Api::<NonAdminBackup>::namespaced(client.clone(), "shop");
    everywhere(&nacre)
        .patch_status("found", &plain(), &merge(json!({"status": {"phase": "Created"}})))
        .await?;
    refused_by(
        "nacre-statuses",
        mine.patch_status("found", &plain(), &merge(json!({"status": null}))).await,
    )?;
    everywhere(&root).patch_status("found", &plain(), &merge(forged)).await?;

    the_order_of_the_queue(&test_cluster.bed, &mine).await?;

    // An emergency: an administrator takes marks, status and finalizers off; a tenant may take off finalizers too.
    let bare = json!({"metadata": {"labels": null, "annotations": {labels::ORIGIN_UID: null}}});
    everywhere(&root).patch("found", &plain(), &merge(bare)).await?;
    mine.patch("found", &plain(), &merge(json!({"metadata": {"finalizers": null}}))).await?;
    mine.delete("found", &DeleteParams::default()).await?;
    shop.gone::<NonAdminBackup>("found").await?;

    labels_of_namespaces(&test_cluster.bed, &root).await?;
    cleaners_are_not_in_the_way(&test_cluster.bed, &nacre).await?;

    let rival = test_cluster.tenant("rival", "bob").await?;
    everything_in(&test_cluster.bed, "rival", "bob").await?;
    test_cluster.take_policies_away().await?;
    marks(&rival, Policies::Gone).await?;
    let requests = rival.api::<NonAdminBackup>();
    let request = object("forged", &json!({"spec": {"backupSpec": {}}}))?;
    requests.create(&PostParams::default(), &request).await?;
    let forged = json!({"status": {"phase": "Created", "veleroBackup": {"nacuuid": "shop-daily"}}});
    Policies::Gone.meet("nacre-statuses", requests.patch_status("forged", &plain(), &merge(forged)).await)
}

/// Nobody but holders of the verb in all namespaces moves a request in the queue, whatever they may do in their own.
async fn the_order_of_the_queue(bed: &Bed, mine: &Api<NonAdminBackup>) -> Result<()> {
    let queue = |value: Value| merge(json!({"metadata": {"annotations": {labels::QUEUE: value}}}));
    bed.apply_yaml(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: queue}\n\
         rules: [{apiGroups: [oadp.openshift.io], resources: [nonadminbackups], verbs: [get, patch, queue]}]\n\
         ---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: queue}\n\
         roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: queue}\n\
         subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: pat}]\n",
    )
    .await?;
    bed.wait_allowed("pat", "", "queue", "oadp.openshift.io", "nonadminbackups").await?;
    let pats = Api::<NonAdminBackup>::namespaced(bed.client_as("pat", &[]).await?, "shop");
    // The tenant holds every verb there is, in one namespace.
    bed.wait_allowed("ada", "shop", "queue", "oadp.openshift.io", "nonadminbackups").await?;
    refused_by(MARKS, mine.patch("found", &plain(), &queue(json!("front"))).await)?;
    pats.patch("found", &plain(), &queue(json!("hold"))).await?;
    for value in [json!("front"), json!(null)] {
        refused_by(MARKS, mine.patch("found", &plain(), &queue(value)).await)?;
    }
    mine.patch("found", &plain(), &merge(json!({"metadata": {"labels": {"team": "b"}}}))).await?;
    // The verb is for the queue alone.
    refused_by(MARKS, pats.patch("found", &plain(), &queue(json!("first"))).await)?;
    let other = merge(json!({"metadata": {"annotations": {labels::ORIGIN_UID: "u"}}}));
    refused_by(MARKS, pats.patch("found", &plain(), &other).await)?;
    pats.patch("found", &plain(), &queue(json!(null))).await?;
    Ok(())
}

/// What an administrator's policy may select by is not the tenant's to set, at any of a namespace's doors.
async fn labels_of_namespaces(bed: &Bed, root: &Client) -> Result<()> {
    let ada = bed.client_as("ada", &[]).await?;
    let spaces = Api::<Namespace>::all(ada.clone());
    let gold = json!({"metadata": {"labels": {"nacre.dev/tier": "gold"}}});
    spaces.patch("shop", &plain(), &merge(json!({"metadata": {"labels": {"team": "a"}}}))).await?;
    refused_by("nacre-namespace-marks", spaces.patch("shop", &plain(), &merge(gold.clone())).await)?;
    refused_by("nacre-namespace-marks", spaces.patch_status("shop", &plain(), &merge(gold.clone())).await)?;
    let mut finished = serde_json::to_value(spaces.get("shop").await?)?;
    finished["metadata"]["labels"]["nacre.dev/tier"] = json!("gold");
    let file = bed.folder().join("finalize.json");
    std::fs::write(&file, finished.to_string())?;
    let file = file.display().to_string();
    let door = ["replace", "--raw", "/api/v1/namespaces/shop/finalize", "-f", &file, "--as=ada"];
    let answer = bed.kubectl(&door).await?;
    ensure!(!answer.success && answer.stderr.contains("'nacre-namespace-marks'"), "{answer:?}");
    Api::<Namespace>::all(root.clone()).patch("shop", &plain(), &merge(gold)).await?;
    let silver = json!({"metadata": {"labels": {"nacre.dev/tier": null}}});
    refused_by("nacre-namespace-marks", spaces.patch("shop", &plain(), &merge(silver)).await)
}

/// Kubernetes collects what lost its owner, and removes a namespace with all that nacre marked in it.
async fn cleaners_are_not_in_the_way(bed: &Bed, nacre: &Client) -> Result<()> {
    let client = bed.client().await?;
    let backups = Api::<NonAdminBackup>::namespaced(client.clone(), "shop");
    let maps = Api::<ConfigMap>::namespaced(client.clone(), "shop");
    let holder = maps.create(&PostParams::default(), &object("owner", &json!({}))?).await?;
    let mut owned: NonAdminBackup = object(
        "owned",
        &json!({"spec": {"backupSpec": {}}, "metadata": {"labels": {labels::SYNCED_FROM: "x"}}}),
    )?;
    let reference = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": holder.uid(),
        "blockOwnerDeletion": true}]);
    owned.metadata.owner_references = Some(serde_json::from_value(reference)?);
    let theirs = Api::<NonAdminBackup>::namespaced(nacre.clone(), "shop");
    // Only who may set finalizers of the owner may say that it is to wait.
    backups.create(&PostParams::default(), &owned).await?;
    let other = json!({"spec": {"backupSpec": {}}, "metadata": {"labels": {labels::SYNCED_FROM: "y"}}});
    theirs.create(&PostParams::default(), &object("other", &other)?).await?;
    maps.delete("owner", &DeleteParams::foreground()).await?;
    let gone = |found: Option<&NonAdminBackup>| found.is_none().then_some(());
    wait_until("the owned backup to be collected", TIMEOUT, backups.clone(), "owned", gone).await?;
    Api::<Namespace>::all(client.clone()).delete("shop", &DeleteParams::default()).await?;
    wait_until("the namespace to go", TIMEOUT, Api::<Namespace>::all(client), "shop", |found| {
        found.is_none().then_some(())
    })
    .await
}

/// A location as nacre makes it of a tenant's.
fn tenants_location(name: &str, owner: &str) -> Result<BackupStorageLocation> {
    object(
        name,
        &json!({
            "metadata": {"labels": {labels::NABSL_NACUUID: name},
                "annotations": {labels::NABSL_NAMESPACE: owner, labels::NABSL_NAME: "own"}},
            "spec": {"provider": "aws", "objectStorage": {"bucket": name}, "backupSyncPeriod": "0s"},
        }),
    )
}

/// F6
/// planted: no policy is in force
#[tokio::test(flavor = "multi_thread")]
async fn f6_with_nacre_down_veleros_namespace_and_tenants_storage_are_fenced() -> Result<()> {
    let test_cluster = TestCluster::build().await?;
    test_cluster.admission().await?;
    test_cluster.tenant("shop", "ada").await?;
    // A slip of an administrator's: everything in Velero's namespace.
    everything_in(&test_cluster.bed, VELERO, "ada").await?;
    let root = administrator(&test_cluster.bed).await?;
    let ada = test_cluster.bed.client_as("ada", &[]).await?;
    let velero = test_cluster.bed.service_account_client(VELERO, "velero").await?;
    let nacre = test_cluster.bed.service_account_client(VELERO, "non-admin-controller").await?;

    velero_objects(&ada, &root, &nacre).await?;
    requests(&ada, &root, &nacre).await?;

    // Real Velero and its own command line go about their work: a backup of everything, of one namespace, a restore, a deletion.
    test_cluster.bed.velero_cli(&["backup", "create", "all", "-n", VELERO, "--wait"]).await?.ok()?;
    let whole = ["backup", "create", "whole", "-n", VELERO, "--include-namespaces", "shop", "--wait"];
    test_cluster.bed.velero_cli(&whole).await?.ok()?;
    for name in ["all", "whole"] {
        let shown = test_cluster.bed.velero_api("Backup").await?.get(name).await?;
        ensure!(shown.data["status"]["phase"] == "Completed", "{}", shown.data["status"]);
    }
    let back = ["restore", "create", "back", "-n", VELERO, "--from-backup", "whole", "--wait"];
    test_cluster.bed.velero_cli(&back).await?.ok()?;
    let shown = test_cluster.bed.velero_api("Restore").await?.get("back").await?;
    ensure!(shown.data["status"]["phase"] == "Completed", "{}", shown.data["status"]);
    test_cluster.bed.velero_cli(&["backup", "delete", "all", "-n", VELERO, "--confirm"]).await?.ok()?;
    let backups = test_cluster.bed.velero_api("Backup").await?;
    wait_until("Velero to delete a backup", TIMEOUT, backups, "all", |found| found.is_none().then_some(()))
        .await?;

    fence(&test_cluster.bed, &root, &nacre, &velero).await?;

    test_cluster.take_policies_away().await?;
    Api::<Backup>::namespaced(root.clone(), VELERO).delete(FOUND, &DeleteParams::default()).await?;
    write_veleros_objects(&ada, Policies::Gone).await?;
    approve_itself(&ada, Policies::Gone).await?;
    let masters = test_cluster.bed.client().await?;
    back_up_widely(&[&velero, &nacre, &root, &masters], Policies::Gone).await?;
    volumes(&velero, Policies::Gone).await
}

/// Only Velero, nacre and administrators create or change Velero's objects in Velero's namespace.
async fn velero_objects(ada: &Client, root: &Client, nacre: &Client) -> Result<()> {
    write_veleros_objects(ada, Policies::There).await?;
    let backup = object::<Backup>("stolen", &json!({"spec": {"includedNamespaces": ["shop"], "ttl": "1h"}}))?;
    for client in [root, nacre] {
        Api::<Backup>::namespaced(client.clone(), VELERO).create(&dry(), &backup).await?;
    }
    Ok(())
}

/// Somebody who may do everything in Velero's namespace creates and changes Velero's objects there.
async fn write_veleros_objects(ada: &Client, policies: Policies) -> Result<()> {
    const POLICY: &str = "nacre-velero-objects";
    let spec = json!({"spec": {"includedNamespaces": ["shop"], "ttl": "1h"}});
    let backup = object::<Backup>("stolen", &spec)?;
    let theirs = Api::<Backup>::namespaced(ada.clone(), VELERO);
    policies.meet(POLICY, theirs.create(&dry(), &backup).await)?;
    let restore = object::<Restore>("stolen", &json!({"spec": {"backupName": "other"}}))?;
    policies.meet(POLICY, Api::namespaced(ada.clone(), VELERO).create(&dry(), &restore).await)?;
    let deletion = object::<DeleteBackupRequest>("stolen", &json!({"spec": {"backupName": "other"}}))?;
    policies.meet(POLICY, Api::namespaced(ada.clone(), VELERO).create(&dry(), &deletion).await)?;
    let target = json!({"spec": {"target": {"kind": "BackupContents", "name": "other"}}});
    let download = object::<DownloadRequest>("stolen", &target)?;
    policies.meet(POLICY, Api::namespaced(ada.clone(), VELERO).create(&dry(), &download).await)?;
    let location = tenants_location("stolen", "shop")?;
    policies.meet(POLICY, Api::namespaced(ada.clone(), VELERO).create(&dry(), &location).await)?;
    // Nor changed: an annotation of an existing one would say whose it is.
    let api = Api::<BackupStorageLocation>::namespaced(ada.clone(), VELERO);
    let owner = json!({"metadata": {"annotations": {labels::NABSL_NAMESPACE: "shop"}}});
    for change in [owner, json!({"spec": {"default": false}}), json!({"status": {"phase": "Unavailable"}})] {
        let dry_run = PatchParams { dry_run: true, ..plain() };
        policies.meet(POLICY, api.patch("default", &dry_run, &merge(change)).await)?;
    }
    // In their own namespace copies of Velero's objects mean nothing, and stay possible for who has the right.
    Ok(())
}

/// What administrators decide about.
fn requests_of(client: &Client) -> Api<NonAdminBackupStorageLocationRequest> {
    Api::namespaced(client.clone(), VELERO)
}

/// Somebody who may do everything in Velero's namespace makes a request that is approved.
async fn approve_itself(ada: &Client, policies: Policies) -> Result<()> {
    let request = object("own", &json!({"spec": {"approvalDecision": "approve"}}))?;
    policies.meet("nacre-location-requests", requests_of(ada).create(&dry(), &request).await)
}

/// What administrators decide about is made by nacre and decided by them.
async fn requests(ada: &Client, root: &Client, nacre: &Client) -> Result<()> {
    const POLICY: &str = "nacre-location-requests";
    approve_itself(ada, Policies::There).await?;
    let of = requests_of;
    let request = object("asked", &json!({"spec": {"approvalDecision": "pending"}}))?;
    refused_by(POLICY, of(ada).create(&dry(), &request).await)?;
    of(nacre).create(&PostParams::default(), &request).await?;
    let approve = merge(json!({"spec": {"approvalDecision": "approve"}}));
    refused_by(POLICY, of(ada).patch("asked", &plain(), &approve).await)?;
    refused_by(POLICY, of(ada).delete("asked", &DeleteParams::default()).await)?;
    let spec = json!({"provider": "aws", "objectStorage": {"bucket": "b"}});
    let status =
        json!({"status": {"phase": "Approved", "nonAdminBackupStorageLocation": {"requestedSpec": spec}}});
    refused_by(POLICY, of(ada).patch_status("asked", &plain(), &merge(status.clone())).await)?;
    of(nacre).patch_status("asked", &plain(), &merge(status)).await?;
    // As `kubectl oadp nabsl-request approve --reason` does it.
    let reasoned = json!({"spec": {"approvalDecision": "approve"}, "metadata": {"annotations": {"openshift.io/oadp-approval-reason": "fine"}}});
    of(root).patch("asked", &plain(), &merge(reasoned)).await?;
    of(root).delete("asked", &DeleteParams::default()).await?;
    Ok(())
}

/// A backup in the storage of a tenant.
fn stored(spec: &Value, phase: &str) -> Result<Backup> {
    let mut body = json!({"spec": spec, "status": {"phase": phase}});
    body["spec"]["storageLocation"] = json!("evil-own");
    body["metadata"]["labels"] = json!({labels::NAB_NACUUID: FOUND});
    object(FOUND, &body)
}

/// Creates one, for nobody to see.
async fn create(client: &Client, backup: Result<Backup>) -> Result<kube::Result<Backup>> {
    Ok(Api::<Backup>::namespaced(client.clone(), VELERO).create(&dry(), &backup?).await)
}

/// Everybody puts more into the storage of a tenant than that tenant's own.
async fn back_up_widely(clients: &[&Client], policies: Policies) -> Result<()> {
    let wide = [
        json!({}),
        json!({"includedNamespaces": ["*"]}),
        json!({"includedNamespaces": ["shop"]}),
        json!({"includedNamespaces": ["evil", "shop"]}),
        json!({"includedNamespaces": ["evil"], "includeClusterResources": true}),
        json!({"includedNamespaces": ["evil"], "includedClusterScopedResources": ["*"]}),
    ];
    for spec in wide {
        for client in clients {
            for phase in ["New", "Queued", "ReadyToStart", "Completed"] {
                let answer = create(client, stored(&spec, phase)).await?;
                policies.meet("nacre-tenant-backups", answer)?;
            }
        }
    }
    Ok(())
}

/// What goes into a tenant's storage is the tenant's, whoever asks: Velero, nacre, an administrator, `system:masters`.
async fn fence(bed: &Bed, root: &Client, nacre: &Client, velero: &Client) -> Result<()> {
    bed.velero_stop()?;
    let masters = bed.client().await?;
    let locations = Api::<BackupStorageLocation>::namespaced(masters.clone(), VELERO);
    for (name, owner) in [("evil-own", "evil"), ("shop-own", "shop")] {
        locations.create(&PostParams::default(), &tenants_location(name, owner)?).await?;
    }
    let own = || json!({"includedNamespaces": ["evil"]});
    eventually("the locations to be known to the policy", TIMEOUT, async || {
        refused_by("nacre-tenant-backups", create(&masters, stored(&json!({}), "New")).await?)
    })
    .await?;
    back_up_widely(&[velero, nacre, root, &masters], Policies::There).await?;
    // What Velero finds there is never run, but shown if it is over; what nacre makes is run.
    for phase in ["New", "Queued", "ReadyToStart", "InProgress", "FailedValidation"] {
        refused_by("nacre-tenant-backups", create(velero, stored(&own(), phase)).await?)?;
    }
    create(velero, stored(&own(), "Completed")).await??;
    create(nacre, stored(&own(), "New")).await??;
    // An administrator's storage is nobody's business here.
    let elsewhere = object::<Backup>("everything", &json!({"spec": {"includedNamespaces": ["*"]}}))?;
    create(velero, Ok(elsewhere)).await??;

    // Moved there later, or widened there; progress is written as ever.
    let backups = Api::<Backup>::namespaced(velero.clone(), VELERO);
    backups.create(&PostParams::default(), &stored(&own(), "Completed")?).await?;
    let widened = json!({"spec": {"includedNamespaces": ["evil", "shop"]}});
    refused_by("nacre-tenant-backups", backups.patch(FOUND, &plain(), &merge(widened)).await)?;
    let moved = json!({"spec": {"storageLocation": "shop-own"}});
    refused_by("nacre-tenant-backups", backups.patch(FOUND, &plain(), &merge(moved)).await)?;
    backups.patch(FOUND, &plain(), &merge(json!({"status": {"phase": "Deleting"}}))).await?;

    volumes(velero, Policies::There).await
}

/// What is read out of volumes for a tenant's storage are volumes of that tenant's.
async fn volumes(velero: &Client, policies: Policies) -> Result<()> {
    let kind = |version: &str, kind: &str, plural: &str| {
        let resource = ApiResource {
            group: "velero.io".to_owned(),
            version: version.to_owned(),
            api_version: format!("velero.io/{version}"),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
        };
        Api::<DynamicObject>::namespaced_with(velero.clone(), VELERO, &resource)
    };
    let pods = kind("v1", "PodVolumeBackup", "podvolumebackups");
    let uploads = kind("v2alpha1", "DataUpload", "datauploads");
    let of_pod = |namespace: &str, location: &str| {
        serde_json::from_value::<DynamicObject>(json!({
            "apiVersion": "velero.io/v1", "kind": "PodVolumeBackup",
            "metadata": {"name": "volume", "labels": {labels::VELERO_BACKUP_UID: "u"}},
            "spec": {"node": "n", "pod": {"kind": "Pod", "namespace": namespace, "name": "db"}, "volume": "data",
                "backupStorageLocation": location, "repoIdentifier": "r", "uploaderType": "kopia"},
        }))
    };
    let of_claim = |namespace: &str, location: &str| {
        serde_json::from_value::<DynamicObject>(json!({
            "apiVersion": "velero.io/v2alpha1", "kind": "DataUpload",
            "metadata": {"name": "volume", "labels": {labels::VELERO_BACKUP_UID: "u"}},
            "spec": {"snapshotType": "CSI", "csiSnapshot": {"volumeSnapshot": "s", "storageClass": "c"},
                "sourcePVC": "data", "sourceNamespace": namespace, "backupStorageLocation": location,
                "operationTimeout": "10m"},
        }))
    };
    for owner in ["evil", "shop"] {
        pods.create(&dry(), &of_pod(owner, &format!("{owner}-own"))?).await?;
        uploads.create(&dry(), &of_claim(owner, &format!("{owner}-own"))?).await?;
        pods.create(&dry(), &of_pod(owner, "default")?).await?;
    }
    policies.meet("nacre-tenant-volumes", pods.create(&dry(), &of_pod("shop", "evil-own")?).await)?;
    policies.meet("nacre-tenant-volumes", uploads.create(&dry(), &of_claim("shop", "evil-own")?).await)
}

/// Velero takes what a pod's annotation says instead of what nacre puts into the Backup.
/// planted: a namespace that administrators exempt
#[tokio::test(flavor = "multi_thread")]
async fn f2_h7_a_pod_whose_hook_may_take_hours_is_refused_unless_administrators_exempt_the_namespace()
-> Result<()> {
    let test_cluster = TestCluster::build_with_idle_velero().await?;
    test_cluster.admission().await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    everything_in(&test_cluster.bed, "shop", "ada").await?;
    let pods = shop.api::<Pod>();
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let pod = |timeout: &str| {
        let annotations = json!({"post.hook.backup.velero.io/timeout": timeout});
        serde_json::from_value::<Pod>(json!({"metadata": {"name": "db", "annotations": annotations},
            "spec": {"containers": [{"name": "a", "image": "a"}]}}))
    };
    // The controller that makes the default ServiceAccount may be late.
    eventually("pods to be accepted", TIMEOUT, async || anyhow::Ok(pods.create(&dry, &pod("30m")?).await?))
        .await?;
    refused_by("nacre-hook-timeouts", pods.create(&dry, &pod("999h")?).await)?;
    // Annotations can be written with a status too.
    pods.create(&PostParams::default(), &pod("30m")?).await?;
    let longer = async || {
        let longer = json!({"metadata": {"annotations": {"post.hook.backup.velero.io/timeout": "999h"}}});
        pods.patch_status("db", &PatchParams::default(), &Patch::Merge(longer)).await
    };
    refused_by("nacre-hook-timeouts", longer().await)?;

    let namespaces = Api::<Namespace>::all(test_cluster.bed.client().await?);
    let label = Patch::Merge(json!({"metadata": {"labels": {"nacre.dev/any-hook-timeout": "true"}}}));
    namespaces.patch("shop", &PatchParams::default(), &label).await?;
    let patched = eventually("the exemption", TIMEOUT, async || anyhow::Ok(longer().await?)).await?;
    let annotations = patched.metadata.annotations.unwrap_or_default();
    assert_eq!(annotations["post.hook.backup.velero.io/timeout"], "999h", "a status carries annotations");
    let dry_run = PatchParams { dry_run: true, ..PatchParams::default() };
    let other =
        Patch::Merge(json!({"metadata": {"annotations": {"pre.hook.backup.velero.io/timeout": "999h"}}}));
    pods.patch("db", &dry_run, &other).await?;
    Ok(())
}
