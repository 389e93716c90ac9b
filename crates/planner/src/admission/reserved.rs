//! What only nacre writes on tenants' requests. A tenant could otherwise claim that a request was made from somebody
//! else's backup, or that it has got further than it has.

use api::{Kind, labels};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;

use crate::install::TENANT_KINDS;
use crate::vap::{Draft, cel::at, cel::list};

/// Whether whoever asks may write statuses of this kind in all namespaces: nacre and administrators may.
pub(super) const MAY_WRITE_STATUS: &str = "authorizer.group('oadp.openshift.io').resource(request.resource.resource)\
                                           .subresource('status').check('patch').allowed()";

/// Whether whoever asks may change the order of the queue, in all namespaces. It is a verb of its own, so that it can be
/// given to people who may write nothing else.
pub(super) const MAY_QUEUE: &str = "authorizer.group('oadp.openshift.io').resource(request.resource.resource)\
                                    .check('queue').allowed()";

/// The policy that keeps tenants from writing what is nacre's or the administrators'.
pub(crate) const RESERVED_MARKS: &str = "nacre-reserved-marks";

/// Labels and annotations: added, changed and removed by nobody else, but left alone by everybody.
pub(super) fn labels_and_annotations() -> ValidatingAdmissionPolicy {
    let resources = TENANT_KINDS.map(Kind::plural);
    let kept = |map: &str, except: &[&str]| {
        let (new, old) = (format!("variables.{map}"), format!("variables.old_{map}"));
        format!("{} && {}", carried_over(&new, &old, except), carried_over(&old, &new, except))
    };
    // The API server's own records are guarded by a policy of their own.
    let others = [labels::REQUESTER, labels::DELETION_REQUESTER, labels::QUEUE];
    let queue =
        |of: &str| format!("('{key}' in variables.{of} ? variables.{of}['{key}'] : '')", key = labels::QUEUE);
    Draft::over(
        RESERVED_MARKS,
        &["CREATE", "UPDATE"],
        &[(Kind::NonAdminBackup.group(), resources.as_slice())],
    )
    .with("labels", at("object", &["metadata", "labels"], "{}"))
    .with("old_labels", at("oldObject", &["metadata", "labels"], "{}"))
    .with("annotations", at("object", &["metadata", "annotations"], "{}"))
    .with("old_annotations", at("oldObject", &["metadata", "annotations"], "{}"))
    .demand(
        format!("({}) || {MAY_WRITE_STATUS}", kept("labels", &[])),
        "labels that begin with openshift.io/oadp or nacre.dev/ are nacre's: add none, and leave those that are there",
    )
    .demand(
        format!("({}) || {MAY_WRITE_STATUS}", kept("annotations", &others)),
        "annotations that begin with openshift.io/oadp or nacre.dev/ are nacre's: add none, and leave those that are there",
    )
    .demand(
        format!("({} == {}) || {MAY_QUEUE} || {MAY_WRITE_STATUS}", queue("annotations"), queue("old_annotations")),
        "annotation nacre.dev/queue is for administrators, who hold the verb queue in all namespaces: leave it as it is",
    )
    .demand(
        format!("{} in {}", queue("annotations"), list(&["", labels::QUEUE_FRONT, labels::QUEUE_HOLD])),
        "annotation nacre.dev/queue is front or hold, or absent",
    )
    .done()
}

/// Whether every reserved key of the one map is in the other with the same value. That somebody else manages an object
/// may be said freely.
fn carried_over(from: &str, to: &str, except: &[&str]) -> String {
    let managed = format!("key == '{}' && {from}[key] == '{}'", labels::MANAGED_BY, labels::MANAGED_BY_VALUE);
    let own = if except.is_empty() {
        "key.startsWith('nacre.dev/')".to_owned()
    } else {
        format!("(key.startsWith('nacre.dev/') && !(key in {}))", list(except))
    };
    let reserved = format!("key.startsWith('{}') || {own} || ({managed})", labels::OADP);
    crate::vap::cel::carried_over(from, to, &reserved)
}

/// Statuses: written by nobody else.
pub(super) fn statuses() -> ValidatingAdmissionPolicy {
    let resources = TENANT_KINDS.map(|kind| format!("{}/status", kind.plural()));
    let resources: Vec<&str> = resources.iter().map(String::as_str).collect();
    let (new, old) = (at("object", &["status"], "{}"), at("oldObject", &["status"], "{}"));
    Draft::over("nacre-statuses", &["UPDATE"], &[(Kind::NonAdminBackup.group(), &resources)])
        .demand(
            format!("(({new}) == ({old})) || {MAY_WRITE_STATUS}"),
            "the status is nacre's to write: change the spec, and nacre says what becomes of it",
        )
        .done()
}
