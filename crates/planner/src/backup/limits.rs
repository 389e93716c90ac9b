//! The limits of a namespace: how many backups it may have, and how many of them unfinished.

use api::{NonAdminBackup, Phase, condition, labels};

use super::{Observed, velero_of};
use crate::ownership::label;
use crate::queue::{Queued, Stage};
use crate::state::State;
use crate::{Policy, Refusal};

/// Why one more backup of this namespace would exceed a limit.
pub(super) struct OverLimit {
    /// In words.
    pub(super) refusal: Refusal,
    /// The limit is not reached, but older requests come first.
    pub(super) contested: bool,
}

/// Whether the namespace has as much as it may have. Older requests that are yet to get their place count too, so
/// that of many decided at once only as many go ahead as there is room for, and the oldest first.
pub(super) fn over_limit(seen: &Observed, policy: &Policy) -> Option<OverLimit> {
    let Others { alive, active, ahead } = seen.others;
    let full = |most: Option<usize>, taken: usize, message: &dyn Fn(usize) -> Refusal| {
        let most = most.filter(|most| taken + ahead >= *most)?;
        let refusal = message(most);
        Some(OverLimit { refusal, contested: taken < most })
    };
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
    full(policy.max_per_namespace, alive, &too_many)
        .or_else(|| full(policy.max_active_per_namespace, active, &too_busy))
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

/// Counts the other backups of the namespace, if anybody has set a limit.
pub(super) fn others(view: &State, backup: &NonAdminBackup, policy: &Policy) -> Others {
    let mut counts = Others::default();
    if policy.backup.max_per_namespace.is_none() && policy.backup.max_active_per_namespace.is_none() {
        return counts;
    }
    let namespace = backup.metadata.namespace.as_deref().unwrap_or_default();
    let age = |of: &NonAdminBackup| {
        (of.metadata.creation_timestamp.as_ref().map(|time| time.0), of.metadata.name.clone())
    };
    let mine = age(backup);
    let others = view.backups_in(namespace).into_iter().map(|seen| seen.object);
    for other in others.filter(|other| other.metadata.uid != backup.metadata.uid) {
        counts.add(view, &other, age(&other) < mine);
    }
    counts
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
fn is_next(backup: &NonAdminBackup) -> bool {
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
