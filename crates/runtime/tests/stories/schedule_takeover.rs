//! Taking over the Velero Schedules of the Go controller: of short intervals, and of schedules that are refused.

use std::time::Duration;

use api::Kind;
use serde_json::json;

use super::schedules::{DAY, HOUR, MINUTE, nas, runs, velero_schedule, world};
use crate::world::World;

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
