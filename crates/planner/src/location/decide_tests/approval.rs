//! What administrators say, and what they did not.

use api::{Phase, condition, labels};
use serde_json::json;

use super::{Play, merge};
use crate::Action;
use crate::view::Credential;

#[test]
fn an_administrator_is_asked_approves_rejects_and_revokes() {
    let mut play = Play::new(true);
    play.settle();
    assert_eq!((play.phase(), play.velero_has_it()), (Some(Phase::New), false));
    assert_eq!(play.says(condition::CLUSTER_ADMIN_APPROVED), "False/BslSpecApprovalPending");
    assert_eq!(play.request_phase(), "Pending");

    play.admin_says("approve");
    play.settle();
    assert_eq!((play.phase(), play.velero_has_it()), (Some(Phase::Created), true));

    for (decision, phase, reason, shown) in [
        ("reject", Phase::BackingOff, "False/BslSpecRejected", "Rejected"),
        ("approve", Phase::Created, "True/BslSpecApproved", "Approved"),
        ("pending", Phase::New, "False/BslSpecApprovalPending", "Pending"),
    ] {
        play.admin_says(decision);
        let done = play.settle();
        assert_eq!(play.phase(), Some(phase), "{decision}");
        assert_eq!(play.says(condition::CLUSTER_ADMIN_APPROVED), reason);
        assert_eq!(play.request_phase(), shown);
        assert_eq!(play.velero_has_it(), decision == "approve");
        if decision == "reject" {
            let deleted: Vec<_> = done.iter().filter(|line| line.starts_with("delete")).collect();
            assert_eq!(deleted, ["delete BackupStorageLocation", "delete Secret"]);
            assert_eq!(play.says(condition::SECRET_SYNCED) + &play.says(condition::LOCATION_SYNCED), "");
        }
    }
}

/// nacre may end between the removal and the status that reports it, and finds another mistake when it is back.
#[test]
fn a_rejection_is_reported_although_the_secret_is_missing_too() {
    let mut play = Play::new(true);
    play.settle();
    play.admin_says("approve");
    play.settle();
    play.admin_says("reject");
    play.seen.credential = Credential::Missing(jiff::Timestamp::UNIX_EPOCH);
    let removals: Vec<_> =
        play.pass().actions.into_iter().filter(|action| matches!(action, Action::Delete(_))).collect();
    assert_eq!(removals.len(), 2);
    for removal in &removals {
        play.act(removal);
    }
    play.settle();
    assert!(play.says(condition::ACCEPTED).starts_with("False/"), "{}", play.message(condition::ACCEPTED));
    assert_eq!(play.says(condition::CLUSTER_ADMIN_APPROVED), "False/BslSpecRejected");
}

#[test]
fn an_approval_before_it_is_written_down_what_is_asked_for_does_not_count() {
    let mut play = Play::new(true);
    for action in play.pass().actions {
        play.act(&action);
    }
    play.admin_says("approve");
    let done = play.settle();
    assert_eq!(done[0], "patch NonAdminBackupStorageLocationRequest", "{done:?}");
    assert_eq!((play.phase(), play.velero_has_it()), (Some(Phase::New), false));
    play.admin_says("approve");
    play.settle();
    assert_eq!((play.phase(), play.velero_has_it()), (Some(Phase::Created), true));

    // Where nobody has to approve, nacre makes the request approved, and writes down what is asked for after that.
    let mut play = Play::new(false);
    for action in play.pass().actions {
        play.act(&action);
    }
    assert!(!play.velero_has_it());
    play.settle();
    assert_eq!((play.phase(), play.velero_has_it()), (Some(Phase::Created), true));
}

#[test]
fn a_tenant_is_told_why_an_administrator_says_no() {
    let mut play = Play::new(true);
    play.settle();
    let no = json!({"metadata": {"annotations": {labels::REJECTION_REASON: "that bucket\nis ours"}},
        "spec": {"approvalDecision": "reject"}});
    merge(&mut play.seen.request.as_mut().unwrap().object, &no);
    play.settle();
    let reported = play.message(condition::CLUSTER_ADMIN_APPROVED);
    assert_eq!(reported, "an administrator has rejected the location: that bucket is ours");
    assert!(play.settle().is_empty());
}

#[test]
fn approval_switched_off_approves_what_waits_but_not_what_was_rejected() {
    let mut waiting = Play::new(true);
    waiting.settle();
    waiting.policy.storage_locations.require_approval = false;
    waiting.settle();
    assert_eq!((waiting.phase(), waiting.request_phase()), (Some(Phase::Created), json!("Approved")));
    // Switched on again, what was approved stays approved.
    waiting.policy.storage_locations.require_approval = true;
    assert!(waiting.settle().is_empty());

    let mut rejected = Play::new(true);
    rejected.settle();
    rejected.admin_says("reject");
    rejected.settle();
    rejected.policy.storage_locations.require_approval = false;
    assert!(rejected.settle().is_empty());
    assert_eq!(rejected.phase(), Some(Phase::BackingOff));
}

#[test]
fn a_request_that_is_deleted_is_made_anew_and_asked_about_again() {
    for approval in [true, false] {
        let mut play = Play::new(approval);
        play.settle();
        if approval {
            play.admin_says("approve");
            play.settle();
        }
        play.seen.request = None;
        play.settle();
        assert_eq!(play.velero_has_it(), !approval);
        assert_eq!(play.request_phase(), if approval { "Pending" } else { "Approved" });
    }
}

#[test]
fn a_decision_that_is_unclear_or_about_another_location_counts_as_none() {
    type Change = fn(&mut Play);
    let cases: [(&str, Change); 2] = [
        ("False/BslSpecInvalid", |play| {
            play.seen.request.as_mut().unwrap().unreadable = Some("no such decision".into());
        }),
        ("False/BslSpecUpdateRejected", |play| {
            let other = json!({"status": {"nonAdminBackupStorageLocation": {"nacuuid": "another"}}});
            merge(&mut play.seen.request.as_mut().unwrap().object, &other);
        }),
    ];
    for (reason, change) in cases {
        let mut play = Play::new(false);
        play.settle();
        let sound = play.seen.request.clone();
        change(&mut play);
        play.settle();
        assert_eq!((play.phase(), play.velero_has_it()), (Some(Phase::BackingOff), false), "{reason}");
        assert_eq!(play.says(condition::CLUSTER_ADMIN_APPROVED), reason);
        play.seen.request = sound;
        play.settle();
        assert_eq!((play.phase(), play.velero_has_it()), (Some(Phase::Created), true), "{reason}");
    }
}
