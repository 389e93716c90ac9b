//! The condition `DataProtected`: whether the data of every claim is in the backup.
//!
//! It is decided once, when Velero has ended the backup, and written together with Velero's phase. From then on it stays,
//! whatever becomes of the claims; only a volume that is seen late changes it. The claims that existed when the backup
//! started are compared, by uid, with what Velero did about single volumes. It is not set
//!
//! - where nacre is not permitted to list claims: an empty list would mean nothing,
//! - on backups that were over before nacre knew this condition,
//! - on backups that were imported from storage: nobody knows which claims there were.

use api::condition::{self, Finding, Status};
use api::velero::Backup;
use api::{Claim, ClaimState, ClaimStatus, MOST_CLAIMS, NonAdminBackupStatus};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::not_saved::{self, Cause};
use super::{Observed, left_out};
use crate::queue::{Queued, Stage, stage};
use crate::volumes::{BY_NACRE, Operation, VolumeBytes};

const STILL_RUNNING: &str = "the backup is not over yet";

/// Sets the condition and the list of claims, if there is something new to say.
pub(super) fn report(seen: &Observed, velero: &Backup, status: &mut NonAdminBackupStatus) {
    let before = seen.backup.status.as_ref();
    let decided = before.and_then(|before| condition::get(&before.conditions, condition::DATA_PROTECTED));
    let Some(claims) = &seen.volume_facts.claims else { return };
    if seen.synced() || velero.phase() == "Deleting" {
        return;
    }
    let verdict = match decided.map(|decided| decided.status.as_str()) {
        None if before.is_some_and(was_over) => None,
        Some("True") => decided.and_then(|decided| seen_late(seen, velero, decided)),
        Some("False") => before.and_then(|before| revised(seen, velero, before)),
        _ if is_over(seen, velero) => {
            let start = velero.status.as_ref().and_then(|status| status.start_timestamp.as_ref());
            let start = start.or(velero.metadata.creation_timestamp.as_ref()).map_or(seen.now, |time| time.0);
            let counted: Vec<&Claim> =
                claims.iter().map(AsRef::as_ref).filter(|claim| counts(claim, start)).collect();
            Some(DataProtected::of(of_claims(seen, velero, &counted)))
        }
        _ => Some(DataProtected::undecided(so_far(&seen.operations))),
    };
    let Some(verdict) = verdict else { return };
    // The claims change together with the message: a CRD without them drops them, and must not cause a write each time.
    if decided.is_none_or(|decided| decided.message != verdict.message) {
        let all = verdict.claims.len();
        status.claims = verdict.claims.into_iter().take(MOST_CLAIMS).collect();
        status.claims_not_listed =
            u32::try_from(all.saturating_sub(MOST_CLAIMS)).ok().filter(|rest| *rest > 0);
    }
    let finding = Finding {
        type_: condition::DATA_PROTECTED,
        status: verdict.status,
        reason: verdict.reason,
        message: &verdict.message,
    };
    condition::set(&mut status.conditions, finding, seen.meta().generation, seen.now);
}

/// A verdict that is out of date: watch events of two kinds have no order, so a volume may be seen after the end of its
/// backup. Only claims that were not saved are looked at again, and only by what Velero did about their volumes.
fn revised(seen: &Observed, velero: &Backup, before: &NonAdminBackupStatus) -> Option<DataProtected> {
    if !is_readable(velero) || before.claims_not_listed.is_some() {
        return None;
    }
    let mut claims = before.claims.clone();
    for claim in &mut claims {
        if matches!(claim.state, ClaimState::NotSaved | ClaimState::Failed)
            && let Some(now) = by_operations(&claim.name, &of_name(&seen.operations, &claim.name))
        {
            *claim = now;
        }
    }
    (claims != before.claims).then(|| DataProtected::of(claims))
}

/// The same where no claim was known: volumes that are seen after the end of the backup say that there was one.
fn seen_late(seen: &Observed, velero: &Backup, decided: &Condition) -> Option<DataProtected> {
    if decided.reason != condition::NO_CLAIMS || !is_readable(velero) || !is_over(seen, velero) {
        return None;
    }
    let claims = of_deleted_claims(&seen.operations, &[]);
    (!claims.is_empty()).then(|| DataProtected::of(claims))
}

fn of_name<'a>(operations: &'a [Operation], name: &str) -> Vec<&'a Operation> {
    operations.iter().filter(|volume| volume.claim.as_deref() == Some(name)).collect()
}

/// Something of it can be restored.
fn is_readable(velero: &Backup) -> bool {
    matches!(velero.phase(), "Completed" | "PartiallyFailed")
}

/// The status shows that Velero had ended it.
fn was_over(status: &NonAdminBackupStatus) -> bool {
    let velero = status.velero_backup.as_ref().and_then(|velero| velero.status.as_ref());
    velero.is_some_and(|velero| {
        let phase = velero.phase.as_deref().unwrap_or_default();
        stage(phase, velero.completion_timestamp.is_some()) == Stage::Finished
    })
}

/// Velero has ended it, and nothing more will be seen of its volumes. Of a complete backup, every volume is complete;
/// its last watch event may still be on the way.
fn is_over(seen: &Observed, velero: &Backup) -> bool {
    let pending = || seen.operations.iter().any(|volume| !volume.is_over());
    velero.stage() == Stage::Finished && !(velero.phase() == "Completed" && pending())
}

/// Whether a claim was there when the backup started. One that belongs to a pod goes with the pod, like an emptyDir.
fn counts(claim: &Claim, start: Timestamp) -> bool {
    let of_pod = claim.metadata.owner_references.iter().flatten().any(|owner| owner.kind == "Pod");
    !of_pod && claim.metadata.creation_timestamp.as_ref().is_none_or(|created| created.0 <= start)
}

/// What became of the data of each claim, by name.
fn of_claims(seen: &Observed, velero: &Backup, claims: &[&Claim]) -> Vec<ClaimStatus> {
    let operations = &seen.operations;
    let readable = is_readable(velero);
    let (mut statuses, mut open) = (Vec::new(), Vec::new());
    for claim in claims {
        let name = claim.metadata.name.as_deref().unwrap_or_default();
        let own: Vec<&Operation> =
            operations.iter().filter(|volume| volume.claim_uid == claim.metadata.uid).collect();
        let done = if readable { by_operations(name, &own) } else { Some(backup_failed(name, velero)) };
        match done.or_else(|| left_out::on_purpose(velero, claim)) {
            Some(status) => statuses.push(status),
            None => open.push(*claim),
        }
    }
    statuses.extend(without_operation(seen, velero, &open));
    statuses.extend(of_deleted_claims(operations, claims).into_iter().filter(|_| readable));
    statuses.sort_by(|one, other| one.name.cmp(&other.name));
    statuses
}

/// Claims for which Velero made neither a PodVolumeBackup nor a DataUpload: they may have snapshots. If nacre chose which
/// claims get one, no other has any.
fn without_operation(seen: &Observed, velero: &Backup, open: &[&Claim]) -> Vec<ClaimStatus> {
    let made = snapshots(velero);
    let (chosen, others): (Vec<&Claim>, Vec<&Claim>) =
        open.iter().partition(|claim| not_saved::gets_snapshot(seen, velero, claim));
    if chosen.is_empty() {
        return with_snapshots(seen, velero, &others, made);
    }
    let mut statuses = with_snapshots(seen, velero, &chosen, made);
    statuses.extend(with_snapshots(seen, velero, &others, 0));
    statuses
}

/// Claims that share so many snapshots. Velero only counts them, so they count if there is one for each claim.
fn with_snapshots(seen: &Observed, velero: &Backup, open: &[&Claim], snapshots: i64) -> Vec<ClaimStatus> {
    let for_all = !open.is_empty() && usize::try_from(snapshots).is_ok_and(|made| made >= open.len());
    let own_storage = seen.spec().backup_spec.storage_location.is_some();
    let name = |claim: &Claim| claim.metadata.name.clone().unwrap_or_default();
    if for_all && !own_storage {
        let message = "as a snapshot in the cluster, not in the backup storage";
        let saved = |claim: &&Claim| status(name(claim), ClaimState::Saved, Some(message.to_owned()));
        return open.iter().map(saved).collect();
    }
    if snapshots == 0
        && let Some(field) = left_out::switched_off(seen, velero)
    {
        let message = format!("the backup was made with {field}: false");
        let left_out = |claim: &&Claim| status(name(claim), ClaimState::LeftOut, Some(message.clone()));
        return open.iter().map(left_out).collect();
    }
    let cause = |claim: &Claim| match snapshots {
        _ if for_all => Cause::SnapshotOnly,
        0 => not_saved::cause(seen, velero, claim),
        made => Cause::SomeSnapshots(made, open.len()),
    };
    let lost = |claim: &&Claim| {
        let message = cause(claim).to_string();
        status(name(claim), ClaimState::NotSaved, Some(message))
    };
    open.iter().map(lost).collect()
}

/// How many snapshots Velero made that stay where they are.
fn snapshots(velero: &Backup) -> i64 {
    let Some(status) = velero.status.as_ref().filter(|_| velero.spec.snapshot_move_data != Some(true)) else {
        return 0;
    };
    let made = [status.volume_snapshots_completed, status.csi_volume_snapshots_completed];
    made.into_iter().flatten().sum()
}

/// Volumes of claims that are gone by now, or came after the start.
fn of_deleted_claims(operations: &[Operation], claims: &[&Claim]) -> Vec<ClaimStatus> {
    let known = |uid: &str| claims.iter().any(|claim| claim.metadata.uid.as_deref() == Some(uid));
    let mut names: Vec<&str> = operations
        .iter()
        .filter(|volume| volume.claim_uid.as_deref().is_some_and(|uid| !known(uid)))
        .filter_map(|volume| volume.claim.as_deref())
        .collect();
    names.sort_unstable();
    names.dedup();
    let of = |name: &&str| by_operations(name, &of_name(operations, name));
    names.iter().filter_map(of).collect()
}

/// How far the volume of each claim is.
fn so_far(operations: &[Operation]) -> Vec<ClaimStatus> {
    let of = |volume: &Operation| {
        let state = if volume.is_completed() { ClaimState::Saved } else { ClaimState::Waiting };
        let (bytes, total_bytes) = sizes(volume);
        Some(ClaimStatus { bytes, total_bytes, ..status(volume.claim.clone()?, state, None) })
    };
    let mut claims: Vec<ClaimStatus> = operations.iter().filter_map(of).collect();
    claims.sort_by(|one, other| one.name.cmp(&other.name));
    claims
}

/// Bytes done and in all, as far as Velero knows.
fn sizes(volume: &Operation) -> (Option<i64>, Option<i64>) {
    let known = |bytes: i64| (bytes > 0).then_some(bytes);
    (known(volume.done), known(volume.total))
}

/// What Velero did about the volume of one claim; none if it did nothing.
fn by_operations(name: &str, volumes: &[&Operation]) -> Option<ClaimStatus> {
    let volume = volumes.iter().find(|volume| volume.is_completed()).or_else(|| volumes.last())?;
    let reported = |word: &str| match &volume.message {
        Some(message) if message.starts_with(BY_NACRE) => message.clone(),
        Some(message) => format!("Velero {word}: {message}"),
        None => format!("Velero {word}"),
    };
    let (state, message) = match volume.phase.as_str() {
        "Completed" => (ClaimState::Saved, None),
        "Canceled" => (ClaimState::Cancelled, Some(reported("cancelled it"))),
        "Failed" => (ClaimState::Failed, Some(reported("could not save it"))),
        _ => (ClaimState::Failed, Some("it was not saved when Velero ended the backup".to_owned())),
    };
    let (bytes, total_bytes) = sizes(volume);
    Some(ClaimStatus {
        bytes,
        total_bytes,
        new_bytes: volume.new_bytes.filter(|bytes| *bytes > 0),
        ..status(name.to_owned(), state, message.as_deref().map(not_saved::and_look_at_the_log))
    })
}

fn backup_failed(name: &str, velero: &Backup) -> ClaimStatus {
    let message = format!("Velero ended the backup as {}, so nothing of it can be restored", velero.phase());
    status(name.to_owned(), ClaimState::Failed, Some(not_saved::and_look_at_the_log(&message)))
}

pub(super) const fn status(name: String, state: ClaimState, message: Option<String>) -> ClaimStatus {
    ClaimStatus { name, state, bytes: None, total_bytes: None, new_bytes: None, message }
}

/// The condition `DataProtected`, and the claims it is about.
struct DataProtected {
    status: Status,
    reason: &'static str,
    message: String,
    claims: Vec<ClaimStatus>,
}

impl DataProtected {
    /// While the backup is not over: how far its volumes are.
    fn undecided(claims: Vec<ClaimStatus>) -> Self {
        let (message, claims) = match VolumeBytes::of(&claims) {
            Some(bytes) => (format!("{STILL_RUNNING}: {} is saved", bytes.sentence()), claims),
            None => (STILL_RUNNING.to_owned(), Vec::new()),
        };
        Self { status: Status::Unknown, reason: condition::STILL_RUNNING, message, claims }
    }

    fn of(claims: Vec<ClaimStatus>) -> Self {
        if claims.is_empty() {
            let message = "the namespace had no claims when the backup started".to_owned();
            return Self { status: Status::True, reason: condition::NO_CLAIMS, message, claims };
        }
        let lost: Vec<&ClaimStatus> = claims.iter().filter(|claim| is_lost(claim)).collect();
        if lost.is_empty() {
            let message = saved(&claims);
            return Self { status: Status::True, reason: condition::ALL_CLAIMS_SAVED, message, claims };
        }
        let message = not_saved::message(&lost);
        Self { status: Status::False, reason: condition::CLAIMS_NOT_SAVED, message, claims }
    }
}

const fn is_lost(claim: &ClaimStatus) -> bool {
    !matches!(claim.state, ClaimState::Saved | ClaimState::LeftOut)
}

fn saved(claims: &[ClaimStatus]) -> String {
    let of = |state: ClaimState| -> Vec<&str> {
        claims.iter().filter(|claim| claim.state == state).map(|claim| claim.name.as_str()).collect()
    };
    let (saved, left_out) = (of(ClaimState::Saved), of(ClaimState::LeftOut));
    let named = |names: &[&str], what: &str| format!("volume data of {} {what}", not_saved::named(names));
    match (saved.is_empty(), left_out.is_empty()) {
        (false, true) => named(&saved, "is in the backup"),
        (false, false) => {
            let left_out = not_saved::named(&left_out);
            format!("{}; that of {left_out} was left out on purpose", named(&saved, "is in the backup"))
        }
        (true, _) => named(&left_out, "was left out on purpose"),
    }
}
