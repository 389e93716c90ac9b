//! The values nacre was installed with, kept in the cluster, so that whoever installs again need not repeat them.

use api::Kind;
use serde_json::{Map, Value, json};

use super::{Found, Settings, marked};
use crate::Object;

/// The ConfigMap in Velero's namespace that holds them, one key per value.
pub const RECORD: &str = "nacre-install-values";

/// The ConfigMap for these values. It is made by `kubectl nacre install` alone: Helm keeps its own values, and manifests that
/// are applied by hand are often changed by hand.
pub(super) fn record(settings: &Settings) -> Object {
    let data: Map<String, Value> =
        fields(settings).into_iter().map(|(key, value)| (key, text(value))).collect();
    let metadata = json!({"name": RECORD, "namespace": settings.namespace});
    marked(Kind::ConfigMap, json!({"metadata": metadata, "data": data}))
}

/// Each value under its name, as the chart's values.yaml has it.
pub(super) fn fields(settings: &Settings) -> Map<String, Value> {
    match serde_json::to_value(settings) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

fn text(value: Value) -> Value {
    if value.is_string() { value } else { value.to_string().into() }
}

/// The values in the ConfigMap. A key that this version does not know is passed over.
pub(super) fn recorded(found: &Found) -> Result<Map<String, Value>, String> {
    let mut read = Map::new();
    for (key, default) in fields(&Settings::default()) {
        let Some(text) = found.body["data"][&key].as_str() else { continue };
        let value = if default.is_string() { Some(text.into()) } else { serde_json::from_str(text).ok() };
        let understood =
            value.filter(|value| serde_json::from_value::<Settings>(json!({ &key: value })).is_ok());
        let Some(value) = understood else {
            return Err(format!(
                "configmap/{RECORD} in {}: data.{key} is {text:?}, which is not a value for it; one is {}. Correct it, or delete \
                 the ConfigMap: the values are then taken from what is installed",
                found.namespace(),
                self::text(default).as_str().unwrap_or_default(),
            ));
        };
        read.insert(key, value);
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::{fields, record, recorded};
    use crate::install::{Settings, UserRole};

    #[test]
    fn values_read_back_as_they_were_written() {
        let settings = Settings {
            image: "registry.example/nacre:1".to_owned(),
            image_pull_secrets: vec![serde_json::json!({"name": "pull"})],
            replicas: 3,
            velero_view: true,
            aggregate_to: vec![UserRole::Admin],
            node_selector: [("disk".to_owned(), "fast".to_owned())].into(),
            ..Settings::default()
        };
        let record = record(&settings);
        assert_eq!(record.body["data"]["replicas"], "3");
        assert_eq!(recorded(&record), Ok(fields(&settings)));
    }

    #[test]
    fn a_value_that_is_none_is_named_with_one_that_would_do() {
        let mut odd = record(&Settings::default());
        odd.body["data"]["replicas"] = "two".into();
        odd.body["data"]["unknown"] = "x".into();
        let why = recorded(&odd).unwrap_err();
        assert!(why.contains("data.replicas is \"two\"") && why.contains("one is 2"), "{why}");
    }
}
