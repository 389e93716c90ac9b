//! A location goes: what an administrator decided, the credential, Velero's side of it, and the backups kept in it.

use std::sync::Arc;

use api::{Kind, NonAdminBackup, NonAdminBackupStorageLocation, labels};

use super::decide::Observed;
use super::status;
use crate::view::View;
use crate::{Action, Event, Plan, Target, backup};

/// Decides about a location that is on its way out. Nothing of it waits for anything, so nothing holds it up.
pub(super) fn decide(seen: &Observed) -> Plan {
    if !seen.held() {
        return Plan::done();
    }
    let mut plan = Plan::done().then_if(status::deleting(seen));
    if let Some(request) = &seen.request {
        let kind = Kind::NonAdminBackupStorageLocationRequest;
        plan = plan.then(Action::Delete(Target::of(kind, &request.object.metadata)));
    }
    if let Some(copy) = &seen.copy {
        plan = plan.then(Action::Delete(Target::of(Kind::Secret, &copy.metadata)));
    }
    if let Some(storage) = &seen.storage {
        plan = plan.then(Action::Delete(Target::of(Kind::BackupStorageLocation, &storage.metadata)));
    }
    for backup in seen.backups.iter().filter(|backup| backup.metadata.deletion_timestamp.is_none()) {
        plan = plan.then(Action::Delete(Target::of(Kind::NonAdminBackup, &backup.metadata)));
    }
    plan.then(Action::Release(seen.target(), labels::NABSL_FINALIZER)).telling(Event::normal(
        "LocationDeleted",
        "the storage location is gone; what is in the bucket stays there",
    ))
}

/// The backups that are kept in a location: those whose Velero Backup is there, and those that name it and have none
/// anywhere else. Only one that is on its way out needs to know.
pub(super) fn backups(
    view: &impl View,
    location: &NonAdminBackupStorageLocation,
    stored_as: &str,
) -> Vec<Arc<NonAdminBackup>> {
    if location.metadata.deletion_timestamp.is_none() {
        return Vec::new();
    }
    let namespace = location.metadata.namespace.as_deref().unwrap_or_default();
    let all = view.backups_in(namespace).into_iter().map(|seen| seen.object);
    all.filter(|backup| {
        let named = backup.spec.backup_spec.storage_location.as_deref();
        match backup::velero_of(view, backup) {
            Some(velero) => velero.spec.storage_location.as_deref() == Some(stored_as),
            None => named.is_some() && named == location.metadata.name.as_deref(),
        }
    })
    .collect()
}
