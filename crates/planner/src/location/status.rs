//! What the tenant is shown of a location.

use api::condition::{self, Finding};
use api::velero::BackupStorageLocationStatus;
use api::{NonAdminBackupStorageLocationStatus, Phase, VeleroBackupStorageLocation};

use super::conditions::{self, ConditionUpdate};
use super::credentials::Credential;
use super::decide::{LocationDecision, decision};
use super::{Observed, generate, review, times};
use crate::policy::Import;
use crate::request::Request;
use crate::{Action, Event, Plan, Policy, imports, velero_status};

/// What is said about a location that was changed after it was asked for.
pub(super) const EDITED: &str = "the location was changed after it was asked for, which is not allowed: put back what was asked for, \
     or create a new NonAdminBackupStorageLocation";

/// Adds the status for a decision to a plan, and Events for what changed.
pub(super) fn report(
    seen: &Observed,
    policy: &Policy,
    verdict: &LocationDecision,
    failed: Option<&ConditionUpdate>,
    plan: Plan,
) -> Plan {
    let Some((phase, findings)) = conditions::of(verdict, failed) else { return plan };
    let mut status = seen.location.status.clone().unwrap_or_default();
    status.phase = Some(phase);
    for finding in findings {
        condition::set(&mut status.conditions, finding.as_finding(), seen.meta().generation, seen.now);
    }
    if failed.is_none()
        && let Some(decided) = decided_before(seen, policy, verdict, &status)
    {
        condition::set(&mut status.conditions, decided.as_finding(), seen.meta().generation, seen.now);
    }
    if !matches!(verdict, LocationDecision::Edited) {
        condition::remove(&mut status.conditions, condition::SPEC_UPDATE_APPROVED);
    }
    match verdict {
        LocationDecision::Approved(credential) if failed.is_none() => {
            handed_over(seen, policy, credential, &mut status);
        }
        LocationDecision::Approved(_) => {
            forget(seen.copy.is_none(), seen.storage.is_none(), failed, &mut status);
            mirror(seen, &mut status);
        }
        LocationDecision::Grace(..) => mirror(seen, &mut status),
        _ => {
            forget(true, true, failed, &mut status);
            condition::remove(&mut status.conditions, condition::BACKUPS_IMPORTED);
            if let Some(velero) = &mut status.velero_backup_storage_location {
                velero.status = None;
            }
            if seen.request.is_some() {
                refer(seen, &mut status, None);
            }
        }
    }
    write(seen, &status, plan)
}

/// What the administrators decided, where something else is wrong as well: what the status says of it may be from before.
fn decided_before(
    seen: &Observed,
    policy: &Policy,
    verdict: &LocationDecision,
    status: &NonAdminBackupStorageLocationStatus,
) -> Option<ConditionUpdate> {
    let elsewhere = matches!(
        verdict,
        LocationDecision::Refused(_) | LocationDecision::NotPermitted(_) | LocationDecision::Grace(..)
    );
    condition::get(&status.conditions, condition::CLUSTER_ADMIN_APPROVED).filter(|_| elsewhere)?;
    let request = seen.readable_request().filter(|_| !seen.request_is_odd())?;
    let reason = review::rejection_reason(request);
    Some(conditions::decided(decision(request, policy), reason.as_deref()))
}

/// Says no more of objects that Velero has not got, but for what failed.
fn forget(
    secret: bool,
    location: bool,
    failed: Option<&ConditionUpdate>,
    status: &mut NonAdminBackupStorageLocationStatus,
) {
    for (type_, gone) in [(condition::SECRET_SYNCED, secret), (condition::LOCATION_SYNCED, location)] {
        if gone && failed.is_none_or(|failed| failed.type_ != type_) {
            condition::remove(&mut status.conditions, type_);
        }
    }
}

/// The conditions about the two objects that Velero reads, and what Velero says.
fn handed_over(
    seen: &Observed,
    policy: &Policy,
    credential: &Credential,
    status: &mut NonAdminBackupStorageLocationStatus,
) {
    let secret = reason(
        status,
        condition::SECRET_SYNCED,
        seen.copy.is_none(),
        generate::rotates(seen, credential),
        [condition::SECRET_CREATED, condition::SECRET_UPDATED],
    );
    let location = reason(
        status,
        condition::LOCATION_SYNCED,
        seen.storage.is_none(),
        generate::moves(seen, policy, credential),
        [condition::LOCATION_CREATED, condition::LOCATION_UPDATED],
    );
    let reported = [
        (condition::SECRET_SYNCED, secret, "Velero has the credential"),
        (condition::LOCATION_SYNCED, location, "Velero has the location"),
    ];
    for (type_, reason, message) in reported {
        let finding = Finding { type_, status: true.into(), reason, message };
        condition::set(&mut status.conditions, finding, seen.meta().generation, seen.now);
    }
    show_refused_imports(seen, status);
    mirror(seen, status);
}

/// What is in the storage and cannot be used. Where that is not known, what was said before stays.
fn show_refused_imports(seen: &Observed, status: &mut NonAdminBackupStorageLocationStatus) {
    let Some(refused) = &seen.refused_imports else { return };
    match imports::message(refused) {
        Some(message) => {
            let (type_, reason) = (condition::BACKUPS_IMPORTED, condition::IMPORTS_REFUSED);
            let finding = Finding { type_, status: false.into(), reason, message: &message };
            condition::set(&mut status.conditions, finding, seen.meta().generation, seen.now);
        }
        None => condition::remove(&mut status.conditions, condition::BACKUPS_IMPORTED),
    }
}

/// The reason of a condition: created, changed, or unchanged.
fn reason(
    status: &NonAdminBackupStorageLocationStatus,
    type_: &str,
    made: bool,
    changed: bool,
    [created, updated]: [&'static str; 2],
) -> &'static str {
    let reported = condition::get(&status.conditions, type_).map(|reported| reported.reason.as_str());
    if !made && (changed || reported == Some(updated)) { updated } else { created }
}

fn mirror(seen: &Observed, status: &mut NonAdminBackupStorageLocationStatus) {
    let before = status.velero_backup_storage_location.take().and_then(|before| before.status);
    let now = seen.storage.as_ref().and_then(|storage| storage.status.clone());
    refer(seen, status, ignore_time_only_changes(seen, before, now));
}

fn refer(
    seen: &Observed,
    status: &mut NonAdminBackupStorageLocationStatus,
    said: Option<BackupStorageLocationStatus>,
) {
    status.velero_backup_storage_location = Some(VeleroBackupStorageLocation {
        status: said,
        nacuuid: Some(seen.name.clone()),
        name: Some(seen.name.clone()),
        namespace: Some(seen.admin_namespace.clone()),
    });
}

/// Velero writes the time of each validation; that alone is worth a write only now and then.
fn ignore_time_only_changes(
    seen: &Observed,
    before: Option<BackupStorageLocationStatus>,
    now: Option<BackupStorageLocationStatus>,
) -> Option<BackupStorageLocationStatus> {
    let (Some(before), Some(now)) = (before, now.clone()) else { return now };
    let mut alike = now.clone();
    alike.last_synced_time.clone_from(&before.last_synced_time);
    alike.last_validation_time.clone_from(&before.last_validation_time);
    let keep = alike == before && !times::are_due(&before, &now, seen.allowed_lag);
    Some(if keep { before } else { now })
}

/// The policy is unknown: shows what Velero has, or that the location waits.
pub(super) fn wait_for_policy(seen: &Observed) -> Plan {
    let mut status = seen.location.status.clone().unwrap_or_default();
    if seen.storage.is_some() {
        mirror(seen, &mut status);
    } else {
        status = refused(seen, condition::POLICY_UNAVAILABLE, &Observed::policy_unreadable());
    }
    write(seen, &status, Plan::done().because(Observed::policy_unreadable()))
}

/// The status of a location that is refused.
pub(super) fn refused(
    seen: &Observed,
    reason: &'static str,
    message: &str,
) -> NonAdminBackupStorageLocationStatus {
    let mut status = seen.location.status.clone().unwrap_or_default();
    status.phase = Some(Phase::BackingOff);
    let finding = Finding { type_: condition::ACCEPTED, status: false.into(), reason, message };
    condition::set(&mut status.conditions, finding, seen.meta().generation, seen.now);
    status
}

/// The status as a patch, if it differs.
pub(super) fn patch(seen: &Observed, wanted: &NonAdminBackupStorageLocationStatus) -> Option<Action> {
    velero_status::status(seen.target(), seen.location.status.as_ref(), wanted)
}

/// Reports that this Velero version is too old for import, when the location is created in Velero.
pub(super) fn import_is_off(seen: &Observed, policy: &Policy) -> Option<Event> {
    let too_old = policy.storage_locations.import == Import::Auto && seen.imports(policy) == Some(false);
    let note = "Velero is too old to be trusted with what it may find in this storage; \
                backups that are in it already are not looked for";
    (too_old && seen.storage.is_none()).then(|| Event::warning("ImportOff", note))
}

/// Shows that it is being deleted.
pub(super) fn deleting(seen: &Observed) -> Option<Action> {
    let mut status = seen.location.status.clone().unwrap_or_default();
    status.phase = Some(Phase::Deleting);
    if let Some(failed) =
        seen.rejected_write.as_ref().and_then(|rejected_write| conditions::failed(rejected_write, None))
    {
        condition::set(&mut status.conditions, failed.as_finding(), seen.meta().generation, seen.now);
    }
    patch(seen, &status)
}

/// One write if the status changes, and an Event for each new condition.
fn write(seen: &Observed, status: &NonAdminBackupStorageLocationStatus, plan: Plan) -> Plan {
    let found = seen.location.status.as_ref();
    let mut plan = plan.then_if(patch(seen, status));
    let before = found.map(|status| status.conditions.as_slice()).unwrap_or_default();
    for now in &status.conditions {
        let known = condition::get(before, &now.type_).is_some_and(|before| {
            before.status == now.status && before.reason == now.reason && before.message == now.message
        });
        let Some(reason) =
            REPORTED_CONDITIONS.iter().find(|reason| **reason == now.reason).filter(|_| !known)
        else {
            continue;
        };
        let fine = now.status == "True" || *reason == condition::BSL_SPEC_APPROVAL_PENDING;
        let event = if fine { Event::normal } else { Event::warning };
        // That a location is valid goes without saying.
        if now.status == "False" || now.type_ != condition::ACCEPTED {
            plan = plan.with_event(event(reason, now.message.clone()));
        }
    }
    plan
}

/// The condition reasons that get an Event.
const REPORTED_CONDITIONS: [&str; 11] = [
    condition::IMPORTS_REFUSED,
    condition::BSL_SPEC_VALIDATION,
    condition::BSL_SPEC_APPROVED,
    condition::BSL_SPEC_APPROVAL_PENDING,
    condition::BSL_SPEC_REJECTED,
    condition::BSL_SPEC_INVALID,
    condition::BSL_SPEC_UPDATE_REJECTED,
    condition::SECRET_UPDATED,
    condition::SECRET_SYNC_FAILED,
    condition::LOCATION_CREATED,
    condition::LOCATION_SYNC_ERROR,
];
