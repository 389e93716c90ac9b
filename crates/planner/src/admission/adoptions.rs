//! Who gave a re-created namespace the backups of earlier ones: an administrator writes that down in Velero's namespace,
//! and the API server lets nobody write another name than their own.

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;

use crate::sync::{ADOPTED_BY, ADOPTIONS};
use crate::vap::{Draft, cel::at};

/// The name next to an adoption is of whoever wrote the adoption. One without a name may be written: then nobody is known.
pub(super) fn names(namespace: &str) -> ValidatingAdmissionPolicy {
    let value = |map: &str, key: &str| format!("({key} in variables.{map} ? variables.{map}[{key}] : '')");
    let same = |key: &str| format!("{} == {}", value("data", key), value("old_data", key));
    let adopted = format!("key.substring(0, size(key) - {})", ADOPTED_BY.len());
    Draft::over("nacre-adoptions", &["CREATE", "UPDATE"], &[("", &["configmaps"])])
        .in_namespace(namespace)
        .only_if("adoptions", format!("object.metadata.name == '{ADOPTIONS}'"))
        .with("data", at("object", &["data"], "{}"))
        .with("old_data", at("oldObject", &["data"], "{}"))
        .demand(
            format!(
                "variables.data.all(key, !key.endsWith('{ADOPTED_BY}') || !({adopted} in variables.data) || \
                 variables.data[key] == request.userInfo.username || ({} && {}))",
                same("key"),
                same(&adopted),
            ),
            "NAMESPACE.requester names who adopted the backups for that namespace: write your own user name, or remove it",
        )
        .done()
}
