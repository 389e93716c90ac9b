//! A simulated year of nights, with a leap day and both changes of the clocks: as it is, and with a nacre that crashes at
//! every single write.

use std::time::Duration;

use serde_json::json;

use super::schedules::{DAY, HOUR, nas, runs, velero_ends_all, world};
use crate::world::World;

/// Lets nacre act for that long.
type Pass = fn(&mut World, Duration);

/// The world at the end of the year, and the run that was the last one at the end of each day.
fn year(pass: Pass) -> (World, Vec<String>) {
    let mut world = world();
    // To 2028, which has a leap day.
    world.jump(730 * DAY);
    world.apply(nas(
        "shop/nightly",
        "30 2 * * *",
        json!({"timeZone": "Europe/Berlin", "retention": {"keepDaily": 7, "keepWeekly": 4, "keepMonthly": 12}}),
    ));
    let mut last = Vec::new();
    for _ in 0..366 {
        // Whether everybody was woken is looked at in the end: that takes longer than the year.
        pass(&mut world, 3 * HOUR);
        velero_ends_all(&mut world, "Completed");
        pass(&mut world, Duration::ZERO);
        world.velero_deletes();
        pass(&mut world, 21 * HOUR);
        last.push(world.get("nas shop/nightly")["status"]["lastBackup"]["name"].as_str().unwrap().to_owned());
    }
    world.settle();
    (world, last)
}

/// One run for each night, and what the retention keeps of them.
fn is_right(world: &World, mut last: Vec<String>) {
    last.dedup();
    assert_eq!(last.len(), 366, "one for each night");
    assert!(last.contains(&"nightly-20280229013000".to_owned()), "the leap day");
    // On 26 March clocks go from 2 to 3: 02:30 does not exist, and the run is at 03:30, which is 01:30 UTC.
    assert!(last.contains(&"nightly-20280326013000".to_owned()));
    // On 29 October 02:30 exists twice: the run is at the first, 00:30 UTC.
    assert!(last.contains(&"nightly-20281029003000".to_owned()));
    assert!(world.made_for().values().all(|made| *made == 1), "never two runs for one time");
    let left = runs(world);
    assert!(
        (18..=23).contains(&left.len()),
        "7 days, 4 weeks and 12 months, some of them the same: {left:?}"
    );
    assert_eq!(left.first().map(String::as_str), Some("20280131013000"));
}

#[test]
fn a_year_of_nights_with_a_leap_day_and_changes_of_the_clocks() {
    let (world, last) = year(World::rest_for);
    is_right(&world, last);
}

/// Makes one write in each of its lives: it crashes before the next, and is down for up to an hour.
fn one_write_a_life(world: &mut World, time: Duration) {
    let mut left = time;
    loop {
        while world.is_down() {
            world.restart();
            world.dies_after(world.writes() + 1);
            world.rest();
        }
        if left.is_zero() {
            return;
        }
        let part = left.min(HOUR);
        world.rest_for(part);
        left -= part;
    }
}

#[test]
fn a_year_with_a_crash_at_every_write_is_the_same_year() {
    let (world, last) = year(|world, time| {
        if world.writes() == 0 {
            world.dies_after(1);
        }
        one_write_a_life(world, time);
    });
    assert!(world.writes() > 366 * 10, "{} writes", world.writes());
    is_right(&world, last);
}
