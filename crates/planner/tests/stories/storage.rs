//! Tenants' own storage, and what is left when owners are gone.

use api::{Kind, labels};
use serde_json::{Value, json};

use crate::world::manifests::{nab, nab_with, nar, object, storage};
use crate::world::{World, long};

const KEYS: &str = "W2RlZmF1bHRdCmF3c19hY2Nlc3Nfa2V5X2lkPWEKYXdzX3NlY3JldF9hY2Nlc3Nfa2V5PWh1bnRlcjIK";

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
fn two_locations_never_share_a_place_in_a_bucket() {
    let mut world = world(&["shop", "rival"]);
    available(&mut world, "shop/first", "mine");
    world.apply(bucket("shop/second", "mine"));
    world.apply(bucket("rival/bucket", "mine"));
    world.settle();
    assert!(world.condition("nabsl shop/second", "Accepted").contains("is used by another storage location"));
    assert_eq!(world.get("nabsl rival/bucket")["status"]["phase"], "Created", "below another folder");
    // The first goes, and the second has the place.
    world.delete("nabsl shop/first");
    world.settle();
    assert_eq!(world.get("nabsl shop/second")["status"]["phase"], "Created");

    // An administrator's whole bucket is nobody else's.
    world.apply(storage("platform", json!({"config": {"region": "eu-west-1"}})));
    world.apply(bucket("shop/third", "platform"));
    world.settle();
    assert!(world.condition("nabsl shop/third", "Accepted").contains("is used by another storage location"));
    world.delete("bsl platform");
    world.settle();
    assert_eq!(world.get("nabsl shop/third")["status"]["phase"], "Created");
}

#[test]
fn the_first_ones_have_the_room_there_is() {
    let mut world = world(&["shop"]);
    world.policy(|policy| policy.storage_locations.max_per_namespace = Some(1));
    world.apply(bucket("shop/a", "one"));
    world.apply(bucket("shop/b", "two"));
    world.settle();
    let phase =
        |world: &World, name: &str| world.get(&format!("nabsl shop/{name}"))["status"]["phase"].clone();
    assert_eq!((phase(&world, "a"), phase(&world, "b")), (json!("Created"), json!("BackingOff")));
    world.delete("nabsl shop/a");
    world.settle();
    assert_eq!(phase(&world, "b"), "Created");
}

#[test]
fn what_has_outlived_its_owner_is_collected_and_nothing_else() {
    let mut world = world(&["shop"]);
    let storage = available(&mut world, "shop/bucket", "mine");
    world.apply(nab("shop/daily"));
    world.settle();
    let velero = world.velero_name("nab shop/daily");
    world.velero_starts(&velero);
    world.velero_completes(&velero);
    world.apply(nar("shop/back", "daily"));
    world.settle();
    assert!(world.collect_garbage().is_empty(), "every owner lives");

    // The same objects for owners of the same names that are no more.
    let orphan = |world: &World, object: &str| {
        let mut orphan = world.get(object);
        for mark in ["uid", "resourceVersion", "creationTimestamp", "finalizers", "generation"] {
            orphan["metadata"].as_object_mut().unwrap().remove(mark);
        }
        orphan["metadata"]["name"] = json!("orphan");
        orphan["metadata"]["annotations"][labels::ORIGIN_UID] = json!("gone");
        orphan
    };
    let restore = world.velero_name("nar shop/back");
    for object in [
        format!("bsl {storage}"),
        format!("secret {storage}"),
        format!("request {storage}"),
        format!("restore {restore}"),
    ] {
        let orphan = orphan(&world, &object);
        world.apply(orphan);
    }
    let mut deletion = json!({"metadata": {"labels": {labels::OADP: labels::OADP_VALUE, labels::MANAGED_BY: labels::MANAGED_BY_VALUE},
        "annotations": {labels::NAB_NAMESPACE: "shop", labels::NAB_NAME: "gone"}},
        "spec": {"backupName": velero}, "status": {"phase": "InProgress"}});
    world.apply(object(Kind::DeleteBackupRequest, "velero/busy", deletion.clone()));
    deletion["status"]["phase"] = json!("Processed");
    world.apply(object(Kind::DeleteBackupRequest, "velero/orphan", deletion.clone()));
    // A request of that name lives: what it asked for itself stays, and what its namesake asked for goes.
    deletion["metadata"]["annotations"][labels::NAB_NAME] = json!("daily");
    let uid = world.get("nab shop/daily")["metadata"]["uid"].clone();
    for (name, uid) in [("own", uid), ("namesake", json!("gone"))] {
        deletion["metadata"]["annotations"][labels::ORIGIN_UID] = uid;
        world.apply(object(Kind::DeleteBackupRequest, &format!("velero/{name}"), deletion.clone()));
    }
    // An administrator's own are nobody's leftovers.
    world.apply(object(Kind::Secret, "velero/cloud-credentials", json!({"data": {"cloud": KEYS}})));
    let mut collected = world.collect_garbage();
    collected.sort();
    assert_eq!(
        collected,
        [
            "BackupStorageLocation orphan",
            "DeleteBackupRequest namesake",
            "DeleteBackupRequest orphan",
            "NonAdminBackupStorageLocationRequest orphan",
            "Restore orphan",
            "Secret orphan",
        ]
    );
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
            // Which of two writes told it does not matter.
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
