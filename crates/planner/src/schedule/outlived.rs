//! Backups that outlive their schedule. While there is one, a schedule with a retention deletes what is not kept, so its runs
//! get the longest ttl that is allowed. When it is gone, nobody does: each backup then expires after the ttl that the
//! template asked for, counted from the day on which nacre notices, but not sooner than the policy in force then allows.
//! If the schedule comes back, so does the time.

use api::velero::Backup;
use api::{Kind, NonAdminBackup, NonAdminSchedule, labels};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::run::label_value;
use super::runs::Run;
use super::{keep, of_run, retention};
use crate::ownership::annotation;
use crate::state::State;
use crate::{Action, Policy, Target, backup};

/// What Velero does where nobody names a ttl.
pub(super) const VELERO_TTL: &str = "720h";
/// Below this, a difference is not worth a write.
const SLACK: SignedDuration = SignedDuration::from_hours(1);

/// The ttl of a run once its schedule is gone; none for a run that has that ttl anyway.
pub(super) fn ttl(schedule: &NonAdminSchedule, policy: &Policy) -> Option<String> {
    if !keep::replaces_ttl(schedule, policy) || policy.backup.enforce.ttl.is_some() {
        return None;
    }
    // Zero is what Go clients send for a field that is not set.
    let asked = schedule.spec.template.backup_spec.ttl.as_ref().filter(|ttl| !ttl.is_zero());
    let asked = asked.or(policy.backup.defaults.ttl.as_ref());
    Some(asked.map_or_else(|| VELERO_TTL.to_owned(), ToString::to_string))
}

/// Moves the expiration of a Velero Backup whose schedule is gone, if it is too far away.
pub(crate) fn shorten(view: &State, velero: &Backup) -> Option<(Target, Value)> {
    let (namespace, name) = annotation(&velero.metadata, labels::NAB_NAMESPACE)
        .zip(annotation(&velero.metadata, labels::NAB_NAME))?;
    let request = view.get::<NonAdminBackup>(namespace, name)?;
    let ttl = api::Duration::from(annotation(&request.metadata, labels::TTL_AFTER_SCHEDULE)?).to_std()?;
    let ttl = SignedDuration::try_from(ttl).ok().filter(SignedDuration::is_positive)?;
    let ttl = ttl.max(shortest_ttl(view.policy(namespace)?.as_ref()));
    let own = backup::velero_of(view, &request).is_some_and(|own| own.metadata.uid == velero.metadata.uid);
    if !own || has_schedule(view, &request) {
        return None;
    }
    let expiration = velero.status.as_ref()?.expiration.as_ref()?.0;
    let until = view.now().checked_add(ttl).ok()?;
    (expiration > until.checked_add(SLACK).ok()?).then(|| moved(velero, until, Some(&expiration.to_string())))
}

/// The shortest time that backups may be kept. A tenant can write the time onto a run, and delete the schedule.
fn shortest_ttl(policy: &Policy) -> SignedDuration {
    let least = policy.backup.ttl.min.as_ref().and_then(api::Duration::to_std);
    // Of a floor, only this part is a time; the others count backups, and need a schedule to count for.
    let floor = policy.schedules.retention.min.keep_within.as_deref().and_then(retention::within);
    let longest = least.max(floor).unwrap_or_default();
    SignedDuration::try_from(longest).unwrap_or(SignedDuration::MAX)
}

fn has_schedule(view: &State, run: &NonAdminBackup) -> bool {
    let Some((namespace, of)) = run.metadata.namespace.as_deref().zip(of_run(&run.metadata)) else {
        // It is no run of any schedule: nothing of it is moved.
        return true;
    };
    let schedules = view.list::<NonAdminSchedule>(namespace);
    schedules
        .iter()
        .filter_map(|schedule| schedule.metadata.name.as_deref())
        .any(|name| label_value(name) == of)
}

/// Gives a run of a schedule that came back its time again.
pub(super) fn give_back(run: &Run) -> Option<Action> {
    let velero = run.velero.as_deref()?;
    let before: Timestamp = annotation(&velero.metadata, labels::EXPIRATION_BEFORE)?.parse().ok()?;
    let expiration = velero.status.as_ref()?.expiration.as_ref()?.0;
    let (target, body) = moved(velero, expiration.max(before), None);
    Some(Action::Patch(target, body))
}

fn moved(velero: &Backup, expiration: Timestamp, before: Option<&str>) -> (Target, Value) {
    let whole = Timestamp::from_second(expiration.as_second()).unwrap_or(expiration);
    let body = json!({
        "metadata": {"annotations": {labels::EXPIRATION_BEFORE: before}}, "status": {"expiration": Time(whole)},
    });
    (Target::of(Kind::Backup, &velero.metadata), body)
}
