//! How large the parts of a request may be. The API server stores objects of more than a megabyte, and nobody writes
//! such a request by hand: these limits hold while nacre is down too. nacre itself reads no spec above 64 KiB.

use api::Kind;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;

use crate::install::TENANT_KINDS;
use crate::vap::Draft;
use crate::vap::cel::at;

/// Entries of all lists of names together, and the longest name: 64 KiB.
const NAMES: usize = 256;
const NAME: usize = 256;
/// Entries of a map, and the longest value.
const ENTRIES: usize = 64;
const VALUE: usize = 4096;
/// Hooks, and label selectors.
const ITEMS: usize = 32;

/// Only a new spec is looked at, so that nothing old is in the way. An object may have none at all.
const NEW_SPEC: &str =
    "oldObject == null || !has(object.spec) || !has(oldObject.spec) || object.spec != oldObject.spec";

/// Lists of names in the specs of backups and restores.
const LISTS: [(&str, &[&str]); 2] = [
    (
        "backupSpec",
        &[
            "includedNamespaces",
            "excludedNamespaces",
            "includedResources",
            "excludedResources",
            "includedClusterScopedResources",
            "excludedClusterScopedResources",
            "includedNamespaceScopedResources",
            "excludedNamespaceScopedResources",
            "volumeSnapshotLocations",
        ],
    ),
    ("restoreSpec", &["includedNamespaces", "excludedNamespaces", "includedResources", "excludedResources"]),
];

/// Labels, finalizers and owners of every request: Kubernetes limits none of them.
pub(super) fn metadata() -> ValidatingAdmissionPolicy {
    let resources = TENANT_KINDS.map(Kind::plural);
    let over = [(Kind::NonAdminBackup.group(), resources.as_slice())];
    let few = |of: &str| {
        format!("size(variables.{of}) <= {ENTRIES} || size(variables.{of}) <= size(variables.old_{of})")
    };
    let mut draft = Draft::over("nacre-request-metadata", &["CREATE", "UPDATE"], &over);
    for (name, field, none) in
        [("labels", "labels", "{}"), ("finalizers", "finalizers", "[]"), ("owners", "ownerReferences", "[]")]
    {
        draft = draft
            .with(name, at("object", &["metadata", field], none))
            .with(&format!("old_{name}"), at("oldObject", &["metadata", field], none))
            .demand(few(name), &format!("metadata.{field}: a request has at most {ENTRIES}; remove some"));
    }
    let short = ["apiVersion", "kind", "name", "uid"].map(|field| format!("size(owner.{field}) <= {NAME}"));
    draft
        .demand(
            format!(
                "variables.owners == variables.old_owners || variables.owners.all(owner, {})",
                short.join(" && ")
            ),
            &format!(
                "metadata.ownerReferences: every field has at most {NAME} characters; name the owner as it is"
            ),
        )
        .done()
}

/// The spec of a backup.
pub(super) fn backups() -> ValidatingAdmissionPolicy {
    spec("nacre-backup-sizes", Kind::NonAdminBackup, 0)
        .with("ordered", at("object", &["spec", "backupSpec", "orderedResources"], "{}"))
        .demand(
            small_map("variables.ordered"),
            &format!("spec.backupSpec.orderedResources: at most {ENTRIES} entries of at most {VALUE} bytes; list fewer"),
        )
        .demand(
            commands("has(hook.pre) ? hook.pre : []", "step.exec"),
            &format!("spec.backupSpec.hooks: arguments have at most {VALUE} bytes; put the script into the container"),
        )
        .demand(
            commands("has(hook.post) ? hook.post : []", "step.exec"),
            &format!("spec.backupSpec.hooks: arguments have at most {VALUE} bytes; put the script into the container"),
        )
        .done()
}

/// The spec of a restore. Containers in it can be anything, and are refused by nacre too.
pub(super) fn restores() -> ValidatingAdmissionPolicy {
    spec("nacre-restore-sizes", Kind::NonAdminRestore, 1)
        .with("mapping", at("object", &["spec", "restoreSpec", "namespaceMapping"], "{}"))
        .demand(
            small_map("variables.mapping"),
            "spec.restoreSpec.namespaceMapping: not available to namespace owners; leave the field out",
        )
        .demand(
            "variables.hooks.all(hook, (has(hook.postHooks) ? hook.postHooks : []).all(step, !has(step.init)))",
            "spec.restoreSpec.hooks: init containers cannot be added by a restore; use an exec hook instead",
        )
        .demand(
            commands("has(hook.postHooks) ? hook.postHooks : []", "step.exec"),
            &format!("spec.restoreSpec.hooks: arguments have at most {VALUE} bytes; put the script into the container"),
        )
        .done()
}

/// The certificates and the settings of a location.
pub(super) fn locations() -> ValidatingAdmissionPolicy {
    let kind = Kind::NonAdminBackupStorageLocation;
    let path = ["spec", "backupStorageLocationSpec"];
    let deep = |more: &[&'static str]| [&path[..], more].concat();
    Draft::over("nacre-location-sizes", &["CREATE", "UPDATE"], &[(kind.group(), &[kind.plural()])])
        .only_if("new-spec", NEW_SPEC)
        .with("config", at("object", &deep(&["config"]), "{}"))
        .with("authority", at("object", &deep(&["objectStorage", "caCert"]), "''"))
        .demand(
            small_map("variables.config"),
            &format!("spec.backupStorageLocationSpec.config: at most {ENTRIES} settings of at most {VALUE} bytes"),
        )
        .demand(
            format!("size(variables.authority) <= {}", 48 * 1024),
            "spec.backupStorageLocationSpec.objectStorage.caCert: at most 48 KiB; give only the certificates of the endpoint",
        )
        .done()
}

/// What backups and restores have in common.
fn spec(name: &'static str, kind: Kind, of: usize) -> Draft {
    let (spec, lists) = LISTS[of];
    let list = |field: &str| format!("({})", at("object", &["spec", spec, field], "[]"));
    let names = lists.iter().map(|field| list(field)).collect::<Vec<_>>().join(" + ");
    let selectors = at("object", &["spec", spec, "orLabelSelectors"], "[]");
    let labels = at("object", &["spec", spec, "labelSelector", "matchLabels"], "{}");
    let expressions = at("object", &["spec", spec, "labelSelector", "matchExpressions"], "[]");
    Draft::over(name, &["CREATE", "UPDATE"], &[(kind.group(), &[kind.plural()])])
        .only_if("new-spec", NEW_SPEC)
        .with("names", names)
        .with("selectors", selectors)
        .with("labels", labels)
        .with("expressions", expressions)
        .with("hooks", at("object", &["spec", spec, "hooks", "resources"], "[]"))
        .demand(
            format!("size(variables.names) <= {NAMES} && variables.names.all(name, size(name) <= {NAME})"),
            &format!("spec.{spec}: at most {NAMES} names of at most {NAME} bytes in all lists of namespaces and resources; name fewer"),
        )
        .demand(
            format!("size(variables.selectors) <= {ITEMS} && size(variables.expressions) <= {ITEMS} && {}", small_map("variables.labels")),
            &format!("spec.{spec}: at most {ITEMS} label selectors and expressions; select by fewer"),
        )
        .demand(
            format!("size(variables.hooks) <= {ITEMS}"),
            &format!("spec.{spec}.hooks.resources: at most {ITEMS} hooks; merge some"),
        )
}

fn small_map(map: &str) -> String {
    format!("size({map}) <= {ENTRIES} && {map}.all(key, size(key) <= {VALUE} && size({map}[key]) <= {VALUE})")
}

/// Every argument of every command of the hooks is short, and there are few.
fn commands(steps: &str, exec: &str) -> String {
    format!(
        "variables.hooks.all(hook, ({steps}).all(step, !has({exec}) || \
         (size({exec}.command) <= {ITEMS} && {exec}.command.all(word, size(word) <= {VALUE}))))"
    )
}
