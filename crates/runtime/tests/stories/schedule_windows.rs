//! When the administrators let runs start: the shift of starts, time zones, midnight, and runs that are late.

use serde_json::json;

use super::schedules::{DAY, HOUR, MINUTE, nas, runs, velero_works, world};
use crate::world::World;

fn windows(world: &mut World, windows: &[&str]) {
    let windows = windows.iter().map(|&window| window.to_owned()).collect();
    world.policy(|policy| policy.schedules.windows = windows);
}

/// A schedule that is accepted runs: the shift does not move a start out of the window that it is due in.
#[test]
fn a_run_near_the_end_of_a_window_is_not_shifted_out_of_it() {
    let mut world = world();
    world.hand_over_at_once();
    world.policy(|policy| policy.schedules.spread = "1h".into());
    windows(&mut world, &["22:00-06:00"]);
    let names = ["a", "b", "c", "d", "e"];
    for name in names {
        world.apply(nas(&format!("shop/{name}"), "58 5 * * *", json!({})));
    }
    world.settle();
    for _ in 0..2 {
        world.pass(DAY);
        velero_works(&mut world, "Completed");
    }
    for name in names {
        let nas = format!("nas shop/{name}");
        assert!(world.condition(&nas, "Accepted").starts_with("True/"), "{name}");
        let reported = world.condition(&nas, "RunsOnTime");
        assert!(reported.starts_with("True/RunCreated"), "{name}: {reported}");
    }
    assert_eq!(runs(&world).len(), 2 * names.len());
}

#[test]
fn a_window_is_in_its_time_zone_and_goes_past_midnight() {
    for (zone, cron, accepted) in [
        ("Europe/Berlin", "30 23 * * *", true),
        ("Europe/Berlin", "30 4 * * *", true),
        ("Europe/Berlin", "30 5 * * *", false), // 06:30 in Berlin
        ("Asia/Kolkata", "0 17 * * *", true),   // 22:30 in Kolkata
        ("Asia/Kolkata", "0 16 * * *", false),  // 21:30 in Kolkata
    ] {
        let mut world = world();
        windows(&mut world, &[&format!("22:00-06:00 {zone}")]);
        world.apply(nas("shop/nightly", cron, json!({})));
        world.pass(DAY);
        let reported = world.condition("nas shop/nightly", "Accepted");
        assert_eq!(reported.starts_with("True/"), accepted, "{zone} {cron}: {reported}");
        assert_eq!(runs(&world).len(), usize::from(accepted), "{zone} {cron}");
    }
}

#[test]
fn a_run_that_is_made_up_for_starts_only_in_a_window() {
    for (hours, made) in [(5, 1), (7, 0)] {
        let mut world = world();
        windows(&mut world, &["22:00-06:00"]);
        world.apply(nas("shop/nightly", "30 1 * * *", json!({"startingDeadline": "12h"})));
        world.settle();
        world.stop_recording();
        world.jump(hours * HOUR);
        world.restart();
        world.settle();
        assert_eq!(runs(&world).len(), made, "after {hours} hours");
        let reported = world.condition("nas shop/nightly", "RunsOnTime");
        assert_eq!(
            reported.contains("only in the times that the administrator allows"),
            made == 0,
            "{reported}"
        );
    }
}

/// Whether it is accepted does not depend on when somebody looks.
#[test]
fn a_schedule_that_runs_all_day_is_refused_where_only_the_night_is_allowed() {
    let mut world = world();
    windows(&mut world, &["22:00-06:00"]);
    world.jump(22 * HOUR + 30 * MINUTE);
    world.apply(nas("shop/often", "* * * * *", json!({})));
    world.settle();
    let reported = world.condition("nas shop/often", "Accepted");
    assert!(reported.contains("a run at 06:00 UTC is outside of the times"), "{reported}");
    world.edit("nas shop/often", json!({"spec": {"schedule": "* 0-5,22-23 * * *"}}));
    world.settle();
    assert!(world.condition("nas shop/often", "Accepted").starts_with("True/"));
}
