//! NonAdminSchedule: backups that are made by themselves, and kept as long as they should be.
//!
//! nacre runs schedules itself: at the time a schedule is due (`cron`, `due`) it makes a NonAdminBackup (`run`), which
//! takes the ordinary way. So today's policy, limits and locations hold for each run.
//!
//! A run is made once for each time: its name is made of the schedule's name and the time, and the schedule's status
//! says that the run is made before it is made (`step`). That write fails if the status was changed meanwhile, so two
//! leaders cannot both do it; and a run that the status names and that is not there is made again under its name. A run
//! has nacre's finalizer from the beginning, and keeps it until its schedule has seen it: so one that somebody deletes
//! at once is not taken for one that was never made.

mod admit;
#[cfg(test)]
mod bounds_tests;
mod check;
mod confirm;
pub mod cron;
mod defaults;
mod due;
mod keep;
mod outlived;
mod preview;
mod reach;
pub mod retention;
mod run;
mod runs;
mod status;
mod step;
mod takeover;
mod withdraw;

use std::sync::Arc;
use std::time::Duration;

use api::condition;
use api::velero::Schedule as VeleroSchedule;
use api::{Kind, NonAdminBackup, NonAdminSchedule, NonAdminScheduleStatus, Phase, labels};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;
use kube::core::ObjectMeta;
use serde_json::json;

pub(crate) use admit::admit;
pub(crate) use check::beyond_bounds;
pub use check::{check, times};
pub(crate) use cron::find_zone;
pub use defaults::decide as decide_defaults;
pub(crate) use defaults::may_want as may_want_defaults;
pub use due::{Due, Times};
pub use keep::effective;
pub(crate) use outlived::shorten;
pub use preview::{Preview, preview};
pub use run::{backup, label_value, name};
pub use runs::Run;
pub(crate) use takeover::{is_left, origin};
pub use withdraw::Marked;
pub(crate) use withdraw::{is_marked, marked, reported};

use crate::ownership::label;
use crate::rejected_write;
use crate::request::Request;
use crate::state::State;
use crate::view::Seen;
use crate::{Action, Key, Object, Plan, Policy, Refusal, RejectedWrite, Target};
use runs::Progress;
use step::Step;

/// The longest time between two decisions about a schedule that runs: somebody may set the clock.
const LOOK_AGAIN: Duration = Duration::from_hours(3);

/// Everything a decision about one schedule reads.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The schedule.
    pub schedule: Arc<NonAdminSchedule>,
    /// Why the schedule could not be parsed; none if it could.
    pub unreadable: Option<Arc<str>>,
    /// Its namespace.
    pub namespace: Option<Arc<Namespace>>,
    /// Its runs that are there.
    pub runs: Vec<Run>,
    /// When it runs, or why that cannot be read; none while the policy is unknown.
    pub times: Option<Result<Times, Refusal>>,
    /// The name of the run that is due, if a NonAdminBackup has it already, a run or not.
    pub taken: Option<String>,
    /// The Velero Schedule that the Go controller made for it, if that is still there.
    pub velero_schedule: Option<Arc<VeleroSchedule>>,
    /// The backups that Velero made by that one, and that are not counted as runs yet.
    pub made_by_velero: Vec<Arc<NonAdminBackup>>,
    /// How many older schedules the namespace has.
    pub older: usize,
    /// The last write for this object that the API server rejected.
    pub rejected_write: Option<Arc<RejectedWrite>>,
    /// The policy for the namespace; none while it is unknown.
    pub policy: Option<Arc<Policy>>,
    /// Velero's namespace.
    pub admin_namespace: String,
    /// The current time, given by the caller.
    pub now: Timestamp,
}

/// What a finished run is for retention, as far as somebody can tell who sees nothing but its request.
pub fn finished(backup: &NonAdminBackup) -> Option<retention::Finished> {
    let run = Run {
        backup: Arc::new(backup.clone()),
        velero: None,
        storage: crate::last_good::Storage::Unknown,
        in_use: false,
    };
    run.finished()
}

/// The time between two runs around the latest that was due: the longer one of those before and after the next run. None
/// while the schedule is paused, or its times cannot be read.
pub(crate) fn interval(schedule: &NonAdminSchedule) -> Option<SignedDuration> {
    let (spec, status) = (&schedule.spec, schedule.status.as_ref());
    let created = schedule.metadata.creation_timestamp.as_ref()?.0;
    // What H stands for makes little difference: between two of its times there is always the same step, but for a last
    // shorter one.
    let setting = cron::Setting { time_zone: spec.time_zone.as_deref(), hashed: "", anchor: created };
    let cron = cron::Cron::read(&spec.schedule, &setting).ok().filter(|_| spec.paused != Some(true))?;
    let last = status.and_then(|status| status.last_due.as_ref()).map_or(created, |last| last.0);
    let next = cron.next(last)?;
    Some(cron.next(next)?.duration_since(next).max(next.duration_since(last)))
}

/// Whether a schedule that is not stored yet would be refused, and why; none while the policy is unknown.
pub(crate) fn judge(view: &State, schedule: NonAdminSchedule) -> Option<Result<(), Refusal>> {
    let (namespace, name) = (schedule.metadata.namespace.clone()?, schedule.metadata.name.clone()?);
    let seen = gather(view, Seen { object: Arc::new(schedule), unreadable: None }, &namespace, &name);
    let policy = seen.policy.as_deref()?;
    let refusal = seen.refusal(policy).or_else(|| seen.beyond_bounds(policy));
    Some(refusal.or_else(|| check::over_limit(&seen, policy)).map_or(Ok(()), Err))
}

/// Gathers what a decision about this schedule reads; none if there is no such schedule.
pub fn observe(view: &State, namespace: &str, name: &str) -> Option<Observed> {
    Some(gather(view, view.seen::<NonAdminSchedule>(namespace, name)?, namespace, name))
}

/// The same for an object that is not stored yet, or is about to change.
pub(crate) fn gather(
    view: &State,
    Seen { object: schedule, unreadable }: Seen<NonAdminSchedule>,
    namespace: &str,
    name: &str,
) -> Observed {
    let age = |meta: &ObjectMeta| {
        (meta.creation_timestamp.as_ref().map_or(Timestamp::MAX, |time| time.0), meta.name.clone())
    };
    let own = age(&schedule.metadata);
    let others = view.list::<NonAdminSchedule>(namespace).into_iter();
    let others = others.filter(|other| other.metadata.name.as_deref() != Some(name));
    let older = others.filter(|other| age(&other.metadata) < own).count();
    let (space, policy) = (view.namespace(namespace), view.policy(namespace));
    let uid = space.as_deref().and_then(|space| space.metadata.uid.as_deref()).unwrap_or_default();
    let velero = takeover::find(view, &schedule, &Key::new(Kind::NonAdminSchedule, namespace, name));
    let mut seen = Observed {
        times: policy.as_deref().map(|policy| times(&schedule, uid, policy, view.now())),
        namespace: space,
        runs: runs::gather(view, namespace, name),
        taken: None,
        made_by_velero: velero
            .as_deref()
            .map(|velero| takeover::made_by(view, velero, namespace))
            .unwrap_or_default(),
        velero_schedule: velero,
        older,
        rejected_write: rejected_write::persistent(
            view,
            &Key::of(Kind::NonAdminSchedule, &schedule.metadata),
        ),
        policy,
        admin_namespace: view.admin_namespace().to_owned(),
        now: view.now(),
        schedule,
        unreadable,
    };
    seen.taken = seen.name_of_next_run().filter(|name| view.get::<NonAdminBackup>(namespace, name).is_some());
    seen
}

/// The schedule that a NonAdminBackup says it is a run of.
pub(crate) fn of_run(backup: &ObjectMeta) -> Option<&str> {
    label(backup, labels::NAS_NAME).filter(|name| !name.is_empty())
}

/// The schedule that a NonAdminBackup is a run of, if it is there.
pub fn schedule_of(view: &State, backup: &ObjectMeta) -> Option<Arc<NonAdminSchedule>> {
    let label = of_run(backup)?;
    let schedules = view.list::<NonAdminSchedule>(backup.namespace.as_deref()?);
    schedules.into_iter().find(|schedule| run::label_value(&schedule.name_any()) == label)
}

/// Whether this is a run that its schedule is yet to see. If it went before, it would be made a second time.
pub(crate) fn awaits(view: &State, backup: &ObjectMeta) -> bool {
    let (Some(namespace), Some(name)) = (backup.namespace.as_deref(), backup.name.as_deref()) else {
        return false;
    };
    of_run(backup).is_some()
        && view
            .list::<NonAdminSchedule>(namespace)
            .iter()
            .any(|schedule| unseen_runs(schedule).any(|unseen| unseen == name))
}

/// The runs that a schedule's status names and that it is yet to see.
pub(crate) fn unseen_runs(schedule: &NonAdminSchedule) -> impl Iterator<Item = &str> {
    let status = schedule.status.as_ref().filter(|_| schedule.metadata.deletion_timestamp.is_none());
    let recent = status.map(|status| status.recent_backups.as_slice()).unwrap_or_default();
    recent.iter().filter(|run| run.phase.is_none()).map(|run| run.name.as_str())
}

impl Observed {
    fn name(&self) -> &str {
        self.schedule.metadata.name.as_deref().unwrap_or_default()
    }

    fn target(&self) -> Target {
        Target::of(Kind::NonAdminSchedule, &self.schedule.metadata)
    }

    fn reported(&self) -> Option<&NonAdminScheduleStatus> {
        self.schedule.status.as_ref()
    }

    fn status(&self) -> NonAdminScheduleStatus {
        self.schedule.status.clone().unwrap_or_default()
    }

    fn is_paused(&self) -> bool {
        self.schedule.spec.paused == Some(true)
    }

    /// It was paused when its status was last written, and is not any more.
    fn resumes(&self) -> bool {
        let was_paused = |status: &NonAdminScheduleStatus| {
            status.phase == Some(Phase::Created) && status.next_run.is_none()
        };
        !self.is_paused() && self.reported().is_some_and(was_paused)
    }

    /// The time of the run that was skipped last, or is to be skipped.
    fn to_be_skipped(&self) -> Option<Timestamp> {
        let velero = self.reported()?.velero_schedule.as_ref()?;
        velero.status.as_ref()?.last_skipped.as_ref().map(|time| time.0)
    }

    /// Whether there is a run of this name.
    fn has_run(&self, name: &str) -> bool {
        self.runs.iter().any(|run| run.name() == name)
    }

    fn name_of_next_run(&self) -> Option<String> {
        let times = self.times.as_ref()?.as_ref().ok()?;
        let due = times.latest(step::last(self), self.now)?;
        Some(name(self.name(), due.due))
    }

    /// Why it is refused until somebody changes the schedule or the policy.
    fn refusal(&self, policy: &Policy) -> Option<Refusal> {
        if let Some(error) = &self.unreadable {
            return Some(Refusal::new("spec", format!("cannot be read: {error}")));
        }
        match self.times.as_ref()? {
            Ok(times) => check(&self.schedule, times, &self.admin_namespace, policy, self.now),
            Err(refusal) => Some(refusal.clone()),
        }
    }

    /// Why the webhook refuses what it asks to be kept. The controller keeps within the bounds instead.
    fn beyond_bounds(&self, policy: &Policy) -> Option<Refusal> {
        let asked = self.schedule.spec.retention.as_ref()?;
        let (field, why) = beyond_bounds(asked, &policy.schedules.retention)?;
        Some(Refusal::new(format!("spec.retention.{field}"), why))
    }
}

impl Request for Observed {
    const NOUN: &'static str = "schedule";
    const FINALIZER: Option<&'static str> = Some(labels::NAS_FINALIZER);
    const LOST: Option<&'static str> = None;

    fn object(&self) -> (Kind, &ObjectMeta) {
        (Kind::NonAdminSchedule, &self.schedule.metadata)
    }

    fn reported(&self) -> (Option<Phase>, &[Condition]) {
        let status = self.schedule.status.as_ref();
        status.map_or((None, [].as_slice()), |status| (status.phase, status.conditions.as_slice()))
    }

    fn refusal_write(&self, reason: &'static str, message: &str) -> Option<Action> {
        status::patch(self, &status::refused(self, reason, message).0)
    }

    fn now(&self) -> Timestamp {
        self.now
    }

    /// No run is made, which the schedule has to report.
    fn keeps_status(&self) -> bool {
        false
    }
}

/// Decides what to do about one schedule.
pub fn decide(seen: &Observed) -> Plan {
    if seen.is_deleting() {
        // Only the Go controller puts its finalizer there, and its Velero Schedule would run for ever.
        let velero = seen.velero_schedule.as_deref();
        let plan = velero.map_or_else(Plan::done, |velero| takeover::remove(velero, Plan::done()));
        return seen.drop_finalizer(plan).because("it is being deleted: its backups stay");
    }
    if seen.namespace.is_none() {
        return seen.wait_for_namespace();
    }
    let (Some(policy), Some(times)) = (&seen.policy, &seen.times) else {
        return keep::extend(seen, false, seen.wait_for_policy());
    };
    let refusal = seen.refusal(policy).or_else(|| check::over_limit(seen, policy));
    match (refusal, times) {
        (None, Ok(times)) => run_and_keep(seen, policy, times),
        (Some(refusal), times) => refuse(seen, policy, times.as_ref().ok(), &refusal),
        (None, Err(refusal)) => refuse(seen, policy, None, refusal),
    }
}

/// No run is made, neither by nacre nor by Velero. What there is stays as it is kept.
fn refuse(seen: &Observed, policy: &Policy, times: Option<&Times>, refusal: &Refusal) -> Plan {
    let message = refusal.condition_message();
    let (status, events) = status::refused(seen, condition::INVALID_SCHEDULE_SPEC, &message);
    let mut plan = seen.drop_finalizer(Plan::done()).then_if(status::patch(seen, &status)).because(message);
    plan.events.extend(events);
    keep::apply(seen, policy, times, takeover::end(seen, times, plan))
}

/// Makes the run that is due, and deletes what is not kept.
fn run_and_keep(seen: &Observed, policy: &Policy, times: &Times) -> Plan {
    if let Some(velero) = &seen.velero_schedule {
        return takeover::decide(seen, velero, policy, times);
    }
    let step = if seen.is_paused() { Step::Wait } else { step::next(seen, times, policy) };
    let (status, events) = status::after(seen, times, policy, &step);
    let reset = seen.schedule.spec.skip_immediately == Some(true) && !seen.is_paused();
    let reset = reset.then(|| Action::Patch(seen.target(), json!({"spec": {"skipImmediately": false}})));
    let resets = reset.is_some();
    let mut plan = Plan::done().then_if(status::patch(seen, &status)).then_if(reset);
    if resets {
        // The conditions are of the generation before.
        plan = plan.again_at_once();
    }
    plan.events.extend(events);
    plan = match &step {
        Step::Make(due) => {
            let plan = never_started(seen).fold(plan, Plan::then);
            make(seen, policy, due.due, plan).because("a run is due")
        }
        Step::Finish(due) => make(seen, policy, *due, plan).because("a run was begun and is not there"),
        Step::Skip(..) => plan.again_at_once().because("a run is skipped"),
        Step::Known(_) => plan.again_at_once().because("the run that is due is there already"),
        Step::Wait if seen.is_paused() => plan.because("it is paused"),
        Step::Wait => plan.because("no run is due"),
    };
    plan = keep::apply(seen, policy, Some(times), plan);
    match status::next_start(seen, times, &status).map(|next| next.duration_since(seen.now)) {
        Some(wait) if wait.is_positive() => plan.requeue_after(wait.unsigned_abs().min(LOOK_AGAIN)),
        Some(_) => plan.requeue_after(Duration::from_secs(1)),
        None => plan,
    }
}

fn make(seen: &Observed, policy: &Policy, due: Timestamp, plan: Plan) -> Plan {
    let run = backup(&seen.schedule, due, policy);
    plan.then(Action::Create(Object::of(Kind::NonAdminBackup, &run))).again_at_once()
}

/// Runs that were refused and never started: the new one takes their place, with what the schedule says now.
fn never_started(seen: &Observed) -> impl Iterator<Item = Action> {
    let refused = seen.runs.iter().filter(|run| matches!(run.progress(), Progress::Refused(_)));
    refused.map(|run| Action::Delete(Target::of(Kind::NonAdminBackup, &run.backup.metadata)))
}
