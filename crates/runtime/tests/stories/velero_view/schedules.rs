//! Schedules with Velero's command line: made, shown, paused, resumed and deleted.

use std::time::Duration;

use api::{Kind, labels};
use serde_json::{Value, json};

use super::{copies, label, world};
use crate::world::World;
use crate::world::manifests::object;
use crate::world::people::asked_by;

const HOUR: Duration = Duration::from_hours(1);

/// What `velero schedule create` sends.
fn asked(place: &str, schedule: &str, more: Value) -> Value {
    let template = json!({"csiSnapshotTimeout": "0s", "hooks": {}, "includedNamespaces": ["*"],
        "itemOperationTimeout": "0s", "metadata": {}, "ttl": "48h0m0s"});
    let mut spec = json!({"schedule": schedule, "template": template, "useOwnerReferencesInBackup": false});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    object(Kind::Schedule, place, json!({"spec": spec, "status": {}}))
}

/// What Velero's command line writes when it pauses or resumes a schedule.
fn set_paused(world: &mut World, paused: bool) {
    world.edit("Schedule shop/nightly", json!({"spec": {"paused": paused, "skipImmediately": null}}));
    world.settle();
}

fn paused(world: &World) -> (Value, Value) {
    let at = |object: &str| world.get(object)["spec"]["paused"].clone();
    (at("nas shop/nightly"), at("Schedule shop/nightly"))
}

fn made() -> World {
    let mut world = world();
    world.policy(|policy| policy.schedules.spread = "0".into());
    world.apply(asked_by("ada", asked("shop/nightly", "0 2 * * *", json!({"paused": null}))));
    world.settle();
    world
}

#[test]
fn a_schedule_made_with_velero_is_a_request_and_shows_how_it_goes() {
    let mut world = made();
    let made = world.get("nas shop/nightly");
    assert_eq!(
        made["spec"],
        json!({"schedule": "0 2 * * *", "template": {"backupSpec": {"ttl": "48h0m0s"}}})
    );
    assert!(made["metadata"]["annotations"][labels::REQUESTER].as_str().unwrap().contains("ada"));
    assert_eq!(world.get("Schedule shop/nightly")["status"]["phase"], "Enabled");
    world.pass(2 * HOUR);
    world.settle();
    assert_eq!(world.names(Kind::NonAdminBackup), ["shop/nightly-20260101020000"]);
    assert_eq!(world.get("Schedule shop/nightly")["status"]["lastBackup"], "2026-01-01T02:00:00Z");
    world.trace();
    world.pass(HOUR);
    assert_eq!(world.trace(), "", "settled");
}

#[test]
fn a_schedule_is_paused_and_resumed_by_its_copy() {
    let mut world = made();
    assert_eq!(paused(&world), (json!(null), json!(false)));
    set_paused(&mut world, true);
    assert_eq!(paused(&world), (json!(true), json!(true)));
    world.pass(24 * HOUR);
    assert!(world.names(Kind::NonAdminBackup).is_empty());
    set_paused(&mut world, false);
    assert_eq!(paused(&world), (json!(false), json!(false)));
    // By the schedule itself: the copy follows.
    world.edit("nas shop/nightly", json!({"spec": {"paused": true}}));
    world.settle();
    assert_eq!(paused(&world), (json!(true), json!(true)));
    // Nothing else of a copy is read.
    world.edit("Schedule shop/nightly", json!({"spec": {"schedule": "* * * * *"}}));
    world.settle();
    assert_eq!(world.get("Schedule shop/nightly")["spec"]["schedule"], "0 2 * * *");
    assert_eq!(world.get("nas shop/nightly")["spec"]["schedule"], "0 2 * * *");
}

#[test]
fn deleting_the_copy_deletes_the_schedule_and_keeps_its_backups() {
    let mut world = made();
    world.pass(2 * HOUR);
    world.settle();
    world.delete("Schedule shop/nightly");
    world.settle();
    assert!(!world.has("nas shop/nightly") && !world.has("Schedule shop/nightly"));
    assert_eq!(world.names(Kind::NonAdminBackup).len(), 1);
}

#[test]
fn a_schedule_of_nacres_own_has_a_copy_that_goes_with_it_or_with_the_view() {
    let mut world = world();
    let spec = json!({"schedule": "0 2 * * *", "template": {"backupSpec": {}}});
    world.apply(object(Kind::NonAdminSchedule, "shop/nightly", json!({ "spec": spec })));
    world.settle();
    assert_eq!(copies(&world), ["Schedule shop/nightly"]);
    label(&mut world, json!(null));
    world.settle();
    assert!(copies(&world).is_empty());
    assert!(world.has("nas shop/nightly"), "the view goes, and not the schedule");
    label(&mut world, json!("true"));
    world.settle();
    assert_eq!(copies(&world), ["Schedule shop/nightly"]);
    world.delete("nas shop/nightly");
    world.settle();
    assert!(copies(&world).is_empty());
}

#[test]
fn what_is_refused_is_said_in_veleros_way() {
    for (name, schedule, more, why) in [
        ("cron", "0 25 * * *", json!({}), "spec.schedule: \"25\" is not a hour"),
        (
            "owner",
            "0 2 * * *",
            json!({"useOwnerReferencesInBackup": true}),
            "spec.useOwnerReferencesInBackup: backups outlive their schedule here",
        ),
        (
            "other",
            "0 2 * * *",
            json!({"template": {"includedNamespaces": ["rival"]}}),
            "spec.template.includedNamespaces: only \"shop\"",
        ),
        ("odd", "0 2 * * *", json!({"jitter": 3}), "spec.jitter: is not known here"),
    ] {
        let mut world = world();
        world.apply(asked(&format!("shop/{name}"), schedule, more));
        world.settle();
        let status = world.get(&format!("Schedule shop/{name}"))["status"].clone();
        assert_eq!(status["phase"], "FailedValidation", "{name}: {status}");
        let message = status["validationErrors"][0].as_str().unwrap_or_default();
        assert!(message.starts_with(why), "{name}: {message}");
        assert!(world.names(Kind::NonAdminSchedule).is_empty());
    }
}
