//! The guard: rules about migrations that RBAC cannot express, as admission policies that apply even while nacre is
//! down.
//!
//! | policy | keeps |
//! | --- | --- |
//! | `migrations` (G1, G2) | tenants from deleting, stripping or faking the migrations that drains and upgrades depend on, and from choosing nodes |
//! | `bindings` (G3) | the permission to migrate from being handed on, hoarded, prolonged or restored |
//! | `pods` (G4, G8) | tenants from evicting a machine's pod, and from killing the pod a migration is going to |
//! | `machines` (G5, G6) | KubeVirt's test annotations off machines; warns of machines no drain can move |
//! | `targets` (G9) | machines' memory in the cluster, in mode `warn` too |
//! | `stamp` (G7) | in mind who asked for a migration |
//!
//! Who counts as infrastructure is asked of the authorizer: whoever holds the verb [`VERB`] on migrations at cluster scope. Nothing but a
//! wildcard or nacre's own role gives it, so that even a cluster-wide grant of `kubevirt.io:migrate` makes nobody infrastructure.

mod bindings;
mod cel;
mod infrastructure;
mod machines;
mod migrations;
mod parts;
mod pods;
mod repair;
mod stamp;
mod targets;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
};

pub use infrastructure::{INFRASTRUCTURE, binding as infrastructure_binding, role as infrastructure_role};
pub(crate) use repair::wanted;
pub use repair::{GUARD_CONTESTED, Observed, decide};
pub use stamp::REQUESTED_BY;

use super::settings::{Guard, Settings};

/// The verb that makes whoever holds it infrastructure. The API server knows nothing of it but what roles say.
pub const VERB: &str = "administer";

/// Every validating policy.
pub fn policies(settings: &Settings) -> Vec<ValidatingAdmissionPolicy> {
    vec![
        migrations::protected(),
        migrations::marks(),
        bindings::bindings(),
        bindings::own_roles(),
        pods::evictions(),
        pods::targets(),
        machines::marks(),
        machines::external_eviction(),
        targets::targets(&settings.send_to),
    ]
}

/// Their bindings.
pub fn policy_bindings(guard: Guard) -> Vec<ValidatingAdmissionPolicyBinding> {
    policies(&Settings::default()).iter().map(|policy| parts::binding(policy, guard)).collect()
}

/// The policy that keeps in mind who asked, for API servers that know such policies.
pub fn mutating() -> (MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding) {
    (stamp::policy(), stamp::binding())
}

#[cfg(test)]
mod tests;
