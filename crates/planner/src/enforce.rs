//! An administrator's word on single fields of a user's spec.
//!
//! Each macro below names every field of a spec once. A field added to the spec and not named here does not
//! compile: somebody has to decide about it.

use api::velero::{BackupSpec, RestoreSpec};
use serde::Serialize;

use crate::Refusal;
use crate::policy::EnforcedLocation;

/// A spec of which single fields can be required or filled in.
pub(crate) trait Fields: Sized {
    /// Every field, as users spell it.
    #[cfg(test)]
    const NAMES: &[&str];
    /// The first field that is set here and set otherwise in `given`, with the value it must have.
    fn conflict(&self, given: &Self) -> Option<(&'static str, String)>;
    /// Sets in `given` whatever is set here and not there.
    fn fill(&self, given: &mut Self);
}

/// Refuses a spec that says otherwise than it must.
pub(crate) fn conflict<S: Fields>(enforced: &S, given: &S, path: &str) -> Option<Refusal> {
    let (field, wanted) = enforced.conflict(given)?;
    let message = format!("the administrator requires {wanted}; leave the field out or set it to that");
    Some(Refusal::new(format!("{path}.{field}"), message))
}

fn shown(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

macro_rules! fields {
    ($spec:ident { $($field:ident: $name:literal,)* }) => {
        impl Fields for $spec {
            #[cfg(test)]
            const NAMES: &[&str] = &[$($name),*];

            fn conflict(&self, given: &Self) -> Option<(&'static str, String)> {
                let Self { $($field),* } = self;
                $(
                    if let (Some(wanted), Some(found)) = ($field, &given.$field)
                        && wanted != found
                    {
                        return Some(($name, shown(wanted)));
                    }
                )*
                None
            }

            fn fill(&self, given: &mut Self) {
                let Self { $($field),* } = self;
                $(
                    if given.$field.is_none() {
                        given.$field.clone_from($field);
                    }
                )*
            }
        }
    };
}

fields! {
    BackupSpec {
        metadata: "metadata",
        included_namespaces: "includedNamespaces",
        excluded_namespaces: "excludedNamespaces",
        included_resources: "includedResources",
        excluded_resources: "excludedResources",
        included_cluster_scoped_resources: "includedClusterScopedResources",
        excluded_cluster_scoped_resources: "excludedClusterScopedResources",
        included_namespace_scoped_resources: "includedNamespaceScopedResources",
        excluded_namespace_scoped_resources: "excludedNamespaceScopedResources",
        label_selector: "labelSelector",
        or_label_selectors: "orLabelSelectors",
        snapshot_volumes: "snapshotVolumes",
        ttl: "ttl",
        include_cluster_resources: "includeClusterResources",
        hooks: "hooks",
        storage_location: "storageLocation",
        volume_snapshot_locations: "volumeSnapshotLocations",
        default_volumes_to_restic: "defaultVolumesToRestic",
        default_volumes_to_fs_backup: "defaultVolumesToFsBackup",
        ordered_resources: "orderedResources",
        csi_snapshot_timeout: "csiSnapshotTimeout",
        item_operation_timeout: "itemOperationTimeout",
        resource_policy: "resourcePolicy",
        snapshot_move_data: "snapshotMoveData",
        datamover: "datamover",
        uploader_config: "uploaderConfig",
        volume_group_snapshot_label_key: "volumeGroupSnapshotLabelKey",
    }
}

fields! {
    RestoreSpec {
        backup_name: "backupName",
        schedule_name: "scheduleName",
        included_namespaces: "includedNamespaces",
        excluded_namespaces: "excludedNamespaces",
        included_resources: "includedResources",
        excluded_resources: "excludedResources",
        namespace_mapping: "namespaceMapping",
        label_selector: "labelSelector",
        or_label_selectors: "orLabelSelectors",
        restore_pvs: "restorePVs",
        restore_status: "restoreStatus",
        preserve_node_ports: "preserveNodePorts",
        include_cluster_resources: "includeClusterResources",
        hooks: "hooks",
        existing_resource_policy: "existingResourcePolicy",
        item_operation_timeout: "itemOperationTimeout",
        resource_modifier: "resourceModifier",
        resource_policy: "resourcePolicy",
        uploader_config: "uploaderConfig",
    }
}

fields! {
    EnforcedLocation {
        provider: "provider",
        config: "config",
        credential: "credential",
        object_storage: "objectStorage",
        access_mode: "accessMode",
        backup_sync_period: "backupSyncPeriod",
        validation_frequency: "validationFrequency",
    }
}

#[cfg(test)]
mod tests {
    use api::velero::{BackupSpec, RestoreSpec};
    use serde_json::{Value, json};

    use super::Fields;
    use crate::policy::EnforcedLocation;

    /// Every field with two values of its own, an empty one and another where the type has one.
    fn backup_values() -> Value {
        let names = json!([["a"], []]);
        let switch = json!([true, false]);
        let wait = json!(["24h", "48h"]);
        let word = json!(["one", "two"]);
        let selector = json!([{"matchLabels": {"a": "b"}}, {}]);
        let reference = json!([{"kind": "ConfigMap", "name": "a"}, {"kind": "ConfigMap", "name": "b"}]);
        json!({
            "metadata": [{"labels": {"a": "b"}}, {"labels": {}}],
            "includedNamespaces": names, "excludedNamespaces": names,
            "includedResources": names, "excludedResources": names,
            "includedClusterScopedResources": names, "excludedClusterScopedResources": names,
            "includedNamespaceScopedResources": names, "excludedNamespaceScopedResources": names,
            "labelSelector": selector, "orLabelSelectors": [[{"matchLabels": {"a": "b"}}], []],
            "snapshotVolumes": switch, "ttl": wait, "includeClusterResources": switch,
            "hooks": [{"resources": [{"name": "x"}]}, {"resources": []}],
            "storageLocation": word, "volumeSnapshotLocations": names,
            "defaultVolumesToRestic": switch, "defaultVolumesToFsBackup": switch,
            "orderedResources": [{"pods": "a"}, {}], "csiSnapshotTimeout": wait, "itemOperationTimeout": wait,
            "resourcePolicy": reference, "snapshotMoveData": switch, "datamover": word,
            "uploaderConfig": [{"parallelFilesUpload": 1}, {}], "volumeGroupSnapshotLabelKey": word,
        })
    }

    fn restore_values() -> Value {
        let names = json!([["a"], []]);
        let switch = json!([true, false]);
        let wait = json!(["24h", "48h"]);
        let word = json!(["one", "two"]);
        let reference = json!([{"kind": "ConfigMap", "name": "a"}, {"kind": "ConfigMap", "name": "b"}]);
        json!({
            "backupName": word, "scheduleName": word, "includedNamespaces": names, "excludedNamespaces": names,
            "includedResources": names, "excludedResources": names, "namespaceMapping": [{"a": "b"}, {}],
            "labelSelector": [{"matchLabels": {"a": "b"}}, {}],
            "orLabelSelectors": [[{"matchLabels": {"a": "b"}}], []],
            "restorePVs": switch, "restoreStatus": [{"includedResources": ["a"]}, {}],
            "preserveNodePorts": switch, "includeClusterResources": switch,
            "hooks": [{"resources": [{"name": "x"}]}, {"resources": []}],
            "existingResourcePolicy": word, "itemOperationTimeout": wait,
            "resourceModifier": reference, "resourcePolicy": reference,
            "uploaderConfig": [{"writeSparseFiles": true}, {}],
        })
    }

    fn location_values() -> Value {
        let word = json!(["one", "two"]);
        let wait = json!(["1m", "0s"]);
        json!({
            "provider": word, "config": [{"a": "b"}, {}], "credential": [{"name": "a", "key": "b"}, {"name": "c", "key": "b"}],
            "objectStorage": [{"bucket": "a"}, {"bucket": "a", "prefix": "b"}], "accessMode": word,
            "backupSyncPeriod": wait, "validationFrequency": wait,
        })
    }

    fn spec<S: serde::de::DeserializeOwned>(field: &str, value: &Value) -> S {
        serde_json::from_value(json!({ field: value })).unwrap()
    }

    /// For every field and both ways round: equal passes, unset is filled in, another value is refused by name.
    fn each_field_is_enforced<S>(values: &Value)
    where
        S: Fields + Default + Clone + PartialEq + std::fmt::Debug + serde::de::DeserializeOwned,
    {
        for (field, pair) in values.as_object().unwrap() {
            for (wanted, other) in [(&pair[0], &pair[1]), (&pair[1], &pair[0])] {
                let enforced: S = spec(field, wanted);
                assert_ne!(enforced, S::default(), "{field}: {wanted} must count as set");
                assert_eq!(enforced.conflict(&enforced), None, "{field}");
                assert_eq!(enforced.conflict(&S::default()), None, "{field}");
                let (named, _) = enforced.conflict(&spec(field, other)).expect(field);
                assert_eq!(named, field);
                let mut filled = S::default();
                enforced.fill(&mut filled);
                assert_eq!(filled, enforced, "{field}");
                let mut kept: S = spec(field, other);
                enforced.fill(&mut kept);
                assert_eq!(kept, spec(field, other), "{field}: filling must not overwrite");
            }
        }
    }

    #[test]
    fn each_field_of_a_backup_can_be_enforced_false_and_empty_included() {
        each_field_is_enforced::<BackupSpec>(&backup_values());
    }

    #[test]
    fn each_field_of_a_restore_can_be_enforced_false_and_empty_included() {
        each_field_is_enforced::<RestoreSpec>(&restore_values());
    }

    #[test]
    fn each_field_of_a_location_can_be_enforced() {
        each_field_is_enforced::<EnforcedLocation>(&location_values());
    }

    #[test]
    fn equal_durations_do_not_conflict_however_written() {
        let enforced: BackupSpec = spec("ttl", &json!("24h"));
        assert_eq!(enforced.conflict(&spec("ttl", &json!("24h0m0s"))), None);
    }

    #[test]
    fn the_tables_above_miss_no_field() {
        assert_eq!(backup_values().as_object().unwrap().len(), BackupSpec::NAMES.len());
        assert_eq!(restore_values().as_object().unwrap().len(), RestoreSpec::NAMES.len());
        assert_eq!(location_values().as_object().unwrap().len(), EnforcedLocation::NAMES.len());
    }
}
