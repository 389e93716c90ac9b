//! What is to be done about the runs of a schedule now.

use jiff::{SignedDuration, Timestamp};

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
    let last = last.unwrap_or(created).max(by_velero(seen).unwrap_or(created));
    // What was due while it was paused was not missed.
    let last = if seen.resumes() { last.max(seen.now) } else { last };
    // Later than now is a clock that was set back since: what was dealt with is not made again.
    if last.duration_since(seen.now) > LONGEST_SET_BACK { seen.now } else { last }
}

/// A clock that is set back by more was wrong before: waiting for that time to come again would be too long. Names of runs
/// then tell which of them are there already.
const LONGEST_SET_BACK: SignedDuration = SignedDuration::from_hours(24);
/// Corrections of a clock up to this are not reported.
const CORRECTION: SignedDuration = SignedDuration::from_mins(1);

/// The time up to which runs were dealt with, if the clock was set back behind it.
pub(super) fn set_back(seen: &Observed) -> Option<Timestamp> {
    let last = seen.reported()?.last_due.as_ref()?.0;
    (last.duration_since(seen.now) > CORRECTION).then_some(last)
}

/// When Velero last made or skipped a run by the Velero Schedule of the Go controller, which wrote it down in the status too.
pub(super) fn by_velero(seen: &Observed) -> Option<Timestamp> {
    let reported = seen.reported().filter(|status| status.last_due.is_none());
    let reported = reported.and_then(|status| status.velero_schedule.as_ref());
    // Without a name nacre wrote it: which run is to be skipped.
    let of_go = reported.filter(|shown| shown.name.is_some() || shown.nacuuid.is_some());
    let [reported, of_go] = [reported, of_go].map(|shown| shown.and_then(|shown| shown.status.as_ref()));
    let velero = seen.velero_schedule.as_deref().and_then(|velero| velero.status.as_ref());
    let made = [reported, velero].into_iter().flatten().filter_map(|status| status.last_backup.as_ref());
    let skipped = [of_go, velero].into_iter().flatten().filter_map(|status| status.last_skipped.as_ref());
    made.chain(skipped).map(|time| time.0).max()
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
    recent.iter().any(|entry| entry.name == name) || seen.has_run(&name)
}

/// Somebody else's backup has the name that the run of this time would have.
fn name_is_taken(seen: &Observed, due: Timestamp) -> Option<String> {
    let name = Some(run::name(seen.name(), due)).filter(|name| seen.taken.as_ref() == Some(name))?;
    Some(format!(
        "there is a NonAdminBackup {name} that is not of this schedule; delete it, or name the schedule otherwise"
    ))
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
    if let Some(why) = name_is_taken(seen, due.due).or_else(|| confirm::overdue(seen, policy)) {
        return Some(why);
    }
    if !times.may_start(due, seen.now) {
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
