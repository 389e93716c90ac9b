//! The four roles: made, adopted, upgraded, rolled back and repaired by one and the same decision.
//!
//! Whatever the roles are now, the plan leads to what was asked for, in an order in which nobody who keeps a right is without it
//! for a moment. Only `kubevirt.io:migrate` has the rules that nacre writes; out of the others an upgrade takes the permissions to
//! migrate and nothing else (`narrow`), after it has written down what they were (`record`). Roles that are not these four are never
//! touched.

use std::collections::{BTreeMap, BTreeSet};

use api::Kind;
use k8s_openapi::api::{
    core::v1::ConfigMap,
    rbac::v1::{ClusterRole, PolicyRule},
};
use kube::ResourceExt;
use serde_json::{Map, Value, json};

use super::{
    contest::{CONTEST, Repairs, repaired},
    narrow::{completed, narrowed},
    record::{BeforeUpgrade, RoleBefore, rules_of},
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
    let plan = Plan::done().then_if(note(seen));
    let plan = if before_upgrade(seen) == seen.settings.before_upgrade { plan } else { plan.again_at_once() };
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

/// Whether the roles are as asked for, and all is written down.
pub fn is_settled(seen: &Observed<'_>) -> bool {
    let nothing_wrong = seen.settings.roles.is_none_or(|era| wrong(seen, era).is_empty());
    nothing_wrong && before_upgrade(seen) == seen.settings.before_upgrade
}

/// What is not as it should be, and how to put it right.
fn wrong(seen: &Observed<'_>, era: Era) -> Vec<Action> {
    if seen.role(Role::Migrate).is_none() {
        // Bindings that wait for this role come alive with it; nothing is taken away before it is there to be read.
        return put_right(seen, Role::Migrate, era).into_iter().collect();
    }
    // The role to migrate comes before those that lose it. The authorizer and the aggregation controller see cluster roles change in
    // this order, so that neither ever knows of the loss but not of a bridge or a label that makes up for it.
    Role::ALL.into_iter().filter_map(|role| put_right(seen, role, era)).collect()
}

/// All the steps from here, for whoever wants to see them before the first is taken.
pub fn outline(seen: &Observed<'_>) -> Plan {
    let first = decide(seen);
    let made = seen.role(Role::Migrate).is_none().then(|| Role::Migrate.object(Era::Current));
    let roles: Vec<ClusterRole> = seen.cluster_roles.iter().cloned().chain(made).collect();
    let after = Observed { cluster_roles: &roles, ..*seen };
    let rest = decide(&Observed { settings: &noted(&after), config: None, ..after });
    let new: Vec<Action> = rest.actions.into_iter().filter(|step| !first.actions.contains(step)).collect();
    new.into_iter().fold(first, Plan::then)
}

fn names(wrong: &[Action]) -> String {
    wrong.iter().map(repaired).collect::<Vec<_>>().join(", ")
}

/// What it takes to make one role as it should be; nothing if it is.
fn put_right(seen: &Observed<'_>, role: Role, era: Era) -> Option<Action> {
    let wanted = wanted(seen, role, era)?;
    let Some(found) = seen.role(role) else {
        return Some(Action::Apply(Object::of(Kind::ClusterRole, &wanted)));
    };
    let change = difference(found, &wanted);
    if change.is_empty() {
        return None;
    }
    let mut patch = Value::Object(change);
    // With the version it was judged by: a label somebody sets meanwhile is a conflict, not a loss.
    patch["metadata"]["resourceVersion"] = json!(found.resource_version());
    Some(Action::Patch(Target::of(Kind::ClusterRole, &found.metadata), patch))
}

/// The change that makes a role what is wanted.
fn difference(found: &ClusterRole, wanted: &ClusterRole) -> Map<String, Value> {
    let mut change = Map::new();
    let keys: BTreeSet<&String> = found.labels().keys().chain(wanted.labels().keys()).collect();
    let labels: Map<String, Value> = keys
        .into_iter()
        .filter(|key| found.labels().get(*key) != wanted.labels().get(*key))
        .map(|key| (key.clone(), json!(wanted.labels().get(key))))
        .collect();
    if !labels.is_empty() {
        change.insert("metadata".to_owned(), json!({ "labels": labels }));
    }
    let aggregates_otherwise = found.aggregation_rule != wanted.aggregation_rule;
    if aggregates_otherwise {
        change.insert("aggregationRule".to_owned(), json!(wanted.aggregation_rule));
    }
    // Without its controller the rules of an aggregated role would stay as it last wrote them.
    if aggregates_otherwise || rules_of(found) != rules_of(wanted) {
        change.insert("rules".to_owned(), json!(rules_of(wanted)));
    }
    change
}

/// What a role shall be; nothing where it is left alone.
fn wanted(seen: &Observed<'_>, role: Role, era: Era) -> Option<ClusterRole> {
    let found = seen.role(role);
    if role == Role::Migrate {
        return Some(found.map_or_else(|| remembered(seen), |found| ours(found, role, role.rules(era))));
    }
    let record = seen.settings.before_upgrade.as_ref();
    let by_default = record.is_none_or(|record| record.roles.is_empty());
    let entry = record.and_then(|record| record.entry(role));
    match era {
        // What the roles were is written down before the first of them is changed.
        Era::Current if record.is_none_or(|record| record.rolled_back) => None,
        Era::Current => match (found, entry) {
            (Some(found), entry) => (by_default || entry.is_some()).then(|| upgraded(found, role)),
            (None, Some(entry)) => Some(upgraded(&entry.object(role), role)),
            (None, None) => by_default.then(|| role.object(era)),
        },
        Era::Old if record.is_some_and(|record| record.rolled_back) => None,
        Era::Old if by_default => Some(found.map_or_else(
            || role.object(era),
            |found| ours(found, role, completed(rules_of(found), &role.lost())),
        )),
        Era::Old => {
            entry.map(|entry| found.map_or_else(|| entry.object(role), |found| entry.restored(role, found)))
        }
    }
}

/// The role to migrate, with the labels it had.
fn remembered(seen: &Observed<'_>) -> ClusterRole {
    let mut object = Role::Migrate.object(Era::Current);
    for (key, value) in &seen.settings.remembered {
        object.labels_mut().entry(key.clone()).or_insert_with(|| value.clone());
    }
    object
}

/// A role after an upgrade: without the permissions to migrate. All else is others'.
pub(crate) fn upgraded(found: &ClusterRole, role: Role) -> ClusterRole {
    ours(found, role, narrowed(rules_of(found)))
}

/// A role with our labels and these rules, and no aggregation rule: with one, another controller would write the rules.
pub(crate) fn ours(found: &ClusterRole, role: Role, rules: Vec<PolicyRule>) -> ClusterRole {
    let mut wanted = found.clone();
    wanted.labels_mut().extend(role.labels());
    wanted.aggregation_rule = None;
    if !rules::same(rules_of(found), &rules) {
        wanted.rules = Some(rules);
    }
    wanted
}

/// What the roles were before the upgrade, as it shall be written down: taken before the first change, and done with once a
/// rollback has restored it.
fn before_upgrade(seen: &Observed<'_>) -> Option<BeforeUpgrade> {
    let record = seen.settings.before_upgrade.as_ref();
    let is_there = |role: &Role| Some((role.name().to_owned(), RoleBefore::of(seen.role(*role)?)));
    let found = || Role::OF_KUBERNETES.iter().filter_map(is_there);
    match (seen.settings.roles, record) {
        _ if seen.step_aside().is_some() => record.cloned(),
        (Some(Era::Current), None | Some(BeforeUpgrade { rolled_back: true, .. })) => {
            Some(BeforeUpgrade { roles: found().collect(), rolled_back: false })
        }
        // A role that comes later is written down too before it is changed. Where there was none at first, they are nacre's.
        (Some(Era::Current), Some(record)) if !record.roles.is_empty() => {
            let mut record = record.clone();
            found().for_each(|(name, role)| _ = record.roles.entry(name).or_insert(role));
            Some(record)
        }
        (Some(Era::Old), Some(record)) => {
            let is_restored =
                Role::OF_KUBERNETES.iter().all(|role| put_right(seen, *role, Era::Old).is_none());
            Some(BeforeUpgrade { rolled_back: record.rolled_back || is_restored, ..record.clone() })
        }
        _ => record.cloned(),
    }
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

/// The settings with what nacre itself writes down: the labels that others set on the role to migrate, in case it is deleted, and
/// what the roles were before the upgrade.
pub fn noted(seen: &Observed<'_>) -> Settings {
    let remembered =
        seen.role(Role::Migrate).map_or_else(|| seen.settings.remembered.clone(), foreign_labels);
    Settings { remembered, before_upgrade: before_upgrade(seen), ..seen.settings.clone() }
}

fn note(seen: &Observed<'_>) -> Option<Action> {
    let noted = noted(seen);
    let config = seen.config.filter(|_| noted != *seen.settings)?;
    Some(Action::Patch(Target::of(Kind::ConfigMap, &config.metadata), noted.patch(config)))
}

#[cfg(test)]
mod tests;
