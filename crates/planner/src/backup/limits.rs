//! The limits of a namespace: how many backups it may have, how many of them unfinished, how many bytes in the cluster's
//! storage, and how much of Velero's time in a day.

use api::{Kind, NonAdminBackup, Phase, condition, labels};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::{Observed, velero_of};
use crate::ownership::label;
use crate::policy::AtLimit;
use crate::queue::{Queued, Stage};
use crate::refusal::Frees;
use crate::request::Request as _;
use crate::state::State;
use crate::state::places::{Places, age};
use crate::usage::{Usage, until_tomorrow};
use crate::{HealedBy, Key, Plan, Policy, Refusal, healed_by};

/// How many older requests that wait are looked at, where only bytes are limited.
const MOST_AHEAD: usize = 16;

/// Why one more backup of this namespace would exceed a limit. Older requests that are yet to get their place count
/// too, so that of many decided at once only as many go ahead as there is room for, and the oldest first.
pub(super) fn over_limit(seen: &Observed, policy: &Policy) -> Option<Refusal> {
    let policy = &policy.backup;
    let refuse = |message: String, frees| Refusal::at_limit(FIELD, message, frees, policy.at_limit);
    refused_before(seen, policy.at_limit)
        .or_else(|| {
            let full = seen.others.full(policy.max_per_namespace, seen.others.alive)?;
            let message = format!("this namespace has as many backups as it may have, which is {full}");
            Some(refuse(message, Frees::Deletion))
        })
        .or_else(|| {
            let full = seen.others.full(policy.max_active_per_namespace, seen.others.active)?;
            let message =
                format!("this namespace has as many unfinished backups as it may have, which is {full}");
            Some(refuse(message, Frees::End))
        })
        .or_else(|| {
            let own_storage = seen.spec().backup_spec.storage_location.is_some();
            let (most, taken) = policy.max_bytes().filter(|_| !own_storage).zip(seen.others.bytes())?;
            let bound =
                format!("backups of this namespace may take {} of the cluster's storage, and ", size(most));
            let message = steady(seen, &bound, &format!("take about {}", size(taken)), Frees::Deletion);
            (taken >= most).then(|| refuse(message, Frees::Deletion))
        })
        .or_else(|| {
            let (most, worked) = (policy.max_work()?, seen.others.usage.work_seconds);
            let bound = format!("Velero may work {} a day for this namespace, and has ", time(most));
            let message =
                steady(seen, &bound, &format!("worked {} since midnight UTC", time(worked)), Frees::NextDay);
            (worked >= most).then(|| refuse(message, Frees::NextDay))
        })
}

/// The message with the bound and the figure. The figure changes all the time, so one that waits keeps the figure that it
/// was first told: a new one is not worth a write.
fn steady(seen: &Observed, bound: &str, figure: &str, frees: Frees) -> String {
    let reported = condition::get(seen.reported().1, condition::ACCEPTED);
    let before = reported.and_then(|found| {
        found.message.strip_prefix(FIELD)?.strip_prefix(": ")?.strip_suffix(frees.end(AtLimit::Wait))
    });
    before
        .filter(|before| before.starts_with(bound))
        .map_or_else(|| format!("{bound}{figure}"), str::to_owned)
}

/// The field that limits are about.
const FIELD: &str = "metadata.namespace";

/// What is refused at a limit stays refused: it does not start when nobody expects it any more.
fn refused_before(seen: &Observed, at_limit: AtLimit) -> Option<Refusal> {
    let accepted = condition::get(seen.reported().1, condition::ACCEPTED)
        .filter(|found| at_limit == AtLimit::Refuse && is_refused(found))?;
    let message = accepted.message.strip_prefix(FIELD).and_then(|rest| rest.strip_prefix(": "));
    message.map(|message| Refusal::new(FIELD, message))
}

/// It was refused at a limit, and does not wait for it.
fn is_refused(accepted: &Condition) -> bool {
    accepted.reason == condition::NAMESPACE_LIMIT_REACHED && healed_by(accepted) == Some(HealedBy::Spec)
}

/// Reports that a limit is reached. Whatever allows one more backup enqueues it; the next day comes by itself.
pub(super) fn wait(seen: &Observed, policy: &Policy, full: &Refusal) -> Plan {
    let plan = seen.refuse(condition::NAMESPACE_LIMIT_REACHED, &full.to_string());
    match policy.backup.max_work() {
        Some(_) if full.healed_by().is_waiting() => plan.requeue_after(until_tomorrow(seen.now)),
        _ => plan,
    }
}

fn size(bytes: u64) -> String {
    crate::volumes::size(i64::try_from(bytes).unwrap_or(i64::MAX))
}

/// A time of work: hours and minutes, and seconds below a minute.
fn time(seconds: u64) -> String {
    match (seconds / 3600, seconds / 60 % 60) {
        (0, 0) => format!("{seconds}s"),
        (0, minutes) => format!("{minutes}m"),
        (hours, 0) => format!("{hours}h"),
        (hours, minutes) => format!("{hours}h{minutes}m"),
    }
}

/// The other backups of a namespace, as far as limits are concerned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Others {
    /// Velero has these.
    pub alive: usize,
    /// And is not done with these.
    pub active: usize,
    /// Older requests that Velero is yet to be given.
    pub ahead: usize,
    /// What the namespace uses, where that is limited.
    pub usage: Usage,
}

impl Others {
    /// The limit, if it is reached.
    fn full(&self, most: Option<usize>, taken: usize) -> Option<usize> {
        most.filter(|most| taken + self.ahead >= *most)
    }

    /// The bytes that the namespace has, once what runs and what is ahead is over.
    fn bytes(&self) -> Option<u64> {
        u64::try_from(self.ahead).ok().map(|ahead| self.usage.bytes_with(ahead))
    }
}

/// Counts the other backups of the namespace, no further than the limits that are set: what one decision costs does not
/// grow with what waits.
pub(super) fn others(view: &State, backup: &NonAdminBackup, policy: &Policy) -> Others {
    let namespace = backup.metadata.namespace.as_deref().unwrap_or_default();
    let own = backup.metadata.name.as_deref().unwrap_or_default();
    let taken = taken(view, namespace, policy, own);
    let by_bytes = policy.backup.max_bytes().map(|_| MOST_AHEAD);
    let most = policy.backup.max_per_namespace.max(policy.backup.max_active_per_namespace).max(by_bytes);
    let older = view.places(namespace).map(|places| places.older(age(backup)));
    let ahead = older.into_iter().flatten().filter(|name| *name != own && waits(view, namespace, name));
    let usage = if by_bytes.is_some() || policy.backup.max_work().is_some() {
        view.usage(namespace)
    } else {
        Usage::default()
    };
    Others { ahead: ahead.take(most.unwrap_or(0)).count(), usage, ..taken }
}

/// What the requests of a namespace but for one have at Velero, no further than the limits.
fn taken(view: &State, namespace: &str, policy: &Policy, but: &str) -> Others {
    let Some(places) = view.places(namespace) else { return Others::default() };
    let at_velero = |name: &&str| *name != but && stage(view, namespace, name).is_some();
    let is_active = |name: &&str| {
        *name != but && stage(view, namespace, name).is_some_and(|stage| stage != Stage::Finished)
    };
    let (most, most_active) = (policy.backup.max_per_namespace, policy.backup.max_active_per_namespace);
    Others {
        alive: places.known().filter(at_velero).take(most.unwrap_or(0)).count(),
        active: places.active().filter(is_active).take(most_active.unwrap_or(0)).count(),
        ..Others::default()
    }
}

/// The requests that may start now: as many of the oldest that wait as there is room for.
pub(crate) fn next_in_line(view: &State, namespace: &str) -> Vec<Key> {
    let Some(policy) = view.policy(namespace).filter(|policy| policy.backup.has_limits()) else {
        // Without a limit nobody waits for one.
        return Vec::new();
    };
    let taken = taken(view, namespace, &policy, "");
    let free = |most: Option<usize>, taken: usize| most.map(|most| most.saturating_sub(taken));
    let rooms = [
        free(policy.backup.max_per_namespace, taken.alive),
        free(policy.backup.max_active_per_namespace, taken.active),
    ];
    let room = rooms.into_iter().flatten().min().unwrap_or(MOST_AHEAD);
    // Of those that wait for bytes, one at a time: how many it adds is known when it is over.
    let usage = view.usage(namespace);
    let mut for_bytes = match policy.backup.max_bytes() {
        Some(most) if usage.bytes_with(0) >= most => 0,
        Some(_) => 1,
        None => usize::MAX,
    };
    let waiting = view.places(namespace).map(Places::waiting);
    let waiting = waiting.into_iter().flatten().filter(|name| waits(view, namespace, name));
    let fitting = waiting.take(MOST_AHEAD.max(room)).filter(|name| {
        let request = view.get::<NonAdminBackup>(namespace, name);
        let own = request.is_some_and(|request| request.spec.backup_spec.storage_location.is_some());
        own || for_bytes.checked_sub(1).is_some_and(|left| {
            for_bytes = left;
            true
        })
    });
    fitting.take(room).map(|name| Key::new(Kind::NonAdminBackup, namespace, name)).collect()
}

/// How far Velero is with a request; none if Velero does not have it.
fn stage(view: &State, namespace: &str, name: &str) -> Option<Stage> {
    let request = view.get::<NonAdminBackup>(namespace, name)?;
    velero_of(view, &request).map(|velero| velero.stage())
}

fn waits(view: &State, namespace: &str, name: &str) -> bool {
    stage(view, namespace, name).is_none()
}

/// How much of its limits a namespace has used.
pub fn used(view: &State, namespace: &str) -> Others {
    let mut counts = Others::default();
    for request in view.list::<NonAdminBackup>(namespace) {
        counts.add(view, &request, true);
    }
    counts
}

impl Others {
    fn add(&mut self, view: &State, other: &NonAdminBackup, is_ahead: bool) {
        if let Some(velero) = velero_of(view, other) {
            self.alive += 1;
            self.active += usize::from(velero.stage() != Stage::Finished);
        } else if is_ahead && is_next(other) {
            self.ahead += 1;
        }
    }
}

/// Whether a request without a Velero Backup may yet get one by itself: nobody has decided about it, or it waits for
/// room or for the administrators.
pub(crate) fn is_next(backup: &NonAdminBackup) -> bool {
    let is_deleting = backup.metadata.deletion_timestamp.is_some() || backup.spec.delete_backup == Some(true);
    if is_deleting || label(&backup.metadata, labels::SYNCED_FROM).is_some() {
        return false;
    }
    let Some(status) = &backup.status else {
        return true;
    };
    let accepted = condition::get(&status.conditions, condition::ACCEPTED);
    match status.phase {
        None | Some(Phase::New) => true,
        Some(Phase::BackingOff) => accepted.is_some_and(|found| {
            !is_refused(found)
                && matches!(
                    found.reason.as_str(),
                    condition::NAMESPACE_LIMIT_REACHED
                        | condition::POLICY_UNAVAILABLE
                        | condition::NAMESPACE_NOT_SEEN
                )
        }),
        Some(Phase::Created | Phase::Deleting) => false,
    }
}

#[cfg(test)]
#[path = "limits_tests.rs"]
mod tests;
