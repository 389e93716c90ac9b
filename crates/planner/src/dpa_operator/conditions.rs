//! The conditions of a DataProtectionApplication.

use api::condition::{self, Finding};
use api::{DataProtectionApplication, Kind};
use jiff::Timestamp;
use serde_json::json;

use crate::{Action, Target};

/// Sets `Reconciled`, if it does not say so already.
pub(super) fn report(
    one: &DataProtectionApplication,
    problem: Option<&str>,
    now: Timestamp,
) -> Option<Action> {
    let before = one.status.as_ref().map(|status| status.conditions.clone()).unwrap_or_default();
    let mut after = before.clone();
    let finding = Finding {
        type_: condition::RECONCILED,
        status: problem.is_none().into(),
        reason: if problem.is_some() { condition::ERROR } else { condition::COMPLETE },
        message: problem.unwrap_or("Reconcile complete"),
    };
    condition::set(&mut after, finding, one.metadata.generation, now);
    let target = Target::of(Kind::DataProtectionApplication, &one.metadata);
    (before != after).then(|| Action::PatchStatus(target, json!({"status": {"conditions": after}})))
}
