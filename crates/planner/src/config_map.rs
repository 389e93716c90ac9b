//! ConfigMaps that nacre keeps in Velero's namespace for Velero to read: modifiers for restores, and a volume policy.

use std::collections::BTreeMap;

use api::{Kind, labels};
use k8s_openapi::api::core::v1::{ConfigMap, TypedLocalObjectReference};
use kube::core::ObjectMeta;
use serde_json::{Value, json};

use crate::{Action, Object, Target};

/// How a Velero Backup or Restore refers to a ConfigMap.
pub(crate) fn reference(name: &str) -> TypedLocalObjectReference {
    TypedLocalObjectReference { api_group: None, kind: "ConfigMap".to_owned(), name: name.to_owned() }
}

/// The write that makes the ConfigMap hold this key and text and nothing else, if it does not. Velero takes a ConfigMap
/// with one key and no other.
pub(crate) fn ensure(
    namespace: &str,
    name: &str,
    entry: (&str, String),
    found: Option<&ConfigMap>,
) -> Option<Action> {
    let wanted = config_map(namespace, name, entry);
    let Some(found) = found else {
        return Some(Action::Create(Object::of(Kind::ConfigMap, &wanted)));
    };
    if found.data == wanted.data && found.binary_data.is_none() {
        return None;
    }
    let mut data: BTreeMap<_, _> = found.data.iter().flatten().map(|(key, _)| (key, Value::Null)).collect();
    let wanted = wanted.data.unwrap_or_default();
    data.extend(wanted.iter().map(|(key, text)| (key, json!(text))));
    let body = json!({"data": data, "binaryData": null});
    Some(Action::Patch(Target::of(Kind::ConfigMap, &found.metadata), body))
}

/// A ConfigMap of nacre's in Velero's namespace with this one key.
pub(crate) fn config_map(namespace: &str, name: &str, (key, text): (&str, String)) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(namespace.to_owned()),
            labels: Some(BTreeMap::from([
                (labels::OADP.to_owned(), labels::OADP_VALUE.to_owned()),
                (labels::MANAGED_BY.to_owned(), labels::MANAGED_BY_VALUE.to_owned()),
            ])),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([(key.to_owned(), text)])),
        ..ConfigMap::default()
    }
}
