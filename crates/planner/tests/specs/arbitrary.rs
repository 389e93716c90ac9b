//! Arbitrary specs: every field, with valid, invalid or hostile values.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

/// The tenant's own namespace.
pub(crate) const OWN: &str = "shop";
/// Somebody else's, which must not be named in anything nacre makes.
pub(crate) const FOREIGN: &str = "victim";

/// Resources in every spelling.
const RESOURCES: [&str; 26] = [
    "*",
    "secrets",
    "Secrets",
    "secrets.",
    "cm",
    "configmaps",
    "deployments",
    "deployments.apps",
    "pods",
    "persistentvolumes",
    "persistentvolumeclaims",
    "roles",
    "rolebindings.rbac.authorization.k8s.io",
    "clusterrolebindings",
    "namespaces",
    "resourcequotas",
    "limitranges",
    "nonadminbackups",
    "nonadminrestores.oadp.openshift.io",
    "backups.velero.io",
    "datauploads.velero.io",
    "virtualmachineinstancemigrations.kubevirt.io",
    "volumesnapshotclasses",
    "customresourcedefinitions",
    "{a,b}",
    "",
];

fn resources() -> impl Strategy<Value = Value> {
    prop::collection::vec(select(&RESOURCES[..]), 0..3).prop_map(|names| json!(names))
}

fn namespaces() -> impl Strategy<Value = Value> {
    let names = [OWN, FOREIGN, "*", "vic*", "shop*", ""];
    prop::collection::vec(select(names.to_vec()), 0..3).prop_map(|names| json!(names))
}

fn one_of(values: &[Value]) -> BoxedStrategy<Value> {
    select(values.to_vec()).boxed()
}

fn switch() -> BoxedStrategy<Value> {
    one_of(&[json!(true), json!(false)])
}

fn selector() -> Value {
    json!({"matchLabels": {"app": "web"}})
}

fn reference() -> BoxedStrategy<Value> {
    one_of(&[json!({"kind": "ConfigMap", "name": "usable"}), json!({"kind": "ConfigMap", "name": "private"})])
}

fn hook(commands: &'static [&'static str], command: Vec<Value>) -> impl Strategy<Value = Value> {
    let lists = (prop::option::weighted(0.4, namespaces()), prop::option::weighted(0.1, namespaces()));
    (lists, select(commands.to_vec()), select(command)).prop_map(|((included, excluded), at, command)| {
        let mut hook = json!({"name": "a", at: [command]});
        if let Some(included) = included {
            hook["includedNamespaces"] = included;
        }
        if let Some(excluded) = excluded {
            hook["excludedNamespaces"] = excluded;
        }
        json!({"resources": [hook]})
    })
}

/// Some of these fields; the number says how often one is there, in percent.
fn some_of(fields: Vec<(&'static str, u32, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    let each: Vec<_> = fields
        .into_iter()
        .map(|(name, percent, value)| (Just(name), prop::option::weighted(f64::from(percent) / 100.0, value)))
        .collect();
    each.prop_map(|fields| {
        let set = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        Value::Object(set.collect::<Map<_, _>>())
    })
    .boxed()
}

/// An arbitrary RestoreSpec.
pub(crate) fn restore_spec() -> BoxedStrategy<Value> {
    let exec = json!({"exec": {"command": ["true"]}});
    let init = json!({"init": {"initContainers": [{"name": "x", "image": "y"}]}});
    some_of(vec![
        ("backupName", 97, one_of(&[json!("daily")])),
        ("scheduleName", 3, one_of(&[json!(FOREIGN)])),
        ("includedNamespaces", 5, namespaces().boxed()),
        ("excludedNamespaces", 5, namespaces().boxed()),
        ("includedResources", 40, resources().boxed()),
        ("excludedResources", 30, resources().boxed()),
        ("namespaceMapping", 5, one_of(&[json!({OWN: FOREIGN}), json!({FOREIGN: OWN}), json!({})])),
        ("labelSelector", 20, one_of(&[selector(), json!({})])),
        ("orLabelSelectors", 20, one_of(&[json!([selector()]), json!([])])),
        ("restorePVs", 30, switch()),
        ("restoreStatus", 5, one_of(&[json!({"includedResources": ["*"]}), json!({})])),
        ("preserveNodePorts", 20, switch()),
        ("includeClusterResources", 20, switch()),
        ("hooks", 30, hook(&["postHooks"], vec![exec.clone(), exec, init]).boxed()),
        ("existingResourcePolicy", 20, one_of(&[json!("none"), json!("update"), json!("recreate")])),
        ("itemOperationTimeout", 20, one_of(&[json!("4h"), json!("soon")])),
        ("resourceModifier", 8, reference()),
        ("resourcePolicy", 8, reference()),
        ("uploaderConfig", 20, one_of(&[json!({"parallelFilesDownload": 3})])),
    ])
}

/// An arbitrary BackupSpec.
pub(crate) fn backup_spec() -> BoxedStrategy<Value> {
    let exec = json!({"exec": {"command": ["true"]}});
    some_of(vec![
        ("metadata", 20, one_of(&[json!({"labels": {"a": "b"}})])),
        ("includedNamespaces", 10, namespaces().boxed()),
        ("excludedNamespaces", 4, namespaces().boxed()),
        ("includedResources", 15, resources().boxed()),
        ("excludedResources", 15, resources().boxed()),
        ("includedClusterScopedResources", 5, resources().boxed()),
        ("excludedClusterScopedResources", 15, resources().boxed()),
        ("includedNamespaceScopedResources", 15, resources().boxed()),
        ("excludedNamespaceScopedResources", 15, resources().boxed()),
        ("labelSelector", 15, one_of(&[selector(), json!({})])),
        ("orLabelSelectors", 15, one_of(&[json!([selector()]), json!([])])),
        ("snapshotVolumes", 20, switch()),
        ("ttl", 20, one_of(&[json!("24h"), json!("-1h")])),
        ("includeClusterResources", 15, switch()),
        ("hooks", 30, hook(&["pre", "post"], vec![exec]).boxed()),
        ("storageLocation", 5, one_of(&[json!("mine"), json!("default"), json!(FOREIGN)])),
        ("volumeSnapshotLocations", 4, one_of(&[json!(["default"]), json!([])])),
        ("defaultVolumesToRestic", 20, switch()),
        ("defaultVolumesToFsBackup", 20, switch()),
        (
            "orderedResources",
            20,
            one_of(&[
                json!({"pods": "shop/a,shop/b"}),
                json!({"pods": "shop/a, victim/b"}),
                json!({"persistentvolumes": "a"}),
            ]),
        ),
        ("csiSnapshotTimeout", 10, one_of(&[json!("10m"), json!("0s")])),
        ("itemOperationTimeout", 10, one_of(&[json!("4h"), json!("soon")])),
        ("resourcePolicy", 8, reference()),
        ("snapshotMoveData", 20, switch()),
        ("datamover", 10, one_of(&[json!("velero")])),
        ("uploaderConfig", 10, one_of(&[json!({"parallelFilesUpload": 3})])),
        ("volumeGroupSnapshotLabelKey", 10, one_of(&[json!("group")])),
    ])
}

/// What an administrator requires of restores on top.
pub(crate) fn enforced_restore() -> BoxedStrategy<Value> {
    one_of(&[
        json!({}),
        json!({}),
        json!({"excludedResources": ["secrets"]}),
        json!({"includedResources": ["configmaps", "secrets"]}),
        json!({"labelSelector": selector()}),
        json!({"includeClusterResources": false, "existingResourcePolicy": "none"}),
    ])
}

/// What an administrator requires of backups on top.
pub(crate) fn enforced_backup() -> BoxedStrategy<Value> {
    one_of(&[
        json!({}),
        json!({}),
        json!({"excludedResources": ["secrets"]}),
        json!({"includedNamespaceScopedResources": ["configmaps"]}),
        json!({"orLabelSelectors": [selector()]}),
        json!({"snapshotVolumes": false, "ttl": "24h"}),
    ])
}
