//! The status of the request.

use api::condition::{self, Finding};
use api::velero::{Backup, BackupSpec, DeleteBackupRequest};
use api::{Kind, NonAdminBackupStatus, Phase, VeleroBackup, VeleroDeleteBackupRequest};

use super::{Observed, data_protected, generate, not_restorable};
use crate::request::Request as _;
use crate::{Action, Event, Policy, requester, results, turns, velero_status};

/// A status of this size plus the spec is close to etcd's limit of 1.5 MiB.
const TOO_LARGE: usize = 700 * 1024;

/// Condition message for an edit after the Velero Backup was created.
pub(super) const EDITED: &str =
    "the spec was edited after Velero got it; the edit changes nothing: create a new NonAdminBackup instead";

/// What Velero says, and that the request was accepted.
pub(super) fn mirrored(seen: &Observed, velero: &Backup) -> NonAdminBackupStatus {
    let mut status = seen.status();
    status.phase = Some(Phase::Created);
    mirror(seen, velero, &mut status);
    status.velero_delete_backup_request = None;
    condition::remove(&mut status.conditions, condition::DELETING);
    velero_has_it(seen, &mut status);
    if let Some(message) = seen.not_theirs() {
        find(seen, &mut status, condition::SPEC_APPLIED, false, condition::REQUESTER_NOT_PERMITTED, &message);
    } else if generate::edited_since(seen, velero) {
        find(seen, &mut status, condition::SPEC_APPLIED, false, condition::EDITED_TOO_LATE, EDITED);
    } else {
        condition::remove(&mut status.conditions, condition::SPEC_APPLIED);
    }
    let generation = seen.meta().generation;
    requester::fill_condition(&velero.metadata, &mut status.conditions, generation, seen.now);
    data_protected::report(seen, velero, &mut status);
    publish_results(seen, &mut status);
    fit(seen, status)
}

/// Publishes the errors and warnings that were read.
fn publish_results(seen: &Observed, status: &mut NonAdminBackupStatus) {
    if let Some(read) = &seen.results {
        let target = (&mut status.conditions, &mut status.results);
        results::report(read, target, seen.meta().generation, seen.now);
    }
}

/// Keeps the information that the Velero object was created, so that it is never created a second time.
fn velero_has_it(seen: &Observed, status: &mut NonAdminBackupStatus) {
    if seen.synced() {
        // Imported, so there is no acceptance; an older refusal is outdated.
        condition::remove(&mut status.conditions, condition::ACCEPTED);
    } else {
        let given = seen.velero.as_deref().map(|velero| &velero.spec);
        let message = allowed(seen, given.zip(seen.policy.as_deref()));
        find(seen, status, condition::ACCEPTED, true, condition::BACKUP_ACCEPTED, &message);
    }
    find(seen, status, condition::QUEUED, true, condition::BACKUP_SCHEDULED, "Velero has the backup");
}

/// It passed every check and waits for its turn. Velero does not have it, so that it is not `Queued`.
pub(super) fn waiting(seen: &Observed, policy: &Policy, spec: &BackupSpec) -> NonAdminBackupStatus {
    let mut status = seen.status();
    status.phase = Some(Phase::New);
    condition::remove(&mut status.conditions, condition::DELETING);
    let message = allowed(seen, Some((spec, policy)));
    find(seen, &mut status, condition::ACCEPTED, true, condition::BACKUP_ACCEPTED, &message);
    if let Some(place) = seen.turn {
        let shown = (&mut status.conditions, &mut status.queue_info);
        turns::show(place, shown, seen.meta().generation, seen.now);
    }
    status
}

/// That the request was accepted, and what of it could not be restored then. It stays, whatever becomes of the policy.
fn allowed(seen: &Observed, given: Option<(&BackupSpec, &Policy)>) -> String {
    let (_, conditions) = seen.reported();
    let before = condition::get(conditions, condition::ACCEPTED).filter(|before| before.status == "True");
    if let Some(before) = before {
        return before.message.clone();
    }
    match given.and_then(|(spec, policy)| not_restorable(spec, policy)) {
        Some(lost) => format!("the backup is allowed, but {lost}"),
        None => "the backup is allowed".to_owned(),
    }
}

/// Refused, or lost.
pub(super) fn refused(seen: &Observed, reason: &'static str, message: &str) -> NonAdminBackupStatus {
    let mut status = seen.status();
    status.phase = Some(Phase::BackingOff);
    status.queue_info = None;
    condition::remove(&mut status.conditions, condition::WAITING_FOR_TURN);
    find(seen, &mut status, condition::ACCEPTED, false, reason, message);
    condition::remove(&mut status.conditions, condition::DELETING);
    status
}

/// Being deleted, with the latest DeleteBackupRequest: an existing one, or one that is about to be created.
pub(super) fn deleting(
    seen: &Observed,
    message: &str,
    request: Option<&DeleteBackupRequest>,
) -> NonAdminBackupStatus {
    let mut status = seen.status();
    status.phase = Some(Phase::Deleting);
    condition::remove(&mut status.conditions, condition::WAITING_FOR_TURN);
    if let Some(velero) = &seen.velero {
        mirror(seen, velero, &mut status);
        velero_has_it(seen, &mut status);
    }
    if let Some(request) = request.or_else(|| seen.delete_requests.last().map(AsRef::as_ref)) {
        let name = request.metadata.name.clone();
        status.velero_delete_backup_request = Some(VeleroDeleteBackupRequest {
            status: request.status.clone(),
            nacuuid: seen.velero.as_ref().and_then(|velero| velero.metadata.name.clone()),
            namespace: name.as_ref().map(|_| seen.admin_namespace.clone()),
            name,
        });
    }
    find(seen, &mut status, condition::DELETING, true, condition::DELETION_PENDING, message);
    fit(seen, status)
}

fn find(
    seen: &Observed,
    status: &mut NonAdminBackupStatus,
    type_: &'static str,
    is: bool,
    reason: &'static str,
    message: &str,
) {
    let finding = Finding { type_, status: is.into(), reason, message };
    condition::set(&mut status.conditions, finding, seen.meta().generation, seen.now);
}

fn mirror(seen: &Observed, velero: &Backup, status: &mut NonAdminBackupStatus) {
    let before = status.velero_backup.take().and_then(|before| before.status);
    let name = velero.metadata.name.clone();
    status.velero_backup = Some(VeleroBackup {
        spec: Some(velero.spec.clone()),
        status: velero_status::ignore_time_only_changes(before, velero.status.as_ref()),
        nacuuid: name.clone(),
        name,
        namespace: Some(seen.admin_namespace.clone()),
    });
    let (files, moved) = seen.volumes;
    status.file_system_pod_volume_backups = (files.total > 0).then_some(files);
    status.data_mover_data_uploads = (moved.total > 0).then_some(moved);
    status.queue_info = Some(velero_status::position(status.queue_info.as_ref(), seen.position));
    condition::remove(&mut status.conditions, condition::WAITING_FOR_TURN);
}

/// Drops the copy of the spec, and then Velero's lists, from a status that is too large for etcd.
fn fit(seen: &Observed, mut status: NonAdminBackupStatus) -> NonAdminBackupStatus {
    let phase = status.velero_backup.as_ref().and_then(|velero| velero.status.as_ref()?.phase.as_deref());
    let rejected_write = seen.rejected_write.as_deref();
    if let Some(rejected_write) =
        rejected_write.filter(|rejected_write| rejected_write.refuses_status(Kind::NonAdminBackup, phase))
    {
        if let Some(velero) = &mut status.velero_backup {
            velero.status = None;
            velero.spec = velero.spec.take().filter(|_| rejected_write.names_unknown_value());
        }
        return status;
    }
    let size = |value: &NonAdminBackupStatus| serde_json::to_vec(value).map_or(0, |text| text.len());
    // Only a spec that is large itself can make the copy large: most are not worth measuring.
    let spec = serde_json::to_vec(&seen.backup.spec).map_or(0, |text| text.len());
    if spec + size(&status) <= TOO_LARGE {
        return status;
    }
    if let Some(velero) = &mut status.velero_backup {
        velero.spec = None;
    }
    if spec + size(&status) > TOO_LARGE
        && let Some(velero) = status.velero_backup.as_mut().and_then(|velero| velero.status.as_mut())
    {
        velero.validation_errors = None;
    }
    status
}

/// The status patch, if the status changes.
pub(super) fn patch(seen: &Observed, wanted: &NonAdminBackupStatus) -> Option<Action> {
    let found = seen.backup.status.as_ref();
    if !seen.publish_position
        && found.is_some_and(|found| velero_status::only_position_changed(found, wanted))
    {
        return None;
    }
    velero_status::status(seen.target(), found, wanted)
}

/// The Events of a backup.
const EVENT_REASONS: velero_status::EventReasons = velero_status::EventReasons {
    what: "backup",
    scheduled: condition::BACKUP_SCHEDULED,
    started: "BackupStarted",
    completed: "BackupCompleted",
    failed: "BackupFailed",
};

/// Events for what changed since the last status.
pub(super) fn news(seen: &Observed, velero: &Backup, wanted: &NonAdminBackupStatus) -> Vec<Event> {
    let mut news = Vec::new();
    // Imported backups get no "started" Event.
    if !seen.synced() && seen.status().velero_backup.is_none() {
        news.push(
            EVENT_REASONS.handed_over(
                velero.metadata.name.as_deref().unwrap_or_default(),
                seen.access.identity.user(),
            ),
        );
    }
    let velero_status = |status: &NonAdminBackupStatus| status.velero_backup.as_ref()?.status.clone();
    let from_velero =
        EVENT_REASONS.news(velero_status(&seen.status()).as_ref(), velero_status(wanted).as_ref());
    news.extend(from_velero.filter(|event| !seen.synced() || event.reason != EVENT_REASONS.started));
    let edited = |status: &NonAdminBackupStatus| {
        condition::get(&status.conditions, condition::SPEC_APPLIED).map(|found| found.message.clone())
    };
    if let Some(message) = edited(wanted).filter(|_| edited(&seen.status()).is_none()) {
        news.push(Event::warning(condition::EDITED_TOO_LATE, message));
    }
    let unprotected = |status: &NonAdminBackupStatus| {
        let found = condition::get(&status.conditions, condition::DATA_PROTECTED);
        found.filter(|found| found.status == "False").map(|found| found.message.clone())
    };
    if let Some(message) = unprotected(wanted).filter(|_| unprotected(&seen.status()).is_none()) {
        news.push(Event::warning(condition::CLAIMS_NOT_SAVED, message));
    }
    news.extend(results::news(&seen.status().conditions, &wanted.conditions));
    news.extend(requester::news(&seen.status().conditions, &wanted.conditions));
    news
}
