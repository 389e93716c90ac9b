//! Seed 001's flow chart, arrow by arrow: a location on a stage where nothing is but what belongs to it.

use std::sync::Arc;

use api::{HiddenSecret, Kind, Phase, condition, labels};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::super::{Observed, decide};
use crate::policy::{Import, StorageMode};
use crate::view::{Credential, Seen};
use crate::{Action, Plan, Policy};

const UID: &str = "0b8d1a52-3c0f-4d8e-9f4e-1c2b3a4d5e6f";
const KEYS: &str = "[default]\naws_access_key_id = AKIAEXAMPLE\naws_secret_access_key = hunter2hunter2\n";

/// The stage: what is seen, changed by what is decided.
struct Play {
    seen: Observed,
    policy: Policy,
    gone: bool,
}

fn from<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn found(keys: &str) -> Credential {
    Credential::Found(Arc::new(keys.as_bytes().to_vec().into()))
}

impl Play {
    /// A location that was made just now, with its Secret, where an administrator has to be asked or not.
    fn new(approval: bool) -> Self {
        let location = json!({
            "apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackupStorageLocation",
            "metadata": {"name": "bucket", "namespace": "shop", "uid": UID, "generation": 1},
            "spec": {"backupStorageLocationSpec": {
                "provider": "aws", "objectStorage": {"bucket": "mine", "prefix": "a"},
                "config": {"region": "eu-west-1"}, "credential": {"name": "keys", "key": "cloud"},
            }},
        });
        let mut policy = Policy::default();
        policy.storage_locations.require_approval = approval;
        let seen = Observed {
            location: Arc::new(from(location)),
            unreadable: None,
            namespace: Some(Arc::new(from(json!({"metadata": {"name": "shop", "uid": "n-1"}})))),
            name: api::velero_name("shop", "bucket", UID),
            request: None,
            storage: None,
            copy: None,
            name_taken: false,
            credential: found(KEYS),
            others: 0,
            place_taken: false,
            backups: Vec::new(),
            trouble: None,
            velero_version: Some("v1.18.3".to_owned()),
            policy: None,
            admin_namespace: "velero".to_owned(),
            now: "2026-01-01T00:00:00Z".parse().unwrap(),
        };
        Self { seen, policy, gone: false }
    }

    fn pass(&mut self) -> Plan {
        self.seen.policy = Some(Arc::new(self.policy.clone()));
        decide(&self.seen)
    }

    /// Decides and carries out until there is nothing more to do, and tells what was done.
    fn settle(&mut self) -> Vec<String> {
        let mut trace = Vec::new();
        for _ in 0..4 {
            let plan = self.pass();
            let told = plan.actions.iter().filter(|action| {
                matches!(action, Action::PatchStatus(target, _) if target.kind == Kind::NonAdminBackupStorageLocation)
            });
            assert!(told.count() <= 1, "one status write per pass: {plan:?}");
            assert!(!format!("{plan:?}").contains("hunter2"), "{plan:?}");
            if plan.actions.is_empty() || self.gone {
                return trace;
            }
            for action in plan.actions {
                trace.push(self.act(&action));
            }
        }
        panic!("it does not come to rest: {trace:#?}");
    }

    fn act(&mut self, action: &Action) -> String {
        match action {
            Action::Hold(_, finalizer) => {
                self.edit(&json!({"metadata": {"finalizers": [finalizer]}}));
                "hold".to_owned()
            }
            Action::Release(..) => {
                self.gone = true;
                "release".to_owned()
            }
            Action::Create(object) => {
                let mut body = object.body.clone();
                body["metadata"]["uid"] = json!(format!("{}-uid", object.kind.name()));
                match object.kind {
                    Kind::Secret => self.seen.copy = Some(Arc::new(from(body))),
                    Kind::BackupStorageLocation => self.seen.storage = Some(Arc::new(from(body))),
                    _ => self.seen.request = Some(Seen { object: Arc::new(from(body)), unreadable: None }),
                }
                format!("create {}", object.kind.name())
            }
            Action::Patch(target, change) | Action::PatchStatus(target, change) => {
                match target.kind {
                    Kind::NonAdminBackupStorageLocation => merge(&mut self.seen.location, change),
                    Kind::Secret => merge(self.seen.copy.as_mut().unwrap(), change),
                    Kind::BackupStorageLocation => merge(self.seen.storage.as_mut().unwrap(), change),
                    _ => merge(&mut self.seen.request.as_mut().unwrap().object, change),
                }
                let what = if matches!(action, Action::Patch(..)) { "patch" } else { "status" };
                format!("{what} {}", target.kind.name())
            }
            Action::Delete(target) | Action::DeleteUnchanged(target) => {
                match target.kind {
                    Kind::Secret => self.seen.copy = None,
                    Kind::BackupStorageLocation => self.seen.storage = None,
                    Kind::NonAdminBackupStorageLocationRequest => self.seen.request = None,
                    _ => self.seen.backups.clear(),
                }
                format!("delete {}", target.kind.name())
            }
            // Only installers apply.
            Action::Apply(object) => panic!("{object:?}"),
        }
    }

    fn edit(&mut self, change: &Value) {
        merge(&mut self.seen.location, change);
    }

    fn velero_says(&mut self, status: &Value) {
        merge(self.seen.storage.as_mut().unwrap(), &json!({ "status": status }));
    }

    fn admin_says(&mut self, decision: &str) {
        let said = json!({"spec": {"approvalDecision": decision}});
        merge(&mut self.seen.request.as_mut().unwrap().object, &said);
    }

    fn phase(&self) -> Option<Phase> {
        self.seen.location.status.as_ref()?.phase
    }

    fn says(&self, type_: &str) -> String {
        let status = self.seen.location.status.clone().unwrap_or_default();
        let found = condition::get(&status.conditions, type_);
        found.map_or_else(String::new, |found| format!("{}/{}", found.status, found.reason))
    }

    fn message(&self, type_: &str) -> String {
        let status = self.seen.location.status.clone().unwrap_or_default();
        condition::get(&status.conditions, type_).map_or_else(String::new, |found| found.message.clone())
    }

    fn request_phase(&self) -> Value {
        json!(self.seen.request.as_ref().unwrap().object.status)["phase"].clone()
    }

    fn velero_has_it(&self) -> bool {
        assert_eq!(self.seen.copy.is_some(), self.seen.storage.is_some());
        self.seen.storage.is_some()
    }
}

fn merge<T: Serialize + DeserializeOwned>(object: &mut Arc<T>, change: &Value) {
    fn into(target: &mut Value, change: &Value) {
        match change {
            Value::Object(fields) => {
                for (name, value) in fields {
                    if value.is_null() {
                        target.as_object_mut().unwrap().remove(name);
                    } else if target[name].is_object() {
                        into(&mut target[name], value);
                    } else {
                        target[name] = value.clone();
                    }
                }
            }
            other => *target = other.clone(),
        }
    }
    let mut value = json!(**object);
    into(&mut value, change);
    *object = Arc::new(from(value));
}

#[test]
fn without_approval_it_is_handed_over_at_once() {
    let mut play = Play::new(false);
    assert_eq!(
        play.settle(),
        [
            "hold",
            "create NonAdminBackupStorageLocationRequest",
            "status NonAdminBackupStorageLocationRequest",
            "create Secret",
            "create BackupStorageLocation",
            "status NonAdminBackupStorageLocation",
        ]
    );
    assert_eq!(play.phase(), Some(Phase::Created));
    assert_eq!(play.says(condition::ACCEPTED), "True/BslSpecValidation");
    assert_eq!(play.says(condition::CLUSTER_ADMIN_APPROVED), "True/BslSpecApproved");
    assert_eq!(play.says(condition::SECRET_SYNCED), "True/SecretCreated");
    assert_eq!(play.says(condition::LOCATION_SYNCED), "True/BackupStorageLocationCreated");
    assert_eq!(play.request_phase(), "Approved");

    // Velero's side: below the namespace, with the copy of the credential, marked as this location's.
    let name = api::velero_name("shop", "bucket", UID);
    let storage = play.seen.storage.clone().unwrap();
    assert_eq!(storage.spec.object_storage.prefix.as_deref(), Some("shop/a"));
    assert_eq!(storage.spec.credential.as_ref().unwrap().name, name);
    assert_eq!(storage.metadata.name.as_deref(), Some(name.as_str()));
    let marks = storage.metadata.annotations.as_ref().unwrap();
    assert_eq!(
        (marks[labels::ORIGIN_UID].as_str(), marks[labels::ORIGIN_NAMESPACE_UID].as_str()),
        (UID, "n-1")
    );
    let copy: &HiddenSecret = play.seen.copy.as_ref().unwrap();
    assert_eq!((copy.type_.as_deref(), copy.data.len()), (Some("Opaque"), 1));

    // What Velero says is mirrored; that it merely looked again is not.
    play.velero_says(&json!({"phase": "Available", "lastValidationTime": "2026-01-01T00:01:00Z"}));
    assert_eq!(play.settle(), ["status NonAdminBackupStorageLocation"]);
    play.velero_says(
        &json!({"lastValidationTime": "2026-01-01T00:02:00Z", "lastSyncedTime": "2026-01-01T00:02:00Z"}),
    );
    assert!(play.settle().is_empty());
    play.velero_says(&json!({"phase": "Unavailable", "message": "no route"}));
    assert_eq!(play.settle(), ["status NonAdminBackupStorageLocation"]);
}

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

#[test]
fn a_tenant_is_told_why_an_administrator_says_no() {
    let mut play = Play::new(true);
    play.settle();
    let no = json!({"metadata": {"annotations": {labels::REJECTION_REASON: "that bucket\nis ours"}},
        "spec": {"approvalDecision": "reject"}});
    merge(&mut play.seen.request.as_mut().unwrap().object, &no);
    play.settle();
    let told = play.message(condition::CLUSTER_ADMIN_APPROVED);
    assert_eq!(told, "an administrator has rejected the location: that bucket is ours");
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

#[test]
fn a_changed_location_is_refused_until_it_is_as_it_was() {
    let mut play = Play::new(false);
    play.settle();
    play.edit(&json!({"spec": {"backupStorageLocationSpec": {"objectStorage": {"bucket": "other"}}}}));
    play.settle();
    assert_eq!((play.phase(), play.velero_has_it()), (Some(Phase::BackingOff), false));
    assert_eq!(play.says(condition::SPEC_UPDATE_APPROVED), "False/BslSpecUpdateRejected");
    assert!(
        play.message(condition::SPEC_UPDATE_APPROVED).contains("create a new NonAdminBackupStorageLocation")
    );

    // What is not said and what is empty are the same, and two spellings of one provider.
    let same = json!({"objectStorage": {"bucket": "mine"}, "provider": "velero.io/aws", "default": false, "accessMode": ""});
    play.edit(&json!({"spec": {"backupStorageLocationSpec": same}}));
    play.settle();
    assert_eq!((play.phase(), play.velero_has_it()), (Some(Phase::Created), true));
    assert_eq!(play.says(condition::SPEC_UPDATE_APPROVED), "");
}

#[test]
fn what_is_removed_or_changed_by_hand_comes_back() {
    let mut play = Play::new(false);
    play.settle();
    play.seen.storage = None;
    assert!(play.settle().contains(&"create BackupStorageLocation".to_owned()));
    play.seen.copy = None;
    assert!(play.settle().contains(&"create Secret".to_owned()));
    merge(play.seen.storage.as_mut().unwrap(), &json!({"spec": {"objectStorage": {"prefix": "victim"}}}));
    assert!(play.settle().contains(&"patch BackupStorageLocation".to_owned()));
    assert_eq!(play.seen.storage.as_ref().unwrap().spec.object_storage.prefix.as_deref(), Some("shop/a"));
    assert_eq!(play.says(condition::LOCATION_SYNCED), "True/BackupStorageLocationUpdated");
}

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
    let told = play.message(condition::ACCEPTED);
    assert!(told.contains("line 2: credential_process") && !told.contains("hunter2"), "{told}");
    play.seen.credential = found(KEYS);
    play.settle();
    assert_eq!((play.phase(), play.velero_has_it()), (Some(Phase::Created), true));
}

#[test]
fn a_secret_is_waited_for_and_a_lost_one_forgiven_for_five_minutes() {
    let mut play = Play::new(false);
    let start = play.seen.now;
    let after = |minutes: i64| start + jiff::SignedDuration::from_mins(minutes);
    play.seen.credential = Credential::Unseen;
    assert!(play.settle().is_empty() && play.pass().wake.is_some(), "nobody has looked yet");
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
    assert_eq!(play.pass().wake, Some(std::time::Duration::from_mins(5)));
    // Four minutes later, also after a restart that remembers nothing.
    play.seen.now = after(14);
    play.seen.credential = Credential::Missing(after(14));
    assert!(play.settle().is_empty() && play.velero_has_it());
    play.seen.now = after(15);
    play.settle();
    assert!(!play.velero_has_it());
}

#[test]
fn what_stops_being_allowed_goes_and_comes_back_when_it_is_allowed_again() {
    let mut play = Play::new(false);
    play.settle();
    play.policy.storage_locations.mode = StorageMode::Platform;
    play.settle();
    assert_eq!((play.phase(), play.velero_has_it()), (Some(Phase::BackingOff), false));
    assert_eq!(play.says(condition::ACCEPTED), "False/BslSpecValidation");
    play.policy.storage_locations.mode = StorageMode::Any;
    play.settle();
    assert_eq!((play.phase(), play.velero_has_it()), (Some(Phase::Created), true));

    // Nobody knows what is allowed: what is there stays, nothing new begins.
    play.seen.policy = None;
    assert!(decide(&play.seen).actions.is_empty());
    let mut new = Play::new(false);
    new.seen.policy = None;
    let waits = decide(&new.seen);
    waits.actions.iter().for_each(|action| _ = new.act(action));
    assert_eq!(
        (new.says(condition::ACCEPTED).as_str(), new.velero_has_it()),
        ("False/PolicyUnavailable", false)
    );
}

#[test]
fn limits_places_and_names_are_checked_before_anything_is_made() {
    type Change = fn(&mut Play);
    let cases: [(&str, Change); 5] = [
        ("may have 2", |play| {
            (play.seen.others, play.policy.storage_locations.max_per_namespace) = (2, Some(2));
        }),
        ("is used by another storage location", |play| play.seen.place_taken = true),
        ("has the name this location would get", |play| play.seen.name_taken = true),
        ("the administrators' policy leaves it out", |play| play.seen.admin_namespace = "shop".to_owned()),
        ("cannot be read: no such field", |play| play.seen.unreadable = Some("no such field".into())),
    ];
    for (words, change) in cases {
        let mut play = Play::new(false);
        change(&mut play);
        assert_eq!(play.settle(), ["status NonAdminBackupStorageLocation"], "{words}");
        assert!(play.message(condition::ACCEPTED).contains(words), "{}", play.message(condition::ACCEPTED));
        assert_eq!(play.phase(), Some(Phase::BackingOff));
    }
    // Whoever is in stays in.
    let mut play = Play::new(false);
    play.settle();
    (play.seen.others, play.seen.place_taken) = (9, true);
    play.policy.storage_locations.max_per_namespace = Some(1);
    assert!(play.settle().is_empty());
}

#[test]
fn velero_looks_for_backups_only_if_it_is_safe_to() {
    let period = |play: &Play| {
        let period = play.seen.storage.as_ref().unwrap().spec.backup_sync_period.clone();
        period.map(|period| period.to_string())
    };
    let never = Some("0s".to_owned());
    for (import, version, wanted) in [
        (Import::Auto, Some("v1.18.3"), None),
        (Import::Auto, Some("v1.18.2"), never.clone()),
        (Import::Auto, None, never.clone()),
        (Import::On, Some("v1.9.0"), None),
        (Import::Off, Some("v1.18.3"), never.clone()),
    ] {
        let mut play = Play::new(false);
        play.policy.storage_locations.import = import;
        play.seen.velero_version = version.map(str::to_owned);
        play.settle();
        assert_eq!(period(&play), wanted, "{import:?} {version:?}");
        (play.seen.storage, play.seen.copy) = (None, None);
        let told = play.pass().events.iter().any(|event| event.reason == "ImportOff");
        assert_eq!(told, version == Some("v1.18.2"), "{import:?} {version:?}");
    }
    // Known later: put right. Forgotten by a restart: left alone.
    let mut play = Play::new(false);
    play.seen.velero_version = None;
    play.settle();
    play.seen.velero_version = Some("v1.19.0".to_owned());
    assert!(play.settle().contains(&"patch BackupStorageLocation".to_owned()));
    assert_eq!(period(&play), None);
    play.seen.velero_version = None;
    assert!(play.settle().is_empty());
}

#[test]
fn everything_goes_with_it_and_nothing_holds_it_up() {
    let mut play = Play::new(false);
    play.settle();
    let backup = json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackup",
        "metadata": {"name": "daily", "namespace": "shop", "uid": "b"}, "spec": {"backupSpec": {}}});
    play.seen.backups = vec![Arc::new(from(backup))];
    play.edit(&json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    // Not even that nothing about it can be read or allowed.
    play.seen.unreadable = Some("odd".into());
    play.seen.namespace = None;
    assert_eq!(
        play.settle(),
        [
            "status NonAdminBackupStorageLocation",
            "delete NonAdminBackupStorageLocationRequest",
            "delete Secret",
            "delete BackupStorageLocation",
            "delete NonAdminBackup",
            "release",
        ]
    );
    let mut never_held = Play::new(false);
    never_held.edit(&json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    assert!(never_held.settle().is_empty());
}

#[test]
fn what_the_go_controller_made_is_taken_over_and_marked() {
    let mut play = Play::new(false);
    play.settle();
    let unmark =
        json!({"metadata": {"annotations": {labels::ORIGIN_UID: null, labels::ORIGIN_NAMESPACE_UID: null}}});
    merge(play.seen.storage.as_mut().unwrap(), &unmark);
    merge(play.seen.copy.as_mut().unwrap(), &unmark);
    merge(&mut play.seen.request.as_mut().unwrap().object, &unmark);
    merge(play.seen.copy.as_mut().unwrap(), &json!({"data": {"another": "c2VjcmV0"}}));
    let done = play.settle();
    assert_eq!(done.iter().filter(|line| line.starts_with("patch")).count(), 3, "{done:?}");
    assert_eq!(play.seen.copy.as_ref().unwrap().data.len(), 1);
    let marks = play.seen.storage.as_ref().unwrap().metadata.annotations.clone().unwrap();
    assert_eq!(marks[labels::ORIGIN_UID], UID);
}
