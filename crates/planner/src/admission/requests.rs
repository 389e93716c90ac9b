//! What administrators decide about. Whoever could make, decide or remove such a request could approve storage.

use api::Kind;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;

use super::{in_velero_namespace, velero::unchanged};
use crate::vap::Draft;

/// Whether whoever asks may do this to such requests in all namespaces.
pub(super) const MAY_DECIDE: &str = "authorizer.group('oadp.openshift.io').resource('nonadminbackupstoragelocationrequests')\
     .check(request.operation.lowerAscii()).allowed()";

/// They are made, changed and deleted by nacre and by administrators.
pub(super) fn requests(namespace: &str) -> ValidatingAdmissionPolicy {
    let kind = Kind::NonAdminBackupStorageLocationRequest;
    let status = format!("{}/status", kind.plural());
    Draft::over(
        "nacre-location-requests",
        &["CREATE", "UPDATE", "DELETE"],
        &[(kind.group(), &[kind.plural(), status.as_str()])],
    )
    .with("unchanged", format!("request.operation == 'UPDATE' && {}", unchanged()))
    .demand(
        format!("variables.unchanged || {} || {MAY_DECIDE}", in_velero_namespace(namespace)),
        "requests for storage are made by nacre and decided by who may do so in all namespaces",
    )
    .done()
}
