//! How an object differs from the one in the backup, field by field.

use serde::Serialize;
use serde_json::{Map, Value};

/// One field that differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// The field, as in spec.replicas.
    pub field: String,
    /// What it is now; none if it is not set, or secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now: Option<Value>,
    /// What it is in the backup; none if it is not set, or secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup: Option<Value>,
}

/// Metadata that says nothing about what an object is.
const METADATA: [&str; 10] = [
    "generateName",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "ownerReferences",
    "managedFields",
];

/// Labels that Velero adds to what it restores.
const LABELS: [&str; 2] = ["velero.io/backup-name", "velero.io/restore-name"];

/// Fields that the cluster fills in, and Velero takes out, by resource.
fn filled_in(resource: &str) -> &'static [&'static str] {
    match resource {
        "services" => &["spec.clusterIP", "spec.clusterIPs", "spec.healthCheckNodePort"],
        "persistentvolumeclaims" => &[
            "spec.volumeName",
            "metadata.annotations.pv.kubernetes.io/bind-completed",
            "metadata.annotations.pv.kubernetes.io/bound-by-controller",
            "metadata.annotations.volume.kubernetes.io/selected-node",
        ],
        "pods" => &["spec.nodeName", "spec.priority"],
        _ => &[],
    }
}

/// The fields of an existing object that are not as they were.
pub(super) fn between(resource: &str, backup: &Value, live: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    compare("", &plain(backup), &plain(live), &mut found);
    found.retain(|difference| !filled_in(resource).contains(&difference.field.as_str()));
    if resource == "secrets" {
        for difference in &mut found {
            (difference.now, difference.backup) = (None, None);
        }
    }
    found
}

/// What Velero would add to an existing service account.
pub(super) fn missing(backup: &Value, live: &Value) -> Vec<Difference> {
    let (backup, live) = (plain(backup), plain(live));
    let mut found = Vec::new();
    for list in ["secrets", "imagePullSecrets"] {
        let has = |name: &Value| live[list].as_array().into_iter().flatten().any(|one| one["name"] == *name);
        let more = backup[list].as_array().into_iter().flatten().filter(|one| !has(&one["name"]));
        found.extend(more.map(|one| Difference {
            field: list.to_owned(),
            now: None,
            backup: Some(one.clone()),
        }));
    }
    for map in ["labels", "annotations"] {
        let (theirs, ours) = (&backup["metadata"][map], &live["metadata"][map]);
        for (key, value) in theirs.as_object().into_iter().flatten() {
            if ours.get(key).is_none() {
                let field = format!("metadata.{map}.{key}");
                found.push(Difference { field, now: None, backup: Some(value.clone()) });
            }
        }
    }
    found
}

/// An object without its status and without metadata that differs always.
fn plain(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        // The items of a list do not say what they are.
        for field in ["apiVersion", "kind", "status"] {
            fields.remove(field);
        }
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in METADATA {
            metadata.remove(field);
        }
        if let Some(labels) = metadata.get_mut("labels").and_then(Value::as_object_mut) {
            for label in LABELS {
                labels.remove(label);
            }
        }
    }
    object
}

/// What Kubernetes takes for the same as a field that is not set.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

fn compare(path: &str, backup: &Value, live: &Value, found: &mut Vec<Difference>) {
    if backup == live || (is_nothing(backup) && is_nothing(live)) {
        return;
    }
    let none = Map::new();
    let fields =
        |value: &'_ Value| value.as_object().cloned().or_else(|| value.is_null().then(|| none.clone()));
    if let (Some(theirs), Some(ours)) = (fields(backup), fields(live)) {
        let mut keys: Vec<&String> = theirs.keys().chain(ours.keys()).collect();
        keys.sort();
        keys.dedup();
        for key in keys {
            let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            let (theirs, ours) = (theirs.get(key), ours.get(key));
            compare(&below, theirs.unwrap_or(&Value::Null), ours.unwrap_or(&Value::Null), found);
        }
        return;
    }
    let given = |value: &Value| (!value.is_null()).then(|| value.clone());
    found.push(Difference { field: path.to_owned(), now: given(live), backup: given(backup) });
}
