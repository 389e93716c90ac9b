//! The Velero Restore for a request, field by field.

use std::collections::BTreeMap;

use api::velero::{Backup, Restore, RestoreHook, RestoreHooks, RestoreResourceHook, RestoreSpec};
use api::{Duration, Kind, RestoredFrom, labels};
use kube::core::ObjectMeta;
use serde_json::json;

use super::{Observed, from_tenants, modifier};
use crate::enforce::Fields;
use crate::ownership::{own_name, own_restore_name};
use crate::requester::LeftOut;
use crate::{Action, Policy, Target, fence, filters, hook_timeout, requester, volumes};

/// The Velero Restore that this request shall get.
pub(super) fn restore(seen: &Observed, policy: &Policy, left_out: &LeftOut) -> Restore {
    let origin = seen.meta();
    let namespace = origin.namespace.clone().unwrap_or_default();
    let from = if seen.trusted() { RestoredFrom::PlatformStorage } else { RestoredFrom::TenantStorage };
    let name = seen
        .namespace
        .as_deref()
        .map_or_else(|| own_name(origin), |space| own_restore_name(from, origin, space));
    let namespace_uid = seen.namespace.as_deref().and_then(|space| space.metadata.uid.clone());
    let mut annotations = BTreeMap::from([
        (labels::NAR_NAME.to_owned(), origin.name.clone().unwrap_or_default()),
        (labels::NAR_NAMESPACE.to_owned(), namespace.clone()),
        (labels::ORIGIN_UID.to_owned(), origin.uid.clone().unwrap_or_default()),
        (labels::ORIGIN_NAMESPACE_UID.to_owned(), namespace_uid.unwrap_or_default()),
    ]);
    annotations.extend(volumes::timeout_annotation(&policy.volumes));
    annotations.extend(requester::annotations(&seen.access, left_out));
    Restore {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            namespace: Some(seen.admin_namespace.clone()),
            labels: Some(BTreeMap::from([
                (labels::OADP.to_owned(), labels::OADP_VALUE.to_owned()),
                (labels::MANAGED_BY.to_owned(), labels::MANAGED_BY_VALUE.to_owned()),
                (labels::NAR_NACUUID.to_owned(), name),
            ])),
            annotations: Some(annotations),
            ..ObjectMeta::default()
        },
        spec: spec(seen, policy, left_out.withheld()),
        status: None,
    }
}

/// What will be in effect: what the user said, and what the administrator adds to it.
pub(super) fn effective(spec: &RestoreSpec, policy: &Policy) -> RestoreSpec {
    let mut spec = spec.clone();
    policy.restore.enforce.fill(&mut spec);
    spec
}

/// What is in effect, with a fence around it. Every field is named: one that Velero adds is decided about here, or it
/// does not compile.
pub(super) fn spec(seen: &Observed, policy: &Policy, left_out: &[String]) -> RestoreSpec {
    let namespace = seen.meta().namespace.as_deref().unwrap_or_default();
    let RestoreSpec {
        backup_name: _,
        schedule_name: _,
        included_namespaces: _,
        excluded_namespaces: _,
        included_resources,
        excluded_resources,
        namespace_mapping: _,
        label_selector,
        or_label_selectors,
        restore_pvs,
        restore_status: _,
        preserve_node_ports,
        include_cluster_resources,
        hooks,
        existing_resource_policy,
        item_operation_timeout,
        resource_modifier,
        resource_policy,
        uploader_config,
    } = effective(&seen.restore.spec.restore_spec, policy);
    let source = seen.source.as_deref();
    let fenced = RestoreSpec {
        backup_name: source.and_then(|source| source.metadata.name.clone()),
        schedule_name: None,
        included_namespaces: Some(vec![namespace.to_owned()]),
        excluded_namespaces: None,
        included_resources,
        excluded_resources,
        namespace_mapping: None,
        label_selector,
        // Velero takes an empty list for a second kind of selector.
        or_label_selectors: or_label_selectors.filter(|list| !list.is_empty()),
        restore_pvs,
        restore_status: None,
        preserve_node_ports,
        // Unset lets a claim bring its volume; true would bring everything.
        include_cluster_resources: include_cluster_resources.filter(|included| !included),
        hooks: hooks.map(|hooks| fenced_hooks(hooks, namespace, &policy.restore.hook_timeout)),
        existing_resource_policy,
        item_operation_timeout,
        resource_modifier,
        resource_policy,
        uploader_config,
    };
    let mut fenced = if seen.trusted() {
        from_platform(fenced, policy)
    } else {
        from_tenants(fenced, policy, source.is_some_and(moved_its_data))
    };
    let served = seen.access.served.as_deref().unwrap_or_default();
    filters::take_off(&mut fenced.included_resources, left_out, served);
    filters::leave_out(&mut fenced.excluded_resources, left_out.iter().cloned());
    // Velero leaves a claim without its volume bound to the one it had, which is gone. From tenants' storage no volume comes.
    let alone = |list: &&mut Vec<String>| seen.trusted() && volumes::claims_without_volumes(list);
    if let Some(list) = fenced.included_resources.as_mut().filter(alone) {
        list.push(volumes::PERSISTENT_VOLUMES.to_owned());
    }
    fenced
}

/// The bytes are an administrator's: all but the guard rails comes back.
fn from_platform(mut spec: RestoreSpec, policy: &Policy) -> RestoreSpec {
    let guard_rails = policy.restore.excluded_from_platform_storage.iter().cloned();
    filters::leave_out(&mut spec.excluded_resources, fence::out_of_restores().into_iter().chain(guard_rails));
    spec
}

/// The bytes are the tenant's, and may be forged: nothing cluster-scoped, nothing but what is listed, no snapshot that
/// the tarball names, and nacre's own modifier over all of it.
fn from_tenants(spec: RestoreSpec, policy: &Policy, data_moved: bool) -> RestoreSpec {
    let policy = &policy.restore.from_tenant_storage;
    // A list that cannot be made is refused before; an empty one would mean everything.
    let listed = from_tenants::resources(&spec, policy).unwrap_or_else(|_| vec!["none.nacre.dev".to_owned()]);
    let out = fence::out_of_restores().into_iter().filter(|name| !listed.contains(name));
    RestoreSpec {
        excluded_resources: Some(out.collect()),
        included_resources: Some(listed),
        include_cluster_resources: Some(false),
        restore_pvs: if data_moved { spec.restore_pvs } else { Some(false) },
        resource_modifier: Some(modifier::reference(policy)),
        ..spec
    }
}

/// Its volumes are in the storage location itself, rather than in snapshots that somebody else may own.
pub(super) fn moved_its_data(backup: &Backup) -> bool {
    backup.spec.snapshot_move_data == Some(true)
}

/// Commands run in pods of the own namespace and no longer than the limit, and nothing is put before a pod's own
/// containers.
fn fenced_hooks(hooks: RestoreHooks, namespace: &str, limit: &Duration) -> RestoreHooks {
    let RestoreHooks { resources } = hooks;
    let fenced = |hook: RestoreResourceHook| {
        let RestoreResourceHook {
            name,
            included_namespaces: _,
            excluded_namespaces: _,
            included_resources,
            excluded_resources,
            label_selector,
            post_hooks,
        } = hook;
        let commands = post_hooks.map(|hooks| {
            let bounded = |RestoreHook { exec, init: _ }| RestoreHook {
                exec: exec.map(|exec| hook_timeout::exec_restore(exec, limit)),
                init: None,
            };
            hooks.into_iter().map(bounded).collect()
        });
        RestoreResourceHook {
            name,
            included_namespaces: Some(vec![namespace.to_owned()]),
            excluded_namespaces: None,
            included_resources,
            excluded_resources,
            label_selector,
            post_hooks: commands,
        }
    };
    RestoreHooks { resources: resources.map(|hooks| hooks.into_iter().map(fenced).collect()) }
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
