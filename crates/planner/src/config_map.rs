//! ConfigMaps that nacre keeps in Velero's namespace: modifiers for restores and a volume policy for Velero to read, and
//! the policy in force.

use std::collections::BTreeMap;

use api::{Kind, labels};
use k8s_openapi::api::core::v1::{ConfigMap, TypedLocalObjectReference};
use kube::core::ObjectMeta;
use serde_json::{Value, json};

use crate::{Action, Object, Target};

/// The texts of a ConfigMap.
pub(crate) type Data = BTreeMap<String, String>;

/// How a Velero Backup or Restore refers to a ConfigMap.
pub(crate) fn reference(name: &str) -> TypedLocalObjectReference {
    TypedLocalObjectReference { api_group: None, kind: "ConfigMap".to_owned(), name: name.to_owned() }
}

/// The write that makes the ConfigMap hold these texts and nothing else, if it does not. Velero takes a ConfigMap with one
/// key and no other.
pub(crate) fn ensure(namespace: &str, name: &str, wanted: Data, found: Option<&ConfigMap>) -> Option<Action> {
    let Some(found) = found else {
        // Nothing to say needs no ConfigMap.
        let create = !wanted.is_empty();
        return create
            .then(|| Action::Create(Object::of(Kind::ConfigMap, &config_map(namespace, name, wanted))));
    };
    let there = found.data.clone().unwrap_or_default();
    if there == wanted && found.binary_data.is_none() {
        return None;
    }
    let mut data: BTreeMap<_, _> = there.into_keys().map(|key| (key, Value::Null)).collect();
    data.extend(wanted.into_iter().map(|(key, text)| (key, Value::String(text))));
    let body = json!({"data": data, "binaryData": null});
    Some(Action::Patch(Target::of(Kind::ConfigMap, &found.metadata), body))
}

/// One key and its text.
pub(crate) fn single(key: &str, text: impl Into<String>) -> Data {
    BTreeMap::from([(key.to_owned(), text.into())])
}

/// A ConfigMap of nacre's in Velero's namespace.
pub(crate) fn config_map(namespace: &str, name: &str, data: Data) -> ConfigMap {
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
        data: Some(data),
        ..ConfigMap::default()
    }
}
