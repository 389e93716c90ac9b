//! Label selectors in kubectl's notation.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

/// Reads `app=shop,tier!=test,env in (a,b),!old`.
pub(crate) fn parse(text: &str) -> Result<LabelSelector, String> {
    let mut selector = LabelSelector::default();
    for part in split(text) {
        let part = part.trim();
        if let Some((key, value)) = equality(part, "!=") {
            add(&mut selector, key, "NotIn", Some(vec![value.to_owned()]))?;
        } else if let Some((key, value)) = equality(part, "==").or_else(|| equality(part, "=")) {
            check(key)?;
            selector.match_labels.get_or_insert_default().insert(key.to_owned(), value.to_owned());
        } else if let Some((key, list)) = set(part, "notin") {
            add(&mut selector, key, "NotIn", Some(list))?;
        } else if let Some((key, list)) = set(part, "in") {
            add(&mut selector, key, "In", Some(list))?;
        } else if let Some(key) = part.strip_prefix('!') {
            add(&mut selector, key.trim(), "DoesNotExist", None)?;
        } else {
            add(&mut selector, part, "Exists", None)?;
        }
    }
    Ok(selector)
}

/// Selectors of which one must fit.
#[derive(Clone, Debug)]
pub(crate) struct Several(pub(crate) Vec<LabelSelector>);

/// Reads several, separated by ` or `, as Velero has it.
pub(crate) fn parse_several(text: &str) -> Result<Several, String> {
    text.split(" or ").map(parse).collect::<Result<_, _>>().map(Several)
}

/// At the commas that are not in brackets.
fn split(text: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    text.split(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    })
    .collect()
}

fn equality<'a>(part: &'a str, sign: &str) -> Option<(&'a str, &'a str)> {
    let (key, value) = part.split_once(sign)?;
    (!key.ends_with('!')).then(|| (key.trim(), value.trim()))
}

fn set<'a>(part: &'a str, word: &str) -> Option<(&'a str, Vec<String>)> {
    let (key, rest) = part.split_once(char::is_whitespace)?;
    let list = rest.trim().strip_prefix(word)?.trim().strip_prefix('(')?.strip_suffix(')')?;
    Some((key, list.split(',').map(|value| value.trim().to_owned()).collect()))
}

fn add(
    selector: &mut LabelSelector,
    key: &str,
    operator: &str,
    values: Option<Vec<String>>,
) -> Result<(), String> {
    check(key)?;
    let requirement = LabelSelectorRequirement { key: key.to_owned(), operator: operator.to_owned(), values };
    selector.match_expressions.get_or_insert_default().push(requirement);
    Ok(())
}

fn check(key: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let fine = !key.is_empty() && key.chars().all(plain);
    fine.then_some(())
        .ok_or_else(|| format!("{key:?} is not the name of a label; write for example app=shop"))
}

#[cfg(test)]
mod tests {
    use super::parse;

    fn read(text: &str) -> String {
        match parse(text) {
            Ok(selector) => serde_json::to_string(&selector).unwrap(),
            Err(error) => error,
        }
    }

    #[test]
    fn selectors_are_read_as_kubectl_reads_them() {
        insta::assert_snapshot!(read("app=shop,tier==gold"), @r#"{"matchLabels":{"app":"shop","tier":"gold"}}"#);
        insta::assert_snapshot!(read("tier!=test, env in (a, b),env notin (c),!old,new"), @r#"{"matchExpressions":[{"key":"tier","operator":"NotIn","values":["test"]},{"key":"env","operator":"In","values":["a","b"]},{"key":"env","operator":"NotIn","values":["c"]},{"key":"old","operator":"DoesNotExist"},{"key":"new","operator":"Exists"}]}"#);
        insta::assert_snapshot!(read("a,,b"), @r#""" is not the name of a label; write for example app=shop"#);
        insta::assert_snapshot!(read("a b=c"), @r#""a b" is not the name of a label; write for example app=shop"#);
    }
}
