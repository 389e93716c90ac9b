//! Resources that policies name, and what may be named where.

/// Guard rails that namespace owners may only read: they must not come back older than they are.
pub(super) const GUARD_RAILS: [&str; 2] = ["resourcequotas", "limitranges"];

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
