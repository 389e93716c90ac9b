//! The limits of a namespace: how many backups it may have, and how many of them unfinished.

use api::{Kind, NonAdminBackup, Phase, condition, labels};

use super::{Observed, velero_of};
use crate::ownership::label;
use crate::queue::{Queued, Stage};
use crate::state::State;
use crate::state::places::{Places, age};
use crate::{Key, Policy, Refusal};

/// Why one more backup of this namespace would exceed a limit. Older requests that are yet to get their place count
/// too, so that of many decided at once only as many go ahead as there is room for, and the oldest first.
pub(super) fn over_limit(seen: &Observed, policy: &Policy) -> Option<Refusal> {
    let Others { alive, active, ahead } = seen.others;
    let full = |most: Option<usize>, taken: usize| most.filter(|most| taken + ahead >= *most);
    let policy = &policy.backup;
    let too_many = |most| {
        let message = format!("this namespace has as many backups as it may have, which is {most}");
        Refusal::over_limit("metadata.namespace", message)
    };
    let too_busy = |most| {
        let message =
            format!("this namespace has as many unfinished backups as it may have, which is {most}");
        Refusal::too_busy("metadata.namespace", message)
    };
    full(policy.max_per_namespace, alive)
        .map(too_many)
        .or_else(|| full(policy.max_active_per_namespace, active).map(too_busy))
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
}

/// Counts the other backups of the namespace, no further than the limits that are set: what one decision costs does not
/// grow with what waits.
pub(super) fn others(view: &State, backup: &NonAdminBackup, policy: &Policy) -> Others {
    let namespace = backup.metadata.namespace.as_deref().unwrap_or_default();
    let own = backup.metadata.name.as_deref().unwrap_or_default();
    let taken = taken(view, namespace, policy, own);
    let most = policy.backup.max_per_namespace.max(policy.backup.max_active_per_namespace).unwrap_or(0);
    let older = view.places(namespace).map(|places| places.older(age(backup)));
    let ahead = older.into_iter().flatten().filter(|name| *name != own && waits(view, namespace, name));
    Others { ahead: ahead.take(most).count(), ..taken }
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
        ahead: 0,
    }
}

/// The requests that may start now: as many of the oldest that wait as there is room for.
pub(crate) fn next_in_line(view: &State, namespace: &str) -> Vec<Key> {
    let Some(policy) = view.policy(namespace) else { return Vec::new() };
    let taken = taken(view, namespace, &policy, "");
    let free = |most: Option<usize>, taken: usize| most.map(|most| most.saturating_sub(taken));
    let rooms = [
        free(policy.backup.max_per_namespace, taken.alive),
        free(policy.backup.max_active_per_namespace, taken.active),
    ];
    // Without a limit nobody waits for room.
    let Some(room) = rooms.into_iter().flatten().min() else { return Vec::new() };
    let waiting = view.places(namespace).map(Places::waiting);
    let waiting = waiting.into_iter().flatten().filter(|name| waits(view, namespace, name));
    waiting.take(room).map(|name| Key::new(Kind::NonAdminBackup, namespace, name)).collect()
}

/// How far Velero is with a request; none if Velero does not have it.
fn stage(view: &State, namespace: &str, name: &str) -> Option<Stage> {
    let request = view.backup(namespace, name)?;
    velero_of(view, &request.object).map(|velero| velero.stage())
}

fn waits(view: &State, namespace: &str, name: &str) -> bool {
    stage(view, namespace, name).is_none()
}

/// How much of its limits a namespace has used.
pub fn used(view: &State, namespace: &str) -> Others {
    let mut counts = Others::default();
    for seen in view.backups_in(namespace) {
        counts.add(view, &seen.object, true);
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
            [condition::NAMESPACE_LIMIT_REACHED, condition::POLICY_UNAVAILABLE]
                .contains(&found.reason.as_str())
        }),
        Some(Phase::Created | Phase::Deleting) => false,
    }
}

#[cfg(test)]
#[path = "limits_tests.rs"]
mod tests;
