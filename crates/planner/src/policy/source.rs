//! Which policy is in effect, given what could be read of its two sources.
//!
//! - Missing, or not permitted to read: that source sets nothing. (One that has vanished is put back for a while before
//!   it comes to this; see `in_force`.)
//! - Invalid: the last valid content of that source stays in effect, and the problem is reported.
//! - Invalid, and never valid before: there is no policy. Then new requests wait, and existing Velero objects are
//!   mirrored as before.

use std::sync::Arc;

use api::DataProtectionApplication;
use k8s_openapi::api::core::v1::ConfigMap;

use super::combine::{Policies, combine};
use super::problem::{Problem, Severity, Source};
use super::{dpa, yaml};

/// The ConfigMap in the administrators' namespace.
pub const CONFIG_MAP: &str = "nacre-policy";
/// The key in it.
pub const KEY: &str = "policy.yaml";

/// The result of reading a source.
#[derive(Clone, Debug, PartialEq)]
pub enum Reading<T> {
    /// It does not exist, or its CRD does not.
    Absent,
    /// Not permitted to read it.
    Forbidden,
    /// This was found.
    Found(T),
    /// It could not be read, with the reason.
    Unreadable(String),
}

/// The result of reading both sources.
#[derive(Clone, Debug, PartialEq)]
pub struct Readings {
    /// The ConfigMap named [`CONFIG_MAP`].
    pub config_map: Reading<Arc<ConfigMap>>,
    /// All applications in the administrators' namespace.
    pub applications: Reading<Vec<Arc<DataProtectionApplication>>>,
}

/// The policy in effect, and the problems found.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The policies in effect; none if no valid ones were ever read.
    pub policies: Option<Policies>,
    /// What is wrong, for an event, a metric and the readiness detail.
    pub problems: Vec<Problem>,
}

impl Loaded {
    /// Whether part of a source is invalid and not in effect.
    pub fn is_outdated(&self) -> bool {
        self.problems.iter().any(Problem::is_error)
    }
}

/// Decides which policy holds, where nothing is known of sources that vanished.
pub fn load(last_good: Option<&Policies>, readings: &Readings) -> Loaded {
    load_sources(last_good, readings).0
}

/// Which sources can be used as they are now, on their own and together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usable {
    pub(super) config_map: bool,
    pub(super) applications: bool,
    /// Whether the ConfigMap says anything at all.
    pub(super) limits: bool,
}

/// Decides which policy holds, and says which sources it was made of.
pub(super) fn load_sources(last_good: Option<&Policies>, readings: &Readings) -> (Loaded, Usable) {
    let (document, mut problems) = from_config_map(&readings.config_map);
    let (said, more) = from_applications(&readings.applications);
    problems.extend(more);
    let (own_document, own_said) = (document.is_some(), said.is_some());
    let limits = document.as_ref().is_some_and(|document| *document != yaml::Document::default());
    let document = document.or_else(|| last_good.map(|policies| policies.document.clone()));
    let said = said.or_else(|| last_good.map(|policies| policies.said.clone()));
    // Without the other one, nobody can tell whether they agree: then each counts for itself.
    let alone = document.is_none() || said.is_none();
    let combined = document.zip(said).and_then(|(document, said)| {
        let (policies, more) = combine(document, said);
        problems.extend(more);
        policies
    });
    let agree = alone || combined.is_some();
    let usable = Usable { config_map: own_document && agree, applications: own_said && agree, limits };
    (Loaded { policies: combined.or_else(|| last_good.cloned()), problems }, usable)
}

fn from_config_map(reading: &Reading<Arc<ConfigMap>>) -> (Option<yaml::Document>, Vec<Problem>) {
    let nothing = || (Some(yaml::Document::default()), Vec::new());
    let map = match reading {
        Reading::Absent | Reading::Forbidden => return nothing(),
        Reading::Unreadable(why) => return (None, vec![unreadable(Source::ConfigMap, why)]),
        Reading::Found(map) => map,
    };
    let data = map.data.iter().flatten().map(|(key, text)| (key.as_str(), text.as_str()));
    let keys: Vec<_> = data.clone().map(|(key, _)| key).collect();
    match data.into_iter().find(|(key, _)| *key == KEY) {
        Some((_, text)) => yaml::parse(text),
        None if keys.is_empty() => nothing(),
        None => {
            let message = format!("has no key {KEY}, only {}; rename the key", keys.join(", "));
            (None, vec![error(Source::ConfigMap, message)])
        }
    }
}

fn from_applications(
    reading: &Reading<Vec<Arc<DataProtectionApplication>>>,
) -> (Option<dpa::DpaSettings>, Vec<Problem>) {
    match reading {
        Reading::Absent | Reading::Forbidden => (Some(dpa::DpaSettings::default()), Vec::new()),
        Reading::Unreadable(why) => (None, vec![unreadable(Source::DataProtectionApplication, why)]),
        Reading::Found(applications) => dpa::parse(applications),
    }
}

fn unreadable(source: Source, why: &str) -> Problem {
    error(source, format!("cannot be read: {why}"))
}

fn error(source: Source, message: String) -> Problem {
    Problem { source, position: None, path: String::new(), severity: Severity::Error, message }
}
