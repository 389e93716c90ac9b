//! How the spec in Velero differs from the requested one, field by field, and who changed it.

use planner::Policy;
use serde::Serialize;
use serde_json::{Map, Value};

/// A field that is not as its owner wrote it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Change {
    /// The field.
    pub(crate) field: String,
    /// What it became.
    pub(crate) value: Value,
    /// Who says so.
    pub(crate) by: String,
}

/// What is known about who may have changed something.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// What nacre alone makes of the request, whatever the policy.
    pub(crate) fenced: Value,
    /// What the administrators require, as `(path of the rule, values)`; none if that cannot be read.
    pub(crate) rules: Option<Vec<(&'static str, Value)>>,
    /// Whether Velero has had its hands on it too.
    pub(crate) velero: bool,
    /// Whether nacre chose how the data of claims is saved.
    pub(crate) saves_volumes: bool,
}

/// The rules of a policy that fill fields of backups.
pub(crate) fn backup_rules(policy: &Policy) -> Vec<(&'static str, Value)> {
    let value = |spec| serde_json::to_value(spec).unwrap_or_default();
    vec![
        ("backup.enforce", value(&policy.backup.enforce)),
        ("backup.defaults", value(&policy.backup.defaults)),
    ]
}

/// The rules of a policy that fill fields of restores.
pub(crate) fn restore_rules(policy: &Policy) -> Vec<(&'static str, Value)> {
    vec![("restore.enforce", serde_json::to_value(&policy.restore.enforce).unwrap_or_default())]
}

/// The rules of a policy that fill fields of locations.
pub(crate) fn location_rules(policy: &Policy) -> Vec<(&'static str, Value)> {
    let enforced = serde_json::to_value(&policy.storage_locations.enforce).unwrap_or_default();
    vec![("storageLocations.enforce", enforced)]
}

/// Compares what was asked for with what came of it.
pub(crate) fn changes(asked: &Value, became: &Value, known: &Known) -> Vec<Change> {
    let none = Map::new();
    let fields = became.as_object().unwrap_or(&none);
    fields
        .iter()
        .filter(|(field, value)| !is_nothing(value) && !same(&asked[field.as_str()], value))
        .map(|(field, value)| Change {
            field: field.clone(),
            value: value.clone(),
            by: if known.saves_volumes && is_about_volumes(field, value) {
                "nacre, since the request says nothing about volumes".to_owned()
            } else {
                by(field, value, known)
            },
        })
        .collect()
}

/// Whether nacre sets this field if it chooses how the data of claims is saved.
fn is_about_volumes(field: &str, value: &Value) -> bool {
    ["resourcePolicy", "defaultVolumesToFsBackup"].contains(&field)
        || (field == "snapshotMoveData" && *value == true)
}

/// What Go writes for a field that is not set.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

/// The same, also for durations that are written otherwise: 72h and 72h0m0s.
fn same(one: &Value, other: &Value) -> bool {
    let nanos = |value: &Value| value.as_str().and_then(|text| api::Duration::from(text).nanos());
    one == other || (nanos(one).is_some() && nanos(one) == nanos(other))
}

fn by(field: &str, value: &Value, known: &Known) -> String {
    let fenced = &known.fenced[field];
    if same(fenced, value) {
        return "nacre, always".to_owned();
    }
    let from_policy = known
        .rules
        .iter()
        .flatten()
        .filter(|(_, values)| !values[field].is_null())
        .map(|(rule, _)| format!("policy, {rule}.{field}"));
    let mut who: Vec<String> = from_policy.take(1).collect();
    if who.is_empty() {
        who.push(match (known.velero, &known.rules) {
            (true, _) if is_velero_default(field, value) => "Velero's default".to_owned(),
            (true, Some(_)) => "Velero's own settings".to_owned(),
            (true, None) => "the administrators' policy, or Velero's own settings".to_owned(),
            (false, _) => "the administrators' policy".to_owned(),
        });
    }
    if fenced.is_array() {
        who.push("nacre, always".to_owned());
    }
    who.join("; ")
}

/// Velero's own defaults.
fn is_velero_default(field: &str, value: &Value) -> bool {
    let known = [("ttl", "720h"), ("csiSnapshotTimeout", "10m"), ("itemOperationTimeout", "4h")];
    let off = ["defaultVolumesToFsBackup", "snapshotMoveData"];
    known.iter().any(|(name, default)| *name == field && same(&Value::from(*default), value))
        || (off.contains(&field) && value == false)
}

/// A value on one line, long lists cut.
pub(crate) fn brief(value: &Value) -> String {
    const ENOUGH: usize = 4;
    match value {
        Value::String(text) => text.clone(),
        Value::Array(list) if list.len() > ENOUGH && list.iter().all(Value::is_string) => {
            format!("{} and {} more", brief(&list[0]), list.len() - 1)
        }
        Value::Array(list) if list.iter().all(Value::is_string) => {
            list.iter().map(brief).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_change_has_somebody_to_ask() {
        let asked = json!({"ttl": "72h", "excludedResources": ["secrets"]});
        let became = json!({
            "ttl": "72h0m0s", "hooks": {}, "metadata": {}, "includedNamespaces": ["shop"], "snapshotVolumes": false,
            "excludedResources": ["secrets", "own"], "csiSnapshotTimeout": "10m0s", "datamover": "odd",
        });
        let fenced =
            json!({"ttl": "72h", "includedNamespaces": ["shop"], "excludedResources": ["secrets", "own"]});
        let mut known = Known { fenced, rules: None, velero: true, saves_volumes: false };
        let reported = |known: &Known| {
            let lines = changes(&asked, &became, known);
            lines
                .iter()
                .map(|line| format!("{}: {} ({})\n", line.field, brief(&line.value), line.by))
                .collect::<Vec<_>>()
                .concat()
        };
        insta::assert_snapshot!(reported(&known), @r"
        csiSnapshotTimeout: 10m0s (Velero's default)
        datamover: odd (the administrators' policy, or Velero's own settings)
        excludedResources: secrets, own (nacre, always)
        includedNamespaces: shop (nacre, always)
        snapshotVolumes: false (the administrators' policy, or Velero's own settings)
        ");
        known.rules = Some(vec![("backup.enforce", json!({"snapshotVolumes": false}))]);
        known.fenced["excludedResources"] = json!(["own"]);
        insta::assert_snapshot!(reported(&known), @r"
        csiSnapshotTimeout: 10m0s (Velero's default)
        datamover: odd (Velero's own settings)
        excludedResources: secrets, own (Velero's own settings; nacre, always)
        includedNamespaces: shop (nacre, always)
        snapshotVolumes: false (policy, backup.enforce.snapshotVolumes)
        ");
    }

    #[test]
    fn long_lists_are_cut() {
        assert_eq!(brief(&json!(["a", "b", "c", "d", "e", "f"])), "a and 5 more");
        assert_eq!(brief(&json!(["a", "b"])), "a, b");
        assert_eq!(brief(&json!({"a": 1})), "{\"a\":1}");
    }
}
