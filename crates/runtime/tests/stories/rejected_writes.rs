//! Rejected writes: reported in conditions, retried, and cleared when they succeed.

use std::sync::Arc;
use std::time::Duration;

use api::Kind;
use planner::{Action, RejectedWrite, backup};
use serde_json::{Value, json};

use crate::storage::{available, bucket, world};
use crate::world::manifests::{nab, nab_with, nar};
use crate::world::{World, long};

/// Longer than any wait for the next try.
const A_WHILE: Duration = Duration::from_mins(10);

fn phase(world: &World, object: &str) -> Value {
    world.get(object)["status"]["phase"].clone()
}

#[test]
fn what_velero_cannot_be_given_of_a_location_is_told_and_mends_itself() {
    for (kind, type_, reason) in [
        (Kind::Secret, "SecretSynced", "SecretSyncFailed: Velero could not be given the credential: "),
        (
            Kind::BackupStorageLocation,
            "BackupStorageLocationSynced",
            "BackupStorageLocationSyncError: Velero could not be given the location: ",
        ),
        (
            Kind::NonAdminBackupStorageLocationRequest,
            "ClusterAdminApproved",
            "BslSpecApprovalPending: the administrators could not be asked: ",
        ),
    ] {
        let mut world = world(&["shop"]);
        world.refuse(kind, false, 403);
        world.apply(bucket("shop/bucket", "mine"));
        world.settle();
        let reported = world.get("nabsl shop/bucket");
        assert_eq!(reported["status"]["phase"], "BackingOff", "{type_}");
        let says = world.condition("nabsl shop/bucket", type_);
        assert!(says.starts_with(&format!("False/{reason}nacre is not allowed to")), "{says}");
        let others = ["SecretSynced", "BackupStorageLocationSynced"].into_iter().filter(|one| *one != type_);
        for other in others {
            let exists = other == "SecretSynced" && kind == Kind::BackupStorageLocation;
            assert!(exists || world.condition("nabsl shop/bucket", other) == "/: ", "{type_}: {other}");
        }

        // Retried, reported once.
        world.pass(A_WHILE);
        assert_eq!(world.get("nabsl shop/bucket"), reported, "{type_}");
        world.relent();
        world.pass(A_WHILE);
        assert_eq!(phase(&world, "nabsl shop/bucket"), "Created", "{type_}");
        assert!(world.condition("nabsl shop/bucket", type_).starts_with("True/"), "{type_}");
    }
}

#[test]
fn a_key_that_cannot_be_rotated_is_told_and_velero_keeps_the_old_one() {
    let mut world = world(&["shop"]);
    let name = available(&mut world, "shop/bucket", "mine");
    let before = world.get(&format!("secret {name}"))["data"].clone();
    world.refuse(Kind::Secret, false, 403);
    let other = "W2RlZmF1bHRdCmF3c19hY2Nlc3Nfa2V5X2lkPWIKYXdzX3NlY3JldF9hY2Nlc3Nfa2V5PWh1bnRlcjMK";
    world.edit("secret shop/keys", json!({"data": {"cloud": other}}));
    world.settle();
    assert!(world.condition("nabsl shop/bucket", "SecretSynced").starts_with("False/SecretSyncFailed"));
    assert!(world.condition("nabsl shop/bucket", "BackupStorageLocationSynced").starts_with("True/"));
    assert_eq!(world.get(&format!("secret {name}"))["data"], before);
    world.relent();
    world.pass(A_WHILE);
    assert_ne!(world.get(&format!("secret {name}"))["data"], before);
    assert_eq!(phase(&world, "nabsl shop/bucket"), "Created");
}

#[test]
fn what_cannot_be_taken_away_keeps_nothing_else_from_going() {
    let mut world = world(&["shop"]);
    let name = available(&mut world, "shop/bucket", "mine");
    world.refuse(Kind::BackupStorageLocation, false, 403);
    world.edit(&format!("request {name}"), json!({"spec": {"approvalDecision": "reject"}}));
    world.settle();
    assert!(world.has(&format!("bsl {name}")) && !world.has(&format!("secret {name}")));
    let says = world.condition("nabsl shop/bucket", "BackupStorageLocationSynced");
    assert!(says.contains("the location could not be taken from Velero"), "{says}");
    assert!(
        world.condition("nabsl shop/bucket", "ClusterAdminApproved").starts_with("False/BslSpecRejected")
    );
    world.relent();
    world.pass(A_WHILE);
    assert!(!world.has(&format!("bsl {name}")));
    assert_eq!(world.condition("nabsl shop/bucket", "BackupStorageLocationSynced"), "/: ");
}

#[test]
fn what_cannot_be_deleted_with_a_location_is_waited_for_and_the_rest_goes() {
    for kind in [Kind::NonAdminBackup, Kind::BackupStorageLocation, Kind::Secret] {
        let mut world = world(&["shop"]);
        let name = available(&mut world, "shop/bucket", "mine");
        world.apply(nab_with("shop/daily", json!({"storageLocation": "bucket"})));
        world.settle();
        world.refuse(kind, false, 403);
        world.delete("nabsl shop/bucket");
        world.settle();
        assert_eq!(phase(&world, "nabsl shop/bucket"), "Deleting");
        assert_eq!(world.has("nab shop/daily"), kind == Kind::NonAdminBackup);
        assert_eq!(world.has(&format!("bsl {name}")), kind == Kind::BackupStorageLocation);
        assert_eq!(world.has(&format!("secret {name}")), kind == Kind::Secret);
        assert!(!world.has(&format!("request {name}")));
        let reported = world.get("nabsl shop/bucket");
        world.pass(A_WHILE);
        assert_eq!(world.get("nabsl shop/bucket"), reported);
        world.relent();
        world.pass(A_WHILE);
        assert!(!world.has("nabsl shop/bucket") && !world.has("nab shop/daily"), "{kind:?}");
        assert!(!world.has(&format!("bsl {name}")) && !world.has(&format!("secret {name}")), "{kind:?}");
    }
}

#[test]
fn a_backup_and_a_restore_that_velero_cannot_be_given_say_so() {
    let mut world = World::with(&["shop"]);
    world.refuse(Kind::Backup, false, 403);
    world.apply(nab("shop/daily"));
    world.settle();
    let says = world.condition("nab shop/daily", "Accepted");
    assert!(says.starts_with("False/HandOverFailed: Velero could not be given the backup"), "{says}");
    assert_eq!(phase(&world, "nab shop/daily"), "BackingOff");
    world.relent();
    world.pass(A_WHILE);
    assert_eq!(phase(&world, "nab shop/daily"), "Created");
    let velero = world.velero_name("nab shop/daily");
    world.velero_starts(&velero);
    world.velero_completes(&velero);

    world.refuse(Kind::Restore, false, 422);
    world.apply(nar("shop/back", "daily"));
    world.settle();
    let says = world.condition("nar shop/back", "Accepted");
    assert!(says.starts_with("False/HandOverFailed: Velero could not be given the restore"), "{says}");
    world.relent();
    world.pass(A_WHILE);
    assert_eq!(phase(&world, "nar shop/back"), "Created");
}

/// A server that restarts answers 500 or knows nobody for a moment: no tenant should wait half a minute for that, nor
/// hear of it.
#[test]
fn a_server_in_trouble_of_its_own_is_asked_again_before_anybody_hears_of_it() {
    for code in [401, 500] {
        let mut world = world(&["shop"]);
        for kind in [Kind::Backup, Kind::Restore, Kind::Secret] {
            world.refuse_next(kind, code, 4);
        }
        available(&mut world, "shop/bucket", "mine");
        let mut world = world.backed_up();
        world.apply(nar("shop/back", "daily"));
        world.settle();
        assert_eq!(phase(&world, "nar shop/back"), "Created");
        assert!(!world.whole_trace().contains("Failed"), "{}", world.whole_trace());

        // A persistent error is reported: it may be a webhook that somebody has to fix.
        world.trace();
        world.refuse(Kind::Backup, false, code);
        world.apply(nab("shop/nightly"));
        world.settle();
        let says = world.condition("nab shop/nightly", "Accepted");
        assert!(says.starts_with("False/HandOverFailed"), "{says}");
        assert_eq!(world.trace().matches(&format!("{code} create")).count(), 5);
        world.relent();
        world.pass(A_WHILE);
        assert_eq!(phase(&world, "nab shop/nightly"), "Created");
    }
}

#[test]
fn a_restore_from_own_storage_says_that_its_modifier_cannot_be_written() {
    let mut world = world(&["shop"]);
    available(&mut world, "shop/bucket", "mine");
    world.apply(nab_with("shop/daily", json!({"storageLocation": "bucket"})));
    world.settle();
    let velero = world.velero_name("nab shop/daily");
    world.velero_starts(&velero);
    world.velero_completes(&velero);
    world.refuse(Kind::ConfigMap, false, 403);
    world.apply(nar("shop/back", "daily"));
    world.settle();
    let reported = world.get("nar shop/back");
    let says = world.condition("nar shop/back", "Accepted");
    assert!(says.contains("nacre's own resource modifier"), "{says}");
    assert!(says.ends_with("nacre is not allowed to; ask the administrators; nacre retries"), "{says}");
    let writes = world.writes();
    world.pass(A_WHILE);
    assert_eq!(
        (world.get("nar shop/back"), world.writes()),
        (reported, writes),
        "reported once, and without finalizer"
    );
    world.relent();
    world.pass(A_WHILE);
    assert_eq!(phase(&world, "nar shop/back"), "Created");
}

#[test]
fn an_old_definition_that_does_not_know_a_word_of_veleros_is_spared_it() {
    let mut world = World::with(&["shop"]);
    world.apply(nab("shop/daily"));
    world.settle();
    let velero = world.velero_name("nab shop/daily");
    let said =
        |world: &World| world.get("nab shop/daily")["status"]["veleroBackup"]["status"]["phase"].clone();
    world.refuse(Kind::NonAdminBackup, true, 422);
    world.edit(&format!("backup {velero}"), json!({"status": {"phase": "Queued"}}));
    world.settle();
    let status = world.get("nab shop/daily")["status"].clone();
    assert_eq!((&status["phase"], said(&world)), (&json!("Created"), Value::Null));
    assert_eq!(status["veleroBackup"]["nacuuid"], json!(long(&velero)));
    // What it knows is shown, and what it does not know is not tried again.
    world.velero_starts(&velero);
    world.settle();
    assert_eq!(said(&world), "InProgress");
    world.velero_completes(&velero);
    world.settle();
    assert_eq!(said(&world), "Completed");
    world.relent();

    // The same for a restore.
    world.apply(nar("shop/back", "daily"));
    world.settle();
    let velero = world.velero_name("nar shop/back");
    let said =
        |world: &World| world.get("nar shop/back")["status"]["veleroRestore"]["status"]["phase"].clone();
    world.refuse(Kind::NonAdminRestore, true, 422);
    world.edit(&format!("restore {velero}"), json!({"status": {"phase": "Queued"}}));
    world.settle();
    assert_eq!((phase(&world, "nar shop/back"), said(&world)), (json!("Created"), Value::Null));
    world.edit(&format!("restore {velero}"), json!({"status": {"phase": "InProgress"}}));
    world.settle();
    assert_eq!(said(&world), "InProgress");
}

/// A rejected write of the request itself says nothing about the Velero object, which is still created.
#[test]
fn trouble_with_the_request_is_not_trouble_with_velero() {
    let mut world = World::with(&["shop"]);
    world.apply(nab("shop/daily"));
    let creates_with_trouble_of = |kind: Kind| {
        let mut seen = backup::observe(&world.state(), "shop", "daily").unwrap();
        let message = "not now".to_owned();
        seen.rejected_write =
            Some(Arc::new(RejectedWrite { kind, of_status: false, code: 500, message, times: 1 }));
        backup::decide(&seen).actions.iter().any(|action| matches!(action, Action::Create(_)))
    };
    assert!(creates_with_trouble_of(Kind::NonAdminBackup));
    assert!(!creates_with_trouble_of(Kind::Backup));
}
