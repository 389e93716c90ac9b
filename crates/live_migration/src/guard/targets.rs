//! Where a migration goes: tenants send a machine's memory to no other cluster.

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;

use super::cel::INFRASTRUCTURE;
use planner::kubevirt::{KUBEVIRT, MIGRATIONS};
use planner::vap::{
    Draft,
    cel::{at, list},
};

/// The policy that refuses as soon as there is a guard.
pub(super) const TARGETS: &str = "nacre-migration-targets";

/// G9: the endpoints that a machine may be sent to are the administrators' choice, and none is allowed by default. With
/// KubeVirt's decentralized live migration the memory of a machine goes to whatever `sendTo.connectURL` says.
///
/// The endpoints stand in the policy itself. A policy that read them from the settings could be written only by whoever
/// may read every ConfigMap, which nacre may not.
///
/// It is refused in mode `warn` too: memory that has left the cluster does not come back, and an administrator who needs it
/// names the endpoint.
pub(super) fn targets(send_to: &str) -> ValidatingAdmissionPolicy {
    Draft::over(TARGETS, &["CREATE", "UPDATE"], &[(KUBEVIRT, &[MIGRATIONS])])
        .only_if("not-infrastructure", format!("!{INFRASTRUCTURE}"))
        .with("url", at("object", &["spec", "sendTo", "connectURL"], "''"))
        .with("old_url", at("oldObject", &["spec", "sendTo", "connectURL"], "''"))
        .with("sends", at("object", &["spec", "sendTo"], "{}"))
        .demand(
            format!(
                "size(variables.sends) == 0 || (size(variables.url) > 0 && \
                 (variables.url == variables.old_url || variables.url in {}))",
                allowed(send_to)
            ),
            "spec.sendTo: machines are sent only to the addresses that the administrators allow in sendTo of the ConfigMap kube-system/nacre-migration",
        )
        .done()
}

/// The endpoints as CEL. Whatever does not look like one is left out, and so is not allowed.
fn allowed(send_to: &str) -> String {
    let plain = |name: &&str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || ".:-_/[]".contains(c))
    };
    list(&send_to.split(',').map(str::trim).filter(plain).collect::<Vec<_>>())
}
