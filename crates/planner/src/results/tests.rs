//! What is read of Velero's file, for whom, and what is published of it.

use api::condition;
use serde_json::{Value, json};

use super::{NotResults, Results, news, read, report};
use crate::state::{Moment, RawObject, Update};
use crate::{Key, State};
use api::{Kind, VeleroResults};

const BACKUP_UID: &str = "11111111-0000-4000-8000-000000000001";

fn shown(file: &Value) -> VeleroResults {
    read(file.to_string().as_bytes(), "shop", |name| name == "bank" || name == "shop").unwrap()
}

#[test]
fn messages_about_other_namespaces_are_dropped_and_their_names_replaced() {
    let read = shown(&json!({
        "errors": {"velero": ["disk full"], "namespaces": {"shop": ["no such thing as bank/db"], "bank": ["theirs"]}},
        "warnings": {"cluster": ["PersistentVolume pv-1 exists"]},
    }));
    assert_eq!(read.errors, ["disk full", "no such thing as <another namespace>/db"]);
    assert_eq!(read.warnings, ["PersistentVolume pv-1 exists"]);
    assert_eq!(read.not_listed, None);
}

#[test]
fn whatever_its_size_the_list_is_small() {
    let long: Vec<String> = (0..1000).map(|number| format!("{number} {}", "x\u{1b}é".repeat(5000))).collect();
    let read = shown(&json!({"errors": {"velero": long}, "warnings": {}}));
    assert_eq!((read.errors.len(), read.not_listed), (25, Some(975)));
    assert!(serde_json::to_vec(&read).unwrap().len() < 32 * 1024);
    assert!(!read.errors[0].contains('\u{1b}'));
}

#[test]
fn what_velero_does_not_write_is_no_list() {
    for text in ["", "<html>", "[1]", r#"{"errors": {"velero": 7}}"#] {
        assert_eq!(super::read(text.as_bytes(), "shop", |_| false), Err(NotResults), "{text}");
    }
}

#[test]
fn the_first_error_is_the_message_and_an_event() {
    let (mut conditions, mut list) = (Vec::new(), None);
    let read = shown(&json!({"errors": {"velero": ["a", "b"]}, "warnings": {"velero": ["c"]}}));
    report(&Results::Read(read.into()), (&mut conditions, &mut list), Some(1), jiff::Timestamp::UNIX_EPOCH);
    let found = condition::get(&conditions, condition::RESULTS_READ).unwrap();
    assert_eq!((found.reason.as_str(), found.message.as_str()), ("ErrorsReported", "error: a (and 2 more)"));
    assert_eq!(list.unwrap().warnings, ["c"]);
    assert_eq!(news(&[], &conditions).unwrap().note, "Velero reported: error: a (and 2 more)");
    assert_eq!(news(&conditions, &conditions), None, "once");

    let mut list = None;
    report(&Results::NotReadable, (&mut conditions, &mut list), Some(1), jiff::Timestamp::UNIX_EPOCH);
    assert_eq!(condition::get(&conditions, condition::RESULTS_READ).unwrap().status, "False");
}

/// A namespace with a backup that ended with warnings at this time, in this storage location.
fn after_a_backup(ended: &str, location: &Value) -> (State, Key) {
    let mut state = State::new("velero");
    let now = Moment { clock: "2026-11-16T12:00:00Z".parse().unwrap(), uptime: std::time::Duration::ZERO };
    let mut see = |kind: Kind, object: &Value| {
        state.update(kind, Update::Observed(&RawObject::new(&object.to_string())), now);
    };
    see(
        Kind::Namespace,
        &json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "shop", "uid": "ns", "resourceVersion": "1"}}),
    );
    see(Kind::BackupStorageLocation, location);
    let name = api::velero_name("shop", "daily", BACKUP_UID);
    let status = json!({"phase": "Completed", "completionTimestamp": ended, "warnings": 1});
    see(
        Kind::Backup,
        &json!({"apiVersion": "velero.io/v1", "kind": "Backup",
        "metadata": {"name": name, "namespace": "velero", "uid": "v", "resourceVersion": "2", "annotations": {
            "openshift.io/oadp-nab-origin-namespace": "shop", "openshift.io/oadp-nab-origin-name": "daily",
            "nacre.dev/origin-uid": BACKUP_UID, "nacre.dev/origin-namespace-uid": "ns"}},
        "spec": {"storageLocation": "place"}, "status": status}),
    );
    see(
        Kind::NonAdminBackup,
        &json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackup",
        "metadata": {"name": "daily", "namespace": "shop", "uid": BACKUP_UID, "resourceVersion": "3"},
        "spec": {"backupSpec": {}},
        "status": {"phase": "Created", "veleroBackup": {"name": name, "nacuuid": name, "status": status}}}),
    );
    (state, Key::new(Kind::NonAdminBackup, "shop", "daily"))
}

fn location(tenant: bool) -> Value {
    let mut metadata = json!({"name": "place", "namespace": "velero", "uid": "l", "resourceVersion": "1"});
    if tenant {
        metadata["labels"] = json!({"openshift.io/oadp-nabsl-origin-nacuuid": "place"});
        metadata["annotations"] = json!({"openshift.io/oadp-nabsl-origin-namespace": "shop"});
    }
    json!({"apiVersion": "velero.io/v1", "kind": "BackupStorageLocation", "metadata": metadata,
        "spec": {"provider": "aws", "objectStorage": {"bucket": "b"}}})
}

#[test]
fn warnings_in_the_clusters_own_storage_are_read_and_published_once() {
    let (mut state, key) = after_a_backup("2026-11-16T11:59:00Z", &location(false));
    assert_eq!(state.unread_results(), std::slice::from_ref(&key));
    let file = super::file(&state, &key).unwrap();
    assert_eq!((file.kind, file.location.is_some()), ("BackupResults", true));

    let read = shown(&json!({"warnings": {"velero": ["w"]}}));
    assert_eq!(state.set_results(&key, Results::Read(read.into())), std::slice::from_ref(&key));
    assert!(state.unread_results().is_empty(), "it is not read again");
    let plan = crate::backup::decide(&crate::backup::observe(&state, "shop", "daily").unwrap());
    let text = format!("{:?}", plan.actions);
    assert!(text.contains("ResultsRead") && text.contains("WarningsReported"), "{text}");
    assert!(plan.events.iter().any(|event| event.reason == "WarningsReported"), "{:?}", plan.events);
}

/// nacre never connects to an endpoint that a tenant chose.
#[test]
fn a_tenants_own_storage_is_never_read() {
    let (state, key) = after_a_backup("2026-11-16T11:59:00Z", &location(true));
    assert!(super::file(&state, &key).is_none());
}

#[test]
fn what_ended_long_ago_is_not_read() {
    let (state, _) = after_a_backup("2026-11-16T10:59:00Z", &location(false));
    assert!(state.unread_results().is_empty());
}
