//! Admission: what is said no to before it is stored.
//!
//! What must hold even while nacre is down is a policy that the API server itself evaluates:
//!
//! | policy | keeps |
//! | --- | --- |
//! | `marks` | nacre's labels, annotations and statuses for nacre to write |
//! | `requests` | what administrators decide about for administrators |
//! | `velero` | Velero's objects in Velero's namespace for Velero, nacre and administrators to create |
//! | `fence` | whatever goes into a tenant's storage to what is that tenant's, whoever asks, Velero included |
//! | `sizes` | requests small: no list, map or text in them without a limit |
//! | `namespaces` | nacre's labels on namespaces out of their owners' hands |
//!
//! Who may is asked of the authorizer: whoever holds the right in all namespaces is no tenant. Nothing here looks at
//! finalizers or owners, and nothing but requests for approval is kept from being deleted, so that Kubernetes' own
//! cleaners and an administrator in an emergency never meet a policy.
//!
//! What the controllers would refuse anyway is refused earlier by [`webhook`], with the same words ([`review`]).

pub mod certificate;
mod fence;
mod marks;
mod namespaces;
mod requests;
mod review;
mod sizes;
mod velero;
pub mod webhook;
pub mod wire;

use api::{Kind, labels};
use k8s_openapi::api::admissionregistration::v1::{
    ParamRef, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use kube::ResourceExt;

pub use review::{ReviewResult, ReviewedObject, review};

use crate::{Object, vap};

/// All of it, for Velero in this namespace, in an order in which it can be applied.
pub fn objects(namespace: &str) -> Vec<Object> {
    let policies = policies(namespace);
    let bindings = policies.iter().map(|policy| binding(policy, namespace));
    let bindings = bindings.map(|binding| Object::of(Kind::ValidatingAdmissionPolicyBinding, &binding));
    let mut objects: Vec<_> = policies
        .iter()
        .map(|policy| Object::of(Kind::ValidatingAdmissionPolicy, policy))
        .chain(bindings)
        .collect();
    objects.extend(webhook::objects(namespace));
    objects
}

/// Every policy.
pub fn policies(namespace: &str) -> Vec<ValidatingAdmissionPolicy> {
    vec![
        marks::reserved(),
        marks::statuses(),
        requests::requests(namespace),
        velero::objects(namespace),
        fence::backups(namespace),
        fence::volumes(namespace),
        namespaces::marks(),
        sizes::metadata(),
        sizes::backups(),
        sizes::restores(),
        sizes::locations(),
    ]
}

/// The binding of a policy. A fence is evaluated once for each location of a tenant's, and passes where there is none.
fn binding(policy: &ValidatingAdmissionPolicy, namespace: &str) -> ValidatingAdmissionPolicyBinding {
    let fences = policy.spec.as_ref().is_some_and(|spec| spec.param_kind.is_some());
    let tenants = ParamRef {
        name: None,
        namespace: Some(namespace.to_owned()),
        parameter_not_found_action: Some("Allow".to_owned()),
        selector: Some(LabelSelector {
            match_expressions: Some(vec![LabelSelectorRequirement {
                key: labels::NABSL_NACUUID.to_owned(),
                operator: "Exists".to_owned(),
                values: None,
            }]),
            match_labels: None,
        }),
    };
    vap::binding(&policy.name_any(), &["Deny"], fences.then_some(tenants))
}

/// Whether the user is a service account in Velero's namespace. Whoever can run a pod there could run it as Velero, so
/// a finer check would add no security.
fn in_velero_namespace(namespace: &str) -> String {
    format!("request.userInfo.username.startsWith('system:serviceaccount:{namespace}:')")
}

#[cfg(test)]
mod tests;
