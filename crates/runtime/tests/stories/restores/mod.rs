//! NonAdminRestore: it runs once, from a backup of the own namespace that Velero is done with.

mod refusals;
mod stuck;
mod volumes;

use api::{Kind, labels};
use insta::assert_snapshot;
use serde_json::json;

use crate::world::manifests::{imported, nab, nar, nar_with, object, origin};
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
    create Restore velero/shop-again-p-<r1>
    status NonAdminRestore shop/again Created Accepted=True/RestoreAccepted Queued=True/RestoreScheduled queue=1
    event Normal RestoreScheduled: Velero was given the restore as shop-again-p-<r1>
    ");
    world.velero_starts("shop-again-p-<r1>");
    world.velero_progresses("shop-again-p-<r1>", 1, 4);
    assert_snapshot!(world.trace(), @r"
    status NonAdminRestore shop/again Created Accepted=True/RestoreAccepted Queued=True/RestoreScheduled queue=1 velero=InProgress 1/4
    event Normal RestoreStarted: Velero has started the restore
    ");
    world.velero_says("shop-again-p-<r1>", json!({"phase": "WaitingForPluginOperations"}));
    world.settle();
    world.velero_says("shop-again-p-<r1>", json!({"phase": "Finalizing"}));
    world.settle();
    world.trace();
    world.velero_completes("shop-again-p-<r1>");
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
    world.apply(volume(Kind::PodVolumeRestore, "a", "shop-again-p-<r1>", "Completed"));
    world.apply(volume(Kind::PodVolumeRestore, "b", "shop-again-p-<r1>", "Failed"));
    world.apply(volume(Kind::PodVolumeRestore, "c", "somebody-elses", "Completed"));
    world.apply(volume(Kind::DataDownload, "d", "shop-again-p-<r1>", "InProgress"));
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
    assert_snapshot!(world.show("restore shop-again-p-<r1>", "metadata"), @r#"
    {
      "annotations": {
        "nacre.dev/origin-namespace-uid": "<n2>",
        "nacre.dev/origin-uid": "<r1>",
        "nacre.dev/queue-tag": "0/0/100/30000",
        "openshift.io/oadp-nar-origin-name": "again",
        "openshift.io/oadp-nar-origin-namespace": "shop",
        "velero.io/pod-volume-timeout": "24h"
      },
      "creationTimestamp": "2026-01-01T00:00:00Z",
      "generation": 1,
      "labels": {
        "app.kubernetes.io/managed-by": "oadp-nac-controller",
        "openshift.io/oadp": "True",
        "openshift.io/oadp-nar-origin-nacuuid": "shop-again-p-<r1>"
      },
      "name": "shop-again-p-<r1>",
      "namespace": "velero",
      "resourceVersion": "14",
      "uid": "<7:1>"
    }
    "#);
    assert_snapshot!(world.show("restore shop-again-p-<r1>", "spec"), @r#"
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
        "nonadminschedules.oadp.openshift.io",
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
fn it_never_runs_twice() {
    let mut world = completed();
    world.apply(nar("shop/again", "daily"));
    world.settle();
    world.velero_starts("shop-again-p-<r1>");
    world.velero_completes("shop-again-p-<r1>");
    world.trace();
    world.delete("restore shop-again-p-<r1>");
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
    world.velero_starts("shop-again-p-<r1>");
    world.velero_completes("shop-again-p-<r1>");
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
    world.velero_starts("shop-again-p-<r1>");
    world.trace();
    world.delete("nar shop/again");
    assert_snapshot!(world.trace(), @"status NonAdminRestore shop/again Deleting Accepted=True/RestoreAccepted Queued=True/RestoreScheduled Deleting=True/DeletionPending(Velero is at work on it: volumes are being cancelled, and the Velero Restore is removed when Velero has ended it) queue=1 velero=InProgress");
    world.velero_completes("shop-again-p-<r1>");
    assert_snapshot!(world.trace(), @r"
    status NonAdminRestore shop/again Deleting Accepted=True/RestoreAccepted Queued=True/RestoreScheduled Deleting=True/DeletionPending(the Velero Restore is being removed) queue=0 velero=Completed
    delete Restore velero/shop-again-p-<r1>
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
fn a_restore_from_what_came_out_of_storage() {
    let mut world = World::with(&["shop"]);
    world.apply(imported("shop-daily-old", "default", origin("shop", "daily")));
    let mut synced = nab("shop/daily");
    synced["metadata"]["labels"] = json!({labels::SYNCED_FROM: "shop-daily-old"});
    world.apply(synced);
    world.apply(nar("shop/again", "daily"));
    world.settle();
    assert_eq!(world.get("restore shop-again-p-<r1>")["spec"]["backupName"], long("shop-daily-old"));
}

#[test]
fn a_name_that_velero_has_already_is_not_taken_from_anybody() {
    let mut world = completed();
    // Somebody is quicker than nacre, which under faults may not be so.
    world.stop_recording();
    world.apply(nar("shop/again", "daily"));
    let taken = format!("velero/{}", world.velero_name("nar shop/again"));
    world.apply(object(Kind::Restore, &taken, json!({"spec": {"backupName": "by-hand"}})));
    world.settle();
    assert_snapshot!(world.condition("nar shop/again", "Accepted"), @"False/InvalidRestoreSpec: metadata.name: Velero already has an object under the name this restore would get; create it under another name");
}

/// The Go controller wrote no uids, so that only names identify the owner of its objects.
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
