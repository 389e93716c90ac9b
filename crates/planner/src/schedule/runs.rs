//! The runs of a schedule, as they were observed.
//!
//! A NonAdminBackup is a run if its label names the schedule. An admission policy keeps tenants from writing that label;
//! where that policy is not installed, whoever writes it has an own backup counted, and deleted with its data when the
//! schedule does not keep it. Nothing outside of the namespace is ever reached by it.

use std::sync::Arc;

use api::velero::Backup;
use api::{NonAdminBackup, Phase, condition};
use jiff::Timestamp;

use super::retention::{Finished, Quality};
use crate::last_good::{NotGood, Storage, as_seen_by_controller, ended, why_not_good};
use crate::state::State;
use crate::{HealedBy, backup, healed_by};

/// One run.
#[derive(Clone, Debug)]
pub struct Run {
    /// Its request.
    pub backup: Arc<NonAdminBackup>,
    /// Its Velero Backup, if there is one and it is the namespace's own.
    pub velero: Option<Arc<Backup>>,
    /// Whether Velero can read it now.
    pub storage: Storage,
    /// Whether a restore from it is not finished.
    pub in_use: bool,
}

/// How far a run has got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// It is finished, lost or being deleted.
    Over,
    /// Velero has it, or will in a moment.
    Running,
    /// It waits for something, and starts by itself.
    Waiting(String),
    /// It is refused until somebody changes something. It never started.
    Refused(String),
}

/// Gathers the runs of this schedule.
pub(super) fn gather(view: &State, namespace: &str, schedule: &str) -> Vec<Run> {
    view.runs_of(namespace, schedule).into_iter().map(|backup| run(view, backup)).collect()
}

/// Gathers the runs of the schedule with this value of the label.
pub(super) fn gather_labelled(view: &State, namespace: &str, label: &str) -> Vec<Run> {
    view.runs_labelled(namespace, label).into_iter().map(|backup| run(view, backup)).collect()
}

/// What is known of one run.
pub(super) fn run(view: &State, backup: Arc<NonAdminBackup>) -> Run {
    let meta = &backup.metadata;
    let named = (meta.namespace.as_deref().unwrap_or_default(), meta.name.as_deref().unwrap_or_default());
    let restores = view.restores_from(named.0, named.1);
    Run {
        velero: backup::velero_of(view, &backup),
        storage: as_seen_by_controller(view, &backup),
        in_use: restores.iter().any(|restore| !is_over(restore)),
        backup,
    }
}

fn is_over(restore: &api::NonAdminRestore) -> bool {
    let status = restore.status.as_ref();
    let velero = status.and_then(|status| status.velero_restore.as_ref()?.status.as_ref());
    velero.is_some_and(|velero| velero.completion_timestamp.is_some())
        || status.is_some_and(|status| {
            let lost = condition::get(&status.conditions, condition::ACCEPTED);
            lost.is_some_and(|found| found.reason == condition::VELERO_RESTORE_NOT_FOUND)
        })
}

impl Run {
    /// The name of its NonAdminBackup.
    pub fn name(&self) -> &str {
        self.backup.metadata.name.as_deref().unwrap_or_default()
    }

    /// The time it is a backup of: when Velero began.
    pub(super) fn time(&self) -> Timestamp {
        let status = self.backup.status.as_ref();
        let began = status
            .and_then(|status| status.velero_backup.as_ref()?.status.as_ref()?.start_timestamp.as_ref());
        let time = began.or(self.backup.metadata.creation_timestamp.as_ref());
        time.map_or(Timestamp::MIN, |time| time.0)
    }

    /// Whether it is being deleted.
    pub(super) fn is_deleting(&self) -> bool {
        self.backup.metadata.deletion_timestamp.is_some() || self.backup.spec.delete_backup == Some(true)
    }

    pub(super) fn progress(&self) -> Progress {
        if self.is_deleting() {
            return Progress::Over;
        }
        let status = self.backup.status.as_ref();
        match status.and_then(|status| status.phase) {
            Some(Phase::Deleting) => Progress::Over,
            Some(Phase::Created) if ended(&self.backup).is_some() => Progress::Over,
            None | Some(Phase::New | Phase::Created) => Progress::Running,
            Some(Phase::BackingOff) => {
                let conditions = status.map(|status| status.conditions.as_slice()).unwrap_or_default();
                let Some(accepted) = condition::get(conditions, condition::ACCEPTED) else {
                    return Progress::Running;
                };
                match healed_by(accepted) {
                    None => Progress::Over,
                    Some(HealedBy::Spec) => Progress::Refused(accepted.message.clone()),
                    Some(_) => Progress::Waiting(accepted.message.clone()),
                }
            }
        }
    }

    /// What it is for retention; none while it is not finished, or once it is being deleted.
    pub(super) fn finished(&self) -> Option<Finished> {
        self.judged(&self.storage)
    }

    /// The same if its storage could be read.
    pub(super) fn finished_if_readable(&self) -> Option<Finished> {
        self.judged(&Storage::Unknown)
    }

    fn judged(&self, storage: &Storage) -> Option<Finished> {
        // A backup that expires is as good as before until Velero deletes it: moving its expiration keeps it.
        let quality = match why_not_good(&self.backup, storage, Timestamp::MIN) {
            // The template leaves something out on purpose: it holds what the schedule is for.
            None | Some(NotGood::Filtered(_)) => Quality::Good,
            Some(NotGood::Deleting | NotGood::Unfinished) => return None,
            Some(NotGood::StorageUnavailable(_)) => Quality::Unknown,
            // Velero finds it again when the storage is back.
            Some(NotGood::Gone) if matches!(storage, Storage::Unavailable(_)) => Quality::Unknown,
            Some(NotGood::PartiallyFailed | NotGood::NotProtected(_)) => Quality::Partial,
            Some(NotGood::Gone | NotGood::Failed(_) | NotGood::Expired | NotGood::Empty) => Quality::Failed,
        };
        let quality = if self.in_use && quality != Quality::Good { Quality::Unknown } else { quality };
        let status = self.backup.status.as_ref();
        let velero = status.and_then(|status| status.velero_backup.as_ref()?.status.as_ref());
        let expires = velero.and_then(|velero| velero.expiration.as_ref()).map(|time| time.0);
        Some(Finished { name: self.name().to_owned(), time: self.time(), quality, expires })
    }
}
