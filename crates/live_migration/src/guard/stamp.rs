//! Who asked for a migration. KubeVirt does not keep that, so the API server writes it down as the request comes in.

use k8s_openapi::{
    api::admissionregistration::v1::{
        ApplyConfiguration, MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding,
        MutatingAdmissionPolicyBindingSpec, MutatingAdmissionPolicySpec, Mutation,
    },
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use kube::core::ObjectMeta;

use planner::kubevirt::{KUBEVIRT, MIGRATIONS};
use planner::vap::matching;

/// The annotation it is written into.
pub const REQUESTED_BY: &str = "nacre.dev/requested-by";

const NAME: &str = "nacre-migration-requested-by";

/// G7.
pub(super) fn policy() -> MutatingAdmissionPolicy {
    let expression = format!(
        "Object{{metadata: Object.metadata{{annotations: {{'{REQUESTED_BY}': request.userInfo.username}}}}}}"
    );
    MutatingAdmissionPolicy {
        metadata: named(),
        spec: Some(MutatingAdmissionPolicySpec {
            // A note is not worth a refusal.
            failure_policy: Some("Ignore".to_owned()),
            match_constraints: Some(matching(
                &["CREATE"],
                &[(KUBEVIRT, &[MIGRATIONS])],
                LabelSelector::default(),
            )),
            mutations: Some(vec![Mutation {
                patch_type: "ApplyConfiguration".to_owned(),
                apply_configuration: Some(ApplyConfiguration { expression: Some(expression) }),
                json_patch: None,
            }]),
            reinvocation_policy: Some("Never".to_owned()),
            ..MutatingAdmissionPolicySpec::default()
        }),
    }
}

/// Its binding.
pub(super) fn binding() -> MutatingAdmissionPolicyBinding {
    MutatingAdmissionPolicyBinding {
        metadata: named(),
        spec: Some(MutatingAdmissionPolicyBindingSpec {
            policy_name: Some(NAME.to_owned()),
            ..MutatingAdmissionPolicyBindingSpec::default()
        }),
    }
}

fn named() -> ObjectMeta {
    ObjectMeta { name: Some(NAME.to_owned()), ..ObjectMeta::default() }
}
