//! Tenants' own storage, and what is left when owners are gone.

use api::{Kind, labels};
use insta::assert_snapshot;
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
    // Marks that only say whose it is make nothing nacre's, and nor does one mark of two.
    for (name, mark) in
        [("unmarked", None), ("half", Some(labels::OADP)), ("other-half", Some(labels::MANAGED_BY))]
    {
        let mut by_hand = deletion.clone();
        by_hand["metadata"]["labels"] =
            mark.map_or(json!({}), |mark| json!({mark: deletion["metadata"]["labels"][mark]}));
        world.apply(object(Kind::DeleteBackupRequest, &format!("velero/{name}"), by_hand));
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

/// A Velero Backup that ended before it began is somebody's as long as a request of its own namespace shows it.
#[test]
fn a_backup_that_never_began_stays_with_its_request_and_goes_without() {
    let mut world = world(&["shop", "office"]);
    world.apply(nab("shop/made"));
    world.settle();
    let made = world.velero_name("nab shop/made");
    world.velero_says(&made, json!({"phase": "FailedValidation"}));
    let found = |name: &str| {
        object(
            Kind::Backup,
            &format!("velero/{name}"),
            json!({"metadata": {"annotations": {labels::NAB_NAMESPACE: "shop", labels::NAB_NAME: name},
                "labels": {labels::OADP: labels::OADP_VALUE, labels::MANAGED_BY: labels::MANAGED_BY_VALUE,
                    labels::NAB_NACUUID: name}},
                "spec": {"storageLocation": "default"}, "status": {"phase": "FailedValidation"}}),
        )
    };
    for name in ["shown", "unknown", "coveted"] {
        world.apply(found(name));
    }
    for (place, from) in [("shop/shown", "shown"), ("office/coveted", "coveted")] {
        let mut request = nab(place);
        request["metadata"]["labels"] = json!({labels::SYNCED_FROM: from});
        world.apply(request);
    }
    world.settle();
    assert_eq!(world.collect_garbage(), ["Backup coveted", "Backup unknown"]);
}

#[test]
fn with_a_location_go_the_requests_that_wait_for_it_and_no_others() {
    let mut world = world(&["shop"]);
    available(&mut world, "shop/bucket", "mine");
    available(&mut world, "shop/other", "theirs");
    // Whoever is heard of first has the room: under faults that may be another.
    world.stop_tape();
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

/// Whoever was asked for has its place, and among those that were not the older one comes first.
#[test]
fn room_is_given_by_age_and_kept_by_whoever_has_it() {
    let mut world = world(&["shop"]);
    // The same.
    world.stop_tape();
    world.policy(|policy| policy.storage_locations.max_per_namespace = Some(1));
    let phase =
        |world: &World, name: &str| world.get(&format!("nabsl shop/{name}"))["status"]["phase"].clone();
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
    // One on its way out takes no room.
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
        world.stop_tape();
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

/// Each thing that happens to a location is told once: a wait as news, a refusal as a warning.
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
    let trace = world.whole_trace();
    let events: Vec<_> = trace.lines().filter(|line| line.starts_with("event")).collect();
    assert_snapshot!(events.join("\n"), @r"
    event Normal BslSpecApprovalPending: an administrator has to approve the location
    event Normal BslSpecApproved: the location may be used
    event Normal BackupStorageLocationCreated: Velero has the location
    event Warning BslSpecRejected: an administrator has rejected the location
    event Warning BslSpecValidation: spec.backupStorageLocationSpec.objectStorage.bucket: must be the plain name of a bucket: 3 characters or more, of letters, digits, dots, dashes and underscores
    ");
}

/// Whichever of its three objects the Go controller left, all three go by that name from then on.
#[test]
fn a_location_goes_on_under_the_name_the_go_controller_gave_it() {
    let name = "shop-bucket-0b8d1a52";
    for kind in [Kind::NonAdminBackupStorageLocationRequest, Kind::BackupStorageLocation, Kind::Secret] {
        let mut world = world(&["shop"]);
        // The status comes with the object, which takes two steps here.
        world.stop_tape();
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
        let told =
            json!({"phase": "Created", "veleroBackupStorageLocation": {"nacuuid": name, "name": name}});
        world.forge_status("nabsl shop/bucket", told);
        world.settle();
        for made in ["request", "bsl", "secret"] {
            assert!(world.has(&format!("{made} {name}")), "{kind:?}: {made}");
        }
        assert_eq!(world.names(Kind::NonAdminBackupStorageLocationRequest).len(), 1, "{kind:?}");
    }
}
