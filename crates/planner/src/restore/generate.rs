//! The Velero Restore for a request, field by field.

use std::collections::BTreeMap;

use api::velero::{Restore, RestoreSpec};
use api::{Kind, labels};
use kube::core::ObjectMeta;
use serde_json::json;

use super::{Observed, own_name};
use crate::enforce::Fields;
use crate::{Action, Policy, Target, fence};

/// The Velero Restore that this request shall get.
pub(super) fn restore(seen: &Observed, policy: &Policy) -> Restore {
    let origin = seen.meta();
    let namespace = origin.namespace.clone().unwrap_or_default();
    let name = own_name(origin);
    let namespace_uid = seen.namespace.as_deref().and_then(|space| space.metadata.uid.clone());
    Restore {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            namespace: Some(seen.admin_namespace.clone()),
            labels: Some(BTreeMap::from([
                (labels::OADP.to_owned(), labels::OADP_VALUE.to_owned()),
                (labels::MANAGED_BY.to_owned(), labels::MANAGED_BY_VALUE.to_owned()),
                (labels::NAR_NACUUID.to_owned(), name),
            ])),
            annotations: Some(BTreeMap::from([
                (labels::NAR_NAME.to_owned(), origin.name.clone().unwrap_or_default()),
                (labels::NAR_NAMESPACE.to_owned(), namespace.clone()),
                (labels::ORIGIN_UID.to_owned(), origin.uid.clone().unwrap_or_default()),
                (labels::ORIGIN_NAMESPACE_UID.to_owned(), namespace_uid.unwrap_or_default()),
            ])),
            ..ObjectMeta::default()
        },
        spec: spec(seen, policy, &namespace),
        status: None,
    }
}

/// What the user said, what the administrator adds, and the fence around both.
fn spec(seen: &Observed, policy: &Policy, namespace: &str) -> RestoreSpec {
    let mut spec = seen.restore.spec.restore_spec.clone();
    policy.restore.enforce.fill(&mut spec);
    spec.backup_name = seen.source.as_deref().and_then(|source| source.metadata.name.clone());
    spec.included_namespaces = Some(vec![namespace.to_owned()]);
    for hook in spec.hooks.iter_mut().flat_map(|hooks| hooks.resources.iter_mut().flatten()) {
        hook.included_namespaces = Some(vec![namespace.to_owned()]);
    }
    let excluded = spec.excluded_resources.get_or_insert_default();
    let fenced =
        fence::out_of_restores().into_iter().chain(policy.restore.excluded_from_platform_storage.clone());
    for name in fenced {
        if !excluded.contains(&name) {
            excluded.push(name);
        }
    }
    spec
}

/// Marks a Velero Restore that the Go controller made as this request's, by uid.
pub(super) fn stamp(seen: &Observed, velero: &Restore) -> Action {
    let annotations = json!({
        labels::ORIGIN_UID: seen.meta().uid,
        labels::ORIGIN_NAMESPACE_UID: seen.namespace.as_deref().and_then(|space| space.metadata.uid.as_deref()),
    });
    let body = json!({"metadata": {"annotations": annotations}});
    Action::Patch(Target::of(Kind::Restore, &velero.metadata), body)
}
