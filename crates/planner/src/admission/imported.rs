//! What Velero imports from a tenant's storage is stripped of what nacre did not give it. The owner of the bucket may have
//! written it there, or a schedule of the Go controller's, honestly.
//!
//! Where the API server knows no such policies, [`super::fence`] refuses the same instead.

use api::Kind;
use k8s_openapi::api::admissionregistration::v1::{MutatingAdmissionPolicy, ParamRef};

use super::fence::{LABELS, VELEROS, found, over_operations, own_backup};
use super::of_tenants;
use crate::vap::{
    Draft,
    cel::{at, list},
};

/// Both policies: for Backups, and for the volumes in them.
pub(super) fn policies(namespace: &str) -> [MutatingAdmissionPolicy; 2] {
    // Only what is created: Velero writes progress all the time, which would be looked at for nothing.
    let over = |name, kind, field| {
        over_operations(name, &["CREATE"], kind, namespace, field).only_if("found", found(namespace))
    };
    let backups = over("nacre-imported-backups", Kind::Backup, "storageLocation");
    // Volume operations that Velero is about to run are created like those it found: they have nothing that is removed.
    let volumes = over("nacre-imported-volumes", Kind::PodVolumeBackup, "backupStorageLocation");
    [stripped(backups, &LABELS, "false"), stripped(volumes, &[VELEROS], &own_backup())]
}

/// Which locations are tenants'.
pub(super) fn locations(namespace: &str) -> ParamRef {
    ParamRef {
        name: None,
        namespace: Some(namespace.to_owned()),
        parameter_not_found_action: Some("Allow".to_owned()),
        selector: Some(of_tenants(Kind::BackupStorageLocation.name())),
    }
}

/// Removes finalizers, labels that begin otherwise, and owners of which this is not true.
fn stripped(draft: Draft, starts: &[&str], own: &str) -> MutatingAdmissionPolicy {
    let path = |field: &str| at("object", &["metadata", field], if field == "labels" { "{}" } else { "[]" });
    draft
        .with("labels", path("labels"))
        .with("finalizers", path("finalizers"))
        .with("owners", path("ownerReferences"))
        .with("foreign", format!("variables.labels.filter(key, !{}.exists(start, key.startsWith(start)))", list(starts)))
        .patching(
            "variables.concerned ? variables.foreign.map(key, \
             JSONPatch{op: 'remove', path: '/metadata/labels/' + jsonpatch.escapeKey(key)}) : []",
        )
        .patching(
            "variables.concerned && size(variables.finalizers) > 0 ? \
             [JSONPatch{op: 'remove', path: '/metadata/finalizers'}] : []",
        )
        .patching(format!(
            "variables.concerned && variables.owners.exists(owner, !({own})) ? \
             [JSONPatch{{op: 'replace', path: '/metadata/ownerReferences', value: variables.owners.filter(owner, {own})}}] : []"
        ))
        .mutating()
}
