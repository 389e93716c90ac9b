//! Taking over from the Go controller, which had Velero make the backups by a Velero Schedule.
//!
//! That Velero Schedule is deleted once, and its Backups stay and count as runs. When Velero last made or skipped one is
//! written down first, so that no run is made twice; and what was due since and was not made is made up for, so that none
//! is lost.

use std::sync::Arc;
use std::time::Duration;

use api::velero::Schedule;
use api::{Kind, NonAdminBackup, NonAdminSchedule, labels};
use jiff::SignedDuration;
use kube::core::ObjectMeta;
use serde_json::json;

use super::due::Times;
use super::run::label_value;
use super::step::Step;
use super::{Observed, of_run, status, step};
use crate::ownership::{annotation, label};
use crate::state::State;
use crate::{Action, Key, Plan, Policy, Target, backup};

/// Velero writes down that it made a backup after it has made it. Around a time that is due, the two may differ.
const BEFORE: SignedDuration = SignedDuration::from_secs(30);
const AFTER: SignedDuration = SignedDuration::from_mins(2);
/// How long to wait for that.
const WAIT: Duration = Duration::from_secs(30);
/// How many backups are made runs at once.
const AT_ONCE: usize = 20;
/// On a Velero Backup: the Velero Schedule that it was made by.
const VELERO_SCHEDULE: &str = "velero.io/schedule-name";
const AT_IT: &str = "Velero may be making a run of its Velero Schedule";

/// The schedule that a Velero Schedule was made for; none if it is not one of ours.
pub(crate) fn origin(velero: &ObjectMeta) -> Option<Key> {
    let ours = label(velero, labels::MANAGED_BY) == Some(labels::MANAGED_BY_VALUE)
        && label(velero, labels::NAS_NACUUID).is_some();
    let (namespace, name) =
        (annotation(velero, labels::NAS_NAMESPACE)?, annotation(velero, labels::NAS_NAME)?);
    ours.then(|| Key::new(Kind::NonAdminSchedule, namespace, name))
}

/// The Velero Schedule that the Go controller made for a schedule: by its label and annotations or, where these have other
/// names than nacre knows, by the name in the schedule's status. A status is only a hint: what it names must be managed
/// by the Go controller, back up this namespace alone, and not say that it was made for another schedule.
pub(super) fn find(view: &State, schedule: &NonAdminSchedule, this: &Key) -> Option<Arc<Schedule>> {
    view.velero_schedule_for(&this.namespace, &this.name).or_else(|| {
        let shown = schedule.status.as_ref()?.velero_schedule.as_ref()?;
        let velero = view.admin::<Schedule>(shown.name.as_deref().or(shown.nacuuid.as_deref())?)?;
        let is_managed = label(&velero.metadata, labels::MANAGED_BY) == Some(labels::MANAGED_BY_VALUE);
        let of_namespace = velero.spec.template.included_namespaces.as_deref()
            == Some(std::slice::from_ref(&this.namespace));
        let elsewhere = origin(&velero.metadata).is_some_and(|other| other != *this);
        (is_managed && of_namespace && !elsewhere).then_some(velero)
    })
}

/// The backups that Velero made by this Velero Schedule, as far as they are not counted as runs yet. Velero labels its
/// Backups, and only those that are the namespace's own are looked at.
pub(super) fn made_by(view: &State, velero: &Schedule, namespace: &str) -> Vec<Arc<NonAdminBackup>> {
    let of_schedule = |backup: &Arc<NonAdminBackup>| {
        let own = backup::velero_of(view, backup);
        own.is_some_and(|own| label(&own.metadata, VELERO_SCHEDULE) == velero.metadata.name.as_deref())
    };
    let all = view.list::<NonAdminBackup>(namespace).into_iter();
    all.filter(|backup| of_run(&backup.metadata).is_none()).filter(of_schedule).collect()
}

/// Whether the schedule that a Velero Schedule was made for is gone: it would run for ever.
pub(crate) fn is_left(view: &State, velero: &ObjectMeta) -> bool {
    origin(velero).is_some_and(|key| view.get::<NonAdminSchedule>(&key.namespace, &key.name).is_none())
}

/// Writes down when Velero last made or skipped a backup, and deletes the Velero Schedule. If Velero makes another one meanwhile, the
/// Velero Schedule is changed, and the deletion fails.
pub(super) fn decide(seen: &Observed, velero: &Schedule, policy: &Policy, times: &Times) -> Plan {
    if velero_may_be_at_it(seen, times) {
        return Plan::done().requeue_after(WAIT).because(AT_IT);
    }
    let (status, events) = status::after(seen, times, policy, &Step::Wait);
    let mut plan = Plan::done().then_if(status::patch(seen, &status));
    plan.events.extend(events);
    delete(seen, velero, plan)
        .because("nacre runs it: the Velero Schedule of the Go controller goes, its Backups stay")
}

/// The same for a schedule that is refused, with the plan for that: Velero would go on making runs that nobody judges.
pub(super) fn end(seen: &Observed, times: Option<&Times>, plan: Plan) -> Plan {
    match &seen.velero_schedule {
        None => plan,
        Some(_) if times.is_some_and(|times| velero_may_be_at_it(seen, times)) => {
            plan.requeue_after(WAIT).because(AT_IT)
        }
        Some(velero) => delete(seen, velero, plan),
    }
}

/// Before it goes, what Velero made by it becomes runs of the schedule: nobody could tell later.
fn delete(seen: &Observed, velero: &Schedule, plan: Plan) -> Plan {
    let label = json!({"metadata": {"labels": {labels::NAS_NAME: label_value(seen.name())}}});
    let tie = |backup: &Arc<NonAdminBackup>| {
        Action::Patch(Target::of(Kind::NonAdminBackup, &backup.metadata), label.clone())
    };
    let plan = seen.made_by_velero.iter().take(AT_ONCE).map(tie).fold(plan, Plan::then);
    if seen.made_by_velero.len() > AT_ONCE {
        return plan.again_at_once();
    }
    remove(velero, plan)
}

/// Removes a Velero Schedule that has not changed since it was seen.
pub(super) fn remove(velero: &Schedule, plan: Plan) -> Plan {
    if velero.metadata.deletion_timestamp.is_some() {
        return plan.requeue_after(WAIT);
    }
    // Where only the status names it, its end wakes nobody.
    plan.then(Action::DeleteUnchanged(Target::of(Kind::Schedule, &velero.metadata))).again_at_once()
}

/// Whether a run is due in a moment, or was due a moment ago and Velero has not written down that it made it. What Velero
/// has not made for longer, it does not make: its runs may be due so often that there is always one of a moment ago.
fn velero_may_be_at_it(seen: &Observed, times: &Times) -> bool {
    let Some(next) = times.cron.next(seen.now) else { return false };
    let interval = times.cron.next(next).map(|following| following.duration_since(next));
    // Velero looks once a minute, at any second of it: of runs every minute, little must be left out.
    let before = interval.map_or(BEFORE, |interval| BEFORE.min(interval / 12));
    let made = step::by_velero(seen).or_else(|| Some(seen.schedule.metadata.creation_timestamp.as_ref()?.0));
    let missing = made.and_then(|made| times.cron.next(made));
    next < seen.now + before || missing.is_some_and(|due| due <= seen.now && due > seen.now - AFTER)
}
