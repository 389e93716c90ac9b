//! Deleting a restore: its Velero Restore goes first. What was restored stays.

use api::Kind;

use super::{Observed, status};
use crate::request::Request;
use crate::{Action, Event, Plan, Target};

/// The reason for the last step, and for doing nothing after it.
const GONE: &str = "it is being deleted and Velero has nothing of it: only finalizers of others can keep it";

/// The Velero Restore is deleted first; Velero's finalizer may keep it until it has cleaned up.
pub(super) fn decide(seen: &Observed) -> Plan {
    let Some(velero) = &seen.velero else {
        if !seen.has_finalizer() {
            return Plan::done().because(GONE);
        }
        let plan = seen.drop_finalizer(Plan::done()).because(GONE);
        return plan.with_event(Event::normal("RestoreDeleted", "the restore is gone"));
    };
    let status = status::deleting(seen, velero);
    let mut plan = Plan::done().then_if(status::patch(seen, &status));
    if velero.metadata.deletion_timestamp.is_none() {
        plan = plan.then(Action::Delete(Target::of(Kind::Restore, &velero.metadata)));
    }
    plan.because("it is being deleted: its Velero Restore goes first")
}
