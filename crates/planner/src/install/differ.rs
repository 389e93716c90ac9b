//! Whether an object in the cluster is as it should be, and in which fields it is not. The API server fills in what was left
//! out, and others add labels of their own: what is there and was not asked for is no difference, but for what is a whole.

use serde::Serialize;
use serde_json::{Map, Value};

/// Maps that are ours as a whole: a key that is no longer wanted is a difference.
const WHOLE: [&str; 6] = ["properties", "nodeSelector", "requests", "limits", "matchLabels", "data"];

/// A field that is not as it should be.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Where it is: `spec.template.spec.containers[nacre].image`.
    pub field: String,
    /// What is there; null for nothing.
    pub old: Value,
    /// What should be; null for nothing.
    pub new: Value,
}

/// Whether everything wanted is found.
pub(crate) fn covers(found: &Value, wanted: &Value) -> bool {
    differences(found, wanted).is_empty()
}

/// Everything in which what is found is not what is wanted, field by field.
pub fn differences(found: &Value, wanted: &Value) -> Vec<Difference> {
    let mut all = Vec::new();
    compare("", found, wanted, &mut all);
    all
}

fn compare(field: &str, found: &Value, wanted: &Value, all: &mut Vec<Difference>) {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => maps(field, found, wanted, all),
        (Value::Array(found), Value::Array(wanted)) => lists(field, found, wanted, all),
        _ if found == wanted || (found.is_null() && is_nothing(wanted)) => {}
        // The API server writes amounts in its own way: 0.5 becomes 500m.
        _ if is_amount(field) && amount(found).is_some() && amount(found) == amount(wanted) => {}
        _ => all.push(Difference { field: field.to_owned(), old: found.clone(), new: wanted.clone() }),
    }
}

fn maps(field: &str, found: &Map<String, Value>, wanted: &Map<String, Value>, all: &mut Vec<Difference>) {
    for (key, wanted) in wanted {
        let below = below(field, key);
        let found = found.get(key).unwrap_or(&Value::Null);
        if let (true, Some(found), Some(wanted)) =
            (WHOLE.contains(&key.as_str()), found.as_object(), wanted.as_object())
        {
            let extra = found.iter().filter(|(key, _)| !wanted.contains_key(*key));
            all.extend(extra.map(|(key, old)| Difference {
                field: self::below(&below, key),
                old: old.clone(),
                new: Value::Null,
            }));
        }
        compare(&below, found, wanted, all);
    }
}

/// Lists of one length are compared one by one. Of others, what is in one and not in the other is named, which for the
/// rules of a role is what matters.
fn lists(field: &str, found: &[Value], wanted: &[Value], all: &mut Vec<Difference>) {
    if field.rsplit('.').next() == Some("env") {
        // Variables are known by their names, and an administrator may add some, as for a proxy.
        for wanted in wanted {
            let same = found.iter().find(|found| found["name"] == wanted["name"]);
            let name = wanted["name"].as_str().unwrap_or_default();
            compare(&format!("{field}[{name}]"), same.unwrap_or(&Value::Null), wanted, all);
        }
        return;
    }
    if found.len() == wanted.len() {
        for (at, (found, wanted)) in found.iter().zip(wanted).enumerate() {
            let name = wanted["name"].as_str().map_or_else(|| at.to_string(), str::to_owned);
            compare(&format!("{field}[{name}]"), found, wanted, all);
        }
        return;
    }
    let before = all.len();
    let place = format!("{field}[]");
    let gone = found.iter().filter(|found| !wanted.iter().any(|wanted| covers(found, wanted)));
    all.extend(gone.map(|old| Difference { field: place.clone(), old: old.clone(), new: Value::Null }));
    let more = wanted.iter().filter(|wanted| !found.iter().any(|found| covers(found, wanted)));
    all.extend(more.map(|new| Difference { field: place.clone(), old: Value::Null, new: new.clone() }));
    if all.len() == before {
        // Some are there twice.
        let whole = |list: &[Value]| Value::Array(list.to_vec());
        all.push(Difference { field: field.to_owned(), old: whole(found), new: whole(wanted) });
    }
}

/// A key with dots, as labels have, is told apart from a path.
fn below(field: &str, key: &str) -> String {
    match (field, key.contains(['.', '/'])) {
        ("", _) => key.to_owned(),
        (_, true) => format!("{field}[{key}]"),
        (_, false) => format!("{field}.{key}"),
    }
}

fn is_amount(field: &str) -> bool {
    field.contains(".requests.") || field.contains(".limits.")
}

/// A quantity as Kubernetes writes it, in thousandths.
fn amount(value: &Value) -> Option<u128> {
    const UNITS: [(&str, u128); 12] = [
        ("m", 1),
        ("k", 1_000_000),
        ("Ki", 1_024_000),
        ("M", 1_000_000_000),
        ("Mi", 1000 << 20),
        ("G", 1_000_000_000_000),
        ("Gi", 1000 << 30),
        ("T", 1_000_000_000_000_000),
        ("Ti", 1000 << 40),
        ("P", 1_000_000_000_000_000_000),
        ("Pi", 1000 << 50),
        ("", 1000),
    ];
    let text = value.as_str()?;
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let (_, unit) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let scale = 10_u128.checked_pow(u32::try_from(part.len()).ok()?)?;
    let part: u128 = if part.is_empty() { 0 } else { part.parse().ok()? };
    let number = whole.parse::<u128>().ok()?.checked_mul(scale)?.checked_add(part)?;
    number.checked_mul(*unit).map(|all| all / scale)
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
    use serde_json::{Value, json};

    use super::{covers, differences};

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

    #[test]
    fn amounts_are_the_same_however_they_are_written() {
        let of = |cpu: &str, memory: &str| json!({"c": {"limits": {"cpu": cpu, "memory": memory}}});
        assert!(covers(&of("500m", "1Gi"), &of("0.5", "1024Mi")));
        assert!(!covers(&of("500m", "1Gi"), &of("0.5", "1G")));
        assert!(!covers(&of("500m", "1Gi"), &of("half", "1Gi")));
    }

    #[test]
    fn a_variable_that_somebody_added_is_no_difference() {
        let wanted = json!({"c": {"env": [{"name": "A", "value": "1"}]}});
        let more =
            json!({"c": {"env": [{"name": "HTTPS_PROXY", "value": "p"}, {"name": "A", "value": "1"}]}});
        assert!(covers(&more, &wanted));
        let changed = json!({"c": {"env": [{"name": "A", "value": "2"}]}});
        assert_eq!(lines(&changed, &wanted), [r#"c.env[A].value: "2" -> "1""#]);
    }

    fn lines(found: &Value, wanted: &Value) -> Vec<String> {
        let all = differences(found, wanted);
        all.iter().map(|one| format!("{}: {} -> {}", one.field, one.old, one.new)).collect()
    }

    #[test]
    fn each_field_that_differs_is_named_with_what_it_was() {
        let found = json!({
            "metadata": {"labels": {"app.kubernetes.io/version": "1", "theirs": "x"}},
            "spec": {"replicas": 2, "containers": [{"name": "nacre", "image": "a:1", "env": []}], "nodeSelector": {"disk": "slow"}},
            "rules": [{"verbs": ["get"]}, {"verbs": ["list"]}],
        });
        let wanted = json!({
            "metadata": {"labels": {"app.kubernetes.io/version": "2"}},
            "spec": {"replicas": 2, "containers": [{"name": "nacre", "image": "b:2"}], "nodeSelector": {}},
            "rules": [{"verbs": ["list"]}],
        });
        assert_eq!(
            lines(&found, &wanted),
            [
                r#"metadata.labels[app.kubernetes.io/version]: "1" -> "2""#,
                r#"rules[]: {"verbs":["get"]} -> null"#,
                r#"spec.containers[nacre].image: "a:1" -> "b:2""#,
                r#"spec.nodeSelector.disk: "slow" -> null"#,
            ]
        );
        assert_eq!(lines(&wanted, &wanted), Vec::<String>::new());
    }
}
