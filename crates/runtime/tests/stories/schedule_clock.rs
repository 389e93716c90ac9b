//! Clocks that somebody sets: a run is made once for each time all the same, and a wrong clock stops nothing for long.

use jiff::SignedDuration;
use serde_json::json;

use super::schedules::{DAY, HOUR, MINUTE, nas, runs, velero_works, world};
use crate::world::World;

/// Every ten minutes, of which the newest is kept.
fn often(hours: u32) -> World {
    let mut world = world();
    world.apply(nas("shop/often", "*/10 * * * *", json!({"retention": {"keepLast": 1}})));
    works(&mut world, hours);
    world
}

fn works(world: &mut World, hours: u32) {
    for _ in 0..6 * hours {
        world.pass(10 * MINUTE);
        velero_works(world, "Completed");
    }
}

fn made_twice(world: &World) -> Vec<String> {
    let twice = world.made_for().iter().filter(|(_, made)| **made > 1);
    twice.map(|(name, _)| name.clone()).collect()
}

fn made(world: &World) -> usize {
    world.made_for().keys().filter(|name| name.starts_with("run ")).count()
}

#[test]
fn after_the_clock_was_set_back_no_time_has_a_second_run() {
    for restarts in [false, true] {
        let mut world = often(4);
        assert_eq!(made(&world), 24);
        world.set_clock(SignedDuration::from_hours(-2));
        if restarts {
            world.restart();
        }
        works(&mut world, 1);
        assert_eq!(made_twice(&world), Vec::<String>::new());
        assert_eq!(made(&world), 24, "all of them were made before");
        let reported = world.condition("nas shop/often", "RunsOnTime");
        assert!(
            reported.starts_with("False/RunSkipped: the clock was set back")
                && reported.contains("until 2026-01-01T04:00:00Z"),
            "{reported}"
        );
        assert_eq!(world.whole_trace().matches("event Warning RunSkipped: the clock").count(), 1);
        assert_eq!(world.get("nas shop/often")["status"]["nextRun"], "2026-01-01T04:10:00Z");
        works(&mut world, 2);
        assert_eq!(made_twice(&world), Vec::<String>::new());
        assert_eq!(made(&world), 24 + 6, "it goes on where it was");
        assert!(world.condition("nas shop/often", "RunsOnTime").starts_with("True/RunCreated"));
    }
}

#[test]
fn a_pause_after_the_clock_was_set_back_makes_no_second_run_either() {
    let mut world = often(4);
    world.set_clock(SignedDuration::from_hours(-2));
    world.edit("nas shop/often", json!({"spec": {"paused": true}}));
    works(&mut world, 1);
    world.edit("nas shop/often", json!({"spec": {"paused": false}}));
    works(&mut world, 2);
    assert_eq!(made_twice(&world), Vec::<String>::new());
    assert_eq!(made(&world), 24 + 6);
}

/// A clock that was wrong by a month for a moment: nobody waits for a month.
#[test]
fn a_clock_that_was_far_ahead_for_a_moment_does_not_stop_runs() {
    let mut world = often(1);
    world.set_clock(SignedDuration::from_hours(30 * 24));
    works(&mut world, 1);
    world.set_clock(SignedDuration::from_hours(-30 * 24));
    let before = made(&world);
    world.pass(3 * HOUR); // The longest until somebody looks.
    works(&mut world, 1);
    assert!(made(&world) >= before + 6, "{} and then {}", before, made(&world));
    assert_eq!(made_twice(&world), Vec::<String>::new());
}

#[test]
fn a_correction_by_a_moment_is_not_worth_a_word() {
    let mut world = world();
    world.apply(nas("shop/nightly", "0 2 * * *", json!({})));
    world.pass(2 * HOUR);
    velero_works(&mut world, "Completed");
    world.set_clock(SignedDuration::from_secs(-5));
    world.trace();
    world.pass(HOUR);
    assert_eq!(world.trace(), "");
    world.pass(DAY);
    assert_eq!(runs(&world), ["20260101020000", "20260102020000"]);
}
