//! The source of each setting of a policy.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Value, json};

use super::CONFIG_MAP;
use super::combine::Policies;
use super::problem::{Position, Source};
use super::yaml::Written;

/// The source of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The default.
    Default,
    /// The ConfigMap, under this path and at this place in its text.
    ConfigMap {
        /// The path, which begins with `overrides` if it is said there.
        path: String,
        /// The place in the text.
        position: Option<Position>,
    },
    /// The DataProtectionApplication.
    Application,
}

/// One setting of a policy, and its source.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// The field, as `policy.yaml` has it.
    pub field: String,
    /// The value in effect.
    pub value: Value,
    /// Its source; both may set it.
    pub from: Vec<Origin>,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Application => write!(f, "{}", Source::DataProtectionApplication),
            Self::ConfigMap { path, position } => {
                f.write_str(CONFIG_MAP)?;
                if let Some(Position { line, column }) = position {
                    write!(f, " {line}:{column}")?;
                }
                match path.split_once('.').filter(|(first, _)| first.starts_with("overrides[")) {
                    Some((which, _)) => write!(f, ", {which}"),
                    None => Ok(()),
                }
            }
        }
    }
}

impl Policies {
    /// Everything that holds where this override does, or else for all, and who says so. What is not limited is not
    /// listed.
    pub fn settings(&self, which: Option<usize>) -> Vec<Setting> {
        let over = which.and_then(|at| self.overrides.get(at).zip(self.document.overrides.get(at)));
        let (policy, written) = match over {
            Some(((_, policy), (_, written))) => (policy, written),
            None => (self.base(), &self.document.base),
        };
        let said = json!(written.policy);
        let mut fields = Vec::new();
        list("", &json!(**policy), &mut fields);
        let settings = fields.into_iter().map(|(field, value)| {
            let from = self.from(&field, &value, written, &said);
            Setting { field, value, from }
        });
        settings.collect()
    }

    /// The overrides: which namespaces they are for, by labels, and what differs there.
    pub fn overridden(&self) -> Vec<(String, Vec<Setting>)> {
        let all: BTreeMap<String, Value> =
            self.settings(None).into_iter().map(|setting| (setting.field, setting.value)).collect();
        let differing = |at| {
            let settings = self.settings(Some(at)).into_iter();
            settings.filter(|setting| all.get(&setting.field) != Some(&setting.value)).collect()
        };
        let overrides = self.overrides.iter().enumerate();
        overrides.map(|(at, (selector, _))| (selector.to_string(), differing(at))).collect()
    }

    fn from(&self, field: &str, value: &Value, written: &Written, said: &Value) -> Vec<Origin> {
        let pointer = format!("/{}", field.replace('.', "/"));
        let map = written
            .said_at(field)
            .filter(|_| said.pointer(&pointer) == Some(value))
            .map(|(path, position)| Origin::ConfigMap { path: path.to_owned(), position });
        let application = self.said.value(field).filter(|said| said == value).map(|_| Origin::Application);
        let both: Vec<_> = map.into_iter().chain(application).collect();
        if both.is_empty() { vec![Origin::Default] } else { both }
    }
}

/// Whole specs are required or filled in by field; whatever is below one belongs to it.
const SPECS: [&str; 2] = [".enforce", ".defaults"];

fn list(path: &str, value: &Value, fields: &mut Vec<(String, Value)>) {
    let within_a_spec =
        path.rsplit_once('.').is_some_and(|(above, _)| SPECS.iter().any(|spec| above.ends_with(spec)));
    match value.as_object().filter(|_| !within_a_spec) {
        None => fields.push((path.to_owned(), value.clone())),
        Some(block) => {
            for (name, below) in block {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                list(&path, below, fields);
            }
        }
    }
}
