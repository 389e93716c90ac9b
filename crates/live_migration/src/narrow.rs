//! What an upgrade takes out of a role, and what a rollback puts back: the permissions to migrate, and nothing else.
//!
//! KubeVirt's roles differ from version to version, and administrators add rules of their own. So an upgrade edits the
//! rules that are there. It keeps every rule that does not let anybody migrate, as it is and where it is.

use k8s_openapi::api::rbac::v1::PolicyRule;

use planner::kubevirt::{KUBEVIRT, MIGRATIONS, Power, SUBRESOURCES};
use planner::rbac::rules::{self, Reach, rule};

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

/// The rules with the permissions to migrate that the role had before the upgrade.
pub fn widened(now: &[PolicyRule], before: &[PolicyRule]) -> Vec<PolicyRule> {
    // If somebody has changed the role since, that stays.
    if narrowed(before) == now { before.to_vec() } else { completed(now, before) }
}

/// These rules, and the permissions to migrate that others give and these do not.
pub fn completed(now: &[PolicyRule], others: &[PolicyRule]) -> Vec<PolicyRule> {
    let mut all = now.to_vec();
    for part in others.iter().flat_map(only_migration) {
        if !covers(&all, &part) {
            all.push(part);
        }
    }
    all
}

/// Whether some rules let everybody migrate whom this rule lets.
fn covers(rules: &[PolicyRule], part: &PolicyRule) -> bool {
    Power::ALL.iter().map(|power| power.request()).all(|request| match rules::reach(part, &request) {
        None => true,
        Some(wanted) => rules.iter().filter_map(|rule| rules::reach(rule, &request)).any(|given| {
            match (&given, &wanted) {
                (Reach::All, _) => true,
                (Reach::Named(given), Reach::Named(wanted)) => wanted.iter().all(|name| given.contains(name)),
                (Reach::Named(_), Reach::All) => false,
            }
        }),
    })
}

/// What is left of a rule that lets somebody migrate.
fn parts(whole: &PolicyRule) -> Vec<PolicyRule> {
    let groups = whole.api_groups.as_deref().unwrap_or_default();
    let covers_group = |wanted: &str| groups.iter().any(|group| group == wanted);
    let part = |groups: Vec<String>, resources: Vec<String>, verbs: Vec<String>| {
        let is_empty = groups.is_empty() || resources.is_empty() || verbs.is_empty();
        let part =
            PolicyRule { api_groups: Some(groups), resources: Some(resources), verbs, ..whole.clone() };
        (!is_empty).then_some(part)
    };
    let mut resources = whole.resources.clone().unwrap_or_default();
    let others: Vec<_> = groups
        .iter()
        .filter(|group| !["*", KUBEVIRT, SUBRESOURCES].contains(&group.as_str()))
        .cloned()
        .collect();
    let mut found = vec![part(others, resources.clone(), whole.verbs.clone())];
    if covers_group("*") {
        let (unlisted, named): (Vec<_>, Vec<_>) =
            resources.into_iter().partition(|name| ["*", MIGRATIONS].contains(&name.as_str()));
        found.push(part(vec!["*".to_owned()], without(&named, &MIGRATE, &[]), whole.verbs.clone()));
        // Nobody can list the writes that a star gives in other groups. In KubeVirt's two groups they are known.
        resources = unlisted.iter().filter(|name| *name == "*").cloned().collect();
        found.push(part(vec!["*".to_owned()], unlisted, harmless(&whole.verbs)));
    }
    if covers_group(KUBEVIRT) || covers_group("*") {
        let machines = without(&resources, &[MIGRATIONS], &MACHINES);
        found.push(part(vec![KUBEVIRT.to_owned()], machines, whole.verbs.clone()));
        let names_it = resources.iter().any(|name| name == "*" || name == MIGRATIONS);
        let migrations = if names_it { vec![MIGRATIONS.to_owned()] } else { Vec::new() };
        found.push(part(vec![KUBEVIRT.to_owned()], migrations, harmless(&whole.verbs)));
    }
    if covers_group(SUBRESOURCES) || covers_group("*") {
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

/// The verbs that start, change or end no migration. A star becomes the list of those that read.
fn harmless(verbs: &[String]) -> Vec<String> {
    if verbs.iter().any(|verb| verb == "*") {
        return READ.map(str::to_owned).to_vec();
    }
    let writes = Power::ALL.map(|power| power.request().verb);
    verbs.iter().filter(|verb| !writes.contains(&verb.as_str())).cloned().collect()
}

/// The permissions to migrate that a rule gives, as rules.
fn only_migration(whole: &PolicyRule) -> Vec<PolicyRule> {
    let gives = |power: &Power| rules::reach(whole, &power.request()).is_some();
    let (subresource, objects): (Vec<Power>, Vec<Power>) =
        Power::ALL.into_iter().filter(gives).partition(|power| *power == Power::Migrate);
    let verbs: Vec<&str> = objects.into_iter().map(Power::name).collect();
    let asks = (!subresource.is_empty()).then(|| rule(&[SUBRESOURCES], &MIGRATE[..1], &["update"]));
    let writes = (!verbs.is_empty()).then(|| rule(&[KUBEVIRT], &[MIGRATIONS], &verbs));
    let named = |part| PolicyRule { resource_names: whole.resource_names.clone(), ..part };
    asks.into_iter().chain(writes).map(named).collect()
}

#[cfg(test)]
mod tests;
