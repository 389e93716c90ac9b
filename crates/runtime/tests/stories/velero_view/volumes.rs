//! What is shown with a copy: volumes, and the location of a backup.

use api::{Kind, labels};
use insta::assert_snapshot;
use serde_json::{Value, json};

use super::{copies, marks, with_a_backup, world};
use crate::world::manifests::{nab, nab_with, nar, object};

#[test]
fn what_belongs_to_a_backup_is_shown_beside_it_and_what_does_not_is_not() {
    let mut world = with_a_backup();
    let uid = world.get("backup shop-daily-<1>")["metadata"]["uid"].clone();
    let volume = |uid: &Value| {
        let name = crate::world::long("shop-daily-<1>");
        json!({
            "metadata": {"labels": {labels::VELERO_BACKUP_NAME: name, labels::VELERO_BACKUP_UID: uid}, "annotations": {"note": "an administrator's"}},
            "spec": {"backupStorageLocation": "default", "repoIdentifier": "s3:http://inside/bucket", "volume": "data"},
            "status": {"phase": "Completed", "path": "/x"},
        })
    };
    world.apply(object(Kind::PodVolumeBackup, "velero/one", volume(&uid)));
    world.apply(object(Kind::DataUpload, "velero/two", volume(&uid)));
    // Velero imports what tenants' buckets say, but writes the uid of the Backup it came with.
    world.apply(object(Kind::PodVolumeBackup, "velero/smuggled", volume(&json!("another"))));
    world.settle();
    assert_eq!(copies(&world), ["Backup shop/daily", "PodVolumeBackup shop/one", "DataUpload shop/two"]);
    assert_snapshot!(marks(&world, "PodVolumeBackup shop/one"), @r"
    nacre.dev/shown: copy
    velero.io/backup-name: daily
    velero.io/backup-uid: <6:2>
    velero.io/exclude-from-backup: true
    ");
    let spec = json!({"backupStorageLocation": "default", "repoIdentifier": "", "volume": "data"});
    assert_eq!(world.get("PodVolumeBackup shop/one")["spec"], spec);
    // A new copy has a new uid, by which Velero's tools find the rest.
    world.delete("backup shop/daily");
    world.settle();
    let copy = world.get("backup shop/daily")["metadata"]["uid"].clone();
    assert_eq!(world.get("DataUpload shop/two")["metadata"]["labels"][labels::VELERO_BACKUP_UID], copy);
    world.delete("nab shop/daily");
    world.settle();
    assert!(copies(&world).is_empty());
}

/// A name that no label holds is found by Velero's tools all the same, under what Velero makes of it.
#[test]
fn what_belongs_to_a_backup_with_a_long_name_is_shown_beside_it() {
    let long = "the-backup-before-the-migration-of-the-shop-to-the-new-cluster-in-november";
    let label = "the-backup-before-the-migration-of-the-shop-to-the-new-cleccdc2";
    let mut world = world();
    world.apply(nab(&format!("shop/{long}")));
    world.settle();
    let velero = world.get(&format!("nab shop/{long}"))["status"]["veleroBackup"]["name"].clone();
    let velero = velero.as_str().unwrap();
    world.velero_starts(velero);
    world.velero_completes(velero);
    let uid = world.get(&format!("backup {velero}"))["metadata"]["uid"].clone();
    let ties = json!({labels::VELERO_BACKUP_NAME: velero, labels::VELERO_BACKUP_UID: uid});
    let volume =
        json!({"metadata": {"labels": ties}, "spec": {"volume": "data"}, "status": {"phase": "Completed"}});
    world.apply(object(Kind::PodVolumeBackup, "velero/one", volume));
    world.settle();
    let copy = world.get(&format!("backup shop/{long}"))["metadata"]["uid"].clone();
    let ties = world.get("PodVolumeBackup shop/one")["metadata"]["labels"].clone();
    assert_eq!((&ties[labels::VELERO_BACKUP_NAME], &ties[labels::VELERO_BACKUP_UID]), (&json!(label), &copy));
    // A request to delete it, whose words name it whole.
    world.edit(&format!("nab shop/{long}"), json!({"spec": {"deleteBackup": true}}));
    world.settle();
    let (_, request) = world
        .everything()
        .find(|(key, _)| key.kind == Kind::DeleteBackupRequest && key.namespace == "shop")
        .unwrap();
    assert_eq!(request["spec"]["backupName"], long);
    assert_eq!(request["metadata"]["labels"][labels::VELERO_BACKUP_NAME], label);
}

#[test]
fn what_belongs_to_a_restore_is_shown_beside_it() {
    let mut world = with_a_backup();
    world.apply(nar("shop/back", "daily"));
    world.settle();
    let (name, uid) = (
        crate::world::long("shop-back-p-<r1>"),
        world.get("restore shop-back-p-<r1>")["metadata"]["uid"].clone(),
    );
    let ties = json!({labels::VELERO_RESTORE_NAME: name, labels::VELERO_RESTORE_UID: uid});
    for kind in [Kind::PodVolumeRestore, Kind::DataDownload] {
        let volume = json!({"metadata": {"labels": ties}, "spec": {"backupStorageLocation": "default"}, "status": {"phase": "InProgress"}});
        world.apply(object(kind, &format!("velero/{}", kind.name().to_lowercase()), volume));
    }
    world.settle();
    let before = world.writes();
    world.edit("DataDownload velero/datadownload", json!({"status": {"phase": "Completed"}}));
    world.settle();
    assert_eq!(world.writes() - before, 2, "the request, which counts them, and the copy");
    let shown = world.get("DataDownload shop/datadownload");
    assert_eq!(shown["status"]["phase"], "Completed");
    assert_eq!(shown["metadata"]["labels"][labels::VELERO_RESTORE_NAME], "back");
    world.delete("nar shop/back");
    world.settle();
    world.velero_tidies();
    world.settle();
    assert_eq!(copies(&world), ["Backup shop/daily"]);
}

#[test]
fn a_location_is_shown_under_the_tenants_name_without_the_credential() {
    let mut world = world();
    let velero = world.tenant_storage("shop/bucket");
    world.edit(&format!("bsl {velero}"), json!({"spec": {"credential": {"name": velero, "key": "cloud"}}}));
    world.apply(nab_with("shop/daily", json!({"storageLocation": "bucket"})));
    world.settle();
    world.velero_starts("shop-daily-<1>");
    world.velero_completes("shop-daily-<1>");
    world.settle();
    assert_eq!(world.get("backup shop/daily")["spec"]["storageLocation"], "bucket");
    let shown = world.get("bsl shop/bucket");
    assert_eq!(shown["spec"], json!({"provider": "aws", "objectStorage": {"bucket": velero}}));
    // That Velero has looked at it again is no news.
    world.edit(&format!("bsl {velero}"), json!({"status": {"lastValidationTime": "2026-01-01T00:00:00Z"}}));
    world.settle();
    let before = world.writes();
    world.edit(&format!("bsl {velero}"), json!({"status": {"lastValidationTime": "2026-01-01T00:01:00Z"}}));
    world.settle();
    assert_eq!(world.writes(), before);
    world.edit(&format!("bsl {velero}"), json!({"status": {"phase": "Unavailable"}}));
    world.settle();
    assert_eq!(world.get("bsl shop/bucket")["status"]["phase"], "Unavailable");
    assert_eq!(world.get("bsl shop/bucket")["status"]["lastValidationTime"], "2026-01-01T00:01:00Z");
}
