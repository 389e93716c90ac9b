//! Nothing a tenant writes has an effect outside its namespace. The world checks every write; these stories try to
//! break it.

use api::{Kind, labels};
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::world::manifests::{imported, nab, nab_with, namespace, nar, object, origin};
use crate::world::{World, long};

/// A victim with a completed backup, and an attacker's namespace.
fn victim() -> World {
    let mut world = World::with(&["victim", "attacker"]);
    world.apply(nab("victim/daily"));
    world.settle();
    world.velero_starts("victim-daily-<1>");
    world.velero_completes("victim-daily-<1>");
    world.trace();
    world
}

/// Everything of the victim's, to be compared.
fn of_the_victim(world: &World) -> Vec<Value> {
    ["nab victim/daily", "backup victim-daily-<1>"].map(|name| world.get(name)).to_vec()
}

/// Does everything the attacker can with a request, and checks that the victim is none the wiser.
fn try_everything(mut world: World, request: &str) {
    let before = of_the_victim(&world);
    world.settle();
    let reported = world.get(request).to_string();
    assert!(
        !reported.contains("Completed"),
        "what Velero says about the victim's backup is not shown: {reported}"
    );
    world.apply(nar("attacker/steal", request.rsplit('/').next().unwrap()));
    world.settle();
    assert!(world.names(Kind::Restore).is_empty());
    world.edit(request, json!({"spec": {"deleteBackup": true}}));
    world.settle();
    world.velero_deletes();
    world.settle();
    assert!(world.names(Kind::DeleteBackupRequest).is_empty());
    assert_eq!(of_the_victim(&world), before);
    assert!(!world.has(request), "and the attacker's request can be deleted");
}

#[test]
fn a_copied_label_of_a_synced_backup() {
    let mut world = victim();
    let mut request = nab("attacker/daily");
    request["metadata"]["labels"] = json!({labels::SYNCED_FROM: long("victim-daily-<1>")});
    world.apply(request);
    assert_snapshot!(world.trace(), @r"
    status NonAdminBackup attacker/daily BackingOff Accepted=False/VeleroBackupNotFound
    event Warning VeleroBackupNotFound: there is no backup of this namespace to synchronise from; remove this object and create a new NonAdminBackup
    ");
    try_everything(world, "nab attacker/daily");
}

#[test]
fn a_forged_status_that_names_another_tenants_backup() {
    let mut world = victim();
    world.apply(nab_with("attacker/daily", json!({"ttl": "soon"})));
    world.settle();
    let velero =
        json!({"nacuuid": long("victim-daily-<1>"), "name": long("victim-daily-<1>"), "namespace": "velero"});
    world.forge_status("nab attacker/daily", json!({"phase": "Created", "veleroBackup": velero}));
    try_everything(world, "nab attacker/daily");
}

#[test]
fn copied_marks_on_the_tenants_own_object() {
    let mut world = victim();
    let mut request = nab_with("attacker/daily", json!({"ttl": "soon"}));
    let uid = world.get("nab victim/daily")["metadata"]["uid"].clone();
    request["metadata"]["annotations"] = json!({labels::ORIGIN_UID: uid, labels::NAB_NAMESPACE: "victim",
        labels::NAB_NAME: "daily"});
    request["metadata"]["labels"] = json!({labels::NAB_NACUUID: long("victim-daily-<1>")});
    world.apply(request);
    try_everything(world, "nab attacker/daily");
}

#[test]
fn the_same_against_what_the_go_controller_made() {
    let mut world = World::with(&["victim", "attacker"]);
    world.apply(imported("victim-daily-<1>", "default", origin("victim", "daily")));
    world.apply(nab("victim/daily"));
    world.forge_status("nab victim/daily", json!({"phase": "Created"}));
    world.settle();
    for hint in ["label", "status"] {
        let mut request = nab("attacker/daily");
        if hint == "label" {
            request["metadata"]["labels"] = json!({labels::SYNCED_FROM: long("victim-daily-<1>")});
        }
        world.apply(request);
        let velero = json!({"nacuuid": long("victim-daily-<1>")});
        world.forge_status("nab attacker/daily", json!({"phase": "Created", "veleroBackup": velero}));
        world.settle();
        world.edit("nab attacker/daily", json!({"spec": {"deleteBackup": true}}));
        world.settle();
        assert!(world.names(Kind::DeleteBackupRequest).is_empty());
        assert!(!world.has("nab attacker/daily"));
    }
}

#[test]
fn a_backup_in_the_attackers_bucket_that_claims_to_be_the_victims() {
    let mut world = victim();
    let storage = world.tenant_storage("attacker/bucket");
    let mut marks = origin("victim", "daily");
    marks[labels::ORIGIN_UID] = world.get("nab victim/daily")["metadata"]["uid"].clone();
    world.apply(imported("planted", &storage, marks));
    for place in ["attacker/planted", "victim/planted"] {
        let mut request = nab(place);
        request["metadata"]["labels"] = json!({labels::SYNCED_FROM: "planted"});
        world.apply(request);
        world.settle();
        let said = world.condition(&format!("nab {place}"), "Accepted");
        assert!(said.starts_with("False/VeleroBackupNotFound"), "{said}");
    }
    try_everything(world, "nab attacker/planted");
}

#[test]
fn a6_a_backup_in_the_attackers_bucket_under_the_name_the_victims_next_one_gets() {
    let mut world = World::with(&["victim", "attacker"]);
    let storage = world.tenant_storage("attacker/bucket");
    world.apply(imported("victim-daily-<1>", &storage, origin("victim", "daily")));
    world.apply(nab("victim/daily"));
    world.settle();
    // The planted one makes way: nobody but this request has its uid.
    assert_eq!(world.get("nab victim/daily")["status"]["phase"], "Created");
    let own = world.get("backup victim-daily-<1>");
    assert_eq!(own["spec"]["includedNamespaces"], json!(["victim"]));
    assert_ne!(own["spec"]["storageLocation"], json!(storage));
}

/// One that stands in the way of a request which deletes its data is not the request's to delete.
#[test]
fn a6_a_request_that_deletes_its_data_leaves_a_planted_backup_alone() {
    let mut world = World::with(&["victim", "attacker"]);
    let storage = world.tenant_storage("attacker/bucket");
    world.apply(imported("victim-daily-<1>", &storage, origin("victim", "daily")));
    let planted = world.get("backup victim-daily-<1>");
    let mut request = nab("victim/daily");
    request["spec"]["deleteBackup"] = json!(true);
    world.apply(request);
    world.settle();
    assert_eq!(world.get("backup victim-daily-<1>"), planted);
}

#[test]
fn a_second_velero_object_with_copied_labels_changes_nothing() {
    let mut world = victim();
    let mut copy = world.get("backup victim-daily-<1>");
    copy["metadata"]["name"] = json!("a-copy");
    world.apply(copy);
    assert_eq!(world.trace(), "");
    let copy = world.get("backup a-copy");
    world.edit("nab victim/daily", json!({"spec": {"deleteBackup": true}}));
    world.settle();
    world.velero_deletes();
    world.settle();
    assert!(!world.has("nab victim/daily"));
    assert_eq!(world.get("backup a-copy"), copy);
}

/// Within a namespace: two requests that refer to one Velero Backup must not work against each other.
#[test]
fn two_requests_for_one_backup_do_not_fight() {
    let mut world = victim();
    let mut twin = nab("victim/twin");
    twin["metadata"]["labels"] = json!({labels::SYNCED_FROM: long("victim-daily-<1>")});
    world.apply(twin);
    world.settle();
    world.trace();
    world.edit("nab victim/daily", json!({"spec": {"deleteBackup": true}}));
    assert_snapshot!(world.trace(), @r"
    status NonAdminBackup victim/daily Deleting Accepted=True/BackupAccepted Queued=True/BackupScheduled Deleting=True/DeletionPending(the backup and its data are being deleted) queue=0 velero=Completed request=unseen
    create DeleteBackupRequest velero/victim-daily-<1>-1
    event Normal DeletionRequested: Velero was asked to delete the backup with its data, and it was not recorded who asked
    ");
    world.velero_deletes();
    world.settle();
    assert!(!world.has("nab victim/daily") && world.names(Kind::Backup).is_empty());
    assert!(world.condition("nab victim/twin", "Accepted").starts_with("False/VeleroBackupNotFound"));
}

#[test]
fn a_namespace_made_anew_does_not_inherit() {
    let mut world = victim();
    world.edit("backup victim-daily-<1>", json!({"metadata": {"finalizers": ["example.com/archive"]}}));
    let kept = world.get("backup victim-daily-<1>");
    world.edit("nab victim/daily", json!({"metadata": {"finalizers": []}}));
    world.namespaces_are_not_seen();
    world.delete("nab victim/daily");
    world.delete("ns victim");
    world.namespaces_are_seen();
    world.settle();
    assert!(!world.has("ns victim"));
    world.apply(namespace("victim"));
    let mut heir = nab("victim/daily");
    heir["metadata"]["labels"] = json!({labels::SYNCED_FROM: long("victim-daily-<1>")});
    world.apply(heir);
    world.forge_status("nab victim/daily", json!({"veleroBackup": {"nacuuid": long("victim-daily-<1>")}}));
    world.settle();
    assert!(world.condition("nab victim/daily", "Accepted").starts_with("False/VeleroBackupNotFound"));
    world.edit("nab victim/daily", json!({"spec": {"deleteBackup": true}}));
    world.settle();
    assert_eq!(world.get("backup victim-daily-<1>"), kept);
}

#[test]
fn a_forged_status_makes_nacre_do_less_never_more() {
    let mut world = World::with(&["shop"]);
    world.apply(nab("shop/daily"));
    world.forge_status("nab shop/daily", json!({"phase": "Created"}));
    world.settle();
    assert!(world.names(Kind::Backup).is_empty());
    assert!(world.condition("nab shop/daily", "Accepted").starts_with("False/VeleroBackupNotFound"));
}

#[test]
fn an_odd_status_is_survived() {
    let mut world = World::with(&["shop"]);
    world.apply(nab("shop/daily"));
    let odd = json!({"type": "Odd", "status": "Unknown", "reason": "X", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let queue = json!({"estimatedQueuePosition": -5});
    world.forge_status(
        "nab shop/daily",
        json!({"conditions": [odd, odd], "queueInfo": queue, "unheardOf": {}}),
    );
    world.settle();
    assert_eq!(world.names(Kind::Backup), ["velero/shop-daily-<1>"]);
    world.delete("nab shop/daily");
    world.settle();
    assert!(!world.has("nab shop/daily"));
}

#[test]
fn a_restore_from_somebody_elses_backup_by_a_forged_request() {
    let mut world = victim();
    world.apply(nar("victim/again", "daily"));
    world.settle();
    let before = world.get("restore victim-agai-p-<r1>");
    world.apply(nar("attacker/again", "daily"));
    let velero = json!({"nacuuid": long("victim-agai-p-<r1>"), "name": long("victim-agai-p-<r1>")});
    world.forge_status("nar attacker/again", json!({"phase": "Created", "veleroRestore": velero}));
    world.settle();
    assert!(world.condition("nar attacker/again", "Accepted").starts_with("False/VeleroRestoreNotFound"));
    world.delete("nar attacker/again");
    world.settle();
    assert!(!world.has("nar attacker/again"));
    assert_eq!(world.get("restore victim-agai-p-<r1>"), before);
}

#[test]
fn hooks_and_orders_of_resources_stay_in_the_namespace() {
    let mut world = World::with(&["shop"]);
    let hook = json!({"name": "x", "includedNamespaces": [], "excludedNamespaces": []});
    world.apply(nab_with("shop/daily", json!({"hooks": {"resources": [hook]}, "includedNamespaces": []})));
    world.settle();
    let spec = world.get("backup shop-daily-<1>")["spec"].clone();
    assert_eq!(spec["hooks"]["resources"][0]["includedNamespaces"], json!(["shop"]));
    assert_eq!(spec["includedNamespaces"], json!(["shop"]));
}

/// X1
#[test]
fn one_odd_object_does_not_stop_the_others() {
    let mut world = World::with(&["shop"]);
    for at in 0..5 {
        let mut odd = object(Kind::NonAdminBackup, &format!("shop/odd{at}"), json!({}));
        odd["spec"] = [
            json!(null),
            json!("text"),
            json!({"backupSpec": "x"}),
            json!({"backupSpec": {"x": 1}}),
            json!({}),
        ][at]
            .clone();
        world.apply(odd);
    }
    world.apply(nab("shop/daily"));
    world.settle();
    assert_eq!(world.names(Kind::Backup), ["velero/shop-daily-<6>"]);
    for at in 0..5 {
        assert_eq!(world.get(&format!("nab shop/odd{at}"))["status"]["phase"], "BackingOff");
    }
}
