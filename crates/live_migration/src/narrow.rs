//! What an upgrade takes out of a role, and what a rollback puts back: the permissions to migrate, and nothing else.
//!
//! KubeVirt's roles differ from version to version, and administrators add rules of their own. So an upgrade edits the
//! rules that are there. It keeps every rule that does not let anybody migrate, as it is and where it is.

use k8s_openapi::api::rbac::v1::PolicyRule;

use planner::kubevirt::{KUBEVIRT, MIGRATIONS, Power, SUBRESOURCES};
use planner::rbac::rules::{self, rule};

use super::roles::{MACHINE_SUBRESOURCES, MACHINES};

const READ: [&str; 3] = ["get", "list", "watch"];
/// The subresource by which `virtctl migrate` asks, as rules name it.
const MIGRATE: [&str; 2] = ["virtualmachines/migrate", "*/migrate"];

/// The rules without the permissions to migrate. Reading migrations stays.
pub fn narrowed(rules: &[PolicyRule]) -> Vec<PolicyRule> {
    rules.iter().flat_map(|rule| if lets_migrate(rule) { parts(rule) } else { vec![rule.clone()] }).collect()
}

/// Whether a rule gives any permission to migrate, be it for objects of certain names only.
pub fn lets_migrate(rule: &PolicyRule) -> bool {
    Power::ALL.iter().any(|power| rules::reach(rule, &power.request()).is_some())
}

/// The rules with the permissions to migrate again. `before` is what the role was before the upgrade, if that is known;
/// `lost` is what KubeVirt's own upgrade takes away.
pub fn widened(now: &[PolicyRule], before: Option<&[PolicyRule]>, lost: &[PolicyRule]) -> Vec<PolicyRule> {
    match before {
        Some(before) if narrowed(before) == now => before.to_vec(),
        // Somebody has changed the role since: that stays.
        Some(before) => [now, &only_migration(before)].concat(),
        None => [now, lost].concat(),
    }
}

/// What is left of a rule that lets somebody migrate.
fn parts(whole: &PolicyRule) -> Vec<PolicyRule> {
    let groups = whole.api_groups.as_deref().unwrap_or_default();
    if groups.iter().any(|group| group == "*") {
        // Nobody can list what else it gives.
        return Vec::new();
    }
    let part = |groups: Vec<String>, resources: Vec<String>, verbs: Vec<String>| {
        let is_empty = groups.is_empty() || resources.is_empty() || verbs.is_empty();
        let part =
            PolicyRule { api_groups: Some(groups), resources: Some(resources), verbs, ..whole.clone() };
        (!is_empty).then_some(part)
    };
    let resources = whole.resources.clone().unwrap_or_default();
    let others: Vec<_> =
        groups.iter().filter(|group| ![KUBEVIRT, SUBRESOURCES].contains(&group.as_str())).cloned().collect();
    let mut found = vec![part(others, resources.clone(), whole.verbs.clone())];
    if groups.iter().any(|group| group == KUBEVIRT) {
        let machines = without(&resources, &[MIGRATIONS], &MACHINES);
        found.push(part(vec![KUBEVIRT.to_owned()], machines, whole.verbs.clone()));
        let names_it = resources.iter().any(|name| name == "*" || name == MIGRATIONS);
        let migrations = if names_it { vec![MIGRATIONS.to_owned()] } else { Vec::new() };
        found.push(part(vec![KUBEVIRT.to_owned()], migrations, reading(&whole.verbs)));
    }
    if groups.iter().any(|group| group == SUBRESOURCES) {
        let actions = without(&resources, &MIGRATE, &MACHINE_SUBRESOURCES);
        found.push(part(vec![SUBRESOURCES.to_owned()], actions, whole.verbs.clone()));
    }
    found.into_iter().flatten().collect()
}

/// The resources without some. A star becomes the list of what else there is.
fn without(resources: &[String], unwanted: &[&str], all: &[&str]) -> Vec<String> {
    let named = resources.iter().filter(|name| *name != "*" && !unwanted.contains(&name.as_str())).cloned();
    let star = resources.iter().any(|name| name == "*");
    let listed = all.iter().filter(|_| star).map(|name| (*name).to_owned());
    let mut kept: Vec<String> = Vec::new();
    for name in named.chain(listed) {
        if !kept.contains(&name) {
            kept.push(name);
        }
    }
    kept
}

/// The verbs that only read.
fn reading(verbs: &[String]) -> Vec<String> {
    if verbs.iter().any(|verb| verb == "*") {
        return READ.map(str::to_owned).to_vec();
    }
    verbs.iter().filter(|verb| READ.contains(&verb.as_str())).cloned().collect()
}

/// The permissions to migrate that these rules give, as rules.
fn only_migration(rules: &[PolicyRule]) -> Vec<PolicyRule> {
    let powers = Power::given_by(rules);
    let (subresource, objects): (Vec<_>, Vec<_>) =
        powers.into_iter().partition(|power| *power == Power::Migrate);
    let mut found = Vec::new();
    if !subresource.is_empty() {
        found.push(rule(&[SUBRESOURCES], &MIGRATE[..1], &["update"]));
    }
    let verbs: Vec<_> = objects.into_iter().map(Power::name).collect();
    if !verbs.is_empty() {
        found.push(rule(&[KUBEVIRT], &[MIGRATIONS], &verbs));
    }
    found
}

#[cfg(test)]
mod tests;
