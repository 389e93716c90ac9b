//! Which volume operations cannot end.

use std::time::Duration;

use api::Kind;
use api::velero::{Backup, Restore};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::operation::{Operation, PodState};
use crate::policy::VolumePolicy;
use crate::queue::{Queued, Stage};

/// How long an operation may outlive its Velero Backup or Restore: watches are not in step.
const OWNER_OVER: Duration = Duration::from_mins(1);

/// What matters of the Velero Backup or Restore an operation belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    /// When Velero started it.
    pub started: Option<Timestamp>,
    /// Velero has ended it.
    pub is_over: bool,
    /// When Velero ended it.
    pub completed: Option<Timestamp>,
    /// The request for it is being deleted.
    pub is_deleting: bool,
    /// How far its DataDownloads are: a pod that needs two volumes waits for both.
    pub downloads: Downloads,
}

impl Owner {
    /// A Velero Backup.
    pub fn backup(velero: &Backup, is_deleting: bool) -> Self {
        let status = velero.status.as_ref();
        Self {
            started: status.and_then(|status| moment(status.start_timestamp.as_ref())),
            is_over: velero.stage() == Stage::Finished,
            completed: status.and_then(|status| moment(status.completion_timestamp.as_ref())),
            is_deleting,
            downloads: Downloads::None,
        }
    }

    /// A Velero Restore with these volume operations.
    pub fn restore(velero: &Restore, operations: &[Operation], is_deleting: bool) -> Self {
        let status = velero.status.as_ref();
        Self {
            started: status.and_then(|status| moment(status.start_timestamp.as_ref())),
            is_over: velero.stage() == Stage::Finished,
            completed: status.and_then(|status| moment(status.completion_timestamp.as_ref())),
            is_deleting,
            downloads: Downloads::of(operations),
        }
    }

    /// Whether its Velero object has to stay because Velero works on it: deleting it now would leave Velero waiting for
    /// ever (velero#4556). One that takes longer than the policy allows goes all the same.
    pub fn is_at_work(&self, stage: Stage, limits: &VolumePolicy, now: Timestamp) -> bool {
        let overdue = || {
            let limit = self.started.zip(limits.longest());
            limit.is_some_and(|(since, limit)| time_left(since, limit, now).is_none())
        };
        matches!(stage, Stage::Running | Stage::Finalizing) && !overdue()
    }
}

fn moment(time: Option<&Time>) -> Option<Timestamp> {
    time.map(|time| time.0)
}

/// How far the DataDownloads of a restore are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Downloads {
    /// There are none.
    #[default]
    None,
    /// At least one is not over.
    Running,
    /// The last one ended then.
    Over(Timestamp),
}

impl Downloads {
    /// Of these operations.
    pub fn of(operations: &[Operation]) -> Self {
        let downloads = operations.iter().filter(|operation| operation.target.kind == Kind::DataDownload);
        downloads.fold(Self::None, |so_far, download| match (so_far, download.completed) {
            (Self::Running, _) => Self::Running,
            _ if !download.is_over() => Self::Running,
            (Self::Over(before), Some(at)) => Self::Over(before.max(at)),
            (_, Some(at)) => Self::Over(at),
            (so_far, None) => so_far,
        })
    }
}

/// Why an operation cannot end, or must not go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stuck {
    /// The request is being deleted.
    Deleting,
    /// Velero ended the Backup or Restore without it.
    OwnerOver,
    /// The Backup or Restore takes longer than the policy allows.
    TooLong(Duration),
    /// The pod it waits for does not exist.
    PodGone(String),
    /// The pod that should wait for the data does not, and why.
    PodDoesNotWait(String, &'static str),
    /// The pod it waits for does not start, and why.
    PodPending(String, String),
    /// No bytes were written for so long.
    NoProgress(Duration),
    /// No node agent has run for so long.
    NoNodeAgent(Duration),
}

impl Stuck {
    /// Why it is cancelled, as the end of a sentence.
    pub fn why(&self) -> String {
        match self {
            Self::Deleting => "the request is being deleted".to_owned(),
            Self::OwnerOver => "Velero went on without it".to_owned(),
            Self::TooLong(limit) => format!("it took longer than {}, which the policy allows", span(*limit)),
            Self::PodGone(pod) => format!("pod {pod:?}, into which the data was to be written, is gone"),
            Self::PodDoesNotWait(pod, why) => format!("pod {pod:?} does not wait for the data: {why}"),
            Self::PodPending(pod, why) if why.is_empty() => format!("pod {pod:?} does not start"),
            Self::PodPending(pod, why) => format!("pod {pod:?} does not start: {why}"),
            Self::NoProgress(limit) => format!("there was no progress for {}", span(*limit)),
            Self::NoNodeAgent(limit) => format!("no node agent has run for {}", span(*limit)),
        }
    }
}

/// Whether an operation is stuck.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// It is over.
    Over,
    /// It goes on; look again after this time at the latest.
    GoesOn(Option<Duration>),
    /// It cannot end, or must not go on.
    Stuck(Stuck),
}

/// Whether an operation is stuck at this time.
pub fn check(operation: &Operation, owner: &Owner, limits: &VolumePolicy, now: Timestamp) -> Check {
    if operation.is_over() {
        return Check::Over;
    }
    if owner.is_deleting {
        return Check::Stuck(Stuck::Deleting);
    }
    let mut look_again: Option<Duration> = None;
    // One rule: from a point in time on, and no longer than the limit.
    let mut overdue = |since: Option<Timestamp>, limit: Option<Duration>| -> bool {
        let (Some(since), Some(limit)) = (since, limit) else { return false };
        match time_left(since, limit, now) {
            None => true,
            Some(left) => {
                look_again = Some(look_again.map_or(left, |other| other.min(left)));
                false
            }
        }
    };
    if owner.is_over && overdue(owner.completed.or(operation.created), Some(OWNER_OVER)) {
        return Check::Stuck(Stuck::OwnerOver);
    }
    let longest = limits.longest();
    if overdue(owner.started, longest) {
        return Check::Stuck(Stuck::TooLong(longest.unwrap_or_default()));
    }
    if let Some(pod) = &operation.pod {
        match &pod.state {
            PodState::Gone if overdue(operation.created, limits.pod_gone()) => {
                return Check::Stuck(Stuck::PodGone(pod.name.clone()));
            }
            // One that is being written to may be read by its pod already.
            PodState::DoesNotWait(why)
                if operation.is_new() && overdue(operation.created, limits.pod_gone()) =>
            {
                return Check::Stuck(Stuck::PodDoesNotWait(pod.name.clone(), why));
            }
            PodState::NotScheduled(why) | PodState::NotStarted(why) if operation.is_new() => {
                let since = match owner.downloads {
                    Downloads::None => operation.created,
                    Downloads::Running => None,
                    Downloads::Over(at) => operation.created.max(Some(at)),
                };
                if overdue(since, limits.pod_pending()) {
                    return Check::Stuck(Stuck::PodPending(pod.name.clone(), why.clone()));
                }
            }
            _ => {}
        }
    }
    let no_progress = limits.no_progress();
    if operation.phase == "InProgress" && overdue(operation.changed, no_progress) {
        return Check::Stuck(Stuck::NoProgress(no_progress.unwrap_or_default()));
    }
    // One that no node agent works on yet may wait in the queue of a node for any time, but not where there is none.
    let without_agent =
        operation.without_agent_since.and_then(|since| operation.created.map(|made| since.max(made)));
    if overdue(without_agent, no_progress) {
        return Check::Stuck(Stuck::NoNodeAgent(no_progress.unwrap_or_default()));
    }
    Check::GoesOn(look_again)
}

/// What is left of a limit; none if it is used up.
pub(crate) fn time_left(since: Timestamp, limit: Duration, now: Timestamp) -> Option<Duration> {
    // A time in the future is a clock that differs: it counts from now on.
    let passed = Duration::try_from(now.duration_since(since)).unwrap_or_default();
    limit.checked_sub(passed).filter(|left| !left.is_zero())
}

/// A duration in words.
pub(crate) fn span(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match (seconds / 3600, seconds % 3600 / 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, 0) => format!("{minutes}m"),
        (hours, 0, 0) => format!("{hours}h"),
        (hours, minutes, seconds) => format!("{hours}h{minutes}m{seconds}s"),
    }
}
