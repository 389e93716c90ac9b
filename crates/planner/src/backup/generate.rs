//! The Velero Backup for a request, field by field.

use std::collections::BTreeMap;

use api::velero::{Backup, BackupHook, BackupHooks, BackupResourceHook, BackupSpec};
use api::{Duration, Kind, labels};
use kube::core::ObjectMeta;
use serde_json::json;

use super::{Observed, storage_name, volumes};
use crate::enforce::Fields;
use crate::ownership::{annotation, own_name};
use crate::requester::LeftOut;
use crate::volumes::timeout_annotation;
use crate::{Action, Policy, Target, fence, filters, hook_timeout, requester, schedule};

/// What the tenant asked for when the Velero Backup was made, so that a later edit can be detected.
pub(super) const SPEC_DIGEST: &str = "nacre.dev/spec-digest";

/// The Velero Backup that this request shall get.
pub(super) fn backup(seen: &Observed, policy: &Policy, left_out: &LeftOut) -> Backup {
    let origin = seen.meta();
    let namespace = origin.namespace.clone().unwrap_or_default();
    let name = own_name(origin);
    let labels = BTreeMap::from([
        (labels::OADP.to_owned(), labels::OADP_VALUE.to_owned()),
        (labels::MANAGED_BY.to_owned(), labels::MANAGED_BY_VALUE.to_owned()),
        (labels::NAB_NACUUID.to_owned(), name.clone()),
    ]);
    let namespace_uid = seen.namespace.as_deref().and_then(|space| space.metadata.uid.clone());
    let mut annotations = BTreeMap::from([
        (labels::NAB_NAME.to_owned(), origin.name.clone().unwrap_or_default()),
        (labels::NAB_NAMESPACE.to_owned(), namespace.clone()),
        (labels::ORIGIN_UID.to_owned(), origin.uid.clone().unwrap_or_default()),
        (labels::ORIGIN_NAMESPACE_UID.to_owned(), namespace_uid.unwrap_or_default()),
        (SPEC_DIGEST.to_owned(), digest(&seen.spec().backup_spec)),
    ]);
    // So that a run that is found in storage again is one of its schedule's again.
    annotations.extend(schedule::of_run(origin).map(|of| (labels::NAS_NAME.to_owned(), of.to_owned())));
    annotations.extend(timeout_annotation(&policy.volumes));
    annotations.extend(requester::annotations(&seen.access, left_out));
    Backup {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(seen.admin_namespace.clone()),
            labels: Some(labels),
            annotations: Some(annotations),
            ..ObjectMeta::default()
        },
        spec: spec(seen, policy, &namespace, left_out.withheld()),
        status: None,
    }
}

/// What is in effect, with a fence around it. Every field is named: one that Velero adds is decided about here, or it
/// does not compile.
fn spec(seen: &Observed, policy: &Policy, namespace: &str, left_out: &[String]) -> BackupSpec {
    let mut effective = filled(&seen.spec().backup_spec, policy);
    let served = seen.access.served.as_deref().unwrap_or_default();
    filters::take_off(&mut effective.included_resources, left_out, served);
    filters::take_off(&mut effective.included_namespace_scoped_resources, left_out, served);
    volumes::fill(&mut effective, policy, seen);
    let scoped = scoped_filter(&effective).is_some();
    let BackupSpec {
        metadata,
        included_namespaces: _,
        excluded_namespaces: _,
        included_resources,
        excluded_resources,
        included_cluster_scoped_resources: _,
        excluded_cluster_scoped_resources,
        included_namespace_scoped_resources,
        excluded_namespace_scoped_resources,
        label_selector,
        or_label_selectors,
        snapshot_volumes,
        ttl,
        include_cluster_resources,
        hooks,
        storage_location: _,
        volume_snapshot_locations: _,
        default_volumes_to_restic,
        default_volumes_to_fs_backup,
        ordered_resources,
        csi_snapshot_timeout,
        item_operation_timeout,
        resource_policy,
        snapshot_move_data,
        datamover,
        uploader_config,
        volume_group_snapshot_label_key,
    } = effective;
    let mut fenced = BackupSpec {
        metadata,
        included_namespaces: Some(vec![namespace.to_owned()]),
        excluded_namespaces: None,
        included_resources,
        excluded_resources,
        included_cluster_scoped_resources: None,
        excluded_cluster_scoped_resources,
        included_namespace_scoped_resources,
        excluded_namespace_scoped_resources,
        label_selector,
        // Velero takes an empty list for a second kind of selector.
        or_label_selectors: or_label_selectors.filter(|list| !list.is_empty()),
        snapshot_volumes,
        ttl,
        // Unset lets a claim bring its volume; true would bring everything.
        include_cluster_resources: include_cluster_resources.filter(|included| !included),
        hooks: hooks.map(|hooks| fenced_hooks(hooks, namespace, &policy.backup.hook_timeout)),
        storage_location: seen.location.as_deref().map(storage_name),
        volume_snapshot_locations: None,
        default_volumes_to_restic,
        default_volumes_to_fs_backup,
        ordered_resources,
        csi_snapshot_timeout,
        item_operation_timeout,
        resource_policy,
        snapshot_move_data,
        datamover,
        uploader_config,
        volume_group_snapshot_label_key,
    };
    let (mut namespaced, cluster_scoped) =
        (fence::namespaced_out_of_backups(), fence::cluster_scoped_out_of_backups());
    namespaced.extend(left_out.iter().cloned());
    if scoped {
        filters::leave_out(&mut fenced.excluded_namespace_scoped_resources, namespaced);
        filters::leave_out(&mut fenced.excluded_cluster_scoped_resources, cluster_scoped);
    } else {
        filters::leave_out(&mut fenced.excluded_resources, namespaced.into_iter().chain(cluster_scoped));
    }
    fenced
}

/// Commands run in pods of the own namespace, and no longer than the limit.
fn fenced_hooks(hooks: BackupHooks, namespace: &str, limit: &Duration) -> BackupHooks {
    let BackupHooks { resources } = hooks;
    let bounded = |hooks: Vec<BackupHook>| {
        hooks
            .into_iter()
            .map(|BackupHook { exec }| BackupHook { exec: hook_timeout::exec(exec, limit) })
            .collect()
    };
    let fenced = |hook: BackupResourceHook| {
        let BackupResourceHook {
            name,
            included_namespaces: _,
            excluded_namespaces: _,
            included_resources,
            excluded_resources,
            label_selector,
            pre,
            post,
        } = hook;
        BackupResourceHook {
            name,
            included_namespaces: Some(vec![namespace.to_owned()]),
            excluded_namespaces: None,
            included_resources,
            excluded_resources,
            label_selector,
            pre: pre.map(bounded),
            post: post.map(bounded),
        }
    };
    BackupHooks { resources: resources.map(|hooks| hooks.into_iter().map(fenced).collect()) }
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

/// A short stand-in for a spec (FNV-1a, 64 bits): it only detects edits; no security depends on it.
fn digest(spec: &BackupSpec) -> String {
    let text = serde_json::to_string(spec).unwrap_or_default();
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016x}")
}
