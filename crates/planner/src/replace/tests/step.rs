use api::{NonAdminBackup, NonAdminRestore};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{claim, owned_by, workload};
use crate::replace::objects::{Claim, Workload, WorkloadKind};
use crate::replace::record::{ClaimRef, Record, WorkloadRef};
use crate::replace::step::{Observed, Removal, Step, next_step};

pub(super) fn now() -> Timestamp {
    "2026-11-16T12:00:00Z".parse().unwrap()
}

/// A backup as its status shows it.
pub(super) fn backup(name: &str, phase: &str, more: &Value) -> NonAdminBackup {
    let mut object = json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackup",
        "metadata": {"name": name, "uid": format!("uid-{name}")}, "spec": {"backupSpec": {}},
        "status": {"phase": "Created", "veleroBackup": {"name": name, "status": {"phase": phase,
            "startTimestamp": "2026-11-16T11:40:00Z", "expiration": "2026-12-16T11:50:00Z"}},
            "conditions": [condition("DataProtected", "True", "AllClaimsSaved")]}});
    if !matches!(phase, "InProgress" | "New") {
        object["status"]["veleroBackup"]["status"]["completionTimestamp"] = json!("2026-11-16T11:50:00Z");
    }
    super::merge(&mut object, more);
    serde_json::from_value(object).unwrap()
}

pub(super) fn condition(type_: &str, status: &str, reason: &str) -> Value {
    json!({"type": type_, "status": status, "reason": reason, "message": format!("because {reason}"),
        "lastTransitionTime": "2026-11-16T11:50:00Z"})
}

pub(super) fn restore(phase: &str, conditions: &[Value]) -> NonAdminRestore {
    let mut velero = json!({ "phase": phase });
    if phase != "InProgress" {
        velero["completionTimestamp"] = json!("2026-11-16T11:59:00Z");
    }
    serde_json::from_value(json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminRestore",
        "metadata": {"name": "back", "creationTimestamp": "2026-11-16T11:55:00Z"}, "spec": {"restoreSpec": {}},
        "status": {"phase": "Created", "conditions": conditions, "veleroRestore": {"status": velero}}}))
    .unwrap()
}

struct World {
    record: Record,
    backup: Option<NonAdminBackup>,
    safety: Option<NonAdminBackup>,
    restore: Option<NonAdminRestore>,
    claims: Vec<Claim>,
    workloads: Vec<Workload>,
}

fn world() -> World {
    let workloads = vec![
        workload(WorkloadKind::Deployment, "web", &["files"], &json!({})),
        workload(WorkloadKind::ReplicaSet, "web-1", &["files"], &owned_by("apps/v1", "Deployment", "web")),
        workload(WorkloadKind::Pod, "web-1-a", &["files"], &owned_by("apps/v1", "ReplicaSet", "web-1")),
    ];
    World {
        record: Record {
            backup: "good".to_owned(),
            backup_uid: "uid-good".to_owned(),
            safety_backup: Some("before".to_owned()),
            restore: "back".to_owned(),
            claims: vec![ClaimRef { name: "files".to_owned(), uid: "uid-files".to_owned() }],
            workloads: vec![WorkloadRef::of(&workloads[0])],
            ..Record::default()
        },
        backup: Some(backup("good", "Completed", &json!({}))),
        safety: None,
        restore: None,
        claims: vec![claim("files")],
        workloads,
    }
}

impl World {
    fn next(&self) -> Step {
        next_step(&Observed {
            record: &self.record,
            backup: self.backup.as_ref(),
            safety_backup: self.safety.as_ref(),
            restore: self.restore.as_ref(),
            claims: &self.claims,
            workloads: &self.workloads,
            now: now(),
        })
    }

    fn stops(&self) -> String {
        match self.next() {
            Step::Stop(why) => why,
            other => panic!("{other:?}"),
        }
    }

    fn fails(&self) -> String {
        match self.next() {
            Step::Failed(why) => why,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn it_goes_from_step_to_step() {
    let mut world = world();
    assert_eq!(world.next(), Step::CreateSafetyBackup);
    world.safety = Some(backup("before", "InProgress", &json!({})));
    assert_eq!(world.next(), Step::WaitForSafetyBackup("InProgress".to_owned()));
    world.safety = Some(backup("before", "Completed", &json!({})));
    assert_eq!(world.next(), Step::RecordChecked);
    world.record.checked = true;
    let Step::Remove(removals) = world.next() else { panic!("the Deployment goes") };
    assert!(matches!(
        &removals[..],
        [Removal::Workload { kind: WorkloadKind::Deployment, orphan: false, .. }]
    ));
    world.workloads.remove(0);
    let both = vec!["ReplicaSet web-1".to_owned(), "Pod web-1-a".to_owned()];
    assert_eq!(world.next(), Step::WaitForRemoval(both));
    world.workloads.clear();
    let Step::Remove(removals) = world.next() else { panic!("the claim goes") };
    assert!(matches!(&removals[..], [Removal::Claim(_)]));
    world.claims[0].is_deleting = true;
    world.claims[0].finalizers = vec!["example.com/hold".to_owned()];
    assert_eq!(
        world.next(),
        Step::WaitForRemoval(vec!["claim files (finalizers: example.com/hold)".to_owned()])
    );
    world.claims.clear();
    assert_eq!(world.next(), Step::CreateRestore);
    world.restore = Some(restore("InProgress", &[]));
    assert_eq!(world.next(), Step::WaitForRestore("InProgress".to_owned()));

    let again = Claim { uid: "new".to_owned(), ..claim("files") };
    world.claims.push(again);
    world.restore = Some(restore("Completed", &[condition("DataRestored", "Unknown", "StillRunning")]));
    assert!(matches!(world.next(), Step::WaitForRestore(_)));
    world.restore = Some(restore("Completed", &[condition("DataRestored", "True", "AllVolumesRestored")]));
    assert_eq!(
        world.next(),
        Step::Done(vec!["Deployment web is not there: it is not in backup good".to_owned()])
    );
    let mut web = workload(WorkloadKind::Deployment, "web", &["files"], &json!({"metadata": {"uid": "new"}}));
    world.workloads.push(web.clone());
    assert_eq!(world.next(), Step::WaitForWorkloads(vec!["Deployment web".to_owned()]));
    web.is_available = true;
    world.workloads = vec![web];
    assert_eq!(world.next(), Step::Done(Vec::new()));
}

#[test]
fn nothing_is_removed_unless_both_backups_hold_the_data() {
    let mut world = world();
    let protected = |status: &str, reason: &str| json!({"status": {"conditions": [condition("DataProtected", status, reason)]}});
    world.safety = Some(backup("before", "Failed", &json!({})));
    assert_eq!(world.stops(), "backup before ended as Failed");
    world.safety = Some(backup("before", "PartiallyFailed", &json!({})));
    assert_eq!(world.stops(), "backup before ended as PartiallyFailed");
    world.safety = Some(backup("before", "Completed", &protected("False", "ClaimsNotSaved")));
    let hint = ". If what is in the claim now is not needed, add --no-safety-backup";
    let missing = "the data of claim files is not in backup before: ";
    assert_eq!(world.stops(), format!("{missing}because ClaimsNotSaved{hint}"));
    let listed =
        json!({"status": {"claims": [{"name": "files", "state": "NotSaved", "message": "hostPath"}]}});
    world.safety = Some(backup("before", "Completed", &listed));
    assert_eq!(world.stops(), format!("{missing}hostPath{hint}"));
    let soon = json!({"status": {"veleroBackup": {"status": {"expiration": "2026-11-16T14:00:00Z"}}}});
    world.safety = Some(backup("before", "Completed", &soon));
    assert!(
        world.stops().ends_with("expires within four hours, and could be gone before the restore is over")
    );
    let old =
        json!({"status": {"veleroBackup": {"status": {"completionTimestamp": "2026-11-16T11:20:00Z"}}}});
    world.safety = Some(backup("before", "Completed", &old));
    assert!(world.stops().contains("older than half an hour"));

    world.safety = Some(backup("before", "Completed", &json!({})));
    world.backup = None;
    assert_eq!(world.stops(), "backup good is gone");
    world.backup = Some(backup("good", "Completed", &json!({"metadata": {"uid": "another"}})));
    assert!(world.stops().contains("was replaced by another"));
    world.backup = Some(backup("good", "Completed", &protected("True", "NoClaims")));
    assert!(world.stops().contains("the claim is newer than the backup"));
}

/// Controllers that do not report on claims count volumes.
#[test]
fn without_a_report_every_volume_of_every_pod_must_be_counted() {
    let mut world = world();
    let counts = |completed: u32| {
        let status = json!({"conditions": [], "fileSystemPodVolumeBackups": {"total": completed, "completed": completed}});
        json!({ "status": status })
    };
    world.backup = Some(backup("good", "Completed", &counts(2)));
    world.safety = Some(backup("before", "Completed", &counts(0)));
    assert!(world.stops().contains("nacre does not report that it was saved"));
    world.safety = Some(backup("before", "Completed", &counts(1)));
    assert_eq!(world.next(), Step::RecordChecked);
    // Another volume of the pod, such as an emptyDir, could be the one that was saved.
    world.workloads[2].volumes = 2;
    assert!(world.stops().contains("nacre does not report that it was saved"));
}

#[test]
fn after_the_first_removal_a_problem_is_a_failure() {
    let mut world = world();
    world.safety = Some(backup("before", "Completed", &json!({})));
    world.record.checked = true;
    world.workloads.clear();
    world.safety = None;
    assert_eq!(world.fails(), "safety backup before is gone");
    world.safety = Some(backup("before", "Completed", &json!({})));
    world.claims = vec![Claim { uid: "new".to_owned(), ..claim("files") }];
    assert!(world.fails().contains("was created by somebody else meanwhile"));
    world.restore = Some(restore("Completed", &[condition("DataRestored", "False", "VolumesFailed")]));
    assert_eq!(world.fails(), "restore back: because VolumesFailed");
    world.restore = Some(restore("Failed", &[]));
    assert_eq!(world.fails(), "restore back ended as Failed");
}

/// The pods of an orphaned StatefulSet are removed; a pod that somebody else runs is waited for, and named.
#[test]
fn pods_that_are_left_behind_are_removed() {
    let mut world = world();
    world.safety = Some(backup("before", "Completed", &json!({})));
    world.record.checked = true;
    world.record.workloads.push(WorkloadRef {
        kind: WorkloadKind::StatefulSet,
        name: "db".to_owned(),
        uid: "set".to_owned(),
        orphan: true,
    });
    world.workloads = vec![workload(WorkloadKind::Pod, "db-0", &["files"], &json!({}))];
    let Step::Remove(removals) = world.next() else { panic!("the pod goes") };
    assert!(matches!(&removals[..], [Removal::Workload { kind: WorkloadKind::Pod, .. }]));
    // Nobody was shown this one when they agreed.
    for name in ["debug", "db-shell", "db-"] {
        world.workloads = vec![workload(WorkloadKind::Pod, name, &["files"], &json!({}))];
        let Step::WaitForRemoval(what) = world.next() else { panic!("{name} is not ours to remove") };
        assert_eq!(what, [format!("Pod {name}, which came after the replacement had begun; remove it")]);
    }
    world.workloads = vec![workload(WorkloadKind::Deployment, "late", &["files"], &json!({}))];
    let Step::WaitForRemoval(what) = world.next() else { panic!("it is not ours to remove") };
    assert_eq!(what, ["Deployment late, which came after the replacement had begun; remove it"]);
}

/// With `--only-claim` another claim stays as it is, and the restore reports that. Nothing else may have happened to it.
#[test]
fn a_claim_that_was_to_stay_is_no_problem() {
    let mut world = world();
    let web = json!({"metadata": {"uid": "new"}, "status": {"availableReplicas": 1}});
    world.workloads = vec![workload(WorkloadKind::Deployment, "web", &["files"], &web)];
    world.workloads[0].is_available = true;
    world.claims = vec![Claim { uid: "new".to_owned(), ..claim("files") }, claim("other")];
    let ended = |state: &str| {
        let mut ended = restore("Completed", &[condition("DataRestored", "False", "ClaimsKept")]);
        ended.status.as_mut().unwrap().claims = serde_json::from_value(json!([
            {"name": "files", "state": "Restored"}, {"name": "other", "state": state}]))
        .unwrap();
        ended
    };
    let open = vec!["because ClaimsKept".to_owned()];
    for (state, found) in
        [("Kept", vec![]), ("NoData", vec![]), ("Mixed", open.clone()), ("Failed", open.clone())]
    {
        world.restore = Some(ended(state));
        assert_eq!(world.next(), Step::Done(found), "{state}");
    }
    // It came back empty.
    world.restore = Some(ended("NoData"));
    world.claims[1].created = Some("2026-11-16T11:56:00Z".parse().unwrap());
    assert_eq!(world.next(), Step::Done(open));
}

/// The claim is gone, and its Deployment waits for it. The Deployment goes too, else it would remove the pod that Velero
/// restores the data through.
#[test]
fn a_claim_that_is_gone_comes_back_once_nothing_uses_it() {
    let mut world = world();
    world.record.claims.clear();
    world.record.lost = vec!["files".to_owned()];
    (world.record.safety_backup, world.record.checked) = (None, true);
    world.claims.clear();
    assert!(matches!(world.next(), Step::Remove(_)));
    world.workloads.remove(0);
    let both = vec!["ReplicaSet web-1".to_owned(), "Pod web-1-a".to_owned()];
    assert_eq!(world.next(), Step::WaitForRemoval(both));
    world.workloads.clear();
    assert_eq!(world.next(), Step::CreateRestore);
    world.claims = vec![claim("files")];
    assert!(world.fails().contains("was created by somebody else meanwhile"));
    let mut ended = restore("Completed", &[condition("DataRestored", "False", "VolumesFailed")]);
    ended.status.as_mut().unwrap().claims =
        serde_json::from_value(json!([{"name": "files", "state": "Failed", "message": "no space"}])).unwrap();
    world.restore = Some(ended);
    assert_eq!(world.fails(), "restore back: the data of claim files did not come back: no space");
}
