//! What a schedule reports and keeps while the storage of its backups is not available, was revoked, or is gone.

use api::{Kind, labels};
use planner::Key;
use planner::state::{Moment, RawObject, Update};
use serde_json::{Value, json};

use super::schedules::{DAY, HOUR, days_pass, nas, runs, velero_works};
use super::storage::{self, available};
use crate::world::World;
use crate::world::manifests::default_storage;

/// A cluster where nacre looks after storage, and starts are not spread.
fn world() -> World {
    let mut world = storage::world(&["shop"]);
    world.policy(|policy| policy.schedules.spread = "0".into());
    world
}

/// A schedule into a bucket of the namespace.
fn into_bucket(place: &str) -> Value {
    let template = json!({"backupSpec": {"storageLocation": "bucket"}});
    nas(place, "0 2 * * *", json!({ "template": template, "retention": {"keepLast": 2} }))
}

fn last_good(world: &World, schedule: &str) -> Value {
    world.get(&format!("nas {schedule}"))["status"]["lastGoodBackup"].clone()
}

fn on_time(world: &World, schedule: &str) -> String {
    world.condition(&format!("nas {schedule}"), "RunsOnTime")
}

/// Velero reports whether it can reach a location. No time passes.
fn is_now(world: &mut World, storage: &str, phase: &str) {
    world.edit(&format!("bsl {storage}"), json!({"status": {"phase": phase}}));
    world.settle();
}

#[test]
fn the_last_good_backup_follows_the_availability_of_its_storage_at_once() {
    let mut world = world();
    let bucket = available(&mut world, "shop/bucket", "mine");
    world.apply(into_bucket("shop/own"));
    world.apply(nas("shop/platform", "0 1 * * *", json!({})));
    days_pass(&mut world, 1);
    let good = |world: &World| (last_good(world, "shop/own"), last_good(world, "shop/platform"));
    let (own, platform) = (json!("own-20260101020000"), json!("platform-20260101010000"));
    assert_eq!(good(&world), (own.clone(), platform.clone()));

    is_now(&mut world, &bucket, "Unavailable");
    assert_eq!(good(&world), (Value::Null, platform.clone()));
    is_now(&mut world, &bucket, "Available");
    assert_eq!(good(&world), (own.clone(), platform.clone()));
    is_now(&mut world, "default", "Unavailable");
    assert_eq!(good(&world), (own.clone(), Value::Null));
    is_now(&mut world, "default", "Available");
    assert_eq!(good(&world), (own, platform));
}

#[test]
fn a_change_of_a_location_wakes_the_schedules_with_runs_in_it_and_no_others() {
    let mut world = world();
    let bucket = available(&mut world, "shop/bucket", "mine");
    world.apply(into_bucket("shop/own"));
    world.apply(nas("shop/platform", "0 1 * * *", json!({})));
    days_pass(&mut world, 2);
    let woken = |world: &World, storage: &str, change: &dyn Fn(&mut Value)| -> Vec<String> {
        let mut object = world.get(&format!("bsl {storage}"));
        change(&mut object);
        object["metadata"]["resourceVersion"] = json!("9999999");
        let now = Moment { clock: world.clock(), uptime: DAY };
        let object = RawObject::new(&object.to_string());
        let keys = world.state().update(Kind::BackupStorageLocation, Update::Observed(&object), now);
        let mut woken: Vec<_> = keys.into_iter().filter(|key| key.kind == Kind::NonAdminSchedule).collect();
        woken.dedup();
        woken.into_iter().map(|Key { name, .. }| name).collect()
    };
    let nobody = Vec::<String>::new();
    let unavailable = |object: &mut Value| object["status"]["phase"] = json!("Unavailable");
    let deleting =
        |object: &mut Value| object["metadata"]["deletionTimestamp"] = json!("2026-01-03T00:00:00Z");
    let looked_at =
        |object: &mut Value| object["status"]["lastValidationTime"] = json!("2026-01-03T00:00:00Z");
    assert_eq!(woken(&world, &bucket, &unavailable), ["own"]);
    assert_eq!(woken(&world, &bucket, &deleting), ["own"]);
    assert_eq!(woken(&world, &bucket, &looked_at), nobody);
    assert_eq!(woken(&world, "default", &unavailable), ["platform"]);
    // Once its runs are elsewhere or gone, a schedule has nothing to do with a location.
    world.delete("nas shop/own");
    for run in world.names(Kind::NonAdminBackup).iter().filter(|name| name.starts_with("shop/own-")) {
        world.delete(&format!("nab {run}"));
    }
    world.settle();
    world.apply(nas("shop/own", "0 2 * * *", json!({})));
    world.settle();
    assert_eq!(woken(&world, &bucket, &unavailable), nobody);
}

#[test]
fn while_a_location_is_revoked_nothing_in_it_is_good_or_deleted() {
    let mut world = world();
    let bucket = available(&mut world, "shop/bucket", "mine");
    world.apply(into_bucket("shop/own"));
    days_pass(&mut world, 3);
    assert_eq!(runs(&world), ["20260102020000", "20260103020000"]);
    world.edit(&format!("request {bucket}"), json!({"spec": {"approvalDecision": "reject"}}));
    world.settle();
    assert!(!world.has(&format!("bsl {bucket}")) && last_good(&world, "shop/own").is_null());
    world.edit("nas shop/own", json!({"spec": {"retention": {"keepLast": 1}}}));
    days_pass(&mut world, 2);
    let left = ["20260102020000", "20260103020000", "20260104020000"];
    assert_eq!(runs(&world), left, "what cannot be read stays, and one run waits");
    let reported = on_time(&world, "shop/own");
    assert!(reported.starts_with("False/") && reported.contains("\"bucket\" is not ready"), "{reported}");

    world.edit(&format!("request {bucket}"), json!({"spec": {"approvalDecision": "approve"}}));
    world.settle();
    is_now(&mut world, &bucket, "Available");
    assert_eq!(last_good(&world, "shop/own"), "own-20260103020000");
    velero_works(&mut world, "Completed");
    assert_eq!(last_good(&world, "shop/own"), "own-20260104020000");
    days_pass(&mut world, 1);
    assert!(on_time(&world, "shop/own").starts_with("True/"), "{}", on_time(&world, "shop/own"));
    assert_eq!(runs(&world), ["20260106020000"]);
}

/// The cluster's own location is deleted; `with_backups` as `velero backup-location delete` does it, which removes Velero's
/// Backups and leaves the data. Velero finds them again when the location is back.
#[test]
fn without_the_clusters_own_location_no_good_run_is_deleted_and_all_heals_when_it_is_back() {
    for with_backups in [false, true] {
        let mut world = world();
        world.apply(nas("shop/nightly", "0 2 * * *", json!({"retention": {"keepLast": 4}})));
        days_pass(&mut world, 4);
        let good = runs(&world);
        let all_are_there = |world: &World| {
            let left = runs(world);
            assert!(good.iter().all(|run| left.contains(run)), "{left:?}, with backups: {with_backups}");
        };
        world.delete("bsl default");
        let stored = world.names(Kind::Backup).into_iter().map(|name| format!("backup {name}"));
        let stored: Vec<_> = stored.map(|name| (world.get(&name), name)).collect();
        for (_, name) in stored.iter().filter(|_| with_backups) {
            world.delete(name);
        }
        world.settle();
        assert!(last_good(&world, "shop/nightly").is_null(), "it cannot be restored now");
        // Fewer are kept now, and what Velero is given fails, day after day.
        world.edit("nas shop/nightly", json!({"spec": {"retention": {"keepLast": 2}}}));
        for day in 5..10 {
            world.pass(DAY);
            let run = world.velero_name(&format!("nab shop/nightly-202601{day:02}020000"));
            world.velero_fails_validation(&run, "there is no default location");
            world.settle();
            let status = world.get("nas shop/nightly")["status"].clone();
            assert_eq!(status["lastBackup"]["phase"], "FailedValidation");
            assert!(status["lastGoodBackup"].is_null(), "{status}");
            all_are_there(&world);
        }
        assert!(world.names(Kind::DeleteBackupRequest).is_empty());

        world.edit("nas shop/nightly", json!({"spec": {"retention": {"keepLast": 4}}}));
        world.settle();
        world.apply(default_storage());
        for (found, _) in stored.into_iter().filter(|_| with_backups) {
            world.apply(found);
            world.settle();
        }
        world.settle();
        all_are_there(&world);
        assert_eq!(last_good(&world, "shop/nightly"), "nightly-20260104020000");
        world.pass(DAY);
        let run = world.velero_name("nab shop/nightly-20260110020000");
        world.velero_starts(&run);
        world.velero_completes_one_item(&run);
        world.settle();
        world.velero_deletes();
        world.settle();
        assert_eq!(last_good(&world, "shop/nightly"), "nightly-20260110020000");
        let left = runs(&world);
        assert!(good[1..].iter().all(|run| left.contains(run)) && !left.contains(&good[0]), "{left:?}");
    }
}

/// Retention marks a run that Velero has lost, and Velero finds it in storage before nacre has removed the request.
#[test]
fn a_run_that_velero_finds_again_stays_although_retention_had_marked_it_as_lost() {
    let mut world = world();
    world.apply(nas("shop/nightly", "0 2 * * *", json!({"retention": {"keepLast": 9}})));
    days_pass(&mut world, 2);
    let name = format!("backup {}", world.velero_name("nab shop/nightly-20260101020000"));
    let stored = world.get(&name);
    world.delete(&name);
    world.settle();
    assert!(world.condition("nab shop/nightly-20260101020000", "Accepted").contains("VeleroBackupNotFound"));
    let by = json!({"annotations": {labels::DELETION_REQUESTER: r#"{"policy":true}"#}});
    world.apply(stored);
    world.edit("nab shop/nightly-20260101020000", json!({"metadata": by, "spec": {"deleteBackup": true}}));
    world.settle();
    world.velero_deletes();
    world.settle();
    assert_eq!(runs(&world), ["20260101020000", "20260102020000"]);
    assert_eq!(world.get("nab shop/nightly-20260101020000")["status"]["phase"], "Created");
    assert!(world.whole_trace().contains("event Normal BackupKept: Velero has found it in storage again"));
    world.stop_recording(); // Whether Velero finds it before or after the mark is what it is about.
}

#[test]
fn a_location_that_its_owner_deletes_takes_the_runs_along_and_brings_them_back() {
    let mut world = world();
    let bucket = available(&mut world, "shop/bucket", "mine");
    world.apply(into_bucket("shop/own"));
    days_pass(&mut world, 2);
    let stored: Vec<_> =
        world.names(Kind::Backup).iter().map(|name| world.get(&format!("backup {name}"))).collect();
    world.delete("nabsl shop/bucket");
    world.pass(HOUR);
    assert!(!world.has(&format!("bsl {bucket}")) && runs(&world).is_empty(), "as its owner asked");
    assert!(world.names(Kind::DeleteBackupRequest).is_empty(), "the data stays in the bucket");
    assert!(last_good(&world, "shop/own").is_null());
    world.pass(DAY);
    let reported = on_time(&world, "shop/own");
    assert!(reported.starts_with("False/RunRefused") && reported.contains("\"bucket\""), "{reported}");

    // The same place in the bucket under the same name: Velero finds the backups, and the schedule has them again.
    let again = available(&mut world, "shop/bucket", "mine");
    assert_ne!(again, bucket);
    for mut found in stored {
        found["spec"]["storageLocation"] = json!(again);
        world.apply(found);
    }
    world.settle();
    assert_eq!(last_good(&world, "shop/own"), "own-20260102020000");
    velero_works(&mut world, "Completed");
    assert!(on_time(&world, "shop/own").starts_with("True/"), "{}", on_time(&world, "shop/own"));
    assert_eq!(runs(&world), ["20260102020000", "20260103020000"], "keepLast: 2");
    world.stop_recording(); // The first of the names in storage that Velero finds gets the name of the request.
}
