//! The smallest merge patch from one value to another.

use serde_json::{Map, Value};

/// What to merge into `from` to get `to`; none if they are equal. Lists are replaced as a whole, as JSON merge
/// patches do.
pub(crate) fn diff(from: &Value, to: &Value) -> Option<Value> {
    if from == to {
        return None;
    }
    let (Value::Object(from), Value::Object(to)) = (from, to) else {
        return Some(to.clone());
    };
    let mut patch = Map::new();
    for key in from.keys().filter(|key| !to.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, wanted) in to {
        let change = match from.get(key) {
            Some(found) => diff(found, wanted),
            None => Some(wanted.clone()),
        };
        patch.extend(change.map(|change| (key.clone(), change)));
    }
    Some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::diff;

    #[test]
    fn only_what_differs_is_sent() {
        let from = json!({"phase": "New", "velero": {"a": 1, "b": [1, 2]}, "gone": true});
        let to = json!({"phase": "New", "velero": {"a": 1, "b": [2]}, "new": {"x": {}}});
        assert_eq!(diff(&from, &to), Some(json!({"velero": {"b": [2]}, "gone": null, "new": {"x": {}}})));
        assert_eq!(diff(&from, &from), None);
    }
}
