//! Where a migration goes: tenants send a machine's memory to no other cluster, and choose no nodes.

use k8s_openapi::api::admissionregistration::v1::{ParamRef, ValidatingAdmissionPolicy};

use super::cel::INFRASTRUCTURE;
use crate::settings;
use planner::kubevirt::{KUBEVIRT, MIGRATIONS};
use planner::vap::{Draft, cel::at};

/// The policy, whose binding reads the settings.
pub(super) const TARGETS: &str = "nacre-migration-targets";

/// G9: the endpoints that a machine may be sent to are the administrators' choice, and none is allowed by default. With
/// KubeVirt's decentralized live migration the memory of a machine goes to whatever `sendTo.connectURL` says.
pub(super) fn targets() -> ValidatingAdmissionPolicy {
    let allowed = format!(
        "params != null && has(params.data) && '{}' in params.data ? ',' + params.data['{}'] + ',' : ','",
        settings::SEND_TO,
        settings::SEND_TO
    );
    Draft::over(TARGETS, &["CREATE", "UPDATE"], &[(KUBEVIRT, &[MIGRATIONS])])
        .for_each(api::Kind::ConfigMap)
        .only_if("not-infrastructure", format!("!{INFRASTRUCTURE}"))
        .with("allowed", allowed)
        .with("url", at("object", &["spec", "sendTo", "connectURL"], "''"))
        .with("old_url", at("oldObject", &["spec", "sendTo", "connectURL"], "''"))
        .with("sends", at("object", &["spec", "sendTo"], "{}"))
        .with("selector", at("object", &["spec", "addedNodeSelector"], "{}"))
        .with("old_selector", at("oldObject", &["spec", "addedNodeSelector"], "{}"))
        .demand(
            "size(variables.sends) == 0 || (size(variables.url) > 0 && !variables.url.contains(',') && \
             (variables.url == variables.old_url || variables.allowed.contains(',' + variables.url + ',')))",
            "spec.sendTo: machines are sent only to the addresses that the administrators allow in sendTo of the ConfigMap kube-system/nacre-migration",
        )
        .demand(
            "size(variables.selector) == 0 || variables.selector == variables.old_selector",
            "spec.addedNodeSelector: only infrastructure chooses the nodes a machine goes to; leave the field out",
        )
        .done()
}

/// The settings, where the allowed endpoints are. Without them nothing is known to be allowed.
pub(super) fn params() -> ParamRef {
    ParamRef {
        name: Some(settings::NAME.to_owned()),
        namespace: Some(settings::NAMESPACE.to_owned()),
        parameter_not_found_action: Some("Deny".to_owned()),
        selector: None,
    }
}
