//! The steps of an installation, as text.

use planner::install::{Difference, differences};
use planner::{Action, Object, Plan, Target};
use serde::Serialize;
use serde_json::Value;

use crate::output::lines;

/// What was or would be done, for people and programs.
#[derive(Serialize)]
pub(super) struct InstallChanges {
    pub(super) dry_run: bool,
    pub(super) namespace: String,
    pub(super) changes: Vec<Change>,
    /// What stays as it is, and why.
    pub(super) remarks: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Change {
    pub(super) action: &'static str,
    pub(super) object: String,
    /// What differs in an object that is there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) fields: Vec<Difference>,
}

/// One for each step, on what was found.
pub(super) fn changes(plan: &Plan, found: &[Object]) -> Vec<Change> {
    plan.actions.iter().map(|action| change(action, found)).collect()
}

fn change(action: &Action, found: &[Object]) -> Change {
    let step = |action: &'static str, object: String| Change { action, object, fields: Vec::new() };
    match action {
        Action::Create(object) => step("create", named(object)),
        Action::Apply(object) => {
            let name = named(object);
            match found.iter().find(|one| one.kind == object.kind && named(one) == name) {
                Some(found) => {
                    Change { fields: differences(&found.body, &object.body), ..step("change", name) }
                }
                None => step("create", name),
            }
        }
        Action::RemoveFinalizer(target, _) => step("let go of", pointed(target)),
        Action::AddFinalizer(target, _) | Action::Patch(target, _) | Action::PatchStatus(target, _) => {
            step("change", pointed(target))
        }
        Action::Delete(target) | Action::DeleteUnchanged(target) => step("delete", pointed(target)),
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

/// How many fields of one object are shown to people: definitions have hundreds.
const ENOUGH: usize = 20;
/// How much of a value is: rules and expressions are long.
const WIDTH: usize = 160;

fn field(one: &Difference) -> String {
    format!("    {}: {} -> {}", one.field, value(&one.old), value(&one.new))
}

fn value(value: &Value) -> String {
    let text = match value {
        Value::Null => "(not set)".to_owned(),
        Value::String(text) if !text.is_empty() && !text.contains(char::is_whitespace) => text.clone(),
        other => other.to_string(),
    };
    let cut: String = text.chars().take(WIDTH).collect();
    if cut.len() < text.len() { format!("{cut}...") } else { cut }
}

impl InstallChanges {
    /// What was done, line by line. Before it is done, also which fields would change.
    pub(super) fn table(&self, nothing: &str) -> String {
        if self.changes.is_empty() {
            return format!("{nothing}\n");
        }
        if !self.dry_run {
            return lines(self.changes.iter().map(|one| format!("{} {}", one.action, one.object)));
        }
        let step = |one: &Change| {
            let head = format!("would {} {}", one.action, one.object);
            let fields = one.fields.iter().take(ENOUGH).map(field);
            let more = one.fields.len().saturating_sub(ENOUGH);
            let rest = (more > 0).then(|| format!("    and {more} more fields; -o yaml shows all"));
            [head].into_iter().chain(fields).chain(rest).collect::<Vec<_>>()
        };
        lines(self.changes.iter().flat_map(step))
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.changes.iter().map(|one| one.object.clone()).collect()
    }
}
