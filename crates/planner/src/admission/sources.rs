//! Data from outside the namespace. CDI asks whether whoever creates an object may read the source it names, and for
//! what Velero restores that is Velero, which may read everything. So what a tenant's restore brings back names no
//! source outside the namespace, unless the namespace's own service account may read it: then it could be had anyway.

use api::RestoredFrom;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;

use super::baseline::{PODS, pod};
use super::restored::over_restored;
use crate::vap::{Draft, cel::at};

/// Every kind with a field that names a source by namespace, or a snapshot's content, which has none. Pods are in
/// addition: a claim may be written in one.
const KINDS: [(&str, &[&str]); 6] = [
    ("", &["persistentvolumeclaims"]),
    ("snapshot.storage.k8s.io", &["volumesnapshots"]),
    ("groupsnapshot.storage.k8s.io", &["volumegroupsnapshots"]),
    ("cdi.kubevirt.io", &["datavolumes", "datasources", "dataimportcrons"]),
    ("kubevirt.io", &["virtualmachines"]),
    ("pool.kubevirt.io", &["virtualmachinepools"]),
];

/// Where the spec of a DataVolume, or of what is like one, names the namespace of a disk.
const DISKS: [&[&str]; 4] = [
    &["source", "pvc", "namespace"],
    &["source", "snapshot", "namespace"],
    &["source", "dataSource", "namespace"],
    &["sourceRef", "namespace"],
];

/// Where the spec of a claim, or of what makes one, names the namespace of its data. No service account can be asked
/// about: Kubernetes itself wants a grant there.
const CLAIMS: [&[&str]; 3] = [
    &["dataSourceRef", "namespace"],
    &["pvc", "dataSourceRef", "namespace"],
    &["storage", "dataSourceRef", "namespace"],
];

/// Where a snapshot names the content it is to be bound to, instead of a claim to be made of.
const CONTENTS: [&[&str]; 2] =
    [&["spec", "source", "volumeSnapshotContentName"], &["spec", "source", "volumeGroupSnapshotContentName"]];

/// Whether a content has a name that Velero gives what it restores along with a snapshot: since 1.18 both are called by a
/// digest, and before, Kubernetes put five characters after the snapshot's name and a dash, of which it takes 58 at most.
fn restored_by_velero(content: &str) -> String {
    let name = "object.metadata.name";
    format!(
        "(({content} == {name} && {content}.matches('^[0-9a-f]{{64}}$')) || (size({content}) in [size({name}) + 6, 63] && \
         ({name} + '-').startsWith({content}.substring(0, size({content}) - 5))))"
    )
}

/// Whether the default service account of the namespace may clone the disk, as CDI asks it of users.
pub(super) const MAY_CLONE: &str = "authorizer.serviceAccount(request.namespace, 'default').group('cdi.kubevirt.io')\
                                    .resource('datavolumes').subresource('source').namespace(source)\
                                    .check('create').allowed()";

/// What a tenant's restore brings back gets its data from its own namespace.
pub(super) fn sources(namespace: &str) -> ValidatingAdmissionPolicy {
    of_own_namespace(over_restored("nacre-restored-sources", &kinds(), &RestoredFrom::ALL, namespace))
}

/// Every kind that can name a source, in itself or in a pod.
pub(super) fn kinds() -> Vec<(&'static str, &'static [&'static str])> {
    [&KINDS[..], &PODS[..]].concat()
}

/// Holds the objects of a policy to data from their own namespace.
pub(super) fn of_own_namespace(draft: Draft) -> ValidatingAdmissionPolicy {
    let specs = [
        &["spec", "dataVolumeTemplates"][..],
        &["spec", "virtualMachineTemplate", "spec", "dataVolumeTemplates"],
        &["spec", "volumeClaimTemplates"],
    ]
    .map(|path| format!("({})", at("object", path, "[]")));
    let in_pods = format!(
        "({}).filter(volume, has(volume.ephemeral)).map(volume, {})",
        at("variables.pod", &["spec", "volumes"], "[]"),
        at("volume", &["ephemeral", "volumeClaimTemplate", "spec"], "{}")
    );
    let contents = CONTENTS.map(|path| format!("({})", at("object", path, "''")));
    let own =
        [&["spec"][..], &["spec", "template", "spec"]].map(|path| format!("[{}]", at("object", path, "{}")));
    let of_templates = format!("({}).map(template, {})", specs.join(" + "), at("template", &["spec"], "{}"));
    let by_reference = at("object", &["spec", "sourceRef", "namespace"], "request.namespace");
    draft
        .with("pod", pod())
        .with("specs", format!("{} + {of_templates} + {in_pods}", own.join(" + ")))
        .demand(
            all(&DISKS, &format!("source in ['', request.namespace] || {MAY_CLONE}")),
            "what a tenant's restore brings back takes no disk from another namespace, unless the default service account of \
             its namespace may create datavolumes/source there",
        )
        .demand(
            all(&CLAIMS, "source in ['', request.namespace]"),
            "what a tenant's restore brings back takes no data from another namespace: leave dataSourceRef.namespace out",
        )
        .demand(
            format!(
                "request.resource.resource != 'datavolumes' || !has(object.spec.sourceRef) || ({by_reference}) != request.namespace"
            ),
            "a DataVolume that refers to a DataSource of the same namespace does not come back: its owner can point it \
             anywhere; restore the claim itself, or name the source",
        )
        .demand(
            format!("[{}].all(content, content == '' || {})", contents.join(", "), restored_by_velero("content")),
            "a snapshot that names its content does not come back, unless Velero restored the content with it: the content \
             may be of somebody else's disk; restore the claim, or make a snapshot of it",
        )
        .done()
}

/// Whether every namespace that the specs name at one of these paths is fine.
fn all(paths: &[&[&str]], fine: &str) -> String {
    let named: Vec<String> = paths.iter().map(|path| format!("({})", at("spec", path, "''"))).collect();
    format!("variables.specs.all(spec, [{}].all(source, {fine}))", named.join(", "))
}
