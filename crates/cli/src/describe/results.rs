//! Every error and warning that Velero wrote down.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use api::VeleroResults;
use planner::results::grouped;
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
    /// How many there are beyond these.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_listed: Option<u32>,
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

/// What nacre read in the cluster's own storage, and published in the status.
impl From<&VeleroResults> for Results {
    fn from(read: &VeleroResults) -> Self {
        let places = |velero: &[String]| Places { velero: velero.to_vec(), ..Places::default() };
        Self { errors: places(&read.errors), warnings: places(&read.warnings), not_listed: read.not_listed }
    }
}

impl Results {
    pub(super) fn lines(&self) -> (String, String) {
        let more = self.not_listed.map(|more| lines([format!("and {more} more")])).unwrap_or_default();
        let (errors, warnings) = (self.errors.lines(), self.warnings.lines());
        if warnings.is_empty() { (errors + &more, warnings) } else { (errors, warnings + &more) }
    }
}

impl Places {
    fn lines(&self) -> String {
        let own = self.velero.iter().chain(&self.cluster).chain(self.namespaces.values().flatten());
        lines(grouped(own.map(String::as_str)).iter().map(|line| printable(line)))
    }
}

#[cfg(test)]
mod tests {
    use super::{Results, VeleroResults};

    #[test]
    fn all_places_are_read() {
        let text = r#"{"errors": {"velero": ["a"], "namespaces": {"shop": ["b", "c"]}}, "warnings": {}}"#;
        let results: Results = serde_json::from_str(text).unwrap();
        assert_eq!(results.lines(), ("a\nb\nc\n".to_owned(), String::new()));
    }

    #[test]
    fn what_nacre_read_is_shown_with_how_many_more_there_are() {
        let read = VeleroResults {
            errors: vec!["a".to_owned()],
            warnings: vec!["b".to_owned()],
            not_listed: Some(3),
        };
        assert_eq!(Results::from(&read).lines(), ("a\n".to_owned(), "b\nand 3 more\n".to_owned()));
        let errors = VeleroResults { warnings: Vec::new(), ..read };
        assert_eq!(Results::from(&errors).lines(), ("a\nand 3 more\n".to_owned(), String::new()));
    }
}
