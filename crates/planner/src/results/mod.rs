//! The errors and warnings that Velero reported about a backup or a restore, its log, and the objects in a backup, for its
//! owner to read.
//!
//! Velero keeps them as files next to the backup. A link to a file in the administrators' storage is nothing to hand
//! out, so for that storage nacre reads the file itself, and publishes what it says ([`read()`], [`OwnLines`]) in the
//! request's status: bounded in size, and without the names of other namespaces ([`redact`]). nacre never connects to an endpoint that a
//! tenant chose: there the tenant's own command line reads the file.

mod grouped;
pub(crate) mod log;
mod read;
mod redact;

use std::sync::Arc;
use std::time::Duration;

use api::condition::{self, Finding, Status};
use api::velero::BackupStorageLocation;
use api::{
    DownloadTarget, Kind, LogLines, NonAdminBackup, NonAdminDownloadRequest, NonAdminRestore, ObjectList,
    VeleroResults,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::download::{OBJECTS, READ_BY_NACRE, Sought, is_read_by_nacre, seek};
use crate::ownership::{Storage, storage};
use crate::queue::{Stage, stage};
use crate::{Event, Key, State};

pub use grouped::grouped;
pub use log::OwnLines;
pub use read::{NotResults, read, read_objects};

/// How long after its end the errors and warnings of a backup or restore are of interest, if they were not read by then.
const OF_INTEREST: Duration = Duration::from_hours(1);

/// What is in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Errors and warnings.
    Results,
    /// The list of the objects in a backup.
    Objects,
    /// A log.
    Log,
}

/// Where Velero keeps the errors and warnings of one request, or what a tenant asked for.
#[derive(Clone, Debug)]
pub struct ResultsFile {
    /// Velero's kind of download.
    pub kind: &'static str,
    /// The Velero Backup or Restore.
    pub velero: String,
    /// The Velero Backup that a Restore is made from; of a Backup itself.
    pub backup: String,
    /// The administrators' location; none if Velero's default one was not named.
    pub location: Option<Arc<BackupStorageLocation>>,
}

impl ResultsFile {
    /// What is in it.
    pub fn content(&self) -> Content {
        match self.kind {
            OBJECTS => Content::Objects,
            kind if READ_BY_NACRE.contains(&kind) => Content::Log,
            _ => Content::Results,
        }
    }

    /// What Velero has for it, as the lines of its log name them.
    pub fn velero_objects(&self, admin_namespace: &str) -> [String; 2] {
        [&self.velero, &self.backup].map(|name| format!("{admin_namespace}/{name}"))
    }
}

/// What became of reading them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Results {
    /// They were read.
    Read(Arc<VeleroResults>),
    /// The list of objects in a backup was read, for a NonAdminDownloadRequest.
    Objects(Arc<ObjectList>),
    /// A log was read, for a NonAdminDownloadRequest.
    Log(Arc<LogLines>),
    /// They could not be read; why is in nacre's log, since it may name the administrators' storage.
    NotReadable,
}

/// The file of a request that [`State::unread_results`] names; none if there is nothing that nacre may read: what it was
/// made from is gone or not the namespace's own, or it is in a tenant's storage.
pub fn file(view: &State, key: &Key) -> Option<ResultsFile> {
    let (kind, name) = match key.kind {
        Kind::NonAdminBackup => ("BackupResults", key.name.clone()),
        Kind::NonAdminRestore => ("RestoreResults", key.name.clone()),
        Kind::NonAdminDownloadRequest => {
            let request = view.get::<NonAdminDownloadRequest>(&key.namespace, &key.name)?;
            let target = &request.spec.target;
            (READ_BY_NACRE.into_iter().find(|kind| *kind == target.kind)?, target.name.clone())
        }
        _ => return None,
    };
    let target = DownloadTarget { kind: kind.to_owned(), name };
    let (Sought::Backup(behind) | Sought::Restore(behind)) = seek(view, &key.namespace, &target) else {
        return None;
    };
    let behind = behind?;
    let (velero, stage, _) = behind.velero?;
    let backup = behind.backup?;
    let platform = storage(&backup, behind.velero_location.as_deref()) == Storage::Platform;
    // What tenants ask for is stored before Velero finalizes; the results are not complete before the end.
    let is_asked_for = key.kind == Kind::NonAdminDownloadRequest;
    let over = stage == Stage::Finished || (is_asked_for && stage == Stage::Finalizing);
    let backup = backup.metadata.name.clone().unwrap_or_default();
    (platform && over).then_some(ResultsFile { kind, velero, backup, location: behind.velero_location })
}

/// What decides whether there is something to read about a request.
struct Ended<'a> {
    phase: Option<&'a str>,
    completed: Option<&'a Time>,
    messages: i64,
    conditions: &'a [Condition],
}

impl Ended<'_> {
    fn is_unread(&self, now: Timestamp) -> bool {
        let phase = self.phase.unwrap_or_default();
        let over = stage(phase, self.completed.is_some()) == Stage::Finished && phase != "FailedValidation";
        let recent = self.completed.is_some_and(|completed| {
            Duration::try_from(now.duration_since(completed.0)).is_ok_and(|passed| passed < OF_INTEREST)
        });
        over && recent
            && self.messages > 0
            && condition::get(self.conditions, condition::RESULTS_READ).is_none()
    }
}

/// Whether nacre said that it reads the file for this request.
pub(crate) fn download_is_unread(request: &NonAdminDownloadRequest) -> bool {
    let conditions = request.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let reported = condition::get(conditions, condition::PROCESSED);
    request.metadata.deletion_timestamp.is_none()
        && is_read_by_nacre(Kind::NonAdminDownloadRequest, &request.spec.target)
        && reported.is_some_and(|reported| reported.reason == condition::BEING_READ)
}

/// Whether the status of a backup counts errors or warnings that were not read yet.
pub(crate) fn backup_is_unread(backup: &NonAdminBackup, now: Timestamp) -> bool {
    let ended = || {
        let status = backup.status.as_ref()?;
        let velero = status.velero_backup.as_ref()?.status.as_ref()?;
        Some(Ended {
            phase: velero.phase.as_deref(),
            completed: velero.completion_timestamp.as_ref(),
            messages: velero.errors.unwrap_or(0) + velero.warnings.unwrap_or(0),
            conditions: &status.conditions,
        })
    };
    ended().is_some_and(|ended| ended.is_unread(now))
}

/// The same for a restore.
pub(crate) fn restore_is_unread(restore: &NonAdminRestore, now: Timestamp) -> bool {
    let ended = || {
        let status = restore.status.as_ref()?;
        let velero = status.velero_restore.as_ref()?.status.as_ref()?;
        Some(Ended {
            phase: velero.phase.as_deref(),
            completed: velero.completion_timestamp.as_ref(),
            messages: velero.errors.unwrap_or(0) + velero.warnings.unwrap_or(0),
            conditions: &status.conditions,
        })
    };
    ended().is_some_and(|ended| ended.is_unread(now))
}

/// Publishes what was read: the condition, and the list.
pub(crate) fn report(
    results: &Results,
    (conditions, list): (&mut Vec<Condition>, &mut Option<VeleroResults>),
    generation: Option<i64>,
    now: Timestamp,
) {
    let (status, reason, message) = match results {
        Results::Read(read) => (Status::True, reason(read), summary(read)),
        Results::NotReadable | Results::Objects(_) | Results::Log(_) => (
            Status::False,
            condition::RESULTS_NOT_READABLE,
            "Velero's list of errors and warnings could not be read; the administrators find out why in nacre's log"
                .to_owned(),
        ),
    };
    let finding = Finding { type_: condition::RESULTS_READ, status, reason, message: &message };
    condition::set(conditions, finding, generation, now);
    *list = match results {
        Results::Read(read) if **read != VeleroResults::default() => Some((**read).clone()),
        _ => None,
    };
}

const fn reason(read: &VeleroResults) -> &'static str {
    match (read.errors.is_empty(), read.warnings.is_empty()) {
        (false, _) => condition::ERRORS_REPORTED,
        (true, false) => condition::WARNINGS_REPORTED,
        (true, true) => condition::NOTHING_TO_SHOW,
    }
}

/// The first error, or the first warning if there is none, and how many more there are.
fn summary(read: &VeleroResults) -> String {
    let listed = (read.errors.len() + read.warnings.len()).saturating_sub(1);
    let more = listed + read.not_listed.map_or(0, |more| usize::try_from(more).unwrap_or(usize::MAX));
    let more = if more == 0 { String::new() } else { format!(" (and {more} more)") };
    match (read.errors.first(), read.warnings.first()) {
        (Some(error), _) => format!("error: {error}{more}"),
        (None, Some(warning)) => format!("warning: {warning}{more}"),
        (None, None) => "nothing that Velero reported is about this namespace".to_owned(),
    }
}

/// The Event for what was published just now.
pub(crate) fn news(before: &[Condition], after: &[Condition]) -> Option<Event> {
    let of = |conditions: &[Condition]| condition::get(conditions, condition::RESULTS_READ).cloned();
    let found = of(after).filter(|_| of(before).is_none())?;
    let reason = [condition::ERRORS_REPORTED, condition::WARNINGS_REPORTED]
        .into_iter()
        .find(|reason| *reason == found.reason)?;
    Some(Event::warning(reason, format!("Velero reported: {}", found.message)))
}

#[cfg(test)]
mod tests;
