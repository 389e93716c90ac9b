//! Requests made with Velero's own CLI in a tenant namespace.
//!
//! Of such an object only its name, its spec and its own labels are read, and they are judged by the very rules that a
//! NonAdminBackup or NonAdminRestore is judged by. What it says about itself can only make it count for less: one that
//! bears a phase was dealt with by somebody else, and one that bears our mark is no request.

use std::collections::BTreeMap;
use std::time::Duration;

use api::{
    Kind, NonAdminBackup, NonAdminBackupSpec, NonAdminBackupStorageLocation, NonAdminRestore,
    NonAdminRestoreSpec, labels,
};
use kube::core::{DynamicObject, ObjectMeta};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{Observed, mark, refuse, related, remove, schedule, target, until_read};
use crate::ownership::annotation;
use crate::requester::{self, Access, Ask, Verdict};
use crate::state::State;
use crate::{Action, Key, Object, Plan, Refusal, Target, backup, restore};

/// What an object that is not a copy asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum TenantRequest {
    /// Nothing: it is not a request, or was dealt with.
    Nothing,
    /// Something, but the policy is unknown at the moment.
    Unclear,
    /// A backup, restore or schedule, for which this request is made.
    Made(Object),
    /// That this backup goes with its data, and the record of who asks for that.
    Deletion(Target, Option<String>),
    /// The same, but it has to be asked first whether that is permitted.
    Review(Vec<Ask>),
    /// That this refused request goes.
    Withdrawal(Target),
    /// Something that is refused, and why.
    Refused(String),
}

/// How long to wait before asking again what is allowed.
const POLICY_RETRY: Duration = Duration::from_secs(5);

/// What an object asks for that is a copy of nothing.
pub(super) fn read(view: &State, key: &Key, found: &DynamicObject) -> TenantRequest {
    let phase = found.data["status"]["phase"].as_str().unwrap_or_default();
    let dealt_with = mark(found).is_some() || !matches!(phase, "" | "New");
    if dealt_with || found.metadata.deletion_timestamp.is_some() || has_its_own_velero(view, &key.namespace) {
        return TenantRequest::Nothing;
    }
    match key.kind {
        Kind::Backup => asked_backup(view, key, found),
        Kind::Restore => asked_restore(view, key, found),
        Kind::DeleteBackupRequest => asked_deletion(view, key, found),
        Kind::Schedule => schedule::asked(view, key, found),
        _ => TenantRequest::Nothing,
    }
}

/// Whether another Velero lives in this namespace: it keeps its backups somewhere, and they are not for us.
pub(crate) fn has_its_own_velero(view: &State, namespace: &str) -> bool {
    let shown = view.velero_view_in(namespace).into_iter();
    let mut locations = shown.filter(|key| key.kind == Kind::BackupStorageLocation);
    locations.any(|key| {
        let location = view.velero_view(key.kind, namespace, &key.name);
        let ours = location.is_some_and(|location| mark(&location).is_some());
        !ours && view.get::<NonAdminBackupStorageLocation>(namespace, &key.name).is_none()
    })
}

fn asked_backup(view: &State, key: &Key, found: &DynamicObject) -> TenantRequest {
    let spec: NonAdminBackupSpec = match spec(found, "backupSpec", &key.namespace) {
        Ok(spec) => spec,
        Err(why) => return TenantRequest::Refused(why),
    };
    let request = NonAdminBackup { metadata: meta(found), spec, status: None };
    let made = Object::of(Kind::NonAdminBackup, &without_uid(request.clone(), |made| &mut made.metadata));
    judged(backup::judge(view, request), made, "spec.backupSpec", "spec")
}

fn asked_restore(view: &State, key: &Key, found: &DynamicObject) -> TenantRequest {
    let spec: NonAdminRestoreSpec = match spec(found, "restoreSpec", &key.namespace) {
        Ok(spec) => spec,
        Err(why) => return TenantRequest::Refused(why),
    };
    let request = NonAdminRestore { metadata: meta(found), spec, status: None };
    let made = Object::of(Kind::NonAdminRestore, &without_uid(request.clone(), |made| &mut made.metadata));
    judged(restore::judge(view, request), made, "spec.restoreSpec", "spec")
}

fn asked_deletion(view: &State, key: &Key, found: &DynamicObject) -> TenantRequest {
    let name = found.data["spec"]["backupName"].as_str().unwrap_or_default();
    if let Some(request) = view.get::<NonAdminBackup>(&key.namespace, name) {
        let Some(policy) = view.policy(&key.namespace) else { return TenantRequest::Unclear };
        let access = Access::gather(view, &found.metadata, &key.namespace);
        return match requester::of_deletion_request(&access, name, &policy) {
            Verdict::Ask(asks) => TenantRequest::Review(asks),
            Verdict::Refused(refusal) => TenantRequest::Refused(refusal.to_string()),
            Verdict::Permitted(_) => TenantRequest::Deletion(
                Target::of(Kind::NonAdminBackup, &request.metadata),
                annotation(&found.metadata, labels::REQUESTER).map(str::to_owned),
            ),
        };
    }
    let refused = view.velero_view(Kind::Backup, &key.namespace, name);
    match refused.filter(|backup| mark(backup) == Some(labels::SHOWN_REFUSED)) {
        Some(refused) => TenantRequest::Withdrawal(Target::of(Kind::Backup, &refused.metadata)),
        None => TenantRequest::Refused(format!(
            "spec.backupName: there is no backup {name:?} in this namespace; name another"
        )),
    }
}

pub(super) fn judged(
    verdict: Option<Result<(), Refusal>>,
    made: Object,
    path: &str,
    of_velero: &str,
) -> TenantRequest {
    match verdict {
        None => TenantRequest::Unclear,
        Some(Ok(())) => TenantRequest::Made(made),
        // It waits as a request of nacre's own kind does.
        Some(Err(refusal)) if refusal.healed_by().is_waiting() => TenantRequest::Made(made),
        // Whoever asked wrote a spec without our level in it.
        Some(Err(refusal)) => TenantRequest::Refused(refusal.to_string().replacen(path, of_velero, 1)),
    }
}

/// Reads a spec as a request would have it; a field that is not known there is not ignored. The star that Velero's
/// command line always sends means what it must mean here: the own namespace.
fn spec<S: DeserializeOwned>(found: &DynamicObject, level: &str, namespace: &str) -> Result<S, String> {
    let spec = found.data.get("spec").and_then(Value::as_object).cloned().unwrap_or_default();
    let spec = cleaned(spec, namespace);
    serde_json::from_value(json!({ level: spec })).map_err(|error| format!("spec: cannot be read: {error}"))
}

/// A spec without what Velero's command line sends for nothing.
pub(super) fn cleaned(mut spec: Map<String, Value>, namespace: &str) -> Map<String, Value> {
    let meant = |names: &Value| {
        let names = names.as_array().cloned().unwrap_or_default();
        names.iter().all(|name| name == "*" || name == namespace)
    };
    if spec.get("includedNamespaces").is_some_and(meant) {
        spec.remove("includedNamespaces");
    }
    let empty = |value: &Value| {
        value.is_null()
            || value.as_array().is_some_and(Vec::is_empty)
            || value.as_object().is_some_and(Map::is_empty)
    };
    spec.retain(|_, value| !empty(value));
    spec
}

/// The tenant's own labels and annotations go along; marks that mean something to us or to Velero do not.
pub(super) fn meta(found: &DynamicObject) -> ObjectMeta {
    let own = |marks: Option<&BTreeMap<String, String>>| -> Option<BTreeMap<String, String>> {
        let own =
            marks?.iter().filter(|(name, _)| !related::is_veleros(name) && !name.starts_with("kubectl."));
        Some(own.map(|(name, value)| (name.clone(), value.clone())).collect::<BTreeMap<_, _>>())
            .filter(|own| !own.is_empty())
    };
    let mut annotations = own(found.metadata.annotations.as_ref());
    // Whoever asked here asks there: the API server recorded it, and nobody can have written it by hand.
    if let Some(record) = annotation(&found.metadata, labels::REQUESTER) {
        annotations.get_or_insert_default().insert(labels::REQUESTER.to_owned(), record.to_owned());
    }
    ObjectMeta {
        name: found.metadata.name.clone(),
        namespace: found.metadata.namespace.clone(),
        // What it would be called at Velero is judged too; the API server gives it a uid of its own.
        uid: found.metadata.uid.clone(),
        labels: own(found.metadata.labels.as_ref()),
        annotations,
        ..ObjectMeta::default()
    }
}

pub(super) fn without_uid<K>(mut request: K, meta: impl Fn(&mut K) -> &mut ObjectMeta) -> K {
    meta(&mut request).uid = None;
    request
}

/// Decides about an object that is a copy of nothing.
pub(super) fn decide(seen: &Observed, found: &DynamicObject) -> Plan {
    match &seen.asked {
        TenantRequest::Nothing => forget_when_read(seen, found),
        TenantRequest::Unclear => {
            Plan::done().requeue_after(POLICY_RETRY).because("what the administrators allow is not known yet")
        }
        TenantRequest::Made(request) => {
            let plan = Plan::done().because("a tenant asks with Velero's own tools: the request is created");
            plan.then(Action::Create(request.clone()))
        }
        TenantRequest::Deletion(backup, by) => {
            let mut change = json!({"spec": {"deleteBackup": true}});
            if let Some(by) = by {
                change["metadata"]["annotations"][labels::DELETION_REQUESTER] = json!(by);
            }
            Plan::done()
                .because("a tenant deletes a backup with Velero's own tools")
                .then(Action::Patch(backup.clone(), change))
                .then(Action::Delete(target(seen, found)))
        }
        TenantRequest::Review(asks) => {
            Plan::done().ask(asks.clone()).because("whether the deletion is permitted has to be asked first")
        }
        TenantRequest::Withdrawal(refused) => {
            let plan = Plan::done().because("a tenant deletes a backup that was refused");
            plan.then(Action::Delete(refused.clone())).then(Action::Delete(target(seen, found)))
        }
        TenantRequest::Refused(why) => refuse(seen, found, why),
    }
}

/// What was refused is of no use to anybody once that was read, and tenants may not remove it themselves.
fn forget_when_read(seen: &Observed, found: &DynamicObject) -> Plan {
    if mark(found) != Some(labels::SHOWN_REFUSED) {
        return Plan::done().because("it asks for nothing that nacre knows");
    }
    let made = found.metadata.creation_timestamp.as_ref().map_or(seen.now, |made| made.0);
    let age = Duration::try_from(seen.now.duration_since(made)).unwrap_or_default();
    match until_read(seen.key.kind).checked_sub(age).filter(|left| !left.is_zero()) {
        Some(left) => {
            Plan::done().requeue_after(left).because("it was refused, and is kept so that it can be read")
        }
        None => remove(seen, found).because("it was refused, and has been there long enough to be read"),
    }
}
