//! What an object in a tenant's namespace is a copy of, and how that looks from there: under the tenant's names, and
//! without the credential.

use std::collections::BTreeMap;

use api::condition;
use api::{Kind, NonAdminBackup, NonAdminRestore, Phase, labels};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::core::ObjectMeta;
use serde::Serialize;
use serde_json::{Value, json};

use super::kinship::{self, Parent};
use super::label;
use crate::ownership::own_name;
use crate::state::State;
use crate::{Key, backup, ownership, restore};

/// What there is behind an object's name.
#[derive(Clone, Debug, PartialEq)]
pub enum Truth {
    /// Nothing of the tenant's is called so.
    Nothing,
    /// Something was, and Velero has it no more.
    Gone,
    /// The tenant has a request of this name, and it is yet to be seen what becomes of it.
    Undecided,
    /// The tenant has a request of this name that was not let through to Velero: what is there says why, but nothing is
    /// made.
    Waiting(Value),
    /// An object of Velero's, which looks so.
    Copy(Value),
}

/// What there is behind the name of an object in a tenant's namespace.
pub(super) fn of(view: &State, key: &Key) -> Truth {
    let (namespace, name) = (key.namespace.as_str(), key.name.as_str());
    let copy = |body: Option<Value>| body.map_or(Truth::Nothing, Truth::Copy);
    match key.kind {
        Kind::Backup => {
            view.backup(namespace, name).map_or(Truth::Nothing, |seen| of_backup(view, &seen.object))
        }
        Kind::Restore => {
            view.restore(namespace, name).map_or(Truth::Nothing, |seen| of_restore(view, &seen.object))
        }
        Kind::BackupStorageLocation => copy(location(view, namespace, name)),
        Kind::DeleteBackupRequest => copy(delete_request(view, namespace, name)),
        kind => copy(volume(view, kind, namespace, name)),
    }
}

fn of_backup(view: &State, request: &NonAdminBackup) -> Truth {
    let status = request.status.as_ref();
    let conditions = status.map(|status| status.conditions.as_slice()).unwrap_or_default();
    let Some(velero) = backup::velero_of(view, request) else {
        let spec = value(&request.spec.backup_spec);
        return unmade(status.and_then(|status| status.phase), conditions, &spec, &request.metadata);
    };
    let namespace = request.metadata.namespace.as_deref().unwrap_or_default();
    let mut shown = value(&velero.status.clone().unwrap_or_default());
    // Velero's own queue is told as often as the tenant's request is: a chore with a budget.
    if let Some(place) = shown.get_mut("queuePosition") {
        let told = status.and_then(|status| status.velero_backup.as_ref()?.status.as_ref()?.queue_position);
        *place = told.map_or_else(|| place.clone(), |told| json!(told));
    }
    let mut spec = value(&velero.spec);
    rename(&mut spec, "storageLocation", |name| kinship::location_name(view, namespace, name));
    let mut body = body(&velero.metadata, &spec, &shown);
    if let Some(stored) = body["metadata"]["labels"].get_mut(labels::VELERO_STORAGE_LOCATION)
        && let Some(name) = stored.as_str()
    {
        *stored = json!(label::valued(&kinship::location_name(view, namespace, name)));
    }
    with_own_labels(&mut body, &request.metadata);
    Truth::Copy(body)
}

fn of_restore(view: &State, request: &NonAdminRestore) -> Truth {
    let status = request.status.as_ref();
    let conditions = status.map(|status| status.conditions.as_slice()).unwrap_or_default();
    let Some(velero) = restore::velero_of(view, request) else {
        let spec = value(&request.spec.restore_spec);
        return unmade(status.and_then(|status| status.phase), conditions, &spec, &request.metadata);
    };
    let mut spec = value(&velero.spec);
    // The tenant's name for the backup; nobody but the tenant reads it.
    rename(&mut spec, "backupName", |name| {
        request.spec.restore_spec.backup_name.clone().unwrap_or_else(|| name.to_owned())
    });
    let mut body = body(&velero.metadata, &spec, &value(&velero.status.clone().unwrap_or_default()));
    with_own_labels(&mut body, &request.metadata);
    Truth::Copy(body)
}

/// A request that Velero does not have: not yet, not at all, or no more.
fn unmade(phase: Option<Phase>, conditions: &[Condition], spec: &Value, request: &ObjectMeta) -> Truth {
    let accepted = condition::get(conditions, condition::ACCEPTED);
    if phase == Some(Phase::Deleting) {
        return Truth::Gone;
    }
    let Some(refused) = accepted.filter(|accepted| accepted.status == "False") else {
        return Truth::Undecided;
    };
    let status = match refused.reason.as_str() {
        condition::VELERO_BACKUP_NOT_FOUND | condition::VELERO_RESTORE_NOT_FOUND => return Truth::Gone,
        condition::NAMESPACE_LIMIT_REACHED | condition::POLICY_UNAVAILABLE => json!({"phase": "New"}),
        _ => json!({"phase": "FailedValidation", "validationErrors": [refused.message]}),
    };
    let mut body = body(&ObjectMeta::default(), spec, &status);
    with_own_labels(&mut body, request);
    Truth::Waiting(body)
}

/// A tenant's storage, as Velero has it, without the credential.
fn location(view: &State, namespace: &str, name: &str) -> Option<Value> {
    let request = view.location(namespace, name)?.object;
    let told = request
        .status
        .as_ref()
        .and_then(|status| status.velero_backup_storage_location.as_ref()?.name.clone());
    let mut names = [Some(own_name(&request.metadata)), told].into_iter().flatten();
    let storage = names.find_map(|name| {
        let storage = view.storage_location(&name)?;
        let made = ownership::made_for(
            &storage.metadata,
            &request.metadata,
            labels::NABSL_NAME,
            labels::NABSL_NAMESPACE,
        );
        (made && ownership::tenant_of(&storage) == Some(namespace)).then_some(storage)
    })?;
    let mut shown = storage.spec.clone();
    shown.credential = None;
    shown.object_storage.ca_cert_ref = None;
    Some(body(&storage.metadata, &value(&shown), &value(&storage.status.clone().unwrap_or_default())))
}

/// A request to delete a backup of the tenant's with its data.
fn delete_request(view: &State, namespace: &str, name: &str) -> Option<Value> {
    let request = view.delete_request(name)?;
    let parent = kinship::of_backup(view, namespace, &request.spec.backup_name, |_| true)?;
    let spec = json!({"backupName": parent.name});
    let mut body = body(&request.metadata, &spec, &value(&request.status.clone().unwrap_or_default()));
    tie(&mut body, Kind::DeleteBackupRequest, &parent);
    Some(body)
}

/// What Velero does about a volume of the tenant's.
fn volume(view: &State, kind: Kind, namespace: &str, name: &str) -> Option<Value> {
    let volume = view.volume(kind, name)?;
    let parent = kinship::of_volume(view, kind, namespace, &volume.metadata)?;
    let part = |name: &str| volume.data.get(name).cloned().unwrap_or_else(|| json!({}));
    let mut spec = part("spec");
    rename(&mut spec, "backupStorageLocation", |name| kinship::location_name(view, namespace, name));
    // Where in the cluster's own storage the repository is, is an administrator's business.
    rename(&mut spec, "repoIdentifier", |_| String::new());
    let mut body = body(&volume.metadata, &spec, &part("status"));
    tie(&mut body, kind, &parent);
    Some(body)
}

/// Velero's tools find what belongs to a backup by its name and the uid they see.
fn tie(body: &mut Value, kind: Kind, parent: &Parent) {
    if let Some(ties) = kinship::ties(kind) {
        body["metadata"]["labels"][ties.name] = json!(label::valued(&parent.name));
        body["metadata"]["labels"][ties.uid] = json!(parent.copy.metadata.uid);
    }
}

fn body(meta: &ObjectMeta, spec: &Value, status: &Value) -> Value {
    let mut marks = kinship::marks(meta.labels.as_ref());
    marks.insert(labels::SHOWN.to_owned(), labels::SHOWN_COPY.to_owned());
    // Tenants' backups leave Velero's kinds out anyway; this is for the administrators'.
    marks.insert(labels::EXCLUDE_FROM_BACKUP.to_owned(), "true".to_owned());
    json!({
        "metadata": {"labels": marks, "annotations": kinship::marks(meta.annotations.as_ref())},
        "spec": spec,
        "status": status,
    })
}

/// The tenant's own labels, so that `velero backup get --selector` finds what was labelled when it was asked for.
fn with_own_labels(body: &mut Value, request: &ObjectMeta) {
    let own: &BTreeMap<_, _> = &request.labels.clone().unwrap_or_default();
    for (name, label) in own.iter().filter(|(name, _)| !kinship::is_veleros(name)) {
        body["metadata"]["labels"][name] = json!(label);
    }
}

fn rename(object: &mut Value, field: &str, named: impl FnOnce(&str) -> String) {
    if let Some(name) = object.get_mut(field)
        && let Some(old) = name.as_str()
    {
        *name = json!(named(old));
    }
}

fn value(part: &impl Serialize) -> Value {
    // Our own types always become JSON.
    serde_json::to_value(part).unwrap_or_default()
}
