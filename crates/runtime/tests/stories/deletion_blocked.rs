//! What can block the deletion of data: nacre waits with a condition and continues by itself, or falls back and reports
//! it.

use std::time::Duration;

use api::Kind;
use insta::assert_snapshot;
use serde_json::json;

use crate::world::World;
use crate::world::manifests::{nab, nab_with, nar};

/// A backup in the tenant's own storage, completed.
fn in_own_storage() -> (World, String) {
    let mut world = World::with(&["shop"]);
    let storage = world.tenant_storage("shop/bucket");
    world.apply(nab_with("shop/daily", json!({"storageLocation": "bucket"})));
    world.settle();
    world.velero_starts("shop-daily-<1>");
    world.velero_completes("shop-daily-<1>");
    world.trace();
    (world, format!("bsl {storage}"))
}

fn delete_with_data(world: &mut World) {
    world.edit("nab shop/daily", json!({"spec": {"deleteBackup": true}}));
}

fn ends_well(world: &mut World) {
    world.velero_deletes();
    world.settle();
    assert!(!world.has("nab shop/daily") && world.names(Kind::Backup).is_empty());
    assert!(world.names(Kind::DeleteBackupRequest).is_empty());
}

#[test]
fn a_backup_that_still_runs() {
    let mut world = World::with(&["shop"]);
    world.apply(nab("shop/daily"));
    world.settle();
    world.velero_starts("shop-daily-<1>");
    world.trace();
    delete_with_data(&mut world);
    assert_snapshot!(world.trace(), @"status NonAdminBackup shop/daily Deleting Accepted=True/BackupAccepted Queued=True/BackupScheduled Deleting=True/DeletionPending(waiting to delete the backup and its data: Velero is not done with it yet) queue=1 velero=InProgress");
    world.pass(Duration::from_mins(10));
    world.velero_progresses("shop-daily-<1>", 1, 2);
    assert_snapshot!(world.trace(), @"status NonAdminBackup shop/daily Deleting Accepted=True/BackupAccepted Queued=True/BackupScheduled Deleting=True/DeletionPending(waiting to delete the backup and its data: Velero is not done with it yet) queue=1 velero=InProgress 1/2");
    world.velero_completes("shop-daily-<1>");
    assert_snapshot!(world.trace(), @r"
    status NonAdminBackup shop/daily Deleting Accepted=True/BackupAccepted Queued=True/BackupScheduled Deleting=True/DeletionPending(the backup and its data are being deleted) queue=0 velero=Completed 1/2 request=unseen
    create DeleteBackupRequest velero/shop-daily-<1>-1
    event Normal DeletionRequested: Velero was asked to delete the backup with its data, and it was not recorded who asked
    ");
    ends_well(&mut world);
}

#[test]
fn a_location_that_is_read_only_for_a_while() {
    let (mut world, storage) = in_own_storage();
    world.edit(&storage, json!({"spec": {"accessMode": "ReadOnly"}}));
    delete_with_data(&mut world);
    assert_snapshot!(world.trace(), @"status NonAdminBackup shop/daily Deleting Accepted=True/BackupAccepted Queued=True/BackupScheduled Deleting=True/DeletionPending(waiting to delete the backup and its data: its storage location is read-only) queue=0 velero=Completed");
    world.pass(Duration::from_mins(10));
    assert_eq!(world.trace(), "", "waiting is silent");
    world.edit(&storage, json!({"spec": {"accessMode": "ReadWrite"}}));
    assert_snapshot!(world.trace(), @r"
    status NonAdminBackup shop/daily Deleting Accepted=True/BackupAccepted Queued=True/BackupScheduled Deleting=True/DeletionPending(the backup and its data are being deleted) queue=0 velero=Completed request=unseen
    create DeleteBackupRequest velero/shop-daily-<1>-1
    event Normal DeletionRequested: Velero was asked to delete the backup with its data, and it was not recorded who asked
    ");
    ends_well(&mut world);
}

#[test]
fn a_location_that_cannot_be_reached_for_a_while() {
    let (mut world, storage) = in_own_storage();
    world.edit(&storage, json!({"status": {"phase": "Unavailable"}}));
    delete_with_data(&mut world);
    assert_snapshot!(world.trace(), @"status NonAdminBackup shop/daily Deleting Accepted=True/BackupAccepted Queued=True/BackupScheduled Deleting=True/DeletionPending(waiting to delete the backup and its data: its storage location cannot be reached) queue=0 velero=Completed");
    world.edit(&storage, json!({"status": {"phase": "Available"}}));
    world.settle();
    ends_well(&mut world);
}

#[test]
fn a_location_that_velero_has_lost_for_a_while() {
    let (mut world, storage) = in_own_storage();
    let whole = world.get(&storage);
    world.delete(&storage);
    delete_with_data(&mut world);
    assert_snapshot!(world.trace(), @"status NonAdminBackup shop/daily Deleting Accepted=True/BackupAccepted Queued=True/BackupScheduled Deleting=True/DeletionPending(waiting to delete the backup and its data: its storage location is not there at the moment) queue=0 velero=Completed");
    world.apply(whole);
    world.settle();
    ends_well(&mut world);
}

#[test]
fn the_platforms_location_is_looked_at_again_after_a_while() {
    let mut world = World::with(&["shop"]);
    world.apply(nab("shop/daily"));
    world.settle();
    world.velero_starts("shop-daily-<1>");
    world.velero_completes("shop-daily-<1>");
    world.edit("bsl default", json!({"spec": {"accessMode": "ReadOnly"}}));
    delete_with_data(&mut world);
    world.settle();
    world.edit("bsl default", json!({"spec": {"accessMode": "ReadWrite"}}));
    world.pass(Duration::from_secs(15));
    ends_well(&mut world);
}

#[test]
fn a_location_that_is_gone_for_good() {
    let (mut world, storage) = in_own_storage();
    world.delete("nabsl shop/bucket");
    world.delete(&storage);
    delete_with_data(&mut world);
    assert_snapshot!(world.trace(), @r"
    delete Backup velero/shop-daily-<1>
    event Warning DataNotDeleted: its storage location is gone: the Velero Backup is removed, its data stays in the storage
    release NonAdminBackup shop/daily
    delete NonAdminBackup shop/daily
    event Normal BackupDeleted: the backup is gone
    ");
    assert!(!world.has("nab shop/daily") && world.names(Kind::Backup).is_empty());
}

#[test]
fn a_location_that_goes_for_good_while_waiting() {
    let (mut world, storage) = in_own_storage();
    world.edit(&storage, json!({"status": {"phase": "Unavailable"}}));
    delete_with_data(&mut world);
    world.trace();
    world.delete("nabsl shop/bucket");
    world.delete(&storage);
    assert_snapshot!(world.trace(), @r"
    delete Backup velero/shop-daily-<1>
    event Warning DataNotDeleted: its storage location is gone: the Velero Backup is removed, its data stays in the storage
    release NonAdminBackup shop/daily
    delete NonAdminBackup shop/daily
    event Normal BackupDeleted: the backup is gone
    ");
    assert!(!world.has("nab shop/daily"));
}

#[test]
fn what_velero_would_not_even_start_has_no_data_to_delete() {
    let mut world = World::with(&["shop"]);
    world.apply(nab("shop/daily"));
    world.settle();
    world.velero_fails_validation("shop-daily-<1>", "a valid location is required");
    world.trace();
    delete_with_data(&mut world);
    assert_snapshot!(world.trace(), @r"
    delete Backup velero/shop-daily-<1>
    release NonAdminBackup shop/daily
    delete NonAdminBackup shop/daily
    event Normal BackupDeleted: the backup is gone
    ");
    assert!(!world.has("nab shop/daily") && world.names(Kind::Backup).is_empty());
}

#[test]
fn a_namespace_on_its_way_out() {
    let (mut world, storage) = in_own_storage();
    world.apply(nar("shop/again", "daily"));
    world.settle();
    world.edit(&storage, json!({"status": {"phase": "Unavailable"}}));
    delete_with_data(&mut world);
    world.trace();
    world.delete("ns shop");
    assert_snapshot!(world.trace(), @r"
    delete Backup velero/shop-daily-<1>
    event Warning DataNotDeleted: the namespace is being deleted: the Velero Backup is removed, its data stays in the storage
    release NonAdminBackup shop/daily
    event Normal BackupDeleted: the backup is gone
    ");
    assert!(!world.has("nab shop/daily") && !world.has("nar shop/again") && !world.has("ns shop"));
    assert!(world.names(Kind::Backup).is_empty() && world.names(Kind::Restore).is_empty());
}

#[test]
fn a_refusal_for_a_reason_nobody_could_see() {
    let (mut world, _) = in_own_storage();
    delete_with_data(&mut world);
    world.settle();
    let request = world.velero_begins_deleting();
    world.trace();
    world.velero_fails_to_delete(&request, "error removing backup: access denied");
    assert_snapshot!(world.trace(), @r"
    status NonAdminBackup shop/daily Deleting Accepted=True/BackupAccepted Queued=True/BackupScheduled Deleting=True/DeletionPending(Velero refused to delete the backup and its data: error removing backup: access denied; it is asked again) queue=0 velero=Deleting request=Processed(error removing backup: access denied)
    event Warning DeletionRefused: error removing backup: access denied
    ");
    world.pass(Duration::from_secs(30));
    assert_eq!(world.trace(), "");
    world.pass(Duration::from_mins(1));
    assert_snapshot!(world.trace(), @r"
    status NonAdminBackup shop/daily Deleting Accepted=True/BackupAccepted Queued=True/BackupScheduled Deleting=True/DeletionPending(the backup and its data are being deleted) queue=0 velero=Deleting request=unseen
    create DeleteBackupRequest velero/shop-daily-<1>-2
    event Normal DeletionRequested: Velero was asked to delete the backup with its data, and it was not recorded who asked
    ");
    ends_well(&mut world);
}

#[test]
fn a_refusal_because_velero_saw_what_nacre_did_not() {
    let (mut world, storage) = in_own_storage();
    delete_with_data(&mut world);
    world.settle();
    world.edit(&storage, json!({"spec": {"accessMode": "ReadOnly"}}));
    world.velero_deletes();
    world.trace();
    world.edit(&storage, json!({"spec": {"accessMode": "ReadWrite"}}));
    assert_snapshot!(world.trace(), @r"
    status NonAdminBackup shop/daily Deleting Accepted=True/BackupAccepted Queued=True/BackupScheduled Deleting=True/DeletionPending(Velero refused to delete the backup and its data: cannot delete backup because backup storage location shop-bucket-<l1> is currently in read-only mode; it is asked again) queue=0 velero=Completed request=Processed(cannot delete backup because backup storage location shop-bucket-<l1> is currently in read-only mode)
    event Warning DeletionRefused: cannot delete backup because backup storage location shop-bucket-<l1> is currently in read-only mode
    ");
    world.pass(Duration::from_mins(2));
    ends_well(&mut world);
}

#[test]
fn a_refused_deletion_can_be_withdrawn() {
    let (mut world, _) = in_own_storage();
    delete_with_data(&mut world);
    world.settle();
    let request = world.velero_begins_deleting();
    world.velero_fails_to_delete(&request, "access denied");
    world.trace();
    world.edit("nab shop/daily", json!({"spec": {"deleteBackup": null}}));
    assert_snapshot!(world.trace(), @"status NonAdminBackup shop/daily Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=0 velero=Deleting");
    world.pass(Duration::from_mins(10));
    assert_eq!(world.trace(), "");
}

#[test]
fn waiting_for_ever_is_a_few_writes_an_hour_at_most() {
    let (mut world, _) = in_own_storage();
    delete_with_data(&mut world);
    world.settle();
    let before = world.writes();
    for _ in 0..60 {
        if let Some(request) = world.names(Kind::DeleteBackupRequest).last() {
            let request = world.found(&format!("dbr {request}"));
            world.velero_fails_to_delete(&request, "access denied");
        }
        world.pass(Duration::from_mins(1));
    }
    assert!(world.writes() - before <= 60 * 4, "{} writes", world.writes() - before);
}
