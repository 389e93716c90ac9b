//! The Velero Backup for a request, field by field.

use std::collections::BTreeMap;

use api::velero::{Backup, BackupSpec};
use api::{Kind, labels};
use kube::core::ObjectMeta;
use serde_json::json;

use super::{Observed, own_name, storage_name};
use crate::enforce::Fields;
use crate::ownership::annotation;
use crate::{Action, Policy, Target, fence};

/// What the tenant asked for when the Velero Backup was made, so that a later edit can be told apart.
pub(super) const SPEC_DIGEST: &str = "nacre.dev/spec-digest";

/// The Velero Backup that this request shall get.
pub(super) fn backup(seen: &Observed, policy: &Policy) -> Backup {
    let origin = seen.meta();
    let namespace = origin.namespace.clone().unwrap_or_default();
    let name = own_name(origin);
    let labels = BTreeMap::from([
        (labels::OADP.to_owned(), labels::OADP_VALUE.to_owned()),
        (labels::MANAGED_BY.to_owned(), labels::MANAGED_BY_VALUE.to_owned()),
        (labels::NAB_NACUUID.to_owned(), name.clone()),
    ]);
    let namespace_uid = seen.namespace.as_deref().and_then(|space| space.metadata.uid.clone());
    let annotations = BTreeMap::from([
        (labels::NAB_NAME.to_owned(), origin.name.clone().unwrap_or_default()),
        (labels::NAB_NAMESPACE.to_owned(), namespace.clone()),
        (labels::ORIGIN_UID.to_owned(), origin.uid.clone().unwrap_or_default()),
        (labels::ORIGIN_NAMESPACE_UID.to_owned(), namespace_uid.unwrap_or_default()),
        (SPEC_DIGEST.to_owned(), digest(&seen.spec().backup_spec)),
    ]);
    Backup {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(seen.admin_namespace.clone()),
            labels: Some(labels),
            annotations: Some(annotations),
            ..ObjectMeta::default()
        },
        spec: spec(seen, policy, &namespace),
        status: None,
    }
}

/// What the user said, what the administrator adds, and the fence around both.
fn spec(seen: &Observed, policy: &Policy, namespace: &str) -> BackupSpec {
    let mut spec = filled(&seen.spec().backup_spec, policy);
    spec.included_namespaces = Some(vec![namespace.to_owned()]);
    spec.storage_location = seen.location.as_deref().map(storage_name);
    for hook in spec.hooks.iter_mut().flat_map(|hooks| hooks.resources.iter_mut().flatten()) {
        hook.included_namespaces = Some(vec![namespace.to_owned()]);
    }
    let (namespaced, cluster_scoped) =
        (fence::namespaced_out_of_backups(), fence::cluster_scoped_out_of_backups());
    if scoped_filter(&spec).is_some() {
        append(&mut spec.excluded_namespace_scoped_resources, namespaced);
        append(&mut spec.excluded_cluster_scoped_resources, cluster_scoped);
    } else {
        append(&mut spec.excluded_resources, namespaced);
        append(&mut spec.excluded_resources, cluster_scoped);
    }
    spec
}

/// What the user said and what the administrator adds where the user said nothing.
pub(super) fn filled(spec: &BackupSpec, policy: &Policy) -> BackupSpec {
    let mut spec = spec.clone();
    policy.backup.enforce.fill(&mut spec);
    policy.backup.defaults.fill(&mut spec);
    spec
}

/// Velero has two families of filters that cannot be mixed; this is the first given of the newer one.
pub(super) fn scoped_filter(spec: &BackupSpec) -> Option<&'static str> {
    let filters = [
        ("includedClusterScopedResources", &spec.included_cluster_scoped_resources),
        ("excludedClusterScopedResources", &spec.excluded_cluster_scoped_resources),
        ("includedNamespaceScopedResources", &spec.included_namespace_scoped_resources),
        ("excludedNamespaceScopedResources", &spec.excluded_namespace_scoped_resources),
    ];
    let given = |filter: &Option<Vec<String>>| filter.as_ref().is_some_and(|names| !names.is_empty());
    filters.into_iter().find(|(_, filter)| given(filter)).map(|(name, _)| name)
}

fn append(list: &mut Option<Vec<String>>, more: Vec<String>) {
    let list = list.get_or_insert_default();
    for name in more {
        if !list.contains(&name) {
            list.push(name);
        }
    }
}

/// Marks a Velero Backup that the Go controller made as this request's, by uid.
pub(super) fn stamp(seen: &Observed, velero: &Backup) -> Option<Action> {
    if seen.synced() || annotation(&velero.metadata, labels::ORIGIN_UID).is_some() {
        return None;
    }
    let annotations = json!({
        labels::ORIGIN_UID: seen.meta().uid,
        labels::ORIGIN_NAMESPACE_UID: seen.namespace.as_deref().and_then(|space| space.metadata.uid.as_deref()),
    });
    let body = json!({"metadata": {"annotations": annotations}});
    Some(Action::Patch(Target::of(Kind::Backup, &velero.metadata), body))
}

/// Whether the request was edited after its Velero Backup was made.
pub(super) fn edited_since(seen: &Observed, velero: &Backup) -> bool {
    let same = |then| seen.unreadable.is_none() && then == digest(&seen.spec().backup_spec);
    annotation(&velero.metadata, SPEC_DIGEST).is_some_and(|then| !same(then))
        && annotation(&velero.metadata, labels::ORIGIN_UID) == seen.meta().uid.as_deref()
}

/// A short stand-in for a spec (FNV-1a, 64 bits): it tells an edit from none, and nothing rests on it.
fn digest(spec: &BackupSpec) -> String {
    let text = serde_json::to_string(spec).unwrap_or_default();
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016x}")
}
