//! The guard's own objects: made, repaired and taken away by one decision, like the roles.

use api::Kind;
use k8s_openapi::api::{
    admissionregistration::v1::{
        MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, ValidatingAdmissionPolicy,
        ValidatingAdmissionPolicyBinding,
    },
    rbac::v1::{ClusterRole, ClusterRoleBinding},
};
use kube::{ResourceExt, core::ObjectMeta};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{infrastructure, mutating, policies, policy_bindings};
use crate::{
    contest::{CONTEST, Repairs, repaired},
    settings::{Guard, Settings},
};
use planner::plan::{Action, Event, Object, Plan, Target};

/// Everything the decision reads. Objects that are not the guard's may be among them and are not looked at.
#[derive(Clone, Copy)]
pub struct Observed<'a> {
    /// The settings.
    pub settings: &'a Settings,
    /// Validating policies.
    pub policies: &'a [ValidatingAdmissionPolicy],
    /// What puts them into force.
    pub bindings: &'a [ValidatingAdmissionPolicyBinding],
    /// Mutating policies and what puts them into force; none where the API server does not know them.
    pub mutating: Option<(&'a [MutatingAdmissionPolicy], &'a [MutatingAdmissionPolicyBinding])>,
    /// Cluster roles.
    pub cluster_roles: &'a [ClusterRole],
    /// Cluster role bindings.
    pub cluster_role_bindings: &'a [ClusterRoleBinding],
    /// When the guard was repaired of late.
    pub repairs: Repairs<'a>,
}

/// Event reason: another controller keeps changing the guard, and nacre backs off.
pub const GUARD_CONTESTED: &str = "GuardContested";

/// Decides about the guard. Going up, infrastructure is known before anything is refused; going down, refusals end first.
pub fn decide(seen: &Observed<'_>) -> Plan {
    let plan = match seen.settings.guard {
        Guard::Off => take_down(seen),
        guard => put_up(seen, guard),
    };
    let (contested, actions): (Vec<_>, Vec<_>) =
        plan.actions.into_iter().partition(|action| seen.repairs.contested(action));
    let plan = actions.into_iter().fold(Plan::done(), Plan::then);
    if contested.is_empty() {
        return plan;
    }
    let names: Vec<&str> = contested.iter().map(repaired).collect();
    let note = format!("something else keeps changing {}; nacre will try again", names.join(", "));
    plan.with_event(Event::warning(GUARD_CONTESTED, note)).requeue_after(CONTEST)
}

fn put_up(seen: &Observed<'_>, guard: Guard) -> Plan {
    let role = infrastructure::role();
    let mut actions: Vec<Option<Action>> =
        vec![wanted(Kind::ClusterRole, &role, seen.cluster_roles, &["rules", "aggregationRule"])];
    actions.push(known_infrastructure(seen));
    let all_policies = policies(seen.settings);
    let all_bindings = policy_bindings(guard);
    actions.extend(
        all_policies
            .iter()
            .map(|policy| wanted(Kind::ValidatingAdmissionPolicy, policy, seen.policies, &["spec"])),
    );
    actions.extend(
        all_bindings
            .iter()
            .map(|binding| wanted(Kind::ValidatingAdmissionPolicyBinding, binding, seen.bindings, &["spec"])),
    );
    if let Some((policies, bindings)) = seen.mutating {
        let (policy, binding) = mutating();
        actions.push(wanted(Kind::MutatingAdmissionPolicy, &policy, policies, &["spec"]));
        actions.push(wanted(Kind::MutatingAdmissionPolicyBinding, &binding, bindings, &["spec"]));
    }
    actions.into_iter().fold(Plan::done(), Plan::then_if)
}

/// The binding has to name at least those it should; whom administrators added stays.
fn known_infrastructure(seen: &Observed<'_>) -> Option<Action> {
    let binding = infrastructure::binding(&seen.settings.kubevirt_namespace);
    let Some(found) = named(seen.cluster_role_bindings, &binding.name_any()) else {
        return Some(Action::Apply(Object::of(Kind::ClusterRoleBinding, &binding)));
    };
    let target = Target::of(Kind::ClusterRoleBinding, &found.metadata);
    let there = found.subjects.as_deref().unwrap_or_default();
    let missing: Vec<_> =
        binding.subjects.iter().flatten().filter(|subject| !there.contains(subject)).collect();
    let all: Vec<_> = there.iter().chain(missing.iter().copied()).collect();
    let patch = json!({ "metadata": { "resourceVersion": found.resource_version() }, "subjects": all });
    (!missing.is_empty()).then_some(Action::Patch(target, patch))
}

fn take_down(seen: &Observed<'_>) -> Plan {
    let mut plan = Plan::done();
    for binding in policy_bindings(Guard::Warn) {
        plan = plan.then_if(unwanted(Kind::ValidatingAdmissionPolicyBinding, &binding, seen.bindings));
    }
    for policy in policies(seen.settings) {
        plan = plan.then_if(unwanted(Kind::ValidatingAdmissionPolicy, &policy, seen.policies));
    }
    if let Some((policies, bindings)) = seen.mutating {
        let (policy, binding) = mutating();
        plan = plan
            .then_if(unwanted(Kind::MutatingAdmissionPolicyBinding, &binding, bindings))
            .then_if(unwanted(Kind::MutatingAdmissionPolicy, &policy, policies));
    }
    // Who was infrastructure stays so, if administrators added to it: a guard put up again finds them.
    plan
}

fn named<'a, K: ResourceExt>(found: &'a [K], name: &str) -> Option<&'a K> {
    found.iter().find(|object| object.meta().name.as_deref() == Some(name))
}

fn unwanted<K: ResourceExt>(kind: Kind, ours: &K, found: &[K]) -> Option<Action> {
    let found = named(found, &ours.name_any())?;
    Some(Action::Delete(Target::of(kind, found.meta())))
}

/// Makes an object, or whatever of these fields differs, as it should be.
pub(crate) fn wanted<K: ResourceExt + Serialize>(
    kind: Kind,
    ours: &K,
    found: &[K],
    fields: &[&str],
) -> Option<Action> {
    let Some(found) = named(found, &ours.name_any()) else {
        // Under its name, so that the right to make it can be a right to make it alone.
        return Some(Action::Apply(Object::of(kind, ours)));
    };
    let (old, new) = (as_json(found), as_json(ours));
    let mut patch = Map::new();
    for field in fields {
        if let Some(change) = change(&old[*field], &new[*field]) {
            patch.insert((*field).to_owned(), change);
        }
    }
    if patch.is_empty() {
        return None;
    }
    let metadata: &ObjectMeta = found.meta();
    patch.insert("metadata".to_owned(), json!({ "resourceVersion": metadata.resource_version }));
    Some(Action::Patch(Target::of(kind, metadata), Value::Object(patch)))
}

fn as_json(object: &impl Serialize) -> Value {
    // These are Kubernetes' own types, which always become JSON.
    serde_json::to_value(object).unwrap_or_default()
}

/// The merge patch that makes one value of the other; what is too much becomes null.
fn change(old: &Value, new: &Value) -> Option<Value> {
    match (old, new) {
        (old, new) if old == new => None,
        (Value::Object(old), Value::Object(new)) => {
            let gone = old.keys().filter(|key| !new.contains_key(*key)).map(|key| (key.clone(), Value::Null));
            let changed = new.iter().filter_map(|(key, value)| {
                Some((key.clone(), change(old.get(key).unwrap_or(&Value::Null), value)?))
            });
            Some(Value::Object(gone.chain(changed).collect()))
        }
        (_, new) => Some(new.clone()),
    }
}
