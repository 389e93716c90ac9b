//! Deleting the data of a backup is a field of its spec, so whoever may edit a request could do it. Kubernetes knows who
//! may delete the request, and that decides, as of whoever sets the field.

use api::Kind;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;

use crate::install::SERVICE_ACCOUNT;
use crate::vap::{Draft, cel::at};

/// Whether whoever asks may delete this very request.
pub(super) const MAY_DELETE: &str = "authorizer.group('oadp.openshift.io').resource('nonadminbackups')\
                                     .namespace(request.namespace).name(request.name).check('delete').allowed()";

/// Only those who may delete a NonAdminBackup may have its data deleted.
pub(super) fn data(namespace: &str) -> ValidatingAdmissionPolicy {
    let deletes = |object: &str| format!("dyn({}) == true", at(object, &["spec", "deleteBackup"], "false"));
    let resources = [Kind::NonAdminBackup.plural()];
    Draft::over("nacre-deletion", &["UPDATE"], &[(Kind::NonAdminBackup.group(), &resources)])
        .only_if("not-nacre", format!("request.userInfo.username != 'system:serviceaccount:{namespace}:{SERVICE_ACCOUNT}'"))
        .only_if("deletes", format!("({}) && !({})", deletes("object"), deletes("oldObject")))
        .demand(
            MAY_DELETE,
            "spec.deleteBackup deletes the backup with its data, which is for those who may delete this NonAdminBackup",
        )
        .done()
}
