//! Deleting a backup: the request alone, or with its data.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::velero::{Backup, DeleteBackupRequest, DeleteBackupRequestSpec};
use api::{Kind, condition, labels};
use kube::core::ObjectMeta;
use serde_json::json;

use super::{Observed, status};
use crate::ownership::{Storage, label, made_for, storage};
use crate::queue::{Queued, Stage};
use crate::request::{Request, removal_lasts};
use crate::schedule::Marked;
use crate::{Action, Event, Object, Plan, Target, requester};

/// How often to look whether a location that Velero could not write to can be written again.
const LOOK_AGAIN: Duration = Duration::from_secs(15);
/// How long to wait before asking Velero again when it refused for a reason we cannot see.
const ASK_AGAIN: Duration = Duration::from_mins(1);

/// The reason for the last step, and for doing nothing after it.
const GONE: &str = "it is being deleted and Velero has nothing of it: only finalizers of others can keep it";
/// Why a backup stays that retention had marked.
const LAST_GOOD: &str = "it is the last good backup of its schedule, since a newer one was deleted: it stays";
const FOUND_AGAIN: &str = "Velero has found it in storage again: it stays until its schedule decides again";
/// Condition message while Velero works on it.
const AT_WORK: &str = "Velero is at work on it: volumes are being cancelled, and the Velero Backup is removed when \
                       Velero has ended it";

/// Decides about a backup that is being deleted.
pub(super) fn decide(seen: &Observed) -> Plan {
    let Some(velero) = &seen.velero else {
        return vanish(seen);
    };
    let begun = velero.phase() == "Deleting" || seen.delete_requests.iter().any(|one| !is_new(one));
    match seen.marked {
        Marked::Unconfirmed if seen.delete_requests.is_empty() => {
            return Plan::done()
                .because("retention has it deleted, once nobody can have deleted a newer one before");
        }
        Marked::LastGood if !begun => return withdraw(seen, LAST_GOOD),
        Marked::FoundAgain if !begun => return withdraw(seen, FOUND_AGAIN),
        _ => {}
    }
    if !seen.deletes_data() {
        return forget(
            seen,
            velero,
            "the Velero Backup is being removed; its data stays in the storage, \
                       because deleting that needs spec.deleteBackup: true",
        );
    }
    if nothing_was_stored(velero) {
        return forget(
            seen,
            velero,
            "the Velero Backup is being removed; Velero never stored any data for it",
        );
    }
    match why_data_must_stay(seen, velero) {
        Some(reason) => {
            let plan = forget(seen, velero, &reason);
            let news = !plan.actions.is_empty();
            if news { plan.with_event(Event::warning("DataNotDeleted", reason)) } else { plan }
        }
        None => delete_data(seen, velero),
    }
}

/// Takes back what retention wrote, since what it was written for does not hold any more.
fn withdraw(seen: &Observed, note: &'static str) -> Plan {
    let change = json!({
        "metadata": {"annotations": {labels::DELETION_REQUESTER: null}},
        "spec": {"deleteBackup": null},
    });
    Plan::done()
        .then(Action::Patch(seen.target(), change))
        .again_at_once()
        .because(note)
        .with_event(Event::normal(condition::BACKUP_KEPT, note))
}

/// The Velero Backup is gone: removes the finalizer. Restores from deleted data are deleted too.
fn vanish(seen: &Observed) -> Plan {
    let mut plan = Plan::done();
    if seen.deletes_data() {
        plan.actions.extend(delete_restores(seen));
    }
    plan = seen.drop_finalizer(plan);
    if !seen.is_deleting() {
        plan = plan.then(Action::Delete(seen.target()));
    }
    let plan = plan.because(GONE);
    if plan.actions.is_empty() || seen.backup.status.is_none() {
        return plan;
    }
    plan.with_event(Event::normal("BackupDeleted", "the backup is gone"))
}

/// Deletes the Velero Backup and keeps the data. While Velero works on it, its volume operations are cancelled, and it is
/// deleted when Velero has ended it.
fn forget(seen: &Observed, velero: &Backup, message: &str) -> Plan {
    let going = velero.metadata.deletion_timestamp.is_some();
    let at_work = !going && seen.is_at_work(velero);
    let message = if at_work { AT_WORK } else { message };
    let lasts = removal_lasts(&velero.metadata, at_work, seen.rejected_write.as_deref());
    let status = lasts.then(|| status::patch(seen, &status::deleting(seen, message, None))).flatten();
    let mut plan = Plan::done().then_if(status).because(message.to_owned());
    for request in not_begun(seen) {
        plan = plan.then(Action::Delete(Target::of(Kind::DeleteBackupRequest, &request.metadata)));
    }
    let target = Target::of(Kind::Backup, &velero.metadata);
    if at_work || going {
        return seen.cancelling(velero, true).add_to(plan, seen.rejected_write.as_deref());
    }
    // Velero may be starting one that waits right now.
    let is_waiting = velero.stage() == Stage::Waiting;
    plan.then(if is_waiting { Action::DeleteUnchanged(target) } else { Action::Delete(target) })
}

/// Has Velero delete the backup and its data. The request goes when the Velero Backup is gone, not before.
fn delete_data(seen: &Observed, velero: &Backup) -> Plan {
    let refusal = last_refusal(seen);
    let obstacle = obstacle(seen, velero);
    let asking = seen.delete_requests.iter().any(|request| !processed(request));
    let ask = (!asking && obstacle.is_none() && due(seen)).then(|| request(seen, velero));
    let message = match (&obstacle, &refusal) {
        _ if asking || ask.is_some() => "the backup and its data are being deleted".to_owned(),
        (Some(obstacle), _) => format!("waiting to delete the backup and its data: {obstacle}"),
        (None, Some(words)) => {
            format!("Velero refused to delete the backup and its data: {words}; it is asked again")
        }
        (None, None) => "the backup and its data are being deleted".to_owned(),
    };
    let mut plan = Plan::done();
    // The API server rejects new finalizers on an object that is being deleted.
    if !seen.is_deleting() {
        plan = seen.ensure_finalizer(plan);
    }
    let written = status::patch(seen, &status::deleting(seen, &message, ask.as_ref()));
    let news = written.is_some();
    plan = plan.then_if(written);
    plan.actions.extend(delete_restores(seen));
    plan = plan.because(message);
    if let Some(ask) = &ask {
        let asked = requester::of_deletion(seen.meta()).asked();
        let note = format!("Velero was asked to delete the backup with its data, {asked}");
        return plan
            .with_event(Event::normal(requester::DELETION_REQUESTED, note))
            .then(Action::Create(Object::of(Kind::DeleteBackupRequest, ask)));
    }
    if asking {
        return plan;
    }
    plan = seen.cancelling(velero, true).add_to(plan, seen.rejected_write.as_deref());
    if news && let Some(words) = refusal.filter(|_| obstacle.is_none()) {
        plan = plan.with_event(Event::warning("DeletionRefused", words));
    }
    plan.requeue_after(LOOK_AGAIN)
}

fn delete_restores(seen: &Observed) -> impl Iterator<Item = Action> {
    let staying = seen.restores.iter().filter(|restore| restore.metadata.deletion_timestamp.is_none());
    staying.map(|restore| Action::Delete(Target::of(Kind::NonAdminRestore, &restore.metadata)))
}

/// Velero writes the location into the Backup when it takes it up: one that is over without a location was never
/// taken up, and Velero would refuse to delete it for ever.
fn nothing_was_stored(velero: &Backup) -> bool {
    velero.spec.storage_location.is_none() && velero.stage() == Stage::Finished
}

/// Why the data cannot be deleted at all, now or later.
fn why_data_must_stay(seen: &Observed, velero: &Backup) -> Option<String> {
    if seen.namespace_is_deleting() {
        return Some(
            "the namespace is being deleted: the Velero Backup is removed, its data stays in the storage"
                .to_owned(),
        );
    }
    let gone =
        storage(velero, seen.velero_location.as_deref()) == Storage::Unknown && seen.location.is_none();
    gone.then(|| {
        "its storage location is gone: the Velero Backup is removed, its data stays in the storage".to_owned()
    })
}

/// What Velero would refuse for, if it were asked now.
fn obstacle(seen: &Observed, velero: &Backup) -> Option<String> {
    if velero.stage() != Stage::Finished {
        return Some("Velero is not done with it yet".to_owned());
    }
    let Some(location) = seen.velero_location.as_deref() else {
        return Some("its storage location is not there at the moment".to_owned());
    };
    if location.spec.access_mode.as_deref() == Some("ReadOnly") {
        return Some("its storage location is read-only".to_owned());
    }
    let phase = location.status.as_ref().and_then(|status| status.phase.as_deref());
    (phase == Some("Unavailable")).then(|| "its storage location cannot be reached".to_owned())
}

/// DeleteBackupRequests for this request that Velero has not processed yet: they can be withdrawn.
pub(super) fn not_begun(seen: &Observed) -> impl Iterator<Item = &Arc<DeleteBackupRequest>> {
    seen.delete_requests.iter().filter(|request| {
        ours(seen, request) && request.metadata.deletion_timestamp.is_none() && is_new(request)
    })
}

fn is_new(request: &DeleteBackupRequest) -> bool {
    matches!(phase(request), "" | "New")
}

fn ours(seen: &Observed, request: &DeleteBackupRequest) -> bool {
    label(&request.metadata, labels::MANAGED_BY) == Some(labels::MANAGED_BY_VALUE)
        && made_for(&request.metadata, seen.meta(), labels::NAB_NAME, labels::NAB_NAMESPACE)
}

fn phase(request: &DeleteBackupRequest) -> &str {
    request.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

fn processed(request: &DeleteBackupRequest) -> bool {
    phase(request) == "Processed"
}

fn last_refusal(seen: &Observed) -> Option<String> {
    let request = seen.delete_requests.last().filter(|request| processed(request))?;
    let errors = request.status.as_ref()?.errors.as_deref().unwrap_or_default();
    (!errors.is_empty()).then(|| errors.join("; "))
}

/// Whether enough time has passed since Velero was last asked.
fn due(seen: &Observed) -> bool {
    let last = seen.delete_requests.last().and_then(|request| request.metadata.creation_timestamp.as_ref());
    last.is_none_or(|last| seen.now.duration_since(last.0).unsigned_abs() >= ASK_AGAIN)
}

/// Named by Backup and attempt, so that creating it twice results in one.
fn request(seen: &Observed, velero: &Backup) -> DeleteBackupRequest {
    let backup = velero.metadata.name.clone().unwrap_or_default();
    let attempt = |request: &Arc<DeleteBackupRequest>| -> Option<u32> {
        request.metadata.name.as_deref()?.strip_prefix(&backup)?.strip_prefix('-')?.parse().ok()
    };
    // One more than the last, not than their number: Velero removes older ones in between.
    let attempt = seen.delete_requests.iter().filter_map(attempt).max().unwrap_or(0).saturating_add(1);
    let origin = seen.meta();
    let mut annotations = BTreeMap::from([
        (labels::NAB_NAME.to_owned(), origin.name.clone().unwrap_or_default()),
        (labels::NAB_NAMESPACE.to_owned(), origin.namespace.clone().unwrap_or_default()),
        (labels::ORIGIN_UID.to_owned(), origin.uid.clone().unwrap_or_default()),
    ]);
    annotations.extend(requester::annotation_of(&requester::of_deletion(origin)));
    DeleteBackupRequest {
        metadata: ObjectMeta {
            name: Some(format!("{backup}-{attempt}")),
            namespace: Some(seen.admin_namespace.clone()),
            labels: Some(BTreeMap::from([
                (labels::OADP.to_owned(), labels::OADP_VALUE.to_owned()),
                (labels::MANAGED_BY.to_owned(), labels::MANAGED_BY_VALUE.to_owned()),
                (labels::NAB_NACUUID.to_owned(), backup.clone()),
                (labels::VELERO_BACKUP_NAME.to_owned(), backup.clone()),
                (labels::VELERO_BACKUP_UID.to_owned(), velero.metadata.uid.clone().unwrap_or_default()),
            ])),
            annotations: Some(annotations),
            ..ObjectMeta::default()
        },
        spec: DeleteBackupRequestSpec { backup_name: backup },
        status: None,
    }
}
