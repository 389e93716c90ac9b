//! Who is infrastructure: the controllers that must be able to do their work whatever the guard says of tenants.

use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, RoleRef, Subject};
use kube::core::ObjectMeta;

use super::VERB;
use planner::kubevirt::{KUBEVIRT, MIGRATIONS};
use planner::rbac::{
    rules::rule,
    subject::{RBAC, Who},
};

/// The role, and the binding of the same name.
pub const INFRASTRUCTURE: &str = "nacre:migration-infrastructure";

/// The role that makes its holders infrastructure. It gives no right but to be left alone by the guard.
pub fn role() -> ClusterRole {
    ClusterRole {
        metadata: named(),
        rules: Some(vec![rule(&[KUBEVIRT], &[MIGRATIONS], &[VERB])]),
        aggregation_rule: None,
    }
}

/// Kubernetes' own cleaners and KubeVirt's components. Administrators may add others to it.
pub fn binding(kubevirt_namespace: &str) -> ClusterRoleBinding {
    ClusterRoleBinding {
        metadata: named(),
        role_ref: RoleRef {
            api_group: Some(RBAC.to_owned()),
            kind: "ClusterRole".to_owned(),
            name: INFRASTRUCTURE.to_owned(),
        },
        subjects: Some(subjects(kubevirt_namespace)),
    }
}

fn subjects(kubevirt_namespace: &str) -> Vec<Subject> {
    let cleaners =
        ["namespace-controller", "generic-garbage-collector"].map(|name| Who::account("kube-system", name));
    // Where the controller manager does not use an account for each of its controllers, it cleans up under this name.
    let manager = Who::User("system:kube-controller-manager".to_owned());
    let components = ["kubevirt-controller", "kubevirt-apiserver", "kubevirt-handler", "kubevirt-operator"]
        .map(|name| Who::account(kubevirt_namespace, name));
    cleaners.iter().chain([&manager]).chain(&components).map(Who::subject).collect()
}

fn named() -> ObjectMeta {
    ObjectMeta { name: Some(INFRASTRUCTURE.to_owned()), ..ObjectMeta::default() }
}
