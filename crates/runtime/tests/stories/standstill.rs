//! Velero's own queue of backups stands still: none begins, though no worker is busy.

use std::time::Duration;

use api::Kind;
use serde_json::json;

use crate::world::World;
use crate::world::manifests::{nab, object};

/// Velero refused one of shop's, and has had one of office's in its queue since.
fn still() -> World {
    let mut world = World::with(&["shop", "office"]);
    for request in ["shop/bad", "office/good"] {
        world.apply(nab(request));
        world.settle();
        world.pass(Duration::from_secs(1));
    }
    let refused = "shop-bad-<1>";
    world.velero_says(refused, json!({"phase": "Queued"}));
    world.velero_says(refused, json!({"phase": "ReadyToStart"}));
    let queued = "office-good-<2>";
    world.velero_says(queued, json!({"phase": "Queued"}));
    world.velero_fails_validation(refused, "its storage is not available");
    world.settle();
    world
}

/// X7: own bucket: a backup that Velero refuses at the moment it begins with it, so that Velero begins with nobody's any more
#[test]
fn x7_velero_is_made_to_look_again_at_what_it_refused_when_its_queue_stands_still() {
    let mut world = still();
    let refused = "shop-bad-<1>";
    let queued = "office-good-<2>";
    world.pass(Duration::from_secs(119));
    assert_eq!(world.restart_queue(), None, "Velero itself looks once a minute");
    world.pass(Duration::from_secs(1));
    assert_eq!(world.restart_queue().as_deref(), Some(refused));
    assert_eq!(world.get(&format!("backup {refused}"))["status"]["phase"], "ReadyToStart");
    assert_eq!(world.restart_queue(), None, "it is Velero's turn");

    // Velero refuses it again, and that was all that was needed.
    world.velero_fails_validation(refused, "its storage is not available");
    world.settle();
    world.velero_says(queued, json!({"phase": "ReadyToStart"}));
    world.velero_starts(queued);
    world.pass(Duration::from_hours(1));
    assert_eq!(world.restart_queue(), None, "a worker is busy");
    world.velero_completes(queued);
    world.settle();
    assert_eq!(world.get("nab office/good")["status"]["veleroBackup"]["status"]["phase"], "Completed");
    world.pass(Duration::from_hours(1));
    assert_eq!(world.restart_queue(), None, "nothing is in Velero's queue");
}

#[test]
fn each_refused_backup_is_tried_once_newest_first_and_those_of_administrators_never() {
    let mut world = still();
    let refused = "shop-bad-<1>";
    world.apply(object(
        Kind::Backup,
        "velero/of-the-administrators",
        json!({"status": {"phase": "FailedValidation", "validationErrors": ["its storage is not available"]}}),
    ));
    world.pass(Duration::from_mins(2));
    assert_eq!(world.restart_queue().as_deref(), Some(refused));
    world.velero_fails_validation(refused, "its storage is not available");
    world.settle();
    world.pass(Duration::from_hours(1));
    assert_eq!(world.restart_queue(), None, "it did not help");

    // When Velero's queue has moved and stands still again, nacre retries it.
    let queued = "office-good-<2>";
    world.velero_says(queued, json!({"phase": "ReadyToStart"}));
    world.velero_says(queued, json!({"phase": "Queued"}));
    world.pass(Duration::from_secs(119));
    assert_eq!(world.restart_queue(), None);
    world.pass(Duration::from_secs(1));
    assert_eq!(world.restart_queue().as_deref(), Some(refused));
}

/// X7
#[test]
fn x7_a_backup_without_an_error_is_not_made_ready() {
    let mut world = still();
    world.velero_says("shop-bad-<1>", json!({"validationErrors": null}));
    world.settle();
    world.pass(Duration::from_hours(1));
    assert_eq!(world.restart_queue(), None, "Velero would begin with it");
}
