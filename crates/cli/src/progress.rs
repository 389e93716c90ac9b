//! The progress of a backup or a restore, as text. Both share the same states.

use api::{ClaimStatus, NonAdminBackup, NonAdminRestore, Phase, condition};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::core::ObjectMeta;
use planner::{
    healed_by, last_good,
    queue::{Stage, stage},
    turns::Estimate,
    volumes::VolumeBytes,
};

use crate::{output::Outcome, style, table::Cell};

mod sentence;

/// A backup or a restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Backup,
    Restore,
}

impl What {
    /// As it stands on the command line and in sentences.
    pub(crate) const fn noun(self) -> &'static str {
        match self {
            Self::Backup => "backup",
            Self::Restore => "restore",
        }
    }
}

/// What is known about a backup or restore.
#[derive(Clone, Debug)]
pub(crate) struct RequestProgress<'a> {
    pub(crate) what: What,
    pub(crate) meta: &'a ObjectMeta,
    pub(crate) phase: Option<Phase>,
    pub(crate) conditions: &'a [Condition],
    /// Its position in Velero's queue: 0 when finished, 1 when running or next.
    pub(crate) position: Option<i64>,
    /// When it is expected to start, while it waits for its turn. OADP's CRDs have no field for it.
    pub(crate) starts: Option<Estimate>,
    /// The time it is looked at.
    pub(crate) now: Timestamp,
    /// What became of the data of its claims so far.
    pub(crate) claims: &'a [ClaimStatus],
    /// It is being deleted, with or without its data.
    pub(crate) is_deleting: bool,
    pub(crate) velero: Velero<'a>,
}

/// What Velero says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Velero<'a> {
    pub(crate) phase: &'a str,
    pub(crate) done: Option<i64>,
    pub(crate) total: Option<i64>,
    /// Nothing was backed up or restored.
    pub(crate) empty: bool,
    pub(crate) warnings: i64,
    pub(crate) errors: i64,
    pub(crate) failure: Option<&'a str>,
    pub(crate) validation_errors: &'a [String],
    pub(crate) started: Option<Timestamp>,
    pub(crate) completed: Option<Timestamp>,
    pub(crate) expires: Option<Timestamp>,
}

/// Its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State<'a> {
    /// nacre has not processed it yet.
    New,
    /// Refused, and why: the request or the policy has to change.
    Refused(&'a str),
    /// It waits for another object, a limit or a retry, and starts by itself.
    Waiting(&'a str),
    /// The Velero object is gone.
    Gone(&'a str),
    /// It waits for its turn, with so many ahead.
    Turn(i64),
    /// An administrator holds it back.
    Held(&'a str),
    /// Velero has it, with so many ahead.
    Queued(i64),
    /// Velero is at work.
    Running,
    /// Velero waits for volume data, or finalizes.
    Finishing,
    /// It is over.
    Finished(End),
    /// It is being deleted.
    Deleting(&'a str),
}

/// How Velero ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Completed,
    /// Completed, with nothing done: Velero calls that a success too.
    Empty,
    /// Completed, without the data of every claim: Velero calls that a success too.
    DataMissing,
    PartiallyFailed,
    Failed,
}

fn moment(time: Option<&Time>) -> Option<Timestamp> {
    time.map(|time| time.0)
}

impl<'a> From<&'a NonAdminBackup> for RequestProgress<'a> {
    fn from(backup: &'a NonAdminBackup) -> Self {
        let status = backup.status.as_ref();
        let velero_status = status.and_then(|status| status.velero_backup.as_ref()?.status.as_ref());
        let progress = velero_status.and_then(|velero_status| velero_status.progress.as_ref());
        let queue = status.and_then(|status| status.queue_info.as_ref());
        Self {
            what: What::Backup,
            meta: &backup.metadata,
            phase: status.and_then(|status| status.phase),
            conditions: status.map(|status| status.conditions.as_slice()).unwrap_or_default(),
            position: queue.map(|info| info.estimated_queue_position),
            starts: queue.and_then(Estimate::shown),
            now: Timestamp::now(),
            claims: status.map(|status| status.claims.as_slice()).unwrap_or_default(),
            is_deleting: backup.metadata.deletion_timestamp.is_some()
                || backup.spec.delete_backup == Some(true),
            velero: velero_status.map_or_else(Velero::default, |velero_status| Velero {
                phase: velero_status.phase.as_deref().unwrap_or_default(),
                done: progress.and_then(|progress| progress.items_backed_up),
                total: progress.and_then(|progress| progress.total_items),
                empty: last_good::is_empty(velero_status),
                warnings: velero_status.warnings.unwrap_or_default(),
                errors: velero_status.errors.unwrap_or_default(),
                failure: velero_status.failure_reason.as_deref(),
                validation_errors: velero_status.validation_errors.as_deref().unwrap_or_default(),
                started: moment(velero_status.start_timestamp.as_ref()),
                completed: moment(velero_status.completion_timestamp.as_ref()),
                expires: moment(velero_status.expiration.as_ref()),
            }),
        }
    }
}

impl<'a> From<&'a NonAdminRestore> for RequestProgress<'a> {
    fn from(restore: &'a NonAdminRestore) -> Self {
        let status = restore.status.as_ref();
        let velero_status = status.and_then(|status| status.velero_restore.as_ref()?.status.as_ref());
        let progress = velero_status.and_then(|velero_status| velero_status.progress.as_ref());
        let queue = status.and_then(|status| status.queue_info.as_ref());
        Self {
            what: What::Restore,
            meta: &restore.metadata,
            phase: status.and_then(|status| status.phase),
            conditions: status.map(|status| status.conditions.as_slice()).unwrap_or_default(),
            position: queue.map(|info| info.estimated_queue_position),
            starts: queue.and_then(Estimate::shown),
            now: Timestamp::now(),
            claims: status.map(|status| status.claims.as_slice()).unwrap_or_default(),
            is_deleting: restore.metadata.deletion_timestamp.is_some(),
            velero: velero_status.map_or_else(Velero::default, |velero_status| Velero {
                phase: velero_status.phase.as_deref().unwrap_or_default(),
                done: progress.and_then(|progress| progress.items_restored),
                total: progress.and_then(|progress| progress.total_items),
                // Velero omits a count of zero.
                empty: progress.and_then(|progress| progress.items_restored).unwrap_or_default() <= 0,
                warnings: velero_status.warnings.unwrap_or_default(),
                errors: velero_status.errors.unwrap_or_default(),
                failure: velero_status.failure_reason.as_deref(),
                validation_errors: velero_status.validation_errors.as_deref().unwrap_or_default(),
                started: moment(velero_status.start_timestamp.as_ref()),
                completed: moment(velero_status.completion_timestamp.as_ref()),
                expires: None,
            }),
        }
    }
}

impl<'a> RequestProgress<'a> {
    pub(crate) fn name(&self) -> &'a str {
        self.meta.name.as_deref().unwrap_or_default()
    }

    /// Its state.
    pub(crate) fn state(&self) -> State<'a> {
        if self.is_deleting || self.phase == Some(Phase::Deleting) {
            let deleting = condition::get(self.conditions, condition::DELETING);
            return State::Deleting(deleting.map_or("", |deleting| deleting.message.as_str()));
        }
        match self.phase {
            None => State::New,
            Some(Phase::New) => match self.position {
                Some(position) if condition::is_true(self.conditions, condition::ACCEPTED) => {
                    self.turn(position)
                }
                _ => State::New,
            },
            Some(Phase::BackingOff) => self.refused(),
            Some(Phase::Created | Phase::Deleting) => self.at_velero(),
        }
    }

    fn turn(&self, position: i64) -> State<'a> {
        let turn = condition::get(self.conditions, condition::WAITING_FOR_TURN);
        match turn.map(|turn| (turn.reason.as_str(), turn.message.as_str())) {
            Some((condition::HELD_BY_ADMINISTRATOR, message)) => State::Held(message),
            Some((condition::NAMESPACE_LIMIT_REACHED, message)) => State::Waiting(message),
            _ => State::Turn(position.max(1) - 1),
        }
    }

    fn refused(&self) -> State<'a> {
        let Some(accepted) = condition::get(self.conditions, condition::ACCEPTED) else {
            return State::Refused("");
        };
        match healed_by(accepted) {
            None => State::Gone(&accepted.message),
            Some(healed_by) if healed_by.is_waiting() => State::Waiting(&accepted.message),
            Some(_) => State::Refused(&accepted.message),
        }
    }

    fn at_velero(&self) -> State<'a> {
        let Velero { phase, completed, .. } = &self.velero;
        match (stage(phase, completed.is_some()), *phase) {
            (Stage::Waiting, _) => State::Queued(self.position.unwrap_or(1).max(1) - 1),
            (Stage::Running, "InProgress") => State::Running,
            (Stage::Running | Stage::Finalizing, _) => State::Finishing,
            // Velero is done, and nacre has yet to see what became of the volumes.
            (Stage::Finished, "Completed" | "PartiallyFailed") if self.is_checking_data() => State::Finishing,
            (Stage::Finished, "Completed") if self.data_missing().is_some() => {
                State::Finished(End::DataMissing)
            }
            (Stage::Finished, "Completed") if self.velero.empty => State::Finished(End::Empty),
            (Stage::Finished, "Completed") => State::Finished(End::Completed),
            (Stage::Finished, "PartiallyFailed") => State::Finished(End::PartiallyFailed),
            (Stage::Finished, "Deleting") => State::Deleting("Velero is deleting it"),
            (Stage::Finished, _) => State::Finished(End::Failed),
        }
    }

    /// The condition about the data of claims. Older versions of nacre do not set it.
    fn data(&self) -> Option<&'a Condition> {
        let type_ = match self.what {
            What::Backup => condition::DATA_PROTECTED,
            What::Restore => condition::DATA_RESTORED,
        };
        condition::get(self.conditions, type_)
    }

    /// nacre has not yet seen what became of all volumes.
    fn is_checking_data(&self) -> bool {
        self.data().is_some_and(|data| data.status == "Unknown" && data.reason == condition::STILL_RUNNING)
    }

    /// How many bytes of volume data are done, and how many there are; none if Velero does not work on them now.
    pub(crate) fn volume_bytes(&self) -> Option<VolumeBytes> {
        VolumeBytes::of(self.claims)
            .filter(|_| matches!(self.state(), State::Running | State::Finishing))
            .filter(|_| self.is_checking_data())
    }

    /// What the volumes wait for, if they wait for something that does not come by itself.
    fn waits_for_volumes(&self) -> Option<&'a str> {
        let running = self.data().filter(|data| data.reason == condition::STILL_RUNNING);
        running.map(|data| data.message.as_str()).filter(|message| message.contains(" waits: "))
    }

    /// Which data is missing, why, and what to do.
    pub(crate) fn data_missing(&self) -> Option<&'a str> {
        self.data().filter(|data| data.status == "False").map(|data| data.message.as_str())
    }

    /// One word for a table: Velero's own where Velero has a word for it.
    pub(crate) fn word(&self) -> &'a str {
        match self.state() {
            State::New => "New",
            State::Refused(_) => "Refused",
            State::Waiting(_) => "Waiting",
            State::Gone(_) => "Gone",
            State::Turn(_) | State::Queued(_) => "Queued",
            State::Held(_) => "Held",
            State::Finished(End::DataMissing) if self.what == What::Backup => "NotProtected",
            State::Finished(End::DataMissing) => "DataMissing",
            State::Running | State::Finishing | State::Finished(_) => self.velero.phase,
            State::Deleting(_) => "Deleting",
        }
    }

    /// The same, in colour.
    pub(crate) fn cell(&self) -> Cell {
        let style = match self.state() {
            State::Finished(End::Completed) => style::GOOD,
            State::Finished(End::Empty | End::PartiallyFailed) | State::Waiting(_) => style::WARNING,
            State::Finished(End::Failed | End::DataMissing) | State::Refused(_) | State::Gone(_) => {
                style::BAD
            }
            State::New
            | State::Turn(_)
            | State::Held(_)
            | State::Queued(_)
            | State::Running
            | State::Finishing => style::BUSY,
            State::Deleting(_) => style::QUIET,
        };
        Cell::painted(style, self.word())
    }

    /// Items done of all there are, if Velero has counted them.
    pub(crate) fn items(&self) -> Option<String> {
        let total = self.velero.total?;
        Some(format!("{}/{total}", self.velero.done.unwrap_or_default()))
    }

    /// How a wait for it ends; none if it goes on.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        match self.state() {
            State::Finished(End::Completed) => Some(Outcome::Good),
            State::Finished(End::Empty | End::DataMissing | End::PartiallyFailed) => Some(Outcome::Attention),
            State::Finished(End::Failed) | State::Refused(_) | State::Gone(_) | State::Deleting(_) => {
                Some(Outcome::Failed)
            }
            State::New
            | State::Waiting(_)
            | State::Turn(_)
            | State::Held(_)
            | State::Queued(_)
            | State::Running
            | State::Finishing => None,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
