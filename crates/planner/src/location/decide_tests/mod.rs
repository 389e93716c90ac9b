//! The flow chart of the design "NonAdminBackupStorageLocation Controller", arrow by arrow, for one location alone.

mod approval;
mod keys;
mod storage;

use std::sync::Arc;
use std::time::Duration;

use api::{Kind, Phase, condition};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::super::{Observed, decide};
use crate::view::{Credential, Seen};
use crate::{Action, Plan, Policy};

const UID: &str = "0b8d1a52-3c0f-4d8e-9f4e-1c2b3a4d5e6f";
const KEYS: &str = "[default]\naws_access_key_id = AKIAEXAMPLE\naws_secret_access_key = hunter2hunter2\n";

/// The observed state, changed by the executed plans.
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
            path_taken: false,
            backups: Vec::new(),
            refused_imports: None,
            allowed_lag: Duration::from_mins(5),
            rejected_write: None,
            velero_version: Some("v1.18.3".to_owned()),
            access: crate::requester::Access::default(),
            takes_native_snapshots: Some(false),
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

    /// Decides and executes until nothing is left to do, and returns what was done.
    fn settle(&mut self) -> Vec<String> {
        let mut trace = Vec::new();
        for _ in 0..4 {
            let plan = self.pass();
            let reported = plan.actions.iter().filter(|action| {
                matches!(action, Action::PatchStatus(target, _) if target.kind == Kind::NonAdminBackupStorageLocation)
            });
            assert!(reported.count() <= 1, "one status write per pass: {plan:?}");
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
            Action::AddFinalizer(_, finalizer) => {
                self.edit(&json!({"metadata": {"finalizers": [finalizer]}}));
                "hold".to_owned()
            }
            Action::RemoveFinalizer(..) => {
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
