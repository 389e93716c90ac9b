//! A fence around each tenant's storage: what goes into it is that tenant's, whoever asks for it.
//!
//! Velero takes over what it finds in a bucket, and the tenant wrote what is in the bucket. A backup of everything that
//! somebody put there would be run with all of Velero's rights, and its result would be the tenant's to read. So these hold
//! for Velero and for administrators too. Which storage is whose is read from the locations themselves.

use api::{Kind, labels};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;

use super::{NAMED_BY_UID, in_velero_namespace};
use crate::install::SERVICE_ACCOUNT;
use crate::vap::{
    Draft,
    cel::{at, list},
};

/// The phases in which Velero is done with a backup.
const OVER: [&str; 3] = ["Completed", "PartiallyFailed", "Failed"];

/// What the labels of a Backup that nacre or the Go controller made begin with, and Velero's own.
pub(super) const LABELS: [&str; 4] =
    [labels::OADP, "nacre.dev/", labels::MANAGED_BY, labels::VELERO_STORAGE_LOCATION];

/// What the labels begin with that Velero gives what it makes for a backup.
pub(super) const VELEROS: &str = "velero.io/";

/// How much of a long namespace every name that was made for it begins with.
const START: usize = 24;

/// A Backup covers the owner's namespace and nothing else. One that Velero found in the bucket is over, and has nothing
/// but what nacre gave it: a label could have it taken for a schedule's newest, a finalizer would keep it for ever.
pub(super) fn backups(namespace: &str) -> ValidatingAdmissionPolicy {
    let found = found(namespace);
    over_locations("nacre-tenant-backups", Kind::Backup, namespace, "storageLocation")
        .with("namespaces", at("object", &["spec", "includedNamespaces"], "[]"))
        .with("cluster", at("object", &["spec", "includeClusterResources"], "false"))
        .with("cluster_kinds", at("object", &["spec", "includedClusterScopedResources"], "[]"))
        .with("phase", at("object", &["status", "phase"], "''"))
        .with("found", found)
        .demand(
            "!variables.concerned || (size(variables.namespaces) == 1 && variables.namespaces[0] == variables.owner)",
            "a backup in a tenant's storage covers that tenant's namespace and no other: \
             set includedNamespaces to it, or use another storage location",
        )
        .demand(
            "!variables.concerned || (variables.cluster != true && size(variables.cluster_kinds) == 0)",
            "a backup in a tenant's storage covers no cluster-scoped resources: leave includeClusterResources \
             and includedClusterScopedResources out, or use another storage location",
        )
        .demand(
            format!("!variables.concerned || !variables.found || variables.phase in {}", list(&OVER)),
            "a backup that was found in a tenant's storage is never run",
        )
        .with("labels", at("object", &["metadata", "labels"], "{}"))
        .with("start", format!("size(variables.owner) > {START} ? variables.owner.substring(0, {START}) : variables.owner + '-'"))
        .demand(
            format!(
                "!variables.concerned || !variables.found || variables.labels.all(key, {}.exists(start, key.startsWith(start)))",
                list(&LABELS)
            ),
            "a backup that was found in a tenant's storage has no labels but those that nacre gives",
        )
        .demand(
            format!(
                "!variables.concerned || !variables.found || (size({}) == 0 && size({}) == 0)",
                at("object", &["metadata", "finalizers"], "[]"),
                at("object", &["metadata", "ownerReferences"], "[]")
            ),
            "a backup that was found in a tenant's storage has neither finalizers nor owners",
        )
        .demand(
            format!(
                "!variables.concerned || !variables.found || (object.metadata.name.startsWith(variables.start) && \
                 object.metadata.name.matches('{NAMED_BY_UID}') && '{nacuuid}' in variables.labels && \
                 variables.labels['{nacuuid}'] == object.metadata.name)",
                nacuuid = labels::NAB_NACUUID
            ),
            "a backup that was found in a tenant's storage has a name that nacre gave it in that tenant's namespace, and \
             the label that says so",
        )
        .done()
}

/// Whether Velero creates an object that it found: everything else in its namespace is made by nacre or administrators.
pub(super) fn found(namespace: &str) -> String {
    let nacre = format!("request.userInfo.username == 'system:serviceaccount:{namespace}:{SERVICE_ACCOUNT}'");
    format!("request.operation == 'CREATE' && {} && !({nacre})", in_velero_namespace(namespace))
}

/// Whether an owner of a volume operation is its backup, by the uid that Velero has written onto what it imported.
pub(super) fn own_backup() -> String {
    let uid = labels::VELERO_BACKUP_UID;
    format!("'{uid}' in variables.labels && owner.uid == variables.labels['{uid}']")
}

/// What is read out of a volume is the owner's pod's or claim's. It names its backup by uid: Velero corrects the uid of what
/// it imports, if there is one, and never the name.
pub(super) fn volumes(namespace: &str) -> ValidatingAdmissionPolicy {
    over_locations("nacre-tenant-volumes", Kind::PodVolumeBackup, namespace, "backupStorageLocation")
        .with("pod", at("object", &["spec", "pod", "namespace"], "''"))
        .with("claim", at("object", &["spec", "sourceNamespace"], "''"))
        .demand(
            "!variables.concerned || ([variables.pod, variables.claim].exists(named, named == variables.owner) && \
             [variables.pod, variables.claim].all(named, named == '' || named == variables.owner))",
            "what goes into a tenant's storage comes from volumes in that tenant's namespace: \
             name one of its pods or claims, or use another storage location",
        )
        .with("labels", at("object", &["metadata", "labels"], "{}"))
        .demand(
            format!("!variables.concerned || '{}' in variables.labels", labels::VELERO_BACKUP_UID),
            "what goes into a tenant's storage says by uid which backup it belongs to: a name alone may be somebody else's",
        )
        // Volume operations that Velero is about to run are created like those it found, and have nothing of this either.
        .with("found", found(namespace))
        .demand(
            format!(
                "!variables.concerned || !variables.found || (size({}) == 0 && ({}).all(owner, {}) && \
                 variables.labels.all(key, key.startsWith('{VELEROS}')))",
                at("object", &["metadata", "finalizers"], "[]"),
                at("object", &["metadata", "ownerReferences"], "[]"),
                own_backup()
            ),
            "a volume operation that Velero creates for a tenant's storage has no finalizers, no owner but its backup, and no labels but Velero's",
        )
        .done()
}

/// A policy that is asked once for each tenant's location, and is concerned if the object goes there. What is there
/// already and stays as it is, is not looked at again: Velero writes progress as it writes everything.
pub(super) fn over_locations(name: &'static str, kind: Kind, namespace: &str, field: &str) -> Draft {
    let (new, old) = (at("object", &["spec"], "{}"), at("oldObject", &["spec"], "{}"));
    over_operations(name, &["CREATE", "UPDATE"], kind, namespace, field)
        .only_if("new-or-changed", format!("request.operation == 'CREATE' || ({new}) != ({old})"))
}

/// The same for these operations, whatever changes.
pub(super) fn over_operations(
    name: &'static str,
    operations: &[&str],
    kind: Kind,
    namespace: &str,
    field: &str,
) -> Draft {
    let kinds: &[&str] = if kind == Kind::Backup {
        &[Kind::Backup.plural()]
    } else {
        &[Kind::PodVolumeBackup.plural(), Kind::DataUpload.plural()]
    };
    let owner = labels::NABSL_NAMESPACE;
    Draft::over(name, operations, &[(kind.group(), kinds)])
        .in_namespace(namespace)
        .for_each(Kind::BackupStorageLocation)
        .with("location", at("object", &["spec", field], "''"))
        .with("marks", at("params", &["metadata", "annotations"], "{}"))
        .with("owner", format!("'{owner}' in variables.marks ? variables.marks['{owner}'] : '(nobody)'"))
        .with("concerned", "variables.location == params.metadata.name")
}
