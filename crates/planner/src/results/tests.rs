//! What is read of Velero's file, for whom, and what is published of it.

use api::condition;
use serde_json::{Value, json};

use super::{Content, NotResults, Results, news, read, report};
use crate::state::{Moment, RawObject, Update};
use crate::{Action, Key, State};
use api::{Kind, LogLines, VeleroResults};

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
    assert_eq!(state.unread_results(""), std::slice::from_ref(&key));
    let file = super::file(&state, &key).unwrap();
    assert_eq!((file.kind, file.location.is_some()), ("BackupResults", true));

    let read = shown(&json!({"warnings": {"velero": ["w"]}}));
    assert_eq!(state.set_results(&key, Results::Read(read.into())), std::slice::from_ref(&key));
    assert!(state.unread_results("").is_empty(), "it is not read again");
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
    assert!(state.unread_results("").is_empty());
}

#[test]
fn only_the_namespaces_own_objects_are_listed_and_not_too_many() {
    let many: Vec<String> = (0..1990).map(|number| format!("shop/m{number}")).collect();
    let file = json!({"v1/Secret": ["office/theirs", "shop/key"], "v1/Namespace": ["shop"], "v1/ConfigMap": many,
        "v1/PersistentVolume": ["pv"], "v1/Pod": (0..12).map(|number| format!("shop/p{number}")).collect::<Vec<_>>()});
    let list = super::read_objects(file.to_string().as_bytes(), "shop").unwrap();
    let lengths: Vec<_> = list.names.iter().map(|(kind, names)| (kind.as_str(), names.len())).collect();
    assert_eq!(lengths, [("v1/ConfigMap", 1990), ("v1/Pod", 10)]);
    assert_eq!(list.not_listed, Some(3), "two pods and a secret");
    assert!(!serde_json::to_string(&list).unwrap().contains("theirs"));
    assert!(super::read_objects(b"[]", "shop").is_err());
}

fn put(state: &mut State, kind: Kind, object: &Value) {
    let now = Moment { clock: state.now(), uptime: std::time::Duration::ZERO };
    state.update(kind, Update::Observed(&RawObject::new(&object.to_string())), now);
}

/// A request for the list of objects in the backup, with this status.
fn wants_list(state: &mut State, name: &str, version: u32, status: &Value) -> Key {
    wants("BackupResourceList", state, name, version, status)
}

/// A request for a file of the backup, with this status.
fn wants(kind: &str, state: &mut State, name: &str, version: u32, status: &Value) -> Key {
    let (namespace, name) = name.split_once('/').unwrap();
    let object = json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminDownloadRequest",
        "metadata": {"name": name, "namespace": namespace, "uid": name, "resourceVersion": version.to_string()},
        "spec": {"target": {"kind": kind, "name": "daily"}}, "status": status});
    put(state, Kind::NonAdminDownloadRequest, &object);
    Key::new(Kind::NonAdminDownloadRequest, namespace, name)
}

/// What is done about the request next.
fn next(state: &State) -> Vec<Action> {
    crate::download::decide(&crate::download::observe(state, "shop", "list").unwrap()).actions
}

/// The status that the request gets next.
fn next_status(state: &State, before: &Value) -> Value {
    let actions = next(state);
    let [Action::PatchStatus(_, patch)] = &actions[..] else { panic!("{actions:?}") };
    let mut status = before.clone();
    for (field, value) in patch["status"].as_object().unwrap() {
        status[field] = value.clone();
    }
    status
}

/// Velero's link would lead into the administrators' storage, so nacre reads the list itself.
#[test]
fn the_objects_of_a_backup_in_the_clusters_own_storage_are_listed_without_a_link() {
    let (mut state, _) = after_a_backup("2026-11-16T10:00:00Z", &location(false));
    state.set_policy(Some(std::sync::Arc::default()));
    let key = wants_list(&mut state, "shop/list", 1, &json!({}));
    assert!(state.unread_results("").is_empty(), "before it was decided about");
    let reading = next_status(&state, &json!({}));
    assert_eq!(reading["conditions"][0]["reason"], "BeingRead");
    wants_list(&mut state, "shop/list", 2, &reading);
    assert_eq!(state.unread_results(""), std::slice::from_ref(&key));
    assert_eq!(super::file(&state, &key).unwrap().kind, "BackupResourceList");
    assert!(next(&state).is_empty(), "it is being read");

    let list = super::read_objects(br#"{"v1/Secret": ["shop/key"]}"#, "shop").unwrap();
    state.set_results(&key, Results::Objects(list.into()));
    let listed = next_status(&state, &reading);
    assert_eq!(listed["phase"], "Created");
    assert_eq!(listed["objects"]["names"]["v1/Secret"], json!(["key"]));
    wants_list(&mut state, "shop/list", 3, &listed);
    assert!(state.unread_results("").is_empty() && next(&state).is_empty(), "it is published");
    state.set_now("2026-11-16T12:30:00Z".parse().unwrap());
    assert!(matches!(next(&state)[..], [Action::Delete(_)]), "it is kept for minutes");

    wants_list(&mut state, "shop/list", 4, &reading);
    state.set_results(&key, Results::NotReadable);
    let given_up = next_status(&state, &reading);
    assert_eq!(given_up["phase"], "BackingOff");
    assert_eq!(given_up["conditions"][0]["reason"], "ResultsNotReadable");
    wants_list(&mut state, "shop/list", 5, &given_up);
    assert!(next(&state).is_empty(), "it is not tried again and again");
}

/// The same for the log.
#[test]
fn the_lines_of_a_log_in_the_clusters_own_storage_are_shown_without_a_link() {
    let (mut state, _) = after_a_backup("2026-11-16T10:00:00Z", &location(false));
    state.set_policy(Some(std::sync::Arc::default()));
    let key = wants("BackupLog", &mut state, "shop/list", 1, &json!({}));
    let reading = next_status(&state, &json!({}));
    assert_eq!(reading["conditions"][0]["message"], "nacre reads the log");
    wants("BackupLog", &mut state, "shop/list", 2, &reading);
    let file = super::file(&state, &key).unwrap();
    let name = api::velero_name("shop", "daily", BACKUP_UID);
    assert_eq!((file.kind, file.content()), ("BackupLog", Content::Log));
    assert_eq!(file.velero_objects("velero"), [format!("velero/{name}"), format!("velero/{name}")]);

    let log = LogLines { lines: vec!["level=info msg=a".to_owned()], not_listed: None, left_out: Some(2) };
    state.set_results(&key, Results::Log(log.into()));
    let plan = crate::download::decide(&crate::download::observe(&state, "shop", "list").unwrap());
    assert_eq!(
        plan.delay(),
        Some(std::time::Duration::ZERO),
        "whether the CRD has the field is seen at once"
    );
    let shown = next_status(&state, &reading);
    assert_eq!(shown["log"], json!({"lines": ["level=info msg=a"], "leftOut": 2}));
    wants("BackupLog", &mut state, "shop/list", 3, &shown);
    assert!(state.unread_results("").is_empty() && next(&state).is_empty(), "it is published");
    state.set_now("2026-11-16T12:30:00Z".parse().unwrap());
    assert!(matches!(next(&state)[..], [Action::Delete(_)]), "it is kept for minutes");

    // What was read for another target is not its answer.
    wants_list(&mut state, "shop/list", 4, &reading);
    state.set_results(&key, Results::Log(LogLines::default().into()));
    assert_eq!(next_status(&state, &reading)["conditions"][0]["reason"], "ResultsNotReadable");
}

/// OADP's own CRDs have no field for it: then there is what there was before, and nothing is read again and again.
#[test]
fn where_the_crd_drops_what_was_read_the_request_is_refused() {
    let (mut state, _) = after_a_backup("2026-11-16T10:00:00Z", &location(false));
    state.set_policy(Some(std::sync::Arc::default()));
    for (version, kind, field) in [(1, "BackupLog", "log"), (4, "BackupResourceList", "objects")] {
        let processed = json!([{"type": "Processed", "status": "True", "reason": "Success", "message": "",
            "lastTransitionTime": "2026-11-16T11:59:00Z"}]);
        let velero = json!({"status": {"phase": "Processed", "expiration": "2026-11-16T12:10:00Z"}});
        let mut status = json!({"phase": "Created", "conditions": processed, "velero": velero, field: {"lines": [], "names": {}}});
        wants(kind, &mut state, "shop/list", version, &status);
        assert!(next(&state).is_empty(), "{kind}: it is there");
        status[field] = Value::Null;
        wants(kind, &mut state, "shop/list", version + 1, &status);
        let refused = next_status(&state, &status);
        let reported = &refused["conditions"][0];
        assert_eq!(reported["type"], condition::LOCATION_NOT_USED);
        assert_eq!(reported["reason"], condition::RESULTS_NOT_READABLE);
        assert!(reported["message"].as_str().unwrap().contains("CRD has no field"), "{reported}");
        wants(kind, &mut state, "shop/list", version + 2, &refused);
        assert!(state.unread_results("").is_empty() && next(&state).is_empty(), "{kind}: it stays so");
    }
}

/// Somebody who asks for a thousand lists keeps nobody else from having one.
#[test]
fn namespaces_take_turns_to_have_their_files_read() {
    let (mut state, key) = after_a_backup("2026-11-16T11:59:00Z", &location(false));
    let reading = json!({"phase": "New", "conditions": [{"type": "Processed", "status": "Unknown", "reason": "BeingRead",
        "message": "", "lastTransitionTime": "2026-11-16T11:59:00Z"}]});
    for name in ["attic/a", "attic/b", "zoo/c"] {
        wants_list(&mut state, name, 1, &reading);
    }
    let first = |after: &str| state.unread_results(after)[0].namespace.clone();
    assert_eq!([first(""), first("attic"), first("shop"), first("zoo")], ["attic", "shop", "zoo", "attic"]);
    assert_eq!(state.unread_results("attic")[0], key);
}
