//! Both deletions: the request alone, and the request with its data.

use std::time::Duration;

use api::{Kind, labels};
use insta::assert_snapshot;
use serde_json::json;

use crate::world::World;
use crate::world::manifests::{nab, nar};

/// A world with one backup that Velero has completed.
fn completed() -> World {
    World::with(&["shop"]).backed_up()
}

fn delete_with_data(world: &mut World) {
    world.edit("nab shop/daily", json!({"spec": {"deleteBackup": true}}));
}

#[test]
fn a_plain_delete_leaves_the_data() {
    let mut world = completed();
    world.delete("nab shop/daily");
    assert_snapshot!(world.trace(), @r"
    delete Backup velero/shop-daily-<1>
    release NonAdminBackup shop/daily
    event Normal BackupDeleted: the backup is gone
    ");
    assert!(!world.has("nab shop/daily") && world.names(Kind::Backup).is_empty());
    assert!(world.names(Kind::DeleteBackupRequest).is_empty());
}

#[test]
fn a_plain_delete_waits_while_somebody_holds_the_velero_backup() {
    let mut world = completed();
    world.edit("backup shop-daily-<1>", json!({"metadata": {"finalizers": ["example.com/archive"]}}));
    world.trace();
    world.delete("nab shop/daily");
    assert_snapshot!(world.trace(), @r"
    status NonAdminBackup shop/daily Deleting Accepted=True/BackupAccepted Queued=True/BackupScheduled Deleting=True/DeletionPending(the Velero Backup is being removed; its data stays in the storage, because deleting that needs spec.deleteBackup: true) queue=0 velero=Completed
    delete Backup velero/shop-daily-<1>
    ");
    assert!(world.has("nab shop/daily"));
    world.edit("backup shop-daily-<1>", json!({"metadata": {"finalizers": []}}));
    assert_snapshot!(world.trace(), @r"
    release NonAdminBackup shop/daily
    event Normal BackupDeleted: the backup is gone
    ");
    assert!(!world.has("nab shop/daily"));
}

#[test]
fn deleting_with_data_goes_through_velero() {
    let mut world = completed();
    delete_with_data(&mut world);
    assert_snapshot!(world.trace(), @r"
    status NonAdminBackup shop/daily Deleting Accepted=True/BackupAccepted Queued=True/BackupScheduled Deleting=True/DeletionPending(the backup and its data are being deleted) queue=0 velero=Completed request=unseen
    create DeleteBackupRequest velero/shop-daily-<1>-1
    event Normal DeletionRequested: Velero was asked to delete the backup with its data, and it was not recorded who asked
    ");
    assert!(world.has("nab shop/daily"), "the request goes when the Backup is gone, not before");
    let request = world.velero_begins_deleting();
    assert_snapshot!(world.trace(), @"status NonAdminBackup shop/daily Deleting Accepted=True/BackupAccepted Queued=True/BackupScheduled Deleting=True/DeletionPending(the backup and its data are being deleted) queue=0 velero=Deleting request=InProgress");
    world.velero_finishes_deleting(&request);
    assert_snapshot!(world.trace(), @r"
    release NonAdminBackup shop/daily
    delete NonAdminBackup shop/daily
    event Normal BackupDeleted: the backup is gone
    ");
    assert!(!world.has("nab shop/daily") && world.names(Kind::DeleteBackupRequest).is_empty());
}

#[test]
fn the_request_to_velero_is_marked_as_ours() {
    let mut world = completed();
    delete_with_data(&mut world);
    world.settle();
    assert_snapshot!(world.show("dbr shop-daily-<1>-1", "metadata"), @r#"
    {
      "annotations": {
        "nacre.dev/origin-uid": "<1>",
        "openshift.io/oadp-nab-origin-name": "daily",
        "openshift.io/oadp-nab-origin-namespace": "shop"
      },
      "creationTimestamp": "2026-01-01T00:00:00Z",
      "generation": 1,
      "labels": {
        "app.kubernetes.io/managed-by": "oadp-nac-controller",
        "openshift.io/oadp": "True",
        "openshift.io/oadp-nab-origin-nacuuid": "shop-daily-<1>",
        "velero.io/backup-name": "shop-daily-<1>",
        "velero.io/backup-uid": "<6:1>"
      },
      "name": "shop-daily-<1>-1",
      "namespace": "velero",
      "resourceVersion": "13",
      "uid": "<9:1>"
    }
    "#);
    assert_snapshot!(world.show("dbr shop-daily-<1>-1", "spec"), @r#"
    {
      "backupName": "shop-daily-<1>"
    }
    "#);
    let status = world.get("nab shop/daily")["status"]["veleroDeleteBackupRequest"].clone();
    assert_snapshot!(crate::world::short(&status.to_string()), @r#"{"nacuuid":"shop-daily-<1>","name":"shop-daily-<1>-1","namespace":"velero"}"#);
}

#[test]
fn restores_from_it_go_too_and_others_stay() {
    let mut world = completed();
    world.apply(nab("shop/weekly"));
    world.apply(nar("shop/from-daily", "daily"));
    world.settle();
    world.velero_starts("shop-weekly-<2>");
    world.velero_completes("shop-weekly-<2>");
    world.apply(nar("shop/from-weekly", "weekly"));
    world.trace();
    delete_with_data(&mut world);
    assert_snapshot!(world.trace(), @r"
    status NonAdminBackup shop/daily Deleting Accepted=True/BackupAccepted Queued=True/BackupScheduled Deleting=True/DeletionPending(the backup and its data are being deleted) queue=0 velero=Completed request=unseen
    delete NonAdminRestore shop/from-daily
    create DeleteBackupRequest velero/shop-daily-<1>-1
    event Normal DeletionRequested: Velero was asked to delete the backup with its data, and it was not recorded who asked
    delete Restore velero/shop-from-d-p-<r1>
    release NonAdminRestore shop/from-daily
    event Normal RestoreDeleted: the restore is gone
    ");
    world.velero_deletes();
    world.settle();
    assert_eq!(world.names(Kind::NonAdminRestore), ["shop/from-weekly"]);
    assert_eq!(world.names(Kind::NonAdminBackup), ["shop/weekly"]);
    assert_eq!(world.names(Kind::Restore), ["velero/shop-from-w-p-<r2>"]);
}

#[test]
fn deleting_with_data_what_velero_never_had() {
    let mut world = World::with(&["shop"]);
    let mut wish = nab("shop/daily");
    wish["spec"]["deleteBackup"] = json!(true);
    world.apply(wish);
    assert_snapshot!(world.trace(), @"delete NonAdminBackup shop/daily");
    assert!(!world.has("nab shop/daily") && world.names(Kind::Backup).is_empty());
}

#[test]
fn deleting_with_data_what_has_vanished() {
    let mut world = completed();
    world.apply(nar("shop/again", "daily"));
    world.settle();
    world.delete("backup shop-daily-<1>");
    world.trace();
    delete_with_data(&mut world);
    assert_snapshot!(world.trace(), @r"
    delete NonAdminRestore shop/again
    delete NonAdminBackup shop/daily
    event Normal BackupDeleted: the backup is gone
    delete Restore velero/shop-again-p-<r1>
    release NonAdminRestore shop/again
    event Normal RestoreDeleted: the restore is gone
    ");
    assert!(!world.has("nab shop/daily"));
    assert!(!world.has("nar shop/again"), "the restores from it go, whether or not Velero has it still");
}

#[test]
fn both_at_once_delete_the_data() {
    let mut world = completed();
    delete_with_data(&mut world);
    world.delete("nab shop/daily");
    assert_snapshot!(world.trace(), @r"
    status NonAdminBackup shop/daily Deleting Accepted=True/BackupAccepted Queued=True/BackupScheduled Deleting=True/DeletionPending(the backup and its data are being deleted) queue=0 velero=Completed request=unseen
    create DeleteBackupRequest velero/shop-daily-<1>-1
    event Normal DeletionRequested: Velero was asked to delete the backup with its data, and it was not recorded who asked
    ");
    world.velero_deletes();
    assert_snapshot!(world.trace(), @r"
    release NonAdminBackup shop/daily
    event Normal BackupDeleted: the backup is gone
    ");
    assert!(!world.has("nab shop/daily"));
}

#[test]
fn changing_ones_mind_before_velero_has_begun() {
    let mut world = completed();
    delete_with_data(&mut world);
    world.trace();
    world.edit("nab shop/daily", json!({"spec": {"deleteBackup": false}}));
    assert_snapshot!(world.trace(), @r"
    delete DeleteBackupRequest velero/shop-daily-<1>-1
    status NonAdminBackup shop/daily Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=0 velero=Completed
    ");
    world.velero_deletes();
    assert_eq!(world.trace(), "");
    assert!(world.has("backup shop-daily-<1>"));
}

#[test]
fn changing_ones_mind_too_late() {
    let mut world = completed();
    delete_with_data(&mut world);
    world.settle();
    let request = world.velero_begins_deleting();
    world.trace();
    world.edit("nab shop/daily", json!({"spec": {"deleteBackup": false}}));
    assert_snapshot!(world.trace(), @"status NonAdminBackup shop/daily Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=0 velero=Deleting");
    world.velero_finishes_deleting(&request);
    assert_snapshot!(world.trace(), @r"
    release NonAdminBackup shop/daily
    status NonAdminBackup shop/daily BackingOff Accepted=False/VeleroBackupNotFound Queued=True/BackupScheduled velero=Deleting
    event Warning VeleroBackupNotFound: the Velero Backup is gone (expired or deleted) and is not made again; create a new NonAdminBackup
    ");
}

#[test]
fn from_deleting_the_data_to_deleting_the_object_alone() {
    let mut world = completed();
    delete_with_data(&mut world);
    world.delete("nab shop/daily");
    world.trace();
    world.edit("nab shop/daily", json!({"spec": {"deleteBackup": false}}));
    assert_snapshot!(world.trace(), @r"
    delete DeleteBackupRequest velero/shop-daily-<1>-1
    delete Backup velero/shop-daily-<1>
    release NonAdminBackup shop/daily
    event Normal BackupDeleted: the backup is gone
    ");
    assert!(!world.has("nab shop/daily") && world.names(Kind::DeleteBackupRequest).is_empty());
}

#[test]
fn several_requests_for_one_backup_are_fine() {
    let mut world = completed();
    let request = json!({
        "apiVersion": "velero.io/v1", "kind": "DeleteBackupRequest",
        "metadata": {"namespace": "velero", "name": "by-an-administrator"},
        "spec": {"backupName": crate::world::long("shop-daily-<1>")},
    });
    world.apply(request);
    delete_with_data(&mut world);
    assert_snapshot!(world.trace(), @"status NonAdminBackup shop/daily Deleting Accepted=True/BackupAccepted Queued=True/BackupScheduled Deleting=True/DeletionPending(the backup and its data are being deleted) queue=0 velero=Completed request=unseen");
    world.velero_deletes();
    world.settle();
    assert!(!world.has("nab shop/daily") && world.names(Kind::DeleteBackupRequest).is_empty());
}

#[test]
fn an_administrators_request_is_not_taken_back() {
    let mut world = completed();
    let request = json!({
        "apiVersion": "velero.io/v1", "kind": "DeleteBackupRequest",
        "metadata": {"namespace": "velero", "name": "by-an-administrator"},
        "spec": {"backupName": crate::world::long("shop-daily-<1>")},
    });
    world.apply(request);
    delete_with_data(&mut world);
    world.settle();
    world.edit("nab shop/daily", json!({"spec": {"deleteBackup": false}}));
    world.settle();
    assert_eq!(world.names(Kind::DeleteBackupRequest), ["velero/by-an-administrator"]);
}

#[test]
fn a_finalizer_set_beforehand_blocks_nothing() {
    for wish in [json!({"backupSpec": {"ttl": "soon"}}), json!({"backupSpec": {}, "deleteBackup": true})] {
        let mut world = World::with(&["shop"]);
        let mut request = nab("shop/daily");
        request["metadata"]["finalizers"] = json!([labels::NAB_FINALIZER]);
        request["spec"] = wish;
        world.apply(request);
        world.settle();
        if world.has("nab shop/daily") {
            let finalizers = world.get("nab shop/daily")["metadata"]["finalizers"].clone();
            assert!(finalizers.is_null(), "it holds nothing back");
            world.delete("nab shop/daily");
            world.settle();
        }
        assert!(!world.has("nab shop/daily"));
    }
}

#[test]
fn somebody_elses_finalizer_is_left_alone() {
    let mut world = completed();
    world.edit(
        "nab shop/daily",
        json!({"metadata": {"finalizers": ["example.com/audit", labels::NAB_FINALIZER]}}),
    );
    world.delete("nab shop/daily");
    world.settle();
    assert_eq!(world.get("nab shop/daily")["metadata"]["finalizers"], json!(["example.com/audit"]));
    assert!(world.names(Kind::Backup).is_empty());
    world.trace();
    world.edit("nab shop/daily", json!({"metadata": {"finalizers": []}}));
    assert_eq!(world.trace(), "");
    assert!(!world.has("nab shop/daily"));
}

#[test]
fn a_request_that_lost_its_finalizer_and_is_held_by_somebody_else_is_deleted_with_its_data() {
    let mut world = completed();
    world.namespaces_are_not_seen();
    world.edit("nab shop/daily", json!({"metadata": {"finalizers": ["example.com/audit"]}}));
    delete_with_data(&mut world);
    world.delete("nab shop/daily");
    world.settle();
    world.namespaces_are_seen();
    world.pass(Duration::from_secs(2));
    assert_snapshot!(world.trace(), @r"
    status NonAdminBackup shop/daily Deleting Accepted=True/BackupAccepted Queued=True/BackupScheduled Deleting=True/DeletionPending(the backup and its data are being deleted) queue=0 velero=Completed request=unseen
    create DeleteBackupRequest velero/shop-daily-<1>-1
    event Normal DeletionRequested: Velero was asked to delete the backup with its data, and it was not recorded who asked
    ");
    world.velero_deletes();
    world.settle();
    assert!(world.names(Kind::Backup).is_empty());
}

#[test]
fn a_deletion_waits_until_its_namespace_is_seen() {
    for with_data in [false, true] {
        let mut world = completed();
        world.namespaces_are_not_seen();
        if with_data {
            delete_with_data(&mut world);
        }
        world.delete("nab shop/daily");
        world.settle();
        assert!(world.has("nab shop/daily"), "the owner of the Velero Backup is not known yet");
        world.namespaces_are_seen();
        world.pass(Duration::from_secs(2));
        world.velero_deletes();
        world.settle();
        assert!(!world.has("nab shop/daily") && world.names(Kind::Backup).is_empty());
    }
}

#[test]
fn a_status_that_is_gone_blocks_nothing() {
    for with_data in [false, true] {
        let mut world = completed();
        world.forge_status("nab shop/daily", json!(null));
        if with_data {
            delete_with_data(&mut world);
        }
        world.delete("nab shop/daily");
        world.settle();
        world.velero_deletes();
        world.settle();
        assert!(!world.has("nab shop/daily") && world.names(Kind::Backup).is_empty());
    }
}

#[test]
fn a_spec_that_cannot_be_read_blocks_nothing() {
    let mut world = completed();
    world.edit("nab shop/daily", json!({"spec": {"backupSpec": {"ttl": 24}}}));
    assert_snapshot!(world.trace(), @r"
    status NonAdminBackup shop/daily Created Accepted=True/BackupAccepted Queued=True/BackupScheduled SpecApplied=False/EditedAfterCreation(the spec was edited after Velero got it; the edit changes nothing: create a new NonAdminBackup instead) queue=0 velero=Completed
    event Warning EditedAfterCreation: the spec was edited after Velero got it; the edit changes nothing: create a new NonAdminBackup instead
    ");
    world.delete("nab shop/daily");
    world.settle();
    assert!(!world.has("nab shop/daily") && world.names(Kind::Backup).is_empty());
}
