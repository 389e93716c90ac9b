//! Taking over the Velero Schedules of the Go controller: of short intervals, and of schedules that are refused.

use std::time::Duration;

use api::{Kind, labels};
use serde_json::{Value, json};

use super::schedules::{DAY, HOUR, MINUTE, nas, runs, velero_schedule, world};
use crate::world::World;
use crate::world::manifests::object;

const SECOND: Duration = Duration::from_secs(1);

fn velero_made(world: &mut World, at: &str) {
    world.edit("Schedule velero/shop-nightly-1", json!({"status": {"lastBackup": at}}));
}

#[test]
fn a_velero_schedule_that_runs_every_minute_is_taken_over_without_a_run_lost_or_doubled() {
    let mut world = world();
    world.stop_recording();
    world.apply(velero_schedule("2025-12-31T23:59:05Z"));
    world.apply(nas("shop/nightly", "* * * * *", json!({"concurrency": "Allow"})));
    let mut by_velero = Vec::new();
    for minute in 0..8 {
        world.pass(5 * SECOND);
        if !world.names(Kind::Schedule).is_empty() {
            let at = format!("2026-01-01T00:0{minute}:05Z");
            velero_made(&mut world, &at);
            by_velero.push(format!("2026010100{minute:02}00"));
        }
        world.pass(55 * SECOND);
    }
    assert!(world.names(Kind::Schedule).is_empty(), "it is gone");
    assert!((1..=3).contains(&by_velero.len()), "Velero made {by_velero:?}");
    let mut all = by_velero;
    all.extend(runs(&world));
    let expected: Vec<_> = (0..=8).map(|minute| format!("2026010100{minute:02}00")).collect();
    assert_eq!(all, expected, "one for each minute");
}

/// Velero looks at its schedules once a minute, counted from its own start.
#[test]
fn a_velero_schedule_is_taken_over_at_whatever_second_velero_makes_its_runs() {
    for second in (0..55).step_by(6) {
        let mut world = world();
        world.stop_recording();
        world.apply(velero_schedule(&format!("2025-12-31T23:59:{second:02}Z")));
        world.apply(nas("shop/nightly", "* * * * *", json!({"concurrency": "Allow"})));
        for minute in 0..4 {
            world.pass(second * SECOND);
            if !world.names(Kind::Schedule).is_empty() {
                velero_made(&mut world, &format!("2026-01-01T00:0{minute}:{second:02}Z"));
            }
            world.pass((60 - second) * SECOND);
        }
        assert!(world.names(Kind::Schedule).is_empty(), "at second {second}");
        let runs = runs(&world);
        assert_eq!(runs.last().unwrap(), "20260101000400", "at second {second}: {runs:?}");
    }
}

#[test]
fn a_velero_schedule_that_velero_does_not_run_is_taken_over_however_short_its_interval_is() {
    for cron in ["* * * * *", "*/2 * * * *", "@every 20s"] {
        let mut world = world();
        world.stop_recording();
        world.apply(nas("shop/nightly", cron, json!({"concurrency": "Allow"})));
        world.apply(velero_schedule("2025-12-30T02:00:05Z"));
        world.pass(6 * MINUTE);
        assert!(world.names(Kind::Schedule).is_empty(), "{cron}: it is gone");
        assert!(!runs(&world).is_empty(), "{cron}");
    }
}

/// Velero would make runs that no policy was asked about.
#[test]
fn the_velero_schedule_of_a_refused_schedule_goes_too() {
    for cron in ["0 2 * * *", "0 25 * * *"] {
        let mut world = world();
        world.policy(|policy| policy.schedules.max_per_namespace = Some(0));
        world.apply(nas("shop/nightly", cron, json!({})));
        world.apply(velero_schedule("2026-01-01T02:00:05Z"));
        world.stop_recording();
        world.jump(3 * HOUR);
        world.settle();
        assert!(world.condition("nas shop/nightly", "Accepted").starts_with("False/InvalidScheduleSpec"));
        assert!(world.names(Kind::Schedule).is_empty(), "{cron}: it is gone");
        assert_eq!(world.whole_trace().matches("delete Schedule").count(), 1, "exactly once");
        world.policy(|policy| policy.schedules.max_per_namespace = None);
        world.edit("nas shop/nightly", json!({"spec": {"schedule": "0 2 * * *"}}));
        world.pass(HOUR);
        assert!(runs(&world).is_empty(), "{cron}: Velero has made the one of today");
        world.pass(DAY);
        assert_eq!(runs(&world), ["20260102020000"], "{cron}");
    }
}

#[test]
fn wherever_nacre_crashes_a_velero_schedule_is_taken_over_once() {
    for (made, expected) in
        [(true, vec!["20260102020000"]), (false, vec!["20260101020000", "20260102020000"])]
    {
        for writes in 0..12 {
            let mut world = world();
            world.stop_recording();
            let last = if made { "2026-01-01T02:00:05Z" } else { "2025-12-31T02:00:05Z" };
            world.apply(nas("shop/nightly", "0 2 * * *", json!({"concurrency": "Allow"})));
            world.apply(velero_schedule(last));
            world.jump(3 * HOUR);
            world.dies_after(writes);
            for _ in 0..26 {
                world.pass(HOUR);
                if world.is_down() {
                    world.restart();
                    world.settle();
                }
            }
            assert!(world.names(Kind::Schedule).is_empty(), "after {writes} writes: it is gone");
            assert_eq!(world.whole_trace().matches("delete Schedule").count(), 1, "after {writes} writes");
            assert_eq!(runs(&world), expected, "after {writes} writes; Velero's last one was at {last}");
            assert!(world.made_for().values().all(|made| *made == 1));
        }
    }
}

/// A schedule as the Go controller left it.
fn apply_with_status(world: &mut World, schedule: &Value) {
    world.apply(schedule.clone());
    if !schedule["status"].is_null() {
        world.forge_status("nas shop/nightly", schedule["status"].clone());
    }
}

/// Velero skips what was due before, and writes down when it did.
#[test]
fn what_velero_skipped_is_not_made_up_for() {
    let mut skipped = velero_schedule("2025-12-31T02:00:05Z");
    skipped["status"]["lastSkipped"] = json!("2026-01-01T02:10:00Z");
    // Its status as the Go controller left it, of a Velero Schedule that is gone already.
    let mut gone = nas("shop/nightly", "0 2 * * *", json!({}));
    let shown = json!({"lastBackup": "2025-12-31T02:00:05Z", "lastSkipped": "2026-01-01T02:10:00Z"});
    gone["status"] = json!({"veleroSchedule": {"name": "shop-nightly-1", "status": shown}});
    for (schedule, velero) in [(nas("shop/nightly", "0 2 * * *", json!({})), Some(skipped)), (gone, None)] {
        let mut world = world();
        world.stop_recording();
        apply_with_status(&mut world, &schedule);
        if let Some(velero) = velero {
            world.apply(velero);
        }
        world.jump(3 * HOUR);
        world.settle();
        assert!(world.names(Kind::Schedule).is_empty(), "it is gone");
        assert_eq!(world.get("nas shop/nightly")["status"]["lastDue"], "2026-01-01T02:10:00Z");
        world.pass(HOUR);
        assert_eq!(runs(&world), Vec::<String>::new(), "Velero skipped the one of today");
        world.pass(DAY);
        assert_eq!(runs(&world), ["20260102020000"]);
    }
}

/// As the Go controller shows it: by a name that nothing else says.
fn shown_by_name(name: &str) -> Value {
    let mut schedule = nas("shop/nightly", "0 2 * * *", json!({"concurrency": "Allow"}));
    schedule["status"] = json!({"veleroSchedule": {"nacuuid": name, "name": name, "namespace": "velero", "status": {"phase": "Enabled"}}});
    schedule
}

/// With labels and annotations that nacre does not know.
fn labelled_otherwise(last_backup: &str) -> Value {
    let mut velero = velero_schedule(last_backup);
    velero["metadata"]["labels"].as_object_mut().unwrap().remove(labels::NAS_NACUUID);
    velero["metadata"]["annotations"] = json!({"openshift.io/other": "nightly"});
    velero["spec"]["template"] = json!({"includedNamespaces": ["shop"]});
    velero
}

#[test]
fn a_velero_schedule_that_only_the_status_names_is_taken_over() {
    for writes in [None, Some(0), Some(1), Some(2), Some(3)] {
        let mut world = world();
        world.stop_recording();
        apply_with_status(&mut world, &shown_by_name("shop-nightly-1"));
        world.apply(labelled_otherwise("2026-01-01T02:00:05Z"));
        world.jump(3 * HOUR);
        if let Some(writes) = writes {
            world.dies_after(writes);
        }
        world.settle();
        if world.is_down() {
            world.restart();
            world.settle();
        }
        world.pass(MINUTE);
        assert!(world.names(Kind::Schedule).is_empty(), "after {writes:?} writes: it is gone");
        assert_eq!(world.whole_trace().matches("delete Schedule").count(), 1, "exactly once");
        let shown = world.get("nas shop/nightly")["status"]["veleroSchedule"].clone();
        assert!(shown["name"].is_null() && shown["nacuuid"].is_null(), "{shown}");
        assert_eq!(runs(&world), Vec::<String>::new(), "Velero has made the one of today");
        world.pass(DAY);
        // With few writes until then, this is when it dies.
        if world.is_down() {
            world.restart();
            world.settle();
        }
        assert_eq!(runs(&world), ["20260102020000"], "after {writes:?} writes");
    }
}

#[test]
fn a_schedule_that_is_deleted_takes_a_velero_schedule_along_that_only_its_status_names() {
    let mut world = world();
    world.stop_recording();
    let mut schedule = shown_by_name("shop-nightly-1");
    schedule["metadata"]["finalizers"] = json!([labels::NAS_FINALIZER]);
    schedule["spec"]["paused"] = json!(true);
    world.jump(2 * HOUR);
    apply_with_status(&mut world, &schedule);
    world.apply(labelled_otherwise("2025-12-31T02:00:05Z"));
    world.delete("nas shop/nightly");
    world.settle();
    assert!(!world.has("nas shop/nightly") && world.names(Kind::Schedule).is_empty());
}

/// A status is a hint: an administrator's own, another namespace's and another schedule's stay.
#[test]
fn a_status_that_names_a_velero_schedule_of_somebody_else_takes_nothing_over() {
    let of_the_administrators = |velero: &mut Value| {
        velero["metadata"]["labels"].as_object_mut().unwrap().remove(labels::MANAGED_BY);
    };
    let of_another_namespace =
        |velero: &mut Value| velero["spec"]["template"] = json!({"includedNamespaces": ["bank"]});
    let of_everything = |velero: &mut Value| velero["spec"]["template"] = json!({});
    let of_another_schedule = |velero: &mut Value| {
        velero["metadata"]["labels"][labels::NAS_NACUUID] = json!("shop-nightly-1");
        velero["metadata"]["annotations"] =
            json!({labels::NAS_NAME: "weekly", labels::NAS_NAMESPACE: "shop"});
    };
    let changes: [&dyn Fn(&mut Value); 4] =
        [&of_the_administrators, &of_another_namespace, &of_everything, &of_another_schedule];
    for (at, change) in changes.into_iter().enumerate() {
        let mut world = world();
        world.stop_recording();
        let mut velero = labelled_otherwise("2026-01-01T02:00:05Z");
        change(&mut velero);
        world.apply(velero);
        apply_with_status(&mut world, &shown_by_name("shop-nightly-1"));
        world.jump(4 * HOUR);
        world.settle();
        world.pass(HOUR);
        assert_eq!(world.names(Kind::Schedule).len(), 1, "{at}");
    }
}

/// Velero made them, and the Go controller made a request for each, with nothing that names the schedule.
#[test]
fn what_velero_made_for_a_schedule_counts_as_its_runs() {
    let mut world = world();
    world.stop_recording();
    let finished = |name: &str, by: &str, day: u32| {
        let time = format!("2025-12-{day}T02:00:05Z");
        object(
            Kind::Backup,
            &format!("velero/{name}"),
            json!({
                "metadata": {
                    "labels": {labels::OADP: labels::OADP_VALUE, labels::MANAGED_BY: labels::MANAGED_BY_VALUE,
                        labels::NAB_NACUUID: name, "velero.io/schedule-name": by},
                    "annotations": {labels::NAB_NAMESPACE: "shop", labels::NAB_NAME: name},
                },
                "spec": {"includedNamespaces": ["shop"]},
                "status": {"phase": "Completed", "startTimestamp": time, "completionTimestamp": time,
                    "expiration": "2026-03-01T00:00:00Z", "progress": {"totalItems": 3, "itemsBackedUp": 3}},
            }),
        )
    };
    for (name, by, day) in
        [("a-29", "shop-nightly-1", 29), ("a-30", "shop-nightly-1", 30), ("b-31", "shop-other-1", 31)]
    {
        world.apply(finished(name, by, day));
        let mut request =
            object(Kind::NonAdminBackup, &format!("shop/{name}"), json!({"spec": {"backupSpec": {}}}));
        request["metadata"]["labels"] = json!({labels::SYNCED_FROM: name});
        world.apply(request);
    }
    world.settle();
    world.apply(nas("shop/nightly", "0 2 * * *", json!({"retention": {"keepLast": 1}})));
    world.apply(velero_schedule("2025-12-31T02:00:05Z"));
    world.settle();
    assert!(world.names(Kind::Schedule).is_empty(), "it is gone");
    let of = |world: &World, name: &str| {
        world.get(&format!("nab shop/{name}"))["metadata"]["labels"][labels::NAS_NAME].clone()
    };
    assert_eq!([of(&world, "a-30"), of(&world, "b-31")], [json!("nightly"), json!(null)]);
    assert_eq!(world.get("nas shop/nightly")["status"]["lastGoodBackup"], "a-30");
    world.velero_deletes();
    world.settle();
    assert!(!world.has("nab shop/a-29"), "keepLast: 1");
    assert!(world.has("nab shop/a-30") && world.has("nab shop/b-31"));
}

#[test]
fn the_velero_schedule_of_a_refused_schedule_is_not_deleted_while_velero_may_be_at_it() {
    let mut world = world();
    world.stop_recording();
    world.policy(|policy| policy.schedules.max_per_namespace = Some(0));
    world.jump(2 * HOUR + 10 * SECOND);
    world.apply(nas("shop/nightly", "0 2 * * *", json!({})));
    world.apply(velero_schedule("2025-12-31T02:00:05Z"));
    world.settle();
    assert_eq!(world.names(Kind::Schedule).len(), 1);
    velero_made(&mut world, "2026-01-01T02:00:20Z");
    world.pass(MINUTE);
    assert!(world.names(Kind::Schedule).is_empty(), "Velero has made it");
    assert_eq!(world.get("nas shop/nightly")["status"]["lastDue"], "2026-01-01T02:00:20Z");
}
