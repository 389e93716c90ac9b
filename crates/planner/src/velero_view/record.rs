//! Whether there may be copies anywhere, written down where administrators and nacre can write: so that copies whose
//! label went while nacre was down go too, and nobody has to look for them where there never were any.

use api::Kind;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::DynamicObject;
use serde_json::json;

use super::{has_its_own_velero, mark};
use crate::state::State;
use crate::{Action, Object, Plan, Target, download};

/// The ConfigMap in Velero's namespace that exists while there may be copies.
pub const RECORD: &str = "nacre-velero-view";

/// Whether tenants' namespaces are to be watched: somebody is to see Velero's objects there, or once was.
pub fn in_use(view: &State) -> bool {
    !view.velero_view_namespaces().is_empty() || view.admin::<ConfigMap>(RECORD).is_some()
}

/// Notes that there may be copies before the first is made, and that there are none once the last is gone. Returns
/// also whether the watches can end.
pub fn record(view: &State) -> (Plan, bool) {
    let record = view.admin::<ConfigMap>(RECORD);
    if !view.velero_view_namespaces().is_empty() {
        return match record {
            Some(_) => (Plan::done(), false),
            None => (Plan::done().then(Action::Create(note(view.admin_namespace()))), false),
        };
    }
    let ours = |key: &crate::Key| {
        let is_link = |object: &DynamicObject| {
            key.kind == Kind::DownloadRequest
                && download::is_answered(object)
                && !has_its_own_velero(view, &key.namespace)
        };
        view.velero_view(key.kind, &key.namespace, &key.name)
            .is_some_and(|object| mark(&object).is_some() || is_link(&object))
    };
    if !view.velero_view_active() || view.all_velero_views().iter().any(ours) {
        return (Plan::done(), false);
    }
    let erase = record.map(|record| Action::Delete(Target::of(Kind::ConfigMap, &record.metadata)));
    (Plan::done().then_if(erase), true)
}

fn note(namespace: &str) -> Object {
    let text = "While this is here, nacre looks after copies of Velero's objects in tenants' namespaces.";
    let body = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": RECORD, "namespace": namespace, "annotations": {"kubernetes.io/description": text}},
    });
    Object { kind: Kind::ConfigMap, body }
}
