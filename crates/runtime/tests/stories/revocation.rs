//! What an administrator takes back is gone, whatever finalizers a tenant plants: nacre's own finalizer is a help for
//! nacre, and no condition for cleaning up.

use std::time::Duration;

use api::Kind;
use planner::{Key, Plan, State};
use serde_json::json;

use super::storage::{available, bucket, world};
use crate::world::World;
use crate::world::manifests::{nab, nab_with, nar, object};

/// A finalizer that nobody serves.
const FOREIGN: &str = "example.com/never";

/// The tenant replaces nacre's finalizer and deletes the object, before nacre can look.
fn hold_and_delete(world: &mut World, request: &str) {
    world.edit(request, json!({"metadata": {"finalizers": [FOREIGN]}}));
    world.delete(request);
    world.settle();
}

/// The weakness as it was: without nacre's finalizer there is nothing to do.
fn only_with_our_finalizer(_: &State, key: &Key, plan: Plan) -> Plan {
    if key.kind == Kind::NonAdminBackupStorageLocation { Plan::done().because("not ours") } else { plan }
}

/// A location with a foreign finalizer that is being deleted; the name of its objects in Velero's namespace.
fn held_location(world: &mut World) -> String {
    let name = available(world, "shop/bucket", "mine");
    world.apply(nab_with("shop/daily", json!({"storageLocation": "bucket"})));
    world.settle();
    let velero = world.velero_name("nab shop/daily");
    world.velero_starts(&velero);
    world.velero_completes(&velero);
    world.settle();
    hold_and_delete(world, "nabsl shop/bucket");
    name
}

/// H5: the finalizer of a location is replaced with a foreign one and the location deleted, so that nacre's cleanup never runs
#[test]
fn h5_a_location_goes_although_a_foreign_finalizer_replaced_ours() {
    let mut world = world(&["shop"]);
    let name = held_location(&mut world);
    assert!(world.has("nabsl shop/bucket"), "the foreign finalizer keeps the request itself");
    assert!(!world.has(&format!("bsl {name}")) && !world.has(&format!("secret {name}")));
    assert!(!world.has(&format!("request {name}")) && !world.has("nab shop/daily"));
    // Nothing brings it back, and nothing is left to do.
    world.trace();
    world.pass(Duration::from_hours(1));
    assert_eq!(world.trace(), "");
}

/// planted: cleanup depends on nacre's finalizer
#[test]
fn h5_with_cleanup_tied_to_the_finalizer_the_location_would_stay() {
    let mut world = world(&["shop"]);
    let name = available(&mut world, "shop/bucket", "mine");
    world.sabotage(Some(only_with_our_finalizer));
    hold_and_delete(&mut world, "nabsl shop/bucket");
    assert!(world.has(&format!("bsl {name}")) && world.has(&format!("secret {name}")));
    assert_eq!(world.collect_garbage(), Vec::<String>::new(), "its owner is still there");
}

#[test]
fn h5_no_backup_starts_through_a_location_that_is_being_deleted() {
    let mut world = world(&["shop"]);
    held_location(&mut world);
    world.pass(Duration::from_secs(2));
    // A status the tenant forges, and an object of Velero's that is still there, change nothing.
    world.forge_status("nabsl shop/bucket", json!({"phase": "Created"}));
    world.apply(nab_with("shop/late", json!({"storageLocation": "bucket"})));
    world.settle();
    assert!(world.has("nab shop/late"), "it is refused, and not deleted");
    let said = world.condition("nab shop/late", "Accepted");
    assert!(said.contains("\"bucket\" is being deleted; name another"), "{said}");
    assert!(world.names(Kind::Backup).is_empty());

    // When the location is gone and there is another of the name, it starts.
    world.edit("nabsl shop/bucket", json!({"metadata": {"finalizers": null}}));
    available(&mut world, "shop/bucket", "mine");
    assert_eq!(world.get("nab shop/late")["status"]["phase"], "Created");
}

#[test]
fn h5_a_rejection_holds_without_the_secret_and_without_the_policy() {
    for obstacle in ["secret", "policy"] {
        let mut world = world(&["shop"]);
        let name = available(&mut world, "shop/bucket", "mine");
        match obstacle {
            "secret" => world.delete("secret shop/keys"),
            _ => world.policy_cannot_be_read(),
        }
        world.settle();
        assert!(world.has(&format!("bsl {name}")), "{obstacle}: nobody has decided anything");
        world.edit(&format!("request {name}"), json!({"spec": {"approvalDecision": "reject"}}));
        world.settle();
        assert!(!world.has(&format!("bsl {name}")) && !world.has(&format!("secret {name}")), "{obstacle}");
    }
}

#[test]
fn h5_a_location_whose_finalizers_were_removed_leaves_nothing() {
    let mut world = world(&["shop"]);
    let name = available(&mut world, "shop/bucket", "mine");
    world.edit("nabsl shop/bucket", json!({"metadata": {"finalizers": null}}));
    world.delete("nabsl shop/bucket");
    world.settle();
    world.collect_garbage();
    assert!(!world.has(&format!("bsl {name}")) && !world.has(&format!("secret {name}")));
    assert!(!world.has(&format!("request {name}")));
    // The next one of this name has to be asked for again.
    world.policy(|policy| policy.storage_locations.require_approval = true);
    world.apply(bucket("shop/bucket", "mine"));
    world.settle();
    assert!(world.names(Kind::BackupStorageLocation).iter().all(|name| !name.contains("bucket")));
}

#[test]
fn h5_backups_restores_and_downloads_go_the_same_way() {
    let mut world = World::with(&["shop"]).backed_up();
    world.apply(nar("shop/again", "daily"));
    let target = json!({"spec": {"target": {"kind": "BackupLog", "name": "daily"}}});
    world.policy(|policy| policy.downloads.platform_storage = planner::policy::Downloads::All);
    world.apply(object(Kind::NonAdminDownloadRequest, "shop/log", target));
    world.apply(nab("shop/next"));
    world.settle();
    assert_eq!(world.names(Kind::Restore).len() + world.names(Kind::DownloadRequest).len(), 2);
    assert_eq!(world.names(Kind::Backup).len(), 2);
    for request in ["nadr shop/log", "nar shop/again", "nab shop/next", "nab shop/daily"] {
        hold_and_delete(&mut world, request);
        assert!(world.has(request), "{request}");
    }
    assert!(world.names(Kind::Restore).is_empty() && world.names(Kind::DownloadRequest).is_empty());
    assert!(world.names(Kind::Backup).is_empty());
    // A restore from a backup that is being deleted is refused.
    world.apply(nar("shop/late", "daily"));
    world.settle();
    assert!(world.condition("nar shop/late", "Accepted").starts_with("False"));
    assert!(world.names(Kind::Restore).is_empty());
}

/// C12: the credential is replaced after approval, with one that runs a program
#[test]
fn c12_a_credential_that_turns_bad_after_approval_takes_the_location_away() {
    let mut world = world(&["shop"]);
    world.policy(|policy| policy.storage_locations.require_approval = true);
    world.apply(bucket("shop/bucket", "mine"));
    world.settle();
    let name = world.velero_name("nabsl shop/bucket");
    world.edit(&format!("request {name}"), json!({"spec": {"approvalDecision": "approve"}}));
    world.settle();
    assert!(world.has(&format!("bsl {name}")));
    // [default] credential_process = /bin/sh -c id
    let hostile = "W2RlZmF1bHRdCmNyZWRlbnRpYWxfcHJvY2VzcyA9IC9iaW4vc2ggLWMgaWQK";
    world.apply(object(Kind::Secret, "shop/keys", json!({"data": {"cloud": hostile}})));
    world.pass(Duration::from_mins(10));
    world.settle();
    assert!(!world.has(&format!("bsl {name}")) && !world.has(&format!("secret {name}")));
    let said = world.condition("nabsl shop/bucket", "Accepted");
    assert!(said.starts_with("False"), "{said}");
    // A key of the same kind is a rotation: the approval still holds.
    world.apply(object(Kind::Secret, "shop/keys", json!({"data": {"cloud": super::storage::KEYS}})));
    world.pass(Duration::from_mins(10));
    world.settle();
    assert!(world.has(&format!("bsl {name}")));
}

/// F7: nacre is down for a day, or the clock jumps: everything that waits starts once, and nothing is deleted for its age
#[test]
fn f7_after_a_day_without_nacre_everything_starts_once() {
    let mut world = World::with(&["shop"]).backed_up();
    // Whoever is heard of first has the room: under faults that may be another.
    world.stop_recording();
    world.policy(|policy| policy.backup.max_active_per_namespace = Some(2));
    for number in 0..20 {
        world.apply(nab(&format!("shop/b{number:02}")));
    }
    world.jump(Duration::from_hours(24));
    world.restart();
    world.settle();
    assert_eq!(world.names(Kind::Backup).len(), 3, "the finished one, and as many as may run");
    assert_eq!(world.names(Kind::NonAdminBackup).len(), 21);
    let writes = world.writes();
    world.jump(Duration::from_hours(24));
    world.restart();
    world.settle();
    assert_eq!(
        (world.names(Kind::Backup).len(), world.writes()),
        (3, writes),
        "a second time changes nothing"
    );
}

/// planted: neither limit nor queue
#[test]
fn f7_with_neither_limit_nor_queue_everything_would_start_at_once() {
    let started = |limited: bool| {
        let mut world = World::with(&["shop"]);
        world.stop_recording();
        world.hand_over_at_once();
        if limited {
            world.policy(|policy| policy.backup.max_active_per_namespace = Some(2));
        }
        for number in 0..20 {
            world.apply(nab(&format!("shop/b{number:02}")));
        }
        world.jump(Duration::from_hours(24));
        world.restart();
        world.settle();
        world.names(Kind::Backup).len()
    };
    assert_eq!((started(true), started(false)), (2, 20), "the second is the planted weakness");
}
