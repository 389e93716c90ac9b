//! The Go controller is stopped and nacre started: everything it left, finished or half-way, is taken over under its
//! name. No Velero object is re-created, everything is mirrored, everything can be deleted.

mod schedule;

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::velero::{Backup, BackupStorageLocation, DownloadRequest, Restore};
use api::{
    NonAdminBackup, NonAdminBackupStorageLocation, NonAdminBackupStorageLocationRequest,
    NonAdminDownloadRequest, NonAdminRestore, Phase, condition, labels,
};
use bed::wait_until;
use e2e::{NACRE, Tenant, TestCluster, VELERO};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{ListParams, Patch, PatchParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::location::POLICY;

const TIMEOUT: Duration = Duration::from_mins(2);

/// The Go controller made names of random uuids.
fn nacuuid(name: &str, number: u32) -> String {
    format!("shop-{name}-6f1c3a52-0b7d-4a51-9c55-{number:012}")
}

/// What the Go controller writes: objects in Velero's namespace, finalizers and statuses in the tenant namespace.
struct Nac<'a> {
    test_cluster: &'a TestCluster,
    shop: &'a Tenant<'a>,
}

impl Nac<'_> {
    /// The labels and annotations of what it creates in Velero's namespace for such a request.
    fn marks(sort: &str, name: &str, number: u32) -> Value {
        let nacuuid = nacuuid(name, number);
        json!({
            "name": nacuuid, "namespace": VELERO,
            "labels": {labels::OADP: labels::OADP_VALUE, labels::MANAGED_BY: labels::MANAGED_BY_VALUE,
                (format!("openshift.io/oadp-{sort}-origin-nacuuid")): nacuuid},
            "annotations": {(format!("openshift.io/oadp-{sort}-origin-name")): name,
                (format!("openshift.io/oadp-{sort}-origin-namespace")): "shop"},
        })
    }

    async fn makes(&self, api_version: &str, kind: &str, metadata: Value, rest: Value) -> Result<()> {
        let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata});
        for (name, value) in rest.as_object().into_iter().flatten() {
            object[name] = value.clone();
        }
        self.test_cluster.bed.apply(&[serde_json::from_value(object)?]).await
    }

    /// A Velero Backup, and Velero's end of it.
    async fn backs_up(&self, name: &str, number: u32, location: Option<&str>) -> Result<()> {
        let mut spec = json!({"includedNamespaces": ["shop"], "excludedResources":
            ["nonadminbackups", "nonadminrestores", "nonadminbackupstoragelocations", "clusterroles"]});
        if let Some(location) = location {
            spec["storageLocation"] = json!(location);
        }
        self.makes("velero.io/v1", "Backup", Self::marks("nab", name, number), json!({ "spec": spec })).await
    }

    async fn velero_ends(&self, kind: &str, name: &str, number: u32) -> Result<()> {
        let api = self.test_cluster.bed.velero_api(kind).await?;
        let phase = wait_until("Velero to end it", TIMEOUT, api, &nacuuid(name, number), |object| {
            let status = &object?.data["status"];
            status["completionTimestamp"].as_str().and_then(|_| status["phase"].as_str().map(str::to_owned))
        })
        .await?;
        ensure!(phase == "Completed", "{name} ended as {phase}");
        Ok(())
    }

    /// Holds a request of the tenant's and writes its status.
    async fn tells<K>(&self, name: &str, finalizer: &str, status: Value) -> Result<()>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + std::fmt::Debug
            + Serialize
            + DeserializeOwned,
    {
        let api = Api::<K>::namespaced(self.test_cluster.bed.client().await?, "shop");
        let params = PatchParams::default();
        if !finalizer.is_empty() {
            api.patch(name, &params, &Patch::Merge(json!({"metadata": {"finalizers": [finalizer]}}))).await?;
        }
        api.patch_status(name, &params, &Patch::Merge(json!({ "status": status }))).await?;
        Ok(())
    }

    /// A backup request as it stands at some point: what was asked for, and the status.
    async fn has_backup(
        &self,
        name: &str,
        number: u32,
        spec: Value,
        phase: &str,
        types: &[(&str, &str)],
    ) -> Result<()> {
        self.shop.create::<NonAdminBackup>(name, json!({"spec": {"backupSpec": spec}})).await?;
        let uuid = nacuuid(name, number);
        let status = json!({
            "phase": phase, "conditions": conditions(types),
            "veleroBackup": {"nacuuid": uuid, "name": uuid, "namespace": VELERO},
            "dataMoverDataUploads": {}, "fileSystemPodVolumeBackups": {},
        });
        self.tells::<NonAdminBackup>(name, labels::NAB_FINALIZER, status).await
    }

    /// A restore of the first backup as it stands at some point.
    async fn restores(&self, name: &str, number: u32, phase: &str, types: &[(&str, &str)]) -> Result<()> {
        let restore = json!({"spec": {"backupName": nacuuid("done", 1), "includedNamespaces": ["shop"]}});
        self.makes("velero.io/v1", "Restore", Self::marks("nar", name, number), restore).await?;
        self.shop.restore(name, "done").await?;
        let uuid = nacuuid(name, number);
        let status = json!({"phase": phase, "conditions": conditions(types),
            "veleroRestore": {"nacuuid": uuid, "name": uuid, "namespace": VELERO}});
        self.tells::<NonAdminRestore>(name, labels::NAR_FINALIZER, status).await
    }

    /// A download of a backup's log that Velero has been asked for.
    async fn downloads(&self, name: &str, backup: &str, number: u32) -> Result<()> {
        let request: NonAdminDownloadRequest = self
            .shop
            .create(name, json!({"spec": {"target": {"kind": "BackupLog", "name": backup}}}))
            .await?;
        let uid = request.uid().context("a uid")?;
        let marks = json!({
            "name": format!("nadr-{uid}"), "namespace": VELERO,
            "labels": {labels::OADP: labels::OADP_VALUE, labels::MANAGED_BY: labels::MANAGED_BY_VALUE,
                labels::NADR_UID: uid},
            "annotations": {labels::NADR_NAME: name, labels::NADR_NAMESPACE: "shop"},
        });
        let asked = json!({"spec": {"target": {"kind": "BackupLog", "name": nacuuid(backup, number)}}});
        self.makes("velero.io/v1", "DownloadRequest", marks, asked).await
    }
}

fn conditions(types: &[(&str, &str)]) -> Value {
    let one = |(type_, reason): &(&str, &str)| {
        json!({"type": type_, "status": "True", "reason": reason, "message": "as the Go controller says",
            "lastTransitionTime": "2025-12-01T00:00:00Z"})
    };
    types.iter().map(one).collect()
}

const ACCEPTED: (&str, &str) = ("Accepted", "BackupAccepted");
const QUEUED: (&str, &str) = ("Queued", "BackupScheduled");

async fn names<K>(test_cluster: &TestCluster) -> Result<BTreeSet<String>>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned,
{
    let all = test_cluster.admin::<K>().await?.list(&ListParams::default()).await?;
    Ok(all.into_iter().map(|object| object.name_any()).collect())
}

/// A location in the tenant's bucket, approved long ago, with everything that belongs to it; and one that is pending.
async fn locations(nac: &Nac<'_>) -> Result<()> {
    let store = nac.test_cluster.bed.store()?;
    nac.shop.keep_keys("keys", &store.credentials()).await?;
    let spec = |bucket: &str| {
        json!({"provider": "aws", "objectStorage": {"bucket": bucket}, "credential": {"name": "keys", "key": "cloud"},
            "config": {"region": bed::REGION, "s3ForcePathStyle": "true", "s3Url": store.url()}})
    };
    for (name, number, decision, phase) in
        [("bucket", 1, "approve", "Approved"), ("hoped", 2, "pending", "Pending")]
    {
        nac.shop.bring_bucket(name, name, "keys").await?;
        let (uuid, marks) = (nacuuid(name, number), Nac::marks("nabsl", name, number));
        let group = "oadp.openshift.io/v1alpha1";
        let said = json!({"spec": {"approvalDecision": decision}});
        nac.makes(group, "NonAdminBackupStorageLocationRequest", marks.clone(), said).await?;
        let requests = nac.test_cluster.admin::<NonAdminBackupStorageLocationRequest>().await?;
        let asked = json!({"status": {"phase": phase, "nonAdminBackupStorageLocation":
            {"requestedSpec": spec(name), "nacuuid": uuid, "name": name, "namespace": "shop"}}});
        requests.patch_status(&uuid, &PatchParams::default(), &Patch::Merge(asked)).await?;
        let approved = decision == "approve";
        let status = json!({
            "phase": if approved { "Created" } else { "New" },
            "conditions": conditions(if approved {
                &[("Accepted", "BslSpecValidation"), ("ClusterAdminApproved", "BslSpecApproved"),
                    ("SecretSynced", "SecretCreated"), ("BackupStorageLocationSynced", "BackupStorageLocationCreated")]
            } else { &[("Accepted", "BslSpecValidation")] }),
            "veleroBackupStorageLocation": {"nacuuid": uuid, "name": uuid, "namespace": VELERO},
        });
        nac.tells::<NonAdminBackupStorageLocation>(name, labels::NABSL_FINALIZER, status).await?;
        if approved {
            // All keys of the tenant's Secret, as they were.
            let data =
                json!({"type": "Opaque", "stringData": {"cloud": store.credentials(), "note": "private"}});
            nac.makes("v1", "Secret", marks.clone(), data).await?;
            let mut velero = spec(name);
            velero["credential"]["name"] = json!(uuid);
            velero["objectStorage"]["prefix"] = json!("shop");
            velero["config"]["checksumAlgorithm"] = json!("");
            let mut marks = marks;
            marks["labels"]["openshift.io/oadp-registry"] = json!("True");
            nac.makes("velero.io/v1", "BackupStorageLocation", marks, json!({ "spec": velero })).await?;
            let api = nac.test_cluster.bed.velero_api("BackupStorageLocation").await?;
            wait_until("the location to be available", TIMEOUT, api, &uuid, |location| {
                (location?.data["status"]["phase"] == "Available").then_some(())
            })
            .await?;
        }
    }
    Ok(())
}

/// Everything the Go controller may leave behind.
async fn leaves(nac: &Nac<'_>) -> Result<()> {
    let (shop, kept) = (nac.shop, nacuuid("bucket", 1));
    locations(nac).await?;
    for (name, number, location) in
        [("done", 1, None), ("own", 2, Some(kept.as_str())), ("going", 4, None), ("forgotten", 5, None)]
    {
        nac.backs_up(name, number, location).await?;
        nac.velero_ends("Backup", name, number).await?;
    }
    nac.has_backup("done", 1, json!({}), "Created", &[ACCEPTED, QUEUED]).await?;
    nac.has_backup("own", 2, json!({"storageLocation": "bucket"}), "Created", &[ACCEPTED, QUEUED]).await?;
    // A restore of the first, ended, and a download that is under way.
    nac.restores("back", 6, "Created", &[("Accepted", "RestoreAccepted"), ("Queued", "RestoreScheduled")])
        .await?;
    nac.velero_ends("Restore", "back", 6).await?;
    nac.downloads("log", "own", 2).await?;

    // From here on Velero does not get to it: half-way through.
    nac.test_cluster.bed.velero_stop()?;
    nac.backs_up("given", 3, None).await?;
    nac.has_backup("given", 3, json!({}), "New", &[ACCEPTED]).await?;
    nac.restores("begun", 8, "New", &[("Accepted", "RestoreAccepted")]).await?;
    nac.has_backup("planned", 7, json!({}), "New", &[ACCEPTED]).await?;
    nac.has_backup("going", 4, json!({}), "Deleting", &[ACCEPTED, QUEUED, ("Deleting", "DeletionPending")])
        .await?;
    shop.edit::<NonAdminBackup>("going", json!({"spec": {"deleteBackup": true}})).await?;
    let backup = nac.test_cluster.admin::<Backup>().await?.get(&nacuuid("going", 4)).await?;
    let mut marks = Nac::marks("nab", "going", 4);
    marks["name"] = json!(format!("{}-abcde", nacuuid("going", 4)));
    marks["labels"]["velero.io/backup-name"] = json!(nacuuid("going", 4));
    marks["labels"]["velero.io/backup-uid"] = json!(backup.uid());
    let request = json!({"spec": {"backupName": nacuuid("going", 4)}});
    nac.makes("velero.io/v1", "DeleteBackupRequest", marks, request).await?;
    shop.delete::<NonAdminBackup>("going").await?;
    nac.has_backup(
        "forgotten",
        5,
        json!({}),
        "Deleting",
        &[ACCEPTED, QUEUED, ("Deleting", "DeletionPending")],
    )
    .await?;
    shop.delete::<NonAdminBackup>("forgotten").await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_go_controller_left_is_taken_over_finished_or_half_way() -> Result<()> {
    let test_cluster = TestCluster::build().await?;
    test_cluster.set_policy(POLICY).await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    shop.create::<ConfigMap>("prices", json!({"data": {"tea": "3"}})).await?;
    leaves(&Nac { test_cluster: &test_cluster, shop: &shop }).await?;
    let before = (
        names::<Backup>(&test_cluster).await?,
        names::<Restore>(&test_cluster).await?,
        names::<BackupStorageLocation>(&test_cluster).await?,
    );
    let stored = test_cluster
        .bed
        .store()?
        .keys(bed::BUCKET)?
        .iter()
        .filter(|key| key.contains(&nacuuid("going", 4)))
        .count();
    ensure!(stored > 0);

    let nacre = test_cluster.start_nacre().await?;
    // Half-way out: one goes at once, one when Velero has removed its data.
    shop.gone::<NonAdminBackup>("forgotten").await?;
    test_cluster.gone_from_velero::<Backup>(&nacuuid("forgotten", 5)).await?;
    // Its data stays, and Velero would find it again; that is another story.
    let data = format!("backups/{}", nacuuid("forgotten", 5));
    std::fs::remove_dir_all(test_cluster.bed.store()?.path(bed::BUCKET, &data))?;
    // Half-way in: the one Velero has keeps its name, the one it has not is given to it.
    let reference = async |name: &str| {
        shop.wait("it to be Created", name, |backup: Option<&NonAdminBackup>| {
            let status = backup?.status.as_ref()?;
            let name = status.velero_backup.as_ref()?.name.clone()?;
            (status.phase == Some(Phase::Created)).then_some(name)
        })
        .await
    };
    ensure!(reference("given").await? == nacuuid("given", 3));
    let planned = reference("planned").await?;
    ensure!(reference("done").await? == nacuuid("done", 1) && reference("own").await? == nacuuid("own", 2));
    test_cluster.bed.velero_start().await?;
    for name in ["given", "planned", "done", "own"] {
        ensure!(shop.backup_ends(name).await? == "Completed");
    }
    shop.gone::<NonAdminBackup>("going").await?;
    ensure!(
        test_cluster.bed.store()?.keys(bed::BUCKET)?.iter().all(|key| !key.contains(&nacuuid("going", 4)))
    );
    for name in ["back", "begun"] {
        ensure!(shop.restore_ends(name).await? == "Completed");
    }
    shop.location_available("bucket").await?;
    let pending = shop.location_is("the other to be pending", "hoped", |status| {
        let approved = condition::get(&status.conditions, condition::CLUSTER_ADMIN_APPROVED);
        approved.is_some_and(|approved| approved.reason == condition::BSL_SPEC_APPROVAL_PENDING)
    });
    ensure!(pending.await?.phase == Some(Phase::New));
    shop.wait("the download", "log", |request: Option<&NonAdminDownloadRequest>| {
        (request?.status.as_ref()?.phase == Some(Phase::Created)).then_some(())
    })
    .await?;

    // Nothing was made but the one; everything is marked by uid, and the copy of the credential holds one key.
    let mut expected = before.0.clone();
    expected.retain(|name| ![nacuuid("going", 4), nacuuid("forgotten", 5)].contains(name));
    expected.insert(planned);
    ensure!(names::<Backup>(&test_cluster).await? == expected, "{:?}", names::<Backup>(&test_cluster).await?);
    ensure!(
        names::<Restore>(&test_cluster).await? == before.1
            && names::<BackupStorageLocation>(&test_cluster).await? == before.2
    );
    for backup in test_cluster.admin::<Backup>().await?.list(&ListParams::default()).await? {
        ensure!(backup.annotations().contains_key(labels::ORIGIN_UID), "{} is not marked", backup.name_any());
    }
    let copy = test_cluster.admin::<Secret>().await?.get(&nacuuid("bucket", 1)).await?;
    ensure!(copy.data.unwrap_or_default().keys().collect::<Vec<_>>() == ["cloud"]);
    test_cluster.bed.audit().until_quiet(NACRE, Duration::from_secs(5)).await?;

    // The one that was pending is approved by the name it has, and what is in the other's storage can be restored.
    test_cluster.decide(&nacuuid("hoped", 2), "approve").await?;
    shop.location_available("hoped").await?;
    shop.delete::<ConfigMap>("prices").await?;
    shop.gone::<ConfigMap>("prices").await?;
    shop.restore("again", "own").await?;
    ensure!(shop.restore_ends("again").await? == "Completed");
    shop.api::<ConfigMap>().get("prices").await?;

    // Everything can go.
    shop.edit::<NonAdminBackup>("done", json!({"spec": {"deleteBackup": true}})).await?;
    for name in ["given", "planned"] {
        shop.delete::<NonAdminBackup>(name).await?;
    }
    shop.delete::<NonAdminRestore>("again").await?;
    shop.delete::<NonAdminDownloadRequest>("log").await?;
    for name in ["bucket", "hoped"] {
        shop.delete::<NonAdminBackupStorageLocation>(name).await?;
        shop.gone::<NonAdminBackupStorageLocation>(name).await?;
    }
    for name in ["done", "given", "planned", "own"] {
        shop.gone::<NonAdminBackup>(name).await?;
    }
    for name in ["back", "begun", "again"] {
        shop.gone::<NonAdminRestore>(name).await?;
    }
    test_cluster.gone_from_velero::<Secret>(&nacuuid("bucket", 1)).await?;
    ensure!(names::<BackupStorageLocation>(&test_cluster).await? == BTreeSet::from(["default".to_owned()]));
    ensure!(names::<NonAdminBackupStorageLocationRequest>(&test_cluster).await?.is_empty());
    ensure!(names::<DownloadRequest>(&test_cluster).await?.is_empty() && nacre.process.is_running());
    Ok(())
}
