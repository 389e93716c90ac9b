//! Imported backups, and those the Go controller created.

use api::{Kind, labels};
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::world::manifests::{imported, nab, object, origin};
use crate::world::{World, long};

/// A request as the synchroniser makes it.
fn synced(place: &str, from: &str) -> Value {
    let rest = json!({"metadata": {"labels": {labels::SYNCED_FROM: long(from)}}, "spec": {"backupSpec": {}}});
    object(Kind::NonAdminBackup, place, rest)
}

#[test]
fn a_backup_found_in_storage_is_shown() {
    let mut world = World::with(&["shop"]);
    world.apply(imported("shop-daily-old", "default", origin("shop", "daily")));
    world.apply(synced("shop/daily", "shop-daily-old"));
    assert_snapshot!(world.trace(), @r"
    hold NonAdminBackup shop/daily
    status NonAdminBackup shop/daily Created Queued=True/BackupScheduled queue=0 velero=Completed
    event Normal BackupCompleted: the backup is complete
    ");
    assert_eq!(world.names(Kind::Backup), ["velero/shop-daily-old"]);
}

#[test]
fn one_whose_backup_comes_later_heals_and_never_makes_one_itself() {
    let mut world = World::with(&["shop"]);
    world.apply(synced("shop/daily", "shop-daily-old"));
    assert_snapshot!(world.trace(), @r"
    status NonAdminBackup shop/daily BackingOff Accepted=False/VeleroBackupNotFound
    event Warning VeleroBackupNotFound: there is no backup of this namespace to synchronise from; remove this object and create a new NonAdminBackup
    ");
    world.apply(imported("shop-daily-old", "default", origin("shop", "daily")));
    assert_snapshot!(world.trace(), @r"
    hold NonAdminBackup shop/daily
    status NonAdminBackup shop/daily Created Queued=True/BackupScheduled queue=0 velero=Completed
    event Normal BackupCompleted: the backup is complete
    ");
}

#[test]
fn no_policy_applies_to_what_is_there_already() {
    let mut world = World::with(&["shop"]);
    world.policy(|policy| policy.backup.ttl.max = Some("1h".into()));
    world.apply(imported("shop-daily-old", "default", origin("shop", "daily")));
    world.apply(synced("shop/daily", "shop-daily-old"));
    world.settle();
    assert_eq!(world.get("nab shop/daily")["status"]["phase"], "Created");
}

#[test]
fn in_tenant_storage_the_owner_of_the_storage_is_the_owner() {
    let mut world = World::with(&["shop"]);
    let storage = world.tenant_storage("shop/bucket");
    world.apply(imported("nameless", &storage, json!({})));
    world.apply(synced("shop/daily", "nameless"));
    world.settle();
    assert_eq!(world.get("nab shop/daily")["status"]["phase"], "Created");
    // While the location is missing the owner is unknown; afterwards it is found again.
    let storage = format!("bsl {storage}");
    let whole = world.get(&storage);
    let mut named = synced("shop/daily", "nameless");
    named["spec"]["backupSpec"]["storageLocation"] = json!("bucket");
    world.apply(named);
    world.delete(&storage);
    world.edit("backup nameless", json!({"status": {"warnings": 1}}));
    assert_snapshot!(world.trace(), @r"
    hold NonAdminBackup shop/daily
    status NonAdminBackup shop/daily Created Queued=True/BackupScheduled queue=0 velero=Completed
    event Normal BackupCompleted: the backup is complete
    ");
    world.apply(whole);
    world.settle();
    assert_eq!(world.get("nab shop/daily")["status"]["veleroBackup"]["status"]["warnings"], 1);
}

#[test]
fn while_its_storage_is_away_it_is_shown_as_it_was() {
    let mut world = World::with(&["shop", "rival"]);
    let storage = world.tenant_storage("shop/bucket");
    world.apply(imported("nameless", &storage, json!({})));
    world.apply(synced("shop/daily", "nameless"));
    world.settle();
    let shown = world.get("nab shop/daily")["status"].clone();
    world.trace();
    let place = world.get(&format!("bsl {storage}"));
    world.delete(&format!("bsl {storage}"));
    assert_eq!(world.trace(), "");
    assert_eq!(world.get("nab shop/daily")["status"], shown);
    // A request that never showed it learns nothing.
    world.apply(synced("rival/copy", "nameless"));
    world.settle();
    assert!(world.condition("nab rival/copy", "Accepted").contains("there is no backup of this namespace"));
    // What Velero has said meanwhile is shown when the storage is back.
    world.edit("backup nameless", json!({"status": {"warnings": 1}}));
    world.apply(place);
    world.settle();
    assert_eq!(world.get("nab shop/daily")["status"]["veleroBackup"]["status"]["warnings"], 1);
    world.delete(&format!("bsl {storage}"));
    world.delete("backup nameless");
    world.settle();
    assert!(world.condition("nab shop/daily", "Accepted").contains("VeleroBackupNotFound"));
}

#[test]
fn it_can_be_deleted_both_ways() {
    for with_data in [false, true] {
        let mut world = World::with(&["shop"]);
        world.apply(imported("shop-daily-old", "default", origin("shop", "daily")));
        world.apply(synced("shop/daily", "shop-daily-old"));
        world.settle();
        if with_data {
            world.edit("nab shop/daily", json!({"spec": {"deleteBackup": true}}));
            world.settle();
            assert_eq!(world.names(Kind::DeleteBackupRequest), ["velero/shop-daily-old-1"]);
            world.velero_deletes();
        } else {
            world.delete("nab shop/daily");
        }
        world.settle();
        assert!(!world.has("nab shop/daily") && world.names(Kind::Backup).is_empty());
    }
}

#[test]
fn one_that_lost_its_label_is_not_lost() {
    let mut world = World::with(&["shop"]);
    let mut made_for = origin("shop", "daily");
    made_for[labels::ORIGIN_UID] = json!("the request of another cluster");
    world.apply(imported("shop-daily-old", "default", made_for));
    world.apply(synced("shop/daily", "shop-daily-old"));
    world.settle();
    world.edit("nab shop/daily", json!({"metadata": {"labels": {labels::SYNCED_FROM: null}}}));
    world.settle();
    assert_eq!(world.get("nab shop/daily")["status"]["phase"], "Created");
    assert_eq!(world.names(Kind::Backup), ["velero/shop-daily-old"]);
}

/// A request and a Backup as the Go controller leaves them behind.
fn taken_over(backup: Value) -> World {
    let mut world = World::with(&["shop"]);
    let mut velero =
        object(Kind::Backup, "velero/shop-daily-0b8d1a52", json!({"spec": {"includedNamespaces": ["shop"]}}));
    velero["metadata"]["annotations"] = origin("shop", "daily");
    velero["metadata"]["labels"] = json!({labels::NAB_NACUUID: "shop-daily-0b8d1a52",
        labels::OADP: labels::OADP_VALUE, labels::MANAGED_BY: labels::MANAGED_BY_VALUE});
    velero["status"] = backup;
    world.apply(velero);
    let mut request = nab("shop/daily");
    request["metadata"]["finalizers"] = json!([labels::NAB_FINALIZER]);
    world.apply(request);
    let since = "2025-12-01T00:00:00Z";
    let condition = |type_: &str, reason: &str| {
        json!({"type": type_, "status": "True", "reason": reason, "message": "as the Go controller says",
            "lastTransitionTime": since})
    };
    world.forge_status(
        "nab shop/daily",
        json!({
            "phase": "Created", "queueInfo": {"estimatedQueuePosition": 0},
            "conditions": [condition("Accepted", "BackupAccepted"), condition("Queued", "BackupScheduled")],
            "veleroBackup": {"nacuuid": "shop-daily-0b8d1a52", "name": "shop-daily-0b8d1a52", "namespace": "velero"},
        }),
    );
    world
}

#[test]
fn what_the_go_controller_made_is_taken_over_under_its_name() {
    let mut world = taken_over(json!({"phase": "InProgress"}));
    assert_snapshot!(world.trace(), @r#"
    patch Backup velero/shop-daily-0b8d1a52 {"metadata":{"annotations":{"nacre.dev/origin-namespace-uid":"<n2>","nacre.dev/origin-uid":"<1>"}}}
    status NonAdminBackup shop/daily Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=1 velero=InProgress
    event Normal BackupStarted: Velero has started the backup
    "#);
    let since = world.get("nab shop/daily")["status"]["conditions"][0]["lastTransitionTime"].clone();
    assert_eq!(since, "2025-12-01T00:00:00Z");
    world.velero_completes("shop-daily-0b8d1a52");
    assert_snapshot!(world.trace(), @r"
    status NonAdminBackup shop/daily Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=0 velero=Completed
    event Normal BackupCompleted: the backup is complete
    ");
    assert_eq!(world.names(Kind::Backup), ["velero/shop-daily-0b8d1a52"]);
}

#[test]
fn what_the_go_controller_made_can_be_deleted_with_its_data() {
    let mut world = taken_over(json!({"phase": "Completed", "completionTimestamp": "2025-12-02T00:00:00Z"}));
    world.edit("backup shop-daily-0b8d1a52", json!({"spec": {"storageLocation": "default"}}));
    world.edit("nab shop/daily", json!({"spec": {"deleteBackup": true}}));
    world.settle();
    world.velero_deletes();
    world.settle();
    assert!(!world.has("nab shop/daily") && world.names(Kind::Backup).is_empty());
}

#[test]
fn what_the_go_controller_made_for_a_namesake_is_not_taken() {
    let mut world = taken_over(json!({"phase": "Completed"}));
    world.edit(
        "backup shop-daily-0b8d1a52",
        json!({"metadata": {"annotations": {labels::NAB_NAME: "weekly"}}}),
    );
    world.settle();
    assert_eq!(
        world.condition("nab shop/daily", "Accepted").split(':').next(),
        Some("False/VeleroBackupNotFound")
    );
    assert_eq!(
        world.get("backup shop-daily-0b8d1a52")["metadata"]["annotations"][labels::ORIGIN_UID],
        Value::Null
    );
}

#[test]
fn what_the_go_controller_had_not_got_round_to_is_done() {
    let mut world = World::with(&["shop"]);
    world.apply(nab("shop/daily"));
    world.forge_status(
        "nab shop/daily",
        json!({"phase": "New", "veleroBackup": {"nacuuid": "shop-daily-0b8d1a52", "name": "shop-daily-0b8d1a52"}}),
    );
    world.settle();
    assert_eq!(world.names(Kind::Backup), ["velero/shop-daily-<1>"]);
    assert_eq!(world.get("nab shop/daily")["status"]["veleroBackup"]["nacuuid"], long("shop-daily-<1>"));
}

#[test]
fn a_request_the_go_controller_left_stuck_can_go() {
    let mut world = World::with(&["shop"]);
    let mut request = nab("shop/daily");
    request["metadata"]["finalizers"] = json!([labels::NAB_FINALIZER]);
    request["spec"] = json!({"backupSpec": {"ttl": "soon"}});
    world.apply(request);
    world.forge_status("nab shop/daily", json!({"phase": "Deleting"}));
    world.delete("nab shop/daily");
    world.settle();
    assert!(!world.has("nab shop/daily"));
}

#[test]
fn a_label_that_names_one_backup_does_not_lead_to_another() {
    let mut world = World::with(&["shop"]);
    world.apply(imported("shop-weekly-old", "default", origin("shop", "weekly")));
    world.apply(synced("shop/daily", "shop-daily-gone"));
    world.forge_status(
        "nab shop/daily",
        json!({"phase": "Created", "veleroBackup": {"nacuuid": "shop-weekly-old", "name": "shop-weekly-old"}}),
    );
    world.settle();
    let reported = world.condition("nab shop/daily", "Accepted");
    assert!(reported.starts_with("False/VeleroBackupNotFound: the Velero Backup is gone"), "{reported}");
}
