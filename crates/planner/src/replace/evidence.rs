//! What a backup or a restore proves about data.

use api::velero::{BackupSpec, BackupStatus};
use api::{ClaimState, DataMoverCounts, NonAdminBackup, NonAdminRestore, Phase, PodVolumeCounts, condition};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::objects::{Claim, Workload, WorkloadKind};
use super::record::ClaimRef;
use crate::queue::{Stage, stage};
use crate::{HealedBy, healed_by};

/// A backup must be kept at least this much longer: Velero gives the volumes of a pod four hours.
const MUST_LAST: SignedDuration = SignedDuration::from_hours(4);

/// Where a request stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It is not over.
    Running(String),
    /// nacre or Velero will not do it.
    Refused(String),
    /// Velero is done with it, with this phase.
    Over(String),
}

fn standing(phase: Option<Phase>, accepted: Option<&Condition>, velero: Option<(&str, bool)>) -> Standing {
    if phase == Some(Phase::BackingOff) {
        let message = accepted.map(|accepted| accepted.message.clone()).unwrap_or_default();
        return match accepted.and_then(healed_by) {
            Some(healed_by) if HealedBy::is_waiting(healed_by) => {
                Standing::Running(format!("waiting: {message}"))
            }
            _ => Standing::Refused(message),
        };
    }
    match velero {
        Some((phase, completed)) if stage(phase, completed) == Stage::Finished => {
            Standing::Over(phase.to_owned())
        }
        Some((phase, _)) if !phase.is_empty() => Standing::Running(phase.to_owned()),
        _ => Standing::Running("in Velero's queue".to_owned()),
    }
}

pub(super) fn of_backup(backup: &NonAdminBackup) -> Standing {
    let Some(status) = &backup.status else {
        return Standing::Running("nacre has not processed it yet".to_owned());
    };
    let velero = velero_status(backup);
    standing(
        status.phase,
        condition::get(&status.conditions, condition::ACCEPTED),
        velero.map(|velero| {
            (velero.phase.as_deref().unwrap_or_default(), velero.completion_timestamp.is_some())
        }),
    )
}

pub(super) fn of_restore(restore: &NonAdminRestore) -> Standing {
    let Some(status) = &restore.status else {
        return Standing::Running("nacre has not processed it yet".to_owned());
    };
    let velero = status.velero_restore.as_ref().and_then(|velero| velero.status.as_ref());
    standing(
        status.phase,
        condition::get(&status.conditions, condition::ACCEPTED),
        velero.map(|velero| {
            (velero.phase.as_deref().unwrap_or_default(), velero.completion_timestamp.is_some())
        }),
    )
}

pub(super) fn velero_status(backup: &NonAdminBackup) -> Option<&BackupStatus> {
    backup.status.as_ref()?.velero_backup.as_ref()?.status.as_ref()
}

/// How long nacre gets to report on the volumes of a request that is over; less where it has never reported.
const REPORT_GETS: SignedDuration = SignedDuration::from_mins(15);
const FIRST_REPORT_GETS: SignedDuration = SignedDuration::from_mins(1);

/// Whether nacre may still report on the volumes of a request that ended at this time.
fn report_is_due(report: Option<&Condition>, ended: Option<&Time>, now: Timestamp) -> bool {
    let gets = match report.map(|report| report.status.as_str()) {
        Some("True" | "False") => return false,
        Some(_) => REPORT_GETS,
        None => FIRST_REPORT_GETS,
    };
    ended.is_some_and(|ended| now < ended.0 + gets)
}

/// Whether nacre may still report on the claims of a backup that is over.
pub(super) fn backup_report_is_due(backup: &NonAdminBackup, now: Timestamp) -> bool {
    let conditions = backup.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let ended = velero_status(backup).and_then(|velero| velero.completion_timestamp.as_ref());
    report_is_due(condition::get(conditions, condition::DATA_PROTECTED), ended, now)
}

/// Why a backup cannot be relied on for these claims; none if it can.
pub(super) fn cannot_rely_on(
    backup: &NonAdminBackup,
    claims: &[ClaimRef],
    live: &[Claim],
    workloads: &[Workload],
    now: Timestamp,
) -> Option<String> {
    let name = backup.metadata.name.as_deref().unwrap_or_default();
    if backup.metadata.deletion_timestamp.is_some() || backup.spec.delete_backup == Some(true) {
        return Some(format!("backup {name} is being deleted"));
    }
    match of_backup(backup) {
        Standing::Over(phase) if phase == "Completed" => {}
        Standing::Over(phase) => return Some(format!("backup {name} ended as {phase}")),
        Standing::Refused(why) => return Some(format!("backup {name} was refused: {why}")),
        Standing::Running(how) => return Some(format!("backup {name} is not over: {how}")),
    }
    let expires = velero_status(backup).and_then(|velero| velero.expiration.as_ref());
    if expires.is_some_and(|expires| expires.0 < now + MUST_LAST) {
        return Some(format!(
            "backup {name} expires within four hours, and could be gone before the restore is over"
        ));
    }
    claims.iter().find_map(|claim| without_data(backup, claim, live, workloads))
}

/// Why the data of a claim is not known to be in a backup; none if it is.
fn without_data(
    backup: &NonAdminBackup,
    claim: &ClaimRef,
    live: &[Claim],
    workloads: &[Workload],
) -> Option<String> {
    let name = backup.metadata.name.as_deref().unwrap_or_default();
    let status = backup.status.clone().unwrap_or_default();
    let missing =
        |why: &str| Some(format!("the data of claim {} is not in backup {name}: {why}", claim.name));
    if let Some(listed) = status.claims.iter().find(|listed| listed.name == claim.name) {
        return match listed.state {
            ClaimState::Saved => None,
            _ => missing(listed.message.as_deref().unwrap_or("it was not saved")),
        };
    }
    if let Some(protected) = condition::get(&status.conditions, condition::DATA_PROTECTED) {
        let older = live
            .iter()
            .find(|one| one.uid == claim.uid)
            .zip(velero_status(backup).and_then(|velero| velero.start_timestamp.as_ref()))
            .is_none_or(|(claim, started)| claim.created.is_none_or(|created| created < started.0));
        // A list that is shorter than it could be says that the claim was not there.
        let listed_all = !status.claims.is_empty() && status.claims_not_listed.is_none();
        return match (protected.status.as_str(), protected.reason.as_str()) {
            ("True", condition::ALL_CLAIMS_SAVED) if older && !listed_all => None,
            ("True", _) => missing("the claim is newer than the backup"),
            (_, _) => missing(&protected.message),
        };
    }
    let files = status.file_system_pod_volume_backups.unwrap_or_default();
    let moved = status.data_mover_data_uploads.unwrap_or_default();
    if counted(&files, &moved, claim, workloads) {
        None
    } else {
        missing("nacre does not report that it was saved")
    }
}

/// Without a report by nacre: every volume of every running pod was saved, so the claim was too.
fn counted(
    files: &PodVolumeCounts,
    moved: &DataMoverCounts,
    claim: &ClaimRef,
    workloads: &[Workload],
) -> bool {
    let pods = || workloads.iter().filter(|one| one.kind == WorkloadKind::Pod && !one.has_ended);
    let volumes: usize = pods().map(|pod| pod.volumes).sum();
    let mounted = pods().any(|pod| pod.uses(&claim.name));
    let all = files.completed == files.total && moved.completed == moved.total;
    let saved = usize::try_from(files.completed + moved.completed).unwrap_or(usize::MAX);
    all && mounted && saved >= volumes
}

/// What a restore that is over proves about the data of claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Restored {
    /// It came back.
    Yes,
    /// It did not, and why.
    No(String),
    /// nacre has not said yet.
    NotYet,
}

pub(super) fn restored(restore: &NonAdminRestore, claims: &[ClaimRef], now: Timestamp) -> Restored {
    let status = restore.status.clone().unwrap_or_default();
    let velero = status.velero_restore.as_ref().and_then(|velero| velero.status.as_ref());
    let report = condition::get(&status.conditions, condition::DATA_RESTORED);
    let due = report_is_due(report, velero.and_then(|velero| velero.completion_timestamp.as_ref()), now);
    let listed = |name: &str| status.claims.iter().find(|listed| listed.name == name);
    for claim in claims {
        if let Some(listed) = listed(&claim.name)
            && !matches!(listed.state, ClaimState::Restored | ClaimState::Waiting)
        {
            let why = listed.message.clone().unwrap_or_else(|| format!("{:?}", listed.state));
            return Restored::No(format!("the data of claim {} did not come back: {why}", claim.name));
        }
    }
    if !claims.is_empty()
        && claims
            .iter()
            .all(|claim| listed(&claim.name).is_some_and(|listed| listed.state == ClaimState::Restored))
    {
        return Restored::Yes;
    }
    match report {
        Some(found) if found.status == "True" && found.reason == condition::NO_VOLUMES => {
            Restored::No("the restore brought back no volume data".to_owned())
        }
        Some(found) if found.status == "True" => Restored::Yes,
        // Of other claims: those of the replacement are listed, and came back.
        Some(found) if found.status == "False" => Restored::No(found.message.clone()),
        _ => match counted_restores(restore, claims) {
            Restored::No(_) if due => Restored::NotYet,
            counted => counted,
        },
    }
}

/// Without a report by nacre: nothing failed, and there were as many volumes as claims.
fn counted_restores(restore: &NonAdminRestore, claims: &[ClaimRef]) -> Restored {
    let status = restore.status.clone().unwrap_or_default();
    let files = status.file_system_pod_volume_restores.unwrap_or_default();
    let moved = status.data_mover_data_downloads.unwrap_or_default();
    let done = usize::try_from(files.completed + moved.completed).unwrap_or(usize::MAX);
    if files.completed == files.total && moved.completed == moved.total && done >= claims.len() {
        Restored::Yes
    } else {
        Restored::No(format!("{done} volumes came back, and {} claims were replaced", claims.len()))
    }
}

/// Whether a backup holds the data of every claim that was there when it began; none if that is not known.
pub fn all_saved(backup: &NonAdminBackup) -> Option<bool> {
    let status = backup.status.as_ref()?;
    if let Some(protected) = condition::get(&status.conditions, condition::DATA_PROTECTED) {
        return match (protected.status.as_str(), protected.reason.as_str()) {
            ("True", condition::ALL_CLAIMS_SAVED) => Some(true),
            ("True" | "False", _) => Some(false),
            _ => None,
        };
    }
    // Controllers that do not report on claims count volumes.
    let files = status.file_system_pod_volume_backups.unwrap_or_default();
    let moved = status.data_mover_data_uploads.unwrap_or_default();
    let all = files.completed == files.total && moved.completed == moved.total;
    (all && files.total + moved.total > 0).then_some(true)
}

/// The spec of a safety backup: all of the namespace, with volumes saved in the way of the other backup.
pub fn safety_spec(other: &BackupSpec) -> BackupSpec {
    BackupSpec {
        storage_location: other.storage_location.clone(),
        hooks: other.hooks.clone(),
        snapshot_volumes: other.snapshot_volumes,
        volume_snapshot_locations: other.volume_snapshot_locations.clone(),
        default_volumes_to_restic: other.default_volumes_to_restic,
        default_volumes_to_fs_backup: other.default_volumes_to_fs_backup,
        resource_policy: other.resource_policy.clone(),
        snapshot_move_data: other.snapshot_move_data,
        datamover: other.datamover.clone(),
        uploader_config: other.uploader_config.clone(),
        ..BackupSpec::default()
    }
}
