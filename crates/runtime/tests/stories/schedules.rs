//! NonAdminSchedule: runs that are made once, missed, skipped and refused; what is kept of them.

use std::time::Duration;

use api::{Kind, labels};
use insta::assert_snapshot;
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::world::World;
use crate::world::manifests::{nar, object};

pub(super) const MINUTE: Duration = Duration::from_mins(1);
pub(super) const HOUR: Duration = Duration::from_hours(1);
pub(super) const DAY: Duration = Duration::from_hours(24);

/// A schedule; `place` is `namespace/name`.
pub(super) fn nas(place: &str, schedule: &str, rest: Value) -> Value {
    let mut spec = json!({"schedule": schedule, "template": {"backupSpec": {}}});
    spec.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    object(Kind::NonAdminSchedule, place, json!({ "spec": spec }))
}

/// A cluster in which starts are not spread, so that a run starts when it is due.
pub(super) fn world() -> World {
    let mut world = World::with(&["shop"]);
    world.policy(|policy| policy.schedules.spread = "0".into());
    world
}

/// The runs that are there, by the time in their names.
pub(super) fn runs(world: &World) -> Vec<String> {
    let names = world.names(Kind::NonAdminBackup).into_iter();
    names.map(|name| name.rsplit_once('-').unwrap().1.to_owned()).collect()
}

/// Velero works on whatever it was given, and deletes what it was asked to delete.
pub(super) fn velero_works(world: &mut World, phase: &str) {
    world.settle();
    velero_ends_all(world, phase);
    world.settle();
    world.velero_deletes();
    world.settle();
}

pub(super) fn velero_ends_all(world: &mut World, phase: &str) {
    for name in world.names(Kind::Backup) {
        let backup = format!("backup {name}");
        let name = name.split_once('/').unwrap().1.to_owned();
        if world.get(&backup)["status"]["completionTimestamp"].is_null() {
            world.velero_starts(&name);
            world.velero_ends(&name, phase, json!({"progress": {"totalItems": 3, "itemsBackedUp": 3}}));
        }
    }
}

/// So many days pass, and Velero completes what it is given.
pub(super) fn days_pass(world: &mut World, days: u32) {
    for _ in 0..days {
        world.pass(DAY);
        velero_works(world, "Completed");
    }
}

#[test]
fn at_the_time_it_is_due_a_backup_is_made_and_takes_the_ordinary_way() {
    let mut world = world();
    world.apply(nas("shop/nightly", "0 2 * * *", json!({})));
    assert_snapshot!(world.trace(), @"status NonAdminSchedule shop/nightly Created Accepted=True/ScheduleAccepted");
    assert_eq!(world.get("nas shop/nightly")["status"]["nextRun"], "2026-01-01T02:00:00Z");
    world.pass(HOUR);
    assert_eq!(world.trace(), "", "nothing is due");
    world.pass(HOUR);
    assert_snapshot!(world.trace(), @r"
    status NonAdminSchedule shop/nightly Created Accepted=True/ScheduleAccepted RunsOnTime=True/RunCreated
    create NonAdminBackup shop/nightly-20260101020000
    event Normal RunCreated: the run that was due at 2026-01-01T02:00:00Z was made: nightly-20260101020000
    status NonAdminSchedule shop/nightly Created Accepted=True/ScheduleAccepted RunsOnTime=True/RunCreated
    create Backup velero/shop-nightly-2026010102000-<1>
    status NonAdminBackup shop/nightly-20260101020000 Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=1
    event Normal BackupScheduled: Velero was given the backup as shop-nightly-2026010102000-<1>
    status NonAdminSchedule shop/nightly Created Accepted=True/ScheduleAccepted RunsOnTime=True/RunCreated
    ");
    velero_works(&mut world, "Completed");
    let status = world.get("nas shop/nightly")["status"].clone();
    assert_eq!(status["lastBackup"]["name"], "nightly-20260101020000");
    assert_eq!(status["lastBackup"]["phase"], "Completed");
    assert_eq!(status["lastGoodBackup"], "nightly-20260101020000");
    assert_eq!(status["veleroSchedule"]["status"]["phase"], "Enabled");
    assert_eq!(status["nextRun"], "2026-01-02T02:00:00Z");
    world.trace();
    world.pass(Duration::from_hours(20));
    assert_eq!(world.trace(), "", "a settled schedule writes nothing");
    world.pass(Duration::from_hours(5));
    assert_eq!(runs(&world), ["20260101020000", "20260102020000"]);
}

#[test]
fn wherever_nacre_crashes_each_run_is_made_once() {
    for writes in 0..12 {
        let mut world = world();
        world.apply(nas("shop/nightly", "0 2 * * *", json!({})));
        world.dies_after(writes);
        for _ in 0..3 {
            world.pass(HOUR);
            if world.is_down() {
                world.restart();
                world.settle();
            }
        }
        assert_eq!(runs(&world), ["20260101020000"], "after {writes} writes");
        let made = world.whole_trace().matches("create NonAdminBackup").count();
        assert!(made == 1, "made {made} times after {writes} writes:\n{}", world.whole_trace());
        assert!(world.made_for().values().all(|made| *made == 1));
    }
}

#[test]
fn a_run_that_was_deleted_is_not_made_again() {
    let mut world = world();
    world.apply(nas("shop/nightly", "0 2 * * *", json!({})));
    world.pass(3 * HOUR);
    velero_works(&mut world, "Completed");
    world.delete("nab shop/nightly-20260101020000");
    world.settle();
    world.restart();
    world.pass(HOUR);
    assert_eq!(runs(&world), Vec::<String>::new());
    world.set_clock(SignedDuration::from_hours(-3));
    world.restart();
    world.pass(3 * HOUR);
    assert_eq!(runs(&world), Vec::<String>::new(), "also not after the clock was set back");
}

#[test]
fn of_runs_that_were_missed_one_is_made_if_it_is_not_too_late() {
    let mut world = world();
    world.apply(nas("shop/nightly", "0 2 * * *", json!({})));
    world.settle();
    world.stop_recording();
    // nacre is down for three days and four hours.
    world.jump(3 * DAY + 4 * HOUR);
    world.restart();
    world.settle();
    assert_eq!(runs(&world), ["20260104020000"], "two hours late");
    assert!(world.whole_trace().contains("event Warning RunSkipped: runs that were due before"));
    velero_works(&mut world, "Completed");

    world.edit("nas shop/nightly", json!({"spec": {"startingDeadline": "1h"}}));
    world.settle();
    world.jump(DAY);
    world.restart();
    world.settle();
    assert_eq!(runs(&world), ["20260104020000"], "too late");
    let reported = world.condition("nas shop/nightly", "RunsOnTime");
    assert!(
        reported.starts_with("False/RunSkipped: the run that was due at 2026-01-05T02:00:00Z was skipped"),
        "{reported}"
    );
    assert_eq!(
        world.get("nas shop/nightly")["status"]["veleroSchedule"]["status"]["lastSkipped"],
        "2026-01-05T02:00:00Z"
    );
    world.pass(DAY);
    assert_eq!(runs(&world).len(), 2);
}

#[test]
fn a_run_that_is_due_while_another_is_not_finished_is_skipped_unless_that_is_allowed() {
    let mut world = world();
    world.apply(nas("shop/often", "*/10 * * * *", json!({})));
    world.pass(11 * MINUTE);
    world.pass(10 * MINUTE);
    assert_eq!(runs(&world), ["20260101001000"]);
    let reported = world.condition("nas shop/often", "RunsOnTime");
    assert!(reported.contains("the run before it, often-20260101001000, is not finished"), "{reported}");
    world.edit("nas shop/often", json!({"spec": {"concurrency": "Allow"}}));
    world.pass(10 * MINUTE);
    assert_eq!(runs(&world), ["20260101001000", "20260101003000"]);
}

#[test]
fn a_refused_run_is_visible_and_the_next_one_takes_its_place() {
    let mut world = world();
    world.apply(nas("shop/often", "@hourly", json!({})));
    world.settle();
    world.policy(|policy| policy.backup.max_per_namespace = Some(0));
    world.pass(HOUR);
    let reported = world.condition("nas shop/often", "RunsOnTime");
    assert!(
        reported.starts_with("False/RunRefused: the latest run, often-20260101010000, has not started"),
        "{reported}"
    );
    world.pass(2 * HOUR);
    assert_eq!(runs(&world), ["20260101010000"], "it waits, and they do not pile up");
    world.policy(|policy| policy.backup.max_per_namespace = None);
    velero_works(&mut world, "Completed");
    assert_eq!(world.get("nas shop/often")["status"]["lastBackup"]["phase"], "Completed");
    assert!(world.condition("nas shop/often", "RunsOnTime").starts_with("True/RunCreated"));
}

#[test]
fn pausing_stops_runs_and_what_was_due_meanwhile_was_not_missed() {
    let mut world = world();
    world.apply(nas("shop/often", "@hourly", json!({"paused": true})));
    world.pass(5 * HOUR);
    assert!(runs(&world).is_empty());
    world.trace();
    world.pass(5 * HOUR);
    assert_eq!(world.trace(), "", "a paused schedule writes nothing");
    assert!(world.get("nas shop/often")["status"]["nextRun"].is_null());
    world.jump(10 * MINUTE);
    world.edit("nas shop/often", json!({"spec": {"paused": false}}));
    world.settle();
    assert!(runs(&world).is_empty());
    assert_eq!(world.get("nas shop/often")["status"]["nextRun"], "2026-01-01T11:00:00Z");
    world.pass(HOUR);
    assert_eq!(runs(&world), ["20260101110000"]);
}

#[test]
fn the_next_run_can_be_skipped_once() {
    let mut world = world();
    world.apply(nas("shop/often", "@hourly", json!({"skipImmediately": true})));
    world.settle();
    assert_eq!(world.get("nas shop/often")["spec"]["skipImmediately"], false);
    assert_eq!(world.get("nas shop/often")["status"]["nextRun"], "2026-01-01T02:00:00Z");
    world.pass(HOUR + MINUTE);
    assert!(runs(&world).is_empty());
    let reported = world.condition("nas shop/often", "RunsOnTime");
    assert!(
        reported.starts_with("False/RunSkipped: the run that was due at 2026-01-01T01:00:00Z"),
        "at once: {reported}"
    );
    world.pass(HOUR);
    assert_eq!(runs(&world), ["20260101020000"]);
    assert!(!world.whole_trace().contains("were missed"), "{}", world.whole_trace());
    velero_works(&mut world, "Completed");
    world.edit("nas shop/often", json!({"spec": {"skipImmediately": true}}));
    world.pass(HOUR);
    assert_eq!(runs(&world), ["20260101020000"], "and once more");
    world.pass(HOUR);
    assert_eq!(runs(&world).len(), 2);
}

#[test]
fn what_is_not_kept_goes_with_its_data_and_the_last_good_one_never() {
    let mut world = world();
    world.apply(nas("shop/nightly", "0 2 * * *", json!({"retention": {"keepLast": 2}})));
    days_pass(&mut world, 5);
    assert_eq!(runs(&world), ["20260104020000", "20260105020000"]);
    assert_eq!(world.names(Kind::Backup).len(), 2, "Velero deleted the others with their data");
    // Everything fails from now on.
    for _ in 0..40 {
        world.pass(DAY);
        velero_works(&mut world, "PartiallyFailed");
    }
    let left = runs(&world);
    assert!(
        left.contains(&"20260105020000".to_owned()) && left.contains(&"20260104020000".to_owned()),
        "{left:?}"
    );
    let status = world.get("nas shop/nightly")["status"].clone();
    assert_eq!(status["lastGoodBackup"], "nightly-20260105020000");
    // Forty with the longest ttl would fill the storage, and the namespace up to its limit: then nothing runs any more.
    assert_eq!(left.len(), 2 + 3, "what is partial is kept by the same rules, and three at least: {left:?}");
    world.pass(DAY);
    velero_works(&mut world, "Completed");
    let left = runs(&world);
    assert_eq!(left.len(), 2 + 3, "the newest failures stay for whoever looks for the reason: {left:?}");
}

/// Retention decides, the owner deletes the newer good one, and only then the write of retention arrives.
#[test]
fn what_retention_marked_stays_if_its_owner_deleted_the_newer_one_before() {
    let mut world = world();
    world.apply(nas("shop/nightly", "0 2 * * *", json!({"retention": {"keepLast": 2}})));
    days_pass(&mut world, 2);
    assert_eq!(runs(&world), ["20260101020000", "20260102020000"]);
    let mark = || {
        let by = json!({"annotations": {labels::DELETION_REQUESTER: r#"{"policy":true}"#}});
        json!({"metadata": by, "spec": {"deleteBackup": true}})
    };
    world.trace();
    world.delete("nab shop/nightly-20260102020000");
    world.edit("nab shop/nightly-20260101020000", mark());
    let trace = world.trace();
    assert!(trace.contains("BackupKept"), "{trace}");
    assert!(world.names(Kind::DeleteBackupRequest).is_empty());
    let kept = world.get("nab shop/nightly-20260101020000");
    assert!(kept["spec"]["deleteBackup"].is_null(), "{kept}");
    assert!(kept["metadata"]["annotations"][labels::DELETION_REQUESTER].is_null(), "{kept}");
    assert_eq!(kept["status"]["phase"], "Created");
    assert_eq!(world.get("nas shop/nightly")["status"]["lastGoodBackup"], "nightly-20260101020000");
    // With a newer one that stays, it goes; and what its owner asks for goes anyway.
    days_pass(&mut world, 1);
    world.edit("nab shop/nightly-20260101020000", mark());
    world.settle();
    assert_eq!(world.names(Kind::DeleteBackupRequest).len(), 1);
    world.velero_deletes();
    world.edit("nab shop/nightly-20260103020000", json!({"spec": {"deleteBackup": true}}));
    world.settle();
    world.velero_deletes();
    world.settle();
    assert!(runs(&world).is_empty(), "{:?}", runs(&world));
    world.stop_recording(); // Whether the newer one was deleted before is what it is about.
}

#[test]
fn the_last_good_backup_does_not_expire_where_a_ttl_is_enforced() {
    let mut world = world();
    world.policy(|policy| policy.backup.enforce.ttl = Some("72h".into()));
    world.apply(nas("shop/nightly", "0 2 * * *", json!({"retention": {"keepDaily": 30}})));
    days_pass(&mut world, 1);
    let reported = world.condition("nas shop/nightly", "Retained");
    assert!(reported.starts_with("True/TtlEnforced: the administrators enforce a ttl of 72h"), "{reported}");
    world.edit("nas shop/nightly", json!({"spec": {"paused": true}}));
    let expiration = |world: &World| {
        let name = world.names(Kind::Backup).pop().unwrap();
        world.get(&format!("backup {name}"))["status"]["expiration"].as_str().unwrap().to_owned()
    };
    let mut known = expiration(&world);
    let mut moved = 0;
    for day in 0..30 {
        world.pass(DAY);
        let now: jiff::Timestamp = "2026-01-02T00:00:00Z".parse().unwrap();
        let now = now + SignedDuration::from_hours(24 * (day + 1));
        let until = expiration(&world);
        assert!(until.parse::<jiff::Timestamp>().unwrap() > now, "expired at {until}");
        moved += usize::from(until != known);
        known = until;
    }
    assert!((10..=20).contains(&moved), "moved {moved} times in a month");
}

#[test]
fn a_backup_that_is_being_restored_is_not_deleted() {
    let mut world = world();
    world.apply(nas("shop/nightly", "0 2 * * *", json!({"retention": {"keepLast": 1}})));
    days_pass(&mut world, 1);
    world.apply(nar("shop/back", "nightly-20260101020000"));
    world.settle();
    days_pass(&mut world, 2);
    assert_eq!(runs(&world), ["20260101020000", "20260103020000"], "the restore is not finished");
}

#[test]
fn what_cannot_be_read_is_refused_and_heals() {
    let mut world = world();
    for (name, spec, message) in [
        (
            "cron",
            json!({"schedule": "0 25 * * *"}),
            "spec.schedule: \"25\" is not a hour; numbers from 0 to 23",
        ),
        ("few", json!({"schedule": "0 2 * *"}), "spec.schedule: \"0 2 * *\" has 4 fields; five are needed"),
        (
            "word",
            json!({"schedule": "@fortnightly"}),
            "spec.schedule: \"@fortnightly\" is not known; @yearly",
        ),
        ("date", json!({"schedule": "0 0 31 2 *"}), "spec.schedule: there is no such date"),
        (
            "zone",
            json!({"timeZone": "Europe/Nowhere"}),
            "spec.timeZone: \"Europe/Nowhere\" is not a time zone",
        ),
        (
            "both",
            json!({"schedule": "CRON_TZ=Asia/Tokyo 0 2 * * *", "timeZone": "UTC"}),
            "spec.timeZone: the schedule itself",
        ),
        ("kept", json!({"retention": {}}), "spec.retention: nothing is named that is kept"),
        (
            "within",
            json!({"retention": {"keepWithin": "soon"}}),
            "spec.retention.keepWithin: \"soon\" is not a time",
        ),
        ("late", json!({"startingDeadline": "soon"}), "spec.startingDeadline: \"soon\" is not a duration"),
        (
            "other",
            json!({"template": {"backupSpec": {"includedNamespaces": ["other"]}}}),
            "spec.template.backupSpec.includedNamespaces: only \"shop\"",
        ),
    ] {
        world.apply(nas(&format!("shop/{name}"), "0 2 * * *", spec));
        world.settle();
        let reported = world.condition(&format!("nas shop/{name}"), "Accepted");
        assert!(reported.starts_with(&format!("False/InvalidScheduleSpec: {message}")), "{name}: {reported}");
        let status = world.get(&format!("nas shop/{name}"))["status"].clone();
        assert_eq!(status["veleroSchedule"]["status"]["phase"], "FailedValidation");
        world.edit(&format!("nas shop/{name}"), json!({"spec": {"schedule": "0 2 * * *", "timeZone": null,
            "retention": null, "startingDeadline": null, "template": {"backupSpec": {"includedNamespaces": null}}}}));
        world.settle();
        let reported = world.condition(&format!("nas shop/{name}"), "Accepted");
        assert!(reported.starts_with("True/ScheduleAccepted"), "{name}: {reported}");
    }
}

/// Somebody made a backup under the name that the next run will have.
#[test]
fn a_backup_that_is_no_run_does_not_hide_that_a_run_was_missed() {
    let mut world = world();
    world.apply(nas("shop/nightly", "0 2 * * *", json!({})));
    world.apply(crate::world::manifests::nab("shop/nightly-20260101020000"));
    days_pass(&mut world, 1);
    let reported = world.condition("nas shop/nightly", "RunsOnTime");
    assert!(
        reported.starts_with("False/RunSkipped: the run that was due at 2026-01-01T02:00:00Z was skipped")
            && reported.contains("NonAdminBackup nightly-20260101020000 that is not of this schedule"),
        "{reported}"
    );
    days_pass(&mut world, 1);
    assert!(world.has("nab shop/nightly-20260102020000"));
    assert!(world.condition("nas shop/nightly", "RunsOnTime").starts_with("True/"));
}

#[test]
fn the_shortest_interval_holds_but_for_the_change_of_clocks() {
    let mut world = world();
    let mut accepted = |least: &str, cron: &str, zone: &str| {
        world.policy(|policy| policy.schedules.min_interval = least.into());
        world.apply(nas("shop/a", cron, json!({"timeZone": zone})));
        world.settle();
        let reported = world.condition("nas shop/a", "Accepted");
        world.delete("nas shop/a");
        world.settle();
        reported.starts_with("True/")
    };
    assert!(!accepted("1h", "*/30 * * * *", "UTC"), "half of it is not enough");
    assert!(!accepted("1h", "*/59 * * * *", "UTC"));
    assert!(!accepted("24h", "0 */23 * * *", "UTC"));
    assert!(accepted("1h", "0 * * * *", "Europe/Berlin"));
    // 23:59 and 00:00, but only on the 31st and the 1st; and where no day follows another.
    assert!(!accepted("50m", "0,59 0,23 */2 * *", "UTC"));
    assert!(accepted("50m", "0,59 0,23 2-30/2 * *", "UTC"));
    assert!(accepted("6h", "@every 7h", "UTC"), "it has other times on each day");
    assert!(!accepted("10m", "0,13,26,39,55 0-21,22,23 * * *", "UTC"), "five minutes from hour to hour");
    // The day in spring has 23 hours, and a run at 02:30 is later on it.
    for cron in ["0 2 * * *", "30 2 * * *", "0 12 * * *"] {
        assert!(accepted("24h", &cron.replace("* * *", "* 3,4 *"), "Europe/Berlin"), "{cron}");
    }
}

#[test]
fn the_policy_bounds_what_schedules_ask_for() {
    let mut world = world();
    world.policy(|policy| {
        policy.schedules.min_interval = "6h".into();
        policy.schedules.windows = vec!["22:00-06:00".to_owned()];
        policy.schedules.max_per_namespace = Some(1);
    });
    world.apply(nas("shop/a", "0 2 * * *", json!({})));
    world.settle();
    assert!(world.condition("nas shop/a", "Accepted").starts_with("True/"));
    world.apply(nas("shop/b", "@daily", json!({})));
    world.settle();
    let reported = world.condition("nas shop/b", "Accepted");
    assert!(reported.contains("as many schedules as it may have, which is 1; delete one"), "{reported}");
    world.edit("nas shop/a", json!({"spec": {"schedule": "@hourly"}}));
    world.settle();
    assert!(world.condition("nas shop/a", "Accepted").contains("requires at least 6h between them"));
    world.edit("nas shop/a", json!({"spec": {"schedule": "0 12 * * *"}}));
    world.settle();
    assert!(world.condition("nas shop/a", "Accepted").contains("outside of the times"));
    world.delete("nas shop/a");
    world.settle();
    assert!(world.condition("nas shop/b", "Accepted").starts_with("True/"), "there is room now");
}

#[test]
fn namespaces_without_a_schedule_get_the_one_of_the_policy_by_their_labels() {
    let mut world = world();
    world.policy(|policy| {
        let default = json!({"name": "nightly", "selector": {"matchLabels": {"tier": "gold"}}, "schedule": "H 2 * * *",
            "retention": {"keepDaily": 7}, "backupSpec": {}});
        policy.schedules.defaults = vec![serde_json::from_value(default).unwrap()];
    });
    world.settle();
    assert!(world.names(Kind::NonAdminSchedule).is_empty(), "nobody is gold");
    world.edit("ns shop", json!({"metadata": {"labels": {"tier": "gold"}}}));
    world.settle();
    assert_eq!(world.get("nas shop/nightly")["spec"]["retention"]["keepDaily"], 7);
    assert!(world.condition("nas shop/nightly", "Accepted").starts_with("True/"));
    world.delete("nas shop/nightly");
    world.settle();
    assert!(world.has("nas shop/nightly"), "it comes back");
    world.apply(nas("shop/own", "@weekly", json!({})));
    world.delete("nas shop/nightly");
    world.settle();
    assert_eq!(world.names(Kind::NonAdminSchedule), ["shop/own"], "unless there is another one");
    world.delete("nas shop/own");
    world.settle();
    assert!(world.has("nas shop/nightly"));
}

/// The policy's schedule for everybody who is gold.
fn default_schedule(world: &mut World, cron: &str, retention: &Value) {
    let default = json!({"name": "nightly", "selector": {"matchLabels": {"tier": "gold"}}, "schedule": cron,
        "retention": retention, "backupSpec": {}});
    let default = serde_json::from_value(default).unwrap();
    world.policy(|policy| policy.schedules.defaults = vec![default]);
    world.settle();
}

#[test]
fn a_schedule_of_the_policy_follows_it_until_its_owners_change_it() {
    let mut world = world();
    world.edit("ns shop", json!({"metadata": {"labels": {"tier": "gold"}}}));
    default_schedule(&mut world, "0 2 * * *", &json!({"keepDaily": 7, "keepWeekly": 4}));
    // Pausing is no change of what the policy says.
    world.edit("nas shop/nightly", json!({"spec": {"paused": true}}));
    world.trace();
    default_schedule(&mut world, "0 3 * * *", &json!({"keepDaily": 9}));
    let spec = world.get("nas shop/nightly")["spec"].clone();
    assert_eq!(
        (&spec["schedule"], &spec["retention"], &spec["paused"]),
        (&json!("0 3 * * *"), &json!({"keepDaily": 9}), &json!(true))
    );
    assert_eq!(world.trace().matches("patch NonAdminSchedule").count(), 1);
    world.pass(HOUR);
    assert_eq!(world.trace(), "", "a settled cluster gets no writes");
    world.edit("nas shop/nightly", json!({"spec": {"retention": {"keepDaily": 30}}}));
    default_schedule(&mut world, "0 4 * * *", &json!({"keepDaily": 8}));
    let spec = world.get("nas shop/nightly")["spec"].clone();
    assert_eq!((&spec["schedule"], &spec["retention"]["keepDaily"]), (&json!("0 3 * * *"), &json!(30)));
}

#[test]
fn five_hundred_schedules_of_one_time_start_spread_over_five_minutes() {
    let names: Vec<_> = (0..500).map(|at| format!("team-{at}")).collect();
    let mut world = World::with(&names.iter().map(String::as_str).collect::<Vec<_>>());
    world.stop_recording();
    for name in &names {
        world.apply(nas(&format!("{name}/nightly"), "0 0 * * *", json!({})));
    }
    world.rest();
    let mut starts = std::collections::BTreeMap::<String, usize>::new();
    for name in &names {
        let next =
            world.get(&format!("nas {name}/nightly"))["status"]["nextRun"].as_str().unwrap().to_owned();
        assert!(("2026-01-02T00:00:00Z".."2026-01-02T00:05:00Z").contains(&next.as_str()), "{next}");
        *starts.entry(next).or_default() += 1;
    }
    let most = starts.values().max().unwrap();
    assert!(starts.len() > 200 && *most <= 10, "{} seconds, and at most {most} in one", starts.len());
}

/// What the Go controller made for `shop/nightly`, and when Velero last made a backup of it.
pub(super) fn velero_schedule(last_backup: &str) -> Value {
    object(
        Kind::Schedule,
        "velero/shop-nightly-1",
        json!({
            "metadata": {
                "labels": {labels::OADP: labels::OADP_VALUE, labels::MANAGED_BY: labels::MANAGED_BY_VALUE,
                    labels::NAS_NACUUID: "shop-nightly-1"},
                "annotations": {labels::NAS_NAME: "nightly", labels::NAS_NAMESPACE: "shop"},
            },
            "spec": {"schedule": "0 2 * * *", "template": {}},
            "status": {"phase": "Enabled", "lastBackup": last_backup},
        }),
    )
}

#[test]
fn a_velero_schedule_of_the_go_controller_is_taken_over_without_a_run_lost_or_doubled() {
    for (hours, last, expected) in [
        (3, "2026-01-01T02:00:05Z", vec!["20260102020000"]),
        (3, "2025-12-31T02:00:05Z", vec!["20260101020000"]),
    ] {
        let mut world = world();
        world.apply(nas("shop/nightly", "0 2 * * *", json!({"concurrency": "Allow"})));
        world.apply(velero_schedule(last));
        world.stop_recording();
        world.jump(hours * HOUR);
        world.settle();
        assert!(world.names(Kind::Schedule).is_empty(), "it is gone");
        let deleted = world.whole_trace().matches("delete Schedule").count();
        assert_eq!(deleted, 1, "exactly once");
        world.pass(MINUTE);
        if runs(&world).is_empty() {
            world.pass(DAY);
        }
        assert_eq!(runs(&world), expected, "Velero's last one was at {last}");
    }
}

#[test]
fn around_the_time_it_is_due_velero_is_let_finish_first() {
    let mut world = world();
    world.stop_recording();
    world.jump(2 * HOUR);
    world.apply(nas("shop/nightly", "0 2 * * *", json!({})));
    world.apply(velero_schedule("2025-12-31T02:00:05Z"));
    world.jump(10 * Duration::from_secs(1));
    world.settle();
    assert_eq!(world.names(Kind::Schedule).len(), 1, "Velero may be at it");
    world.edit("Schedule velero/shop-nightly-1", json!({"status": {"lastBackup": "2026-01-01T02:00:20Z"}}));
    world.pass(3 * MINUTE);
    assert!(world.names(Kind::Schedule).is_empty() && runs(&world).is_empty());
    world.pass(DAY);
    assert_eq!(runs(&world), ["20260102020000"]);
}

#[test]
fn a_velero_schedule_whose_schedule_is_gone_is_collected() {
    let mut world = world();
    world.apply(velero_schedule("2026-01-01T02:00:05Z"));
    world.settle();
    assert_eq!(world.collect_garbage(), ["Schedule shop-nightly-1"]);
}
