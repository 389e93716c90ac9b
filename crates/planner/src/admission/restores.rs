//! Velero's Restores themselves: which names are nacre's, and what else Velero creates while it works on a tenant's.

use api::{Kind, RestoredFrom, restore_name_pattern};
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
