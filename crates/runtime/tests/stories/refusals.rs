//! Refusals: the field, what is wrong, what would be accepted; no Velero object is created; accepted as soon as the
//! cause is gone.

use std::fmt::Write;

use api::{Kind, labels};
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::world::World;
use crate::world::manifests::{nab, nab_with, namespace, object, storage};

/// The backup is refused, plainly and without a trace of it anywhere else.
fn assert_refused(world: &mut World) -> String {
    world.settle();
    let request = world.get("nab shop/daily");
    assert_eq!(request["status"]["phase"], "BackingOff", "{request}");
    assert_eq!(
        request["metadata"]["finalizers"].as_array().map_or(0, Vec::len),
        0,
        "a finalizer is left behind"
    );
    assert!(request["status"]["queueInfo"].is_null(), "what is refused waits in no queue");
    assert!(world.names(Kind::Backup).is_empty(), "Velero has something");
    let said = world.condition("nab shop/daily", "Accepted");
    said.strip_prefix("False/InvalidBackupSpec: ").unwrap_or_else(|| panic!("{said}")).to_owned()
}

fn assert_accepted(world: &mut World) {
    world.settle();
    assert_eq!(world.get("nab shop/daily")["status"]["phase"], "Created");
    assert_eq!(world.condition("nab shop/daily", "Accepted"), "True/BackupAccepted: the backup is allowed");
    assert_eq!(world.names(Kind::Backup), ["velero/shop-daily-<1>"]);
}

#[test]
fn a_refusal_is_one_write_and_one_event() {
    let mut world = World::with(&["shop"]);
    world.apply(nab_with("shop/daily", json!({"includedNamespaces": ["office"]})));
    assert_snapshot!(world.trace(), @r#"
    status NonAdminBackup shop/daily BackingOff Accepted=False/InvalidBackupSpec
    event Warning InvalidBackupSpec: spec.backupSpec.includedNamespaces: only "shop", the namespace of this object, can be backed up; leave the field out
    "#);
    world.apply(nab("shop/daily"));
    assert_snapshot!(world.trace(), @r"
    hold NonAdminBackup shop/daily
    create Backup velero/shop-daily-<1>
    status NonAdminBackup shop/daily Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=1
    event Normal BackupScheduled: Velero was given the backup as shop-daily-<1>
    ");
}

#[test]
fn every_rule_about_a_spec_refuses_and_heals() {
    let exec = |timeout: &str| json!([{"exec": {"command": ["sync"], "timeout": timeout}}]);
    let hook = |more: Value| {
        let mut hook = json!({"name": "flush"});
        hook.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"hooks": {"resources": [{"name": "first"}, hook]}})
    };
    let specs = [
        json!({"includedNamespaces": ["office"]}),
        json!({"includedNamespaces": ["shop", "office"]}),
        json!({"includedNamespaces": ["*"]}),
        json!({"includedNamespaces": ["sho*"]}),
        json!({"includedNamespaces": [""]}),
        json!({"excludedNamespaces": []}),
        json!({"includeClusterResources": true}),
        json!({"includedClusterScopedResources": ["*"]}),
        json!({"volumeSnapshotLocations": []}),
        json!({"includedResources": ["pods"], "excludedNamespaceScopedResources": ["secrets"]}),
        json!({"excludedResources": ["pods"], "excludedClusterScopedResources": ["nodes"]}),
        json!({"includeClusterResources": false, "includedNamespaceScopedResources": ["pods"]}),
        json!({"labelSelector": {"matchLabels": {"a": "b"}}, "orLabelSelectors": [{"matchLabels": {"a": "b"}}]}),
        json!({"ttl": "a month"}),
        json!({"ttl": "-24h"}),
        json!({"csiSnapshotTimeout": "10"}),
        json!({"itemOperationTimeout": "4 hours"}),
        hook(json!({"includedNamespaces": ["office"]})),
        hook(json!({"excludedNamespaces": ["office"]})),
        hook(json!({"pre": exec("soon")})),
        hook(json!({"post": exec("-1s")})),
        json!({"orderedResources": {"pods": "shop/a, office/b"}}),
        json!({"storageLocation": "bucket"}),
        json!({"resourcePolicy": {"kind": "ConfigMap", "name": "volumes"}}),
        json!({"resourcePolicy": {"kind": "Secret", "name": "volumes"}}),
        json!({"unheardOf": true}),
        json!({"hooks": {"resources": [{"name": "x", "init": {}}]}}),
        json!({"ttl": 24}),
    ];
    let mut said = String::new();
    for spec in specs {
        let mut world = World::with(&["shop", "office"]);
        world.apply(nab_with("shop/daily", spec));
        writeln!(said, "{}", assert_refused(&mut world)).unwrap();
        world.apply(nab("shop/daily"));
        assert_accepted(&mut world);
    }
    assert_snapshot!(said, @r#"
    spec.backupSpec.includedNamespaces: only "shop", the namespace of this object, can be backed up; leave the field out
    spec.backupSpec.includedNamespaces: only "shop", the namespace of this object, can be backed up; leave the field out
    spec.backupSpec.includedNamespaces: only "shop", the namespace of this object, can be backed up; leave the field out
    spec.backupSpec.includedNamespaces: only "shop", the namespace of this object, can be backed up; leave the field out
    spec.backupSpec.includedNamespaces: only "shop", the namespace of this object, can be backed up; leave the field out
    spec.backupSpec.excludedNamespaces: not available to namespace owners; leave the field out
    spec.backupSpec.includeClusterResources: cluster-scoped resources cannot be backed up; leave the field out or set it to false
    spec.backupSpec.includedClusterScopedResources: cluster-scoped resources cannot be backed up; leave the field out
    spec.backupSpec.volumeSnapshotLocations: not available to namespace owners; leave the field out
    spec.backupSpec.includedResources: cannot be used together with the filters for namespace-scoped and cluster-scoped resources; use one or the other
    spec.backupSpec.excludedResources: cannot be used together with the filters for namespace-scoped and cluster-scoped resources; use one or the other
    spec.backupSpec.includeClusterResources: cannot be used together with the filters for namespace-scoped and cluster-scoped resources; use one or the other
    spec.backupSpec.orLabelSelectors: cannot be used together with labelSelector; use one or the other
    spec.backupSpec.ttl: "a month" is not a duration; write for example 72h or 1h30m
    spec.backupSpec.ttl: "-24h" is not a duration; write for example 72h or 1h30m
    spec.backupSpec.csiSnapshotTimeout: "10" is not a duration; write for example 72h or 1h30m
    spec.backupSpec.itemOperationTimeout: "4 hours" is not a duration; write for example 72h or 1h30m
    spec.backupSpec.hooks.resources[1].includedNamespaces: may only name "shop", the namespace of this object; leave the field out
    spec.backupSpec.hooks.resources[1].excludedNamespaces: may only name "shop", the namespace of this object; leave the field out
    spec.backupSpec.hooks.resources[1].timeout: "soon" is not a duration; write for example 72h or 1h30m
    spec.backupSpec.hooks.resources[1].timeout: "-1s" is not a duration; write for example 72h or 1h30m
    spec.backupSpec.orderedResources[pods]: may only name objects of "shop", the namespace of this object, as shop/name
    spec.backupSpec.storageLocation: there is no NonAdminBackupStorageLocation "bucket" in this namespace; create it or name another; the backup starts when it is ready
    spec.backupSpec.resourcePolicy: must be a ConfigMap that the administrators have marked for tenants; ask them for its name
    spec.backupSpec.resourcePolicy: must be a ConfigMap that the administrators have marked for tenants; ask them for its name
    spec: cannot be read: unheardOf: this controller knows no such field; remove it
    spec: cannot be read: hooks.resources.0.init: this controller knows no such field; remove it
    spec: cannot be read: invalid type: integer `24`, expected a string
    "#);
}

#[test]
fn what_looks_odd_and_is_harmless_is_accepted() {
    let specs = [
        json!({"includedNamespaces": ["shop"]}),
        json!({"includedNamespaces": []}),
        json!({"includeClusterResources": false}),
        json!({"includedClusterScopedResources": []}),
        json!({"includedResources": ["*"], "includedNamespaceScopedResources": []}),
        json!({"orderedResources": {"pods": "shop/a,shop/b"}}),
        json!({"labelSelector": {"matchLabels": {"a": "b"}}, "orLabelSelectors": []}),
    ];
    for spec in specs {
        let mut world = World::with(&["shop"]);
        world.apply(nab_with("shop/daily", spec));
        assert_accepted(&mut world);
        assert_eq!(world.get("backup shop-daily-<1>")["spec"]["includedNamespaces"], json!(["shop"]));
    }
}

#[test]
fn a_location_must_be_there_approved_known_to_velero_and_reachable() {
    let mut world = World::with(&["shop"]);
    world.apply(nab_with("shop/daily", json!({"storageLocation": "bucket"})));
    let mut said = assert_refused(&mut world) + "\n";

    let storage = world.tenant_storage("shop/bucket");
    let storage = format!("bsl {storage}");
    let whole = world.get(&storage);
    world.delete(&storage);
    world.forge_status("nabsl shop/bucket", json!({"phase": "New"}));
    said += &(assert_refused(&mut world) + "\n");
    world.forge_status("nabsl shop/bucket", json!({"phase": "Created"}));
    said += &(assert_refused(&mut world) + "\n");
    world.apply(whole);
    world.edit(&storage, json!({"status": {"phase": "Unavailable"}}));
    said += &(assert_refused(&mut world) + "\n");
    assert_snapshot!(said, @r#"
    spec.backupSpec.storageLocation: there is no NonAdminBackupStorageLocation "bucket" in this namespace; create it or name another; the backup starts when it is ready
    spec.backupSpec.storageLocation: NonAdminBackupStorageLocation "bucket" is not ready; its conditions say why; the backup starts when it is
    spec.backupSpec.storageLocation: Velero does not have NonAdminBackupStorageLocation "bucket" yet; its conditions may say why; the backup starts when it has
    spec.backupSpec.storageLocation: Velero cannot reach NonAdminBackupStorageLocation "bucket"; its status says why; the backup starts when it can
    "#);

    world.edit(&storage, json!({"status": {"phase": "Available"}}));
    assert_accepted(&mut world);
}

#[test]
fn the_clusters_own_storage_is_waited_for_only_while_velero_cannot_reach_it() {
    let unavailable = json!({"status": {"phase": "Unavailable"}});
    let waiting = || {
        let mut world = World::with(&["shop"]);
        world.edit("bsl default", unavailable.clone());
        world.apply(nab("shop/daily"));
        let said = assert_refused(&mut world);
        assert!(
            said.ends_with("Velero cannot reach the cluster's storage; the backup starts when it can"),
            "{said}"
        );
        world
    };
    let mut world = waiting();
    world.edit("bsl default", json!({"status": {"phase": "Available"}}));
    assert_accepted(&mut world);
    // Another one becomes the default.
    let mut world = waiting();
    world.apply(storage("second", json!({"default": true})));
    world.edit("bsl default", json!({"spec": {"default": false}}));
    assert_accepted(&mut world);
    // Where Velero says nothing, it is left to Velero.
    let mut world = World::with(&["shop"]);
    world.edit("bsl default", json!({"status": {"phase": null}}));
    world.apply(nab("shop/daily"));
    assert_accepted(&mut world);
}

#[test]
fn a_location_of_another_namespace_is_not_there() {
    let mut world = World::with(&["shop", "office"]);
    let theirs = world.tenant_storage("office/bucket");
    world.apply(nab_with("shop/daily", json!({"storageLocation": "bucket"})));
    let missing = assert_refused(&mut world);
    world.tenant_storage("shop/bucket");
    let forged =
        json!({"phase": "Created", "veleroBackupStorageLocation": {"name": theirs, "nacuuid": theirs}});
    let mut world = World::with(&["shop", "office"]);
    world.tenant_storage("office/bucket");
    world.tenant_storage("shop/bucket");
    world.forge_status("nabsl shop/bucket", forged);
    world.apply(nab_with("shop/daily", json!({"storageLocation": "bucket"})));
    let forged = assert_refused(&mut world);
    assert_snapshot!(format!("{missing}\n{forged}"), @r#"
    spec.backupSpec.storageLocation: there is no NonAdminBackupStorageLocation "bucket" in this namespace; create it or name another; the backup starts when it is ready
    spec.backupSpec.storageLocation: Velero does not have NonAdminBackupStorageLocation "bucket" yet; its conditions may say why; the backup starts when it has
    "#);
    assert!(!forged.contains("office"));
}

#[test]
fn a_config_map_must_be_marked_for_tenants_and_refusals_do_not_tell_which_exist() {
    let mut world = World::with(&["shop"]);
    world.apply(nab_with("shop/daily", json!({"resourcePolicy": {"kind": "configmap", "name": "volumes"}})));
    let missing = assert_refused(&mut world);
    world.apply(object(Kind::ConfigMap, "velero/volumes", json!({})));
    let unmarked = assert_refused(&mut world);
    assert_eq!(missing, unmarked);
    world.edit("cm volumes", json!({"metadata": {"labels": {labels::TENANT_USABLE: "true"}}}));
    assert_accepted(&mut world);
}

#[test]
fn system_namespaces_and_veleros_own_cannot_ask() {
    let mut world = World::with(&["kube-system", "openshift-adp", "office"]);
    world.policy(|policy| policy.namespaces.excluded.push("off*".to_owned()));
    for place in ["velero/daily", "kube-system/daily", "openshift-adp/daily", "office/daily"] {
        world.apply(nab(place));
    }
    assert_snapshot!(world.trace(), @r"
    status NonAdminBackup kube-system/daily BackingOff Accepted=False/InvalidBackupSpec
    event Warning InvalidBackupSpec: metadata.namespace: backups cannot be asked for in this namespace; it is one of the cluster's own (kube-*, openshift-*); use a namespace of your own
    status NonAdminBackup office/daily BackingOff Accepted=False/InvalidBackupSpec
    event Warning InvalidBackupSpec: metadata.namespace: backups cannot be asked for in this namespace; the administrators' policy leaves it out
    status NonAdminBackup openshift-adp/daily BackingOff Accepted=False/InvalidBackupSpec
    event Warning InvalidBackupSpec: metadata.namespace: backups cannot be asked for in this namespace; it is one of the cluster's own (kube-*, openshift-*); use a namespace of your own
    status NonAdminBackup velero/daily BackingOff Accepted=False/InvalidBackupSpec
    event Warning InvalidBackupSpec: metadata.namespace: backups cannot be asked for in this namespace; it is Velero's own; use a namespace of your own
    ");
    world.policy(|policy| policy.namespaces.excluded.retain(|pattern| pattern != "off*"));
    world.settle();
    assert_eq!(world.names(Kind::Backup), ["velero/office-daily-<4>"]);
}

#[test]
fn an_object_without_a_spec_is_refused_and_can_be_mended_and_deleted() {
    let mut world = World::with(&["shop"]);
    let mut bare = nab("shop/daily");
    bare.as_object_mut().unwrap().remove("spec");
    world.apply(bare.clone());
    assert_snapshot!(assert_refused(&mut world), @"spec: cannot be read: missing field `spec`");
    world.apply(nab("shop/daily"));
    assert_accepted(&mut world);

    let mut world = World::with(&["shop"]);
    world.apply(bare);
    world.settle();
    world.delete("nab shop/daily");
    world.settle();
    assert!(!world.has("nab shop/daily"));
}

#[test]
fn somebody_elses_object_under_the_name_is_left_alone_and_waited_for() {
    let mut world = World::with(&["shop"]);
    let mut blocking =
        object(Kind::Backup, "velero/shop-daily-<1>", json!({"spec": {"includedNamespaces": ["x"]}}));
    world.apply(blocking.take());
    world.apply(nab("shop/daily"));
    world.settle();
    assert_snapshot!(world.condition("nab shop/daily", "Accepted"), @"False/InvalidBackupSpec: metadata.name: Velero already has an object under the name this backup would get; create the backup under another name");
    world.delete("backup shop-daily-<1>");
    assert_accepted(&mut world);
}

#[test]
fn a_refusal_that_changes_its_words_is_told_again_and_one_that_does_not_is_not() {
    let mut world = World::with(&["shop"]);
    world.apply(nab_with("shop/daily", json!({"ttl": "soon"})));
    world.settle();
    world.trace();
    world.policy(|_| ());
    assert_eq!(world.trace(), "", "nothing changed");
    world.apply(nab_with("shop/daily", json!({"ttl": "later"})));
    assert_snapshot!(world.trace(), @r#"
    status NonAdminBackup shop/daily BackingOff Accepted=False/InvalidBackupSpec
    event Warning InvalidBackupSpec: spec.backupSpec.ttl: "later" is not a duration; write for example 72h or 1h30m
    "#);
}

#[test]
fn a_namespace_that_comes_back_to_life_is_a_new_one() {
    let mut world = World::with(&["shop"]);
    world.apply(nab_with("shop/daily", json!({"ttl": "soon"})));
    world.settle();
    world.delete("ns shop");
    world.settle();
    assert!(!world.has("nab shop/daily") && !world.has("ns shop"));
    world.apply(namespace("shop"));
    world.apply(nab("shop/daily"));
    world.settle();
    assert_eq!(world.names(Kind::Backup), ["velero/shop-daily-<2>"]);
}
