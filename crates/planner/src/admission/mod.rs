//! Admission: what is said no to before it is stored.
//!
//! What must hold even while nacre is down is a policy that the API server itself evaluates:
//!
//! | policy | keeps |
//! | --- | --- |
//! | `reserved` | nacre's labels, annotations and statuses for nacre to write |
//! | `requests` | what administrators decide about for administrators |
//! | `velero` | Velero's objects in Velero's namespace for Velero, nacre and administrators to create |
//! | `fence` | whatever goes into a tenant's storage to what is that tenant's, whoever asks, Velero included |
//! | `imported` | what Velero found in a tenant's storage to what nacre gave it, by removing the rest |
//! | `hooks` | timeouts of hooks in the annotations of pods below an hour |
//! | `sizes` | requests small: no list, map or text in them without a limit |
//! | `namespaces` | nacre's labels on namespaces out of their owners' hands |
//! | `restored`, `sources`, `baseline` | what Velero creates for a tenant's restore to what that tenant may have |
//! | `restores` | names of Restores for the fence to go by, and new namespaces, others' service accounts and others' volumes out of tenants' restores |
//! | `requester`, `record`, `recorder` | the record of who asked true |
//! | `finalizers` | nacre a write, by putting its finalizer onto new requests |
//! | `adoptions` | the record of who adopted backups true |
//! | `deletion` | the data of backups for those to delete who may delete the request |
//! | `dedicated` | a Velero for tenants alone to tenants' namespaces, and to what tenants may have |
//! | `snapshots` | other tenants' snapshots from what a tenant's backup says when it is deleted |
//!
//! Who may is asked of the authorizer: whoever holds the right in all namespaces is no tenant. Nothing here looks at
//! finalizers or owners, and nothing but requests for approval is kept from being deleted, so that Kubernetes' own
//! cleaners and an administrator in an emergency never meet a policy.
//!
//! What the controllers would refuse anyway is refused earlier by [`webhook`], with the same words ([`review`]).

mod adoptions;
mod baseline;
pub mod certificate;
mod dedicated;
mod deletion;
mod fence;
mod finalizers;
mod hooks;
mod imported;
mod namespaces;
mod record;
mod recorder;
mod requester;
mod requests;
mod reserved;
mod restored;
mod restores;
mod review;
mod sizes;
mod snapshots;
mod sources;
mod velero;
pub mod webhook;
pub mod wire;

use api::{Kind, labels};
use k8s_openapi::api::admissionregistration::v1::{
    ParamRef, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::ResourceExt;
use serde_json::Value;

pub use recorder::Recorder;
pub(crate) use reserved::RESERVED_MARKS;
pub(crate) use restored::TOKENS;
pub use review::{ReviewResult, ReviewedObject, review};

use crate::install::covers;
use crate::{Object, vap};

/// All of it, for Velero in this namespace, in an order in which it can be applied.
pub fn objects(namespace: &str) -> Vec<Object> {
    let policies = policies(namespace);
    let bindings = policies.iter().map(|policy| binding(policy, namespace));
    let bindings = bindings.chain([requester::with_list(namespace)]);
    let bindings = bindings.map(|binding| Object::of(Kind::ValidatingAdmissionPolicyBinding, &binding));
    let mut objects: Vec<_> = policies
        .iter()
        .map(|policy| Object::of(Kind::ValidatingAdmissionPolicy, policy))
        .chain(bindings)
        .collect();
    objects.extend(mutations(namespace));
    objects.extend(webhook::objects(namespace));
    objects
}

/// The policies that change requests as they come in, and their bindings, for API servers that know such policies:
/// Kubernetes 1.36 and later. For others nacre's webhook does the same, while nacre runs ([`webhook::RECORDER`]).
/// What Velero finds in a tenant's storage is refused where it would be stripped.
pub fn mutations(namespace: &str) -> Vec<Object> {
    let [backups, volumes] = imported::policies(namespace);
    let locations = imported::locations(namespace);
    let with_params = [
        (record::requester(namespace), None),
        (finalizers::finalizers(), Some(finalizers::controller(namespace))),
        (backups, Some(locations.clone())),
        (volumes, Some(locations)),
    ];
    let policies = with_params.iter().map(|(policy, _)| Object::of(Kind::MutatingAdmissionPolicy, policy));
    let bindings = with_params.iter().map(|(policy, params)| {
        let binding = vap::mutating_binding(&policy.name_any(), params.clone());
        Object::of(Kind::MutatingAdmissionPolicyBinding, &binding)
    });
    let with_list = Object::of(Kind::MutatingAdmissionPolicyBinding, &record::with_list(namespace));
    policies.chain(bindings).chain([with_list]).collect()
}

/// Every policy.
pub fn policies(namespace: &str) -> Vec<ValidatingAdmissionPolicy> {
    vec![
        reserved::labels_and_annotations(),
        reserved::statuses(),
        requests::requests(namespace),
        velero::objects(namespace),
        fence::backups(namespace),
        fence::volumes(namespace),
        hooks::timeouts(),
        namespaces::labels(),
        restored::objects(namespace),
        sources::sources(namespace),
        baseline::pods(namespace),
        restores::names(namespace),
        restores::namespaces(namespace),
        restores::accounts(namespace),
        restores::volumes(namespace),
        snapshots::contents(namespace),
        sizes::metadata(),
        sizes::backups(),
        sizes::restores(),
        sizes::locations(),
        requester::own(namespace),
        deletion::data(namespace),
        adoptions::names(namespace),
    ]
}

/// The policies around what Velero creates for a tenant's restore, with their bindings. Pods come back from a tenant's own
/// storage by default where all of them are in the cluster.
pub fn around_restores(namespace: &str) -> Vec<Object> {
    let around = [
        restored::objects(namespace),
        sources::sources(namespace),
        baseline::pods(namespace),
        restores::names(namespace),
        restores::namespaces(namespace),
        restores::accounts(namespace),
        restores::volumes(namespace),
    ];
    with_bindings(&around, namespace)
}

/// The policies around a Velero for tenants alone, with their bindings.
pub fn dedicated(namespace: &str) -> Vec<Object> {
    with_bindings(&dedicated::policies(namespace), namespace)
}

fn with_bindings(policies: &[ValidatingAdmissionPolicy], namespace: &str) -> Vec<Object> {
    let with_binding = |policy: &ValidatingAdmissionPolicy| {
        let binding = binding(policy, namespace);
        [
            Object::of(Kind::ValidatingAdmissionPolicy, policy),
            Object::of(Kind::ValidatingAdmissionPolicyBinding, &binding),
        ]
    };
    policies.iter().flat_map(with_binding).collect()
}

/// Whether what is in the cluster demands all that an admission policy, or its binding, should demand.
pub fn is_in_force(wanted: &Object, found: &Value) -> bool {
    covers(found, &wanted.body)
}

/// The binding of a policy. One with parameters is evaluated once for each, and passes where there is none; the one over
/// the record of who asked is evaluated without.
fn binding(policy: &ValidatingAdmissionPolicy, namespace: &str) -> ValidatingAdmissionPolicyBinding {
    let kind = policy.spec.as_ref().and_then(|spec| spec.param_kind.as_ref()?.kind.as_deref());
    let kind = kind.filter(|kind| *kind != Kind::ConfigMap.name());
    let params = kind.map(|kind| ParamRef {
        name: None,
        namespace: Some(namespace.to_owned()),
        parameter_not_found_action: Some("Allow".to_owned()),
        selector: Some(of_tenants(kind)),
    });
    vap::binding(&policy.name_any(), &["Deny"], params)
}

/// Selects the parameters of this kind that are about tenants; of Restores those that may still be at work. Backups are all of them: what a tenant's storage holds
/// has the labels that the tenant wrote there.
fn of_tenants(kind: &str) -> LabelSelector {
    if kind == Kind::BackupStorageLocation.name() {
        vap::exists(labels::NABSL_NACUUID)
    } else if kind == Kind::Restore.name() {
        vap::exists_without(labels::NAR_NACUUID, labels::ENDED)
    } else {
        LabelSelector::default()
    }
}

/// The end of the names that nacre gives objects in Velero's namespace, except Restores.
const NAMED_BY_UID: &str = "-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$";

/// Whether the user is a service account in Velero's namespace. Whoever can run a pod there could run it as Velero, so
/// a finer check would add no security.
fn in_velero_namespace(namespace: &str) -> String {
    format!("request.userInfo.username.startsWith('system:serviceaccount:{namespace}:')")
}

#[cfg(test)]
mod recorder_tests;
#[cfg(test)]
mod requester_tests;
#[cfg(test)]
mod restored_tests;
#[cfg(test)]
mod tests;
