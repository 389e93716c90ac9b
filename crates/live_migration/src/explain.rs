//! Why somebody may or may not migrate, and what would change that.

use kube::ResourceExt;
use serde::Serialize;

use super::{
    preview::{dormant, grant_command},
    roles::{MIGRATE, Role},
    who_can::{Right, rights},
};
use planner::kubevirt::Power;
use planner::rbac::{
    Path, Rbac, Scope,
    subject::{Identity, Who},
};

/// One power, and the paths that lead to it; none if it is denied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PowerCheck {
    /// The power that is asked about.
    pub power: Power,
    /// Whether.
    pub allowed: bool,
    /// The paths.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<Path>,
}

/// The whole answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// Each power by itself.
    pub verdicts: Vec<PowerCheck>,
    /// Whether a migration can be started at all, by either way.
    pub can_migrate: bool,
    /// What speaks for itself in plain sentences.
    pub because: Vec<String>,
    /// The command that would change a refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// Explains what this identity may do about migrations in a namespace, of one machine if it is named.
pub fn explain(rbac: &Rbac, identity: &Identity, namespace: &str, machine: Option<&str>) -> Answer {
    let all = rights(rbac);
    let serving: Vec<&Right> = all.iter().filter(|right| right.serves(identity, namespace)).collect();
    let verdicts: Vec<PowerCheck> = Power::ALL
        .into_iter()
        .map(|power| {
            let fits = |path: &&Path| {
                path.only.is_empty()
                    || (power == Power::Migrate
                        && machine.is_some_and(|name| path.only.iter().any(|only| only == name)))
            };
            let same = serving.iter().filter(|right| right.power == power);
            let paths: Vec<Path> = same.flat_map(|right| right.paths.iter().filter(fits).cloned()).collect();
            PowerCheck { power, allowed: !paths.is_empty(), paths }
        })
        .collect();
    let allowed = |power: Power| verdicts.iter().any(|verdict| verdict.power == power && verdict.allowed);
    let can_migrate = allowed(Power::Create) || allowed(Power::Migrate);
    let because = if can_migrate { Vec::new() } else { reasons(rbac, &all, &serving, identity, namespace) };
    let remedy = (!can_migrate)
        .then(|| grant_command(&Who::named(&identity.user), &Scope::Namespace(namespace.to_owned())));
    Answer { verdicts, can_migrate, because, remedy }
}

fn reasons(
    rbac: &Rbac,
    all: &[Right],
    serving: &[&Right],
    identity: &Identity,
    namespace: &str,
) -> Vec<String> {
    let mut reasons = Vec::new();
    for (binding, role) in bound_here(rbac, identity, namespace) {
        reasons.push(match tells(&role) {
            Some(why) => format!("{binding} gives {role}, {why}"),
            None => format!("{binding} gives {role}, which holds no live-migration permission"),
        });
    }
    for path in serving.iter().flat_map(|right| &right.paths).filter(|path| !path.only.is_empty()) {
        reasons.push(format!("{} gives {} only for {}", path.binding, path.rule, path.only.join(", ")));
    }
    let waiting = dormant(rbac);
    if !waiting.is_empty() {
        reasons.push(format!(
            "{MIGRATE} does not exist, so these bindings give nothing: {}",
            waiting.join(", ")
        ));
    }
    let mut elsewhere: Vec<&str> = all
        .iter()
        .filter(|right| right.who.includes(identity) && !right.scope.includes(namespace))
        .filter_map(|right| right.scope.namespace())
        .collect();
    elsewhere.dedup();
    if !elsewhere.is_empty() {
        reasons.push(format!("the right is there in other namespaces: {}", elsewhere.join(", ")));
    }
    if reasons.is_empty() {
        reasons.push("no binding in this namespace or at cluster scope names this subject".to_owned());
    }
    reasons
}

fn tells(role: &str) -> Option<&'static str> {
    let kubevirts = [Role::Admin, Role::Edit].iter().any(|known| known.name() == role);
    (kubevirts || matches!(role, "admin" | "edit"))
        .then_some("which since KubeVirt 1.5 no longer includes starting or deleting migrations")
}

/// The bindings that reach this identity in this namespace, and the roles they name.
fn bound_here(rbac: &Rbac, identity: &Identity, namespace: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let reaches = |subjects: Option<&Vec<k8s_openapi::api::rbac::v1::Subject>>| {
        subjects
            .into_iter()
            .flatten()
            .filter_map(|subject| Who::of(subject, namespace))
            .any(|who| who.includes(identity))
    };
    for binding in
        rbac.role_bindings.iter().filter(|binding| binding.namespace().as_deref() == Some(namespace))
    {
        if reaches(binding.subjects.as_ref()) {
            found.push((format!("rolebinding/{}", binding.name_any()), binding.role_ref.name.clone()));
        }
    }
    // What everybody has explains nothing about anybody.
    let personal = Identity { groups: own_groups(identity), ..identity.clone() };
    for binding in &rbac.cluster_role_bindings {
        let subjects = binding.subjects.iter().flatten().filter_map(|subject| Who::of(subject, ""));
        if subjects.into_iter().any(|who| who.includes(&personal)) {
            found.push((format!("clusterrolebinding/{}", binding.name_any()), binding.role_ref.name.clone()));
        }
    }
    found
}

fn own_groups(identity: &Identity) -> Vec<String> {
    identity.groups.iter().filter(|group| !group.starts_with("system:")).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        fixtures::{bound, standard_roles},
        roles::Era,
    };

    fn ann() -> Identity {
        Identity { user: "ann".to_owned(), groups: vec!["system:authenticated".to_owned(), "ops".to_owned()] }
    }

    fn cluster(bindings: &[(&str, &str, &str)]) -> Rbac {
        Rbac {
            cluster_roles: standard_roles(Era::Current),
            role_bindings: bindings
                .iter()
                .map(|(place, role, who)| bound(place, "b", role, &[who]))
                .collect(),
            ..Rbac::default()
        }
    }

    #[test]
    fn an_owner_is_told_why_not_and_what_to_ask_for() {
        let answer = explain(&cluster(&[("shop", "admin", "user:ann")]), &ann(), "shop", None);
        assert!(!answer.can_migrate);
        assert_eq!(
            answer.because,
            [
                "rolebinding/b gives admin, which since KubeVirt 1.5 no longer includes starting or deleting migrations"
            ]
        );
        assert_eq!(answer.remedy.unwrap(), "kubectl nacre migration grant --user ann -n shop");
    }

    #[test]
    fn a_grant_to_a_group_is_found_and_one_elsewhere_is_told() {
        let granted = cluster(&[("shop", MIGRATE, "group:ops")]);
        let answer = explain(&granted, &ann(), "shop", None);
        assert!(answer.can_migrate && answer.remedy.is_none());
        assert_eq!(answer.verdicts[0].paths[0].binding, "rolebinding/b");
        let answer = explain(&granted, &ann(), "other", None);
        assert_eq!(answer.because, ["the right is there in other namespaces: shop"]);
    }

    #[test]
    fn a_stranger_is_told_that_nobody_knows_them() {
        let answer = explain(&cluster(&[]), &ann(), "shop", None);
        assert_eq!(answer.because, ["no binding in this namespace or at cluster scope names this subject"]);
    }

    #[test]
    fn a_grant_that_sleeps_is_told() {
        let mut rbac = cluster(&[("shop", MIGRATE, "user:ann")]);
        rbac.cluster_roles.retain(|role| role.name_any() != MIGRATE);
        let answer = explain(&rbac, &ann(), "shop", None);
        assert!(answer.because.iter().any(|why| why.contains("does not exist")), "{:?}", answer.because);
    }
}
