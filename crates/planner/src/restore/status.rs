//! The status of the request.

use api::condition::{self, Finding};
use api::velero::{Restore, RestoreStatus};
use api::{ClaimState, Kind, MOST_CLAIMS, NonAdminRestoreStatus, Phase, VeleroRestore};

use super::Observed;
use crate::volumes::Outcome;
use crate::{Action, Event, requester, results, turns, velero_status};

/// What Velero says, that the request was accepted, and what became of the data.
pub(super) fn mirrored(seen: &Observed, velero: &Restore, outcome: Option<Outcome>) -> NonAdminRestoreStatus {
    let mut status = seen.status();
    status.phase = Some(Phase::Created);
    mirror(seen, velero, &mut status);
    condition::remove(&mut status.conditions, condition::DELETING);
    velero_has_it(seen, &mut status);
    let generation = seen.meta().generation;
    requester::fill_condition(&velero.metadata, &mut status.conditions, generation, seen.now);
    if let Some(outcome) = outcome {
        data_restored(seen, outcome, &mut status);
    }
    if let Some(read) = &seen.results {
        let target = (&mut status.conditions, &mut status.results);
        results::report(read, target, seen.meta().generation, seen.now);
    }
    status
}

/// The condition and the claims change together: a CRD without `claims` drops them silently, and must not cause a write
/// each time.
fn data_restored(seen: &Observed, outcome: Outcome, status: &mut NonAdminRestoreStatus) {
    let Outcome { status: is, reason, message, mut claims, .. } = outcome;
    let said = |status: &NonAdminRestoreStatus| {
        let found = condition::get(&status.conditions, condition::DATA_RESTORED)?;
        Some((found.status.clone(), found.reason.clone(), found.message.clone()))
    };
    let before = said(status);
    let finding = Finding { type_: condition::DATA_RESTORED, status: is, reason, message: &message };
    condition::set(&mut status.conditions, finding, seen.meta().generation, seen.now);
    if before == said(status) {
        return;
    }
    // What went wrong first, if there are too many.
    claims.sort_by_key(|claim| claim.state == ClaimState::Restored);
    let not_listed = claims.len().saturating_sub(MOST_CLAIMS);
    claims.truncate(MOST_CLAIMS);
    status.claims = claims;
    status.claims_not_listed = u32::try_from(not_listed).ok().filter(|more| *more > 0);
}

/// Keeps the information that the Velero object was created, so that it never runs a second time.
fn velero_has_it(seen: &Observed, status: &mut NonAdminRestoreStatus) {
    find(seen, status, condition::ACCEPTED, true, condition::RESTORE_ACCEPTED, "the restore is allowed");
    find(seen, status, condition::QUEUED, true, condition::RESTORE_SCHEDULED, "Velero has the restore");
}

/// It passed every check and waits for its turn. Velero does not have it, so that it is not `Queued`.
pub(super) fn waiting(seen: &Observed) -> NonAdminRestoreStatus {
    let mut status = seen.status();
    status.phase = Some(Phase::New);
    find(seen, &mut status, condition::ACCEPTED, true, condition::RESTORE_ACCEPTED, "the restore is allowed");
    if let Some(place) = seen.turn {
        let shown = (&mut status.conditions, &mut status.queue_info);
        turns::show(place, shown, seen.meta().generation, seen.now);
    }
    status
}

/// Refused, waiting, or lost.
pub(super) fn refused(seen: &Observed, reason: &'static str, message: &str) -> NonAdminRestoreStatus {
    let mut status = seen.status();
    status.phase = Some(Phase::BackingOff);
    status.queue_info = None;
    condition::remove(&mut status.conditions, condition::WAITING_FOR_TURN);
    find(seen, &mut status, condition::ACCEPTED, false, reason, message);
    status
}

/// Being deleted.
pub(super) fn deleting(seen: &Observed, message: &str) -> NonAdminRestoreStatus {
    let mut status = seen.status();
    status.phase = Some(Phase::Deleting);
    if let Some(velero) = &seen.velero {
        mirror(seen, velero, &mut status);
        velero_has_it(seen, &mut status);
    }
    find(seen, &mut status, condition::DELETING, true, condition::DELETION_PENDING, message);
    status
}

fn find(
    seen: &Observed,
    status: &mut NonAdminRestoreStatus,
    type_: &'static str,
    is: bool,
    reason: &'static str,
    message: &str,
) {
    let finding = Finding { type_, status: is.into(), reason, message };
    condition::set(&mut status.conditions, finding, seen.meta().generation, seen.now);
}

fn mirror(seen: &Observed, velero: &Restore, status: &mut NonAdminRestoreStatus) {
    let before = status.velero_restore.take().and_then(|before| before.status);
    let name = velero.metadata.name.clone();
    let says = |velero_status: &RestoreStatus| {
        let phase = velero_status.phase.as_deref();
        seen.rejected_write
            .as_ref()
            .is_none_or(|rejected_write| !rejected_write.refuses_status(Kind::NonAdminRestore, phase))
    };
    status.velero_restore = Some(VeleroRestore {
        status: velero_status::ignore_time_only_changes(before, velero.status.as_ref()).filter(says),
        nacuuid: name.clone(),
        name,
        namespace: Some(seen.admin_namespace.clone()),
    });
    let (files, moved) = seen.volumes;
    status.file_system_pod_volume_restores = (files.total > 0).then_some(files);
    status.data_mover_data_downloads = (moved.total > 0).then_some(moved);
    status.queue_info = Some(velero_status::position(status.queue_info.as_ref(), seen.position));
    condition::remove(&mut status.conditions, condition::WAITING_FOR_TURN);
}

/// The status patch, if the status changes.
pub(super) fn patch(seen: &Observed, wanted: &NonAdminRestoreStatus) -> Option<Action> {
    let found = seen.restore.status.as_ref();
    if !seen.publish_position
        && found.is_some_and(|found| velero_status::only_position_changed(found, wanted))
    {
        return None;
    }
    velero_status::status(seen.target(), found, wanted)
}

/// The Events of a restore.
const EVENT_REASONS: velero_status::EventReasons = velero_status::EventReasons {
    what: "restore",
    scheduled: condition::RESTORE_SCHEDULED,
    started: "RestoreStarted",
    completed: "RestoreCompleted",
    failed: "RestoreFailed",
};

/// Events for what changed since the last status.
pub(super) fn news(seen: &Observed, velero: &Restore, wanted: &NonAdminRestoreStatus) -> Vec<Event> {
    let mut news = Vec::new();
    if seen.status().velero_restore.is_none() {
        news.push(
            EVENT_REASONS.handed_over(
                velero.metadata.name.as_deref().unwrap_or_default(),
                seen.access.identity.user(),
            ),
        );
    }
    let velero_status = |status: &NonAdminRestoreStatus| status.velero_restore.as_ref()?.status.clone();
    let missing = |status: &NonAdminRestoreStatus| {
        let found = condition::get(&status.conditions, condition::DATA_RESTORED)?;
        (found.status == "False").then(|| found.message.clone())
    };
    // It is complete only if the data is back.
    let from_velero =
        EVENT_REASONS.news(velero_status(&seen.status()).as_ref(), velero_status(wanted).as_ref());
    let now_missing = missing(wanted);
    news.extend(from_velero.filter(|event| now_missing.is_none() || event.reason != EVENT_REASONS.completed));
    if let Some(message) = now_missing.filter(|_| missing(&seen.status()).is_none()) {
        news.push(Event::warning("DataNotRestored", message));
    }
    news.extend(results::news(&seen.status().conditions, &wanted.conditions));
    news.extend(requester::news(&seen.status().conditions, &wanted.conditions));
    news
}
