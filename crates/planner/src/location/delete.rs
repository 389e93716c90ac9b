//! Deleting a location: its approval request, its credential, Velero's location, and the backups in it.

use std::sync::Arc;

use api::{Kind, NonAdminBackup, NonAdminBackupStorageLocation};

use super::decide::SOON;
use super::{Observed, status};
use crate::rejected_write::retry_after;
use crate::request::Request;
use crate::state::State;
use crate::{Action, Event, Plan, Target, backup};

/// Decides about a location that is being deleted. Its finalizer is removed as soon as everything that belongs to it
/// has a deletionTimestamp, so that nothing blocks it.
///
/// Everything goes whether or not nacre's finalizer is there: a tenant can replace it with one of its own.
pub(super) fn decide(seen: &Observed) -> Plan {
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
    if left.is_empty() && !seen.has_finalizer() {
        return Plan::done().because("it is being deleted: only finalizers of others can keep it");
    }
    if left.is_empty() {
        let plan = seen.drop_finalizer(Plan::done()).because("it is being deleted and nothing is left of it");
        return plan.with_event(Event::normal(
            "LocationDeleted",
            "the storage location is gone; what is in the bucket stays there",
        ));
    }
    // A failed delete is retried later, and does not block the others.
    let stuck = seen.rejected_write.as_ref().map(|rejected_write| rejected_write.kind);
    let mut plan = Plan::done().then_if(status::deleting(seen));
    plan = plan.because("it is being deleted: its objects and its backups go first");
    let since = seen.meta().deletion_timestamp.as_ref().map(|time| time.0);
    plan = plan.requeue_after(if stuck.is_some() { retry_after(since, seen.now) } else { SOON });
    let left = left.into_iter().filter(|(kind, _)| Some(*kind) != stuck);
    plan.actions.extend(left.map(|(kind, meta)| Action::Delete(Target::of(kind, meta))));
    plan
}

/// The backups that are kept in a location: those whose Velero Backup is there, and those that name it and have none
/// anywhere else. Needed only for a location that is being deleted. What was asked for after that is refused, not
/// deleted: somebody else's finalizer may keep the location for long.
pub(super) fn backups(
    view: &State,
    location: &NonAdminBackupStorageLocation,
    stored_as: &str,
) -> Vec<Arc<NonAdminBackup>> {
    let Some(deleted) = &location.metadata.deletion_timestamp else { return Vec::new() };
    let namespace = location.metadata.namespace.as_deref().unwrap_or_default();
    let all = view.list::<NonAdminBackup>(namespace).into_iter();
    all.filter(|backup| {
        let named = backup.spec.backup_spec.storage_location.as_deref();
        if let Some(velero) = backup::velero_of(view, backup) {
            return velero.spec.storage_location.as_deref() == Some(stored_as);
        }
        let is_later = backup.metadata.creation_timestamp.as_ref().is_some_and(|made| made > deleted);
        named.is_some() && named == location.metadata.name.as_deref() && !is_later
    })
    .collect()
}
