//! When to stop repairing: if another controller reverts every repair, nacre backs off.

use std::time::Duration;

use jiff::Timestamp;

use planner::plan::Action;

/// This many repairs within the time below count as a conflict with another controller.
pub(super) const MAX_REPAIRS: usize = 5;
/// How long nacre then waits before it retries.
pub(super) const CONTEST: Duration = Duration::from_mins(10);

/// Recent repairs. A CLI command has none.
#[derive(Clone, Copy, Debug)]
pub struct Repairs<'a> {
    /// Of what, and when.
    pub at: &'a [(String, Timestamp)],
    /// The time now.
    pub now: Timestamp,
}

impl Repairs<'_> {
    /// Whether somebody keeps undoing those of the object that an action repairs.
    pub fn contested(&self, action: &Action) -> bool {
        let key = counted(action);
        let of_it = self.at.iter().filter(|(repaired, _)| *repaired == key);
        of_it.filter(|(_, at)| self.now.duration_since(*at).unsigned_abs() < CONTEST).count() >= MAX_REPAIRS
    }
}

/// The name of what an action repairs.
pub fn repaired(action: &Action) -> &str {
    match action {
        Action::Create(object) | Action::Apply(object) => object.name(),
        Action::AddFinalizer(target, _)
        | Action::RemoveFinalizer(target, _)
        | Action::Patch(target, _)
        | Action::PatchStatus(target, _)
        | Action::Delete(target)
        | Action::DeleteUnchanged(target) => &target.name,
    }
}

/// Under what a repair is counted: a policy and its binding go by the same name.
pub fn counted(action: &Action) -> String {
    let kind = match action {
        Action::Create(object) | Action::Apply(object) => object.kind,
        Action::AddFinalizer(target, _)
        | Action::RemoveFinalizer(target, _)
        | Action::Patch(target, _)
        | Action::PatchStatus(target, _)
        | Action::Delete(target)
        | Action::DeleteUnchanged(target) => target.kind,
    };
    format!("{}/{}", kind.name(), repaired(action))
}
