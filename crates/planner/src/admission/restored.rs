//! A fence around what Velero creates for tenants' restores.
//!
//! Velero is cluster-admin and creates what the backup holds, and a tenant may have written the backup. Filters in a
//! Restore do not hold against that: some kinds pass them by Velero's own rules. So the API server looks at each object.
//!
//! Velero writes the Restore's name onto every object, and nacre's names tell the storage and the namespace's uid
//! ([`api::restore_name`]). So nothing else is looked up, and old Restores cost nothing.

use api::{Kind, NAMESPACE_UID_IN_NAME, RestoredFrom, labels, restore_name_pattern};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;

use super::in_velero_namespace;
use crate::fence;
use crate::restore::NEVER_FROM_TENANTS;
use crate::vap::{Draft, cel::at, cel::list, exists};

/// How long a uid is.
const UID: usize = 36;

/// What Velero itself makes in its own namespace for a restore: the volumes that come back.
const VOLUME_OPERATIONS: [Kind; 2] = [Kind::PodVolumeRestore, Kind::DataDownload];

/// What comes back with a volume from the administrators' storage, without a namespace.
const VOLUMES: [&str; 2] = ["persistentvolumes", "volumesnapshotcontents.snapshot.storage.k8s.io"];

/// Types of Secrets that Kubernetes itself takes for credentials, whoever wrote them.
pub(crate) const TOKENS: [&str; 2] = ["kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token"];

/// The resource of the request, as Velero spells it.
pub(super) const RESOURCE: &str = "request.resource.group == '' ? request.resource.resource : \
                                   request.resource.resource + '.' + request.resource.group";

/// The namespace of the request; empty without one. The API server leaves the field out then.
pub(super) const IN_NAMESPACE: &str = "(has(request.namespace) ? request.namespace : '')";

/// The uid of the request's namespace. Its type in CEL spells the field in capitals, and the value does not.
pub(super) const NAMESPACE_UID: &str = "dyn(namespaceObject).metadata.uid";

/// The start of the namespace's uid in the name of a Restore.
pub(super) fn owner_in(restore: &str) -> String {
    let (start, end) = (UID + 1 + NAMESPACE_UID_IN_NAME, UID + 1);
    format!("{restore}.substring(size({restore}) - {start}, size({restore}) - {end})")
}

/// An object with this annotation is given the status that the backup says it had.
const RESTORE_STATUS: &str = "velero.io/restore-status";

/// A policy over what Velero creates and changes of these kinds for tenants' restores from these storages. What was
/// restored once and is changed by others is not its business.
pub(super) fn over_restored(
    name: &'static str,
    kinds: &[(&str, &[&str])],
    from: &[RestoredFrom],
    namespace: &str,
) -> Draft {
    let label = labels::VELERO_RESTORE_NAME;
    let named = format!(
        "has(object.metadata.labels) && '{label}' in object.metadata.labels && object.metadata.labels['{label}'].matches('{}')",
        restore_name_pattern(from)
    );
    // One condition: the API server evaluates each, whatever the others say, and this one may end at the user's name.
    let all = [in_velero_namespace(namespace), named, changes()];
    Draft::over(name, &["CREATE", "UPDATE"], kinds)
        .labelled(exists(label))
        .only_if("velero-for-a-tenant", all.map(|one| format!("({one})")).join(" && "))
}

/// Whether a request changes more than the record of who manages which field. Velero writes that record after it created
/// an object, for each object, and to look at the same object twice would cost as much again.
fn changes() -> String {
    let (new, old) = ("dyn(object)", "dyn(oldObject)");
    let same = |field: &str, none: &str| {
        let path = ["metadata", field];
        format!("({}) == ({})", at("object", &path, none), at("oldObject", &path, none))
    };
    let metadata = [("labels", "{}"), ("annotations", "{}"), ("finalizers", "[]"), ("ownerReferences", "[]")];
    let metadata = metadata.map(|(field, none)| same(field, none)).join(" && ");
    format!(
        "request.operation == 'CREATE' || !({old}.all(key, key in {new}) && \
         {new}.all(key, key == 'metadata' || (key in {old} && {new}[key] == {old}[key])) && {metadata})"
    )
}

/// Objects stay in the restore's own namespace, and are of kinds that may come back.
pub(super) fn objects(namespace: &str) -> ValidatingAdmissionPolicy {
    let label = labels::VELERO_RESTORE_NAME;
    let start = UID + 1 + NAMESPACE_UID_IN_NAME;
    let of_velero = VOLUME_OPERATIONS.map(Kind::plural);
    let owners = at("object", &["metadata", "ownerReferences"], "[]");
    let tenants = RestoredFrom::TenantStorage.letter();
    over_restored("nacre-restored-objects", &[("*", &["*", "*/status"])], &RestoredFrom::ALL, namespace)
        .with("restore", format!("object.metadata.labels['{label}']"))
        .with("length", "size(variables.restore)")
        .with("owner", owner_in("variables.restore"))
        .with(
            "forgeable",
            format!("variables.restore.substring(variables.length - {}, variables.length - {start}) == '{tenants}'", start + 1),
        )
        .with("resource", RESOURCE)
        .with("home", format!("namespaceObject != null && {NAMESPACE_UID}.startsWith(variables.owner)"))
        .with(
            "by_itself",
            format!(
                "{IN_NAMESPACE} == '{namespace}' && request.resource.group == '{}' && request.resource.resource in {} && \
                 ({owners}).exists(owner, owner.kind == 'Restore' && owner.name == variables.restore)",
                Kind::Restore.group(),
                list(&of_velero)
            ),
        )
        .with("moved", moved(namespace))
        .with("volume", format!("namespaceObject == null && !variables.forgeable && variables.resource in {}", list(&VOLUMES)))
        .demand(
            "variables.home || variables.by_itself || variables.moved || variables.volume",
            "a tenant's restore brings back nothing outside the tenant's namespace, and nothing without a namespace but \
             volumes from the administrators' storage",
        )
        .demand(
            format!("!variables.home || !{}", among(&fence::out_of_restores())),
            "objects of this kind do not come back by a tenant's restore",
        )
        .demand(
            format!("!variables.home || !variables.forgeable || !{}", among(&NEVER_FROM_TENANTS)),
            "objects of this kind do not come back from storage that a tenant can write to",
        )
        .demand(
            format!("!variables.forgeable || !('{RESTORE_STATUS}' in ({}))", at("object", &["metadata", "annotations"], "{}")),
            "no status comes back from storage that a tenant can write to",
        )
        .demand(
            "!variables.forgeable || !has(request.subResource) || request.subResource != 'status'",
            "no status comes back from storage that a tenant can write to",
        )
        .demand(
            format!(
                "!variables.forgeable || variables.resource != 'secrets' || !(({}) in {})",
                at("object", &["type"], "''"),
                list(&TOKENS)
            ),
            "Secrets of this type are Kubernetes' own credentials, and do not come back from storage that a tenant can \
             write to: create a new one",
        )
        .done()
}

/// The empty claim into which a data mover restores a volume: in Velero's namespace, with the labels of the tenant's claim.
/// It belongs to the DataDownload of its name. What Velero restores out of a backup belongs to nobody: Velero takes owners
/// out of it.
fn moved(namespace: &str) -> String {
    let owners = at("object", &["metadata", "ownerReferences"], "[]");
    let sources =
        ["dataSource", "dataSourceRef"].map(|source| format!("!has(object.spec.{source})")).join(" && ");
    format!(
        "{IN_NAMESPACE} == '{namespace}' && variables.resource == 'persistentvolumeclaims' && {sources} && \
         ({owners}).exists(owner, owner.kind == '{}' && owner.apiVersion.startsWith('{}/') && owner.name == object.metadata.name)",
        Kind::DataDownload.name(),
        Kind::DataDownload.group(),
    )
}

/// Whether the request is about one of these resources, in Velero's patterns: a star ends at a dot, two do not. Looking
/// up a list takes the API server a step, and a regular expression many: this is asked about every restored object.
pub(super) fn among(resources: &[impl AsRef<str>]) -> String {
    let (mut groups, mut exact, mut plurals, mut starts) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for resource in resources.iter().map(AsRef::as_ref) {
        match resource.split_once('.') {
            Some(("*", group)) => groups.push(group),
            Some((plural, "**")) => match plural.strip_suffix('*') {
                Some(start) => starts.push(start),
                None => plurals.push(plural),
            },
            _ => exact.push(resource),
        }
    }
    exact.retain(|resource| resource.split_once('.').is_none_or(|(_, group)| !groups.contains(&group)));
    let (group, plural) = ("request.resource.group", "request.resource.resource");
    let starting = starts.iter().map(|start| format!("{plural}.startsWith('{start}')"));
    let of_any_group = std::iter::once(format!("{plural} in {}", list(&plurals))).chain(starting);
    let of_any_group = of_any_group.collect::<Vec<_>>().join(" || ");
    let mut ways =
        vec![format!("{group} in {}", list(&groups)), format!("variables.resource in {}", list(&exact))];
    if !(plurals.is_empty() && starts.is_empty()) {
        ways.push(format!("({group} != '' && ({of_any_group}))"));
    }
    format!("({})", ways.join(" || "))
}
