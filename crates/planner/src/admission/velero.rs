//! Velero's objects in Velero's namespace. nacre derives a backup's owner from them, and Velero executes them with all
//! its permissions.

use api::Kind;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;

use super::in_velero_namespace;
use crate::vap::{Draft, cel::at};

/// Whether whoever asks may do this to Velero's objects in all namespaces.
pub(super) const MAY_MAKE: &str = "authorizer.group('velero.io').resource(request.resource.resource)\
                                   .check(request.operation.lowerAscii()).allowed()";

/// They are made and changed by Velero, by nacre, and by administrators.
pub(super) fn objects(namespace: &str) -> ValidatingAdmissionPolicy {
    Draft::over("nacre-velero-objects", &["CREATE", "UPDATE"], &[(Kind::Backup.group(), &["*"])])
        .in_namespace(namespace)
        .with("unchanged", format!("request.operation == 'UPDATE' && {}", unchanged()))
        .demand(
            format!("variables.unchanged || {} || {MAY_MAKE}", in_velero_namespace(namespace)),
            "in Velero's namespace its objects are created by Velero, by nacre, and by users who may create them in all namespaces; \
             in your own namespace, create a NonAdminBackup or a NonAdminRestore instead",
        )
        .done()
}

/// Whether an update leaves alone all that Velero and nacre go by. Finalizers and owners are for Kubernetes' cleaners.
pub(super) fn unchanged() -> String {
    let parts: [&[&str]; 4] = [&["metadata", "labels"], &["metadata", "annotations"], &["spec"], &["status"]];
    let same =
        parts.map(|path| format!("({}) == ({})", at("object", path, "{}"), at("oldObject", path, "{}")));
    same.join(" && ")
}
