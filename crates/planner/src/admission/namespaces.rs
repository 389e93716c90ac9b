//! Labels of namespaces. A policy of the administrators' may select by them, so those that begin with `nacre.dev/` stay out
//! of the hands of whoever may only edit a namespace of their own. A namespace has three doors.

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;

use crate::vap::{
    Draft,
    cel::{at, carried_over},
};

/// Whether whoever asks may change all namespaces.
pub(super) const MAY_LABEL: &str = "authorizer.group('').resource('namespaces').check('update').allowed()";

/// nacre's labels and annotations stay as administrators put them.
pub(super) fn labels() -> ValidatingAdmissionPolicy {
    let reserved = "key.startsWith('nacre.dev/')";
    let kept = |map: &str| {
        let (new, old) = (format!("variables.{map}"), format!("variables.old_{map}"));
        format!("{} && {}", carried_over(&new, &old, reserved), carried_over(&old, &new, reserved))
    };
    Draft::over(
        "nacre-namespace-marks",
        &["CREATE", "UPDATE"],
        &[("", &["namespaces", "namespaces/status", "namespaces/finalize"])],
    )
    .with("labels", at("object", &["metadata", "labels"], "{}"))
    .with("old_labels", at("oldObject", &["metadata", "labels"], "{}"))
    .with("annotations", at("object", &["metadata", "annotations"], "{}"))
    .with("old_annotations", at("oldObject", &["metadata", "annotations"], "{}"))
    .demand(
        format!("({} && {}) || {MAY_LABEL}", kept("labels"), kept("annotations")),
        "labels and annotations of namespaces that begin with nacre.dev/ are for who may change all namespaces",
    )
    .done()
}
