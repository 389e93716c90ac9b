//! What a restore is refused for, and what it waits for.

use std::fmt::Write;

use api::{Kind, labels};
use insta::{allow_duplicates, assert_snapshot};
use serde_json::{Value, json};

use super::completed;
use crate::world::World;
use crate::world::manifests::{nab, nab_with, nar, nar_with, object};

#[test]
fn every_rule_about_a_spec_refuses_and_heals() {
    let hook = |more: Value| {
        let mut hook = json!({"name": "warm-up"});
        hook.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"backupName": "daily", "hooks": {"resources": [hook]}})
    };
    let with = |field: &str, value: Value| json!({"backupName": "daily", field: value});
    let selector = json!({"matchLabels": {"a": "b"}});
    let specs = [
        with("scheduleName", json!("nightly")),
        json!({}),
        json!({"backupName": "weekly"}),
        with("includedNamespaces", json!(["shop"])),
        with("excludedNamespaces", json!([])),
        with("namespaceMapping", json!({"office": "shop"})),
        with("includeClusterResources", json!(true)),
        with("restoreStatus", json!({"includedResources": ["nonadminbackups"]})),
        json!({"backupName": "daily", "labelSelector": selector, "orLabelSelectors": [selector]}),
        with("itemOperationTimeout", json!("-4h")),
        with("existingResourcePolicy", json!("replace")),
        hook(json!({"includedNamespaces": ["office"]})),
        hook(json!({"postHooks": [{"init": {"initContainers": []}}]})),
        with("resourceModifier", json!({"kind": "ConfigMap", "name": "for-others"})),
        with("resourcePolicy", json!({"kind": "ConfigMap", "name": "for-others"})),
        with("unheardOf", json!(true)),
    ];
    let mut said = String::new();
    for spec in specs {
        let mut world = completed();
        world.apply(object(Kind::ConfigMap, "velero/for-others", json!({})));
        world.apply(nar_with("shop/again", spec));
        world.settle();
        assert_eq!(world.get("nar shop/again")["status"]["phase"], "BackingOff");
        assert_eq!(world.get("nar shop/again")["metadata"]["finalizers"], Value::Null);
        assert!(world.names(Kind::Restore).is_empty());
        writeln!(said, "{}", world.condition("nar shop/again", "Accepted")).unwrap();
        world.apply(nar("shop/again", "daily"));
        world.settle();
        assert_eq!(world.get("nar shop/again")["status"]["phase"], "Created");
        assert_eq!(world.names(Kind::Restore), ["velero/shop-again-p-<r1>"]);
    }
    assert_snapshot!(said, @r#"
    False/InvalidRestoreSpec: spec.restoreSpec.scheduleName: not available to namespace owners; leave the field out
    False/InvalidRestoreSpec: spec.restoreSpec.backupName: is missing; name a NonAdminBackup of this namespace
    False/InvalidRestoreSpec: spec.restoreSpec.backupName: there is no NonAdminBackup "weekly" in this namespace; name one that exists
    False/InvalidRestoreSpec: spec.restoreSpec.includedNamespaces: not available to namespace owners; leave the field out
    False/InvalidRestoreSpec: spec.restoreSpec.excludedNamespaces: not available to namespace owners; leave the field out
    False/InvalidRestoreSpec: spec.restoreSpec.namespaceMapping: not available to namespace owners; leave the field out
    False/InvalidRestoreSpec: spec.restoreSpec.includeClusterResources: cluster-scoped resources cannot be restored; leave the field out or set it to false
    False/InvalidRestoreSpec: spec.restoreSpec.restoreStatus: not available to namespace owners; leave the field out
    False/InvalidRestoreSpec: spec.restoreSpec.orLabelSelectors: cannot be used together with labelSelector; use one or the other
    False/InvalidRestoreSpec: spec.restoreSpec.itemOperationTimeout: "-4h" is not a duration; write for example 4h or 1h30m
    False/InvalidRestoreSpec: spec.restoreSpec.existingResourcePolicy: "replace" is not known; write none or update
    False/InvalidRestoreSpec: spec.restoreSpec.hooks.resources[0].includedNamespaces: may only name "shop", the namespace of this object; leave the field out
    False/InvalidRestoreSpec: spec.restoreSpec.hooks.resources[0].postHooks.init: init containers cannot be added by a restore; use an exec hook instead
    False/InvalidRestoreSpec: spec.restoreSpec.resourceModifier: must be a ConfigMap that the administrators have marked for tenants; ask them for its name
    False/InvalidRestoreSpec: spec.restoreSpec.resourcePolicy: must be a ConfigMap that the administrators have marked for tenants; ask them for its name
    False/InvalidRestoreSpec: spec: cannot be read: unheardOf: this controller knows no such field; remove it
    "#);
}

#[test]
fn it_waits_for_a_backup_that_is_not_there_yet_or_still_runs() {
    let mut world = World::with(&["shop"]);
    world.apply(nar("shop/again", "daily"));
    world.settle();
    let mut said = world.condition("nar shop/again", "Accepted");
    world.apply(nab_with("shop/daily", json!({"ttl": "soon"})));
    world.settle();
    said = format!("{said}\n{}", world.condition("nar shop/again", "Accepted"));
    world.apply(nab("shop/daily"));
    world.settle();
    said = format!("{said}\n{}", world.condition("nar shop/again", "Accepted"));
    world.velero_starts("shop-daily-<1>");
    world.settle();
    assert_snapshot!(said, @r#"
    False/InvalidRestoreSpec: spec.restoreSpec.backupName: there is no NonAdminBackup "daily" in this namespace; name one that exists
    False/InvalidRestoreSpec: spec.restoreSpec.backupName: Velero has no backup for NonAdminBackup "daily"; its conditions say why
    False/InvalidRestoreSpec: spec.restoreSpec.backupName: NonAdminBackup "daily" is not finished; the restore starts when it is
    "#);
    world.trace();
    world.velero_ends("shop-daily-<1>", "PartiallyFailed", json!({}));
    assert_snapshot!(world.trace(), @r"
    status NonAdminBackup shop/daily Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=0 velero=PartiallyFailed
    event Warning BackupFailed: Velero ended the backup as PartiallyFailed
    hold NonAdminRestore shop/again
    create Restore velero/shop-again-p-<r1>
    status NonAdminRestore shop/again Created Accepted=True/RestoreAccepted Queued=True/RestoreScheduled queue=1
    event Normal RestoreScheduled: Velero was given the restore as shop-again-p-<r1>
    ");
}

#[test]
fn from_a_backup_that_failed_there_is_no_restore() {
    let mut world = World::with(&["shop"]);
    world.apply(nab("shop/daily"));
    world.apply(nar("shop/again", "daily"));
    world.settle();
    world.velero_fails_validation("shop-daily-<1>", "no");
    world.settle();
    assert_snapshot!(world.condition("nar shop/again", "Accepted"), @r#"False/InvalidRestoreSpec: spec.restoreSpec.backupName: NonAdminBackup "daily" ended as FailedValidation and cannot be restored; name another"#);
}

#[test]
fn from_a_backup_on_its_way_out_there_is_no_restore() {
    let mut world = completed();
    // A restore that is decided about before nacre hears of the deletion is made.
    world.stop_recording();
    world.edit("backup shop-daily-<1>", json!({"metadata": {"finalizers": ["example.com/archive"]}}));
    world.delete("nab shop/daily");
    // Two watches may report in either order: nacre has seen this one.
    world.settle();
    world.apply(nar("shop/again", "daily"));
    world.settle();
    assert_snapshot!(world.condition("nar shop/again", "Accepted"), @r#"False/InvalidRestoreSpec: spec.restoreSpec.backupName: NonAdminBackup "daily" is being deleted; name another"#);

    let mut world = completed();
    // A restore that is decided about before nacre hears of the deletion is made.
    world.stop_recording();
    world.edit("nab shop/daily", json!({"spec": {"deleteBackup": true}}));
    world.settle();
    world.trace();
    world.apply(nar("shop/again", "daily"));
    assert_snapshot!(world.trace(), @r#"
    status NonAdminRestore shop/again BackingOff Accepted=False/InvalidRestoreSpec
    event Warning InvalidRestoreSpec: spec.restoreSpec.backupName: NonAdminBackup "daily" is being deleted; name another
    delete NonAdminRestore shop/again
    "#);
}

#[test]
fn it_waits_for_a_location_that_is_away() {
    for of_the_tenant in [false, true] {
        let mut world = World::with(&["shop"]);
        let storage = if of_the_tenant { world.tenant_storage("shop/bucket") } else { "default".to_owned() };
        let spec = if of_the_tenant { json!({"storageLocation": "bucket"}) } else { json!({}) };
        world.apply(nab_with("shop/daily", spec));
        world.settle();
        world.velero_starts("shop-daily-<1>");
        world.velero_completes("shop-daily-<1>");
        world.settle();
        let storage = format!("bsl {storage}");
        let whole = world.get(&storage);
        world.delete(&storage);
        world.apply(nar("shop/again", "daily"));
        world.settle();
        allow_duplicates! { assert_snapshot!(world.condition("nar shop/again", "Accepted"), @r#"False/InvalidRestoreSpec: spec.restoreSpec.backupName: the storage location of NonAdminBackup "daily" is not there; the restore starts when it is"#) };
        world.apply(whole);
        world.settle();
        assert_eq!(world.get("nar shop/again")["status"]["phase"], "Created");
    }
}

/// A11
/// planted: a policy without `maxItems`
#[test]
fn a11_a_backup_in_own_storage_with_too_many_objects_is_not_restored() {
    let mut world = World::with(&["shop"]);
    world.policy(|policy| policy.restore.from_tenant_storage.max_items = 1000);
    world.tenant_storage("shop/bucket");
    world.apply(nab_with("shop/daily", json!({"storageLocation": "bucket"})));
    world.settle();
    world.velero_starts("shop-daily-<1>");
    world.velero_completes("shop-daily-<1>");
    world.edit(
        "backup shop-daily-<1>",
        json!({"status": {"progress": {"totalItems": 1001, "itemsBackedUp": 3}}}),
    );
    world.settle();
    world.apply(nar("shop/again", "daily"));
    world.settle();
    assert_snapshot!(world.condition("nar shop/again", "Accepted"), @"False/InvalidRestoreSpec: spec.restoreSpec.backupName: the backup has 1001 objects, and from your own storage backups with up to 1000 are restored; make backups of fewer objects, or ask the administrators to raise restore.fromTenantStorage.maxItems");
    world.policy(|policy| policy.restore.from_tenant_storage.max_items = 0);
    world.settle();
    assert_eq!(world.get("nar shop/again")["status"]["phase"], "Created", "0 is no limit");
}

#[test]
fn it_waits_for_a_config_map_to_be_marked() {
    let mut world = completed();
    world.apply(nar_with(
        "shop/again",
        json!({"backupName": "daily", "resourceModifier": {"kind": "ConfigMap", "name": "m"}}),
    ));
    world.settle();
    let map =
        object(Kind::ConfigMap, "velero/m", json!({"metadata": {"labels": {labels::TENANT_USABLE: "true"}}}));
    world.apply(map);
    world.settle();
    assert_eq!(world.get("nar shop/again")["status"]["phase"], "Created");
}

#[test]
fn an_enforced_spec_holds_for_restores_too() {
    let mut world = completed();
    let enforced = json!({"existingResourcePolicy": "none"});
    world.policy(|policy| policy.restore.enforce = serde_json::from_value(enforced).unwrap());
    world.apply(nar_with("shop/again", json!({"backupName": "daily", "existingResourcePolicy": "update"})));
    world.settle();
    assert_snapshot!(world.condition("nar shop/again", "Accepted"), @r#"False/InvalidRestoreSpec: spec.restoreSpec.existingResourcePolicy: the administrator requires "none"; leave the field out or set it to that"#);
    world.apply(nar("shop/again", "daily"));
    world.settle();
    assert_eq!(world.get("restore shop-again-p-<r1>")["spec"]["existingResourcePolicy"], "none");
}

#[test]
fn nothing_is_restored_into_a_namespace_on_its_way_out() {
    let mut world = completed();
    // Under faults the restore may be heard of before it is heard that the namespace goes.
    world.stop_recording();
    world.edit("ns shop", json!({"metadata": {"finalizers": ["example.com/kept"]}}));
    world.delete("ns shop");
    world.apply(nar("shop/again", "daily"));
    world.settle();
    assert_snapshot!(world.condition("nar shop/again", "Accepted"), @"False/InvalidRestoreSpec: metadata.namespace: the namespace is being deleted; nothing is restored into it");
    assert!(world.names(Kind::Restore).is_empty());
}

#[test]
fn a_hook_is_kept_within_the_namespace() {
    let mut world = completed();
    let exec = json!({"container": "app", "command": ["/warm-up"], "execTimeout": "1h"});
    let hook = json!({"name": "warm-up", "includedNamespaces": ["shop"], "postHooks": [{"exec": exec}]});
    world.apply(nar_with("shop/again", json!({"backupName": "daily", "hooks": {"resources": [hook]}})));
    world.settle();
    let mut bounded = hook;
    bounded["postHooks"][0]["exec"]["execTimeout"] = json!("10m");
    bounded["postHooks"][0]["exec"]["waitTimeout"] = json!("10m");
    assert_eq!(world.get("restore shop-again-p-<r1>")["spec"]["hooks"]["resources"], json!([bounded]));
}
