//! The status of a schedule.

use api::condition::{self, Finding, Status};
use api::velero::ScheduleStatus;
use api::{Kind, NonAdminScheduleStatus, Phase, ScheduledBackup, VeleroSchedule};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::due::Times;
use super::runs::{Progress, Run};
use super::step::{self, Step};
use super::{Observed, confirm, keep, retention, run};
use crate::{Action, Event, Policy, velero_status};

/// How many runs are listed.
const RECENT: usize = 5;

/// What is reported after a step, and the Events that go with it.
pub(super) fn after(
    seen: &Observed,
    times: &Times,
    policy: &Policy,
    step: &Step,
) -> (NonAdminScheduleStatus, Vec<Event>) {
    let mut status = seen.status();
    let mut events = Vec::new();
    status.phase = Some(Phase::Created);
    find(
        seen,
        &mut status,
        condition::ACCEPTED,
        Status::True,
        condition::SCHEDULE_ACCEPTED,
        "the schedule is allowed",
    );
    list_runs(seen, &mut status);
    let mut place = place(seen, &mut status);
    let mut velero = ScheduleStatus {
        phase: Some("Enabled".to_owned()),
        validation_errors: None,
        ..place.status.take().unwrap_or_default()
    };
    match step {
        Step::Wait | Step::Finish(_) => {
            // Written down: the time of a clock that was set back, of the end of a pause, or of Velero's last run.
            let last = step::last(seen);
            let known = status.last_due.as_ref().map(|known| known.0);
            let of_go = seen.velero_schedule.is_some() || step::by_velero(seen).is_some();
            let taken_over = of_go && known != Some(last);
            if taken_over || seen.resumes() || known.is_some_and(|known| last < known) {
                status.last_due = Some(Time(last));
            }
            events.extend(report_set_back(seen, &mut status));
        }
        Step::Known(due) => status.last_due = Some(Time(due.due)),
        Step::Make(due) => {
            let name = run::name(seen.name(), due.due);
            status.last_due = Some(Time(due.due));
            velero.last_backup = Some(whole(seen.now));
            status.recent_backups.retain(|entry| entry.phase.is_some());
            status
                .recent_backups
                .insert(0, ScheduledBackup { name: name.clone(), ..ScheduledBackup::default() });
            if due.missed {
                let note =
                    format!("runs that were due before {} were missed; one is made for all of them", due.due);
                events.push(Event::warning(condition::RUN_SKIPPED, note));
            }
            let message = format!("the run that was due at {} was made: {name}", due.due);
            find(
                seen,
                &mut status,
                condition::RUNNING_ON_TIME,
                Status::True,
                condition::RUN_CREATED,
                &message,
            );
            events.push(Event::normal(condition::RUN_CREATED, message));
        }
        Step::Skip(due, why) => {
            status.last_due = Some(Time(due.due));
            velero.last_skipped = Some(Time(due.due));
            status.recent_backups.retain(|entry| entry.phase.is_some());
            let message = format!("the run that was due at {} was skipped: {why}", due.due);
            find(
                seen,
                &mut status,
                condition::RUNNING_ON_TIME,
                Status::False,
                condition::RUN_SKIPPED,
                &message,
            );
            events.push(Event::warning(condition::RUN_SKIPPED, message));
        }
    }
    if let Some(skipped) = to_skip(seen, times, &status) {
        velero.last_skipped = Some(Time(skipped));
    }
    report_refused_run(seen, &mut status);
    status.recent_backups.truncate(RECENT);
    status.last_backup = status.recent_backups.first().cloned();
    status.velero_schedule = Some(VeleroSchedule { status: Some(velero), ..place });
    status.next_run = next_run(seen, times, &status);
    report_last_good(seen, &mut status);
    events.extend(keep::report(seen, policy, Some(times), &mut status.conditions));
    events.extend(confirm::report(seen, policy, &mut status));
    (status, events)
}

/// What the status says of the Velero Schedule, and where that is until it is gone: it may be found by that alone.
fn place(seen: &Observed, status: &mut NonAdminScheduleStatus) -> VeleroSchedule {
    let before = status.velero_schedule.take().unwrap_or_default();
    match seen.velero_schedule {
        Some(_) => before,
        None => VeleroSchedule { status: before.status, ..VeleroSchedule::default() },
    }
}

fn report_last_good(seen: &Observed, status: &mut NonAdminScheduleStatus) {
    let finished = keep::finished(seen);
    let good =
        retention::last_good(&finished).and_then(|good| seen.runs.iter().find(|run| run.name() == good.name));
    status.last_good_backup = good.map(|run| run.name().to_owned());
    status.last_good_time = good.and_then(|run| crate::last_good::ended(&run.backup)).map(Time);
}

/// A clock that was set back: runs that were made or skipped before are not made again.
fn report_set_back(seen: &Observed, status: &mut NonAdminScheduleStatus) -> Option<Event> {
    let until = step::set_back(seen).filter(|_| !seen.is_paused())?;
    let known = status.last_due.as_ref().is_some_and(|last| last.0 == until);
    let message = if known {
        format!("the clock was set back: every run that was due until {until} was made or skipped before")
    } else {
        format!("the clock was set back by more than a day, from {until}: runs go on from now")
    };
    let before = condition::get(&status.conditions, condition::RUNNING_ON_TIME);
    let news = before.is_none_or(|found| found.message != message && found.reason != condition::RUN_REFUSED);
    let is = Status::False;
    find(seen, status, condition::RUNNING_ON_TIME, is, condition::RUN_SKIPPED, &message);
    news.then(|| Event::warning(condition::RUN_SKIPPED, message))
}

/// The time of the run that is skipped because the schedule says so; none if it says nothing, or the time is known.
fn to_skip(seen: &Observed, times: &Times, status: &NonAdminScheduleStatus) -> Option<Timestamp> {
    let asked = seen.schedule.spec.skip_immediately == Some(true) && !seen.is_paused();
    let known = seen.to_be_skipped().is_some_and(|skipped| skipped > last_of(seen, status));
    (asked && !known).then(|| times.next(last_of(seen, status))).flatten().map(|next| next.due)
}

fn last_of(seen: &Observed, status: &NonAdminScheduleStatus) -> Timestamp {
    status.last_due.as_ref().map_or_else(|| step::last(seen), |time| time.0)
}

/// When there is the next run to start, or to skip; none while it is paused.
pub(super) fn next_start(
    seen: &Observed,
    times: &Times,
    status: &NonAdminScheduleStatus,
) -> Option<Timestamp> {
    if seen.is_paused() {
        return None;
    }
    times.next(last_of(seen, status)).map(|next| next.start)
}

/// When the next run starts that is not to be skipped.
fn next_run(seen: &Observed, times: &Times, status: &NonAdminScheduleStatus) -> Option<Time> {
    if seen.is_paused() {
        return None;
    }
    let skipped =
        status.velero_schedule.as_ref().and_then(|velero| velero.status.as_ref()?.last_skipped.as_ref());
    let mut next = times.next(last_of(seen, status))?;
    if skipped.is_some_and(|skipped| skipped.0 == next.due) {
        next = times.next(next.due)?;
    }
    Some(Time(next.start))
}

/// Brings the listed runs up to date with their requests. Runs that are gone stay as they were last seen.
fn list_runs(seen: &Observed, status: &mut NonAdminScheduleStatus) {
    for entry in &mut status.recent_backups {
        if let Some(run) = seen.runs.iter().find(|run| run.name() == entry.name) {
            *entry = shown(run);
        }
    }
}

fn shown(run: &Run) -> ScheduledBackup {
    let status = run.backup.status.as_ref();
    let velero = status.and_then(|status| status.velero_backup.as_ref());
    let reported = velero.and_then(|velero| velero.status.as_ref());
    let phase = match status.and_then(|status| status.phase) {
        Some(Phase::BackingOff) => "BackingOff",
        Some(Phase::Deleting) => "Deleting",
        None | Some(Phase::New | Phase::Created) => "New",
    };
    let of_velero = reported.and_then(|reported| reported.phase.clone()).filter(|_| phase == "New");
    ScheduledBackup {
        name: run.name().to_owned(),
        velero_backup_name: velero.and_then(|velero| velero.name.clone()),
        phase: Some(of_velero.unwrap_or_else(|| phase.to_owned())),
        start_timestamp: reported.and_then(|reported| reported.start_timestamp.clone()),
        completion_timestamp: reported.and_then(|reported| reported.completion_timestamp.clone()),
        expiration: reported.and_then(|reported| reported.expiration.clone()),
    }
}

/// A run that is refused, or waits: its own message is the schedule's too, until it has started.
fn report_refused_run(seen: &Observed, status: &mut NonAdminScheduleStatus) {
    let latest = status.recent_backups.first().map(|entry| entry.name.clone());
    let run = seen.runs.iter().find(|run| Some(run.name()) == latest.as_deref());
    let rejected = seen.rejected_write.as_deref().filter(|rejected| rejected.kind == Kind::NonAdminBackup);
    if let Some(rejected) = rejected.filter(|_| run.is_none()) {
        let message = format!("the latest run could not be made: {}; nacre retries", rejected.why());
        return find(
            seen,
            status,
            condition::RUNNING_ON_TIME,
            Status::False,
            condition::RUN_REFUSED,
            &message,
        );
    }
    match run.map(|run| (run.name(), run.progress())) {
        Some((name, Progress::Refused(why) | Progress::Waiting(why))) => {
            let message = format!("the latest run, {name}, has not started: {why}");
            find(seen, status, condition::RUNNING_ON_TIME, Status::False, condition::RUN_REFUSED, &message);
        }
        Some((name, _)) => {
            let found = condition::get(&status.conditions, condition::RUNNING_ON_TIME);
            if found.is_some_and(|found| found.reason == condition::RUN_REFUSED) {
                let message = format!("the latest run, {name}, has started");
                find(
                    seen,
                    status,
                    condition::RUNNING_ON_TIME,
                    Status::True,
                    condition::RUN_CREATED,
                    &message,
                );
            }
        }
        None => {}
    }
}

/// Refused: nothing runs until the schedule or the policy is changed. What was kept is kept.
pub(super) fn refused(
    seen: &Observed,
    reason: &'static str,
    message: &str,
) -> (NonAdminScheduleStatus, Vec<Event>) {
    let mut status = seen.status();
    status.phase = Some(Phase::BackingOff);
    status.next_run = None;
    let before = condition::get(&status.conditions, condition::ACCEPTED);
    let known = before.map(|found| (found.reason.clone(), found.message.clone()));
    find(seen, &mut status, condition::ACCEPTED, Status::False, reason, message);
    // As it is in the condition, where a long one is shortened.
    let after = condition::get(&status.conditions, condition::ACCEPTED);
    let message = after.map(|found| found.message.clone()).unwrap_or_default();
    let news = known.is_none_or(|known| known != (reason.to_owned(), message.clone()));
    let mut events: Vec<_> = news.then(|| Event::warning(reason, message.as_str())).into_iter().collect();
    list_runs(seen, &mut status);
    report_last_good(seen, &mut status);
    let times = seen.times.as_ref().and_then(|times| times.as_ref().ok());
    let policy = seen.policy.as_deref();
    events.extend(policy.and_then(|policy| keep::report(seen, policy, times, &mut status.conditions)));
    if seen.velero_schedule.is_some() || step::by_velero(seen).is_some() {
        // It is taken over now, so that nothing is made a second time when the schedule is not refused any more.
        status.last_due = Some(Time(step::last(seen)));
    }
    status.last_backup = status.recent_backups.first().cloned();
    let mut place = place(seen, &mut status);
    let velero = ScheduleStatus {
        phase: Some("FailedValidation".to_owned()),
        validation_errors: Some(vec![message]),
        ..place.status.take().unwrap_or_default()
    };
    status.velero_schedule = Some(VeleroSchedule { status: Some(velero), ..place });
    (status, events)
}

fn find(
    seen: &Observed,
    status: &mut NonAdminScheduleStatus,
    type_: &'static str,
    is: Status,
    reason: &'static str,
    message: &str,
) {
    let finding = Finding { type_, status: is, reason, message };
    condition::set(&mut status.conditions, finding, seen.schedule.metadata.generation, seen.now);
}

/// Times in a status are whole seconds.
pub(super) fn whole(moment: Timestamp) -> Time {
    Time(Timestamp::from_second(moment.as_second()).unwrap_or(moment))
}

/// The status patch, if the status changes.
pub(super) fn patch(seen: &Observed, wanted: &NonAdminScheduleStatus) -> Option<Action> {
    velero_status::status(seen.target(), seen.schedule.status.as_ref(), wanted)
}
