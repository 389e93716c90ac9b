//! The four roles: made, adopted, upgraded, rolled back and repaired by one and the same decision.
//!
//! Nothing here asks what happened before: whatever the roles are now, the plan leads to what was asked for, in an order in which
//! nobody who keeps a right is without it for a moment. Roles that are not these four are never touched.

use std::collections::BTreeMap;

use api::Kind;
use k8s_openapi::api::{core::v1::ConfigMap, rbac::v1::ClusterRole};
use kube::ResourceExt;
use serde_json::{Map, Value, json};

use super::{
    contest::{CONTEST, Repairs, repaired},
    roles::{Era, Role},
    settings::Settings,
};
use planner::plan::{Action, Event, Object, Plan, Target};
use planner::rbac::rules;

/// Written by KubeVirt's operator, and by nobody else, on what it manages.
const OPERATORS_MARK: &str = "kubevirt.io/install-strategy-version";

/// Event reason: another controller keeps changing a role, and nacre backs off.
pub const ROLES_CONTESTED: &str = "RolesContested";
/// Event reason: a role was changed and is repaired.
pub const ROLE_REPAIRED: &str = "RoleRepaired";

/// Everything the decision reads.
#[derive(Clone, Copy)]
pub struct Observed<'a> {
    /// The settings.
    pub settings: &'a Settings,
    /// Where that is kept, once it is.
    pub config: Option<&'a ConfigMap>,
    /// Every cluster role there is.
    pub cluster_roles: &'a [ClusterRole],
    /// Where KubeVirt's operator runs, if it does.
    pub virt_operator: Option<&'a str>,
    /// When roles were repaired of late.
    pub repairs: Repairs<'a>,
}

impl<'a> Observed<'a> {
    /// One of the four, if it is there.
    pub fn role(&self, role: Role) -> Option<&'a ClusterRole> {
        self.named(role.name())
    }

    /// Any role of that name.
    pub fn named(&self, name: &str) -> Option<&'a ClusterRole> {
        self.cluster_roles.iter().find(|found| found.metadata.name.as_deref() == Some(name))
    }

    /// Why the roles are KubeVirt's own operator's to manage, if they are.
    pub fn step_aside(&self) -> Option<String> {
        if let Some(namespace) = self.virt_operator {
            return Some(format!("a virt-operator runs in namespace {namespace}"));
        }
        let marked = |role: &&ClusterRole| role.annotations().contains_key(OPERATORS_MARK);
        let left = Role::ALL.into_iter().filter_map(|role| self.role(role)).find(marked)?;
        let why = || format!("{} carries virt-operator's annotation {OPERATORS_MARK}", left.name_any());
        (!self.settings.take_over).then(why)
    }
}

/// Decides what to do about the four roles.
pub fn decide(seen: &Observed<'_>) -> Plan {
    let Some(era) = seen.settings.roles else {
        return Plan::done();
    };
    if seen.step_aside().is_some() {
        return Plan::done();
    }
    let plan = Plan::done().then_if(remember(seen));
    let (contested, wrong): (Vec<_>, Vec<_>) =
        wrong(seen, era).into_iter().partition(|action| seen.repairs.contested(action));
    let plan = if contested.is_empty() {
        plan
    } else {
        let note = format!("something else keeps changing {}; nacre will try again", names(&contested));
        plan.with_event(Event::warning(ROLES_CONTESTED, note)).requeue_after(CONTEST)
    };
    if wrong.is_empty() {
        return plan;
    }
    let plan = plan.with_event(Event::normal(ROLE_REPAIRED, format!("put right: {}", names(&wrong))));
    let plan = if seen.role(Role::Migrate).is_none() { plan.again_at_once() } else { plan };
    wrong.into_iter().fold(plan, Plan::then)
}

/// What is not as it should be, and how to put it right.
fn wrong(seen: &Observed<'_>, era: Era) -> Vec<Action> {
    if seen.role(Role::Migrate).is_none() {
        // Bindings that wait for this role come alive with it; nothing is taken away before it is there to be read.
        return vec![create(Role::Migrate, era, &seen.settings.remembered)];
    }
    // The role to migrate comes before those that lose it. The authorizer and the aggregation controller see cluster roles change in
    // this order, so that neither ever knows of the loss but not of a bridge or a label that makes up for it.
    Role::ALL.into_iter().filter_map(|role| put_right(seen, role, era)).collect()
}

/// All the steps from here, for whoever wants to see them before the first is taken.
pub fn outline(seen: &Observed<'_>) -> Plan {
    let first = decide(seen);
    if first.actions.is_empty() || seen.role(Role::Migrate).is_some() {
        return first;
    }
    let made = Role::Migrate.object(seen.settings.roles.unwrap_or_default());
    let roles: Vec<ClusterRole> = seen.cluster_roles.iter().cloned().chain([made]).collect();
    let rest = decide(&Observed { cluster_roles: &roles, config: None, ..*seen });
    rest.actions.into_iter().fold(first, Plan::then)
}

fn names(wrong: &[Action]) -> String {
    wrong.iter().map(repaired).collect::<Vec<_>>().join(", ")
}

fn create(role: Role, era: Era, labels: &BTreeMap<String, String>) -> Action {
    let mut object = role.object(era);
    for (key, value) in labels {
        object.labels_mut().entry(key.clone()).or_insert_with(|| value.clone());
    }
    Action::Apply(Object::of(Kind::ClusterRole, &object))
}

/// What it takes to make one role as it should be; nothing if it is.
fn put_right(seen: &Observed<'_>, role: Role, era: Era) -> Option<Action> {
    let Some(found) = seen.role(role) else {
        return Some(create(role, era, &BTreeMap::new()));
    };
    let change = difference(found, role, era);
    if change.is_empty() {
        return None;
    }
    let mut patch = Value::Object(change);
    // With the version it was judged by: a label somebody sets meanwhile is a conflict, not a loss.
    patch["metadata"]["resourceVersion"] = json!(found.resource_version());
    Some(Action::Patch(Target::of(Kind::ClusterRole, &found.metadata), patch))
}

/// Our labels, our rules, and no aggregation rule: with one, another controller would write the rules. All else is others'.
fn difference(found: &ClusterRole, role: Role, era: Era) -> Map<String, Value> {
    let mut change = Map::new();
    let labels: Map<String, Value> = role
        .labels()
        .into_iter()
        .filter(|(key, value)| found.labels().get(key) != Some(value))
        .map(|(key, value)| (key, Value::from(value)))
        .collect();
    if !labels.is_empty() {
        change.insert("metadata".to_owned(), json!({ "labels": labels }));
    }
    let wanted = role.rules(era);
    if !rules::same(found.rules.as_deref().unwrap_or_default(), &wanted) {
        change.insert("rules".to_owned(), json!(wanted));
    }
    if found.aggregation_rule.is_some() {
        change.insert("aggregationRule".to_owned(), Value::Null);
        change.insert("rules".to_owned(), json!(wanted));
    }
    change
}

/// The labels on `kubevirt.io:migrate` that are not nacre's.
pub fn foreign_labels(migrate: &ClusterRole) -> BTreeMap<String, String> {
    let ours = Role::Migrate.labels();
    migrate
        .labels()
        .iter()
        .filter(|(key, _)| !ours.contains_key(*key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// Stores the labels that others set on the role, in case the role is deleted.
fn remember(seen: &Observed<'_>) -> Option<Action> {
    let labels = foreign_labels(seen.role(Role::Migrate)?);
    let config = seen.config.filter(|_| labels != seen.settings.remembered)?;
    let data = Settings { remembered: labels, ..seen.settings.clone() }.data();
    let patch = json!({ "metadata": { "resourceVersion": config.resource_version() }, "data": data });
    Some(Action::Patch(Target::of(Kind::ConfigMap, &config.metadata), patch))
}

#[cfg(test)]
mod tests;
