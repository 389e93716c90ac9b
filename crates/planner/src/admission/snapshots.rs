//! Snapshots that a backup names when it is deleted. Velero creates a VolumeSnapshotContent for each with the handle that
//! is written in the backup, so that its deletion deletes the snapshot. In a tenant's storage anybody's handle may be
//! written there.

use api::{Kind, labels};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;

use super::{NAMED_BY_UID, in_velero_namespace};
use crate::vap::{Draft, cel::at, exists};

/// How much of a name is left in a label that is too short for it: Velero puts a hash behind it.
const OF_LONG_NAME: usize = 57;
/// The most that a label holds.
const LABEL: usize = 63;

/// Velero creates none on behalf of a backup in a tenant's storage, which is known by the name nacre gave the location. Velero
/// deletes only what carries the backup's name, and the data mover's own carries none.
pub(super) fn contents(namespace: &str) -> ValidatingAdmissionPolicy {
    let label = labels::VELERO_BACKUP_NAME;
    let kinds: &[(&str, &[&str])] = &[
        ("snapshot.storage.k8s.io", &["volumesnapshotcontents"]),
        ("groupsnapshot.storage.k8s.io", &["volumegroupsnapshotcontents"]),
    ];
    let location = at("params", &["spec", "storageLocation"], "''");
    Draft::over("nacre-deleted-snapshots", &["CREATE"], kinds)
        .labelled(exists(label))
        .for_each(Kind::Backup)
        .only_if("velero", in_velero_namespace(namespace))
        .demand(
            format!(
                "!({location}).matches('{NAMED_BY_UID}') || (size(params.metadata.name) > {LABEL} ? \
                 !object.metadata.labels['{label}'].startsWith(params.metadata.name.substring(0, {OF_LONG_NAME})) : \
                 object.metadata.labels['{label}'] != params.metadata.name)"
            ),
            "a backup in a tenant's storage has no say about snapshots: the handle in it may be somebody else's",
        )
        .done()
}
