//! Limits of locations: how many there may be, which storage paths they use, and their names.

use api::{Kind, labels};
use planner::policy::NativeSnapshots;
use serde_json::{Value, json};

use crate::storage::{available, bucket, world};
use crate::world::World;
use crate::world::manifests::{object, storage};

/// The phase of one of the shop's locations.
fn phase(world: &World, name: &str) -> Value {
    world.get(&format!("nabsl shop/{name}"))["status"]["phase"].clone()
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

/// Before Velero has anything: whoever was asked for first has the place, and whoever cannot be asked for has none.
#[test]
fn a_place_is_kept_for_whoever_waits_for_a_yes() {
    let mut world = world(&["shop"]);
    // Whoever is heard of first has the place: under faults that may be another.
    world.stop_recording();
    world.policy(|policy| policy.storage_locations.require_approval = true);
    let mut keyless = bucket("shop/a-keyless", "mine");
    keyless["spec"]["backupStorageLocationSpec"]["credential"]["name"] = json!("later");
    world.apply(keyless);
    world.settle();
    world.apply(bucket("shop/b-asked", "mine"));
    world.settle();
    assert_eq!((phase(&world, "a-keyless"), phase(&world, "b-asked")), (json!("BackingOff"), json!("New")));
    world.apply(bucket("shop/c-late", "mine"));
    world.settle();
    assert!(world.condition("nabsl shop/c-late", "Accepted").contains("is used by another storage location"));
    assert_eq!(phase(&world, "b-asked"), "New", "whoever came later takes nothing from it");
}

#[test]
fn the_first_ones_have_the_room_there_is() {
    let mut world = world(&["shop"]);
    world.policy(|policy| policy.storage_locations.max_per_namespace = Some(1));
    world.apply(bucket("shop/a", "one"));
    world.apply(bucket("shop/b", "two"));
    world.settle();
    assert_eq!((phase(&world, "a"), phase(&world, "b")), (json!("Created"), json!("BackingOff")));
    world.delete("nabsl shop/a");
    world.settle();
    assert_eq!(phase(&world, "b"), "Created");
}

/// Whoever was asked for has its place, and among those that were not the older one comes first.
#[test]
fn room_is_given_by_age_and_kept_by_whoever_has_it() {
    let mut world = world(&["shop"]);
    // Whoever is heard of first has the room: under faults that may be another.
    world.stop_recording();
    world.policy(|policy| policy.storage_locations.max_per_namespace = Some(1));
    // The older one cannot be asked for yet, and still comes first.
    let mut older = bucket("shop/older", "one");
    older["spec"]["backupStorageLocationSpec"]["credential"]["name"] = json!("later");
    world.apply(older);
    world.settle();
    world.jump(std::time::Duration::from_secs(10));
    world.apply(bucket("shop/earlier-in-the-alphabet", "two"));
    world.settle();
    assert_eq!(phase(&world, "earlier-in-the-alphabet"), "BackingOff");
    // It goes, and the younger one has the room; an older one that comes to be fine has to wait.
    world.delete("nabsl shop/older");
    world.settle();
    assert_eq!(phase(&world, "earlier-in-the-alphabet"), "Created");
    let mut late = bucket("shop/late", "three");
    late["metadata"]["creationTimestamp"] = json!("2020-01-01T00:00:00Z");
    world.apply(late);
    world.settle();
    assert_eq!(phase(&world, "late"), "BackingOff");
    // One that is being deleted does not count.
    world.edit(
        "nabsl shop/earlier-in-the-alphabet",
        json!({"metadata": {"finalizers": ["example.com/kept"]}}),
    );
    world.delete("nabsl shop/earlier-in-the-alphabet");
    world.settle();
    assert_eq!(phase(&world, "late"), "Created");
}

/// Somebody else's object under the name that a location's would get, whichever of the three it is.
#[test]
fn a_name_that_is_taken_in_the_administrators_namespace_is_told_and_left_alone() {
    for kind in [Kind::NonAdminBackupStorageLocationRequest, Kind::BackupStorageLocation, Kind::Secret] {
        let mut world = world(&["shop"]);
        // Somebody is quicker than nacre, which under faults may not be so.
        world.stop_recording();
        world.apply(bucket("shop/bucket", "mine"));
        let uid = world.get("nabsl shop/bucket")["metadata"]["uid"].as_str().unwrap().to_owned();
        let name = api::velero_name("shop", "bucket", &uid);
        let spec = match kind {
            Kind::BackupStorageLocation => {
                json!({"spec": {"provider": "aws", "objectStorage": {"bucket": "b"}}})
            }
            Kind::Secret => json!({"data": {}}),
            _ => json!({"spec": {}}),
        };
        world.apply(object(kind, &format!("velero/{name}"), spec));
        world.settle();
        assert_eq!(world.get("nabsl shop/bucket")["status"]["phase"], "BackingOff", "{kind:?}");
        let others = [Kind::NonAdminBackupStorageLocationRequest, Kind::BackupStorageLocation, Kind::Secret];
        let made = others.into_iter().filter(|other| *other != kind).flat_map(|other| world.names(other));
        assert_eq!(made.filter(|made| made.ends_with(&name)).count(), 0, "{kind:?}");
    }
}

/// Whichever of its three objects the Go controller left, all three go by that name from then on.
#[test]
fn a_location_goes_on_under_the_name_the_go_controller_gave_it() {
    let name = "shop-bucket-0b8d1a52";
    for kind in [Kind::NonAdminBackupStorageLocationRequest, Kind::BackupStorageLocation, Kind::Secret] {
        let mut world = world(&["shop"]);
        // The status comes with the object, which takes two steps here.
        world.stop_recording();
        let mut left = match kind {
            Kind::BackupStorageLocation => {
                json!({"spec": {"provider": "aws", "objectStorage": {"bucket": "mine", "prefix": "shop"}}})
            }
            Kind::Secret => json!({"data": {}}),
            _ => json!({"spec": {"approvalDecision": "approve"}}),
        };
        left["metadata"] = json!({
            "labels": {labels::OADP: labels::OADP_VALUE, labels::MANAGED_BY: labels::MANAGED_BY_VALUE,
                labels::NABSL_NACUUID: name},
            "annotations": {labels::NABSL_NAMESPACE: "shop", labels::NABSL_NAME: "bucket"},
        });
        world.apply(object(kind, &format!("velero/{name}"), left));
        world.apply(bucket("shop/bucket", "mine"));
        let reported =
            json!({"phase": "Created", "veleroBackupStorageLocation": {"nacuuid": name, "name": name}});
        world.forge_status("nabsl shop/bucket", reported);
        world.settle();
        for made in ["request", "bsl", "secret"] {
            assert!(world.has(&format!("{made} {name}")), "{kind:?}: {made}");
        }
        assert_eq!(world.names(Kind::NonAdminBackupStorageLocationRequest).len(), 1, "{kind:?}");
    }
}

/// Velero deletes the native snapshots that a backup's files name, with the administrators' credentials.
#[test]
fn h4_no_storage_is_brought_while_velero_deletes_native_snapshots() {
    let mut world = world(&["shop"]);
    // What was read of the cluster is not played again.
    world.stop_recording();
    available(&mut world, "shop/first", "mine");
    world.velero_takes_native_snapshots(true);
    world.apply(bucket("shop/second", "other"));
    world.settle();
    for name in ["first", "second"] {
        let accepted = world.condition(&format!("nabsl shop/{name}"), "Accepted");
        assert!(
            accepted.starts_with("False/") && accepted.contains("while Velero has a VolumeSnapshotLocation"),
            "{accepted}"
        );
        assert!(accepted.contains("storageLocations.nativeSnapshots: accept"), "{accepted}");
    }
    let given = |world: &World| {
        world
            .names(Kind::BackupStorageLocation)
            .iter()
            .filter(|name| name.starts_with("velero/shop-"))
            .count()
    };
    assert_eq!(given(&world), 0, "backups expire without nacre being asked");

    // Removed, everything goes on by itself.
    world.velero_takes_native_snapshots(false);
    world.settle();
    assert_eq!((phase(&world, "first"), phase(&world, "second")), (json!("Created"), json!("Created")));

    // Or the administrators accept it in so many words.
    world.velero_takes_native_snapshots(true);
    world.policy(|policy| policy.storage_locations.native_snapshots = NativeSnapshots::Accept);
    world.settle();
    assert_eq!(phase(&world, "first"), "Created");
    assert_eq!(given(&world), 2);
}
