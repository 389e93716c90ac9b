//! What was seen of an installation.

use api::{Kind, labels};
use serde_json::Value;

use crate::{Object, Target};

/// An object that is there.
pub type Found = Object;

/// The kinds an installation is made of.
pub const KINDS: [Kind; 16] = [
    Kind::CustomResourceDefinition,
    Kind::ServiceAccount,
    Kind::ClusterRole,
    Kind::ClusterRoleBinding,
    Kind::Role,
    Kind::RoleBinding,
    Kind::Service,
    Kind::Deployment,
    Kind::PodDisruptionBudget,
    Kind::ValidatingAdmissionPolicy,
    Kind::ValidatingAdmissionPolicyBinding,
    Kind::ValidatingWebhookConfiguration,
    Kind::MutatingWebhookConfiguration,
    Kind::MutatingAdmissionPolicy,
    Kind::MutatingAdmissionPolicyBinding,
    Kind::Namespace,
];

/// Whether an object was made by an installer of nacre.
pub fn is_ours(found: &Found) -> bool {
    found.body["metadata"]["labels"][labels::PART_OF] == labels::PART_OF_VALUE
}

/// The Helm release an object belongs to, and where that is.
pub(super) fn release(found: &Found) -> Option<(&str, &str)> {
    let annotations = &found.body["metadata"]["annotations"];
    let name = annotations["meta.helm.sh/release-name"].as_str()?;
    Some((name, annotations["meta.helm.sh/release-namespace"].as_str().unwrap_or_default()))
}

pub(super) fn same(one: &Object, other: &Object) -> bool {
    one.kind == other.kind && one.name() == other.name() && one.namespace() == other.namespace()
}

/// Exactly the one that was seen.
pub(super) fn target(found: &Found) -> Target {
    let meta = &found.body["metadata"];
    let text = |key: &str| meta[key].as_str().unwrap_or_default().to_owned();
    let finalizers = meta["finalizers"].as_array().into_iter().flatten();
    Target {
        kind: found.kind,
        namespace: text("namespace"),
        name: text("name"),
        uid: text("uid"),
        resource_version: text("resourceVersion"),
        finalizers: finalizers.filter_map(Value::as_str).map(str::to_owned).collect(),
    }
}

/// As it is put to people: `clusterrole/nacre`, `deployment/x in velero`.
pub(super) fn named(object: &Object) -> String {
    let kind = object.kind.name().to_lowercase();
    match object.namespace() {
        "" => format!("{kind}/{}", object.name()),
        namespace => format!("{kind}/{} in {namespace}", object.name()),
    }
}
