//! The Velero view: copies of every kind are created, repaired and deleted.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::velero::{DeleteBackupRequest, DownloadRequest, Restore, Schedule};
use api::{NonAdminBackup, NonAdminDownloadRequest, NonAdminRestore, NonAdminSchedule, labels};
use bed::eventually;
use e2e::{Tenant, TestCluster, VELERO};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

const TIMEOUT: Duration = Duration::from_mins(2);
/// Every kind, and the copy of it.
const COPIES: [(&str, &str); 9] = [
    ("backups", "daily"),
    ("restores", "back"),
    ("backupstoragelocations", "bucket"),
    ("deletebackuprequests", "refused"),
    ("podvolumebackups", "one"),
    ("datauploads", "two"),
    ("podvolumerestores", "three"),
    ("datadownloads", "four"),
    ("schedules", "yearly"),
];

pub(crate) async fn label(test_cluster: &TestCluster, value: Value) -> Result<()> {
    let spaces = Api::<Namespace>::all(test_cluster.bed.client().await?);
    let label = Patch::Merge(json!({"metadata": {"labels": {labels::VELERO_VIEW: value}}}));
    spaces.patch("shop", &PatchParams::default(), &label).await?;
    Ok(())
}

/// Waits until every kind has its copy, and that says so.
async fn shown(test_cluster: &TestCluster, what: &str, is: impl Fn(&Value) -> bool) -> Result<()> {
    eventually(what, TIMEOUT, async || {
        for (kind, name) in COPIES {
            let text =
                test_cluster.bed.kubectl(&["get", kind, name, "-n", "shop", "-o", "json"]).await?.ok()?;
            ensure!(is(&serde_json::from_str(&text)?), "{kind} {name}: {text}");
        }
        anyhow::Ok(())
    })
    .await
}

/// What Velero does about volumes, which needs a kubelet, and a request to delete that it refused: played.
async fn play(test_cluster: &TestCluster, backup: (&str, &str), restore: (&str, &str)) -> Result<()> {
    let of_backup = json!({labels::VELERO_BACKUP_NAME: backup.0, labels::VELERO_BACKUP_UID: backup.1});
    let of_restore = json!({labels::VELERO_RESTORE_NAME: restore.0, labels::VELERO_RESTORE_UID: restore.1});
    let pod = json!({"kind": "Pod", "namespace": "shop", "name": "web", "uid": "u"});
    let files = json!({"backupStorageLocation": "default", "node": "one", "repoIdentifier": "", "volume": "data",
        "pod": pod, "uploaderType": "kopia"});
    let back = json!({"backupStorageLocation": "default", "repoIdentifier": "", "snapshotID": "s", "volume": "data",
        "pod": pod, "sourceNamespace": "shop", "uploaderType": "kopia"});
    let moved = json!({"backupStorageLocation": "default", "operationTimeout": "10m", "snapshotType": "CSI",
        "sourceNamespace": "shop", "sourcePVC": "data", "csiSnapshot": {"snapshotClass": "", "storageClass": "x", "volumeSnapshot": "s"}});
    let taken = json!({"backupStorageLocation": "default", "operationTimeout": "10m", "snapshotID": "s",
        "sourceNamespace": "shop", "targetVolume": {"namespace": "shop", "pv": "", "pvc": "data"}});
    let object = |version: &str, kind: &str, name: &str, marks: &Value, spec: Value, status: Value| {
        json!({"apiVersion": format!("velero.io/{version}"), "kind": kind,
            "metadata": {"name": name, "namespace": VELERO, "labels": marks}, "spec": spec, "status": status})
    };
    let done = json!({"phase": "Completed"});
    let refused = json!({"phase": "Processed", "errors": ["played"]});
    let objects = [
        object("v1", "PodVolumeBackup", "one", &of_backup, files, done.clone()),
        object("v2alpha1", "DataUpload", "two", &of_backup, moved, done.clone()),
        object("v1", "PodVolumeRestore", "three", &of_restore, back, done.clone()),
        object("v2alpha1", "DataDownload", "four", &of_restore, taken, done),
        object("v1", "DeleteBackupRequest", "refused", &of_backup, json!({"backupName": backup.0}), refused),
    ];
    let objects = objects.into_iter().map(serde_json::from_value).collect::<Result<Vec<_>, _>>()?;
    test_cluster.bed.apply(&objects).await
}

/// Every copy comes, is mended and goes; what is requested with Velero's kinds is answered, until that is over.
pub(crate) async fn is_kept_true(test_cluster: &TestCluster, shop: &Tenant<'_>) -> Result<()> {
    let daily = shop.api::<NonAdminBackup>().get("daily").await?;
    let backup = daily.status.and_then(|status| status.velero_backup?.name).context("a Backup")?;
    let back = shop.api::<NonAdminRestore>().get("back").await?;
    let restore = back.status.and_then(|status| status.velero_restore?.name).context("a Restore")?;
    let uid = async |kind: &str, name: &str| {
        anyhow::Ok(test_cluster.bed.velero_api(kind).await?.get(name).await?.uid().unwrap_or_default())
    };
    let (backup_uid, restore_uid) = (uid("Backup", &backup).await?, uid("Restore", &restore).await?);
    play(test_cluster, (&backup, &backup_uid), (&restore, &restore_uid)).await?;
    let yearly = json!({"spec": {"schedule": "0 3 1 1 *", "template": {"backupSpec": {}}}});
    shop.create::<NonAdminSchedule>("yearly", yearly.clone()).await?;
    label(test_cluster, json!("true")).await?;
    shown(test_cluster, "copies of every kind", |copy| {
        copy["metadata"]["labels"]["nacre.dev/shown"] == "copy"
    })
    .await?;
    for (kind, name) in COPIES {
        let bent = [
            "patch",
            kind,
            name,
            "-n",
            "shop",
            "--type",
            "merge",
            "-p",
            "{\"metadata\":{\"labels\":{\"velero.io/bent\":\"x\"}}}",
        ];
        test_cluster.bed.kubectl(&bent).await?.ok()?;
    }
    shown(test_cluster, "every copy to be mended", |copy| {
        copy["metadata"]["labels"]["velero.io/bent"].is_null()
    })
    .await?;

    // With Velero's kinds: a restore, and a file.
    let wish = json!({"spec": {"backupName": "daily", "includedNamespaces": ["*"]}});
    shop.create::<Restore>("in-veleros-words", wish).await?;
    shop.restore_ends("in-veleros-words").await?;
    let target = json!({"spec": {"target": {"kind": "BackupLog", "name": "daily"}}});
    shop.create::<DownloadRequest>("in-veleros-words", target).await?;
    shop.wait("the link", "in-veleros-words", |request: Option<&DownloadRequest>| {
        request?.status.as_ref()?.download_url.clone()
    })
    .await?;
    // Links run out: requests and Velero's requests go. Velero removes them too, so it is stopped meanwhile.
    test_cluster.bed.velero_stop()?;
    for link in test_cluster.admin::<DownloadRequest>().await?.list(&ListParams::default()).await?.items {
        // Soon, so that this is mirrored first, as any end is.
        let soon = jiff::Timestamp::now() + Duration::from_secs(15);
        let over = json!({"expiration": format!("{soon:.0}")});
        test_cluster.bed.velero_status("DownloadRequest", &link.name_any(), over).await?;
    }
    shop.gone::<DownloadRequest>("in-veleros-words").await?;
    shop.gone::<NonAdminDownloadRequest>("log").await?;
    test_cluster.bed.velero_start().await?;

    // Deleted as Velero's command line does it.
    shop.delete::<Schedule>("yearly").await?;
    shop.gone::<NonAdminSchedule>("yearly").await?;

    // All of it goes with the label, also the copy of a schedule that stays.
    shop.create::<NonAdminSchedule>("rare", yearly).await?;
    shop.wait("its copy", "rare", |copy: Option<&Schedule>| copy.map(|_| ())).await?;
    label(test_cluster, json!(null)).await?;
    test_cluster.gone_from_velero::<ConfigMap>("nacre-velero-view").await?;
    for (kind, _) in COPIES {
        let left = test_cluster.bed.kubectl(&["get", kind, "-n", "shop", "-o", "name"]).await?.ok()?;
        ensure!(left.trim().is_empty(), "{left}");
    }
    shop.delete::<NonAdminSchedule>("rare").await?;
    test_cluster
        .admin::<DeleteBackupRequest>()
        .await?
        .delete("refused", &kube::api::DeleteParams::default())
        .await?;
    Ok(())
}
