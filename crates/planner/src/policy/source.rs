//! Which policy holds, given what could be read of its two sources.
//!
//! - Nothing there, or nothing that may be read: that source says nothing. (One that has vanished is put back for a
//!   while before it comes to this; see `in_force`.)
//! - Something there that makes no sense: what that source last said goes on counting, and the problem is told.
//! - ... and it never said anything that made sense: there is no policy. Then new requests wait, since allowing them
//!   would be a guess, and whatever Velero has already is mirrored as before.

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

/// What came of reading a source.
#[derive(Clone, Debug, PartialEq)]
pub enum Reading<T> {
    /// There is none, nor perhaps the kind it would be of.
    Absent,
    /// There may be one, but it is not for us to read.
    Forbidden,
    /// This was found.
    Found(T),
    /// There is one, and it could not be read; this is why.
    Unreadable(String),
}

/// What came of reading both sources.
#[derive(Clone, Debug, PartialEq)]
pub struct Readings {
    /// The ConfigMap named [`CONFIG_MAP`].
    pub config_map: Reading<Arc<ConfigMap>>,
    /// All applications in the administrators' namespace.
    pub applications: Reading<Vec<Arc<DataProtectionApplication>>>,
}

/// What holds from now on, and what is wrong with what was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// What holds; none if nothing that made sense has ever been read.
    pub policies: Option<Policies>,
    /// What is wrong, for an event, a metric and the readiness detail.
    pub problems: Vec<Problem>,
}

impl Loaded {
    /// Whether some of what was read does not count, because it makes no sense.
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
) -> (Option<dpa::Said>, Vec<Problem>) {
    match reading {
        Reading::Absent | Reading::Forbidden => (Some(dpa::Said::default()), Vec::new()),
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
