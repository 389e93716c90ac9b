//! What is to be done about the runs of a schedule now.

use jiff::Timestamp;

use super::due::{Due, Times};
use super::runs::Progress;
use super::{Observed, confirm, run};
use crate::Policy;
use api::Concurrency;

/// What is to be done about the runs of a schedule now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing is due.
    Wait,
    /// This run is made. The status says so first, so that nobody makes it a second time.
    Make(Due),
    /// The status says that the run of this time is made, and it is not there yet.
    Finish(Timestamp),
    /// This run is left out, for this reason.
    Skip(Due, String),
    /// The run of this time is there already.
    Known(Due),
}

/// The time up to which every run was dealt with.
pub(super) fn last(seen: &Observed) -> Timestamp {
    let created = seen.schedule.metadata.creation_timestamp.as_ref().map_or(seen.now, |time| time.0);
    let last = seen.reported().and_then(|status| status.last_due.as_ref()).map(|time| time.0);
    if seen.resumes() {
        // What was due while it was paused was not missed.
        return seen.now;
    }
    // Later than now is a clock that was set back since: names of runs tell which of them are there already.
    last.unwrap_or(created).max(by_velero(seen).unwrap_or(created)).min(seen.now)
}

/// When Velero last made a run by the Velero Schedule of the Go controller, which wrote it down in the status too.
fn by_velero(seen: &Observed) -> Option<Timestamp> {
    let reported = seen.reported().filter(|status| status.last_due.is_none());
    let reported = reported.and_then(|status| status.velero_schedule.as_ref()?.status.as_ref());
    let velero = seen.velero_schedule.as_deref().and_then(|velero| velero.status.as_ref());
    [reported, velero]
        .into_iter()
        .flatten()
        .filter_map(|status| status.last_backup.as_ref())
        .map(|time| time.0)
        .max()
}

/// The next step.
pub(super) fn next(seen: &Observed, times: &Times, policy: &Policy) -> Step {
    let Some(due) = times.latest(last(seen), seen.now) else {
        return unfinished(seen, times).unwrap_or(Step::Wait);
    };
    if is_known(seen, due.due) {
        return Step::Known(due);
    }
    match why_skipped(seen, times, policy, &due) {
        Some(why) => Step::Skip(due, why),
        None => Step::Make(due),
    }
}

/// A run that the status says is made, and that is not there.
fn unfinished(seen: &Observed, times: &Times) -> Option<Step> {
    let status = seen.reported()?;
    let (due, latest) = (status.last_due.as_ref()?.0, status.recent_backups.first()?);
    let is_missing = latest.phase.is_none()
        && latest.name == run::name(seen.name(), due)
        && !seen.runs.iter().any(|run| run.name() == latest.name);
    let due = Due { due, start: times.start(due), missed: false };
    match is_missing {
        true if times.in_time(&due, seen.now) => Some(Step::Finish(due.due)),
        true => Some(Step::Skip(due, too_late(&due))),
        false => None,
    }
}

/// Whether the run of this time was made before, whatever became of it since.
fn is_known(seen: &Observed, due: Timestamp) -> bool {
    let name = run::name(seen.name(), due);
    let recent = seen.reported().map(|status| status.recent_backups.as_slice()).unwrap_or_default();
    recent.iter().any(|entry| entry.name == name) || seen.name_exists(&name)
}

fn too_late(due: &Due) -> String {
    format!("it should have started at {}, and nacre could not start it in time", due.start)
}

fn why_skipped(seen: &Observed, times: &Times, policy: &Policy, due: &Due) -> Option<String> {
    if seen.to_be_skipped() == Some(due.due) {
        return Some("spec.skipImmediately said so".to_owned());
    }
    if !times.in_time(due, seen.now) {
        return Some(too_late(due));
    }
    if let Some(why) = confirm::overdue(seen, policy) {
        return Some(why);
    }
    if !policy.schedules.allows_start(seen.now) {
        let windows = policy.schedules.windows.join(", ");
        return Some(format!("backups may start only in the times that the administrator allows: {windows}"));
    }
    let allowed = seen.schedule.spec.concurrency == Some(Concurrency::Allow);
    seen.runs.iter().find_map(|run| match run.progress() {
        Progress::Running if !allowed => Some(format!("the run before it, {}, is not finished", run.name())),
        Progress::Waiting(why) => Some(format!("the run before it, {}, waits: {why}", run.name())),
        Progress::Running | Progress::Refused(_) | Progress::Over => None,
    })
}
