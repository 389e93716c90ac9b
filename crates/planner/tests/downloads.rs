//! Downloads: what is allowed from which storage, what a request waits for, and how it ends.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::sync::Arc;
use std::time::Duration;

use api::velero::{Backup, BackupStorageLocation, DownloadRequest};
use api::{Kind, NonAdminDownloadRequest, condition, labels};
use jiff::Timestamp;
use planner::download::{Behind, Leftover, Observed, Sought, decide, decide_leftover};
use planner::policy::Downloads;
use planner::queue::Stage;
use planner::{Action, Plan, Policy};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const UID: &str = "11111111-2222-4333-8444-555555555555";

fn read<T: DeserializeOwned>(value: Value) -> Arc<T> {
    Arc::new(serde_json::from_value(value).unwrap())
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// A request for this kind of file.
fn request(kind: &str, status: &Value) -> Arc<NonAdminDownloadRequest> {
    read(json!({
        "apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminDownloadRequest",
        "metadata": {"name": "log", "namespace": "shop", "uid": UID},
        "spec": {"target": {"kind": kind, "name": "daily"}}, "status": status,
    }))
}

/// What is behind a finished backup, in a tenant's storage or the platform's.
fn behind(tenants: bool) -> Behind {
    let backup = json!({"apiVersion": "velero.io/v1", "kind": "Backup", "metadata": {"name": "velero-daily"},
        "spec": {"storageLocation": "place"}, "status": {"phase": "Completed"}});
    let mut metadata = json!({"name": "place"});
    if tenants {
        metadata["labels"] = json!({labels::NABSL_NACUUID: "place"});
        metadata["annotations"] = json!({labels::NABSL_NAMESPACE: "shop"});
    }
    let location = json!({"apiVersion": "velero.io/v1", "kind": "BackupStorageLocation", "metadata": metadata,
        "spec": {"provider": "aws", "objectStorage": {"bucket": "b"}}});
    Behind {
        velero: Some(("velero-daily".to_owned(), Stage::Finished, "Completed".to_owned())),
        backup: Some(read::<Backup>(backup)),
        velero_location: Some(read::<BackupStorageLocation>(location)),
    }
}

fn seen(kind: &str, sought: Sought) -> Observed {
    Observed {
        kind: Kind::NonAdminDownloadRequest,
        request: request(kind, &json!({})),
        unreadable: None,
        namespace: Some(read(json!({"metadata": {"name": "shop", "uid": "space"}}))),
        velero: None,
        name_taken: false,
        sought,
        results: None,
        access: planner::requester::Access::default(),
        policy: Some(Arc::new(Policy::default())),
        withdrawn: None,
        admin_namespace: "velero".to_owned(),
        now: at(1000),
    }
}

/// Velero's side of the request.
fn velero(status: &Value) -> Arc<DownloadRequest> {
    read(json!({
        "apiVersion": "velero.io/v1", "kind": "DownloadRequest",
        "metadata": {"name": format!("nadr-{UID}"), "namespace": "velero", "uid": "v"},
        "spec": {"target": {"kind": "BackupLog", "name": "velero-daily"}}, "status": status,
    }))
}

fn answer(expires: i64) -> Value {
    json!({"phase": "Processed", "downloadURL": "http://s3/log", "expiration": at(expires).to_string()})
}

fn made(plan: &Plan) -> Option<&Value> {
    plan.actions.iter().find_map(|action| match action {
        Action::Create(object) if object.kind == Kind::DownloadRequest => Some(&object.body),
        _ => None,
    })
}

fn deleted(plan: &Plan) -> Vec<Kind> {
    let kinds = plan.actions.iter().filter_map(|action| match action {
        Action::Delete(target) => Some(target.kind),
        _ => None,
    });
    kinds.collect()
}

/// The condition that a plan writes, and its message.
fn reported(plan: &Plan) -> (String, String) {
    let written = plan.actions.iter().find_map(|action| match action {
        Action::PatchStatus(_, body) => Some(body["status"].clone()),
        _ => None,
    });
    let status = written.unwrap_or_default();
    assert_eq!(status["conditions"].as_array().map(Vec::len), Some(1), "one condition at a time");
    let text = |field: &str| status["conditions"][0][field].as_str().unwrap_or_default().to_owned();
    (text("type"), text("message"))
}

#[test]
fn own_storage_is_open_and_the_clusters_own_as_far_as_the_policy_says() {
    // Lists of resources hold names alone.
    let logs = [
        "BackupLog",
        "BackupResults",
        "BackupResourceList",
        "RestoreLog",
        "RestoreResults",
        "RestoreResourceList",
    ];
    let more = ["BackupContents", "BackupVolumeInfos", "CSIBackupVolumeSnapshots", "RestoreItemOperations"];
    for kind in logs.iter().chain(&more) {
        for (allowed, open) in
            [(Downloads::None, false), (Downloads::Logs, logs.contains(kind)), (Downloads::All, true)]
        {
            for tenants in [false, true] {
                let sought = if kind.starts_with("Restore") { Sought::Restore } else { Sought::Backup };
                let mut seen = seen(kind, sought(Some(behind(tenants))));
                let mut policy = Policy::default();
                policy.downloads.platform_storage = allowed;
                seen.policy = Some(Arc::new(policy));
                let plan = decide(&seen);
                assert_eq!(made(&plan).is_some(), open || tenants, "{kind} {allowed:?} tenants: {tenants}");
                if !open && !tenants {
                    // nacre reads the list of objects and the logs itself.
                    let read = ["BackupResourceList", "BackupLog", "RestoreLog"].contains(kind);
                    let shown = if read { condition::PROCESSED } else { condition::LOCATION_NOT_USED };
                    assert_eq!(reported(&plan).0, shown, "{kind}");
                }
            }
        }
    }
}

#[test]
fn the_velero_object_says_whose_it_is() {
    let plan = decide(&seen("BackupLog", Sought::Backup(Some(behind(true)))));
    insta::assert_snapshot!(serde_json::to_string_pretty(made(&plan).unwrap()).unwrap(), @r#"
    {
      "apiVersion": "velero.io/v1",
      "kind": "DownloadRequest",
      "metadata": {
        "annotations": {
          "nacre.dev/origin-namespace-uid": "space",
          "nacre.dev/origin-uid": "11111111-2222-4333-8444-555555555555",
          "openshift.io/oadp-nadr-origin-name": "log",
          "openshift.io/oadp-nadr-origin-namespace": "shop"
        },
        "labels": {
          "app.kubernetes.io/managed-by": "oadp-nac-controller",
          "openshift.io/oadp": "True",
          "openshift.io/oadp-nadr-origin-nacuuid": "11111111-2222-4333-8444-555555555555"
        },
        "name": "nadr-11111111-2222-4333-8444-555555555555",
        "namespace": "velero"
      },
      "spec": {
        "target": {
          "kind": "BackupLog",
          "name": "velero-daily"
        }
      }
    }
    "#);
}

#[test]
fn what_is_not_there_yet_is_waited_for() {
    let unfinished = |stage, phase: &str| Behind {
        velero: Some(("velero-daily".to_owned(), stage, phase.to_owned())),
        ..behind(true)
    };
    let lost = |behind: Behind| Behind { backup: None, ..behind };
    let nowhere = Behind { velero_location: None, ..behind(true) };
    let backup = |behind| Sought::Backup(Some(behind));
    for (sought, type_, says) in [
        (Sought::Unknown, condition::PROCESSED, "is not a kind of file"),
        (Sought::Backup(None), condition::BACKUP_NOT_AVAILABLE, "there is no NonAdminBackup \"daily\""),
        (Sought::Restore(None), condition::RESTORE_NOT_AVAILABLE, "there is no NonAdminRestore \"daily\""),
        (backup(Behind::default()), condition::BACKUP_NOT_AVAILABLE, "its conditions say why"),
        (
            backup(unfinished(Stage::Running, "InProgress")),
            condition::BACKUP_NOT_AVAILABLE,
            "is not finished",
        ),
        (
            backup(unfinished(Stage::Finished, "FailedValidation")),
            condition::BACKUP_NOT_AVAILABLE,
            "left nothing",
        ),
        (Sought::Restore(Some(lost(behind(true)))), condition::BACKUP_NOT_AVAILABLE, "is gone"),
        (backup(nowhere), condition::BACKUP_NOT_AVAILABLE, "is not there; the link comes"),
    ] {
        let plan = decide(&seen("BackupLog", sought));
        assert_eq!(made(&plan), None, "{says}");
        let (condition, message) = reported(&plan);
        assert_eq!(condition, type_, "{message}");
        assert!(message.contains(says), "{message}");
    }
    let mut waiting = seen("BackupLog", Sought::Backup(Some(behind(true))));
    waiting.policy = None;
    assert_eq!(made(&decide(&waiting)), None, "nobody knows what is allowed");
}

#[test]
fn a_link_is_shown_until_its_time_is_over_and_then_everything_goes() {
    let mut seen = seen("BackupLog", Sought::Backup(None));
    seen.velero = Some(velero(&json!({"phase": "New", "expiration": at(900).to_string()})));
    assert_eq!(decide(&seen), Plan::done(), "Velero has yet to answer");

    seen.velero = Some(velero(&answer(1600)));
    let plan = decide(&seen);
    assert_eq!(reported(&plan).0, condition::PROCESSED);
    assert_eq!(plan.delay(), Some(Duration::from_mins(10)));

    // Shown, there is nothing to write, whatever has become of the backup; not even if Velero's side is gone.
    let Action::PatchStatus(_, shown) = &plan.actions[0] else { panic!("{plan:?}") };
    seen.request = request("BackupLog", &shown["status"]);
    assert!(decide(&seen).actions.is_empty());
    let mirrored = seen.velero.take();
    assert!(decide(&seen).actions.is_empty());
    seen.now = at(1600);
    assert_eq!(deleted(&decide(&seen)), [Kind::NonAdminDownloadRequest]);
    seen.velero = mirrored;
    assert_eq!(deleted(&decide(&seen)), [Kind::DownloadRequest, Kind::NonAdminDownloadRequest]);
}

#[test]
fn a_name_that_is_taken_is_not_taken_over() {
    let mut seen = seen("BackupLog", Sought::Backup(Some(behind(true))));
    seen.name_taken = true;
    let plan = decide(&seen);
    assert_eq!(made(&plan), None);
    assert!(reported(&plan).1.contains("under another name"));
}

#[test]
fn a_velero_object_goes_when_its_request_is_gone_and_not_before() {
    let velero = velero(&answer(1600));
    let orphan = Leftover { velero: velero.clone(), orphaned: true };
    assert_eq!(deleted(&decide_leftover(&orphan)), [Kind::DownloadRequest]);
    assert_eq!(decide_leftover(&Leftover { velero, orphaned: false }), Plan::done());
}
