//! Garbage collection of objects whose owner is gone.

use std::time::Duration;

use api::{Kind, labels};
use serde_json::json;

use crate::storage::{KEYS, available, world};
use crate::world::World;
use crate::world::manifests::{nab, nar, object};

#[test]
fn what_has_outlived_its_owner_is_collected_and_nothing_else() {
    let mut world = world(&["shop"]);
    let storage = available(&mut world, "shop/bucket", "mine");
    world.apply(nab("shop/daily"));
    world.settle();
    let velero = world.velero_name("nab shop/daily");
    world.velero_starts(&velero);
    world.velero_completes(&velero);
    world.apply(nar("shop/back", "daily"));
    world.settle();
    assert!(world.collect_garbage().is_empty(), "every owner lives");

    // The same objects for owners of the same names that are no more.
    let orphan = |world: &World, object: &str| {
        let mut orphan = world.get(object);
        for mark in ["uid", "resourceVersion", "creationTimestamp", "finalizers", "generation"] {
            orphan["metadata"].as_object_mut().unwrap().remove(mark);
        }
        orphan["metadata"]["name"] = json!("orphan");
        orphan["metadata"]["annotations"][labels::ORIGIN_UID] = json!("gone");
        orphan
    };
    let restore = world.velero_name("nar shop/back");
    for object in [
        format!("bsl {storage}"),
        format!("secret {storage}"),
        format!("request {storage}"),
        format!("restore {restore}"),
    ] {
        let orphan = orphan(&world, &object);
        world.apply(orphan);
    }
    let mut deletion = json!({"metadata": {"labels": {labels::OADP: labels::OADP_VALUE, labels::MANAGED_BY: labels::MANAGED_BY_VALUE},
        "annotations": {labels::NAB_NAMESPACE: "shop", labels::NAB_NAME: "gone"}},
        "spec": {"backupName": velero}, "status": {"phase": "InProgress"}});
    world.apply(object(Kind::DeleteBackupRequest, "velero/busy", deletion.clone()));
    deletion["status"]["phase"] = json!("Processed");
    world.apply(object(Kind::DeleteBackupRequest, "velero/orphan", deletion.clone()));
    // A request of that name lives: what it asked for itself stays, and what its namesake asked for goes.
    deletion["metadata"]["annotations"][labels::NAB_NAME] = json!("daily");
    let uid = world.get("nab shop/daily")["metadata"]["uid"].clone();
    for (name, uid) in [("own", uid), ("namesake", json!("gone"))] {
        deletion["metadata"]["annotations"][labels::ORIGIN_UID] = uid;
        world.apply(object(Kind::DeleteBackupRequest, &format!("velero/{name}"), deletion.clone()));
    }
    // Marks that only say whose it is make nothing nacre's, and nor does one mark of two.
    for (name, mark) in
        [("unmarked", None), ("half", Some(labels::OADP)), ("other-half", Some(labels::MANAGED_BY))]
    {
        let mut by_hand = deletion.clone();
        by_hand["metadata"]["labels"] =
            mark.map_or_else(|| json!({}), |mark| json!({mark: deletion["metadata"]["labels"][mark]}));
        world.apply(object(Kind::DeleteBackupRequest, &format!("velero/{name}"), by_hand));
    }
    // An administrator's own are nobody's leftovers.
    world.apply(object(Kind::Secret, "velero/cloud-credentials", json!({"data": {"cloud": KEYS}})));
    let mut collected = world.collect_garbage();
    collected.sort();
    assert_eq!(
        collected,
        [
            "BackupStorageLocation orphan",
            "DeleteBackupRequest namesake",
            "DeleteBackupRequest orphan",
            "NonAdminBackupStorageLocationRequest orphan",
            "Restore orphan",
            "Secret orphan",
        ]
    );
}

/// Admission policies are evaluated once for each Restore that may still be at work: those that ended are labelled once.
#[test]
fn a_restore_that_ended_an_hour_ago_is_labelled_and_one_at_work_is_not() {
    let mut world = world(&["shop"]);
    world.apply(nab("shop/daily"));
    world.settle();
    let backup = world.velero_name("nab shop/daily");
    world.velero_starts(&backup);
    world.velero_completes(&backup);
    world.apply(nar("shop/back", "daily"));
    world.settle();
    let restore = world.velero_name("nar shop/back");
    world.velero_starts(&restore);
    world.pass(Duration::from_hours(2));
    assert_eq!(world.label_ended(), 0, "Velero is at work on it");
    world.velero_completes(&restore);
    assert_eq!(world.label_ended(), 0, "it has just ended");
    world.pass(Duration::from_mins(61));
    let before = world.get("nar shop/back");
    assert_eq!(world.label_ended(), 1);
    assert_eq!(world.get(&format!("restore {restore}"))["metadata"]["labels"][labels::ENDED], "true");
    assert_eq!(world.get("nar shop/back"), before, "its request does not change");
    assert_eq!(world.label_ended(), 0, "once");
}

/// A Velero Backup that ended before it began is somebody's as long as a request of its own namespace shows it.
#[test]
fn a_backup_that_never_began_stays_with_its_request_and_goes_without() {
    let mut world = world(&["shop", "office"]);
    world.apply(nab("shop/made"));
    world.settle();
    let made = world.velero_name("nab shop/made");
    world.velero_says(&made, json!({"phase": "FailedValidation"}));
    let found = |name: &str| {
        object(
            Kind::Backup,
            &format!("velero/{name}"),
            json!({"metadata": {"annotations": {labels::NAB_NAMESPACE: "shop", labels::NAB_NAME: name},
                "labels": {labels::OADP: labels::OADP_VALUE, labels::MANAGED_BY: labels::MANAGED_BY_VALUE,
                    labels::NAB_NACUUID: name}},
                "spec": {"storageLocation": "default"}, "status": {"phase": "FailedValidation"}}),
        )
    };
    for name in ["shown", "unknown", "coveted"] {
        world.apply(found(name));
    }
    for (place, from) in [("shop/shown", "shown"), ("office/coveted", "coveted")] {
        let mut request = nab(place);
        request["metadata"]["labels"] = json!({labels::SYNCED_FROM: from});
        world.apply(request);
    }
    world.settle();
    assert_eq!(world.collect_garbage(), ["Backup coveted", "Backup unknown"]);
}
