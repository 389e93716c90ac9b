//! Mirroring: nacre shows Velero's status, and writes no more than that.

use std::time::Duration;

use api::{Kind, labels};
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::world::World;
use crate::world::manifests::{nab, nab_with, object};

/// A world in which Velero has been given one backup.
fn given() -> World {
    let mut world = World::with(&["shop"]);
    world.apply(nab("shop/daily"));
    world.trace();
    world
}

#[test]
fn from_start_to_completion() {
    let mut world = given();
    world.velero_says("shop-daily-<1>", json!({"phase": "Queued", "queuePosition": 1}));
    assert_snapshot!(world.trace(), @"status NonAdminBackup shop/daily Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=1 velero=Queued");
    world.velero_says("shop-daily-<1>", json!({"phase": "ReadyToStart", "queuePosition": null}));
    assert_snapshot!(world.trace(), @"status NonAdminBackup shop/daily Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=1 velero=ReadyToStart");
    world.velero_starts("shop-daily-<1>");
    assert_snapshot!(world.trace(), @r"
    status NonAdminBackup shop/daily Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=1 velero=InProgress
    event Normal BackupStarted: Velero has started the backup
    ");
    world.velero_progresses("shop-daily-<1>", 3, 10);
    assert_snapshot!(world.trace(), @"status NonAdminBackup shop/daily Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=1 velero=InProgress 3/10");
    world.velero_says("shop-daily-<1>", json!({"phase": "WaitingForPluginOperations"}));
    assert_snapshot!(world.trace(), @"status NonAdminBackup shop/daily Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=1 velero=WaitingForPluginOperations 3/10");
    world.velero_says("shop-daily-<1>", json!({"phase": "Finalizing"}));
    assert_snapshot!(world.trace(), @"status NonAdminBackup shop/daily Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=1 velero=Finalizing 3/10");
    world.velero_completes("shop-daily-<1>");
    assert_snapshot!(world.trace(), @r"
    status NonAdminBackup shop/daily Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=0 velero=Completed 3/10
    event Normal BackupCompleted: the backup is complete
    ");
    assert_eq!(
        world.get("nab shop/daily")["status"]["veleroBackup"]["spec"],
        world.get("backup shop-daily-<1>")["spec"],
        "what Velero filled in is shown too"
    );
}

#[test]
fn what_ends_badly_is_told_in_veleros_words() {
    let ended = |end: fn(&mut World)| {
        let mut world = given();
        end(&mut world);
        world.trace()
    };
    let failed =
        ended(|world| world.velero_ends("shop-daily-<1>", "Failed", json!({"failureReason": "disk full"})));
    assert_snapshot!(failed, @r"
    status NonAdminBackup shop/daily Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=0 velero=Failed
    event Warning BackupFailed: Velero ended the backup as Failed: disk full
    ");
    let partly = ended(|world| world.velero_ends("shop-daily-<1>", "PartiallyFailed", json!({"errors": 2})));
    assert_snapshot!(partly, @r"
    status NonAdminBackup shop/daily Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=0 velero=PartiallyFailed
    event Warning BackupFailed: Velero ended the backup as PartiallyFailed
    ");
    let invalid = ended(|world| world.velero_fails_validation("shop-daily-<1>", "no such location"));
    assert_snapshot!(invalid, @r"
    status NonAdminBackup shop/daily Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=0 velero=FailedValidation
    event Warning BackupFailed: Velero ended the backup as FailedValidation: no such location
    ");
}

#[test]
fn ten_ticks_are_ten_writes_to_one_request_among_many() {
    let mut world = World::with(&["shop", "office"]);
    world.stop_recording(); // Which of the twenty go first depends on which nacre hears of first.
    for at in 0..20 {
        world.apply(nab(&format!("{}/b{at:02}", if at % 2 == 0 { "shop" } else { "office" })));
    }
    world.settle();
    let running = world.velero_name("nab shop/b00");
    world.velero_starts(&running);
    world.trace();
    let before = world.writes();
    for done in 1..=10 {
        world.velero_progresses(&running, done, 10);
        world.settle();
    }
    assert_eq!(world.writes() - before, 10);
    let reported = world.trace();
    assert!(reported.lines().all(|line| line.starts_with("status NonAdminBackup shop/b00")), "{reported}");
}

#[test]
fn a_change_of_timestamps_alone_is_not_worth_a_write() {
    let mut world = given();
    world.velero_starts("shop-daily-<1>");
    world.velero_completes("shop-daily-<1>");
    world.trace();
    let again = json!({"expiration": "2026-03-01T00:00:00Z", "completionTimestamp": "2026-01-01T00:05:00Z"});
    world.velero_says("shop-daily-<1>", again);
    assert_eq!(world.trace(), "");
    world.velero_says("shop-daily-<1>", json!({"warnings": 1}));
    assert_eq!(world.trace().lines().count(), 1);
    let shown = world.get("nab shop/daily")["status"]["veleroBackup"]["status"].clone();
    assert_eq!(shown["expiration"], "2026-03-01T00:00:00Z", "with something else they are brought along");
}

#[test]
fn volumes_are_counted() {
    let volume = |kind: Kind, name: &str, phase: &str| {
        let labels = json!({labels::VELERO_BACKUP_NAME: crate::world::long("shop-daily-<1>")});
        let rest = json!({"metadata": {"labels": labels}, "spec": {}, "status": {"phase": phase}});
        object(kind, &format!("velero/{name}"), rest)
    };
    let mut world = given();
    world.apply(volume(Kind::PodVolumeBackup, "a", "Completed"));
    world.apply(volume(Kind::PodVolumeBackup, "b", "Prepared"));
    world.apply(volume(Kind::DataUpload, "c", "InProgress"));
    assert_snapshot!(world.trace(), @r#"status NonAdminBackup shop/daily Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=1 fileSystemPodVolumeBackups={"completed":1,"new":1,"total":2} dataMoverDataUploads={"inProgress":1,"total":1}"#);
    world.edit("DataUpload c", json!({"status": {"phase": "Completed"}}));
    assert_snapshot!(world.trace(), @r#"status NonAdminBackup shop/daily Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=1 fileSystemPodVolumeBackups={"completed":1,"new":1,"total":2} dataMoverDataUploads={"completed":1,"total":1}"#);
}

#[test]
fn positions_move_up_and_finished_ones_show_zero() {
    let mut world = World::with(&["shop", "office"]);
    world.hand_over_at_once();
    for name in ["shop/a", "office/b", "shop/c"] {
        world.apply(nab(name));
        world.pass(Duration::from_secs(1));
    }
    world.trace();
    world.velero_starts("shop-a-<1>");
    world.velero_completes("shop-a-<1>");
    assert_snapshot!(world.trace(), @r"
    status NonAdminBackup shop/a Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=0 velero=Completed
    event Normal BackupCompleted: the backup is complete
    ");
    // Others are brought up to date by a chore with a budget, not by this completion.
    world.refresh_positions();
    assert_snapshot!(world.trace(), @r"
    status NonAdminBackup office/b Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=1
    status NonAdminBackup shop/c Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=2
    ");
    world.velero_says("office-b-<2>", json!({"phase": "WaitingForPluginOperations"}));
    world.refresh_positions();
    assert_snapshot!(world.trace(), @r"
    status NonAdminBackup office/b Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=1 velero=WaitingForPluginOperations
    event Normal BackupStarted: Velero has started the backup
    status NonAdminBackup shop/c Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=1
    ");
    world.velero_fails_validation("office-b-<2>", "no");
    world.delete("nab shop/c");
    world.settle();
    world.trace();
    world.apply(nab("office/d"));
    assert_snapshot!(world.trace(), @r"
    hold NonAdminBackup office/d
    create Backup velero/office-d-<4>
    status NonAdminBackup office/d Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=1
    event Normal BackupScheduled: Velero was given the backup as office-d-<4>
    ");
}

#[test]
fn velero_counting_its_queue_anew_is_not_worth_a_write() {
    let mut world = World::with(&["shop"]);
    for name in ["shop/a", "shop/b"] {
        world.apply(nab(name));
    }
    world.settle();
    world.velero_says("shop-a-<1>", json!({"phase": "Queued", "queuePosition": 1}));
    world.velero_says("shop-b-<2>", json!({"phase": "Queued", "queuePosition": 2}));
    world.trace();
    world.velero_starts("shop-a-<1>");
    world.velero_says("shop-a-<1>", json!({"queuePosition": null}));
    world.velero_says("shop-b-<2>", json!({"queuePosition": 1}));
    let reported = world.trace();
    assert!(!reported.contains("shop/b"), "{reported}");
    world.refresh_positions();
    let shown = world.get("nab shop/b")["status"]["veleroBackup"]["status"].clone();
    assert_eq!(shown["queuePosition"], 1, "the chore brings it along");
}

#[test]
fn an_administrators_backup_is_ahead_too() {
    let mut world = World::with(&["shop"]);
    world.apply(object(Kind::Backup, "velero/whole-cluster", json!({"spec": {}})));
    world.pass(Duration::from_secs(1));
    world.apply(nab("shop/daily"));
    world.settle();
    assert_eq!(world.get("nab shop/daily")["status"]["queueInfo"]["estimatedQueuePosition"], 2);
}

#[test]
fn an_edit_comes_too_late_and_is_told() {
    let mut world = given();
    world.apply(nab_with("shop/daily", json!({"ttl": "24h"})));
    assert_snapshot!(world.trace(), @r"
    status NonAdminBackup shop/daily Created Accepted=True/BackupAccepted Queued=True/BackupScheduled SpecApplied=False/EditedAfterCreation(the spec was edited after Velero got it; the edit changes nothing: create a new NonAdminBackup instead) queue=1
    event Warning EditedAfterCreation: the spec was edited after Velero got it; the edit changes nothing: create a new NonAdminBackup instead
    ");
    assert!(world.get("backup shop-daily-<1>")["spec"]["ttl"].is_null());
    world.apply(nab("shop/daily"));
    assert_snapshot!(world.trace(), @"status NonAdminBackup shop/daily Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=1");
    world.apply(nab_with("shop/daily", json!({"includedNamespaces": ["office"]})));
    world.settle();
    assert_eq!(
        world.get("nab shop/daily")["status"]["phase"],
        "Created",
        "an invalid edit changes nothing either"
    );
}

#[test]
fn the_generation_that_was_looked_at_is_shown() {
    let mut world = given();
    world.apply(nab_with("shop/daily", json!({"ttl": "24h"})));
    world.settle();
    let request = world.get("nab shop/daily");
    let conditions = request["status"]["conditions"].as_array().unwrap();
    assert!(conditions.iter().all(|condition| condition["observedGeneration"] == json!(2)), "{conditions:?}");
    let since: Vec<_> = conditions.iter().map(|condition| &condition["lastTransitionTime"]).collect();
    assert_eq!(since.len(), 4);
}

#[test]
fn a_transition_time_stays_while_nothing_turns() {
    let mut world = given();
    world.pass(Duration::from_hours(1));
    world.velero_starts("shop-daily-<1>");
    world.apply(nab_with("shop/daily", json!({"ttl": "24h"})));
    world.settle();
    let request = world.get("nab shop/daily");
    let conditions = request["status"]["conditions"].as_array().unwrap();
    let since = |type_: &str| -> Value {
        conditions.iter().find(|condition| condition["type"] == type_).unwrap()["lastTransitionTime"].clone()
    };
    assert_eq!(since("Accepted"), "2026-01-01T00:00:00Z");
    assert_eq!(since("Queued"), "2026-01-01T00:00:00Z");
    assert_eq!(since("SpecApplied"), "2026-01-01T01:00:00Z");
}

#[test]
fn a_finalizer_somebody_took_off_is_put_back() {
    let mut world = given();
    world.edit("nab shop/daily", json!({"metadata": {"finalizers": []}}));
    assert_snapshot!(world.trace(), @"hold NonAdminBackup shop/daily");
}

#[test]
fn a_status_somebody_spoiled_is_put_right() {
    let mut world = given();
    world.forge_status("nab shop/daily", json!({"phase": "New", "queueInfo": null, "conditions": []}));
    assert_snapshot!(world.trace(), @"status NonAdminBackup shop/daily Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=1");
    world.forge_status("nab shop/daily", json!({"veleroBackup": {"nacuuid": "another"}}));
    assert_snapshot!(world.trace(), @"status NonAdminBackup shop/daily Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=1");
}

#[test]
fn a_backup_that_expired_is_not_made_again() {
    let mut world = given();
    world.velero_starts("shop-daily-<1>");
    world.velero_completes("shop-daily-<1>");
    world.trace();
    world.velero_expires("shop-daily-<1>");
    assert_snapshot!(world.trace(), @r"
    release NonAdminBackup shop/daily
    status NonAdminBackup shop/daily BackingOff Accepted=False/VeleroBackupNotFound Queued=True/BackupScheduled velero=Completed
    event Warning VeleroBackupNotFound: the Velero Backup is gone (expired or deleted) and is not made again; create a new NonAdminBackup
    ");
    world.apply(nab_with("shop/daily", json!({"ttl": "24h"})));
    world.policy(|_| ());
    world.settle();
    assert!(world.names(Kind::Backup).is_empty());
    world.delete("nab shop/daily");
    world.settle();
    assert!(!world.has("nab shop/daily"), "and it can still be deleted");
}

#[test]
fn a_backup_deleted_by_an_administrator_is_not_made_again() {
    let mut world = given();
    world.delete("backup shop-daily-<1>");
    assert_snapshot!(world.trace(), @r"
    release NonAdminBackup shop/daily
    status NonAdminBackup shop/daily BackingOff Accepted=False/VeleroBackupNotFound Queued=True/BackupScheduled
    event Warning VeleroBackupNotFound: the Velero Backup is gone (expired or deleted) and is not made again; create a new NonAdminBackup
    ");
    assert!(world.names(Kind::Backup).is_empty());
}

#[test]
fn a_spec_that_is_merely_long_is_shown() {
    let mut world = World::with(&["shop"]);
    let names: Vec<_> = (0..500).map(|at| format!("resource-number-{at}.example.com")).collect();
    world.apply(nab_with("shop/daily", json!({"excludedResources": names})));
    world.settle();
    let shown = world.get("nab shop/daily")["status"]["veleroBackup"]["spec"]["excludedResources"].clone();
    assert!(shown.as_array().is_some_and(|shown| shown.len() >= 500));
}

#[test]
fn a_huge_spec_loses_its_copy_in_the_status_and_nothing_else() {
    let mut world = World::with(&["shop"]);
    let names: Vec<_> = (0..20_000).map(|at| format!("resource-number-{at}.example.com")).collect();
    world.apply(nab_with("shop/daily", json!({"excludedResources": names})));
    assert_snapshot!(world.trace(), @r"
    hold NonAdminBackup shop/daily
    create Backup velero/shop-daily-<1>
    status NonAdminBackup shop/daily Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=1
    event Normal BackupScheduled: Velero was given the backup as shop-daily-<1>
    ");
    let shown = world.get("nab shop/daily")["status"]["veleroBackup"].clone();
    assert!(shown["spec"].is_null());
    let few = json!(["resource-number-7.example.com is not known"]);
    world.velero_says("shop-daily-<1>", json!({"phase": "FailedValidation", "validationErrors": few}));
    world.settle();
    let shown = world.get("nab shop/daily")["status"]["veleroBackup"]["status"].clone();
    assert_eq!(shown["validationErrors"], few);
    let errors: Vec<_> =
        (0..15_000).map(|at| format!("resource-number-{at}.example.com is not known")).collect();
    world.velero_says("shop-daily-<1>", json!({"phase": "FailedValidation", "validationErrors": errors}));
    world.settle();
    let shown = world.get("nab shop/daily")["status"]["veleroBackup"]["status"].clone();
    assert_eq!(shown["phase"], "FailedValidation");
    assert!(shown["validationErrors"].is_null());
}
