//! The four roles: made, adopted, upgraded, rolled back and repaired by one and the same decision.
//!
//! Whatever the roles are now, the plan leads to what was asked for, in an order in which nobody who keeps a right is without it
//! for a moment. Only `kubevirt.io:migrate` has the rules that nacre writes; out of the others an upgrade takes the permissions to
//! migrate and nothing else (`narrow`), after it has written down what they were. Roles that are not these four are never touched.

use std::collections::BTreeMap;

use api::Kind;
use k8s_openapi::api::{
    core::v1::ConfigMap,
    rbac::v1::{ClusterRole, PolicyRule},
};
use kube::ResourceExt;
use serde_json::{Map, Value, json};

use super::{
    contest::{CONTEST, Repairs, repaired},
    narrow::{lets_migrate, narrowed, widened},
    roles::{Era, Role},
    settings::Settings,
};
use planner::kubevirt::Power;
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
    let plan = Plan::done().then_if(note(seen, era));
    let plan =
        if before_upgrade(seen, era) == seen.settings.before_upgrade { plan } else { plan.again_at_once() };
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
    let after = Observed { cluster_roles: &roles, ..*seen };
    let noted = Settings { before_upgrade: before_upgrade(&after, Era::Current), ..seen.settings.clone() };
    let rest = decide(&Observed { settings: &noted, config: None, ..after });
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
    let change = difference(seen, found, role, era);
    if change.is_empty() {
        return None;
    }
    let mut patch = Value::Object(change);
    // With the version it was judged by: a label somebody sets meanwhile is a conflict, not a loss.
    patch["metadata"]["resourceVersion"] = json!(found.resource_version());
    Some(Action::Patch(Target::of(Kind::ClusterRole, &found.metadata), patch))
}

/// Our labels, no permission to migrate but where it belongs, and no aggregation rule: with one, another controller would
/// write the rules. All else is others'.
fn difference(seen: &Observed<'_>, found: &ClusterRole, role: Role, era: Era) -> Map<String, Value> {
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
    let wanted = wanted(seen, found, role, era);
    if let Some(rules) = &wanted {
        change.insert("rules".to_owned(), json!(rules));
    }
    if found.aggregation_rule.is_some() {
        change.insert("aggregationRule".to_owned(), Value::Null);
        // Without its controller the rules would stay as it last wrote them.
        change.insert("rules".to_owned(), json!(wanted.unwrap_or_else(|| rules_of(found).to_vec())));
    }
    change
}

/// The rules a role shall have, if it has others.
fn wanted(seen: &Observed<'_>, found: &ClusterRole, role: Role, era: Era) -> Option<Vec<PolicyRule>> {
    let now = rules_of(found);
    let before = seen.settings.before_upgrade.get(role.name()).map(Vec::as_slice);
    let (wanted, is_right) = match (role, era) {
        (Role::Migrate, _) => (role.rules(era), rules::same(now, &role.rules(era))),
        // What a role was is written down before it is changed.
        (_, Era::Current) => (narrowed(now), !now.iter().any(lets_migrate) || before.is_none()),
        (_, Era::Old) => {
            let lost = role.lost();
            let powers = Power::given_by(now);
            let all = Power::given_by(before.unwrap_or(&lost)).iter().all(|power| powers.contains(power));
            (widened(now, before, &lost), all)
        }
    };
    (!is_right).then_some(wanted)
}

fn rules_of(role: &ClusterRole) -> &[PolicyRule] {
    role.rules.as_deref().unwrap_or_default()
}

/// What the roles were before the upgrade. It is written down before the first change, and forgotten once they are what they
/// were.
fn before_upgrade(seen: &Observed<'_>, era: Era) -> BTreeMap<String, Vec<PolicyRule>> {
    let mut noted = seen.settings.before_upgrade.clone();
    for role in Role::ALL.into_iter().filter(|role| *role != Role::Migrate) {
        let Some(found) = seen.role(role) else { continue };
        match era {
            Era::Current if rules_of(found).iter().any(lets_migrate) => {
                noted.entry(role.name().to_owned()).or_insert_with(|| rules_of(found).to_vec());
            }
            Era::Old if wanted(seen, found, role, era).is_none() => _ = noted.remove(role.name()),
            Era::Old | Era::Current => {}
        }
    }
    noted
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

/// Writes down the labels that others set on the role to migrate, in case it is deleted, and what the roles were before the
/// upgrade.
fn note(seen: &Observed<'_>, era: Era) -> Option<Action> {
    let remembered =
        seen.role(Role::Migrate).map_or_else(|| seen.settings.remembered.clone(), foreign_labels);
    let noted = Settings { remembered, before_upgrade: before_upgrade(seen, era), ..seen.settings.clone() };
    let config = seen.config.filter(|_| noted != *seen.settings)?;
    let patch = json!({ "metadata": { "resourceVersion": config.resource_version() }, "data": noted.data() });
    Some(Action::Patch(Target::of(Kind::ConfigMap, &config.metadata), patch))
}

#[cfg(test)]
mod tests;
