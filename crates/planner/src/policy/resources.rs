//! Resources that policies name, and what may be named where.

use crate::served::is_pattern;

/// Guard rails that namespace owners may only read: they must not come back older than they are.
pub(super) const GUARD_RAILS: [&str; 2] = ["resourcequotas", "limitranges"];

/// Who may do what in a namespace: a Velero for tenants alone brings none of it back.
pub(super) const ROLES: [&str; 2] =
    ["roles.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io"];

/// What may come back from storage that a tenant can write to, unless the policy says otherwise: nothing in this list
/// gives more rights than its owner has, or lifts a limit that an administrator has set.
pub(super) const HARMLESS: [&str; 18] = [
    "configmaps",
    "secrets",
    "services",
    "serviceaccounts",
    "persistentvolumeclaims",
    "replicationcontrollers",
    "deployments.apps",
    "statefulsets.apps",
    "daemonsets.apps",
    "replicasets.apps",
    "controllerrevisions.apps",
    "jobs.batch",
    "cronjobs.batch",
    "ingresses.networking.k8s.io",
    "horizontalpodautoscalers.autoscaling",
    "poddisruptionbudgets.policy",
    "virtualmachines.kubevirt.io",
    "datavolumes.cdi.kubevirt.io",
];

/// Whether objects of this resource may come back from a tenant's storage, as far as that is known without the policy.
/// Names that nacre adds have their group, so that one without a group may be any spelling of a core resource.
pub(crate) fn may_come_back_from_tenants(resource: &str) -> bool {
    let (plural, group) = split(resource);
    group.is_empty() || is_pattern(resource) || HARMLESS.iter().any(|known| split(known).0 == plural)
}

/// Resources that would give rights, lift limits or start something by themselves. They never come back from storage
/// that a tenant can write to, whatever group claims the name, and however Velero lets it be spelled.
const NEVER: [&str; 33] = [
    "roles",
    "role",
    "rolebindings",
    "rolebinding",
    "clusterroles",
    "clusterrole",
    "clusterrolebindings",
    "clusterrolebinding",
    "resourcequotas",
    "resourcequota",
    "quota",
    "limitranges",
    "limitrange",
    "limits",
    "networkpolicies",
    "networkpolicy",
    "netpol",
    "validatingwebhookconfigurations",
    "mutatingwebhookconfigurations",
    "customresourcedefinitions",
    "crd",
    "crds",
    "namespaces",
    "virtualmachineinstancemigrations",
    "persistentvolumes",
    "persistentvolume",
    "pv",
    "volumesnapshots",
    "volumesnapshotcontents",
    "volumesnapshotclasses",
    "storageclasses",
    "priorityclasses",
    "nodes",
];

/// Groups that are nacre's and Velero's own.
const NEVER_GROUPS: [&str; 2] = ["oadp.openshift.io", "velero.io"];

/// Resources of the core group, which are spelled without one.
const CORE: [&str; 16] = [
    "bindings",
    "configmaps",
    "endpoints",
    "events",
    "limitranges",
    "namespaces",
    "nodes",
    "persistentvolumeclaims",
    "persistentvolumes",
    "pods",
    "podtemplates",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "serviceaccounts",
    "services",
];

/// Why a resource cannot be allowed back from storage that a tenant can write to.
pub(crate) fn never_from_tenants(name: &str) -> Option<&'static str> {
    let (resource, group) = split(name);
    if matches!(resource.as_str(), "pods" | "pod" | "po") {
        return Some("whether pods come back is set by fromTenantStorage.pods; remove it here");
    }
    if name.contains(['*', '?', '[', ']', '{', '}', '\\', '!']) {
        return Some("a star would let everything back; name each resource, for example deployments.apps");
    }
    let never = NEVER.contains(&resource.as_str()) || NEVER_GROUPS.contains(&group.as_str());
    never.then_some("never comes back from storage that a tenant can write to; remove it")
}

/// What is odd about the spelling of a resource.
pub(super) fn odd(name: &str) -> Option<String> {
    let (resource, group) = split(name);
    let fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    if resource.is_empty() || !name.chars().all(fine) {
        return Some(
            "no resource is called that; write resource.group, for example deployments.apps".to_owned(),
        );
    }
    if !group.is_empty() || CORE.contains(&resource.as_str()) {
        return None;
    }
    let known = HARMLESS.iter().find(|known| split(known).0 == resource);
    let example = known.map_or_else(|| format!("{resource}.example.com"), |known| (*known).to_owned());
    Some(format!("the core group has no such resource; write its group too, as in {example}"))
}

fn split(name: &str) -> (String, String) {
    let name = name.to_ascii_lowercase();
    match name.split_once('.') {
        Some((resource, group)) => (resource.to_owned(), group.to_owned()),
        None => (name, String::new()),
    }
}
