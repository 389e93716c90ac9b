//! Which backup counts as good while its storage comes and goes: for nacre's controller, and for its owner.

use api::{NonAdminBackup, NonAdminBackupStorageLocation};
use planner::last_good::{Storage, as_seen_by_caller, as_seen_by_controller, why_not_good};
use serde_json::json;

use super::storage::{available, world};
use crate::world::World;
use crate::world::manifests::{nab, nab_with};

/// Why `shop/daily` is not good, for the controller and for its owner; empty if it is.
fn why(world: &World) -> (String, String) {
    let state = world.state();
    let backup = state.get::<NonAdminBackup>("shop", "daily").unwrap();
    let location = state.get::<NonAdminBackupStorageLocation>("shop", "bucket").map(|found| (*found).clone());
    let reported = |storage: &Storage| {
        why_not_good(&backup, storage, state.now()).map(|why| why.to_string()).unwrap_or_default()
    };
    (
        reported(&as_seen_by_controller(&state, &backup)),
        reported(&as_seen_by_caller(&backup, location.as_slice(), None)),
    )
}

fn good() -> (String, String) {
    (String::new(), String::new())
}

fn complete(world: &mut World, items: u32) {
    world.settle();
    world.velero_starts("shop-daily-<1>");
    world.velero_ends("shop-daily-<1>", "Completed", json!({"progress": {"itemsBackedUp": items}}));
    world.settle();
}

#[test]
fn a_backup_is_good_while_its_own_location_is_approved_and_available() {
    let mut world = world(&["shop"]);
    let name = available(&mut world, "shop/bucket", "mine");
    world.apply(nab_with("shop/daily", json!({"storageLocation": "bucket"})));
    complete(&mut world, 3);
    assert_eq!(why(&world), good());

    world.edit(&format!("bsl {name}"), json!({"status": {"phase": "Unavailable"}}));
    world.settle();
    let unavailable = "its storage location \"bucket\" is not available to Velero".to_owned();
    assert_eq!(why(&world), (unavailable.clone(), unavailable.clone()));

    world.edit(&format!("request {name}"), json!({"spec": {"approvalDecision": "reject"}}));
    world.settle();
    let gone = "its storage location \"bucket\" does not exist any more".to_owned();
    let revoked = "its storage location \"bucket\" is not approved by an administrator".to_owned();
    assert_eq!(why(&world), (gone, revoked));

    // Approved again: not before Velero can use it.
    world.edit(&format!("request {name}"), json!({"spec": {"approvalDecision": "approve"}}));
    world.settle();
    assert_eq!(why(&world), (unavailable.clone(), unavailable));
    world.edit(&format!("bsl {name}"), json!({"status": {"phase": "Available"}}));
    world.settle();
    assert_eq!(why(&world), good());
}

#[test]
fn a_backup_in_the_clusters_storage_is_good_while_its_location_is_there() {
    let mut world = World::with(&["shop"]);
    world.apply(nab("shop/daily"));
    complete(&mut world, 3);
    assert_eq!(why(&world), good());
    // Velero uses locations that it was told never to check.
    world.edit("bsl default", json!({"status": {"phase": null}}));
    assert_eq!(why(&world), good());
    // Tenants cannot read it; the metric goes by what nacre sees.
    world.edit("bsl default", json!({"status": {"phase": "Unavailable"}}));
    assert_eq!(why(&world).0, "its storage location, the cluster's own, is not available to Velero");
    world.delete("bsl default");
    assert_eq!(why(&world).0, "its storage location, the cluster's own, does not exist any more");
}

#[test]
fn what_nacre_always_leaves_out_does_not_make_a_backup_partial_and_an_empty_one_is_not_good() {
    for (spec, items, says) in [
        (json!({}), 3, ""),
        (json!({"includedNamespaceScopedResources": ["*"]}), 3, ""),
        (json!({}), 0, "it holds 0 items"),
        (json!({"includedResources": ["nonsense"]}), 0, "it holds 0 items"),
        (
            json!({"excludedResources": ["secrets"], "labelSelector": {"matchLabels": {"app": "shop"}}}),
            3,
            "it holds only a part of the namespace (limited by excludedResources, labelSelector)",
        ),
    ] {
        let mut world = World::with(&["shop"]);
        world.apply(nab_with("shop/daily", spec.clone()));
        complete(&mut world, items);
        assert_eq!(why(&world), (says.to_owned(), says.to_owned()), "{spec}");
    }
}

#[test]
fn a_backup_that_velero_lost_is_not_good_although_its_status_still_says_completed() {
    let mut world = World::with(&["shop"]);
    world.apply(nab("shop/daily"));
    complete(&mut world, 3);
    world.delete("backup shop-daily-<1>");
    world.settle();
    assert_eq!(world.get("nab shop/daily")["status"]["veleroBackup"]["status"]["phase"], "Completed");
    assert_eq!(why(&world).0, "Velero no longer has it");
}
