//! Velero's own tools for tenants: copies that follow the truth, requests made with Velero's command line, and forgeries
//! that lead nowhere.

use std::time::Duration;

use api::{Kind, labels};
use insta::assert_snapshot;
use planner::Action;
use planner::policy::{Downloads, VeleroView};
use serde_json::{Value, json};

use crate::world::World;
use crate::world::manifests::{nab, nab_with, nar, object};

/// A world in which the owners of `shop` have Velero's objects before them, and those of `rival` do not.
fn world() -> World {
    let mut world = World::with(&["shop", "rival"]);
    label(&mut world, json!("true"));
    world
}

fn label(world: &mut World, value: Value) {
    world.edit("ns shop", json!({"metadata": {"labels": {labels::VELERO_VIEW: value}}}));
}

/// What `velero backup create` sends.
fn asked(place: &str, spec: Value) -> Value {
    let mut all = json!({
        "csiSnapshotTimeout": "0s", "hooks": {}, "includedNamespaces": ["*"], "itemOperationTimeout": "0s",
        "metadata": {}, "ttl": "0s",
    });
    all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    object(Kind::Backup, place, json!({"spec": all, "status": {}}))
}

/// A world with one complete backup.
fn with_a_backup() -> World {
    let mut world = world();
    world.apply(nab("shop/daily"));
    world.settle();
    world.velero_starts("shop-daily-<1>");
    world.velero_completes("shop-daily-<1>");
    world.trace();
    world
}

/// What nacre did, without what it wrote.
fn brief(world: &mut World) -> String {
    let trace = world.trace();
    let lines = trace.lines().map(|line| line.split_once(" {").map_or(line, |(brief, _)| brief));
    lines.collect::<Vec<_>>().join("\n")
}

/// The annotations and labels of an object.
fn marks(world: &World, object: &str) -> String {
    let metadata = &world.get(object)["metadata"];
    let all = ["annotations", "labels"].map(|kind| metadata[kind].as_object().cloned().unwrap_or_default());
    let lines = all.iter().flatten().map(|(name, value)| format!("{name}: {}", value.as_str().unwrap()));
    crate::world::short(&lines.collect::<Vec<_>>().join("\n"))
}

/// All copies, as `Kind namespace/name`.
fn copies(world: &World) -> Vec<String> {
    let shown = world
        .everything()
        .filter(|(key, _)| key.kind.group() == Kind::Backup.group() && key.namespace != crate::world::ADMIN);
    shown
        .map(|(key, _)| format!("{} {}/{}", key.kind.name(), key.namespace, crate::world::short(&key.name)))
        .collect()
}

#[test]
fn a_copy_follows_velero_by_one_write_for_each_change() {
    let mut world = world();
    world.apply(nab("shop/daily"));
    assert_snapshot!(brief(&mut world), @r"
    hold NonAdminBackup shop/daily
    create Backup velero/shop-daily-<1>
    status NonAdminBackup shop/daily Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=1
    event Normal BackupScheduled: Velero was given the backup as shop-daily-<1>
    create Backup shop/daily
    ");
    world.velero_starts("shop-daily-<1>");
    assert_snapshot!(brief(&mut world), @r"
    status NonAdminBackup shop/daily Created Accepted=True/BackupAccepted Queued=True/BackupScheduled queue=1 velero=InProgress
    event Normal BackupStarted: Velero has started the backup
    patch Backup shop/daily
    ");
    let before = world.writes();
    world.velero_progresses("shop-daily-<1>", 3, 7);
    world.settle();
    assert_eq!(world.writes() - before, 2, "the request and the copy");
    world.velero_completes("shop-daily-<1>");
    world.settle();
    assert_snapshot!(marks(&world, "backup shop/daily"), @r"
    nacre.dev/origin-namespace-uid: <n2>
    nacre.dev/origin-uid: <1>
    nacre.dev/spec-digest: 08f44b07b5901a25
    openshift.io/oadp-nab-origin-name: daily
    openshift.io/oadp-nab-origin-namespace: shop
    app.kubernetes.io/managed-by: oadp-nac-controller
    nacre.dev/shown: copy
    openshift.io/oadp: True
    openshift.io/oadp-nab-origin-nacuuid: shop-daily-<1>
    velero.io/exclude-from-backup: true
    ");
    let (copy, truth) = (world.get("backup shop/daily"), world.get("backup shop-daily-<1>"));
    assert_eq!((&copy["spec"], &copy["status"]), (&truth["spec"], &truth["status"]));
}

#[test]
fn what_is_changed_or_removed_comes_back_and_changes_nothing_outside() {
    let mut world = with_a_backup();
    let truth = world.get("backup shop-daily-<1>");
    let copy = world.get("backup shop/daily");
    world.edit(
        "backup shop/daily",
        json!({
            "metadata": {"labels": {labels::SHOWN: null, labels::NAB_NACUUID: "rival-daily-x"}, "annotations": {labels::NAB_NAMESPACE: "rival"}},
            "spec": {"includedNamespaces": ["rival"], "storageLocation": "theirs", "hooks": {"resources": []}},
            "status": {"phase": "Failed", "errors": 7},
        }),
    );
    world.settle();
    let mended = world.get("backup shop/daily");
    for part in ["spec", "status"] {
        assert_eq!(mended[part], copy[part], "{part}");
    }
    assert_eq!(mended["metadata"]["labels"], copy["metadata"]["labels"]);
    assert_eq!(mended["metadata"]["annotations"], copy["metadata"]["annotations"]);
    world.delete("backup shop/daily");
    world.settle();
    assert_eq!(world.get("backup shop/daily")["status"], copy["status"]);
    assert_eq!(world.get("backup shop-daily-<1>"), truth);
    assert_eq!(world.names(Kind::NonAdminBackup), ["shop/daily"]);
}

#[test]
fn marks_of_other_programs_stay() {
    let mut world = with_a_backup();
    world.edit("backup shop/daily", json!({"metadata": {"labels": {"team": "tea"}}}));
    assert_snapshot!(world.trace(), @"");
}

#[test]
fn a_copy_goes_with_its_request_and_the_copies_with_the_label() {
    let mut world = with_a_backup();
    world.apply(nar("shop/back", "daily"));
    world.settle();
    world.tenant_storage("shop/bucket");
    world.settle();
    assert_eq!(
        copies(&world),
        ["Backup shop/daily", "Restore shop/back", "BackupStorageLocation shop/bucket"]
    );
    world.delete("nar shop/back");
    world.settle();
    assert_eq!(copies(&world), ["Backup shop/daily", "BackupStorageLocation shop/bucket"]);

    // Only ours: what somebody else put there stays.
    let foreign = json!({"spec": {}, "status": {"phase": "Completed"}});
    world.apply(object(Kind::Backup, "shop/foreign", foreign));
    label(&mut world, json!("false"));
    world.settle();
    assert_eq!(copies(&world), ["Backup shop/foreign"]);
    label(&mut world, json!("true"));
    world.settle();
    assert_eq!(
        copies(&world),
        ["Backup shop/daily", "Backup shop/foreign", "BackupStorageLocation shop/bucket"]
    );
}

#[test]
fn the_policy_can_say_all_or_off() {
    let mut world = with_a_backup();
    world.apply(nab("rival/weekly"));
    world.settle();
    assert_eq!(copies(&world), ["Backup shop/daily"]);
    world.policy(|policy| policy.views.velero = VeleroView::All);
    world.settle();
    assert_eq!(copies(&world), ["Backup rival/weekly", "Backup shop/daily"]);
    world.policy(|policy| policy.views.velero = VeleroView::Off);
    world.settle();
    assert!(copies(&world).is_empty());
}

#[test]
fn while_nobody_can_tell_what_is_allowed_copies_stay_as_they_are() {
    let mut world = with_a_backup();
    world.policy_cannot_be_read();
    label(&mut world, json!(null));
    assert_snapshot!(world.trace(), @"");
    assert_eq!(copies(&world), ["Backup shop/daily"]);
}

#[test]
fn with_nobody_to_see_it_nothing_is_made() {
    let mut world = World::with(&["shop"]);
    world.apply(nab("shop/daily"));
    world.settle();
    world.apply(asked("shop/asked", json!({})));
    let before = world.writes();
    world.settle();
    assert_eq!(copies(&world), ["Backup shop/asked"], "only what somebody put there");
    assert_eq!(world.writes(), before);
    assert_eq!(world.names(Kind::NonAdminBackup), ["shop/daily"]);
}

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
    world.velero_starts("shop-back-<r1>");
    world.velero_completes("shop-back-<r1>");
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
fn forged_copies_lead_nowhere() {
    let mut world = with_a_backup();
    world.apply(nab("rival/secret"));
    world.settle();
    world.velero_starts("rival-secret-<2>");
    world.velero_completes("rival-secret-<2>");
    world.settle();
    let before = world.writes();
    let rivals = world.get("backup rival-secret-<2>");
    // A complete backup that never was, under a name of its own, and under Velero's name of somebody else's.
    for name in ["stolen", "rival-secret-<2>"] {
        let forged = json!({
            "metadata": {"labels": rivals["metadata"]["labels"], "annotations": rivals["metadata"]["annotations"]},
            "spec": {"storageLocation": "default", "includedNamespaces": ["rival"]},
            "status": {"phase": "Completed", "completionTimestamp": "2026-01-01T00:00:00Z"},
        });
        world.apply(object(Kind::Backup, &format!("shop/{name}"), forged));
    }
    world.settle();
    assert_eq!(world.writes(), before, "left alone");
    // Nothing is restored from it, no link leads to it, and nothing is deleted by it.
    for (at, name) in ["stolen", "rival-secret-<2>"].into_iter().enumerate() {
        let name = crate::world::long(name);
        let wish = json!({"spec": {"backupName": name, "includedNamespaces": ["*"]}});
        world.apply(object(Kind::Restore, &format!("shop/theft-{at}"), wish.clone()));
        let target = json!({"spec": {"target": {"kind": "BackupContents", "name": name}}});
        world.apply(object(Kind::DownloadRequest, &format!("shop/link-{at}"), target));
        world.apply(object(
            Kind::DeleteBackupRequest,
            &format!("shop/gone-{at}"),
            json!({"spec": {"backupName": name}}),
        ));
        world.settle();
        assert_eq!(world.get(&format!("restore shop/theft-{at}"))["status"]["phase"], "FailedValidation");
        let link = world.get(&format!("dr shop/link-{at}"))["status"]["downloadURL"].clone();
        assert!(
            link.as_str().unwrap().starts_with("refused:spec.target.name: there is no NonAdminBackup"),
            "{link}"
        );
        let said = world.get(&format!("dbr shop/gone-{at}"))["status"].clone();
        assert!(said["errors"][0].as_str().unwrap().contains("there is no backup"), "{said}");
    }
    assert_eq!(world.get("backup rival-secret-<2>"), rivals);
    assert_eq!(world.names(Kind::Restore).iter().filter(|name| name.starts_with("velero/")).count(), 0);
    assert_eq!(
        world.names(Kind::DeleteBackupRequest).iter().filter(|name| name.starts_with("velero/")).count(),
        0
    );
    assert_eq!(
        world.names(Kind::DownloadRequest).iter().filter(|name| name.starts_with("velero/")).count(),
        0
    );
    // What was refused goes by itself.
    world.pass(Duration::from_mins(11));
    assert!(
        world.names(Kind::DownloadRequest).is_empty() && world.names(Kind::DeleteBackupRequest).is_empty()
    );
}

#[test]
fn what_belongs_to_a_backup_is_shown_beside_it_and_what_does_not_is_not() {
    let mut world = with_a_backup();
    let uid = world.get("backup shop-daily-<1>")["metadata"]["uid"].clone();
    let volume = |uid: &Value| {
        let name = crate::world::long("shop-daily-<1>");
        json!({
            "metadata": {"labels": {labels::VELERO_BACKUP_NAME: name, labels::VELERO_BACKUP_UID: uid}, "annotations": {"note": "an administrator's"}},
            "spec": {"backupStorageLocation": "default", "repoIdentifier": "s3:http://inside/bucket", "volume": "data"},
            "status": {"phase": "Completed", "path": "/x"},
        })
    };
    world.apply(object(Kind::PodVolumeBackup, "velero/one", volume(&uid)));
    world.apply(object(Kind::DataUpload, "velero/two", volume(&uid)));
    // Velero imports what tenants' buckets say, but writes the uid of the Backup it came with.
    world.apply(object(Kind::PodVolumeBackup, "velero/smuggled", volume(&json!("another"))));
    world.settle();
    assert_eq!(copies(&world), ["Backup shop/daily", "PodVolumeBackup shop/one", "DataUpload shop/two"]);
    assert_snapshot!(marks(&world, "PodVolumeBackup shop/one"), @r"
    nacre.dev/shown: copy
    velero.io/backup-name: daily
    velero.io/backup-uid: <6:2>
    velero.io/exclude-from-backup: true
    ");
    let spec = json!({"backupStorageLocation": "default", "repoIdentifier": "", "volume": "data"});
    assert_eq!(world.get("PodVolumeBackup shop/one")["spec"], spec);
    // A new copy has a new uid, by which Velero's tools find the rest.
    world.delete("backup shop/daily");
    world.settle();
    let copy = world.get("backup shop/daily")["metadata"]["uid"].clone();
    assert_eq!(world.get("DataUpload shop/two")["metadata"]["labels"][labels::VELERO_BACKUP_UID], copy);
    world.delete("nab shop/daily");
    world.settle();
    assert!(copies(&world).is_empty());
}

/// A name that no label holds is found by Velero's tools all the same, under what Velero makes of it.
#[test]
fn what_belongs_to_a_backup_with_a_long_name_is_shown_beside_it() {
    let long = "the-backup-before-the-migration-of-the-shop-to-the-new-cluster-in-november";
    let label = "the-backup-before-the-migration-of-the-shop-to-the-new-cleccdc2";
    let mut world = world();
    world.apply(nab(&format!("shop/{long}")));
    world.settle();
    let velero = world.get(&format!("nab shop/{long}"))["status"]["veleroBackup"]["name"].clone();
    let velero = velero.as_str().unwrap();
    world.velero_starts(velero);
    world.velero_completes(velero);
    let uid = world.get(&format!("backup {velero}"))["metadata"]["uid"].clone();
    let ties = json!({labels::VELERO_BACKUP_NAME: velero, labels::VELERO_BACKUP_UID: uid});
    let volume =
        json!({"metadata": {"labels": ties}, "spec": {"volume": "data"}, "status": {"phase": "Completed"}});
    world.apply(object(Kind::PodVolumeBackup, "velero/one", volume));
    world.settle();
    let copy = world.get(&format!("backup shop/{long}"))["metadata"]["uid"].clone();
    let ties = world.get("PodVolumeBackup shop/one")["metadata"]["labels"].clone();
    assert_eq!((&ties[labels::VELERO_BACKUP_NAME], &ties[labels::VELERO_BACKUP_UID]), (&json!(label), &copy));
    // A request to delete it, whose words name it whole.
    world.edit(&format!("nab shop/{long}"), json!({"spec": {"deleteBackup": true}}));
    world.settle();
    let (_, request) = world
        .everything()
        .find(|(key, _)| key.kind == Kind::DeleteBackupRequest && key.namespace == "shop")
        .unwrap();
    assert_eq!(request["spec"]["backupName"], long);
    assert_eq!(request["metadata"]["labels"][labels::VELERO_BACKUP_NAME], label);
}

#[test]
fn what_belongs_to_a_restore_is_shown_beside_it() {
    let mut world = with_a_backup();
    world.apply(nar("shop/back", "daily"));
    world.settle();
    let (name, uid) = (
        crate::world::long("shop-back-<r1>"),
        world.get("restore shop-back-<r1>")["metadata"]["uid"].clone(),
    );
    let ties = json!({labels::VELERO_RESTORE_NAME: name, labels::VELERO_RESTORE_UID: uid});
    for kind in [Kind::PodVolumeRestore, Kind::DataDownload] {
        let volume = json!({"metadata": {"labels": ties}, "spec": {"backupStorageLocation": "default"}, "status": {"phase": "InProgress"}});
        world.apply(object(kind, &format!("velero/{}", kind.name().to_lowercase()), volume));
    }
    world.settle();
    let before = world.writes();
    world.edit("DataDownload velero/datadownload", json!({"status": {"phase": "Completed"}}));
    world.settle();
    assert_eq!(world.writes() - before, 2, "the request, which counts them, and the copy");
    let shown = world.get("DataDownload shop/datadownload");
    assert_eq!(shown["status"]["phase"], "Completed");
    assert_eq!(shown["metadata"]["labels"][labels::VELERO_RESTORE_NAME], "back");
    world.delete("nar shop/back");
    world.settle();
    world.velero_tidies();
    world.settle();
    assert_eq!(copies(&world), ["Backup shop/daily"]);
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
fn a_location_is_shown_under_the_tenants_name_without_the_credential() {
    let mut world = world();
    let velero = world.tenant_storage("shop/bucket");
    world.edit(&format!("bsl {velero}"), json!({"spec": {"credential": {"name": velero, "key": "cloud"}}}));
    world.apply(nab_with("shop/daily", json!({"storageLocation": "bucket"})));
    world.settle();
    world.velero_starts("shop-daily-<1>");
    world.velero_completes("shop-daily-<1>");
    world.settle();
    assert_eq!(world.get("backup shop/daily")["spec"]["storageLocation"], "bucket");
    let shown = world.get("bsl shop/bucket");
    assert_eq!(shown["spec"], json!({"provider": "aws", "objectStorage": {"bucket": velero}}));
    // That Velero has looked at it again is no news.
    world.edit(&format!("bsl {velero}"), json!({"status": {"lastValidationTime": "2026-01-01T00:00:00Z"}}));
    world.settle();
    let before = world.writes();
    world.edit(&format!("bsl {velero}"), json!({"status": {"lastValidationTime": "2026-01-01T00:01:00Z"}}));
    world.settle();
    assert_eq!(world.writes(), before);
    world.edit(&format!("bsl {velero}"), json!({"status": {"phase": "Unavailable"}}));
    world.settle();
    assert_eq!(world.get("bsl shop/bucket")["status"]["phase"], "Unavailable");
    assert_eq!(world.get("bsl shop/bucket")["status"]["lastValidationTime"], "2026-01-01T00:01:00Z");
}

#[test]
fn a_download_asked_for_with_velero_is_answered() {
    let mut world = with_a_backup();
    let ask = |kind: &str| json!({"spec": {"target": {"kind": kind, "name": "daily"}}});
    world.apply(object(Kind::DownloadRequest, "shop/closed", ask("BackupLog")));
    assert_snapshot!(brief(&mut world), @r"
    patch DownloadRequest shop/closed
    event Warning NonAdminBackupStorageLocationNotUsed: spec.target.kind: BackupLog of a backup in the cluster's own storage cannot be downloaded; keep backups in a NonAdminBackupStorageLocation, or ask the administrators to allow it
    ");
    world.policy(|policy| policy.downloads.platform_storage = Downloads::Logs);
    world.apply(object(Kind::DownloadRequest, "shop/open", ask("BackupLog")));
    assert_snapshot!(brief(&mut world), @"create DownloadRequest velero/nadr-<10:2>");
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

#[test]
fn a_namespace_with_a_velero_of_its_own_is_not_ours_to_answer() {
    let mut world = world();
    let own = json!({"spec": {"provider": "aws", "objectStorage": {"bucket": "own"}}});
    world.apply(object(Kind::BackupStorageLocation, "shop/default", own));
    world.apply(asked("shop/theirs", json!({})));
    let target = json!({"spec": {"target": {"kind": "BackupLog", "name": "theirs"}}});
    world.apply(object(Kind::DownloadRequest, "shop/log", target));
    assert_snapshot!(world.trace(), @"");
}

#[test]
fn a_copy_that_outlived_its_request_while_nacre_was_down_is_not_taken_for_a_request() {
    let mut world = with_a_backup();
    let kept = world.get("backup shop/daily");
    world.dies_after(world.writes());
    world.delete("nab shop/daily");
    world.rest();
    world.restart();
    world.settle();
    assert!(copies(&world).is_empty());
    // Even one that says it is new.
    let mut left = kept;
    left["status"] = json!({});
    left["metadata"] = json!({"name": "daily", "namespace": "shop", "labels": left["metadata"]["labels"]});
    world.apply(left);
    world.settle();
    assert!(copies(&world).is_empty() && world.names(Kind::NonAdminBackup).is_empty());
}

/// So that copies whose label went while nacre was down are found, and nobody looks where there never were any.
#[test]
fn it_is_noted_that_there_may_be_copies_from_before_the_first_until_after_the_last() {
    let mut world = World::with(&["shop"]);
    assert!(!planner::copies::in_use(&world));
    label(&mut world, json!("true"));
    assert!(planner::copies::in_use(&world));
    let (plan, over) = planner::copies::record(&world);
    let [Action::Create(note)] = plan.actions.as_slice() else { panic!("{plan:?}") };
    assert!(!over);
    world.apply(note.body.clone());
    assert!(planner::copies::record(&world).0.actions.is_empty());
    world.apply(nab("shop/daily"));
    world.settle();
    assert_eq!(copies(&world), ["Backup shop/daily"]);
    // The label is gone, the copy is yet to go.
    label(&mut world, json!(null));
    assert!(planner::copies::in_use(&world));
    assert_eq!(planner::copies::record(&world), (planner::Plan::done(), false));
    world.settle();
    let (plan, over) = planner::copies::record(&world);
    assert!(
        over && matches!(plan.actions.as_slice(), [Action::Delete(note)] if note.name == planner::copies::RECORD)
    );
}
