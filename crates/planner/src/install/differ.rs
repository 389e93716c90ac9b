//! Whether an object in the cluster is as it should be. The API server fills in what was left out, and others add labels of
//! their own: what is there and was not asked for is no difference, but for what is a whole.

use serde_json::{Map, Value};

/// Maps that are ours as a whole: a key that is no longer wanted is a difference.
const WHOLE: [&str; 6] = ["properties", "nodeSelector", "requests", "limits", "matchLabels", "data"];

/// Whether everything wanted is found.
pub(crate) fn covers(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => {
            wanted.iter().all(|(key, wanted)| has(found, key, wanted))
        }
        (Value::Array(found), Value::Array(wanted)) => {
            found.len() == wanted.len()
                && found.iter().zip(wanted).all(|(found, wanted)| covers(found, wanted))
        }
        _ => found == wanted,
    }
}

fn has(found: &Map<String, Value>, key: &str, wanted: &Value) -> bool {
    let Some(found) = found.get(key) else { return is_nothing(wanted) };
    let more = match (found.as_object(), wanted.as_object()) {
        (Some(found), Some(wanted)) if WHOLE.contains(&key) => {
            found.keys().any(|key| !wanted.contains_key(key))
        }
        _ => false,
    };
    !more && covers(found, wanted)
}

/// The API server leaves these out.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::covers;

    #[test]
    fn what_others_add_is_no_difference_but_for_what_is_a_whole() {
        let wanted = json!({"a": 1, "list": [{"b": 2}], "empty": {}, "limits": {"memory": "1"}});
        let filled_in = json!({"a": 1, "list": [{"b": 2, "more": 3}], "limits": {"memory": "1"}, "other": 4});
        assert!(covers(&filled_in, &wanted));
        for odd in [
            json!({"a": 2, "list": [{"b": 2}], "limits": {"memory": "1"}}),
            json!({"a": 1, "list": [{"b": 2}, {"b": 2}], "limits": {"memory": "1"}}),
            json!({"a": 1, "list": [{"b": 2}], "limits": {"memory": "1", "cpu": "1"}}),
            json!({"a": 1, "list": [{"b": 2}]}),
        ] {
            assert!(!covers(&odd, &wanted), "{odd}");
        }
    }
}
