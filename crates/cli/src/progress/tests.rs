use serde_json::{Value, json};

use super::*;

/// A backup with this status.
pub(crate) fn backup(status: &Value) -> NonAdminBackup {
    let object = json!({
        "apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackup",
        "metadata": {"name": "daily", "namespace": "shop", "generation": 1, "creationTimestamp": "2026-11-15T12:00:00Z"},
        "spec": {"backupSpec": {}}, "status": status,
    });
    serde_json::from_value(object).unwrap()
}

/// A status in which Velero has this phase.
pub(crate) fn at_velero(velero_status: &Value) -> Value {
    json!({"phase": "Created", "queueInfo": {"estimatedQueuePosition": 3}, "veleroBackup": {"name": "shop-daily-uid", "status": velero_status}})
}

/// A status that refuses.
pub(crate) fn refused(reason: &str, message: &str) -> Value {
    json!({"phase": "BackingOff", "conditions": [{"type": "Accepted", "status": "False", "reason": reason,
        "message": message, "lastTransitionTime": "2026-11-15T12:00:01Z"}]})
}

/// A status in which Velero has this phase, and with this condition about the data of claims.
pub(crate) fn about_data(phase: &str, status: &str, reason: &str) -> Value {
    let mut about = at_velero(&json!({"phase": phase, "progress": {"totalItems": 2, "itemsBackedUp": 2}}));
    about["conditions"] = json!([{"type": "DataProtected", "status": status, "reason": reason,
        "message": "volume data of claim \"data\" is NOT in this backup: X. What to do: Y",
        "lastTransitionTime": "2026-11-15T12:00:01Z"}]);
    about
}

fn reported(status: &Value) -> String {
    let backup = backup(status);
    let progress = RequestProgress::from(&backup);
    format!("{} | {} | {:?}", progress.word(), progress.sentence(), progress.outcome())
}

#[test]
fn one_that_waits_for_its_turn_shows_when_it_starts() {
    let waits = |info: Value, reason: &str, message: &str| {
        let of = |type_: &str, reason: &str, message: &str| {
            json!({"type": type_, "status": "True", "reason": reason,
            "message": message, "lastTransitionTime": "2026-11-15T12:00:01Z"})
        };
        let conditions = [of("Accepted", "BackupAccepted", ""), of("WaitingForTurn", reason, message)];
        backup(&json!({"phase": "New", "queueInfo": info, "conditions": conditions}))
    };
    let sentence = |earliest: &str, about: &str, latest: &str| {
        let time = |time: &str| format!("2026-11-15T{time}Z");
        let backup = waits(
            json!({"estimatedQueuePosition": 4, "estimatedStart": time(about), "earliestStart": time(earliest),
                "latestStart": time(latest)}),
            "OthersFirst",
            "",
        );
        let now = "2026-11-15T12:00:00Z".parse().unwrap();
        RequestProgress { now, ..RequestProgress::from(&backup) }.sentence()
    };
    assert_eq!(
        sentence("12:08:00", "12:12:00", "12:20:00"),
        "starts in about 12 min (8 to 20); 3 ahead of you"
    );
    assert_eq!(
        sentence("11:59:00", "12:00:30", "12:01:10"),
        "starts in about 30 s (0 to 70); 3 ahead of you"
    );
    assert_eq!(sentence("14:00:00", "15:00:00", "17:30:00"), "starts in about 3 h (2 to 6); 3 ahead of you");
    assert_eq!(sentence("11:00:00", "11:30:00", "11:59:00"), "should have started by now; 3 ahead of you");
    let held =
        waits(json!({"estimatedQueuePosition": 1}), "HeldByAdministrator", "an administrator holds it back");
    let held = RequestProgress::from(&held);
    assert_eq!((held.word(), held.sentence().as_str()), ("Held", "an administrator holds it back"));
}

#[test]
fn every_state_has_a_word_a_sentence_and_an_outcome() {
    let in_turn = json!({"phase": "New", "queueInfo": {"estimatedQueuePosition": 4}, "conditions": [{
        "type": "Accepted", "status": "True", "reason": "BackupAccepted", "message": "",
        "lastTransitionTime": "2026-11-15T12:00:01Z"}]});
    let states = [
        json!({}),
        in_turn,
        refused("InvalidBackupSpec", "spec.backupSpec.ttl: too long"),
        refused("NamespaceLimitReached", "metadata.namespace: 3 are running"),
        refused("InvalidRestoreSpec", "it is not finished; the restore starts when it is"),
        refused("InvalidBackupSpec", "Velero has not reported it; the backup starts when it has"),
        refused("VeleroBackupNotFound", "the Velero Backup is gone"),
        at_velero(&json!({})),
        at_velero(&json!({"phase": "InProgress"})),
        at_velero(&json!({"phase": "InProgress", "progress": {"totalItems": 42, "itemsBackedUp": 7}})),
        at_velero(&json!({"phase": "WaitingForPluginOperations"})),
        at_velero(&json!({"phase": "Finalizing"})),
        at_velero(
            &json!({"phase": "Completed", "progress": {"totalItems": 1, "itemsBackedUp": 1}, "warnings": 2}),
        ),
        at_velero(&json!({"phase": "Completed", "progress": {}, "warnings": 2})),
        about_data("Completed", "Unknown", "StillRunning"),
        about_data("Completed", "False", "ClaimsNotSaved"),
        about_data("Completed", "True", "AllClaimsSaved"),
        about_data("PartiallyFailed", "False", "ClaimsNotSaved"),
        at_velero(&json!({"phase": "PartiallyFailed", "errors": 1, "warnings": 2})),
        at_velero(&json!({"phase": "Failed", "failureReason": "no space"})),
        at_velero(&json!({"phase": "FailedValidation", "validationErrors": ["one", "two"]})),
        at_velero(&json!({"phase": "Deleting"})),
        json!({"phase": "Deleting"}),
    ];
    insta::assert_snapshot!(states.each_ref().map(reported).join("\n"), @r#"
    New | nacre has not processed it yet | None
    Queued | waits for its turn, 3 ahead of you | None
    Refused | refused: spec.backupSpec.ttl: too long | Some(Failed)
    Waiting | waiting: metadata.namespace: 3 are running | None
    Waiting | waiting: it is not finished; the restore starts when it is | None
    Waiting | waiting: Velero has not reported it; the backup starts when it has | None
    Gone | the Velero Backup is gone | Some(Failed)
    Queued | in Velero's queue, 2 ahead of it | None
    InProgress | Velero has started | None
    InProgress | 7 of 42 items | None
    WaitingForPluginOperations | the items are done, volume data is still on its way | None
    Finalizing | Velero is finishing | None
    Completed | complete, 1 item, with 2 warnings | Some(Good)
    Completed | nothing was backed up: 0 items, with 2 warnings | Some(Attention)
    Completed | the items are done, the volume data is being checked | None
    NotProtected | volume data of claim "data" is NOT in this backup: X. What to do: Y (the rest is complete, 2 items) | Some(Attention)
    Completed | complete, 2 items | Some(Good)
    PartiallyFailed | volume data of claim "data" is NOT in this backup: X. What to do: Y (the rest is done only in part) | Some(Attention)
    PartiallyFailed | done only in part, with 1 error and 2 warnings | Some(Attention)
    Failed | failed: no space | Some(Failed)
    FailedValidation | failed as FailedValidation: one; two | Some(Failed)
    Deleting | Velero is deleting it | Some(Failed)
    Deleting | being deleted | Some(Failed)
    "#);
}

#[test]
fn a_restore_that_restored_nothing_is_no_success() {
    let restore = |items: &Value| -> NonAdminRestore {
        let velero_status = json!({"phase": "Completed", "progress": {"itemsRestored": items}});
        serde_json::from_value(
            json!({"metadata": {"name": "back"}, "spec": {"restoreSpec": {"backupName": "daily"}},
            "status": {"phase": "Created", "veleroRestore": {"status": velero_status}}}),
        )
        .unwrap()
    };
    let (nothing, something) = (restore(&Value::Null), restore(&json!(1)));
    let progress = RequestProgress::from(&nothing);
    assert_eq!(
        (progress.sentence().as_str(), progress.outcome()),
        ("nothing was restored: 0 items", Some(Outcome::Attention))
    );
    assert_eq!(RequestProgress::from(&something).outcome(), Some(Outcome::Good));
}

/// What is said about a restore in this phase, if nacre says this about its volumes.
fn restored(phase: &str, data: &Value) -> String {
    let velero_status =
        json!({"phase": phase, "progress": {"itemsRestored": 8, "totalItems": 8}, "errors": 1});
    let conditions = if data.is_null() { json!([]) } else { json!([data]) };
    let restore: NonAdminRestore = serde_json::from_value(
        json!({"metadata": {"name": "back"}, "spec": {"restoreSpec": {"backupName": "daily"}},
        "status": {"phase": "Created", "conditions": conditions, "veleroRestore": {"status": velero_status}}}),
    )
    .unwrap();
    let progress = RequestProgress::from(&restore);
    format!("{} | {} | {:?}", progress.word(), progress.sentence(), progress.outcome())
}

#[test]
fn a_restore_is_complete_only_if_the_data_is_back() {
    let data = |status: &str, reason: &str, message: &str| {
        json!({"type": "DataRestored", "status": status, "reason": reason, "message": message,
        "lastTransitionTime": "2026-11-15T12:00:01Z"})
    };
    let kept =
        data("False", "ClaimsKept", "volume data of claim \"data\" was NOT restored: the claim exists");
    let waits = data("Unknown", "StillRunning", "claim \"data\" waits: pod \"db\" is gone");
    let states = [
        ("Completed", Value::Null),
        ("Completed", data("True", "AllVolumesRestored", "the data of 1 claim was restored")),
        ("Completed", kept.clone()),
        ("PartiallyFailed", kept.clone()),
        ("Failed", kept),
        ("InProgress", data("Unknown", "StillRunning", "Velero has not ended the restore yet")),
        ("InProgress", waits.clone()),
        ("Completed", waits),
    ];
    insta::assert_snapshot!(states.map(|(phase, data)| restored(phase, &data)).join("\n"), @r#"
    Completed | complete, 8 items, with 1 error | Some(Good)
    Completed | complete, 8 items, with 1 error | Some(Good)
    DataMissing | volume data of claim "data" was NOT restored: the claim exists (the rest is complete, 8 items, with 1 error) | Some(Attention)
    PartiallyFailed | volume data of claim "data" was NOT restored: the claim exists (the rest is done only in part, with 1 error) | Some(Attention)
    Failed | failed | Some(Failed)
    InProgress | 8 of 8 items | None
    InProgress | claim "data" waits: pod "db" is gone | None
    Completed | claim "data" waits: pod "db" is gone | None
    "#);
}

#[test]
fn nobody_ahead_means_next() {
    let mut status = at_velero(&json!({"phase": "Queued"}));
    status["queueInfo"]["estimatedQueuePosition"] = json!(1);
    assert_eq!(reported(&status), "Queued | next in Velero's queue | None");
}
