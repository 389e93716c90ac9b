//! nacre as a drop-in for the Go controller: started by OADP's Deployment, with its role and its CRDs only. Everything
//! a tenant does works; missing permissions are reported.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::velero::BackupStorageLocation;
use api::{
    NonAdminBackup, NonAdminBackupStorageLocation, NonAdminDownloadRequest, NonAdminRestore, Phase,
    condition, labels,
};
use bed::eventually;
use e2e::{NACRE, Nacre, Tenant, TestCluster};
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::downloads::{ask, fetch, link, reported};

const TIMEOUT: Duration = Duration::from_mins(2);

async fn definitions(test_cluster: &TestCluster) -> Result<BTreeMap<String, Option<String>>> {
    let all = Api::<CustomResourceDefinition>::all(test_cluster.bed.client().await?);
    let all = all.list(&ListParams::default()).await?;
    Ok(all
        .into_iter()
        .map(|crd| (crd.name_any(), crd.spec.versions[0].schema.as_ref().map(|s| json!(s).to_string())))
        .collect())
}

/// Waits until a backup looks like that.
async fn looks(
    tenant: &Tenant<'_>,
    name: &str,
    what: &str,
    is: impl Fn(&api::NonAdminBackupStatus) -> bool,
) -> Result<()> {
    tenant
        .wait(what, name, |backup: Option<&NonAdminBackup>| is(backup?.status.as_ref()?).then_some(()))
        .await
}

fn said(status: &api::NonAdminBackupStatus) -> Option<&str> {
    status.velero_backup.as_ref()?.status.as_ref()?.phase.as_deref()
}

/// A word of Velero's that the definitions do not know is left out; the rest is shown, and nothing is tried for ever.
async fn unknown_word(test_cluster: &TestCluster, nacre: &Nacre, shop: &Tenant<'_>) -> Result<()> {
    test_cluster.bed.velero_stop()?;
    shop.back_up("waiting").await?;
    looks(shop, "waiting", "it to be created", |status| status.phase == Some(Phase::Created)).await?;
    let reference = shop
        .api::<NonAdminBackup>()
        .get("waiting")
        .await?
        .status
        .and_then(|status| status.velero_backup?.name);
    let reference = reference.context("a reference")?;
    let queued = json!({"phase": "Queued", "queuePosition": 3});
    test_cluster.bed.velero_status("Backup", &reference, queued).await?;
    eventually("the unknown word to be met", TIMEOUT, async || {
        let details = nacre.details().await?;
        ensure!(
            details.contains("nonadminbackups are shown without some of Velero's status fields"),
            "{details}"
        );
        anyhow::Ok(())
    })
    .await?;
    looks(shop, "waiting", "the rest to be shown", |status| {
        status.phase == Some(Phase::Created)
            && said(status).is_none()
            && condition::is_true(&status.conditions, condition::QUEUED)
    })
    .await?;
    test_cluster.bed.audit().until_quiet(NACRE, Duration::from_secs(5)).await?;
    test_cluster
        .bed
        .velero_status("Backup", &reference, json!({"phase": "InProgress", "queuePosition": null}))
        .await?;
    looks(shop, "waiting", "what is known to be shown", |status| said(status) == Some("InProgress")).await?;
    test_cluster.bed.velero_status("Backup", &reference, json!({"phase": "New"})).await?;
    test_cluster.bed.velero_start().await?;
    ensure!(shop.backup_ends("waiting").await? == "Completed");
    Ok(())
}

/// OADP's settings take effect while nacre runs, even if it may not watch them.
async fn policy_by_list(test_cluster: &TestCluster, shop: &Tenant<'_>) -> Result<()> {
    test_cluster.configure_oadp(json!({"enforceBackupSpec": {"snapshotVolumes": false}})).await?;
    let other = json!({"spec": {"backupSpec": {"snapshotVolumes": true}}});
    let mut tries = 0;
    eventually("the policy to count", TIMEOUT, async || {
        tries += 1;
        let name = format!("probe-{tries}");
        shop.create::<NonAdminBackup>(&name, other.clone()).await?;
        let refused = shop
            .wait("it to be decided about", &name, |backup: Option<&NonAdminBackup>| {
                Some(backup?.status.as_ref()?.phase? == Phase::BackingOff)
            })
            .await?;
        ensure!(refused, "it was let through");
        anyhow::Ok(())
    })
    .await
}

/// What nacre reads where an administrator grants it: claims, and the DaemonSets of Velero.
const MAY_READ_VOLUMES: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reads-volumes}
rules:
- {apiGroups: [''], resources: [persistentvolumeclaims, persistentvolumes, pods], verbs: [list, watch]}
- {apiGroups: [apps], resources: [daemonsets], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reads-volumes}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reads-volumes}
subjects: [{kind: ServiceAccount, name: non-admin-controller, namespace: velero}]
";

/// The released CRDs have no list of claims and no results: the API server drops both. The conditions remain, they name
/// the claims, and nothing is written again and again.
#[tokio::test(flavor = "multi_thread")]
async fn under_oadps_crds_the_conditions_about_volumes_stand_alone() -> Result<()> {
    let test_cluster = TestCluster::build_as_oadp().await?;
    test_cluster.configure_oadp(json!({})).await?;
    test_cluster.bed.apply_yaml(MAY_READ_VOLUMES).await?;
    let _nacre = test_cluster.start_nacre_in(&test_cluster.account().await?, &[]).await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    let spec = json!({"accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeName": "files",
        "resources": {"requests": {"storage": "1Gi"}}});
    shop.create::<PersistentVolumeClaim>("files", json!({ "spec": spec })).await?;
    // Nobody binds claims here.
    let claims = Api::<PersistentVolumeClaim>::namespaced(test_cluster.bed.client().await?, &shop.namespace);
    let bound = Patch::Merge(json!({"status": {"phase": "Bound"}}));
    claims.patch_status("files", &PatchParams::default(), &bound).await?;

    shop.back_up("daily").await?;
    shop.backup_ends("daily").await?;
    let found = eventually("the conditions", TIMEOUT, async || {
        let status = shop.api::<NonAdminBackup>().get("daily").await?.status.context("no status")?;
        let of = |type_: &str| condition::get(&status.conditions, type_).cloned();
        let protected = of(condition::DATA_PROTECTED).filter(|found| found.status != "Unknown");
        of(condition::RESULTS_READ).context("no ResultsRead")?;
        anyhow::Ok((protected.context("no DataProtected")?, status))
    });
    let (protected, status) = found.await?;
    ensure!((&*protected.status, &*protected.reason) == ("False", "ClaimsNotSaved"), "{protected:?}");
    ensure!(
        protected.message.contains("volume data of claim \"files\" is NOT in this backup"),
        "{protected:?}"
    );
    ensure!(status.claims.is_empty() && status.results.is_none(), "the CRD has them: {status:?}");
    test_cluster.bed.audit().until_quiet(NACRE, Duration::from_secs(5)).await?;

    // The same for what comes back: the claim is there, and its data is not in the backup.
    shop.restore("back", "daily").await?;
    shop.restore_ends("back").await?;
    let restored = eventually("the condition", TIMEOUT, async || {
        let status = shop.api::<NonAdminRestore>().get("back").await?.status.context("no status")?;
        // What Velero warned of is read a moment later.
        condition::get(&status.conditions, condition::RESULTS_READ).context("no ResultsRead")?;
        let found = condition::get(&status.conditions, condition::DATA_RESTORED).cloned();
        found.filter(|found| found.status != "Unknown").context("no DataRestored")
    });
    let restored = restored.await?;
    ensure!(restored.status == "False", "{restored:?}");
    test_cluster.bed.audit().until_quiet(NACRE, Duration::from_secs(5)).await?;

    // The same for when a backup starts that waits for its turn.
    test_cluster.bed.velero_stop()?;
    for name in ["first", "second", "third"] {
        shop.back_up(name).await?;
    }
    let (turn, status) = shop
        .wait("it to wait for its turn", "third", |backup: Option<&NonAdminBackup>| {
            let status = backup?.status.clone()?;
            Some((condition::get(&status.conditions, condition::WAITING_FOR_TURN)?.clone(), status))
        })
        .await?;
    ensure!(turn.message.starts_with("starts at about "), "{turn:?}");
    let shown = status.queue_info.context("a position")?;
    ensure!(shown.estimated_queue_position == 3 && shown.estimated_start.is_none(), "{shown:?}");
    test_cluster.bed.audit().until_quiet(NACRE, Duration::from_secs(5)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn under_oadps_role_and_definitions_every_story_works_and_what_is_missing_is_named() -> Result<()> {
    let test_cluster = TestCluster::build_as_oadp().await?;
    test_cluster.configure_oadp(json!({})).await?;
    let shipped = definitions(&test_cluster).await?;
    let environment = [("LOG_LEVEL", "4"), ("LOG_FORMAT", "json")];
    let nacre = test_cluster.start_nacre_in(&test_cluster.account().await?, &environment).await?;
    let shop = test_cluster.tenant("shop", "ada").await?;
    shop.create::<ConfigMap>("prices", json!({"data": {"tea": "3"}})).await?;

    // Backup and restore.
    shop.back_up("daily").await?;
    ensure!(shop.backup_ends("daily").await? == "Completed");
    shop.delete::<ConfigMap>("prices").await?;
    shop.gone::<ConfigMap>("prices").await?;
    shop.restore("back", "daily").await?;
    ensure!(shop.restore_ends("back").await? == "Completed");
    shop.api::<ConfigMap>().get("prices").await?;

    // OADP's CRD has no field for what nacre reads of a log: the request is refused as the Go controller refuses it.
    ask(&shop, "closed", "BackupLog", "daily").await?;
    let closed = reported(&shop, "closed", condition::LOCATION_NOT_USED).await?;
    ensure!(closed.contains("this cluster's CRD has no field"), "{closed}");

    // Storage of one's own, at the store the administrators say; a backup in it, and its log.
    shop.keep_keys("keys", &test_cluster.bed.store()?.credentials()).await?;
    shop.bring_bucket("bucket", "shop-bucket", "keys").await?;
    shop.location_available("bucket").await?;
    let own = json!({"spec": {"backupSpec": {"storageLocation": "bucket"}}});
    shop.create::<NonAdminBackup>("own", own).await?;
    ensure!(shop.backup_ends("own").await? == "Completed");
    ask(&shop, "log", "BackupLog", "own").await?;
    ensure!(!fetch(&link(&shop, "log").await?).await?.is_empty());

    // What nacre may not secure does not happen, and says why.
    shop.restore("unsafe", "own").await?;
    let why = shop.restore_refused("unsafe").await?;
    ensure!(why.contains("nacre's own resource modifier") && why.contains("ask the administrators"), "{why}");
    shop.delete::<NonAdminRestore>("unsafe").await?;
    shop.gone::<NonAdminRestore>("unsafe").await?;

    // Who asked was recorded, and nacre may not find out what they are permitted: it goes on as before, and says so.
    let record = json!({"user": "eve", "uid": "", "groups": [], "scopes": []}).to_string();
    let asked = json!({"metadata": {"annotations": {labels::REQUESTER: record}},
        "spec": {"restoreSpec": {"backupName": "daily"}}});
    shop.create::<NonAdminRestore>("recorded", asked).await?;
    ensure!(shop.restore_ends("recorded").await? == "Completed");

    // What is off is named, in the readiness detail and in the log.
    let details = nacre.details().await?;
    let log = std::fs::read_to_string(nacre.process.log())?;
    for word in [
        "configmaps is not seen: it counts as empty",
        "dataprotectionapplications is not watched: it is listed every 5 s instead",
        "Events are not recorded",
        "since Velero may not be asked for its version",
        "create configmaps: ",
        "leader: this process holds the lease in Secret velero/nacre-lease, since Leases may not be used",
        "KubeVirt live-migration roles are not maintained",
        "permissions of requesters are not checked, since subjectaccessreviews may not be created",
    ] {
        ensure!(details.contains(word), "{word:?} is not in {details}");
        ensure!(log.contains(word), "{word:?} is not in the log");
    }
    let lines = log.lines().filter(|line| line.starts_with('{'));
    ensure!(lines.count() == log.lines().count(), "LOG_FORMAT=json is JSON throughout");

    unknown_word(&test_cluster, &nacre, &shop).await?;
    policy_by_list(&test_cluster, &shop).await?;

    // Everything can go again, one backup with its data.
    shop.edit::<NonAdminBackup>("daily", json!({"spec": {"deleteBackup": true}})).await?;
    shop.gone::<NonAdminBackup>("daily").await?;
    shop.gone::<NonAdminRestore>("back").await?;
    shop.gone::<NonAdminRestore>("recorded").await?;
    shop.delete::<NonAdminBackup>("waiting").await?;
    shop.delete::<NonAdminDownloadRequest>("log").await?;
    shop.delete::<NonAdminBackupStorageLocation>("bucket").await?;
    for name in ["waiting", "own"] {
        shop.gone::<NonAdminBackup>(name).await?;
    }
    shop.gone::<NonAdminBackupStorageLocation>("bucket").await?;
    let storages = test_cluster.admin::<BackupStorageLocation>().await?.list(&ListParams::default()).await?;
    ensure!(storages.items.len() == 1, "{:?}", storages.items);
    ensure!(definitions(&test_cluster).await? == shipped, "the definitions are OADP's to change");
    Ok(())
}
