//! Everything nacre needs in a cluster, made from one [`Settings`] value: the definitions of its kinds, who it is, what it may
//! do, what namespace owners may do with it, and the program itself.
//!
//! The same objects are printed (`kubectl nacre render`), applied (`kubectl nacre install`), shipped (`deploy/`) and turned
//! into a Helm chart. [`settle`] says with which values, [`decide`] and [`uninstall`] what has to be done to a cluster as it
//! was seen.
//!
//! Velero's namespace is not among the objects: whoever deletes what was rendered would delete every backup with it.

mod aggregate;
mod console;
mod decide;
mod differ;
mod fence;
mod found;
mod oadp;
mod operator;
mod parts;
mod program;
mod record;
mod roles;
mod settings;
pub mod uninstall;
mod values;
mod wide;

pub(crate) use crate::velero_view::roles::EXTRA as VELERO_VIEW;
pub use aggregate::UserRole;
pub(crate) use aggregate::{EDIT, VIEW, ask_labels, look_labels};
use api::{Kind, labels};
pub use console::{CONSOLE, CONSOLE_CA, web_address};
pub(crate) use decide::may_be_others;
pub use decide::{Decision, Observed, changes, decide};
pub(crate) use differ::covers;
pub use differ::{Difference, differences};
pub use fence::{DEPLOYMENT, VeleroFound};
pub use found::{Found, KINDS, is_ours};
pub use oadp::{EXTRAS, Gap, extras, gaps};
pub use operator::{OPERATOR, operator};
pub use parts::Part;
pub use program::{CONTROLLER, program, webhook};
pub use record::RECORD;
pub(crate) use roles::TENANT_KINDS;
pub use roles::{LEASE, LEASE_NAMESPACE, LEASE_SECRET, SERVICE_ACCOUNT, roles};
use serde_json::{Value, json};
pub use settings::{Memory, Settings};
pub use values::{DEFAULT_NAMESPACE, Values, current, place, settle};
pub(crate) use wide::binds_velero;

use crate::{Object, admission, dedicated, velero_view};

/// The label that says which version of nacre's installer made an object.
pub(crate) const VERSION: &str = "app.kubernetes.io/version";

/// All of it, in an order in which it can be applied.
pub fn objects(settings: &Settings) -> Vec<Object> {
    let mut objects = definitions();
    objects.extend(roles(&settings.namespace, &settings.aggregate_to));
    objects.extend(policies(&settings.namespace));
    if settings.fence {
        objects.extend(dedicated::objects(&settings.namespace));
        objects.extend(marked_all(admission::dedicated(&settings.namespace)));
    }
    objects.extend(program(settings));
    objects.extend(webhook(settings));
    if settings.console {
        objects.extend(console::objects(settings));
    }
    if settings.velero_view {
        objects.extend(velero_view::roles::objects(&settings.namespace, &settings.aggregate_to));
    }
    objects
}

/// What the API server holds even while nacre is down.
pub fn policies(namespace: &str) -> Vec<Object> {
    let mut all = admission::objects(namespace);
    all.retain(|object| !asks_nacre(object));
    marked_all(all).collect()
}

/// All of it for an API server that does not know some kinds. Where it knows no policies that change objects, nacre's
/// webhook records who asks, if there is a webhook.
pub fn objects_without(settings: &Settings, unserved: &[Kind]) -> Vec<Object> {
    let mut objects = objects(settings);
    objects.retain(|object| !unserved.contains(&object.kind));
    if unserved.contains(&Kind::MutatingAdmissionPolicy) && settings.webhook {
        objects.extend(recorder(settings));
    }
    objects
}

/// What has nacre's webhook record who asks: the configuration, and the permission to keep its certificate current.
pub fn recorder(settings: &Settings) -> Vec<Object> {
    let mut objects = roles::recording(&settings.namespace).to_vec();
    let configuration = admission::webhook::recorder(&settings.namespace);
    objects.push(marked(configuration.kind, configuration.body));
    objects
}

/// The kinds that API servers before Kubernetes 1.36 do not know.
pub const SINCE_1_36: [Kind; 2] = [Kind::MutatingAdmissionPolicy, Kind::MutatingAdmissionPolicyBinding];

/// Whether an object is a policy that changes objects, or the binding of one.
pub(crate) fn is_mutation(object: &Object) -> bool {
    SINCE_1_36.contains(&object.kind)
}

fn marked_all(objects: Vec<Object>) -> impl Iterator<Item = Object> {
    objects.into_iter().map(|object| marked(object.kind, object.body))
}

/// Whether an object makes the API server ask nacre: of no use without the program.
fn asks_nacre(object: &Object) -> bool {
    matches!(object.kind, Kind::Service | Kind::ValidatingWebhookConfiguration)
}

/// The definitions of nacre's kinds. One that is there and not nacre's is never overwritten: see [`decide`].
pub fn definitions() -> Vec<Object> {
    api::crds().iter().map(|crd| Object::of(Kind::CustomResourceDefinition, crd)).collect()
}

/// The definitions of what tenants request, without the kind by which OADP and `nacre operator` are configured.
pub fn request_definitions() -> Vec<Object> {
    let is_oadps = |object: &Object| object.name().starts_with(Kind::DataProtectionApplication.plural());
    definitions().into_iter().filter(|object| !is_oadps(object)).collect()
}

/// Marks an object as part of the installation: by these labels it is recognised later.
pub(crate) fn marked(kind: Kind, mut body: Value) -> Object {
    let mut all = json!({
        labels::PART_OF: labels::PART_OF_VALUE,
        "app.kubernetes.io/name": "nacre",
        VERSION: env!("CARGO_PKG_VERSION"),
    });
    if let (Some(all), Some(own)) = (all.as_object_mut(), body["metadata"]["labels"].as_object()) {
        all.extend(own.clone());
    }
    body["metadata"]["labels"] = all;
    body["apiVersion"] = kind.api_version().into();
    body["kind"] = kind.name().into();
    Object { kind, body }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod values_tests;
