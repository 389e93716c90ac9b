//! The desired content of a copy in a tenant namespace: with the tenant's names, and without the credential.

use api::velero::{BackupStorageLocation, DeleteBackupRequest};
use std::collections::BTreeMap;

use api::condition;
use api::{Kind, NonAdminBackup, NonAdminBackupStorageLocation, NonAdminRestore, Phase, labels};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::core::ObjectMeta;
use serde::Serialize;
use serde_json::{Value, json};

use super::related::{self, Parent};
use super::{label, schedule};
use crate::ownership::own_name;
use crate::state::State;
use crate::{Key, backup, healed_by, ownership, restore};

/// What the object of this name should be.
#[derive(Clone, Debug, PartialEq)]
pub enum DesiredCopy {
    /// The tenant has no request of this name.
    Nothing,
    /// There was a Velero object, and it is gone.
    Gone,
    /// The tenant has a request of this name that is not decided yet.
    Undecided,
    /// The tenant has a request of this name that waits or is refused: an existing object reports why, but none is
    /// created.
    Waiting(Value),
    /// A copy of a Velero object, with this content.
    Copy(Value),
}

/// The desired content of an object in a tenant namespace.
pub(super) fn of(view: &State, key: &Key) -> DesiredCopy {
    let (namespace, name) = (key.namespace.as_str(), key.name.as_str());
    let copy = |body: Option<Value>| body.map_or(DesiredCopy::Nothing, DesiredCopy::Copy);
    match key.kind {
        Kind::Backup => {
            view.get(namespace, name).map_or(DesiredCopy::Nothing, |request| of_backup(view, &request))
        }
        Kind::Restore => {
            view.get(namespace, name).map_or(DesiredCopy::Nothing, |request| of_restore(view, &request))
        }
        Kind::Schedule => {
            view.get(namespace, name).map_or(DesiredCopy::Nothing, |found| schedule::desired(&found))
        }
        Kind::BackupStorageLocation => copy(location(view, namespace, name)),
        Kind::DeleteBackupRequest => copy(delete_request(view, namespace, name)),
        kind => copy(volume(view, kind, namespace, name)),
    }
}

fn of_backup(view: &State, request: &NonAdminBackup) -> DesiredCopy {
    let status = request.status.as_ref();
    let conditions = status.map(|status| status.conditions.as_slice()).unwrap_or_default();
    let Some(velero) = backup::velero_of(view, request) else {
        let spec = value(&request.spec.backup_spec);
        return unmade(status.and_then(|status| status.phase), conditions, &spec, &request.metadata);
    };
    let namespace = request.metadata.namespace.as_deref().unwrap_or_default();
    let mut shown = value(&velero.status.clone().unwrap_or_default());
    // Velero's queue position is updated as often as the tenant's request: by a periodic job with a budget.
    if let Some(place) = shown.get_mut("queuePosition") {
        let reported =
            status.and_then(|status| status.velero_backup.as_ref()?.status.as_ref()?.queue_position);
        *place = reported.map_or_else(|| place.clone(), |reported| json!(reported));
    }
    let mut spec = value(&velero.spec);
    rename(&mut spec, "storageLocation", |name| related::location_name(view, namespace, name));
    let mut body = body(&velero.metadata, &spec, &shown);
    if let Some(stored) = body["metadata"]["labels"].get_mut(labels::VELERO_STORAGE_LOCATION)
        && let Some(name) = stored.as_str()
    {
        *stored = json!(label::valued(&related::location_name(view, namespace, name)));
    }
    with_own_labels(&mut body, &request.metadata);
    DesiredCopy::Copy(body)
}

fn of_restore(view: &State, request: &NonAdminRestore) -> DesiredCopy {
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
    DesiredCopy::Copy(body)
}

/// A request that Velero does not have: not yet, not at all, or no more.
fn unmade(phase: Option<Phase>, conditions: &[Condition], spec: &Value, request: &ObjectMeta) -> DesiredCopy {
    let accepted = condition::get(conditions, condition::ACCEPTED);
    if phase == Some(Phase::Deleting) {
        return DesiredCopy::Gone;
    }
    let Some(refused) = accepted.filter(|accepted| accepted.status == "False") else {
        return DesiredCopy::Undecided;
    };
    // Velero's clients stop waiting at FailedValidation, so it is only for what does not start by itself.
    let phase = match healed_by(refused) {
        None => return DesiredCopy::Gone,
        Some(healed_by) if healed_by.is_waiting() => "New",
        Some(_) => "FailedValidation",
    };
    let status = json!({"phase": phase, "validationErrors": [refused.message]});
    let mut body = body(&ObjectMeta::default(), spec, &status);
    with_own_labels(&mut body, request);
    DesiredCopy::Waiting(body)
}

/// A tenant's storage, as Velero has it, without the credential.
fn location(view: &State, namespace: &str, name: &str) -> Option<Value> {
    let request = view.get::<NonAdminBackupStorageLocation>(namespace, name)?;
    let reported = request
        .status
        .as_ref()
        .and_then(|status| status.velero_backup_storage_location.as_ref()?.name.clone());
    let mut names = [Some(own_name(&request.metadata)), reported].into_iter().flatten();
    let storage = names.find_map(|name| {
        let storage = view.admin::<BackupStorageLocation>(&name)?;
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
    let request = view.admin::<DeleteBackupRequest>(name)?;
    let parent = related::of_backup(view, namespace, &request.spec.backup_name, |_| true)?;
    let spec = json!({"backupName": parent.name});
    let mut body = body(&request.metadata, &spec, &value(&request.status.clone().unwrap_or_default()));
    tie(&mut body, Kind::DeleteBackupRequest, &parent);
    Some(body)
}

/// What Velero does about a volume of the tenant's.
fn volume(view: &State, kind: Kind, namespace: &str, name: &str) -> Option<Value> {
    let volume = view.volume(kind, name)?;
    let parent = related::of_volume(view, kind, namespace, &volume.metadata)?;
    let part = |name: &str| volume.data.get(name).cloned().unwrap_or_else(|| json!({}));
    let mut spec = part("spec");
    rename(&mut spec, "backupStorageLocation", |name| related::location_name(view, namespace, name));
    // Where in the cluster's own storage the repository is, is an administrator's business.
    rename(&mut spec, "repoIdentifier", |_| String::new());
    let mut body = body(&volume.metadata, &spec, &part("status"));
    tie(&mut body, kind, &parent);
    Some(body)
}

/// Velero's tools find what belongs to a backup by its name and the uid they see.
fn tie(body: &mut Value, kind: Kind, parent: &Parent) {
    if let Some(ties) = related::ties(kind) {
        body["metadata"]["labels"][ties.name] = json!(label::valued(&parent.name));
        body["metadata"]["labels"][ties.uid] = json!(parent.copy.metadata.uid);
    }
}

pub(super) fn body(meta: &ObjectMeta, spec: &Value, status: &Value) -> Value {
    let mut marks = related::marks(meta.labels.as_ref());
    marks.insert(labels::SHOWN.to_owned(), labels::SHOWN_COPY.to_owned());
    // Tenants' backups leave Velero's kinds out anyway; this is for the administrators'.
    marks.insert(labels::EXCLUDE_FROM_BACKUP.to_owned(), "true".to_owned());
    json!({
        "metadata": {"labels": marks, "annotations": related::marks(meta.annotations.as_ref())},
        "spec": spec,
        "status": status,
    })
}

/// The tenant's own labels, so that `velero backup get --selector` finds what was labelled when it was asked for.
pub(super) fn with_own_labels(body: &mut Value, request: &ObjectMeta) {
    let own: &BTreeMap<_, _> = &request.labels.clone().unwrap_or_default();
    for (name, label) in own.iter().filter(|(name, _)| !related::is_veleros(name)) {
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

pub(super) fn value(part: &impl Serialize) -> Value {
    // Our own types always become JSON.
    serde_json::to_value(part).unwrap_or_default()
}
