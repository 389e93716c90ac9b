//! NonAdminRestore: it runs once, from a backup of the own namespace that Velero is done with.

use std::fmt::Write;

use api::{Kind, labels};
use insta::{allow_duplicates, assert_snapshot};
use serde_json::{Value, json};

use crate::world::manifests::{imported, nab, nab_with, nar, nar_with, object, origin};
use crate::world::{World, long};

/// A world with one completed backup.
fn completed() -> World {
    World::with(&["shop", "office"]).backed_up()
}

#[test]
fn a_restore_is_made_in_three_writes_and_mirrored() {
    let mut world = completed();
    world.apply(nar("shop/again", "daily"));
    assert_snapshot!(world.trace(), @r"
    hold NonAdminRestore shop/again
    create Restore velero/shop-again-<r1>
    status NonAdminRestore shop/again Created Accepted=True/RestoreAccepted Queued=True/RestoreScheduled queue=1
    event Normal RestoreScheduled: Velero was given the restore as shop-again-<r1>
    ");
    world.velero_starts("shop-again-<r1>");
    world.velero_progresses("shop-again-<r1>", 1, 4);
    assert_snapshot!(world.trace(), @r"
    status NonAdminRestore shop/again Created Accepted=True/RestoreAccepted Queued=True/RestoreScheduled queue=1 velero=InProgress 1/4
    event Normal RestoreStarted: Velero has started the restore
    ");
    world.velero_says("shop-again-<r1>", json!({"phase": "WaitingForPluginOperations"}));
    world.settle();
    world.velero_says("shop-again-<r1>", json!({"phase": "Finalizing"}));
    world.settle();
    world.trace();
    world.velero_completes("shop-again-<r1>");
    assert_snapshot!(world.trace(), @r"
    status NonAdminRestore shop/again Created Accepted=True/RestoreAccepted Queued=True/RestoreScheduled queue=0 velero=Completed 1/4
    event Normal RestoreCompleted: the restore is complete
    ");
}

#[test]
fn its_volumes_are_counted() {
    let mut world = completed();
    world.apply(nar("shop/again", "daily"));
    world.settle();
    let volume = |kind: Kind, name: &str, of: &str, phase: &str| {
        let labels = json!({labels::VELERO_RESTORE_NAME: long(of)});
        let rest = json!({"metadata": {"labels": labels}, "spec": {}, "status": {"phase": phase}});
        object(kind, &format!("velero/{name}"), rest)
    };
    world.apply(volume(Kind::PodVolumeRestore, "a", "shop-again-<r1>", "Completed"));
    world.apply(volume(Kind::PodVolumeRestore, "b", "shop-again-<r1>", "Failed"));
    world.apply(volume(Kind::PodVolumeRestore, "c", "somebody-elses", "Completed"));
    world.apply(volume(Kind::DataDownload, "d", "shop-again-<r1>", "InProgress"));
    world.settle();
    let status = world.get("nar shop/again")["status"].clone();
    assert_eq!(status["fileSystemPodVolumeRestores"], json!({"total": 2, "completed": 1, "failed": 1}));
    assert_eq!(status["dataMoverDataDownloads"], json!({"total": 1, "inProgress": 1}));
}

#[test]
fn what_is_written_is_complete() {
    let mut world = completed();
    world.apply(nar("shop/again", "daily"));
    world.settle();
    assert_snapshot!(world.show("restore shop-again-<r1>", "metadata"), @r#"
    {
      "annotations": {
        "nacre.dev/origin-namespace-uid": "<n2>",
        "nacre.dev/origin-uid": "<r1>",
        "openshift.io/oadp-nar-origin-name": "again",
        "openshift.io/oadp-nar-origin-namespace": "shop"
      },
      "creationTimestamp": "2026-01-01T00:00:00Z",
      "generation": 1,
      "labels": {
        "app.kubernetes.io/managed-by": "oadp-nac-controller",
        "openshift.io/oadp": "True",
        "openshift.io/oadp-nar-origin-nacuuid": "shop-again-<r1>"
      },
      "name": "shop-again-<r1>",
      "namespace": "velero",
      "resourceVersion": "14",
      "uid": "<7:1>"
    }
    "#);
    assert_snapshot!(world.show("restore shop-again-<r1>", "spec"), @r#"
    {
      "backupName": "shop-daily-<1>",
      "excludedResources": [
        "cloudstorages.oadp.openshift.io",
        "dataprotectionapplications.oadp.openshift.io",
        "dataprotectiontests.oadp.openshift.io",
        "nonadminbackups.oadp.openshift.io",
        "nonadminbackupstoragelocationrequests.oadp.openshift.io",
        "nonadminbackupstoragelocations.oadp.openshift.io",
        "nonadmindownloadrequests.oadp.openshift.io",
        "nonadminrestores.oadp.openshift.io",
        "backups.velero.io",
        "restores.velero.io",
        "backupstoragelocations.velero.io",
        "deletebackuprequests.velero.io",
        "downloadrequests.velero.io",
        "serverstatusrequests.velero.io",
        "podvolumebackups.velero.io",
        "podvolumerestores.velero.io",
        "datauploads.velero.io",
        "datadownloads.velero.io",
        "schedules.velero.io",
        "backuprepositories.velero.io",
        "volumesnapshotlocations.velero.io",
        "*.oadp.openshift.io",
        "*.velero.io",
        "virtualmachineinstancemigrations.kubevirt.io",
        "volumesnapshotclasses",
        "namespaces",
        "resourcequotas",
        "limitranges"
      ],
      "includedNamespaces": [
        "shop"
      ]
    }
    "#);
}

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
        assert_eq!(world.names(Kind::Restore), ["velero/shop-again-<r1>"]);
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
    create Restore velero/shop-again-<r1>
    status NonAdminRestore shop/again Created Accepted=True/RestoreAccepted Queued=True/RestoreScheduled queue=1
    event Normal RestoreScheduled: Velero was given the restore as shop-again-<r1>
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
    world.stop_tape();
    world.edit("backup shop-daily-<1>", json!({"metadata": {"finalizers": ["example.com/archive"]}}));
    world.delete("nab shop/daily");
    // Two watches may tell of two things in either order: nacre has seen this one.
    world.settle();
    world.apply(nar("shop/again", "daily"));
    world.settle();
    assert_snapshot!(world.condition("nar shop/again", "Accepted"), @r#"False/InvalidRestoreSpec: spec.restoreSpec.backupName: NonAdminBackup "daily" is being deleted; name another"#);

    let mut world = completed();
    // A restore that is decided about before nacre hears of the deletion is made.
    world.stop_tape();
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
        allow_duplicates! { assert_snapshot!(world.condition("nar shop/again", "Accepted"), @r#"False/InvalidRestoreSpec: spec.restoreSpec.backupName: the storage location of NonAdminBackup "daily" is not there; it cannot be restored until it is back"#) };
        world.apply(whole);
        world.settle();
        assert_eq!(world.get("nar shop/again")["status"]["phase"], "Created");
    }
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
fn it_never_runs_twice() {
    let mut world = completed();
    world.apply(nar("shop/again", "daily"));
    world.settle();
    world.velero_starts("shop-again-<r1>");
    world.velero_completes("shop-again-<r1>");
    world.trace();
    world.delete("restore shop-again-<r1>");
    world.velero_tidies();
    assert_snapshot!(world.trace(), @r"
    release NonAdminRestore shop/again
    status NonAdminRestore shop/again BackingOff Accepted=False/VeleroRestoreNotFound Queued=True/RestoreScheduled velero=Completed
    event Warning VeleroRestoreNotFound: the Velero Restore is gone and does not run again; create a new NonAdminRestore
    ");
    world.apply(nar_with("shop/again", json!({"backupName": "daily", "restorePVs": false})));
    world.policy(|_| ());
    world.settle();
    assert!(world.names(Kind::Restore).is_empty());
}

#[test]
fn once_velero_has_it_nothing_turns_it_back() {
    let mut world = completed();
    world.apply(nar("shop/again", "daily"));
    world.settle();
    world.trace();
    world.delete("nab shop/daily");
    world.policy(|policy| policy.namespaces.excluded.push("shop".to_owned()));
    world.settle();
    world.trace();
    world.velero_starts("shop-again-<r1>");
    world.velero_completes("shop-again-<r1>");
    assert_snapshot!(world.trace(), @r"
    status NonAdminRestore shop/again Created Accepted=True/RestoreAccepted Queued=True/RestoreScheduled queue=0 velero=Completed
    event Normal RestoreCompleted: the restore is complete
    ");
}

#[test]
fn deleting_waits_until_velero_has_tidied_up() {
    let mut world = completed();
    world.apply(nar("shop/again", "daily"));
    world.settle();
    world.velero_starts("shop-again-<r1>");
    world.trace();
    world.delete("nar shop/again");
    assert_snapshot!(world.trace(), @r"
    status NonAdminRestore shop/again Deleting Accepted=True/RestoreAccepted Queued=True/RestoreScheduled Deleting=True/DeletionPending(the Velero Restore is being removed) queue=1 velero=InProgress
    delete Restore velero/shop-again-<r1>
    ");
    world.velero_tidies();
    assert_snapshot!(world.trace(), @r"
    release NonAdminRestore shop/again
    event Normal RestoreDeleted: the restore is gone
    ");
    assert!(!world.has("nar shop/again"));
}

#[test]
fn nothing_blocks_its_deletion() {
    let wishes =
        [json!(null), json!({"restoreSpec": {"backupName": "daily"}}), json!({"restoreSpec": {"x": 1}})];
    for wish in wishes {
        for status in
            [json!(null), json!({"phase": "Deleting"}), json!({"veleroRestore": {"nacuuid": "nowhere"}})]
        {
            let mut world = World::with(&["shop"]);
            let mut request = nar("shop/again", "daily");
            request["spec"] = wish.clone();
            request["metadata"]["finalizers"] = json!([labels::NAR_FINALIZER]);
            world.apply(request);
            world.forge_status("nar shop/again", status);
            world.delete("nar shop/again");
            world.settle();
            assert!(!world.has("nar shop/again"));
        }
    }
}

#[test]
fn what_the_go_controller_made_is_taken_over() {
    let mut world = completed();
    let mut velero = object(
        Kind::Restore,
        "velero/shop-again-0b8d1a52",
        json!({"spec": {"includedNamespaces": ["shop"]}}),
    );
    velero["metadata"]["annotations"] = json!({labels::NAR_NAMESPACE: "shop", labels::NAR_NAME: "again"});
    world.apply(velero);
    world.apply(nar("shop/again", "daily"));
    world.forge_status(
        "nar shop/again",
        json!({"phase": "Created", "veleroRestore": {"nacuuid": "shop-again-0b8d1a52"}}),
    );
    assert_snapshot!(world.trace(), @r#"
    hold NonAdminRestore shop/again
    patch Restore velero/shop-again-0b8d1a52 {"metadata":{"annotations":{"nacre.dev/origin-namespace-uid":"<n2>","nacre.dev/origin-uid":"<r1>"}}}
    status NonAdminRestore shop/again Created Accepted=True/RestoreAccepted Queued=True/RestoreScheduled queue=1
    "#);
    assert_eq!(world.names(Kind::Restore), ["velero/shop-again-0b8d1a52"]);
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
    assert_eq!(world.get("restore shop-again-<r1>")["spec"]["existingResourcePolicy"], "none");
}

#[test]
fn a_restore_from_what_came_out_of_storage() {
    let mut world = World::with(&["shop"]);
    world.apply(imported("shop-daily-old", "default", origin("shop", "daily")));
    let mut synced = nab("shop/daily");
    synced["metadata"]["labels"] = json!({labels::SYNCED_FROM: "shop-daily-old"});
    world.apply(synced);
    world.apply(nar("shop/again", "daily"));
    world.settle();
    assert_eq!(world.get("restore shop-again-<r1>")["spec"]["backupName"], long("shop-daily-old"));
}

#[test]
fn nothing_is_restored_into_a_namespace_on_its_way_out() {
    let mut world = completed();
    // Under faults the restore may be heard of before it is heard that the namespace goes.
    world.stop_tape();
    world.edit("ns shop", json!({"metadata": {"finalizers": ["example.com/kept"]}}));
    world.delete("ns shop");
    world.apply(nar("shop/again", "daily"));
    world.settle();
    assert_snapshot!(world.condition("nar shop/again", "Accepted"), @"False/InvalidRestoreSpec: metadata.namespace: the namespace is being deleted; nothing is restored into it");
    assert!(world.names(Kind::Restore).is_empty());
}

#[test]
fn a_name_that_velero_has_already_is_not_taken_from_anybody() {
    let mut world = completed();
    // Somebody is quicker than nacre, which under faults may not be so.
    world.stop_tape();
    world.apply(nar("shop/again", "daily"));
    let uid = world.get("nar shop/again")["metadata"]["uid"].as_str().unwrap().to_owned();
    let taken = format!("velero/{}", api::velero_name("shop", "again", &uid));
    world.apply(object(Kind::Restore, &taken, json!({"spec": {"backupName": "by-hand"}})));
    world.settle();
    assert_snapshot!(world.condition("nar shop/again", "Accepted"), @"False/InvalidRestoreSpec: metadata.name: Velero already has an object under the name this restore would get; create it under another name");
}

/// The Go controller wrote no uids, so that only names tell whose its objects are.
#[test]
fn a_hint_does_not_lead_to_what_the_go_controller_made_for_somebody_else() {
    let mut world = completed();
    let mut theirs =
        object(Kind::Restore, "velero/office-back-0b8d1a52", json!({"spec": {"backupName": "x"}}));
    theirs["metadata"]["annotations"] = json!({labels::NAR_NAMESPACE: "office", labels::NAR_NAME: "back"});
    world.apply(theirs.clone());
    world.apply(nar("shop/again", "daily"));
    world.forge_status(
        "nar shop/again",
        json!({"phase": "Created", "veleroRestore": {"nacuuid": "office-back-0b8d1a52"}}),
    );
    world.settle();
    let found = world.get("restore office-back-0b8d1a52");
    assert_eq!(found["metadata"]["annotations"], theirs["metadata"]["annotations"]);
    assert_eq!(world.get("nar shop/again")["status"]["phase"], "BackingOff");
}

#[test]
fn a_hook_is_kept_within_the_namespace() {
    let mut world = completed();
    let exec = json!({"container": "app", "command": ["/warm-up"]});
    let hook = json!({"name": "warm-up", "includedNamespaces": ["shop"], "postHooks": [{"exec": exec}]});
    world.apply(nar_with("shop/again", json!({"backupName": "daily", "hooks": {"resources": [hook]}})));
    world.settle();
    assert_eq!(world.get("restore shop-again-<r1>")["spec"]["hooks"]["resources"], json!([hook]));
}
