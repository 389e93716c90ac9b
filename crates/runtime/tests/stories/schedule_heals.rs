//! Runs that are refused because of what changed since the schedule was made, and heal; and crashes between any two writes
//! of runs and retention.

use api::Kind;
use serde_json::json;

use super::schedules::{DAY, HOUR, nas, runs, velero_ends_all, velero_works, world};
use crate::world::World;
use crate::world::people::{EDIT, asked_by};

/// Ada's schedule, into a bucket of the namespace, with a command in a pod before.
fn into_own_storage(world: &mut World) -> String {
    let storage = world.tenant_storage("shop/bucket");
    world.may("ada", EDIT);
    let hooks = json!({"resources": [{"name": "dump", "pre": [{"exec": {"command": ["dump"]}}]}]});
    let template = json!({"backupSpec": {"storageLocation": "bucket", "hooks": hooks}});
    world.apply(asked_by("ada", nas("shop/nightly", "0 2 * * *", json!({ "template": template }))));
    world.pass(DAY);
    velero_works(world, "Completed");
    storage
}

fn on_time(world: &World) -> String {
    world.condition("nas shop/nightly", "RunsOnTime")
}

#[test]
fn a_run_whose_owner_lost_a_permission_is_refused_and_heals() {
    let mut world = world();
    into_own_storage(&mut world);
    assert!(on_time(&world).starts_with("True/"), "{}", on_time(&world));
    let without =
        |lost: &str| -> Vec<_> { EDIT.iter().copied().filter(|one| !one.ends_with(lost)).collect() };
    world.may("ada", &without("pods/exec"));
    world.pass(DAY);
    assert!(
        on_time(&world)
            .starts_with("False/RunRefused: the latest run, nightly-20260102020000, has not started")
            && on_time(&world).contains("\"ada\""),
        "{}",
        on_time(&world)
    );
    assert_eq!(world.names(Kind::Backup).len(), 1, "Velero was given nothing");
    world.may("ada", EDIT);
    world.pass(HOUR);
    velero_works(&mut world, "Completed");
    assert!(on_time(&world).starts_with("True/"), "{}", on_time(&world));
    assert_eq!(world.get("nas shop/nightly")["status"]["lastGoodBackup"], "nightly-20260102020000");
    // With fewer permissions, a kind is left out.
    world.may("ada", &without("secrets"));
    world.pass(DAY);
    let name = world.velero_name("nab shop/nightly-20260103020000");
    let left_out = world.get(&format!("backup {name}"))["spec"].to_string();
    assert!(left_out.contains("secrets"), "{left_out}");
}

#[test]
fn a_run_whose_location_is_not_available_is_refused_and_heals() {
    let mut world = world();
    let storage = into_own_storage(&mut world);
    let status = |world: &World| world.get("nas shop/nightly")["status"].clone();
    assert_eq!(status(&world)["lastGoodBackup"], "nightly-20260101020000");
    world.edit(&format!("bsl {storage}"), json!({"status": {"phase": "Unavailable"}}));
    world.pass(DAY);
    assert!(on_time(&world).starts_with("False/RunRefused"), "{}", on_time(&world));
    assert!(status(&world)["lastGoodBackup"].is_null(), "it cannot be restored now: {}", status(&world));
    world.edit(&format!("bsl {storage}"), json!({"status": {"phase": "Available"}}));
    velero_works(&mut world, "Completed");
    assert!(on_time(&world).starts_with("True/"), "{}", on_time(&world));
    assert_eq!(status(&world)["lastGoodBackup"], "nightly-20260102020000");
}

/// Three runs of which one is kept: each is made once, two go once each, and the newest stays.
#[test]
fn wherever_nacre_crashes_retention_deletes_what_it_shall_and_never_the_last_good_one() {
    let story = |writes: Option<usize>| {
        let mut world = world();
        world.stop_recording();
        world.apply(nas("shop/nightly", "0 2 * * *", json!({"retention": {"keepLast": 1}})));
        if let Some(writes) = writes {
            world.dies_after(writes);
        }
        let up = |world: &mut World| {
            if world.is_down() {
                world.restart();
            }
            world.settle();
        };
        for _ in 0..3 {
            world.pass(3 * HOUR);
            up(&mut world);
            velero_ends_all(&mut world, "Completed");
            up(&mut world);
            up(&mut world);
            world.velero_deletes();
            up(&mut world);
            up(&mut world);
            world.pass(21 * HOUR);
            up(&mut world);
        }
        assert_eq!(runs(&world), ["20260103020000"], "after {writes:?} writes:\n{}", world.whole_trace());
        assert_eq!(world.get("nas shop/nightly")["status"]["lastGoodBackup"], "nightly-20260103020000");
        assert!(world.made_for().values().all(|made| *made == 1), "after {writes:?}: {:?}", world.made_for());
        world.writes()
    };
    let all = story(None);
    assert!(all > 25, "{all} writes");
    for writes in 0..all {
        story(Some(writes));
    }
}
