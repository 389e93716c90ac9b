//! What schedules keep: within the bounds of the administrators, while deletions fail, where a ttl ends earlier, and where
//! the namespace has no place for it.

use std::time::Duration;

use api::{Kind, Retention};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::schedules::{DAY, HOUR, days_pass, nas, runs, velero_ends_all, velero_works, world};
use crate::world::World;

fn retention(spec: &Value) -> Retention {
    serde_json::from_value(spec.clone()).unwrap()
}

/// Seven nights with these bounds, and what a schedule asks for; which are left.
fn week(min: Value, max: Value, asked: Value) -> World {
    let mut world = world();
    world.policy(|policy| {
        policy.schedules.retention.min = retention(&min);
        policy.schedules.retention.max = retention(&max);
    });
    let template = json!({"backupSpec": {"ttl": "2400h"}});
    world.apply(nas("shop/nightly", "0 2 * * *", json!({"retention": asked, "template": template})));
    days_pass(&mut world, 7);
    world
}

#[test]
fn nobody_keeps_less_than_the_floor_or_more_than_the_ceiling() {
    let left = |min, max, asked| runs(&week(min, max, asked)).len();
    assert_eq!(left(json!({}), json!({}), json!({"keepLast": 4})), 4, "no bounds");
    assert_eq!(left(json!({"keepLast": 3}), json!({}), json!({"keepLast": 1})), 3, "a floor");
    assert_eq!(
        left(json!({"keepWithin": "3d"}), json!({}), json!({"keepWithin": "1d"})),
        4,
        "a floor in time"
    );
    assert_eq!(
        left(json!({"keepDaily": 3}), json!({}), json!({"keepLast": 1})),
        3,
        "a floor of another field"
    );
    assert_eq!(left(json!({"keepDaily": 3}), json!({}), json!(null)), 3, "a floor alone");
    assert_eq!(left(json!({}), json!({"keepLast": 2}), json!({"keepLast": 6})), 2, "a ceiling");
    assert_eq!(left(json!({}), json!({"keepWithin": "1d"}), json!({"keepWithin": "9d"})), 2, "in time");
    assert_eq!(left(json!({}), json!({"keepLast": 0}), json!({"keepLast": 6})), 1, "the last good one stays");
}

/// Leaving the field out is no way around the ceiling. Each backup has the ttl that was asked for.
#[test]
fn a_schedule_without_a_retention_is_under_the_ceiling_too() {
    let world = week(json!({}), json!({"keepLast": 2}), json!(null));
    assert_eq!(runs(&world), ["20260106020000", "20260107020000"]);
    let name = world.velero_name("nab shop/nightly-20260107020000");
    assert_eq!(world.get(&format!("backup {name}"))["spec"]["ttl"], "2400h");
}

#[test]
fn a_deletion_that_takes_more_than_a_day_is_reported_until_it_is_over() {
    for paused in [false, true] {
        let mut world = world();
        world.apply(nas("shop/weekly", "0 2 * * 4", json!({"retention": {"keepLast": 1}})));
        for _ in 0..2 {
            world.pass(7 * DAY);
            world.settle();
            velero_ends_all(&mut world, "Completed");
            world.settle();
        }
        world.edit("nas shop/weekly", json!({"spec": {"paused": paused}}));
        let retained = |world: &World| world.condition("nas shop/weekly", "Retained");
        world.pass(23 * HOUR);
        assert!(retained(&world).starts_with("True/RetentionApplied"), "{}", retained(&world));
        world.pass(2 * HOUR);
        assert!(
            retained(&world).starts_with("False/RetentionStuck: could not be deleted for a day")
                && retained(&world).ends_with("weekly-20260101020000"),
            "paused {paused}: {}",
            retained(&world)
        );
        world.pass(DAY);
        assert_eq!(world.whole_trace().matches("event Warning RetentionStuck").count(), 1);
        world.velero_deletes();
        world.settle();
        assert!(retained(&world).starts_with("True/RetentionApplied"), "{}", retained(&world));
        assert!(!runs(&world).contains(&"20260101020000".to_owned()), "{:?}", runs(&world));
    }
}

#[test]
fn a_ttl_that_ends_before_the_retention_is_reported() {
    for (cron, kept, ttl, ends_early) in [
        ("0 2 * * *", json!({"keepDaily": 30}), "72h", true),
        ("0 2 * * *", json!({"keepDaily": 2}), "72h", false),
        ("0 2 * * *", json!({"keepLast": 4}), "72h", true),
        ("0 2 * * 1", json!({"keepLast": 4}), "240h", true),
        ("0 * * * *", json!({"keepLast": 4}), "72h", false),
        ("0 2 * * *", json!({"keepWithin": "4d"}), "72h", true),
        ("0 2 * * *", json!({"keepLast": 1, "keepYearly": 2}), "8760h", true),
    ] {
        for enforced in [false, true] {
            let mut world = world();
            world.policy(|policy| {
                if enforced {
                    policy.backup.enforce.ttl = Some(ttl.into());
                } else {
                    policy.backup.ttl.max = Some(ttl.into());
                }
            });
            world.apply(nas("shop/nightly", cron, json!({"retention": kept})));
            world.settle();
            let reported = world.condition("nas shop/nightly", "Retained");
            let expected = match (ends_early, enforced) {
                (false, _) => "True/RetentionApplied".to_owned(),
                (true, true) => format!("True/TtlEnforced: the administrators enforce a ttl of {ttl}"),
                (true, false) => format!("True/TtlEnforced: the administrators allow a ttl of at most {ttl}"),
            };
            assert!(reported.starts_with(&expected), "{cron} {kept} {ttl}: {reported}");
        }
    }
}

/// The next run would wait for a place, and retention for the next run.
#[test]
fn a_retention_that_leaves_no_place_for_the_next_run_is_reported_at_once() {
    let mut world = world();
    world.policy(|policy| policy.backup.max_per_namespace = Some(5));
    world.apply(nas("shop/nightly", "0 2 * * *", json!({"retention": {"keepLast": 5}})));
    world.settle();
    let retained = |world: &World| world.condition("nas shop/nightly", "Retained");
    assert!(
        retained(&world).starts_with("False/RetentionOverLimit: the retention keeps 5 backups"),
        "{}",
        retained(&world)
    );
    assert_eq!(world.whole_trace().matches("event Warning RetentionOverLimit").count(), 1);
    days_pass(&mut world, 6);
    assert_eq!(runs(&world).len(), 6, "the sixth waits");
    world.edit("nas shop/nightly", json!({"spec": {"retention": {"keepLast": 4}}}));
    world.settle();
    velero_works(&mut world, "Completed");
    velero_works(&mut world, "Completed");
    assert!(retained(&world).starts_with("True/RetentionApplied"), "{}", retained(&world));
    assert_eq!(runs(&world).len(), 4);
}

/// Several rules together may keep more than each of them.
#[test]
fn backups_that_are_kept_and_fill_the_namespace_are_reported() {
    let mut world = world();
    world.policy(|policy| policy.backup.max_per_namespace = Some(4));
    let kept = json!({"keepDaily": 3, "keepMonthly": 3});
    world.jump(29 * DAY);
    world.apply(nas("shop/nightly", "0 2 * * *", json!({"retention": kept})));
    days_pass(&mut world, 3);
    assert!(world.condition("nas shop/nightly", "Retained").starts_with("True/RetentionApplied"));
    days_pass(&mut world, 3);
    let reported = world.condition("nas shop/nightly", "Retained");
    assert!(reported.starts_with("False/RetentionOverLimit: the retention keeps 4 backups"), "{reported}");
}

/// When this Velero Backup expires.
fn expiration(world: &World, backup: &str) -> Timestamp {
    world.get(backup)["status"]["expiration"].as_str().unwrap().parse().unwrap()
}

/// nacre may be down for a week, or for half of a shorter ttl, and the last good backup is still there.
#[test]
fn the_last_good_backup_never_has_less_than_a_week_left() {
    for (ttl, least) in [("720h", 7 * DAY), ("72h", DAY * 3 / 2)] {
        let mut world = world();
        let template = json!({"backupSpec": {"ttl": ttl}});
        world.apply(nas("shop/nightly", "0 2 * * *", json!({"template": template})));
        days_pass(&mut world, 1);
        world.edit("nas shop/nightly", json!({"spec": {"paused": true}}));
        let backup = format!("backup {}", world.names(Kind::Backup).pop().unwrap());
        for day in 0..60 {
            world.pass(DAY);
            let left = expiration(&world, &backup).duration_since(world.clock()).unsigned_abs();
            assert!(left >= least, "{ttl}: {left:?} left on day {day}");
        }
    }
}

#[test]
fn the_expiration_of_the_last_good_backup_is_moved_again_after_velero_imported_it() {
    let mut world = world();
    world.policy(|policy| policy.backup.enforce.ttl = Some("72h".into()));
    world.apply(nas("shop/nightly", "0 2 * * *", json!({"retention": {"keepDaily": 30}})));
    days_pass(&mut world, 1);
    world.edit("nas shop/nightly", json!({"spec": {"paused": true}}));
    let name = world.names(Kind::Backup).pop().unwrap();
    let backup = format!("backup {name}");
    let stored = world.get(&backup); // As it is in the bucket, with the time it had then.
    world.pass(5 * DAY);
    let expires = |world: &World| expiration(world, &backup);
    assert!(expires(&world) > world.clock());
    world.delete(&backup);
    world.settle();
    world.apply(stored.clone());
    world.settle();
    assert!(expires(&world) > world.clock(), "it expired at {}", expires(&world));
    assert_eq!(world.get("nas shop/nightly")["status"]["lastGoodBackup"], "nightly-20260101020000");
    for _ in 0..5 {
        world.pass(DAY);
        assert!(expires(&world) > world.clock() + Duration::from_mins(1));
    }
}

#[test]
fn pausing_stops_runs_and_not_the_retention_of_failed_ones() {
    let mut world = world();
    world.apply(nas("shop/nightly", "0 2 * * *", json!({"retention": {"keepLast": 2}})));
    days_pass(&mut world, 1);
    for _ in 0..3 {
        world.pass(DAY);
        velero_works(&mut world, "Failed");
    }
    world.pass(DAY);
    world.edit("nas shop/nightly", json!({"spec": {"paused": true}}));
    velero_works(&mut world, "Failed");
    let newest = ["20260103020000", "20260104020000", "20260105020000"];
    assert_eq!(runs(&world)[1..], newest, "three failures stay");
    world.pass(3 * DAY);
    assert_eq!(runs(&world)[0], "20260101020000", "and the good one");
    assert_eq!(runs(&world).len(), 4, "no runs");
}
