//! How much storage and how much of Velero's time a namespace may use, and what happens to backups beyond.
//!
//! Whether a backup starts depends on what nacre has seen of the others by then, so under faults another one may start
//! first: these worlds are not played again.

use std::time::Duration;

use api::Kind;
use insta::assert_snapshot;
use planner::policy::{AtLimit, Policy};
use serde_json::{Value, json};

use crate::world::World;
use crate::world::manifests::{claim, imported, nab, nab_with, nar, object, origin};

fn at_velero(world: &World) -> Vec<String> {
    world.names(Kind::Backup).iter().map(|name| name.replace("velero/", "")).collect()
}

fn world(limit: impl FnOnce(&mut Policy)) -> World {
    let mut world = World::with(&["shop", "farm"]);
    world.stop_recording();
    world.policy(limit);
    world.apply(claim("shop/data"));
    world.settle();
    world
}

fn bytes(total: i64, new: i64) -> Value {
    json!({"phase": "Completed", "progress": {"totalBytes": total, "bytesDone": total}, "incrementalBytes": new})
}

/// Velero makes a backup with so many bytes in a volume, and so many new ones. It takes ten minutes.
fn back_up(world: &mut World, request: &str, total: i64, new: i64) -> String {
    let velero = world.velero_name(request);
    world.velero_starts(&velero);
    let mut status = bytes(total, new);
    status["startTimestamp"] = json!(world.state().now().to_string());
    world.pass(Duration::from_mins(10));
    world.volume_saved(Kind::PodVolumeBackup, &velero, "shop/data", status);
    world.velero_completes(&velero);
    world.pass(Duration::from_secs(5));
    velero
}

fn waits(world: &World, request: &str) -> bool {
    world.get(request)["status"]["phase"] == "BackingOff"
}

#[test]
fn at_the_limit_of_bytes_a_backup_waits_and_starts_by_itself_when_one_is_deleted() {
    let mut world = world(|policy| policy.backup.max_bytes_per_namespace = Some("1Gi".into()));
    world.apply(nab("shop/a"));
    world.settle();
    back_up(&mut world, "nab shop/a", 3 << 29, 3 << 29);
    world.apply(nab("shop/b"));
    world.settle();
    assert_snapshot!(world.condition("nab shop/b", "Accepted"), @"False/NamespaceLimitReached: metadata.namespace: backups of this namespace may take 1 GiB of the cluster's storage, and take about 1.5 GiB; delete one to make room");
    // Waiting costs nothing, and a neighbour has a limit of its own.
    world.apply(nab("farm/a"));
    world.settle();
    let writes = world.writes();
    world.pass(Duration::from_hours(30));
    assert_eq!((world.writes(), at_velero(&world).len()), (writes, 2));
    world.edit("nab shop/a", json!({"spec": {"deleteBackup": true}}));
    world.settle();
    world.velero_deletes();
    world.pass(Duration::from_secs(5));
    assert!(!waits(&world, "nab shop/b"));
    assert_eq!(at_velero(&world), ["farm-a-<3>", "shop-b-<2>"]);
}

#[test]
fn later_backups_of_a_claim_count_with_what_was_new() {
    let mut world = world(|policy| policy.backup.max_bytes_per_namespace = Some("10000".into()));
    for (name, new) in [("a", 5000), ("b", 1), ("c", 2)] {
        world.apply(nab(&format!("shop/{name}")));
        world.settle();
        assert!(!waits(&world, &format!("nab shop/{name}")), "{name}");
        back_up(&mut world, &format!("nab shop/{name}"), 5000, new);
    }
    assert_eq!(world.state().usage("shop").bytes, 5003);
}

#[test]
fn of_many_that_wait_for_bytes_one_starts_at_a_time() {
    let mut world = world(|policy| policy.backup.max_bytes_per_namespace = Some("1000".into()));
    world.apply(nab("shop/a"));
    world.settle();
    back_up(&mut world, "nab shop/a", 1200, 1200);
    for name in ["b", "c", "d"] {
        world.apply(nab(&format!("shop/{name}")));
        world.pass(Duration::from_secs(2));
    }
    assert_eq!(at_velero(&world), ["shop-a-<1>"]);
    // What is free is known, and what one backup takes: enough for one.
    world.policy(|policy| policy.backup.max_bytes_per_namespace = Some("2000".into()));
    world.pass(Duration::from_secs(5));
    assert_eq!(at_velero(&world), ["shop-a-<1>", "shop-b-<2>"]);
    back_up(&mut world, "nab shop/b", 1200, 300);
    assert_eq!(at_velero(&world), ["shop-a-<1>", "shop-b-<2>", "shop-c-<3>"]);
    back_up(&mut world, "nab shop/c", 1200, 900);
    assert_eq!(at_velero(&world).len(), 3, "now it is full");
}

#[test]
fn storage_of_ones_own_neither_counts_nor_waits() {
    let mut world = world(|policy| policy.backup.max_bytes_per_namespace = Some("1000".into()));
    world.tenant_storage("shop/bucket");
    world.apply(nab("shop/a"));
    world.settle();
    back_up(&mut world, "nab shop/a", 5000, 5000);
    world.apply(nab_with("shop/mine", json!({"storageLocation": "bucket"})));
    world.settle();
    assert!(!waits(&world, "nab shop/mine"));
    back_up(&mut world, "nab shop/mine", i64::MAX, i64::MAX);
    assert_eq!(world.state().usage("shop").bytes, 5000);
}

#[test]
fn deleting_a_request_and_keeping_the_data_frees_nothing() {
    let mut world = world(|policy| policy.backup.max_bytes_per_namespace = Some("1000".into()));
    // The request alone goes; Velero still has the backup, as after a crash or a restored status.
    let velero = {
        world.apply(nab("shop/a"));
        world.settle();
        back_up(&mut world, "nab shop/a", 5000, 5000)
    };
    world.forge_status("nab shop/a", json!({"claims": [], "veleroBackup": null, "phase": "New"}));
    world.edit("nab shop/a", json!({"metadata": {"labels": {"nacre.dev/usage": "0"}}}));
    world.settle();
    assert_eq!(world.state().usage("shop").bytes, 5000, "{velero}");
    world.apply(nab("shop/b"));
    world.settle();
    assert!(waits(&world, "nab shop/b"));
}

#[test]
fn what_was_imported_counts_as_a_backup_and_not_as_work() {
    let mut world = world(|policy| policy.backup.max_work_per_day = Some("1h".into()));
    world.pass(Duration::from_hours(2));
    // Velero's import has made it after it was worked on, here or elsewhere.
    world.apply(imported("old", "default", origin("shop", "old")));
    world.velero_says(
        "old",
        json!({"startTimestamp": "2026-01-01T00:30:00Z", "completionTimestamp": "2026-01-01T01:45:00Z"}),
    );
    world.settle();
    let usage = world.state().usage("shop");
    assert_eq!((usage.backups, usage.work_seconds), (1, 0));
    world.apply(nab("shop/a"));
    world.settle();
    assert!(!waits(&world, "nab shop/a"));
}

#[test]
fn when_velero_has_worked_enough_for_today_a_backup_waits_for_the_next_day() {
    let mut world = world(|policy| policy.backup.max_work_per_day = Some("15m".into()));
    for name in ["a", "b"] {
        world.apply(nab(&format!("shop/{name}")));
        world.settle();
        back_up(&mut world, &format!("nab shop/{name}"), 1, 1);
    }
    world.apply(nab("shop/c"));
    world.settle();
    assert_snapshot!(world.condition("nab shop/c", "Accepted"), @"False/NamespaceLimitReached: metadata.namespace: Velero may work 15m a day for this namespace, and has worked 20m since midnight UTC; this one starts after midnight UTC");
    // Deleting what Velero worked on does not help.
    for name in ["a", "b"] {
        world.delete(&format!("nab shop/{name}"));
    }
    world.pass(Duration::from_mins(5));
    assert_eq!((at_velero(&world).len(), world.state().usage("shop").work_seconds), (0, 1200));
    world.pass(Duration::from_hours(24));
    assert_eq!(at_velero(&world), ["shop-c-<3>"]);
}

#[test]
fn a_restore_counts_as_work_and_never_waits() {
    let mut world = world(|policy| policy.backup.max_work_per_day = Some("15m".into()));
    world.apply(nab("shop/a"));
    world.settle();
    back_up(&mut world, "nab shop/a", 1, 1);
    for name in ["r", "s"] {
        world.apply(nar(&format!("shop/{name}"), "a"));
        world.settle();
        let velero = world.velero_name(&format!("nar shop/{name}"));
        world.velero_starts(&velero);
        world.pass(Duration::from_mins(10));
        world.velero_completes(&velero);
        world.pass(Duration::from_secs(5));
    }
    assert_eq!(world.state().usage("shop").work_seconds, 1800);
    world.apply(nab("shop/b"));
    world.settle();
    assert!(waits(&world, "nab shop/b"));
}

#[test]
fn where_the_policy_refuses_at_a_limit_a_backup_stays_refused() {
    let mut world = world(|policy| {
        policy.backup.max_per_namespace = Some(1);
        policy.backup.at_limit = AtLimit::Refuse;
    });
    world.apply(nab("shop/a"));
    world.settle();
    back_up(&mut world, "nab shop/a", 1, 1);
    world.apply(nab("shop/b"));
    world.settle();
    assert_snapshot!(world.condition("nab shop/b", "Accepted"), @"False/NamespaceLimitReached: metadata.namespace: this namespace has as many backups as it may have, which is 1; delete one, then create this one again");
    world.delete("nab shop/a");
    world.pass(Duration::from_hours(1));
    assert!(waits(&world, "nab shop/b"), "it does not start when nobody expects it any more");
    // Somebody creates it again.
    world.delete("nab shop/b");
    world.settle();
    world.apply(nab("shop/b"));
    world.settle();
    assert!(!waits(&world, "nab shop/b"));
    // What is refused waits once the administrators say so.
    world.apply(nab("shop/c"));
    world.settle();
    world.policy(|policy| policy.backup.at_limit = AtLimit::Wait);
    world.pass(Duration::from_secs(5));
    assert!(world.condition("nab shop/c", "Accepted").ends_with("delete one to make room"));
}

/// A tenant cannot make a neighbour pay.
#[test]
fn volumes_that_a_bucket_gives_to_a_neighbour_count_for_nobody() {
    let mut world = world(|policy| policy.backup.max_bytes_per_namespace = Some("1000".into()));
    world.tenant_storage("farm/bucket");
    world.apply(nab("shop/a"));
    world.settle();
    let victim = back_up(&mut world, "nab shop/a", 10, 10);
    world.apply(imported("planted", "farm-bucket-<l1>", origin("shop", "a")));
    let uid = world.get("backup planted")["metadata"]["uid"].clone();
    // Velero writes the uid of the Backup that it imports.
    let labels =
        json!({"velero.io/backup-name": victim, "velero.io/backup-uid": uid, "velero.io/pvc-uid": "c"});
    world.apply(object(
        Kind::PodVolumeBackup,
        "velero/forged",
        json!({"metadata": {"labels": labels}, "status": bytes(i64::MAX, i64::MAX)}),
    ));
    world.settle();
    let usage = world.state().all_usage();
    assert_eq!((usage["shop"].bytes, usage.contains_key("farm")), (10, false));
}

#[test]
fn restores_beyond_the_limit_at_a_time_wait_and_others_pass() {
    for in_flight in [None, Some(0)] {
        let mut world = World::with(&["shop", "farm"]).backed_up();
        world.stop_recording();
        world.policy(|policy| {
            policy.restore.max_active_per_namespace = Some(1);
            policy.queue.in_flight = in_flight;
        });
        world.apply(nab("farm/daily"));
        world.settle();
        let velero = world.velero_name("nab farm/daily");
        world.velero_starts(&velero);
        world.velero_completes(&velero);
        world.settle();
        for (place, backup) in [("shop/r", "daily"), ("shop/s", "daily"), ("farm/t", "daily")] {
            world.apply(nar(place, backup));
            world.settle();
        }
        let given = |world: &World| {
            ["nar shop/r", "nar shop/s", "nar farm/t"]
                .map(|request| world.get(request)["status"]["phase"].as_str().unwrap().to_owned())
        };
        assert_eq!(given(&world), ["Created", "New", "Created"], "{in_flight:?}");
        assert_eq!(
            world.condition("nar shop/s", "WaitingForTurn"),
            "True/NamespaceLimitReached: this namespace has as many unfinished restores as it may have, which is 1; it goes \
             on when one of them has ended"
        );
        let velero = world.velero_name("nar shop/r");
        world.velero_starts(&velero);
        world.velero_says(&velero, json!({"phase": "WaitingForPluginOperations"}));
        world.settle();
        assert_eq!(given(&world)[1], "New", "its volumes are still being restored");
        world.velero_completes(&velero);
        world.pass(Duration::from_secs(2));
        assert_eq!(given(&world), ["Created"; 3], "{in_flight:?}");
        assert_eq!(world.condition("nar shop/s", "WaitingForTurn"), "/: ");
    }
}
