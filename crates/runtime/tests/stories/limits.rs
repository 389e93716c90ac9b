//! How many backups a namespace may have, and what happens to those beyond.

use std::time::Duration;

use api::Kind;
use insta::{allow_duplicates, assert_snapshot};
use serde_json::json;

use crate::world::World;
use crate::world::manifests::{imported, nab, nab_with, object, origin};

/// Velero's names for what it has, without the namespace.
fn at_velero(world: &World) -> Vec<String> {
    world.names(Kind::Backup).iter().map(|name| name.replace("velero/", "")).collect()
}

fn finish(world: &mut World, name: &str) {
    world.velero_starts(name);
    world.velero_completes(name);
    world.pass(Duration::from_secs(5));
}

#[test]
fn of_many_made_at_once_the_oldest_go_first_in_whatever_order_they_are_decided() {
    for order in 0..20 {
        let mut world = World::with(&["shop", "office"]);
        world.shuffle(order, order % 2 == 0);
        world.hand_over_at_once();
        world.policy(|policy| policy.backup.max_active_per_namespace = Some(2));
        for name in ["shop/c", "shop/a", "office/b", "shop/b", "shop/d"] {
            world.apply(nab(name));
        }
        world.settle();
        world.pass(Duration::from_secs(5));
        // Of the same second, the name decides: the tie is broken as in the queue.
        assert_eq!(at_velero(&world), ["office-b-<3>", "shop-a-<2>", "shop-b-<4>"], "order {order}");
        finish(&mut world, "shop-a-<2>");
        assert_eq!(
            at_velero(&world),
            ["office-b-<3>", "shop-a-<2>", "shop-b-<4>", "shop-c-<1>"],
            "order {order}"
        );
        finish(&mut world, "shop-b-<4>");
        finish(&mut world, "shop-c-<1>");
        assert_eq!(at_velero(&world).len(), 5);
    }
}

#[test]
fn what_waits_says_so_and_starts_by_itself() {
    let mut world = World::with(&["shop"]);
    world.policy(|policy| policy.backup.max_active_per_namespace = Some(1));
    world.apply(nab("shop/a"));
    world.settle();
    world.apply(nab("shop/b"));
    world.trace();
    assert_snapshot!(world.condition("nab shop/b", "Accepted"), @"False/NamespaceLimitReached: metadata.namespace: this namespace has as many unfinished backups as it may have, which is 1; this one starts when one of them is done");
    world.velero_starts("shop-a-<1>");
    world.velero_ends("shop-a-<1>", "Failed", json!({}));
    assert_snapshot!(world.trace(), @r"
    status NonAdminBackup shop/a Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=0 velero=Failed
    event Warning BackupFailed: Velero ended the backup as Failed
    hold NonAdminBackup shop/b
    create Backup velero/shop-b-<2>
    status NonAdminBackup shop/b Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=1
    event Normal BackupScheduled: Velero was given the backup as shop-b-<2>
    ");
}

#[test]
fn room_is_made_by_deleting() {
    for with_data in [false, true] {
        let mut world = World::with(&["shop"]);
        world.policy(|policy| policy.backup.max_per_namespace = Some(1));
        world.apply(nab("shop/a"));
        world.settle();
        finish(&mut world, "shop-a-<1>");
        world.apply(nab("shop/b"));
        world.settle();
        allow_duplicates! { assert_snapshot!(world.condition("nab shop/b", "Accepted"), @"False/NamespaceLimitReached: metadata.namespace: this namespace has as many backups as it may have, which is 1; delete one to make room") };
        if with_data {
            world.edit("nab shop/a", json!({"spec": {"deleteBackup": true}}));
            world.settle();
            world.velero_deletes();
        } else {
            world.delete("nab shop/a");
        }
        world.settle();
        assert_eq!(at_velero(&world), ["shop-b-<2>"]);
    }
}

#[test]
fn room_is_made_by_expiry_and_by_the_policy() {
    let mut world = World::with(&["shop"]);
    world.policy(|policy| policy.backup.max_per_namespace = Some(1));
    world.apply(nab("shop/a"));
    world.settle();
    finish(&mut world, "shop-a-<1>");
    for name in ["shop/b", "shop/c"] {
        world.apply(nab(name));
        world.settle();
    }
    world.velero_expires("shop-a-<1>");
    world.pass(Duration::from_secs(5));
    assert_eq!(at_velero(&world), ["shop-b-<2>"]);
    world.policy(|policy| policy.backup.max_per_namespace = Some(2));
    world.pass(Duration::from_secs(5));
    assert_eq!(at_velero(&world), ["shop-b-<2>", "shop-c-<3>"]);
}

/// The younger is decided while the older is not, and the older turns out to be refused.
#[test]
fn an_older_one_that_comes_to_nothing_does_not_block_the_younger() {
    for order in 0..10 {
        let mut world = World::with(&["shop"]);
        world.shuffle(order, false);
        world.policy(|policy| policy.backup.max_per_namespace = Some(1));
        world.apply(nab_with("shop/a", json!({"ttl": "soon"})));
        world.apply(nab("shop/b"));
        world.settle();
        world.pass(Duration::from_secs(5));
        assert_eq!(at_velero(&world), ["shop-b-<2>"], "order {order}");
    }
}

#[test]
fn one_that_waits_and_is_withdrawn_does_not_block_the_next() {
    let mut world = World::with(&["shop"]);
    // Whoever is heard of first has the room: under faults that may be another.
    world.stop_recording();
    world.policy(|policy| policy.backup.max_active_per_namespace = Some(1));
    for name in ["shop/a", "shop/b", "shop/c"] {
        world.apply(nab(name));
    }
    world.settle();
    world.apply(nab_with("shop/b", json!({"ttl": "soon"})));
    world.settle();
    finish(&mut world, "shop-a-<1>");
    assert_eq!(at_velero(&world), ["shop-a-<1>", "shop-c-<3>"]);
}

#[test]
fn what_came_out_of_storage_counts_and_is_never_refused() {
    let mut world = World::with(&["shop"]);
    // Whoever is heard of first has the room: under faults that may be another.
    world.stop_recording();
    world.policy(|policy| policy.backup.max_per_namespace = Some(1));
    for name in ["old", "older"] {
        world.apply(imported(name, "default", origin("shop", name)));
        let labels = json!({"metadata": {"labels": {api::labels::SYNCED_FROM: name}},
            "spec": {"backupSpec": {}}});
        world.apply(object(Kind::NonAdminBackup, &format!("shop/{name}"), labels));
    }
    world.apply(nab("shop/new"));
    world.settle();
    assert_eq!(world.get("nab shop/old")["status"]["phase"], "Created");
    assert_eq!(world.get("nab shop/older")["status"]["phase"], "Created");
    assert_eq!(world.get("nab shop/new")["status"]["phase"], "BackingOff");
}

#[test]
fn waiting_is_silent_however_many_wait() {
    let mut world = World::with(&["shop"]);
    // Whoever is heard of first has the room: under faults that may be another.
    world.stop_recording();
    world.policy(|policy| policy.backup.max_active_per_namespace = Some(1));
    for at in 0..30 {
        world.apply(nab(&format!("shop/b{at:02}")));
    }
    world.settle();
    world.pass(Duration::from_mins(5));
    let before = world.writes();
    assert_eq!(before, 3 + 29, "three for the first, one refusal for each of the others");
    world.pass(Duration::from_hours(1));
    assert_eq!(world.writes(), before);
    world.velero_starts("shop-b00-<1>");
    world.velero_completes("shop-b00-<1>");
    world.pass(Duration::from_mins(5));
    assert_eq!(world.writes() - before, 1 + 3, "one who is done, one who starts, and nobody else");
}
