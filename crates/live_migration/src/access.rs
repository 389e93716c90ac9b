//! The permissions that the controller needs to maintain roles, grants and guard, and nothing else.
//!
//! The API server lets nobody write a role that says more than the writer holds, unless the writer may `escalate` that very role. A role
//! is therefore made by applying it under its name: one that is posted has no name yet when that is asked. So the controller holds none
//! of what KubeVirt's roles say, and may make and change these and no others. It may bind none of them.

use api::Kind;
use k8s_openapi::api::rbac::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role as OwnRole, RoleBinding, RoleRef,
};
use kube::ResourceExt;
use kube::core::ObjectMeta;

use super::{
    guard::{INFRASTRUCTURE, VERB, mutating, policies, wanted},
    roles::Role,
    settings,
};
use planner::kubevirt::{KUBEVIRT, MIGRATIONS};
use planner::plan::Plan;
use planner::rbac::{
    Rbac,
    rules::rule,
    subject::{RBAC, Who},
};

/// The cluster role, its binding, and the role and binding for the settings.
pub use planner::kubevirt::ACCESS as NAME;

const ADMISSION: &str = "admissionregistration.k8s.io";

/// Everything that gives the controller its permissions.
pub struct Access {
    /// In every namespace.
    pub role: ClusterRole,
    /// The binding.
    pub binding: ClusterRoleBinding,
    /// Where the settings are.
    pub settings_role: OwnRole,
    /// The binding.
    pub settings_binding: RoleBinding,
}

/// The permissions of the controller's service account.
pub fn access(controller: &Who) -> Access {
    let role_ref = |kind: &str| RoleRef {
        api_group: Some(RBAC.to_owned()),
        kind: kind.to_owned(),
        name: NAME.to_owned(),
    };
    let subjects = Some(vec![controller.subject()]);
    Access {
        role: ClusterRole { metadata: named(None), rules: Some(rules()), aggregation_rule: None },
        binding: ClusterRoleBinding {
            metadata: named(None),
            role_ref: role_ref("ClusterRole"),
            subjects: subjects.clone(),
        },
        settings_role: OwnRole { metadata: named(Some(settings::NAMESPACE)), rules: Some(settings_rules()) },
        settings_binding: RoleBinding {
            metadata: named(Some(settings::NAMESPACE)),
            role_ref: role_ref("Role"),
            subjects,
        },
    }
}

/// Decides how to give this service account what it needs; nothing is left to do if it has it.
pub fn decide(rbac: &Rbac, controller: &Who) -> Plan {
    let access = access(controller);
    let at_home = |namespace: Option<&String>| namespace.is_some_and(|name| name == settings::NAMESPACE);
    let own_roles: Vec<OwnRole> =
        rbac.roles.iter().filter(|role| at_home(role.metadata.namespace.as_ref())).cloned().collect();
    let own_bindings: Vec<RoleBinding> =
        rbac.role_bindings.iter().filter(|one| at_home(one.metadata.namespace.as_ref())).cloned().collect();
    Plan::done()
        .then_if(wanted(Kind::ClusterRole, &access.role, &rbac.cluster_roles, &["rules"]))
        .then_if(wanted(Kind::Role, &access.settings_role, &own_roles, &["rules"]))
        .then_if(wanted(Kind::RoleBinding, &access.settings_binding, &own_bindings, &["subjects"]))
        .then_if(wanted(
            Kind::ClusterRoleBinding,
            &access.binding,
            &rbac.cluster_role_bindings,
            &["subjects"],
        ))
}

/// The rules that hold in every namespace.
pub fn rules() -> Vec<PolicyRule> {
    let kept: Vec<String> = Role::ALL.iter().map(|role| role.name().to_owned()).collect();
    let infrastructure = [INFRASTRUCTURE.to_owned()];
    let mut rules = vec![
        rule(&[RBAC], &["clusterroles", "clusterrolebindings", "rolebindings"], &["list", "watch"]),
        // Who can migrate is answered by all of RBAC.
        rule(&[RBAC], &["roles"], &["list"]),
        by_name(RBAC, "clusterroles", &kept, &["create", "patch", "escalate"]),
        // Whoever may bind a role must not be able to escalate it: that would be everything. So the controller holds the
        // one verb that this role gives, and can write and bind no other.
        rule(&[KUBEVIRT], &[MIGRATIONS], &[VERB]),
        by_name(RBAC, "clusterroles", &infrastructure, &["create", "patch"]),
        by_name(RBAC, "clusterrolebindings", &infrastructure, &["create", "patch"]),
        // Grants end.
        rule(&[RBAC], &["clusterrolebindings", "rolebindings"], &["delete"]),
        // Whether KubeVirt's operator is there to manage the roles itself.
        rule(&["apps"], &["deployments"], &["list", "watch"]),
    ];
    let (stamp, stamp_binding) = mutating();
    let validating: Vec<String> =
        policies(&settings::Settings::default()).iter().map(ResourceExt::name_any).collect();
    for (policies, names) in [
        ("validatingadmissionpolicies", &validating),
        ("validatingadmissionpolicybindings", &validating),
        ("mutatingadmissionpolicies", &vec![stamp.name_any()]),
        ("mutatingadmissionpolicybindings", &vec![stamp_binding.name_any()]),
    ] {
        rules.push(rule(&[ADMISSION], &[policies], &["list", "watch"]));
        rules.push(by_name(ADMISSION, policies, names, &["create", "patch", "delete"]));
    }
    rules
}

fn settings_rules() -> Vec<PolicyRule> {
    vec![by_name("", "configmaps", &[settings::NAME.to_owned()], &["get", "list", "watch", "patch"])]
}

fn by_name(group: &str, resource: &str, names: &[String], verbs: &[&str]) -> PolicyRule {
    PolicyRule { resource_names: Some(names.to_vec()), ..rule(&[group], &[resource], verbs) }
}

fn named(namespace: Option<&str>) -> ObjectMeta {
    ObjectMeta {
        name: Some(NAME.to_owned()),
        namespace: namespace.map(str::to_owned),
        ..ObjectMeta::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_given_once_and_straightened_when_bent() {
        let robot = Who::account("nacre", "nacre");
        assert_eq!(decide(&Rbac::default(), &robot).actions.len(), 4);
        let given = access(&robot);
        let mut rbac = Rbac {
            cluster_roles: vec![given.role],
            roles: vec![given.settings_role],
            cluster_role_bindings: vec![given.binding],
            role_bindings: vec![given.settings_binding],
        };
        assert_eq!(decide(&rbac, &robot), Plan::done());
        rbac.cluster_roles[0].rules = None;
        assert_eq!(decide(&rbac, &robot).actions.len(), 1);
    }

    /// Whoever could escalate or bind anything would be an administrator by another name.
    #[test]
    fn nothing_in_it_makes_an_administrator() {
        for rule in rules() {
            let strong = |verb: &String| ["escalate", "bind", "impersonate", "*"].contains(&verb.as_str());
            if rule.verbs.iter().any(strong) {
                assert!(rule.resource_names.is_some_and(|names| !names.is_empty()));
            }
            assert!(!rule.resources.unwrap().contains(&"*".to_owned()));
        }
    }

    /// H13: nacre's own service account writes a role that it may bind, and becomes whatever it wrote
    #[test]
    fn h13_no_role_may_be_both_escalated_and_bound() {
        let names = |verb: &str| -> Vec<String> {
            let rules = rules().into_iter().filter(|rule| rule.verbs.iter().any(|given| given == verb));
            rules.flat_map(|rule| rule.resource_names.unwrap_or_default()).collect()
        };
        assert!(names("bind").is_empty());
        assert!(!names("escalate").contains(&INFRASTRUCTURE.to_owned()));
    }

    /// What the roles say is for whoever is bound to them.
    #[test]
    fn nothing_in_it_touches_a_machine() {
        let kubevirts =
            |rule: &PolicyRule| rule.api_groups.iter().flatten().any(|group| group.contains("kubevirt"));
        let verbs: Vec<_> = rules().into_iter().filter(kubevirts).flat_map(|rule| rule.verbs).collect();
        assert_eq!(verbs, [VERB], "which no API of KubeVirt's knows");
    }
}
