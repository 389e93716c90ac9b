//! Deleting a restore: its Velero Restore goes first. What was restored stays.

use api::Kind;

use super::{Observed, data, status};
use crate::queue::{Queued, Stage};
use crate::request::{Request, removal_lasts};
use crate::{Action, Event, Plan, Target};

/// The reason for the last step, and for doing nothing after it.
const GONE: &str = "it is being deleted and Velero has nothing of it: only finalizers of others can keep it";

/// Condition message while Velero works on it.
const AT_WORK: &str = "Velero is at work on it: volumes are being cancelled, and the Velero Restore is removed when \
                       Velero has ended it";

/// The Velero Restore is deleted first; Velero's finalizer may keep it until it has cleaned up. While Velero works on it,
/// its volume operations are cancelled, and it is deleted when Velero has ended it.
pub(super) fn decide(seen: &Observed) -> Plan {
    let Some(velero) = &seen.velero else {
        if !seen.has_finalizer() {
            return Plan::done().because(GONE);
        }
        let plan = seen.drop_finalizer(Plan::done()).because(GONE);
        return plan.with_event(Event::normal("RestoreDeleted", "the restore is gone"));
    };
    let at_work = velero.metadata.deletion_timestamp.is_none() && data::is_at_work(seen, velero);
    let lasts = removal_lasts(&velero.metadata, at_work, seen.rejected_write.as_deref());
    let message = if at_work { AT_WORK } else { "the Velero Restore is being removed" };
    let status = lasts.then(|| status::patch(seen, &status::deleting(seen, message))).flatten();
    let plan = Plan::done().then_if(status);
    let target = Target::of(Kind::Restore, &velero.metadata);
    if at_work || velero.metadata.deletion_timestamp.is_some() {
        let plan = data::cancelling(seen, velero, true).add_to(plan, seen.rejected_write.as_deref());
        return plan.because("it is being deleted: its Velero Restore goes when Velero has ended it");
    }
    // Velero may be starting one that waits right now.
    let is_waiting = velero.stage() == Stage::Waiting;
    let plan = plan.then(if is_waiting { Action::DeleteUnchanged(target) } else { Action::Delete(target) });
    plan.because("it is being deleted: its Velero Restore goes first")
}
