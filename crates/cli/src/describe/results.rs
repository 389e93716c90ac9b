//! Every error and warning that Velero wrote down.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::{
    connect::Session,
    download::{Fetching, logs::whole},
    output::lines,
    text::printable,
};

/// What went wrong, by where.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Results {
    errors: Places,
    warnings: Places,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Places {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    velero: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cluster: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    namespaces: BTreeMap<String, Vec<String>>,
}

/// Fetches them; in words, why not, if that is not possible.
pub(super) async fn fetch(
    session: &Session,
    kind: &str,
    name: &str,
    by: &Fetching,
) -> Result<Results, String> {
    let read = async {
        let bytes = by.with_link(session, kind, name, whole).await?.context("interrupted")?;
        anyhow::Ok(serde_json::from_slice(&bytes)?)
    };
    read.await.map_err(|error| error.to_string())
}

impl Results {
    pub(super) fn lines(&self) -> (String, String) {
        (self.errors.lines(), self.warnings.lines())
    }
}

impl Places {
    fn lines(&self) -> String {
        let own = self.velero.iter().chain(&self.cluster).chain(self.namespaces.values().flatten());
        lines(grouped(own.map(String::as_str)).iter().map(|line| printable(line)))
    }
}

/// From how many on lines that differ only in the object become one.
const MANY: usize = 3;
/// How many objects such a line names.
const NAMED: usize = 3;

/// A thousand objects that exist already are one line, not a thousand: it stands where the first of them stood.
fn grouped<'a>(all: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut groups: Vec<(Option<&str>, Vec<&str>)> = Vec::new();
    for line in all {
        match about_existing(line) {
            None => groups.push((None, vec![line])),
            Some((object, rest)) => match groups.iter_mut().find(|(of, _)| *of == Some(rest)) {
                Some((_, objects)) => objects.push(object),
                None => groups.push((Some(rest), vec![object])),
            },
        }
    }
    let line = |(rest, found): (Option<&str>, Vec<&str>)| match rest {
        None => found.into_iter().map(str::to_owned).collect(),
        Some(rest) if found.len() < MANY => {
            found.into_iter().map(|object| format!("{COULD_NOT}{object}{EXISTS}{rest}")).collect()
        }
        Some(rest) => {
            let more = found.len().saturating_sub(NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let named = found.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
            vec![format!("{} objects were not restored, each{EXISTS}{rest}: {named}{more}", found.len())]
        }
    };
    groups.into_iter().flat_map(line).collect::<Vec<String>>()
}

const COULD_NOT: &str = "could not restore, ";
const EXISTS: &str = " already exists";

/// The object, and what follows, in Velero's line about an object that exists.
fn about_existing(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix(COULD_NOT)?.split_once(EXISTS)
}

#[cfg(test)]
mod tests {
    use super::{Results, grouped};

    #[test]
    fn all_places_are_read() {
        let text = r#"{"errors": {"velero": ["a"], "namespaces": {"shop": ["b", "c"]}}, "warnings": {}}"#;
        let results: Results = serde_json::from_str(text).unwrap();
        assert_eq!(results.lines(), ("a\nb\nc\n".to_owned(), String::new()));
    }

    #[test]
    fn many_objects_that_exist_are_one_line_with_a_count() {
        let said =
            |name: &str| format!("could not restore, ConfigMap:{name} already exists. Warning: it differs");
        let mut all: Vec<String> = ["a", "b", "c", "d", "e"].map(said).to_vec();
        all.insert(1, "something else".to_owned());
        assert_eq!(
            grouped(all.iter().map(String::as_str)),
            [
                "5 objects were not restored, each already exists. Warning: it differs: ConfigMap:a, ConfigMap:b, ConfigMap:c and 2 more",
                "something else",
            ]
        );
        let few = [said("a"), said("b")];
        assert_eq!(grouped(few.iter().map(String::as_str)), few);
    }
}
