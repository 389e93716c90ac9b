//! Whether a backup covers its namespace, or leaves a part of it out.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use api::{NonAdminBackup, velero::BackupSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::policy::may_come_back_from_tenants;
use crate::{backup, fence};

/// Velero adds these to every backup itself: it handles CSI snapshots in another way.
const LEFT_OUT_BY_VELERO: [&str; 2] =
    ["volumesnapshots.snapshot.storage.k8s.io", "volumesnapshotcontents.snapshot.storage.k8s.io"];

/// Everything that is left out of every backup.
static ALWAYS_LEFT_OUT: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    let by_nacre =
        fence::namespaced_out_of_backups().into_iter().chain(fence::cluster_scoped_out_of_backups());
    by_nacre.chain(LEFT_OUT_BY_VELERO.map(str::to_owned)).collect()
});

/// The fields by which a backup leaves out a part of its namespace, as they are named in `spec.backupSpec`.
///
/// What nacre and Velero leave out of every backup does not count: no backup could ever be good. Everything else
/// counts, also what the administrators enforce: that part of the namespace does not come back, no matter who decided
/// so. In a tenant's own storage only what could come back from there counts: kinds that the requester may not read
/// are left out of such a backup, and for the `edit` role these are Roles and RoleBindings.
pub fn filters(backup: &NonAdminBackup) -> Vec<&'static str> {
    // What Velero was given says what is in the backup. The request may have been edited since.
    let given = backup.status.as_ref().and_then(|status| status.velero_backup.as_ref()?.spec.as_ref());
    let namespace = backup.metadata.namespace.as_deref().unwrap_or_default();
    let asked = &backup.spec.backup_spec;
    let is_own_storage = asked.storage_location.is_some();
    let counts = |name: &String| {
        let by_requester = [&asked.excluded_resources, &asked.excluded_namespace_scoped_resources]
            .into_iter()
            .flatten()
            .any(|list| list.contains(name));
        !ALWAYS_LEFT_OUT.contains(name)
            && (!is_own_storage || by_requester || may_come_back_from_tenants(name))
    };
    of_spec(given.unwrap_or(asked), namespace, &counts)
}

/// Every field is named: one that Velero adds is decided about here, or it does not compile.
fn of_spec(spec: &BackupSpec, namespace: &str, counts: &dyn Fn(&String) -> bool) -> Vec<&'static str> {
    let BackupSpec {
        included_namespaces,
        excluded_namespaces,
        included_resources,
        excluded_resources,
        included_namespace_scoped_resources,
        excluded_namespace_scoped_resources,
        label_selector,
        or_label_selectors,
        resource_policy,
        // These decide only about the PersistentVolumes of the namespace's claims. Whether the data in the volumes is
        // safe is for `volume_data` to say, like what follows from the fields about snapshots.
        include_cluster_resources: _,
        included_cluster_scoped_resources: _,
        excluded_cluster_scoped_resources: _,
        snapshot_volumes: _,
        default_volumes_to_restic: _,
        default_volumes_to_fs_backup: _,
        snapshot_move_data: _,
        datamover: _,
        volume_group_snapshot_label_key: _,
        // These say how, where and how long, not what.
        metadata: _,
        ttl: _,
        hooks: _,
        storage_location: _,
        volume_snapshot_locations: _,
        ordered_resources: _,
        csi_snapshot_timeout: _,
        item_operation_timeout: _,
        uploader_config: _,
    } = spec;
    let names_it = |list: Option<&[String]>| {
        list.unwrap_or_default().iter().any(|name| name == "*" || name == namespace)
    };
    let (namespaces, resources) = (included_namespaces.as_deref(), included_resources.as_deref());
    let scoped = included_namespace_scoped_resources.as_deref();
    let found = [
        ("includedNamespaces", is_given(namespaces) && !names_it(namespaces)),
        ("excludedNamespaces", names_it(excluded_namespaces.as_deref())),
        ("includedResources", includes_some(resources)),
        ("excludedResources", excluded_resources.iter().flatten().any(counts)),
        ("includedNamespaceScopedResources", includes_some(scoped)),
        (
            "excludedNamespaceScopedResources",
            excluded_namespace_scoped_resources.iter().flatten().any(counts),
        ),
        ("labelSelector", label_selector.as_ref().is_some_and(selects_some)),
        ("orLabelSelectors", is_given(or_label_selectors.as_deref())),
        // It can leave out volumes and, in Velero 1.18, resources. Tenants cannot read what is in it.
        // nacre's own leaves out nothing that `volume_data` does not report.
        ("resourcePolicy", resource_policy.as_ref().is_some_and(|named| !backup::is_own_policy(named))),
    ];
    found.into_iter().filter(|(_, limits)| *limits).map(|(field, _)| field).collect()
}

fn is_given<T>(list: Option<&[T]>) -> bool {
    list.is_some_and(|list| !list.is_empty())
}

fn includes_some(list: Option<&[String]>) -> bool {
    list.is_some_and(|list| !list.is_empty() && !list.iter().any(|name| name == "*"))
}

/// A selector without requirements selects everything.
fn selects_some(selector: &LabelSelector) -> bool {
    let LabelSelector { match_labels, match_expressions } = selector;
    match_labels.as_ref().is_some_and(|labels| !labels.is_empty()) || is_given(match_expressions.as_deref())
}
