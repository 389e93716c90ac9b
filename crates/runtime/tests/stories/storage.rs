//! Tenants' own storage: asked for, used, revoked and taken away.

use std::time::Duration;

use api::Kind;
use insta::assert_snapshot;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::world::manifests::{nab, nab_with, nar, object};
use crate::world::{World, long};

pub(crate) const KEYS: &str =
    "W2RlZmF1bHRdCmF3c19hY2Nlc3Nfa2V5X2lkPWEKYXdzX3NlY3JldF9hY2Nlc3Nfa2V5PWh1bnRlcjIK";

/// Keys of somebody else.
pub(crate) const OTHER_KEYS: &str =
    "W2RlZmF1bHRdCmF3c19hY2Nlc3Nfa2V5X2lkPWIKYXdzX3NlY3JldF9hY2Nlc3Nfa2V5PWh1bnRlcjMK";

/// A cluster where nacre looks after storage, and everybody has keys.
pub(crate) fn world(namespaces: &[&str]) -> World {
    let mut world = World::with(namespaces);
    world.mind_storage();
    for name in namespaces {
        world.apply(object(Kind::Secret, &format!("{name}/keys"), json!({"data": {"cloud": KEYS}})));
    }
    world
}

pub(crate) fn bucket(place: &str, bucket: &str) -> Value {
    let spec = json!({"provider": "aws", "objectStorage": {"bucket": bucket}, "config": {"region": "eu-west-1"},
        "credential": {"name": "keys", "key": "cloud"}});
    object(Kind::NonAdminBackupStorageLocation, place, json!({"spec": {"backupStorageLocationSpec": spec}}))
}

/// A location that Velero can reach; the name Velero has it under.
pub(crate) fn available(world: &mut World, place: &str, name: &str) -> String {
    world.apply(bucket(place, name));
    world.settle();
    let storage = world.velero_name(&format!("nabsl {place}"));
    world.edit(&format!("bsl {storage}"), json!({"status": {"phase": "Available"}}));
    world.settle();
    storage
}

#[test]
fn a_location_is_asked_for_used_and_taken_away_with_its_backups() {
    let mut world = world(&["shop"]);
    world.policy(|policy| policy.storage_locations.require_approval = true);
    world.apply(bucket("shop/bucket", "mine"));
    world.settle();
    let name = world.velero_name("nabsl shop/bucket");
    assert_eq!(world.get("nabsl shop/bucket")["status"]["phase"], "New");
    assert!(!world.has(&format!("bsl {name}")));
    world.edit(&format!("request {name}"), json!({"spec": {"approvalDecision": "approve"}}));
    world.settle();
    world.edit(&format!("bsl {name}"), json!({"status": {"phase": "Available"}}));
    world.settle();
    assert_eq!(
        world.get("nabsl shop/bucket")["status"]["veleroBackupStorageLocation"]["status"]["phase"],
        "Available"
    );

    // One backup in it, one in the cluster's own storage.
    world.apply(nab_with("shop/mine", json!({"storageLocation": "bucket"})));
    world.apply(nab("shop/theirs"));
    world.settle();
    let velero = world.velero_name("nab shop/mine");
    assert_eq!(world.get(&format!("backup {velero}"))["spec"]["storageLocation"], json!(name));
    world.velero_starts(&velero);
    world.velero_completes(&velero);
    world.settle();

    world.delete("nabsl shop/bucket");
    world.settle();
    assert!(!world.has("nabsl shop/bucket") && !world.has("nab shop/mine") && world.has("nab shop/theirs"));
    assert!(!world.has(&format!("bsl {name}")) && !world.has(&format!("secret {name}")));
    assert!(!world.has(&format!("request {name}")) && world.has("secret shop/keys"));
}

#[test]
fn a_revoked_location_holds_backups_back_until_it_is_approved_again() {
    let mut world = world(&["shop"]);
    let name = available(&mut world, "shop/bucket", "mine");
    world.edit(&format!("request {name}"), json!({"spec": {"approvalDecision": "reject"}}));
    world.settle();
    world.apply(nab_with("shop/daily", json!({"storageLocation": "bucket"})));
    world.settle();
    assert!(world.condition("nab shop/daily", "Accepted").contains("is not ready; its conditions say why"));
    world.edit(&format!("request {name}"), json!({"spec": {"approvalDecision": "approve"}}));
    world.settle();
    world.edit(&format!("bsl {name}"), json!({"status": {"phase": "Available"}}));
    world.settle();
    assert_eq!(world.get("nab shop/daily")["status"]["phase"], "Created");
}

#[test]
fn a_restore_from_a_location_approved_again_waits_until_velero_can_use_it() {
    let mut world = world(&["shop"]);
    world.policy(|policy| policy.storage_locations.require_approval = true);
    world.apply(bucket("shop/bucket", "mine"));
    world.settle();
    let name = world.velero_name("nabsl shop/bucket");
    let decide = |world: &mut World, decision: &str| {
        world.edit(&format!("request {name}"), json!({"spec": {"approvalDecision": decision}}));
        world.settle();
    };
    decide(&mut world, "approve");
    world.edit(&format!("bsl {name}"), json!({"status": {"phase": "Available"}}));
    world.apply(nab_with("shop/daily", json!({"storageLocation": "bucket"})));
    world.settle();
    let velero = world.velero_name("nab shop/daily");
    world.velero_starts(&velero);
    world.velero_completes(&velero);
    decide(&mut world, "pending");
    world.apply(nar("shop/again", "daily"));
    world.settle();
    let mut said = world.condition("nar shop/again", "Accepted") + "\n";

    // Velero would fail the restore for good until it has validated the location.
    decide(&mut world, "approve");
    assert!(world.has(&format!("bsl {name}")) && world.names(Kind::Restore).is_empty());
    said += &(world.condition("nar shop/again", "Accepted") + "\n");
    world.apply(nab_with("shop/next", json!({"storageLocation": "bucket"})));
    world.settle();
    said += &(world.condition("nab shop/next", "Accepted") + "\n");
    world.edit(&format!("bsl {name}"), json!({"status": {"phase": "Unavailable"}}));
    world.settle();
    assert!(world.names(Kind::Restore).is_empty());
    said += &world.condition("nar shop/again", "Accepted");
    assert_snapshot!(said, @r#"
    False/InvalidRestoreSpec: spec.restoreSpec.backupName: the storage location of NonAdminBackup "daily" is not there; the restore starts when it is
    False/InvalidRestoreSpec: spec.restoreSpec.backupName: Velero has not reported yet that the storage of NonAdminBackup "daily" is available; the restore starts when it has
    False/InvalidBackupSpec: spec.backupSpec.storageLocation: Velero has not reported yet that NonAdminBackupStorageLocation "bucket" is available; the backup starts when it has
    False/InvalidRestoreSpec: spec.restoreSpec.backupName: Velero cannot reach the storage of NonAdminBackup "daily"; the restore starts when it can
    "#);

    world.edit(&format!("bsl {name}"), json!({"status": {"phase": "Available"}}));
    world.settle();
    assert_eq!(world.get("nar shop/again")["status"]["phase"], "Created");
    assert_eq!(world.get("nab shop/next")["status"]["phase"], "Created");
}

#[test]
fn what_the_policy_approves_is_marked_until_somebody_decides_by_hand() {
    let mut world = world(&["shop"]);
    let mark = |world: &World, name: &str| {
        world.get(&format!("request {name}"))["metadata"]["annotations"]["nacre.dev/approved-by"].clone()
    };
    // Asked for where nobody is asked, and approved when nobody is asked any more.
    let name = available(&mut world, "shop/open", "one");
    assert_eq!(mark(&world, &name), "policy");
    world.policy(|policy| policy.storage_locations.require_approval = true);
    world.apply(bucket("shop/closed", "two"));
    world.apply(bucket("shop/asked", "three"));
    world.settle();
    let closed = world.velero_name("nabsl shop/closed");
    let asked = world.velero_name("nabsl shop/asked");
    world.edit(&format!("request {asked}"), json!({"spec": {"approvalDecision": "approve"}}));
    world.settle();
    assert_eq!((mark(&world, &closed), mark(&world, &asked)), (Value::Null, Value::Null));
    assert_eq!(
        world.get("nabsl shop/open")["status"]["phase"],
        "Created",
        "what was approved stays approved"
    );
    world.policy(|policy| policy.storage_locations.require_approval = false);
    world.settle();
    assert_eq!((mark(&world, &closed), mark(&world, &asked)), (json!("policy"), Value::Null));

    // Taken back and approved by hand.
    world.policy(|policy| policy.storage_locations.require_approval = true);
    for decision in ["pending", "approve"] {
        world.edit(&format!("request {closed}"), json!({"spec": {"approvalDecision": decision}}));
        world.settle();
        assert_eq!(mark(&world, &closed), Value::Null, "{decision}");
    }
}

#[test]
fn an_approval_is_for_what_was_written_down_when_it_was_given() {
    let mut world = world(&["shop"]);
    world.policy(|policy| policy.storage_locations.require_approval = true);
    world.apply(bucket("shop/bucket", "mine"));
    world.settle();
    let name = world.velero_name("nabsl shop/bucket");
    let request = format!("request {name}");
    let approve = json!({"spec": {"approvalDecision": "approve"}});
    world.edit(&request, approve.clone());
    world.settle();
    assert!(world.has(&format!("bsl {name}")));
    let other = json!({"spec": {"backupStorageLocationSpec": {"objectStorage": {"bucket": "other"}}}});
    world.edit("nabsl shop/bucket", other);
    world.settle();
    assert!(!world.has(&format!("bsl {name}")));

    // Copied without its status, as `relocate` once did. The decision is not about the other bucket.
    world.forge_status(&request, json!({"nonAdminBackupStorageLocation": null, "phase": null}));
    world.settle();
    assert!(!world.has(&format!("bsl {name}")) && !world.has(&format!("secret {name}")));
    assert_eq!(world.get(&request)["spec"]["approvalDecision"], "pending");
    let asked = world.get(&request)["status"]["nonAdminBackupStorageLocation"]["requestedSpec"].clone();
    assert_eq!(asked["objectStorage"]["bucket"], "other", "an administrator sees what it would be");
    assert_eq!(world.get("nabsl shop/bucket")["status"]["phase"], "New");
    world.edit(&request, approve);
    world.settle();
    assert!(world.has(&format!("bsl {name}")));
}

/// Asked for, approved, used, changed, put back, and gone again.
fn a_life(world: &mut World, step: &mut dyn FnMut(&mut World)) {
    let name = api::velero_name("shop", "bucket", &long("<l1>"));
    let change =
        |bucket: &str| json!({"spec": {"backupStorageLocationSpec": {"objectStorage": {"bucket": bucket}}}});
    world.apply(bucket("shop/bucket", "mine"));
    step(world);
    world.edit(&format!("request {name}"), json!({"spec": {"approvalDecision": "approve"}}));
    step(world);
    world.edit(&format!("bsl {name}"), json!({"status": {"phase": "Available"}}));
    world.apply(nab_with("shop/daily", json!({"storageLocation": "bucket"})));
    step(world);
    world.edit("secret shop/keys", json!({"data": {"cloud": KEYS[..40]}}));
    step(world);
    world.edit("secret shop/keys", json!({"data": {"cloud": KEYS}}));
    step(world);
    world.edit("nabsl shop/bucket", change("other"));
    step(world);
    world.edit("nabsl shop/bucket", change("mine"));
    step(world);
}

#[test]
fn a_crash_before_any_write_changes_nothing_about_the_end() {
    let start = || {
        let mut world = world(&["shop"]);
        world.policy(|policy| policy.storage_locations.require_approval = true);
        world.settle();
        world
    };
    let end = |world: &World| -> Vec<(String, Value)> {
        let marks = ["resourceVersion", "generation"];
        let all = world.everything().map(|(key, object)| {
            let mut object = object.clone();
            for mark in marks {
                object["metadata"].as_object_mut().unwrap().remove(mark);
            }
            // Which of two writes reported it does not matter.
            if let Some(conditions) = object["status"]["conditions"].as_array_mut() {
                conditions.retain(|condition| {
                    condition["type"] != "SecretSynced" && condition["type"] != "BackupStorageLocationSynced"
                });
            }
            (format!("{key:?}"), object)
        });
        all.collect()
    };
    let mut calm = start();
    let before = calm.writes();
    a_life(&mut calm, &mut World::settle);
    let writes = calm.writes() - before;
    assert!(writes > 20, "{writes}");
    for crash in 0..writes {
        let mut world = start();
        world.dies_after(before + crash);
        let mut crashes = 0;
        a_life(&mut world, &mut |world: &mut World| {
            world.rest();
            if world.is_down() {
                crashes += 1;
                world.restart();
            }
            world.settle();
        });
        assert_eq!(crashes, 1, "before write {crash}");
        assert_eq!(end(&world), end(&calm), "before write {crash}");
        world.delete("nabsl shop/bucket");
        world.settle();
        let left = [
            Kind::Secret,
            Kind::BackupStorageLocation,
            Kind::NonAdminBackupStorageLocationRequest,
            Kind::Backup,
        ];
        let left: Vec<_> = left.into_iter().flat_map(|kind| world.names(kind)).collect();
        assert_eq!(left, ["shop/keys", "velero/default"], "before write {crash}");
    }
}

#[test]
fn with_a_location_go_the_requests_that_wait_for_it_and_no_others() {
    let mut world = world(&["shop"]);
    available(&mut world, "shop/bucket", "mine");
    available(&mut world, "shop/other", "theirs");
    // Whoever is heard of first has the room: under faults that may be another.
    world.stop_recording();
    world.policy(|policy| policy.backup.max_active_per_namespace = Some(1));
    for (name, location) in [("a-first", "other"), ("b-here", "bucket"), ("c-there", "other")] {
        world.apply(nab_with(&format!("shop/{name}"), json!({"storageLocation": location})));
    }
    world.apply(nab("shop/d-anywhere"));
    world.settle();
    world.delete("nabsl shop/bucket");
    world.settle();
    assert_eq!(world.names(Kind::NonAdminBackup), ["shop/a-first", "shop/c-there", "shop/d-anywhere"]);
}

/// Each change of a location gets one Event: Normal for waiting, Warning for a refusal.
#[test]
fn the_tenant_is_told_of_a_location_in_events() {
    let mut world = world(&["shop"]);
    world.policy(|policy| policy.storage_locations.require_approval = true);
    world.apply(bucket("shop/bucket", "mine"));
    world.settle();
    let name = world.velero_name("nabsl shop/bucket");
    for change in [
        ("request", json!({"spec": {"approvalDecision": "approve"}})),
        ("bsl", json!({"status": {"phase": "Available"}})),
        ("request", json!({"spec": {"approvalDecision": "reject"}})),
    ] {
        world.edit(&format!("{} {name}", change.0), change.1);
        world.settle();
    }
    world.apply(bucket("shop/odd", "-"));
    world.settle();
    world.edit("nabsl shop/odd", json!({"spec": {"backupStorageLocationSpec": {"provider": "odd"}}}));
    world.settle();
    let trace = world.whole_trace();
    let events: Vec<_> = trace.lines().filter(|line| line.starts_with("event")).collect();
    assert_snapshot!(events.join("\n"), @r"
    event Normal BslSpecApprovalPending: an administrator has to approve the location
    event Normal BslSpecApproved: the location may be used
    event Normal BackupStorageLocationCreated: Velero has the location
    event Warning BslSpecRejected: an administrator has rejected the location
    event Warning BslSpecValidation: spec.backupStorageLocationSpec.objectStorage.bucket: must be the plain name of a bucket: 3 characters or more, of letters, digits, dots, dashes and underscores
    event Warning BslSpecValidation: spec.backupStorageLocationSpec.provider: must be one of aws, azure, gcp
    ");
}

#[test]
fn a_refused_location_leaves_its_place_under_the_limit_to_others() {
    let mut world = world(&["shop"]);
    world.policy(|policy| policy.storage_locations.max_per_namespace = Some(1));
    world.apply(bucket("shop/a-odd", "-"));
    world.settle();
    world.apply(bucket("shop/b-sound", "mine"));
    world.settle();
    assert!(world.condition("nabsl shop/a-odd", "Accepted").contains("bucket"));
    assert!(world.has(&format!("bsl {}", world.velero_name("nabsl shop/b-sound"))));
    // Corrected later, it is one too many.
    world.edit(
        "nabsl shop/a-odd",
        json!({"spec": {"backupStorageLocationSpec": {"objectStorage": {"bucket": "other"}}}}),
    );
    world.settle();
    assert!(world.condition("nabsl shop/a-odd", "Accepted").contains("delete one to make room"));
}

/// Velero looks at a location twice a minute. What is shown of that is not older than ten minutes, and costs few writes.
#[test]
fn the_times_of_veleros_looks_are_shown_on_a_budget() {
    let mut world = world(&["shop"]);
    let name = available(&mut world, "shop/bucket", "mine");
    // Writes are counted, and faults repeat some.
    world.stop_recording();
    let shown = |world: &World| -> Option<Timestamp> {
        let status =
            world.get("nabsl shop/bucket")["status"]["veleroBackupStorageLocation"]["status"].clone();
        status["lastValidationTime"].as_str()?.parse().ok()
    };
    world.settle();
    let before = world.writes();
    for half_minutes in 0..240 {
        let time = if half_minutes % 2 == 0 { "lastValidationTime" } else { "lastSyncedTime" };
        let now = world.clock();
        world.edit(&format!("bsl {name}"), json!({"status": {time: now.to_string()}}));
        world.settle();
        let behind = shown(&world).map(|shown| now.duration_since(shown).unsigned_abs());
        assert!(behind.is_some_and(|behind| behind <= Duration::from_mins(11)), "{behind:?}");
        world.pass(Duration::from_secs(30));
    }
    let writes = world.writes() - before;
    assert!((12..=25).contains(&writes), "{writes} writes in two hours");
    // What is more than a time is shown at once, with the times.
    let now = world.clock();
    world.edit(
        &format!("bsl {name}"),
        json!({"status": {"phase": "Unavailable", "lastValidationTime": now.to_string()}}),
    );
    world.settle();
    assert_eq!((shown(&world), world.writes() - before), (Some(now), writes + 1));
}
