//! While the policy is unknown, or the namespace is not seen, new requests wait.

use std::sync::Arc;
use std::time::Duration;

use api::velero::{Backup, Restore};
use api::{Kind, NonAdminBackup, NonAdminRestore, Phase, PodVolumeCounts, condition};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use planner::turns::{Place, Tag};
use planner::{Action, Plan, Policy, backup, restore};
use serde_json::{Value, json};

/// It is its turn.
const NEXT: Place = Place::Next(Tag { priority: 0, start: 0, time: 0, weight: 100, charged: 0 });

fn object<T: serde::de::DeserializeOwned>(kind: &str, spec: &Value) -> Arc<T> {
    let whole = json!({
        "apiVersion": "oadp.openshift.io/v1alpha1", "kind": kind, "spec": spec,
        "metadata": {"name": "one", "namespace": "shop", "uid": "11111111-2222-4333-8444-555555555555"},
    });
    Arc::new(serde_json::from_value(whole).unwrap())
}

fn namespace() -> Arc<Namespace> {
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some("shop".to_owned());
    namespace.metadata.uid = Some("space".to_owned());
    Arc::new(namespace)
}

fn a_backup(spec: &Value, policy: Option<Policy>) -> backup::Observed {
    backup::Observed {
        backup: object::<NonAdminBackup>("NonAdminBackup", &json!({"backupSpec": spec})),
        unreadable: None,
        namespace: Some(namespace()),
        velero: None,
        name_taken: false,
        squatter: None,
        storage_missing: false,
        velero_location: None,
        location: None,
        storage: None,
        default_storage: None,
        resource_policy: None,
        marked: planner::schedule::Marked::default(),
        delete_requests: Vec::new(),
        restores: Vec::new(),
        volumes: Default::default(),
        operations: Vec::new(),
        canceller: planner::volumes::Velero::default(),
        volume_facts: backup::VolumeFacts::default(),
        results: None,
        position: 1,
        publish_position: true,
        was_given: false,
        turn: Some(NEXT),
        others: backup::Others::default(),
        awaited: false,
        rejected_write: None,
        access: planner::requester::Access::default(),
        velero_access: planner::dedicated::VeleroAccess::default(),
        policy: policy.map(Arc::new),
        admin_namespace: "velero".to_owned(),
        now: Timestamp::UNIX_EPOCH,
    }
}

fn a_restore(policy: Option<Policy>) -> restore::Observed {
    let spec = json!({"restoreSpec": {"backupName": "one"}});
    let mut source = Backup::default();
    source.metadata.name = Some("source".to_owned());
    source.status = serde_json::from_value(json!({"phase": "Completed"})).unwrap();
    restore::Observed {
        restore: object::<NonAdminRestore>("NonAdminRestore", &spec),
        unreadable: None,
        namespace: Some(namespace()),
        velero: None,
        name_taken: false,
        backup: Some(object("NonAdminBackup", &json!({"backupSpec": {}}))),
        source: Some(Arc::new(source)),
        velero_location: None,
        source_volumes: PodVolumeCounts::default(),
        modifier: None,
        config_maps: [None, None],
        volumes: Default::default(),
        data: planner::restore::DataFacts::default(),
        results: None,
        position: 1,
        publish_position: true,
        was_given: false,
        turn: Some(NEXT),
        rejected_write: None,
        access: planner::requester::Access::default(),
        velero_access: planner::dedicated::VeleroAccess::default(),
        policy: policy.map(Arc::new),
        admin_namespace: "velero".to_owned(),
        now: Timestamp::UNIX_EPOCH,
    }
}

fn creates(plan: &Plan, kind: Kind) -> bool {
    plan.actions.iter().any(|action| matches!(action, Action::Create(object) if object.kind == kind))
}

/// The status that a plan writes.
fn status(plan: &Plan) -> Value {
    let written = plan.actions.iter().find_map(|action| match action {
        Action::PatchStatus(_, body) => Some(body.clone()),
        _ => None,
    });
    written.unwrap_or_default()
}

fn waits(plan: &Plan) {
    let status = status(plan);
    let text = status.to_string();
    assert!(text.contains("BackingOff") && text.contains(condition::POLICY_UNAVAILABLE), "{text}");
    assert!(text.contains("\"False\"") && text.contains("goes on by itself"), "{text}");
}

#[test]
fn a_new_backup_waits_and_then_goes_on() {
    let plan = backup::decide(&a_backup(&json!({}), None));
    assert_eq!(plan.actions.len(), 1);
    waits(&plan);
    assert!(creates(&backup::decide(&a_backup(&json!({}), Some(Policy::default()))), Kind::Backup));
}

#[test]
fn a_new_restore_waits_and_then_goes_on() {
    let plan = restore::decide(&a_restore(None));
    assert_eq!(plan.actions.len(), 1);
    waits(&plan);
    assert!(creates(&restore::decide(&a_restore(Some(Policy::default()))), Kind::Restore));
}

#[test]
fn waiting_is_told_once() {
    let mut seen = a_backup(&json!({}), None);
    let status = status(&backup::decide(&seen));
    let mut reported = NonAdminBackup::clone(&seen.backup);
    reported.status = Some(serde_json::from_value(status["status"].clone()).unwrap());
    assert_eq!(reported.status.as_ref().unwrap().phase, Some(Phase::BackingOff));
    seen.backup = Arc::new(reported);
    assert_eq!(backup::decide(&seen), Plan::done());
}

#[test]
fn what_velero_has_is_mirrored_all_the_same() {
    let mut seen = a_backup(&json!({}), None);
    let mut velero = Backup::default();
    velero.metadata.name = Some("velero-name".to_owned());
    velero.status = serde_json::from_value(json!({"phase": "InProgress"})).unwrap();
    seen.velero = Some(Arc::new(velero));
    let text = status(&backup::decide(&seen)).to_string();
    assert!(text.contains("\"Created\"") && text.contains("InProgress"), "{text}");

    let mut seen = a_restore(None);
    let mut velero = Restore::default();
    velero.metadata.name = Some("velero-name".to_owned());
    velero.status = serde_json::from_value(json!({"phase": "InProgress"})).unwrap();
    seen.velero = Some(Arc::new(velero));
    let text = status(&restore::decide(&seen)).to_string();
    assert!(text.contains("\"Created\"") && text.contains("InProgress"), "{text}");
}

/// The same backup, made so long ago, in a namespace that the watch has not reported.
fn unseen(age: Duration, more: &Value) -> backup::Observed {
    let mut seen = a_backup(&json!({}), Some(Policy::default()));
    let mut whole = serde_json::to_value(&*seen.backup).unwrap();
    whole["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
    for (name, value) in more.as_object().unwrap() {
        whole[name] = value.clone();
    }
    seen.backup = Arc::new(serde_json::from_value(whole).unwrap());
    seen.namespace = None;
    seen.now = "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap() + age;
    seen
}

const LATE: Duration = Duration::from_secs(30);

#[test]
fn a_namespace_that_is_not_seen_is_reported_once_the_watch_cannot_be_late_any_more() {
    let plan = backup::decide(&unseen(Duration::from_secs(29), &json!({})));
    assert!(plan.actions.is_empty() && plan.events.is_empty());
    let mut seen = unseen(LATE, &json!({}));
    let plan = backup::decide(&seen);
    assert_eq!((plan.actions.len(), plan.events.len()), (1, 1));
    let status = status(&plan);
    let accepted = &status["status"]["conditions"][0];
    assert_eq!((&accepted["type"], &accepted["status"]), (&json!("Accepted"), &json!("False")));
    assert_eq!(accepted["reason"], condition::NAMESPACE_NOT_SEEN);
    let message = accepted["message"].as_str().unwrap();
    assert!(message.contains("namespace shop") && message.contains("kubectl nacre doctor"), "{message}");

    // It is written once, and goes when the namespace is seen.
    seen.backup = unseen(LATE, &status).backup;
    let plan = backup::decide(&seen);
    assert!(plan.actions.is_empty() && plan.events.is_empty());
    seen.namespace = Some(namespace());
    assert!(creates(&backup::decide(&seen), Kind::Backup));
}

#[test]
fn a_namespace_that_is_not_seen_changes_nothing_of_what_velero_may_have() {
    let held = json!({"metadata": {"name": "one", "namespace": "shop", "uid": "11111111-2222-4333-8444-555555555555",
        "creationTimestamp": "2026-01-01T00:00:00Z", "finalizers": [api::labels::NAB_FINALIZER]}});
    // nacre may have ended between the Velero Backup and the status.
    let plan = backup::decide(&unseen(LATE, &held));
    assert!(matches!(plan.actions[..], [Action::PatchStatus(..)]), "{:?}", plan.actions);
    for accepted in [condition::BACKUP_ACCEPTED, condition::VELERO_BACKUP_NOT_FOUND] {
        let lost = accepted == condition::VELERO_BACKUP_NOT_FOUND;
        let reported = json!({"status": {
            "phase": if lost { "BackingOff" } else { "Created" },
            "conditions": [{"type": "Accepted", "status": if lost { "False" } else { "True" }, "reason": accepted,
                "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        }});
        let plan = backup::decide(&unseen(LATE, &reported));
        assert!(plan.actions.is_empty() && plan.events.is_empty(), "{:?}", plan.actions);
    }
}

#[test]
fn a_deletion_that_waits_for_its_namespace_says_so() {
    let deleted = json!({"spec": {"backupSpec": {}, "deleteBackup": true}});
    let plan = backup::decide(&unseen(LATE, &deleted));
    assert_eq!(plan.actions.len(), 1);
    let status = status(&plan);
    assert_eq!(status["status"]["phase"], "Deleting");
    assert!(status["status"]["conditions"][0]["message"].as_str().unwrap().contains("namespace shop"));

    let mut seen = a_restore(Some(Policy::default()));
    let mut restore = NonAdminRestore::clone(&seen.restore);
    restore.metadata.creation_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
    restore.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
    seen.restore = Arc::new(restore);
    seen.namespace = None;
    seen.now = Timestamp::UNIX_EPOCH + LATE;
    let text = self::status(&restore::decide(&seen)).to_string();
    assert!(text.contains("DeletionPending") && text.contains("namespace shop"), "{text}");
}

#[test]
fn whose_storage_a_backup_may_go_to() {
    let mode = |text: &str, spec| {
        let policy = super::policy(text);
        backup::check_spec(&serde_json::from_value(spec).unwrap(), "shop", &policy)
            .map(|refusal| refusal.field)
    };
    let named = json!({"storageLocation": "mine"});
    let refused = Some("spec.backupSpec.storageLocation".to_owned());
    assert_eq!(mode("", json!({})), None);
    assert_eq!(mode("", named.clone()), None);
    assert_eq!(mode("storageLocations: { mode: own }", json!({})), refused);
    assert_eq!(mode("storageLocations: { mode: own }", named.clone()), None);
    assert_eq!(mode("storageLocations: { mode: platform }", json!({})), None);
    assert_eq!(mode("storageLocations: { mode: platform }", named), refused);
}
