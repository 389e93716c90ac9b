//! Which backup of a namespace is its last good one: the newest that could bring the whole namespace back now.
//!
//! There is one rule for everything that shows or uses "the last good backup": `kubectl nacre status`,
//! `kubectl nacre restore create` without `--from-backup`, and the metric. A good backup
//!
//! 1. is complete: Velero's phase is `Completed`,
//! 2. can be restored now: it is neither expired nor being deleted, and its storage can be used,
//! 3. holds something,
//! 4. has the data of every claim that was not left out on purpose (`volume_data`),
//! 5. covers the namespace: no filter leaves anything out (`coverage`).

mod coverage;
mod storage;
#[cfg(test)]
mod tests;
mod verdict;

use std::fmt;

use api::{NonAdminBackup, Phase, condition, velero::BackupStatus};
use jiff::Timestamp;

pub use coverage::filters;
pub use storage::{Storage, StorageProblem, as_seen_by_caller, as_seen_by_controller};
pub(crate) use storage::{stored_in, tenants_location};
pub use verdict::{ClaimSafety, Problem, Seen, claim_safety, problems};

use crate::queue::{Stage, stage};

/// Why a backup is not a good one. Where there are several reasons, the first in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotGood {
    /// It is being deleted, or its data is.
    Deleting,
    /// Velero has not finished it, or was never given it.
    Unfinished,
    /// Velero had it, and no longer has it.
    Gone,
    /// Velero could not make it, and ended it in this phase.
    Failed(String),
    /// Velero could back up only a part of what was asked for.
    PartiallyFailed,
    /// It was kept as long as it was to be kept; Velero deletes it at any moment.
    Expired,
    /// There is nothing in it.
    Empty,
    /// It is stored where Velero cannot read now.
    StorageUnavailable(StorageProblem),
    /// The data of a claim is not in it; the message of the condition `DataProtected`.
    NotProtected(String),
    /// It was made with these fields, which leave out a part of the namespace.
    Filtered(Vec<&'static str>),
}

impl NotGood {
    /// One word, for programs.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Deleting => "Deleting",
            Self::Unfinished => "Unfinished",
            Self::Gone => "Gone",
            Self::Failed(_) => "Failed",
            Self::PartiallyFailed => "PartiallyFailed",
            Self::Expired => "Expired",
            Self::Empty => "Empty",
            Self::StorageUnavailable(_) => "StorageUnavailable",
            Self::Filtered(_) => "Filtered",
            Self::NotProtected(_) => "NotProtected",
        }
    }

    /// Whether somebody may have meant this backup when they asked for the last one: it ended as asked for, or in part.
    pub const fn could_be_meant(&self) -> bool {
        matches!(
            self,
            Self::PartiallyFailed
                | Self::Empty
                | Self::StorageUnavailable(_)
                | Self::Filtered(_)
                | Self::NotProtected(_)
        )
    }

    /// Whether something went wrong. A backup that was asked to hold only a part, and one that has expired, are as they
    /// were meant to be.
    pub const fn needs_attention(&self) -> bool {
        !matches!(self, Self::Filtered(_) | Self::Expired)
    }
}

/// Fits after "because".
impl fmt::Display for NotGood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deleting => f.write_str("it is being deleted"),
            Self::Unfinished => f.write_str("it is not finished"),
            Self::Gone => f.write_str("Velero no longer has it"),
            Self::Failed(phase) => write!(f, "it ended as {phase}"),
            Self::PartiallyFailed => f.write_str("it ended as PartiallyFailed"),
            Self::Expired => f.write_str("it has expired"),
            Self::Empty => f.write_str("it holds 0 items"),
            Self::StorageUnavailable(problem) => problem.fmt(f),
            Self::NotProtected(message) => f.write_str(message),
            Self::Filtered(fields) => {
                write!(f, "it holds only a part of the namespace (limited by {})", fields.join(", "))
            }
        }
    }
}

/// Why this backup is not a good one; none if it is.
pub fn why_not_good(backup: &NonAdminBackup, storage: &Storage, now: Timestamp) -> Option<NotGood> {
    not_complete(backup)
        .or_else(|| expired(backup, now))
        .or_else(|| empty(backup))
        .or_else(|| storage.problem().map(NotGood::StorageUnavailable))
        .or_else(|| volume_data(backup))
        .or_else(|| filtered(backup))
}

/// Velero omits a count of zero, so a count that is missing is zero.
pub fn is_empty(velero: &BackupStatus) -> bool {
    velero.progress.as_ref().and_then(|progress| progress.items_backed_up).unwrap_or_default() <= 0
}

fn velero(backup: &NonAdminBackup) -> Option<&BackupStatus> {
    backup.status.as_ref()?.velero_backup.as_ref()?.status.as_ref()
}

fn not_complete(backup: &NonAdminBackup) -> Option<NotGood> {
    let asked = backup.metadata.deletion_timestamp.is_some() || backup.spec.delete_backup == Some(true);
    let status = backup.status.as_ref();
    if asked || status.is_some_and(|status| status.phase == Some(Phase::Deleting)) {
        return Some(NotGood::Deleting);
    }
    // What Velero last reported is still in the status of a backup that Velero has lost.
    if status.and_then(|status| status.phase) != Some(Phase::Created) {
        return Some(if is_gone(backup) { NotGood::Gone } else { NotGood::Unfinished });
    }
    let phase = velero(backup).and_then(|velero| velero.phase.as_deref()).unwrap_or_default();
    match (phase, ended(backup)) {
        ("Completed", _) => None,
        ("PartiallyFailed", _) => Some(NotGood::PartiallyFailed),
        ("Deleting", _) => Some(NotGood::Deleting),
        (_, Some(_)) => Some(NotGood::Failed(phase.to_owned())),
        (_, None) => Some(NotGood::Unfinished),
    }
}

/// Whether its status says that Velero had it, and no longer has it.
pub(crate) fn is_gone(backup: &NonAdminBackup) -> bool {
    let status = backup.status.as_ref().filter(|status| status.phase != Some(Phase::Created));
    let accepted = status.and_then(|status| condition::get(&status.conditions, condition::ACCEPTED));
    accepted.is_some_and(|accepted| accepted.reason == condition::VELERO_BACKUP_NOT_FOUND)
}

fn expired(backup: &NonAdminBackup, now: Timestamp) -> Option<NotGood> {
    let expiration = velero(backup)?.expiration.as_ref()?;
    (expiration.0 <= now).then_some(NotGood::Expired)
}

fn empty(backup: &NonAdminBackup) -> Option<NotGood> {
    velero(backup).is_none_or(is_empty).then_some(NotGood::Empty)
}

fn filtered(backup: &NonAdminBackup) -> Option<NotGood> {
    let fields = filters(backup);
    (!fields.is_empty()).then_some(NotGood::Filtered(fields))
}

/// Whether the data of its volumes is missing: what the condition `DataProtected` reports. Backups of older versions,
/// and imported ones, do not have it: they count as good if all else is well.
fn volume_data(backup: &NonAdminBackup) -> Option<NotGood> {
    let conditions = backup.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let found = condition::get(conditions, condition::DATA_PROTECTED)?;
    (found.status != "True").then(|| NotGood::NotProtected(found.message.clone()))
}

/// When Velero ended a backup; none if it has not.
pub fn ended(backup: &NonAdminBackup) -> Option<Timestamp> {
    let velero = velero(backup)?;
    let completed = velero.completion_timestamp.as_ref();
    let over = stage(velero.phase.as_deref().unwrap_or_default(), completed.is_some()) == Stage::Finished;
    // Velero does not write down when it refused a backup.
    let time = completed.or(backup.metadata.creation_timestamp.as_ref());
    time.filter(|_| over).map(|time| time.0)
}

/// The last good backup of a namespace, and what came after it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LastGood<'a> {
    /// The newest good one.
    pub good: Option<&'a NonAdminBackup>,
    /// Those that ended after it, or all that ended if there is none, and why they are not good. The newest comes first.
    pub not_counted: Vec<(&'a NonAdminBackup, NotGood)>,
}

/// Finds the last good backup among those of one namespace.
pub fn find(
    backups: &[NonAdminBackup],
    storage: impl Fn(&NonAdminBackup) -> Storage,
    now: Timestamp,
) -> LastGood<'_> {
    // Velero's times are whole seconds: of two that ended in the same one, the one created later is newer.
    let order = |backup: &NonAdminBackup| {
        let created = backup.metadata.creation_timestamp.as_ref().map(|created| created.0);
        Some((ended(backup)?, created))
    };
    let mut over: Vec<_> = backups.iter().filter_map(|backup| Some((order(backup)?, backup))).collect();
    over.sort_by_key(|(order, backup)| std::cmp::Reverse((*order, &backup.metadata.name)));
    let mut found = LastGood::default();
    for (order_of_good, backup) in over {
        match why_not_good(backup, &storage(backup), now) {
            None => {
                found.good = Some(backup);
                found.not_counted.retain(|(other, _)| order(other) > Some(order_of_good));
                break;
            }
            // Whoever deleted it does not miss it.
            Some(NotGood::Deleting | NotGood::Gone | NotGood::Unfinished) => {}
            Some(why) => found.not_counted.push((backup, why)),
        }
    }
    found
}
