//! Requests made with Velero's command line.

use std::time::Duration;

use api::{Kind, labels};
use insta::assert_snapshot;
use planner::policy::Downloads;
use serde_json::json;

use super::{asked, brief, copies, label, with_a_backup, world};
use crate::world::World;
use crate::world::manifests::object;
use crate::world::people::asked_by;

#[test]
fn a_backup_made_with_velero_is_a_request() {
    let mut world = world();
    let mut wish = asked("shop/asked", json!({"ttl": "48h0m0s", "includedResources": ["configmaps"]}));
    wish["metadata"]["labels"] = json!({"team": "tea", labels::SYNCED_FROM: "somebody-elses"});
    world.apply(wish);
    assert_snapshot!(brief(&mut world), @r"
    create NonAdminBackup shop/asked
    hold NonAdminBackup shop/asked
    create Backup velero/shop-asked-<1>
    status NonAdminBackup shop/asked Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=1
    event Normal BackupScheduled: Velero was given the backup as shop-asked-<1>
    patch Backup shop/asked
    ");
    let made = world.get("nab shop/asked");
    assert_eq!(made["spec"], json!({"backupSpec": {"ttl": "48h0m0s", "includedResources": ["configmaps"]}}));
    assert_eq!(made["metadata"]["labels"], json!({"team": "tea"}));
    world.velero_starts("shop-asked-<1>");
    world.velero_completes("shop-asked-<1>");
    world.settle();
    let copy = world.get("backup shop/asked");
    assert_eq!(copy["status"]["phase"], "Completed");
    assert_eq!(copy["spec"]["includedNamespaces"], json!(["shop"]));
    assert_eq!(copy["metadata"]["labels"]["team"], "tea");
    // It is a copy now: when its request goes, it goes, and is not asked for again.
    world.delete("nab shop/asked");
    world.settle();
    assert!(copies(&world).is_empty());
    assert_eq!(world.names(Kind::NonAdminBackup), Vec::<String>::new());
}

#[test]
fn a_restore_made_with_velero_is_a_request() {
    let mut world = with_a_backup();
    let wish = |backup: &str| {
        json!({"spec": {"backupName": backup, "includedNamespaces": ["*"], "excludedNamespaces": null, "hooks": {},
            "itemOperationTimeout": "0s", "uploaderConfig": {}}})
    };
    world.apply(object(Kind::Restore, "shop/back", wish("daily")));
    world.settle();
    assert_eq!(world.get("nar shop/back")["spec"], json!({"restoreSpec": {"backupName": "daily"}}));
    assert_eq!(world.get("restore shop/back")["spec"]["backupName"], "daily");
    world.velero_starts("shop-back-p-<r1>");
    world.velero_completes("shop-back-p-<r1>");
    world.settle();
    assert_eq!(world.get("restore shop/back")["status"]["phase"], "Completed");
    // One from nowhere, or from somebody else's, is refused as Velero would.
    world.apply(object(Kind::Restore, "shop/nothing", wish("theirs")));
    world.settle();
    let said = world.get("restore shop/nothing")["status"].clone();
    assert_eq!(said["phase"], "FailedValidation");
    assert!(said["validationErrors"][0].as_str().unwrap().contains("there is no NonAdminBackup"), "{said}");
    assert!(!world.has("nar shop/nothing"));
}

#[test]
fn what_is_not_allowed_is_refused_in_veleros_own_way_and_for_good() {
    let mut world = world();
    world.apply(asked("shop/theirs", json!({"includedNamespaces": ["shop", "rival"]})));
    world.apply(asked("shop/cluster", json!({"includeClusterResources": true})));
    world.apply(asked("shop/odd", json!({"noSuchField": 1})));
    assert_snapshot!(brief(&mut world), @r#"
    patch Backup shop/theirs
    event Warning RequestRefused: spec.includedNamespaces: only "shop", the namespace of this object, can be backed up; leave the field out
    patch Backup shop/cluster
    event Warning RequestRefused: spec.includeClusterResources: cluster-scoped resources cannot be backed up; leave the field out or set it to false
    patch Backup shop/odd
    event Warning RequestRefused: spec: cannot be read: noSuchField: this controller knows no such field; remove it
    "#);
    assert_eq!(world.get("backup shop/theirs")["status"]["phase"], "FailedValidation");
    world.edit("backup shop/theirs", json!({"spec": {"includedNamespaces": ["shop"]}}));
    world.settle();
    assert!(world.names(Kind::NonAdminBackup).is_empty());
    // `velero backup delete` takes it away.
    let wish = json!({"metadata": {"labels": {}}, "spec": {"backupName": "theirs"}});
    world.apply(object(Kind::DeleteBackupRequest, "shop/theirs-x", wish));
    world.settle();
    assert_eq!(copies(&world), ["Backup shop/cluster", "Backup shop/odd"]);
    // And time takes the rest: tenants may not delete these themselves.
    world.pass(Duration::from_hours(25));
    assert!(copies(&world).is_empty());
}

#[test]
fn velero_backup_delete_deletes_the_data() {
    let mut world = with_a_backup();
    let copy = world.get("backup shop/daily");
    let wish = json!({
        "metadata": {"labels": {labels::VELERO_BACKUP_NAME: "daily", labels::VELERO_BACKUP_UID: copy["metadata"]["uid"]}},
        "spec": {"backupName": "daily"},
    });
    world.apply(object(Kind::DeleteBackupRequest, "shop/daily-abcde", wish));
    assert_snapshot!(brief(&mut world), @r"
    patch NonAdminBackup shop/daily
    delete DeleteBackupRequest shop/daily-abcde
    status NonAdminBackup shop/daily Deleting Accepted=True/BackupAccepted Queued=True/BackupScheduled Deleting=True/DeletionPending(the backup and its data are being deleted) queue=0 velero=Completed request=unseen
    create DeleteBackupRequest velero/shop-daily-<1>-1
    event Normal DeletionRequested: Velero was asked to delete the backup with its data, and it was not recorded who asked
    create DeleteBackupRequest shop/shop-daily-<1>-1
    ");
    // What Velero makes of it is shown where `velero backup describe` looks for it.
    assert_eq!(copies(&world), ["Backup shop/daily", "DeleteBackupRequest shop/shop-daily-<1>-1"]);
    let shown = world.get("dbr shop/shop-daily-<1>-1");
    assert_eq!(shown["spec"]["backupName"], "daily");
    assert_eq!(shown["metadata"]["labels"][labels::VELERO_BACKUP_UID], copy["metadata"]["uid"]);
    world.velero_deletes();
    world.settle();
    assert!(copies(&world).is_empty() && world.names(Kind::NonAdminBackup).is_empty());
}

#[test]
fn velero_backup_delete_is_for_those_who_may_delete_the_request() {
    let wish =
        || object(Kind::DeleteBackupRequest, "shop/daily-abcde", json!({"spec": {"backupName": "daily"}}));
    let mut world = with_a_backup();
    world.may("eve", &["delete nonadminbackups.oadp.openshift.io/other"]);
    world.apply(asked_by("eve", wish()));
    world.settle();
    let refused = world.get("dbr shop/daily-abcde");
    assert_eq!(refused["status"]["phase"], "Processed");
    assert!(refused["status"]["errors"].to_string().contains("delete nonadminbackups"), "{refused}");
    assert!(world.get("nab shop/daily")["spec"]["deleteBackup"].is_null());

    let mut world = with_a_backup();
    world.may("ann", &["delete nonadminbackups.oadp.openshift.io/daily"]);
    world.apply(asked_by("ann", wish()));
    world.settle();
    assert_eq!(world.get("nab shop/daily")["spec"]["deleteBackup"], true);
}

#[test]
fn a_download_asked_for_with_velero_is_answered() {
    let mut world = with_a_backup();
    let ask = |kind: &str| json!({"spec": {"target": {"kind": kind, "name": "daily"}}});
    world.apply(object(Kind::DownloadRequest, "shop/closed", ask("BackupLog")));
    assert_snapshot!(brief(&mut world), @r"
    patch DownloadRequest shop/closed
    event Warning Error: spec.target.kind: BackupLog of a backup in the cluster's own storage cannot be downloaded; keep backups in a NonAdminBackupStorageLocation, or ask the administrators to allow it
    ");
    world.policy(|policy| policy.downloads.platform_storage = Downloads::Logs);
    world.apply(object(Kind::DownloadRequest, "shop/open", ask("BackupLog")));
    assert_snapshot!(brief(&mut world), @r"
    create DownloadRequest velero/nadr-<10:2>
    event Normal DownloadRequested: Velero was asked for the link, and it was not recorded who asked
    ");
    let uid = world.get("dr shop/open")["metadata"]["uid"].as_str().unwrap().to_owned();
    let velero = format!("dr nadr-{uid}");
    let expiration = "2026-01-01T00:10:00Z";
    world.edit(
        &velero,
        json!({"status": {"phase": "Processed", "downloadURL": "http://signed", "expiration": expiration}}),
    );
    world.settle();
    assert_eq!(
        world.get("dr shop/open")["status"],
        json!({"phase": "Processed", "downloadURL": "http://signed", "expiration": expiration})
    );
    // One whose asker is gone is removed at Velero, and all of it when its time is over.
    world.apply(object(Kind::DownloadRequest, "shop/left", ask("BackupLog")));
    world.settle();
    world.delete("dr shop/left");
    world.settle();
    assert_eq!(world.names(Kind::DownloadRequest).len(), 3, "closed, open and the one at Velero");
    world.pass(Duration::from_mins(11));
    assert!(world.names(Kind::DownloadRequest).is_empty());
}

/// A link that nobody is to see any more does not stay until it expires, or for ever.
#[test]
fn answered_downloads_go_with_the_label() {
    let mut world = with_a_backup();
    world.policy(|policy| policy.downloads.platform_storage = Downloads::Logs);
    let ask = json!({"spec": {"target": {"kind": "BackupLog", "name": "daily"}}});
    world.apply(object(Kind::DownloadRequest, "shop/open", ask.clone()));
    world.settle();
    let uid = world.get("dr shop/open")["metadata"]["uid"].as_str().unwrap().to_owned();
    let answer =
        json!({"phase": "Processed", "downloadURL": "http://signed", "expiration": "2026-01-01T00:10:00Z"});
    world.edit(&format!("dr nadr-{uid}"), json!({ "status": answer }));
    world.settle();
    assert_eq!(world.get("dr shop/open")["status"], answer);
    label(&mut world, json!("false"));
    // What somebody asks for now is not answered, and theirs.
    world.apply(object(Kind::DownloadRequest, "shop/late", ask));
    world.settle();
    assert_eq!(world.names(Kind::DownloadRequest), ["shop/late"]);
}

/// `velero backup create --wait` stops at `FailedValidation`: what starts by itself is `New`, with the reason.
#[test]
fn a_request_that_starts_by_itself_stays_new_and_says_why() {
    let mut world = world();
    world.refuse_creates(Kind::Backup, 403);
    world.apply(asked("shop/daily", json!({})));
    world.settle();
    assert!(world.condition("nab shop/daily", "Accepted").starts_with("False/HandOverFailed"));
    let shown = world.get("backup shop/daily")["status"].clone();
    assert_eq!(shown["phase"], "New");
    let why = shown["validationErrors"][0].as_str().unwrap();
    assert!(why.starts_with("Velero could not be given the backup"), "{why}");

    world.relent();
    world.pass(Duration::from_mins(10));
    assert_eq!(world.get("nab shop/daily")["status"]["phase"], "Created");
    world.velero_starts("shop-daily-<1>");
    world.settle();
    let shown = world.get("backup shop/daily")["status"].clone();
    assert_eq!(
        (&shown["phase"], &shown["validationErrors"]),
        (&json!("InProgress"), &json!(null)),
        "{shown}"
    );

    // The same for a restore, which first waits for its backup and then for the API server.
    let wish = json!({"spec": {"backupName": "daily", "includedNamespaces": ["*"]}});
    world.refuse_creates(Kind::Restore, 403);
    world.apply(object(Kind::Restore, "shop/back", wish));
    world.settle();
    let says = |world: &World| {
        let shown = world.get("restore shop/back")["status"].clone();
        format!("{} {}", shown["phase"], shown["validationErrors"][0])
    };
    assert!(says(&world).starts_with("\"New\""), "{}", says(&world));
    assert!(says(&world).contains("is not finished; the restore starts when it is"), "{}", says(&world));
    world.velero_completes("shop-daily-<1>");
    world.settle();
    assert!(says(&world).starts_with("\"New\" \"Velero could not be given the restore"), "{}", says(&world));
    world.relent();
    world.pass(Duration::from_mins(10));
    assert_eq!(world.get("nar shop/back")["status"]["phase"], "Created");
}

/// E1: Secrets that one may not read are copied into a bucket of one's own, by asking with Velero's own command line
#[test]
fn e1_whoever_asks_with_velero_asks_as_themselves() {
    let mut world = world();
    world.tenant_storage("shop/bucket");
    world.may("eve", &["get configmaps", "list configmaps"]);
    world.apply(asked_by("eve", asked("shop/asked", json!({"storageLocation": "bucket"}))));
    world.settle();
    let record = world.get("nab shop/asked")["metadata"]["annotations"][labels::REQUESTER].clone();
    assert!(record.as_str().is_some_and(|record| record.contains("\"eve\"")), "{record}");
    let velero = world.velero_name("nab shop/asked");
    let excluded = world.get(&format!("backup {velero}"))["spec"]["excludedResources"].clone();
    assert!(excluded.as_array().is_some_and(|all| all.contains(&json!("secrets"))), "{excluded}");
}
