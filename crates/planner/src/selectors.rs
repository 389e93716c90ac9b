//! Label selectors as Kubernetes reads them. Velero would refuse a wrong one only after the request was queued, or take
//! nothing at all by it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use crate::Refusal;

/// The longest part of a label's key after its prefix, and the longest value.
const LONGEST: usize = 63;
/// The longest prefix of a label's key.
const LONGEST_PREFIX: usize = 253;

/// The first mistake in `labelSelector` or in one of `orLabelSelectors`.
pub(crate) fn check(
    path: &str,
    selector: Option<&LabelSelector>,
    several: Option<&[LabelSelector]>,
) -> Option<Refusal> {
    let one = selector.map(|selector| (format!("{path}.labelSelector"), selector));
    let several = several.unwrap_or_default().iter().enumerate();
    let several = several.map(|(at, selector)| (format!("{path}.orLabelSelectors[{at}]"), selector));
    one.into_iter().chain(several).find_map(|(path, selector)| mistake(&path, selector))
}

fn mistake(path: &str, selector: &LabelSelector) -> Option<Refusal> {
    let labels = selector.match_labels.iter().flatten().find_map(|(key, value)| {
        let path = format!("{path}.matchLabels");
        wrong_key(&path, key).or_else(|| wrong_value(&path, key, value))
    });
    let expressions = || {
        let expressions = selector.match_expressions.iter().flatten().enumerate();
        expressions
            .map(|(at, expression)| (format!("{path}.matchExpressions[{at}]"), expression))
            .find_map(|(path, expression)| wrong_expression(&path, expression))
    };
    labels.or_else(expressions)
}

fn wrong_expression(path: &str, expression: &LabelSelectorRequirement) -> Option<Refusal> {
    let LabelSelectorRequirement { key, operator, values } = expression;
    let values = values.as_deref().unwrap_or_default();
    let refuse = |name: &str, message: String| Some(Refusal::new(format!("{path}.{name}"), message));
    let wrong = match operator.as_str() {
        "In" | "NotIn" if values.is_empty() => {
            refuse("values", format!("operator {operator} needs at least one"))
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            refuse("values", format!("operator {operator} takes none; leave the field out"))
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => None,
        other => refuse("operator", format!("{other:?} is none; use In, NotIn, Exists or DoesNotExist")),
    };
    wrong
        .or_else(|| wrong_key(&format!("{path}.key"), key))
        .or_else(|| values.iter().find_map(|value| wrong_value(&format!("{path}.values"), key, value)))
}

fn wrong_key(path: &str, key: &str) -> Option<Refusal> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    let sound = is_label_part(name) && prefix.is_none_or(is_subdomain);
    (!sound).then(|| {
        let message = format!("{key:?} is no key of a label; a key is like app or example.com/app");
        Refusal::new(path, message)
    })
}

fn wrong_value(path: &str, key: &str, value: &str) -> Option<Refusal> {
    (!value.is_empty() && !is_label_part(value)).then(|| {
        let message = format!(
            "{key}: {value:?} is no value of a label; a value has at most {LONGEST} letters, digits, \"-\", \"_\" and \".\", \
             and begins and ends with a letter or digit"
        );
        Refusal::new(path, message)
    })
}

fn is_label_part(text: &str) -> bool {
    let ends = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    text.len() <= LONGEST
        && ends(bytes.first())
        && ends(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

fn is_subdomain(text: &str) -> bool {
    let part = |part: &str| {
        let ends =
            |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        let bytes = part.as_bytes();
        ends(bytes.first())
            && ends(bytes.last())
            && bytes.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-')
    };
    text.len() <= LONGEST_PREFIX && text.split('.').all(part)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::check;

    fn refused(selector: &Value) -> String {
        let selector = serde_json::from_value(selector.clone()).unwrap();
        check("spec.backupSpec", Some(&selector), None).map(|refusal| refusal.to_string()).unwrap_or_default()
    }

    #[test]
    fn sound_selectors_pass() {
        for sound in [
            json!({}),
            json!({"matchLabels": {"app": "shop", "example.com/tier": "", "a.b-c/D_e.f": "X-1"}}),
            json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "b"]},
                {"key": "old", "operator": "DoesNotExist"}]}),
        ] {
            assert_eq!(refused(&sound), "", "{sound}");
        }
    }

    #[test]
    fn a_wrong_one_names_the_field_and_what_would_do() {
        insta::assert_snapshot!(refused(&json!({"matchLabels": {"app name": "shop"}})), @r#"spec.backupSpec.labelSelector.matchLabels: "app name" is no key of a label; a key is like app or example.com/app"#);
        insta::assert_snapshot!(refused(&json!({"matchLabels": {"app": "-shop"}})), @r#"spec.backupSpec.labelSelector.matchLabels: app: "-shop" is no value of a label; a value has at most 63 letters, digits, "-", "_" and ".", and begins and ends with a letter or digit"#);
        insta::assert_snapshot!(refused(&json!({"matchExpressions": [{"key": "app", "operator": "Equals", "values": ["a"]}]})), @r#"spec.backupSpec.labelSelector.matchExpressions[0].operator: "Equals" is none; use In, NotIn, Exists or DoesNotExist"#);
        insta::assert_snapshot!(refused(&json!({"matchExpressions": [{"key": "app", "operator": "In"}]})), @r#"spec.backupSpec.labelSelector.matchExpressions[0].values: operator In needs at least one"#);
        insta::assert_snapshot!(refused(&json!({"matchExpressions": [{"key": "app", "operator": "Exists", "values": ["a"]}]})), @r#"spec.backupSpec.labelSelector.matchExpressions[0].values: operator Exists takes none; leave the field out"#);
        for wrong in ["", "/app", "Example.com/app", "a/b/c", "x".repeat(64).as_str(), "example..com/app"] {
            assert!(refused(&json!({"matchLabels": {wrong: ""}})).contains("no key"), "{wrong:?}");
        }
    }

    #[test]
    fn each_of_several_is_looked_at() {
        let several =
            [json!({}), json!({"matchLabels": {"a": "b c"}})].map(|one| serde_json::from_value(one).unwrap());
        let refusal = check("spec.restoreSpec", None, Some(&several)).unwrap().to_string();
        assert!(refusal.starts_with("spec.restoreSpec.orLabelSelectors[1].matchLabels"), "{refusal}");
    }
}
