//! What the guard does.

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use kube::ResourceExt;

use super::machines::EXTERNAL_EVICTION;
use super::targets::TARGETS;
use crate::settings::Guard;
use planner::vap;

/// The binding of a policy. A warning stays a warning, however far the guard goes, and what cannot be undone is refused from
/// the beginning.
pub(super) fn binding(policy: &ValidatingAdmissionPolicy, guard: Guard) -> ValidatingAdmissionPolicyBinding {
    let name = policy.name_any();
    let actions: &[&str] = match guard {
        _ if name == TARGETS => &["Deny"],
        Guard::Deny if name != EXTERNAL_EVICTION => &["Deny"],
        _ => &["Warn", "Audit"],
    };
    vap::binding(&name, actions, None)
}
