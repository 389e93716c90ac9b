//! Which operations are cancelled, and how.

use std::time::Duration;

use api::{Kind, velero::Restore};
use jiff::{SignedDuration, Timestamp};
use kube::core::ObjectMeta;
use serde_json::{Value, json};

use super::{Check, Downloads, Operation, Owner, Pod, PodState, Stuck, Velero, cancel, check};
use crate::policy::VolumePolicy;
use crate::queue::Stage;
use crate::{Action, Target};

fn at(minutes: i64) -> Timestamp {
    "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_mins(minutes)
}

fn operation(kind: Kind, phase: &str) -> Operation {
    let meta = ObjectMeta { name: Some("v".to_owned()), ..ObjectMeta::default() };
    Operation {
        target: Target::of(kind, &meta),
        phase: phase.to_owned(),
        message: None,
        claim: None,
        claim_uid: None,
        pod: None,
        volume: None,
        done: 0,
        total: 0,
        new_bytes: None,
        is_cancelling: false,
        cancelling_since: None,
        created: Some(at(0)),
        completed: None,
        changed: Some(at(0)),
        without_agent_since: None,
    }
}

fn waits_for(state: PodState) -> Operation {
    let pod = Pod { namespace: "shop".to_owned(), name: "db".to_owned(), state };
    Operation { pod: Some(pod), ..operation(Kind::PodVolumeRestore, "") }
}

fn owner() -> Owner {
    Owner { started: Some(at(0)), ..Owner::default() }
}

/// In how many whole minutes an operation is found to be stuck, and why.
fn stuck_after(operation: &Operation, owner: &Owner) -> Option<(i64, Stuck)> {
    let mut minute = 0;
    while minute <= 3000 {
        match check(operation, owner, &VolumePolicy::default(), at(minute)) {
            Check::Stuck(stuck) => return Some((minute, stuck)),
            Check::Over | Check::GoesOn(None) => return None,
            Check::GoesOn(Some(after)) => {
                minute += i64::try_from(after.as_secs().div_ceil(60)).unwrap().max(1);
            }
        }
    }
    None
}

fn minutes(many: u64) -> Duration {
    Duration::from_mins(many)
}

#[test]
fn a_volume_does_not_wait_for_a_pod_that_is_gone() {
    let gone = waits_for(PodState::Gone);
    assert_eq!(stuck_after(&gone, &owner()), Some((2, Stuck::PodGone("db".to_owned()))));
    let accepted = Operation { phase: "Accepted".to_owned(), ..gone };
    assert_eq!(stuck_after(&accepted, &owner()), Some((2, Stuck::PodGone("db".to_owned()))));
}

/// H14: a pod that its owner keeps from receiving data: Velero's only worker would wait for it for hours
#[test]
fn h14_a_volume_does_not_wait_for_a_pod_that_does_not_wait_for_it() {
    let held = waits_for(PodState::DoesNotWait("it is being deleted"));
    let stuck = Stuck::PodDoesNotWait("db".to_owned(), "it is being deleted");
    assert_eq!(stuck.why(), "pod \"db\" does not wait for the data: it is being deleted");
    assert_eq!(stuck_after(&held, &owner()), Some((2, stuck)));
    // What is being written goes on.
    let written = Operation { phase: "InProgress".to_owned(), ..held };
    assert_eq!(stuck_after(&written, &owner()), Some((30, Stuck::NoProgress(minutes(30)))));
}

#[test]
fn a_volume_waits_longer_for_a_pod_that_may_still_start() {
    let why = "0/1 nodes are available".to_owned();
    let pending = waits_for(PodState::NotScheduled(why.clone()));
    assert_eq!(stuck_after(&pending, &owner()), Some((5, Stuck::PodPending("db".to_owned(), why))));
    // A node agent that has accepted it works on it.
    let accepted = Operation { phase: "Accepted".to_owned(), ..pending.clone() };
    assert_eq!(stuck_after(&accepted, &owner()), Some((24 * 60, Stuck::TooLong(minutes(24 * 60)))));
    // Its other volume is still on its way, or has just arrived.
    let downloading = Owner { downloads: Downloads::Running, ..owner() };
    assert_eq!(stuck_after(&pending, &downloading).map(|(minute, _)| minute), Some(24 * 60));
    let downloaded = Owner { downloads: Downloads::Over(at(60)), ..owner() };
    assert_eq!(stuck_after(&pending, &downloaded).map(|(minute, _)| minute), Some(65));
}

#[test]
fn what_waits_in_the_queue_of_a_node_is_not_stuck() {
    for state in [PodState::Ready, PodState::Unknown] {
        let stuck = stuck_after(&waits_for(state), &owner());
        assert_eq!(stuck, Some((24 * 60, Stuck::TooLong(minutes(24 * 60)))));
    }
    for phase in ["", "New", "Accepted", "Prepared"] {
        let stuck = stuck_after(&operation(Kind::DataUpload, phase), &owner());
        assert_eq!(stuck.map(|(minute, _)| minute), Some(24 * 60), "{phase}");
    }
}

#[test]
fn only_what_is_in_progress_needs_progress() {
    let kinds = [Kind::PodVolumeBackup, Kind::PodVolumeRestore, Kind::DataUpload, Kind::DataDownload];
    for kind in kinds {
        let running = operation(kind, "InProgress");
        assert_eq!(stuck_after(&running, &owner()), Some((30, Stuck::NoProgress(minutes(30)))));
        let later = Operation { changed: Some(at(100)), ..running };
        assert_eq!(stuck_after(&later, &owner()), Some((130, Stuck::NoProgress(minutes(30)))));
    }
}

#[test]
fn where_no_node_agent_runs_nothing_waits_in_its_queue() {
    for phase in ["", "New", "Accepted", "Prepared"] {
        let waits = operation(Kind::DataUpload, phase);
        let left = Operation { without_agent_since: Some(at(100)), ..waits.clone() };
        assert_eq!(stuck_after(&left, &owner()), Some((130, Stuck::NoNodeAgent(minutes(30)))), "{phase}");
        let never = Operation { without_agent_since: Some(Timestamp::MIN), ..waits };
        assert_eq!(stuck_after(&never, &owner()), Some((30, Stuck::NoNodeAgent(minutes(30)))), "{phase}");
    }
}

#[test]
fn nothing_outlives_its_restore_by_much() {
    let over = Owner { is_over: true, completed: Some(at(10)), ..owner() };
    assert_eq!(stuck_after(&operation(Kind::PodVolumeRestore, "New"), &over), Some((11, Stuck::OwnerOver)));
    let ended = operation(Kind::PodVolumeRestore, "Canceled");
    assert_eq!(check(&ended, &over, &VolumePolicy::default(), at(99)), Check::Over);
}

#[test]
fn a_limit_of_zero_is_none() {
    let zero = || api::Duration::from("0");
    let without =
        VolumePolicy { pod_gone: zero(), pod_pending: zero(), no_progress: zero(), longest: zero() };
    for operation in [waits_for(PodState::Gone), operation(Kind::DataUpload, "InProgress")] {
        assert_eq!(check(&operation, &owner(), &without, at(100_000)), Check::GoesOn(None));
    }
}

/// The writes for an operation whose request is being deleted.
fn written(operation: &Operation, velero: &Velero) -> Vec<Value> {
    let deleting = Owner { is_deleting: true, ..owner() };
    let found = cancel(std::slice::from_ref(operation), &deleting, &VolumePolicy::default(), velero, at(60));
    let body = |(action, _): (Action, String)| match action {
        Action::Patch(_, body) => body,
        other => panic!("{other:?}"),
    };
    found.actions.into_iter().map(body).collect()
}

const WHY: &str = "cancelled by nacre: the request is being deleted";

#[test]
fn velero_is_asked_to_cancel_once() {
    let velero = Velero { without_agent: false, version: Some("v1.18.3".to_owned()) };
    let asked = operation(Kind::PodVolumeRestore, "New");
    assert_eq!(written(&asked, &velero), [json!({"spec": {"cancel": true}, "status": {"message": WHY}})]);
    let cancelling = Operation { is_cancelling: true, cancelling_since: Some(at(59)), ..asked };
    assert_eq!(written(&cancelling, &velero), Vec::<Value>::new());
}

#[test]
fn where_nobody_obeys_nacre_writes_the_final_phase() {
    let now = at(60).to_string();
    let ended = |phase: &str| json!({"phase": phase, "message": WHY, "completionTimestamp": now});
    let asked = operation(Kind::PodVolumeRestore, "InProgress");
    let known = Velero { without_agent: false, version: Some("v1.18.3".to_owned()) };
    let without_agent = Velero { without_agent: true, ..known.clone() };
    let both = json!({"spec": {"cancel": true}, "status": ended("Canceled")});
    assert_eq!(written(&asked, &without_agent), std::slice::from_ref(&both));
    let waited = Operation { is_cancelling: true, cancelling_since: Some(at(50)), ..asked.clone() };
    assert_eq!(written(&waited, &known), [both]);
    // A node agent that has begun to cancel it is waited for a minute.
    let begun = |since| Operation {
        phase: "Canceling".to_owned(),
        is_cancelling: true,
        cancelling_since: Some(at(since)),
        ..asked.clone()
    };
    assert_eq!(written(&begun(59), &known).len(), 1);
    assert_eq!(written(&begun(60), &known), Vec::<Value>::new());
    // Before 1.17 there is neither the field nor the phase, except for data movers.
    let old = Velero { without_agent: false, version: Some("v1.16.2".to_owned()) };
    assert_eq!(written(&asked, &old), [json!({"status": ended("Failed")})]);
    let moved = operation(Kind::DataDownload, "InProgress");
    assert_eq!(written(&moved, &old), [json!({"spec": {"cancel": true}, "status": {"message": WHY}})]);
}

/// A Velero whose version is not known may be one that cancels, or one whose CRD drops `spec.cancel`.
#[test]
fn a_velero_of_unknown_version_is_asked_and_where_the_field_is_dropped_nacre_writes_the_final_phase() {
    let unknown = [Velero::default(), Velero { without_agent: false, version: Some("main".to_owned()) }];
    let ended = json!({"phase": "Failed", "message": WHY, "completionTimestamp": at(60).to_string()});
    let asked = operation(Kind::PodVolumeBackup, "InProgress");
    for velero in unknown {
        assert_eq!(written(&asked, &velero), [json!({"spec": {"cancel": true}, "status": {"message": WHY}})]);
        let cancelling = Operation {
            message: Some(WHY.to_owned()),
            is_cancelling: true,
            cancelling_since: Some(at(59)),
            ..asked.clone()
        };
        assert_eq!(written(&cancelling, &velero), Vec::<Value>::new(), "it cancels");
        let dropped = Operation { message: Some(WHY.to_owned()), ..asked.clone() };
        assert_eq!(written(&dropped, &velero), [json!({ "status": ended })], "it cannot");
        // The phase is one that every version knows.
        let without_agent = Velero { without_agent: true, ..velero };
        assert_eq!(written(&asked, &without_agent), [json!({"spec": {"cancel": true}, "status": ended})]);
    }
}

#[test]
fn a_restore_that_velero_works_on_is_not_deleted_for_a_day() {
    let velero: Restore = serde_json::from_value(json!({"metadata": {"name": "r"}, "spec": {},
        "status": {"phase": "InProgress", "startTimestamp": at(0).to_string()}}))
    .unwrap();
    let at_work = |stage, minute| {
        Owner::restore(&velero, &[], true).is_at_work(stage, &VolumePolicy::default(), at(minute))
    };
    assert!(at_work(Stage::Running, 1) && at_work(Stage::Finalizing, 24 * 60 - 1));
    assert!(!at_work(Stage::Running, 24 * 60));
    assert!(!at_work(Stage::Waiting, 1) && !at_work(Stage::Finished, 1));
}
