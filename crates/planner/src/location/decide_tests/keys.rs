//! The tenant's credential, and what Velero gets of it.

use api::{Phase, condition};
use serde_json::json;

use super::{KEYS, Play, found};
use crate::ownership::label;
use crate::view::Credential;

#[test]
fn a_rotated_key_reaches_velero_which_is_made_to_look() {
    let mut play = Play::new(false);
    play.settle();
    play.velero_says(&json!({"phase": "Available", "lastValidationTime": "2026-01-01T00:01:00Z"}));
    play.settle();
    play.seen.credential = found(&KEYS.replace("AKIAEXAMPLE", "AKIAROTATED"));
    let done = play.settle();
    assert_eq!(done, ["patch Secret", "patch BackupStorageLocation", "status NonAdminBackupStorageLocation"]);
    assert_eq!(play.says(condition::SECRET_SYNCED), "True/SecretUpdated");
    let status = play.seen.storage.as_ref().unwrap().status.clone().unwrap();
    assert_eq!((status.last_validation_time, status.phase.as_deref()), (None, Some("Available")));
}

#[test]
fn a_key_that_does_more_than_open_the_bucket_is_cut_off_at_once() {
    let mut play = Play::new(false);
    play.settle();
    play.seen.credential = found("[default]\ncredential_process = /bin/hunter2\n");
    play.settle();
    assert_eq!((play.phase(), play.velero_has_it()), (Some(Phase::BackingOff), false));
    let reported = play.message(condition::ACCEPTED);
    assert!(reported.contains("line 2: credential_process") && !reported.contains("hunter2"), "{reported}");
    play.seen.credential = found(KEYS);
    play.settle();
    assert_eq!((play.phase(), play.velero_has_it()), (Some(Phase::Created), true));
}

#[test]
fn a_secret_that_nacre_may_not_read_is_told_and_takes_nothing_from_velero() {
    let mut play = Play::new(false);
    play.seen.credential = Credential::Withheld;
    assert_eq!(play.settle(), ["status NonAdminBackupStorageLocation"]);
    assert_eq!(play.phase(), Some(Phase::BackingOff));
    let reported = play.message(condition::ACCEPTED);
    assert!(reported.contains("nacre is not allowed to read the Secret \"keys\""), "{reported}");
    play.seen.credential = found(KEYS);
    play.settle();
    assert_eq!((play.phase(), play.velero_has_it()), (Some(Phase::Created), true));
    // After a restart it was never seen, but Velero has it.
    play.seen.credential = Credential::Withheld;
    assert!(play.settle().is_empty() && play.velero_has_it());
}

#[test]
fn a_secret_is_waited_for_and_a_lost_one_forgiven_for_five_minutes() {
    let mut play = Play::new(false);
    let start = play.seen.now;
    let after = |minutes: i64| start + jiff::SignedDuration::from_mins(minutes);
    play.seen.credential = Credential::Unseen;
    assert!(play.settle().is_empty() && play.pass().delay().is_some(), "nobody has looked yet");
    play.seen.credential = Credential::Missing(start);
    assert_eq!(play.settle(), ["status NonAdminBackupStorageLocation"]);
    assert!(play.message(condition::ACCEPTED).contains("no Secret \"keys\" with a key \"cloud\""));
    play.seen.credential = found(KEYS);
    play.settle();
    assert_eq!(play.phase(), Some(Phase::Created));

    play.seen.now = after(10);
    play.seen.credential = Credential::Missing(after(10));
    assert_eq!(play.settle(), ["status NonAdminBackupStorageLocation"]);
    assert_eq!((play.phase(), play.velero_has_it()), (Some(Phase::BackingOff), true));
    assert_eq!(play.says(condition::SECRET_SYNCED), "False/SecretSyncFailed");
    assert_eq!(play.pass().delay(), Some(std::time::Duration::from_mins(5)));
    // Four minutes later, also after a restart that remembers nothing.
    play.seen.now = after(14);
    play.seen.credential = Credential::Missing(after(14));
    assert!(play.settle().is_empty() && play.velero_has_it());
    play.seen.now = after(15);
    play.settle();
    assert!(!play.velero_has_it());
}

/// OADP's operator deploys a registry where it can give it a key.
#[test]
fn a_registry_is_had_where_there_is_a_key_for_it() {
    let principal = "AZURE_TENANT_ID=t\nAZURE_CLIENT_ID=c\nAZURE_CLIENT_SECRET=s\n";
    let key = "AZURE_STORAGE_ACCOUNT_ACCESS_KEY";
    for (keys, named, wanted) in [(principal, None, "False"), (&format!("{key}=k\n"), Some(key), "True")] {
        let mut play = Play::new(false);
        let config = json!({"region": null, "storageAccount": "shop", "storageAccountKeyEnvVar": named});
        play.edit(&json!({"spec": {"backupStorageLocationSpec": {"provider": "azure", "config": config}}}));
        play.seen.credential = found(keys);
        play.settle();
        let storage = play.seen.storage.as_ref().unwrap();
        assert_eq!(label(&storage.metadata, "openshift.io/oadp-registry"), Some(wanted), "{named:?}");
    }
    let mut play = Play::new(false);
    play.settle();
    let storage = play.seen.storage.as_ref().unwrap();
    assert_eq!(label(&storage.metadata, "openshift.io/oadp-registry"), Some("True"), "aws always has keys");
}
