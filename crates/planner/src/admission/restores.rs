//! Velero's Restores themselves: which names are nacre's, and what else Velero creates while it works on a tenant's.

use api::{Kind, RestoredFrom, labels, restore_name_pattern};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;

use super::in_velero_namespace;
use super::restored::{NAMESPACE_UID, owner_in};
use crate::install::SERVICE_ACCOUNT;
use crate::vap::{Draft, cel::at};

/// The shape of a name that the fence goes by is nacre's, and nacre gives no other.
pub(super) fn names(namespace: &str) -> ValidatingAdmissionPolicy {
    let nacre = format!("request.userInfo.username == 'system:serviceaccount:{namespace}:{SERVICE_ACCOUNT}'");
    let shaped = format!("object.metadata.name.matches('{}')", restore_name_pattern(&RestoredFrom::ALL));
    Draft::over("nacre-restore-names", &["CREATE"], &[(Kind::Restore.group(), &[Kind::Restore.plural()])])
        .in_namespace(namespace)
        .demand(
            format!("({nacre}) == ({shaped})"),
            "Restores whose names end in two uids after -p or -t are nacre's, and nacre's have no other names: \
             use another name",
        )
        .done()
}

/// Velero adds to service accounts that exist what the backup says of them, without writing the Restore's name onto them.
/// While it works on a tenant's restore it does so in the tenant's namespace alone. Like [`namespaces`], it fails open.
pub(super) fn accounts(namespace: &str) -> ValidatingAdmissionPolicy {
    Draft::over("nacre-restored-accounts", &["UPDATE"], &[("", &["serviceaccounts"])])
        .for_each(Kind::Restore)
        .failing_open()
        .only_if("velero", in_velero_namespace(namespace))
        .with("restore", "params.metadata.name")
        .with("owner", owner_in("variables.restore"))
        .demand(
            format!(
                "({}) != 'InProgress' || (variables.restore.matches('{}') && {NAMESPACE_UID}.startsWith(variables.owner))",
                at("params", &["status", "phase"], "''"),
                restore_name_pattern(&RestoredFrom::ALL)
            ),
            "a tenant's restore changes no service account outside the tenant's namespace",
        )
        .done()
}

/// When Velero finishes a restore, it gives the volumes of the restored claims the labels and the reclaim policy that a
/// file in the backup's storage says; another file there says which claims were restored. Whoever owns the storage can write
/// both. So while it finishes a restore from a tenant's storage, volumes of others that were there before stay as they are.
///
/// What a data mover restored for others meanwhile is theirs, and its reclaim policy is put back. Like [`namespaces`], it
/// fails open: it would keep every volume in the cluster from being changed.
pub(super) fn volumes(namespace: &str) -> ValidatingAdmissionPolicy {
    let restore = |path: &[&str], default: &str| format!("({})", at("params", path, default));
    let same = |path: &[&str], default: &str| {
        format!("({}) == ({})", at("object", path, default), at("oldObject", path, default))
    };
    let finishes = format!("{}.startsWith('Finalizing')", restore(&["status", "phase"], "''"));
    let start = restore(&["status", "startTimestamp"], "'9999-12-31T00:00:00Z'");
    let marks = restore(&["metadata", "annotations"], "{}");
    let (owner, moved) = (labels::NAR_NAMESPACE, labels::VELERO_MOVED_VOLUME);
    Draft::over("nacre-restored-volumes", &["UPDATE"], &[("", &["persistentvolumes"])])
        .for_each(Kind::Restore)
        .failing_open()
        .only_if("velero", in_velero_namespace(namespace))
        .with(
            "finishes",
            format!(
                "{finishes} && params.metadata.name.matches('{}')",
                restore_name_pattern(&[RestoredFrom::TenantStorage])
            ),
        )
        .with("claim", at("oldObject", &["spec", "claimRef", "namespace"], "''"))
        .with("owner", format!("'{owner}' in {marks} ? {marks}['{owner}'] : ''"))
        .with("same_labels", same(&["metadata", "labels"], "{}"))
        .with("same_policy", same(&["spec", "persistentVolumeReclaimPolicy"], "''"))
        .with(
            "moved",
            format!(
                "variables.same_labels && '{moved}' in ({})",
                at("oldObject", &["metadata", "labels"], "{}")
            ),
        )
        .with("before", format!("timestamp(oldObject.metadata.creationTimestamp) < timestamp({start})"))
        .demand(
            format!(
                "!variables.finishes || variables.claim == '{namespace}' || variables.claim == variables.owner || \
                 (variables.same_labels && variables.same_policy) || variables.moved || !variables.before"
            ),
            "a tenant's restore changes no volume that was there before, outside the tenant's namespace",
        )
        .done()
}

/// Velero makes the namespaces that a backup says it needs, before any filter is asked. While it works on a tenant's
/// restore it makes none. It works on one restore at a time, so an administrator's never meets this.
///
/// It fails open: while the API server does not serve Restores, it would refuse every new namespace in the cluster.
pub(super) fn namespaces(namespace: &str) -> ValidatingAdmissionPolicy {
    Draft::over("nacre-restored-namespaces", &["CREATE"], &[("", &["namespaces"])])
        .for_each(Kind::Restore)
        .failing_open()
        .only_if("velero", in_velero_namespace(namespace))
        .demand(
            format!("({}) != 'InProgress'", at("params", &["status", "phase"], "''")),
            "Velero creates no namespace while it works on a tenant's restore",
        )
        .done()
}
