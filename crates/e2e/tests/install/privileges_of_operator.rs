//! Least privilege of `nacre operator`, by the audit log.

use std::time::Duration;

use anyhow::{Result, ensure};
use api::{
    DataProtectionApplication, NonAdminBackup, NonAdminBackupStorageLocation, NonAdminRestore,
    NonAdminSchedule, labels,
};
use bed::eventually;
use e2e::{Rights, Tenant, TestCluster, VELERO, deploy};
use kube::api::{Patch, PatchParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Resource, ResourceExt};
use serde_json::{Value, json};

use crate::life::nacre;
use crate::traces::traces;

const TIMEOUT: Duration = Duration::from_mins(2);

/// Held as nacre would hold it.
async fn held<K>(
    test_cluster: &TestCluster,
    shop: &Tenant<'_>,
    name: &str,
    body: Value,
    finalizer: &str,
) -> Result<()>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::Serialize
        + serde::de::DeserializeOwned,
{
    shop.create::<K>(name, body).await?;
    let api = Api::<K>::namespaced(test_cluster.bed.client().await?, "shop");
    let hold = Patch::Merge(json!({"metadata": {"finalizers": [finalizer]}}));
    api.patch(name, &PatchParams::default(), &hold).await?;
    Ok(())
}

async fn ask(test_cluster: &TestCluster, spec: Value) -> Result<()> {
    let body = json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "DataProtectionApplication",
        "metadata": {"name": "dpa"}, "spec": spec});
    let api = test_cluster.admin::<DataProtectionApplication>().await?;
    api.patch("dpa", &PatchParams::apply("administrator").force(), &Patch::Apply(body)).await?;
    Ok(())
}

async fn image(test_cluster: &TestCluster, wanted: &str) -> Result<()> {
    eventually("the Deployment", TIMEOUT, async || {
        let query = [
            "get",
            "deployment",
            "non-admin-controller",
            "-n",
            VELERO,
            "--ignore-not-found",
            "-o",
            "jsonpath={.spec.template.spec.containers[0].image}",
        ];
        let found = test_cluster.bed.kubectl(&query).await?.ok()?;
        ensure!(found == wanted, "{found:?}");
        anyhow::Ok(())
    })
    .await
}

/// Copies of Velero's objects, as the controller makes them: one of each kind.
async fn copies(test_cluster: &TestCluster) -> Result<()> {
    let (v1, moved) = ("velero.io/v1", "velero.io/v2alpha1");
    let pod = json!({"name": "web", "namespace": "shop"});
    let at = json!({"backupStorageLocation": "default", "operationTimeout": "1m", "sourceNamespace": "shop"});
    let with = |more: Value| {
        let mut spec = at.clone();
        for (name, value) in more.as_object().into_iter().flatten() {
            spec[name] = value.clone();
        }
        spec
    };
    let volume = json!({"namespace": "shop", "pv": "pv", "pvc": "files"});
    let specs = [
        (v1, "Backup", json!({})),
        (v1, "Restore", json!({"backupName": "copy"})),
        (v1, "BackupStorageLocation", json!({"provider": "aws", "objectStorage": {"bucket": "b"}})),
        (v1, "DeleteBackupRequest", json!({"backupName": "copy"})),
        (
            v1,
            "PodVolumeBackup",
            json!({"backupStorageLocation": "default", "node": "n", "pod": pod, "repoIdentifier": "r", "volume": "v"}),
        ),
        (
            v1,
            "PodVolumeRestore",
            json!({"backupStorageLocation": "default", "pod": pod, "repoIdentifier": "r", "snapshotID": "s",
                "sourceNamespace": "shop", "volume": "v"}),
        ),
        (moved, "DataUpload", with(json!({"snapshotType": "CSI", "sourcePVC": "files"}))),
        (moved, "DataDownload", with(json!({"snapshotID": "s", "targetVolume": volume}))),
        (v1, "Schedule", json!({"schedule": "@yearly", "template": {}})),
    ];
    let objects = specs.map(|(version, kind, spec)| {
        let mut metadata =
            json!({"name": "copy", "namespace": "shop", "labels": {labels::SHOWN: labels::SHOWN_COPY}});
        if kind == "Schedule" {
            metadata["finalizers"] = json!([labels::VELERO_VIEW_FINALIZER]);
        }
        json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec})
    });
    // A link that was given out.
    let link = json!({"apiVersion": v1, "kind": "DownloadRequest",
        "metadata": {"name": "link", "namespace": "shop", "labels": {labels::EXCLUDE_FROM_BACKUP: "true"}},
        "spec": {"target": {"kind": "BackupLog", "name": "copy"}},
        "status": {"phase": "Processed", "downloadURL": "http://store/signed"}});
    let objects = objects.into_iter().chain([link]);
    let objects = objects.map(serde_json::from_value).collect::<Result<Vec<_>, _>>()?;
    test_cluster.bed.apply(&objects).await
}

/// On, changed, and off with requests that are held; nothing is left of it in the end.
pub(crate) async fn every_right_is_used_and_none_is_missing(
    test_cluster: &TestCluster,
    shop: &Tenant<'_>,
) -> Result<()> {
    let bed = &test_cluster.bed;
    bed.apply_path(&deploy("operator.yaml")).await?;
    test_cluster.allow_velero_view().await?;
    let user = format!("system:serviceaccount:{VELERO}:nacre-operator");
    bed.wait_allowed(&shop.user, "shop", "create", "oadp.openshift.io", "nonadminbackups").await?;
    bed.wait_allowed(&user, VELERO, "list", "", "pods").await?;
    bed.wait_allowed(&user, "shop", "delete", "velero.io", "schedules").await?;
    bed.wait_allowed(&user, "", "list", "oadp.openshift.io", "dataprotectionapplications").await?;
    let mark = bed.audit().mark().await?;
    let operator = test_cluster.start_operator().await?;

    let spec = json!({"spec": {"backupSpec": {}}});
    held::<NonAdminBackup>(test_cluster, shop, "held", spec, labels::NAB_FINALIZER).await?;
    let spec = json!({"spec": {"restoreSpec": {"backupName": "held"}}});
    held::<NonAdminRestore>(test_cluster, shop, "held", spec, labels::NAR_FINALIZER).await?;
    let spec = json!({"spec": {"backupStorageLocationSpec": {"provider": "aws", "objectStorage": {"bucket": "held"}}}});
    held::<NonAdminBackupStorageLocation>(test_cluster, shop, "held", spec, labels::NABSL_FINALIZER).await?;
    // As the Go controller holds it.
    let spec = json!({"spec": {"schedule": "@yearly", "template": {"backupSpec": {}}}});
    held::<NonAdminSchedule>(test_cluster, shop, "held", spec, labels::NAS_FINALIZER).await?;

    ask(test_cluster, json!({"nonAdmin": {"enable": true}, "unsupportedOverrides": {"nonAdminControllerImageFqin": "mine:1"}})).await?;
    image(test_cluster, "mine:1").await?;
    ask(test_cluster, json!({"nonAdmin": {"enable": true}, "unsupportedOverrides": {"nonAdminControllerImageFqin": "mine:2"}})).await?;
    image(test_cluster, "mine:2").await?;
    copies(test_cluster).await?;
    ask(test_cluster, json!({"nonAdmin": {"enable": false}})).await?;
    image(test_cluster, "").await?;
    let finalizers = [
        shop.api::<NonAdminBackup>().get("held").await?.finalizers().len(),
        shop.api::<NonAdminRestore>().get("held").await?.finalizers().len(),
        shop.api::<NonAdminBackupStorageLocation>().get("held").await?.finalizers().len(),
        shop.api::<NonAdminSchedule>().get("held").await?.finalizers().len(),
    ];
    ensure!(finalizers == [0; 4], "{finalizers:?}");
    ensure!(operator.process.terminate(TIMEOUT).await? == Some(0));
    drop(operator);

    let rights = Rights::shipped(&["operator.yaml", "velero-view.yaml"], "nacre-operator")?;
    crate::privileges::prove(test_cluster, mark, &user, &[(&rights, &|_| true)]).await?;

    // What was applied is deleted, and what it made for itself goes with the rest.
    let file = deploy("operator.yaml").display().to_string();
    bed.kubectl(&["delete", "-f", &file]).await?.ok()?;
    let (success, said, words) = nacre(bed, &["uninstall"]).await?;
    ensure!(success && said.contains("delete lease/nacre-operator in velero"), "{said}{words}");
    let left: Vec<_> =
        traces(bed).await?.into_iter().filter(|one| !crate::privileges::is_kept(one)).collect();
    ensure!(left.is_empty(), "{left:#?}");
    Ok(())
}
