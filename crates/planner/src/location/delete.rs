//! A location goes: what an administrator decided, the credential, Velero's side of it, and the backups kept in it.

use std::sync::Arc;

use api::{Kind, NonAdminBackup, NonAdminBackupStorageLocation, labels};

use super::decide::{Observed, SOON};
use super::status;
use crate::state::State;
use crate::trouble::again;
use crate::{Action, Event, Plan, Target, backup};

/// Decides about a location that is on its way out. It goes as soon as all that belongs to it has been told to go, and
/// waits for none of it, so that nothing holds it up.
pub(super) fn decide(seen: &Observed) -> Plan {
    if !seen.held() {
        return Plan::done();
    }
    let request = seen.request.as_ref().map(|request| &request.object.metadata);
    let copy = seen.copy.as_ref().map(|copy| &copy.metadata);
    let storage = seen.storage.as_ref().map(|storage| &storage.metadata);
    let own = [
        (Kind::NonAdminBackupStorageLocationRequest, request),
        (Kind::Secret, copy),
        (Kind::BackupStorageLocation, storage),
    ];
    let own = own.into_iter().filter_map(|(kind, meta)| Some((kind, meta?)));
    let backups = seen.backups.iter().map(|backup| (Kind::NonAdminBackup, &backup.metadata));
    let left: Vec<_> = own.chain(backups).filter(|(_, meta)| meta.deletion_timestamp.is_none()).collect();
    if left.is_empty() {
        return Plan::done().then(Action::Release(seen.target(), labels::NABSL_FINALIZER)).telling(
            Event::normal(
                "LocationDeleted",
                "the storage location is gone; what is in the bucket stays there",
            ),
        );
    }
    // What could not be deleted is tried again later, and keeps nothing else from going.
    let stuck = seen.trouble.as_ref().map(|trouble| trouble.kind);
    let mut plan = Plan::done().then_if(status::deleting(seen));
    let since = seen.meta().deletion_timestamp.as_ref().map(|time| time.0);
    plan = plan.waking_in(if stuck.is_some() { again(since, seen.now) } else { SOON });
    let left = left.into_iter().filter(|(kind, _)| Some(*kind) != stuck);
    plan.actions.extend(left.map(|(kind, meta)| Action::Delete(Target::of(kind, meta))));
    plan
}

/// The backups that are kept in a location: those whose Velero Backup is there, and those that name it and have none
/// anywhere else. Only one that is on its way out needs to know.
pub(super) fn backups(
    view: &State,
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
