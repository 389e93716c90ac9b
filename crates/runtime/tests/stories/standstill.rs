//! Velero's own queue of backups stands still: none begins, though no worker is busy.

use std::time::Duration;

use api::Kind;
use serde_json::{Value, json};

use crate::world::World;
use crate::world::manifests::{nab, object, storage};

const REFUSED: &str = "shop-bad-<1>";
const QUEUED: &str = "office-good-<2>";

/// Velero refused one of shop's, and has had one of office's in its queue since.
fn still() -> World {
    let mut world = World::with(&["shop", "office"]);
    world.apply(storage("place", json!({})));
    for request in ["shop/bad", "office/good"] {
        world.apply(nab(request));
        world.settle();
        world.pass(Duration::from_secs(1));
    }
    world.velero_says(REFUSED, json!({"phase": "Queued"}));
    world.velero_says(REFUSED, json!({"phase": "ReadyToStart"}));
    world.velero_says(QUEUED, json!({"phase": "Queued"}));
    refuses(&mut world);
    world
}

fn refuses(world: &mut World) {
    world.velero_fails_validation(REFUSED, "its storage is not available");
    world.settle();
}

/// Time passes while Velero runs.
fn runs(world: &mut World, time: Duration) {
    world.pass(time);
    world.velero_looks_at("place");
}

fn phase(world: &World) -> Value {
    world.get(&format!("backup {REFUSED}"))["status"]["phase"].clone()
}

/// X7: own bucket: a backup that Velero refuses at the moment it begins with it, so that Velero begins with nobody's any more
#[test]
fn x7_velero_is_made_to_look_again_at_what_it_refused_when_its_queue_stands_still() {
    let mut world = still();
    runs(&mut world, Duration::from_secs(119));
    assert_eq!(world.restart_queue(), None, "Velero itself looks once a minute");
    world.pass(Duration::from_secs(1));
    assert_eq!(world.restart_queue().as_deref(), Some(REFUSED));
    assert_eq!(phase(&world), "ReadyToStart");
    assert_eq!(world.restart_queue(), None, "it is Velero's turn");

    // Velero refuses it again, and that was all that was needed.
    refuses(&mut world);
    world.velero_says(QUEUED, json!({"phase": "ReadyToStart"}));
    world.velero_starts(QUEUED);
    runs(&mut world, Duration::from_hours(1));
    assert_eq!(world.restart_queue(), None, "a worker is busy");
    world.velero_completes(QUEUED);
    world.settle();
    assert_eq!(world.get("nab office/good")["status"]["veleroBackup"]["status"]["phase"], "Completed");
    runs(&mut world, Duration::from_hours(1));
    assert_eq!(world.restart_queue(), None, "nothing is in Velero's queue");
}

/// X7
#[test]
fn x7_a_refused_backup_that_was_deleted_is_stood_in_for() {
    let mut world = still();
    world.delete("nab shop/bad");
    world.settle();
    assert!(!world.has(&format!("backup {REFUSED}")));
    runs(&mut world, Duration::from_mins(2));
    assert_eq!(world.restart_queue().as_deref(), Some(REFUSED));
    assert_eq!(phase(&world), "FailedValidation", "Velero would refuse it, and never begin with it");
    assert_eq!(world.restart_queue().as_deref(), Some(REFUSED));
    assert_eq!(phase(&world), "ReadyToStart");
    assert_eq!(world.restart_queue(), None, "it is Velero's turn");

    refuses(&mut world);
    assert_eq!(world.restart_queue().as_deref(), Some(REFUSED));
    assert!(!world.has(&format!("backup {REFUSED}")), "it is of no use any more");
    runs(&mut world, Duration::from_hours(1));
    assert_eq!(world.restart_queue(), None, "it is tried once");
}

/// X7
#[test]
fn x7_a_backup_that_is_deleted_when_velero_is_about_to_begin_is_stood_in_for() {
    let mut world = still();
    world.velero_says(QUEUED, json!({"phase": "ReadyToStart"}));
    world.delete("nab office/good");
    world.apply(nab("shop/next"));
    world.settle();
    world.velero_says("shop-next-<3>", json!({"phase": "Queued"}));
    runs(&mut world, Duration::from_mins(2));
    assert_eq!(world.restart_queue().as_deref(), Some(REFUSED), "those that are there come first");
    refuses(&mut world);
    runs(&mut world, Duration::from_mins(2));
    assert_eq!(world.restart_queue().as_deref(), Some(QUEUED));
    assert_eq!(world.get(&format!("backup {QUEUED}"))["status"]["phase"], "FailedValidation");
}

/// What helps a Velero that runs would harm one that does not: it overlooks what is ready when it starts.
#[test]
fn nothing_is_done_while_velero_is_down() {
    let mut world = still();
    world.velero_looks_at("place");
    world.pass(Duration::from_hours(1));
    assert_eq!(world.restart_queue(), None);
    world.velero_looks_at("place");
    assert_eq!(world.restart_queue().as_deref(), Some(REFUSED));
}

#[test]
fn what_velero_overlooked_is_written_to_until_velero_begins_with_it() {
    let mut world = still();
    world.velero_says(QUEUED, json!({"phase": "ReadyToStart"}));
    world.settle();
    runs(&mut world, Duration::from_secs(119));
    assert_eq!(world.restart_queue(), None);
    for _ in 0..2 {
        runs(&mut world, Duration::from_mins(2));
        assert_eq!(world.restart_queue().as_deref(), Some(QUEUED));
        assert_eq!(world.restart_queue(), None, "it is Velero's turn");
    }
    world.velero_starts(QUEUED);
    runs(&mut world, Duration::from_hours(1));
    assert_eq!(world.restart_queue(), None);
}

#[test]
fn each_refused_backup_is_tried_once_newest_first_and_those_of_administrators_never() {
    let mut world = still();
    world.apply(object(
        Kind::Backup,
        "velero/of-the-administrators",
        json!({"status": {"phase": "FailedValidation", "validationErrors": ["its storage is not available"]}}),
    ));
    runs(&mut world, Duration::from_mins(2));
    assert_eq!(world.restart_queue().as_deref(), Some(REFUSED));
    refuses(&mut world);
    runs(&mut world, Duration::from_hours(1));
    assert_eq!(world.restart_queue(), None, "it did not help");

    // When Velero's queue has moved and stands still again, nacre retries it.
    world.velero_says(QUEUED, json!({"phase": "ReadyToStart"}));
    world.velero_says(QUEUED, json!({"phase": "Queued"}));
    runs(&mut world, Duration::from_secs(119));
    assert_eq!(world.restart_queue(), None);
    runs(&mut world, Duration::from_secs(1));
    assert_eq!(world.restart_queue().as_deref(), Some(REFUSED));
}

/// The alert is about that time: what nacre tries does not make it shorter.
#[test]
fn how_long_velero_is_idle_is_counted_on_while_nacre_tries() {
    let mut world = still();
    let began = world.idle_since();
    assert!(began.is_some());
    runs(&mut world, Duration::from_mins(2));
    assert_eq!(world.restart_queue().as_deref(), Some(REFUSED));
    assert_eq!(world.idle_since(), began);
    refuses(&mut world);
    assert_eq!(world.idle_since(), began);
    world.velero_says(QUEUED, json!({"phase": "ReadyToStart"}));
    world.velero_starts(QUEUED);
    assert_eq!(world.idle_since(), None);
}

/// X7
#[test]
fn x7_a_backup_without_an_error_is_not_made_ready() {
    let mut world = still();
    world.velero_says(REFUSED, json!({"validationErrors": null}));
    world.settle();
    runs(&mut world, Duration::from_hours(1));
    assert_eq!(world.restart_queue(), None, "Velero would begin with it");
}

const SECOND: Duration = Duration::from_secs(1);

/// Three in Velero's queue, in this order, and Velero is at work on another.
fn three_in_the_queue() -> World {
    let mut world = World::with(&["shop", "office"]);
    world.policy(|policy| policy.queue.in_flight = Some(0));
    world.apply(storage("place", json!({})));
    for (number, request) in ["shop/a", "office/b", "shop/c", "office/d"].into_iter().enumerate() {
        world.apply(nab(request));
        world.settle();
        let velero = format!("{}-<{}>", request.replace('/', "-"), number + 1);
        world.velero_says(&velero, json!({"phase": "Queued"}));
        world.pass(SECOND);
    }
    world.velero_says("shop-a-<1>", json!({"phase": "ReadyToStart"}));
    world.velero_starts("shop-a-<1>");
    world
}

/// Seen with Velero 1.18.3: with backups in its queue it began one a minute.
#[test]
fn velero_does_not_pause_while_backups_are_in_its_queue() {
    let mut world = three_in_the_queue();
    world.pass(Duration::from_hours(1));
    assert_eq!(world.end_pause(), None, "a worker is busy");
    world.velero_completes("shop-a-<1>");
    world.settle();
    assert_eq!(world.end_pause(), None, "Velero looks at its queue by itself");
    world.pass(SECOND);
    assert_eq!(world.end_pause().as_deref(), Some("office-d-<4>"), "the last one: nobody is passed");
    assert_eq!(world.get("backup office-d-<4>")["status"]["phase"], "New");
    world.pass(Duration::from_mins(1));
    assert_eq!(world.end_pause(), None, "once for each pause");

    // Velero queues it at the end again, and begins the first.
    world.velero_says("office-d-<4>", json!({"phase": "Queued"}));
    world.velero_says("office-b-<2>", json!({"phase": "ReadyToStart"}));
    world.pass(SECOND);
    assert_eq!(world.end_pause(), None, "Velero is about to begin");
    world.velero_starts("office-b-<2>");
    world.velero_completes("office-b-<2>");
    world.settle();
    world.pass(SECOND);
    assert_eq!(world.end_pause().as_deref(), Some("office-d-<4>"), "the next pause");
}

/// Where it does not help, it is done once, and Velero is known to stand still all the same.
#[test]
fn a_pause_that_goes_on_is_a_standstill() {
    let mut world = still();
    world.pass(SECOND);
    assert_eq!(world.end_pause().as_deref(), Some(QUEUED));
    for _ in 0..3 {
        runs(&mut world, SECOND);
        assert_eq!(world.end_pause(), None, "it is yet to be queued again");
    }
    world.velero_says(QUEUED, json!({"phase": "Queued"}));
    for _ in 0..3 {
        runs(&mut world, SECOND);
        assert_eq!(world.end_pause(), None, "once for each pause");
    }
    runs(&mut world, Duration::from_mins(2));
    assert_eq!(world.restart_queue().as_deref(), Some(REFUSED));
}

#[test]
fn an_administrators_backups_in_veleros_queue_are_left_alone() {
    let mut world = World::with(&["shop"]);
    world.apply(storage("place", json!({})));
    world.apply(object(Kind::Backup, "velero/nightly", json!({"spec": {}, "status": {"phase": "Queued"}})));
    world.settle();
    world.pass(Duration::from_hours(1));
    assert_eq!(world.end_pause(), None);
}
