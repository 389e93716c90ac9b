//! What Velero has of a location, from the first hand-over to the end.

use std::sync::Arc;

use api::{HiddenSecret, Phase, condition, labels};
use serde_json::json;

use super::{Play, UID, decide, from, merge};
use crate::policy::{Import, NativeSnapshots, StorageMode};

#[test]
fn without_approval_it_is_handed_over_at_once() {
    let mut play = Play::new(false);
    assert_eq!(
        play.settle(),
        [
            "hold",
            "create NonAdminBackupStorageLocationRequest",
            "status NonAdminBackupStorageLocationRequest",
            "create Secret",
            "create BackupStorageLocation",
            "status NonAdminBackupStorageLocation",
        ]
    );
    assert_eq!(play.phase(), Some(Phase::Created));
    assert_eq!(play.says(condition::ACCEPTED), "True/BslSpecValidation");
    assert_eq!(play.says(condition::CLUSTER_ADMIN_APPROVED), "True/BslSpecApproved");
    assert_eq!(play.says(condition::SECRET_SYNCED), "True/SecretCreated");
    assert_eq!(play.says(condition::LOCATION_SYNCED), "True/BackupStorageLocationCreated");
    assert_eq!(play.request_phase(), "Approved");

    // Velero's side: below the namespace, with the copy of the credential, marked as this location's.
    let name = api::velero_name("shop", "bucket", UID);
    let storage = play.seen.storage.clone().unwrap();
    assert_eq!(storage.spec.object_storage.prefix.as_deref(), Some("shop/a"));
    assert_eq!(storage.spec.credential.as_ref().unwrap().name, name);
    assert_eq!(storage.metadata.name.as_deref(), Some(name.as_str()));
    let marks = storage.metadata.annotations.as_ref().unwrap();
    assert_eq!(
        (marks[labels::ORIGIN_UID].as_str(), marks[labels::ORIGIN_NAMESPACE_UID].as_str()),
        (UID, "n-1")
    );
    let copy: &HiddenSecret = play.seen.copy.as_ref().unwrap();
    assert_eq!((copy.type_.as_deref(), copy.data.len()), (Some("Opaque"), 1));

    // What Velero says is mirrored; that it merely looked again is not.
    play.velero_says(&json!({"phase": "Available", "lastValidationTime": "2026-01-01T00:01:00Z"}));
    assert_eq!(play.settle(), ["status NonAdminBackupStorageLocation"]);
    play.velero_says(
        &json!({"lastValidationTime": "2026-01-01T00:02:00Z", "lastSyncedTime": "2026-01-01T00:02:00Z"}),
    );
    assert!(play.settle().is_empty());
    play.velero_says(&json!({"phase": "Unavailable", "message": "no route"}));
    assert_eq!(play.settle(), ["status NonAdminBackupStorageLocation"]);
    // The times that are shown do not get too old.
    play.velero_says(&json!({"lastValidationTime": "2026-01-01T00:06:59Z"}));
    assert!(play.settle().is_empty());
    play.velero_says(&json!({"lastValidationTime": "2026-01-01T00:07:00Z"}));
    assert_eq!(play.settle(), ["status NonAdminBackupStorageLocation"]);
    assert!(play.settle().is_empty());
}

#[test]
fn a_changed_location_is_refused_until_it_is_as_it_was() {
    let mut play = Play::new(false);
    play.settle();
    play.edit(&json!({"spec": {"backupStorageLocationSpec": {"objectStorage": {"bucket": "other"}}}}));
    play.settle();
    assert_eq!((play.phase(), play.velero_has_it()), (Some(Phase::BackingOff), false));
    assert_eq!(play.says(condition::SPEC_UPDATE_APPROVED), "False/BslSpecUpdateRejected");
    assert!(
        play.message(condition::SPEC_UPDATE_APPROVED).contains("create a new NonAdminBackupStorageLocation")
    );

    // What is not said and what is empty are the same, and two spellings of one provider.
    let same = json!({"objectStorage": {"bucket": "mine"}, "provider": "velero.io/aws", "default": false, "accessMode": ""});
    play.edit(&json!({"spec": {"backupStorageLocationSpec": same}}));
    play.settle();
    assert_eq!((play.phase(), play.velero_has_it()), (Some(Phase::Created), true));
    assert_eq!(play.says(condition::SPEC_UPDATE_APPROVED), "");
}

#[test]
fn what_is_removed_or_changed_by_hand_comes_back() {
    let mut play = Play::new(false);
    play.settle();
    play.seen.storage = None;
    assert!(play.settle().contains(&"create BackupStorageLocation".to_owned()));
    play.seen.copy = None;
    assert!(play.settle().contains(&"create Secret".to_owned()));
    merge(play.seen.storage.as_mut().unwrap(), &json!({"spec": {"objectStorage": {"prefix": "victim"}}}));
    assert!(play.settle().contains(&"patch BackupStorageLocation".to_owned()));
    assert_eq!(play.seen.storage.as_ref().unwrap().spec.object_storage.prefix.as_deref(), Some("shop/a"));
    assert_eq!(play.says(condition::LOCATION_SYNCED), "True/BackupStorageLocationUpdated");
}

#[test]
fn what_stops_being_allowed_goes_and_comes_back_when_it_is_allowed_again() {
    let mut play = Play::new(false);
    play.settle();
    play.policy.storage_locations.mode = StorageMode::Platform;
    play.settle();
    assert_eq!((play.phase(), play.velero_has_it()), (Some(Phase::BackingOff), false));
    assert_eq!(play.says(condition::ACCEPTED), "False/BslSpecValidation");
    play.policy.storage_locations.mode = StorageMode::Any;
    play.settle();
    assert_eq!((play.phase(), play.velero_has_it()), (Some(Phase::Created), true));

    // Nobody knows what is allowed: what is there stays, nothing new begins.
    play.seen.policy = None;
    assert!(decide(&play.seen).actions.is_empty());
    let mut new = Play::new(false);
    new.seen.policy = None;
    let waits = decide(&new.seen);
    waits.actions.iter().for_each(|action| _ = new.act(action));
    assert_eq!(
        (new.says(condition::ACCEPTED).as_str(), new.velero_has_it()),
        ("False/PolicyUnavailable", false)
    );
}

#[test]
fn limits_places_and_names_are_checked_before_anything_is_made() {
    type Change = fn(&mut Play);
    let cases: [(&str, Change); 5] = [
        ("may have 2", |play| {
            (play.seen.others, play.policy.storage_locations.max_per_namespace) = (2, Some(2));
        }),
        ("is used by another storage location", |play| play.seen.path_taken = true),
        ("has the name this location would get", |play| play.seen.name_taken = true),
        ("it is Velero's own", |play| play.seen.admin_namespace = "shop".to_owned()),
        ("cannot be read: no such field", |play| play.seen.unreadable = Some("no such field".into())),
    ];
    for (words, change) in cases {
        let mut play = Play::new(false);
        change(&mut play);
        assert_eq!(play.settle(), ["status NonAdminBackupStorageLocation"], "{words}");
        assert!(play.message(condition::ACCEPTED).contains(words), "{}", play.message(condition::ACCEPTED));
        assert_eq!(play.phase(), Some(Phase::BackingOff));
    }
    // Whoever is in stays in.
    let mut play = Play::new(false);
    play.settle();
    (play.seen.others, play.seen.path_taken) = (9, true);
    play.policy.storage_locations.max_per_namespace = Some(1);
    assert!(play.settle().is_empty());
}

#[test]
fn velero_looks_for_backups_only_if_it_is_safe_to() {
    let period = |play: &Play| {
        let period = play.seen.storage.as_ref().unwrap().spec.backup_sync_period.clone();
        period.map(|period| period.to_string())
    };
    let never = Some("0s".to_owned());
    for (import, version, wanted) in [
        (Import::Auto, Some("v1.18.3"), None),
        (Import::Auto, Some("v1.18.2"), never.clone()),
        (Import::Auto, None, never.clone()),
        (Import::On, Some("v1.9.0"), None),
        (Import::Off, Some("v1.18.3"), never.clone()),
    ] {
        let mut play = Play::new(false);
        play.policy.storage_locations.import = import;
        play.seen.velero_version = version.map(str::to_owned);
        play.settle();
        assert_eq!(period(&play), wanted, "{import:?} {version:?}");
        (play.seen.storage, play.seen.copy) = (None, None);
        let reported = play.pass().events.iter().any(|event| event.reason == "ImportOff");
        assert_eq!(reported, version == Some("v1.18.2"), "{import:?} {version:?}");
    }
    // Known later: put right. Forgotten by a restart: left alone.
    let mut play = Play::new(false);
    play.seen.velero_version = None;
    play.settle();
    play.seen.velero_version = Some("v1.19.0".to_owned());
    assert!(play.settle().contains(&"patch BackupStorageLocation".to_owned()));
    assert_eq!(period(&play), None);
    play.seen.velero_version = None;
    assert!(play.settle().is_empty());
}

#[test]
fn h4_nothing_is_done_before_it_is_known_whether_velero_deletes_native_snapshots() {
    let mut play = Play::new(false);
    play.seen.takes_native_snapshots = None;
    assert!(play.settle().is_empty(), "it may be refused");
    play.seen.takes_native_snapshots = Some(false);
    assert!(play.settle().contains(&"create BackupStorageLocation".to_owned()));
    // Forgotten by a restart: left alone.
    play.seen.takes_native_snapshots = None;
    assert!(play.settle().is_empty());
    play.seen.takes_native_snapshots = Some(true);
    assert!(play.settle().contains(&"delete BackupStorageLocation".to_owned()));
    // Who accepts it need not know.
    play.policy.storage_locations.native_snapshots = NativeSnapshots::Accept;
    play.seen.takes_native_snapshots = None;
    assert!(play.settle().contains(&"create BackupStorageLocation".to_owned()));
}

#[test]
fn everything_goes_with_it_and_nothing_holds_it_up() {
    let mut play = Play::new(false);
    play.settle();
    let backup = json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackup",
        "metadata": {"name": "daily", "namespace": "shop", "uid": "b"}, "spec": {"backupSpec": {}}});
    play.seen.backups = vec![Arc::new(from(backup))];
    play.edit(&json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    // Not even that nothing about it can be read or allowed.
    play.seen.unreadable = Some("odd".into());
    play.seen.namespace = None;
    assert_eq!(
        play.settle(),
        [
            "status NonAdminBackupStorageLocation",
            "delete NonAdminBackupStorageLocationRequest",
            "delete Secret",
            "delete BackupStorageLocation",
            "delete NonAdminBackup",
            "release",
        ]
    );
    let mut never_held = Play::new(false);
    never_held.edit(&json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    assert!(never_held.settle().is_empty());
}

#[test]
fn what_the_go_controller_made_is_taken_over_and_marked() {
    let mut play = Play::new(false);
    play.settle();
    let unmark =
        json!({"metadata": {"annotations": {labels::ORIGIN_UID: null, labels::ORIGIN_NAMESPACE_UID: null}}});
    merge(play.seen.storage.as_mut().unwrap(), &unmark);
    merge(play.seen.copy.as_mut().unwrap(), &unmark);
    merge(&mut play.seen.request.as_mut().unwrap().object, &unmark);
    merge(play.seen.copy.as_mut().unwrap(), &json!({"data": {"another": "c2VjcmV0"}}));
    let done = play.settle();
    assert_eq!(done.iter().filter(|line| line.starts_with("patch")).count(), 3, "{done:?}");
    assert_eq!(play.seen.copy.as_ref().unwrap().data.len(), 1);
    let marks = play.seen.storage.as_ref().unwrap().metadata.annotations.clone().unwrap();
    assert_eq!(marks[labels::ORIGIN_UID], UID);
}

#[test]
fn backups_in_it_that_velero_could_not_import_are_named_until_that_is_over() {
    let mut play = Play::new(false);
    play.settle();
    let refused = |names: &[&str]| {
        Some(names.iter().map(|name| ((*name).to_owned(), "it is never run".to_owned())).collect())
    };
    play.seen.refused_imports = refused(&["nightly"]);
    let decided = play.pass();
    assert_eq!(decided.events.len(), 1, "{decided:?}");
    assert!(decided.events[0].warning && decided.events[0].note.contains("\"nightly\""), "{decided:?}");
    assert_eq!(play.settle(), ["status NonAdminBackupStorageLocation"]);
    assert_eq!(play.says(condition::BACKUPS_IMPORTED), "False/ImportsRefused");
    assert_eq!(play.phase(), Some(Phase::Created), "the location itself is fine");
    assert!(play.settle().is_empty(), "the same again");
    // After a restart it is not known for a while.
    play.seen.refused_imports = None;
    assert!(play.settle().is_empty());
    play.seen.refused_imports = refused(&[]);
    assert_eq!(play.settle(), ["status NonAdminBackupStorageLocation"]);
    assert_eq!(play.says(condition::BACKUPS_IMPORTED), "");
    // Nothing is said of storage that Velero has not got.
    play.seen.refused_imports = refused(&["nightly"]);
    play.settle();
    play.policy.storage_locations.mode = StorageMode::Platform;
    play.settle();
    assert_eq!(play.says(condition::BACKUPS_IMPORTED), "");
}
