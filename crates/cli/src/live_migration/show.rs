//! Putting plans, paths and rights into words.

use planner::{
    kubevirt::Power,
    plan::{Action, Plan},
    rbac::{Path, Scope},
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::output::lines;

/// An action as it is listed in a dry run or in an error.
pub(super) fn action(action: &Action) -> String {
    match action {
        Action::Create(object) | Action::Apply(object) => {
            format!("create {}", named(object.kind, object.namespace(), object.name()))
        }
        Action::Patch(target, _)
        | Action::PatchStatus(target, _)
        | Action::AddFinalizer(target, _)
        | Action::RemoveFinalizer(target, _) => {
            format!("change {}", named(target.kind, &target.namespace, &target.name))
        }
        Action::Delete(target) | Action::DeleteUnchanged(target) => {
            format!("delete {}", named(target.kind, &target.namespace, &target.name))
        }
    }
}

/// What a plan did or would do, line by line; these words if that is nothing.
pub(super) fn plan(plan: &Plan, dry_run: bool, nothing: &str) -> String {
    if plan.actions.is_empty() {
        return format!("{nothing}\n");
    }
    let verb = if dry_run { "would " } else { "" };
    lines(plan.actions.iter().map(|one| format!("{verb}{}", action(one))))
}

/// The objects a plan is about, as `-o name` prints them.
pub(super) fn objects(plan: &Plan) -> Vec<String> {
    plan.actions
        .iter()
        .map(|one| action(one).split_once(' ').map_or_else(String::new, |(_, name)| name.to_owned()))
        .collect()
}

/// A plan for programs: what is done to what, with the manifest or the change.
#[derive(Serialize)]
pub(super) struct Step {
    action: &'static str,
    object: String,
    body: Value,
}

pub(super) fn steps(plan: &Plan) -> Vec<Step> {
    plan.actions
        .iter()
        .zip(objects(plan))
        .map(|(action, object)| match action {
            // Live-migration permissions are applied only where there are none yet.
            Action::Create(made) | Action::Apply(made) => {
                Step { action: "create", object, body: made.body.clone() }
            }
            Action::Delete(_) | Action::DeleteUnchanged(_) => {
                Step { action: "delete", object, body: Value::Null }
            }
            Action::Patch(_, change) | Action::PatchStatus(_, change) => {
                Step { action: "change", object, body: change.clone() }
            }
            Action::AddFinalizer(..) | Action::RemoveFinalizer(..) => {
                Step { action: "change", object, body: Value::Null }
            }
        })
        .collect()
}

/// A plan that only makes things, as manifests that kubectl takes.
pub(super) fn manifests(plan: &Plan) -> Option<Value> {
    let body = |action: &Action| match action {
        Action::Create(made) | Action::Apply(made) => Some(made.body.clone()),
        _ => None,
    };
    let items: Vec<Value> = plan.actions.iter().map(body).collect::<Option<_>>()?;
    Some(json!({ "apiVersion": "v1", "kind": "List", "items": items }))
}

fn named(kind: api::Kind, namespace: &str, name: &str) -> String {
    let kind = kind.name().to_lowercase();
    if namespace.is_empty() { format!("{kind}/{name}") } else { format!("{kind}/{name} in {namespace}") }
}

/// Where a right holds.
pub(super) fn place(scope: &Scope) -> String {
    scope.namespace().unwrap_or("*").to_owned()
}

/// Several powers in one cell.
pub(super) fn powers(powers: &[Power]) -> String {
    if powers == Power::ALL {
        return "all".to_owned();
    }
    powers.iter().map(|power| power.name()).collect::<Vec<_>>().join(",")
}

/// A path on one line, from the binding to the rule.
pub(super) fn path(path: &Path) -> String {
    let steps: Vec<String> = path.via.iter().map(|via| format!(" <- {} ({})", via.role, via.label)).collect();
    let steps = steps.concat();
    let only = if path.only.is_empty() { String::new() } else { format!(" only {}", path.only.join(",")) };
    format!("{} -> {}{steps}: {}{only}", path.binding, path.role, path.rule)
}

/// Where paths begin and end, without repetition.
pub(super) fn sources(paths: &[Path]) -> String {
    let mut found: Vec<String> = paths
        .iter()
        .map(|path| match path.via.last() {
            Some(last) => format!("{} -> {} <- {}", path.binding, path.role, last.role),
            None => format!("{} -> {}", path.binding, path.role),
        })
        .collect();
    found.sort();
    found.dedup();
    found.join("; ")
}
