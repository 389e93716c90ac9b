//! Putting steps of an installation into words.

use planner::{Action, Object, Plan, Target};
use serde::Serialize;

/// What was or would be done, for people and programs.
#[derive(Serialize)]
pub(super) struct Answer {
    pub(super) dry_run: bool,
    pub(super) namespace: String,
    pub(super) changes: Vec<Change>,
    /// What stays as it is, and why.
    pub(super) remarks: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Change {
    pub(super) action: &'static str,
    pub(super) object: String,
}

/// One line per step.
pub(super) fn changes(plan: &Plan) -> Vec<Change> {
    plan.actions.iter().map(change).collect()
}

fn change(action: &Action) -> Change {
    match action {
        Action::Create(object) => Change { action: "create", object: named(object) },
        Action::Apply(object) => {
            let known = object.body["metadata"]["uid"].is_string();
            Change { action: if known { "change" } else { "create" }, object: named(object) }
        }
        Action::Release(target, _) => Change { action: "let go of", object: pointed(target) },
        Action::Hold(target, _) | Action::Patch(target, _) | Action::PatchStatus(target, _) => {
            Change { action: "change", object: pointed(target) }
        }
        Action::Delete(target) | Action::DeleteUnchanged(target) => {
            Change { action: "delete", object: pointed(target) }
        }
    }
}

/// As kubectl names it, and where it is.
pub(super) fn named(object: &Object) -> String {
    words(object.kind, object.namespace(), object.name())
}

fn pointed(target: &Target) -> String {
    words(target.kind, &target.namespace, &target.name)
}

fn words(kind: api::Kind, namespace: &str, name: &str) -> String {
    let kind = kind.name().to_lowercase();
    if namespace.is_empty() { format!("{kind}/{name}") } else { format!("{kind}/{name} in {namespace}") }
}

impl Answer {
    /// What was done, line by line; many of one sort are counted.
    pub(super) fn table(&self, nothing: &str) -> String {
        if self.changes.is_empty() {
            return format!("{nothing}\n");
        }
        let verb = if self.dry_run { "would " } else { "" };
        crate::output::lines(self.changes.iter().map(|one| format!("{verb}{} {}", one.action, one.object)))
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.changes.iter().map(|one| one.object.clone()).collect()
    }
}
