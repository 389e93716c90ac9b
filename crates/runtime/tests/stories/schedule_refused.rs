//! A schedule that is refused makes no runs, but its last good backup stays, and what it keeps is still kept.

use api::Kind;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::schedules::{DAY, HOUR, days_pass, nas, runs, velero_works, world};
use crate::world::World;

/// When the only Velero Backup expires.
fn expiration(world: &World) -> Timestamp {
    let name = world.names(Kind::Backup).pop().unwrap();
    let text = world.get(&format!("backup {name}"))["status"]["expiration"].clone();
    text.as_str().unwrap().parse().unwrap()
}

/// Days pass, and on none of them Velero would find the only backup expired.
fn stays(world: &mut World, days: u32, why: &str) {
    for day in 0..days {
        world.pass(DAY);
        let until = expiration(world);
        assert!(until > world.clock(), "{why}: on day {day}, it had expired at {until}");
    }
}

/// Each run is kept for three days.
fn three_days() -> Value {
    json!({"template": {"backupSpec": {"ttl": "72h"}}})
}

/// What a schedule is refused for, and what somebody does to that end.
type Refuse = (&'static str, fn(&mut World));

#[test]
fn the_last_good_backup_of_a_refused_schedule_does_not_expire() {
    let refuse: [Refuse; 6] = [
        ("minInterval", |world| world.policy(|policy| policy.schedules.min_interval = "48h".into())),
        ("windows", |world| world.policy(|policy| policy.schedules.windows = vec!["12:00-13:00".to_owned()])),
        ("maxPerNamespace", |world| world.policy(|policy| policy.schedules.max_per_namespace = Some(0))),
        ("cron", |world| world.edit("nas shop/nightly", json!({"spec": {"schedule": "0 25 * * *"}}))),
        ("zone", |world| world.edit("nas shop/nightly", json!({"spec": {"timeZone": "Mars/Base"}}))),
        ("template", |world| {
            let template = json!({"backupSpec": {"includedNamespaces": ["other"]}});
            world.edit("nas shop/nightly", json!({"spec": {"template": template}}));
        }),
    ];
    for (why, refuse) in refuse {
        let mut world = world();
        world.apply(nas("shop/nightly", "0 2 * * *", three_days()));
        days_pass(&mut world, 1);
        refuse(&mut world);
        world.settle();
        let reported = world.condition("nas shop/nightly", "Accepted");
        assert!(reported.starts_with("False/InvalidScheduleSpec"), "{why}: {reported}");
        stays(&mut world, 10, why);
        assert_eq!(runs(&world), ["20260101020000"], "{why}");
    }
}

#[test]
fn the_last_good_backup_does_not_expire_while_the_policy_is_unknown() {
    let mut world = world();
    world.apply(nas("shop/nightly", "0 2 * * *", three_days()));
    days_pass(&mut world, 1);
    world.policy_cannot_be_read();
    stays(&mut world, 10, "no policy");
    let reported = world.condition("nas shop/nightly", "Accepted");
    assert!(reported.starts_with("False/PolicyUnavailable"), "{reported}");
    world.policy(|_| {});
    world.settle();
    assert!(world.condition("nas shop/nightly", "Accepted").starts_with("True/"));
}

/// Velero deletes what has expired as soon as the storage is back.
#[test]
fn the_last_good_backup_does_not_expire_while_its_storage_is_away() {
    let mut world = world();
    let mut spec = three_days();
    spec["paused"] = json!(false);
    world.apply(nas("shop/nightly", "0 2 * * *", spec));
    days_pass(&mut world, 1);
    world.edit("nas shop/nightly", json!({"spec": {"paused": true}}));
    world.edit("bsl default", json!({"status": {"phase": "Unavailable"}}));
    stays(&mut world, 10, "storage");
    world.edit("bsl default", json!({"status": {"phase": "Available"}}));
    stays(&mut world, 2, "storage is back");
    assert_eq!(world.get("nas shop/nightly")["status"]["lastGoodBackup"], "nightly-20260101020000");
}

#[test]
fn the_last_good_backup_of_a_schedule_that_comes_back_without_a_retention_does_not_expire() {
    let mut world = world();
    let mut spec = three_days();
    spec["retention"] = json!({"keepLast": 1});
    world.apply(nas("shop/nightly", "0 2 * * *", spec));
    days_pass(&mut world, 1);
    world.delete("nas shop/nightly");
    world.settle();
    assert_eq!(world.shorten_lives(), 1);
    let mut back = three_days();
    back["paused"] = json!(true);
    world.apply(nas("shop/nightly", "0 2 * * *", back));
    world.settle();
    stays(&mut world, 10, "without a retention");
}

#[test]
fn a_run_that_ends_after_its_schedule_was_refused_counts_and_what_it_outdates_goes() {
    let mut world = world();
    world.apply(nas("shop/nightly", "0 2 * * *", json!({"retention": {"keepLast": 1}})));
    days_pass(&mut world, 1);
    world.pass(DAY);
    world.policy(|policy| policy.schedules.max_per_namespace = Some(0));
    velero_works(&mut world, "Completed");
    assert_eq!(runs(&world), ["20260102020000"]);
    let status = world.get("nas shop/nightly")["status"].clone();
    assert_eq!(status["phase"], "BackingOff");
    assert_eq!(status["lastGoodBackup"], "nightly-20260102020000");
    world.trace();
    world.pass(HOUR);
    assert_eq!(world.trace(), "", "a refused schedule writes nothing");
}

/// Which of them are kept depends on both: nothing is deleted on a guess.
#[test]
fn nothing_is_deleted_while_the_retention_or_its_time_zone_cannot_be_read() {
    for broken in [json!({"timeZone": "Mars/Base"}), json!({"retention": {"keepLast": null}})] {
        let mut world = world();
        world.apply(nas("shop/nightly", "0 2 * * *", json!({"retention": {"keepLast": 1}})));
        days_pass(&mut world, 1);
        world.pass(DAY);
        world.edit("nas shop/nightly", json!({ "spec": broken }));
        velero_works(&mut world, "Completed");
        assert_eq!(runs(&world), ["20260101020000", "20260102020000"], "{broken}");
    }
}
