//! Who owns a Velero object. The only authority is what only administrators, Velero and nacre can write; and of
//! that, what Velero imported from a tenant's bucket was written by the tenant.

use api::velero::{Backup, BackupStorageLocation};
use api::{RestoredFrom, labels, restore_name, velero_name};
use k8s_openapi::api::core::v1::Namespace;
use kube::core::ObjectMeta;

/// Whose bytes a Velero Backup is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage<'a> {
    /// An administrator's storage: what the Backup says about itself can be believed.
    Platform,
    /// A tenant's storage: the namespace of the location owns whatever is in it.
    Tenant(&'a str),
    /// The Backup names a location that does not exist.
    Unknown,
}

/// Where a Velero Backup is kept, given the location it names.
pub fn storage<'a>(backup: &Backup, location: Option<&'a BackupStorageLocation>) -> Storage<'a> {
    match (backup.spec.storage_location.as_deref(), location) {
        (None | Some(""), _) => Storage::Platform,
        (Some(_), Some(location)) => tenant_of(location).map_or(Storage::Platform, Storage::Tenant),
        (Some(_), None) => Storage::Unknown,
    }
}

/// The namespace a location was made for, if a tenant asked for it.
pub fn tenant_of(location: &BackupStorageLocation) -> Option<&str> {
    location.metadata.labels.as_ref()?.get(labels::NABSL_NACUUID)?;
    annotation(&location.metadata, labels::NABSL_NAMESPACE)
}

/// Whether Velero uses this location for what names none. A tenant's never is.
pub fn is_default(location: &BackupStorageLocation) -> bool {
    location.spec.default == Some(true) && tenant_of(location).is_none()
}

/// Whether this namespace owns a Velero Backup. What a namespace of the same name once made, before it was deleted and
/// re-created, is not its own in platform storage.
pub fn owns_backup(namespace: &Namespace, backup: &Backup, location: Option<&BackupStorageLocation>) -> bool {
    let name = namespace.metadata.name.as_deref().unwrap_or_default();
    let origin = annotation(&backup.metadata, labels::NAB_NAMESPACE);
    match storage(backup, location) {
        Storage::Tenant(owner) => owner == name && origin.is_none_or(|origin| origin == name),
        Storage::Platform | Storage::Unknown => origin == Some(name) && made_in(&backup.metadata, namespace),
    }
}

/// Whether this object was made for one in this very namespace; the Go controller did not write that down.
pub fn made_in(counterpart: &ObjectMeta, namespace: &Namespace) -> bool {
    let written = annotation(counterpart, labels::ORIGIN_NAMESPACE_UID);
    written.is_none_or(|uid| namespace.metadata.uid.as_deref() == Some(uid))
}

/// Whether this object was made for that very one: by uid, or by name where the Go controller made it.
pub fn made_for(counterpart: &ObjectMeta, origin: &ObjectMeta, name_key: &str, namespace_key: &str) -> bool {
    let named = annotation(counterpart, namespace_key) == origin.namespace.as_deref()
        && annotation(counterpart, name_key) == origin.name.as_deref();
    match annotation(counterpart, labels::ORIGIN_UID) {
        Some(uid) => named && origin.uid.as_deref() == Some(uid),
        None => named,
    }
}

/// The name that nacre gives the object in the administrators' namespace it makes for this one.
pub(crate) fn own_name(meta: &ObjectMeta) -> String {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    velero_name(&text(&meta.namespace), &text(&meta.name), &text(&meta.uid))
}

/// The name that nacre gives the Velero Restore it makes for this request, which is in this namespace.
pub(crate) fn own_restore_name(from: RestoredFrom, meta: &ObjectMeta, namespace: &Namespace) -> String {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    let owner = (text(&meta.namespace), text(&namespace.metadata.uid));
    restore_name(from, (&owner.0, &owner.1), (&text(&meta.name), &text(&meta.uid)))
}

/// One annotation.
pub fn annotation<'a>(meta: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    meta.annotations.as_ref()?.get(key).map(String::as_str)
}

/// One label.
pub fn label<'a>(meta: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    meta.labels.as_ref()?.get(key).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use api::velero::{Backup, BackupStorageLocation};
    use k8s_openapi::api::core::v1::Namespace;
    use serde_json::json;

    use super::{Storage, owns_backup, storage};

    fn namespace(name: &str, uid: &str) -> Namespace {
        serde_json::from_value(json!({"metadata": {"name": name, "uid": uid}})).unwrap()
    }

    fn backup(location: &str, namespace: &str, namespace_uid: Option<&str>) -> Backup {
        let mut annotations = json!({"openshift.io/oadp-nab-origin-namespace": namespace});
        if let Some(uid) = namespace_uid {
            annotations["nacre.dev/origin-namespace-uid"] = json!(uid);
        }
        let metadata = json!({"name": "b", "annotations": annotations});
        serde_json::from_value(json!({"apiVersion": "velero.io/v1", "kind": "Backup", "metadata": metadata,
            "spec": {"storageLocation": location}}))
        .unwrap()
    }

    fn location(tenant: Option<&str>) -> BackupStorageLocation {
        let mut metadata = json!({"name": "l"});
        if let Some(tenant) = tenant {
            metadata["labels"] = json!({"openshift.io/oadp-nabsl-origin-nacuuid": "l"});
            metadata["annotations"] = json!({"openshift.io/oadp-nabsl-origin-namespace": tenant});
        }
        serde_json::from_value(json!({"apiVersion": "velero.io/v1", "kind": "BackupStorageLocation",
            "metadata": metadata, "spec": {"provider": "aws", "objectStorage": {"bucket": "b"}}}))
        .unwrap()
    }

    #[test]
    fn in_platform_storage_the_annotation_decides() {
        let shop = namespace("shop", "1");
        let default = backup("", "shop", Some("1"));
        assert_eq!(storage(&default, None), Storage::Platform);
        assert!(owns_backup(&shop, &default, None));
        assert!(!owns_backup(&namespace("other", "2"), &default, None));
    }

    #[test]
    fn a_namespace_made_anew_is_a_different_owner() {
        let again = namespace("shop", "2");
        assert!(!owns_backup(&again, &backup("", "shop", Some("1")), None));
        assert!(owns_backup(&again, &backup("", "shop", None), None), "the Go controller wrote no uid");
    }

    #[test]
    fn in_tenant_storage_the_location_decides_whatever_the_backup_says() {
        let evil = location(Some("evil"));
        let forged = backup("l", "shop", Some("1"));
        assert_eq!(storage(&forged, Some(&evil)), Storage::Tenant("evil"));
        assert!(!owns_backup(&namespace("shop", "1"), &forged, Some(&evil)));
        assert!(
            !owns_backup(&namespace("evil", "3"), &forged, Some(&evil)),
            "a backup at odds with its place is ignored"
        );
        assert!(owns_backup(&namespace("evil", "3"), &backup("l", "evil", Some("9")), Some(&evil)));
    }

    #[test]
    fn a_location_that_is_gone_leaves_the_provenance_unknown() {
        assert_eq!(storage(&backup("l", "shop", None), None), Storage::Unknown);
    }
}
