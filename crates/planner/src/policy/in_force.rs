//! Which policy is in force now, also when one of its sources vanishes.
//!
//! A ConfigMap or a DataProtectionApplication is deleted by accident as easily as on purpose: by a tool that replaces
//! or prunes. Without a policy nothing is limited, and what is approved in those seconds stays approved. So what a
//! source said stays in force for [`STAYS_IN_FORCE`] after it vanished. An administrator who wants no limits writes
//! that into the policy. A source that is there counts at once, whatever it says.
//!
//! nacre keeps a copy of what each source last said in a ConfigMap of its own, [`IN_FORCE`], or a restart would open
//! what the policy closed.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use api::{DataProtectionApplication, DataProtectionApplicationSpec, Features, NonAdmin};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::ObjectMeta;
use serde_json::json;

use super::combine::Policies;
use super::dpa;
use super::problem::Source;
use super::source::{CONFIG_MAP, KEY, Loaded, Reading, Readings, Usable, load_sources};
use crate::{Action, config_map};

/// How long a policy stays in force after its source vanished: long enough for whoever deleted it by accident to
/// notice, and for an alert to reach somebody.
pub const STAYS_IN_FORCE: SignedDuration = SignedDuration::from_mins(10);
/// nacre's own ConfigMap in the administrators' namespace, with a copy of what each source last said.
pub const IN_FORCE: &str = "nacre-policy-in-force";

/// The key of the copy of the DataProtectionApplication.
const APPLICATION: &str = "dataprotectionapplication.json";
/// What a key ends with that has the time when a source vanished.
const VANISHED: &str = ".vanished";

/// What each source last said that could be used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastPolicy {
    config_map: Option<LastText>,
    application: Option<LastText>,
}

/// What one source last said, and since when it is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
struct LastText {
    text: String,
    vanished: Option<Timestamp>,
}

/// A source that vanished and is in force all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vanished {
    /// The ConfigMap or the DataProtectionApplication.
    pub source: Source,
    /// What it was called.
    pub name: String,
    /// Since when it is gone.
    pub since: Timestamp,
    /// Until when what it said stays in force.
    pub until: Timestamp,
}

/// What to do about a policy that vanished.
pub const WHEN_VANISHED: &str = "create it again; to allow more, write so into the policy, for example storageLocations.requireApproval: false";

impl fmt::Display for Vanished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { source, name, since, until } = self;
        write!(f, "{source} {name} vanished at {since}; its policy stays in force until {until}")
    }
}

/// Which policy is in force, and what to remember.
#[derive(Clone, Debug, PartialEq)]
pub struct InForce {
    /// The policy, and what is wrong with it.
    pub loaded: Loaded,
    /// What counts as said: by a source that is there, or that has vanished not long ago.
    pub readings: Readings,
    /// What to remember for the next time.
    pub last: LastPolicy,
    /// Which sources vanished and are in force all the same.
    pub vanished: Vec<Vanished>,
}

/// Decides which policy is in force at this time.
pub fn in_force(
    last_good: Option<&Policies>,
    last: &LastPolicy,
    readings: &Readings,
    now: Timestamp,
) -> InForce {
    let (mut last, mut counts, mut vanished) = (last.clone(), readings.clone(), Vec::new());

    let map_gone = config_map_is_gone(&readings.config_map);
    if map_gone {
        if let Some((map, times)) = keep(&mut last.config_map, now, |last| Some(config_map_of(last))) {
            vanished.push(times.of(Source::ConfigMap, CONFIG_MAP.to_owned()));
            counts.config_map = Reading::Found(Arc::new(map));
        }
    } else if let Some(there) = &mut last.config_map {
        there.vanished = None;
    }

    let copy = last.application.as_ref().and_then(application_of);
    let application_gone = applications_are_gone(&readings.applications, copy.as_ref());
    if application_gone {
        if let Some((application, times)) = keep(&mut last.application, now, application_of) {
            let name = application.metadata.name.clone().unwrap_or_default();
            vanished.push(times.of(Source::DataProtectionApplication, name));
            let others = match &readings.applications {
                Reading::Found(others) => others.as_slice(),
                _ => &[],
            };
            counts.applications =
                Reading::Found(others.iter().cloned().chain([Arc::new(application)]).collect());
        }
    } else if let Some(there) = &mut last.application {
        there.vanished = None;
    }

    let (loaded, usable) = load_sources(last_good, &counts);
    last.take(readings, usable, map_gone, application_gone);
    InForce { loaded, readings: counts, last, vanished }
}

/// When a source vanished, and how long it stays in force.
struct Times {
    since: Timestamp,
    until: Timestamp,
}

impl Times {
    fn of(self, source: Source, name: String) -> Vanished {
        Vanished { source, name, since: self.since, until: self.until }
    }
}

/// What a source that is gone said, if that is in force at this time; else it is forgotten.
fn keep<T>(
    last: &mut Option<LastText>,
    now: Timestamp,
    read: impl FnOnce(&LastText) -> Option<T>,
) -> Option<(T, Times)> {
    let text = last.as_mut()?;
    // Seconds are what people are told. A clock that was set back must not make it longer.
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let since = text.vanished.map_or(now, |since| since.min(now));
    text.vanished = Some(since);
    let until = since.checked_add(STAYS_IN_FORCE).ok().filter(|until| now < *until);
    let kept = until.and_then(|until| Some((read(text)?, Times { since, until })));
    if kept.is_none() {
        *last = None;
    }
    kept
}

/// A ConfigMap without any key says as little as none.
fn config_map_is_gone(reading: &Reading<Arc<ConfigMap>>) -> bool {
    match reading {
        Reading::Absent => true,
        Reading::Found(map) => map.data.as_ref().is_none_or(BTreeMap::is_empty),
        Reading::Forbidden | Reading::Unreadable(_) => false,
    }
}

/// Whether the application that spoke about tenants is gone, and no other speaks.
fn applications_are_gone(
    reading: &Reading<Vec<Arc<DataProtectionApplication>>>,
    copy: Option<&DataProtectionApplication>,
) -> bool {
    match reading {
        Reading::Absent => true,
        Reading::Found(found) => !found.iter().any(|there| {
            dpa::speaks(there) || copy.is_some_and(|copy| copy.metadata.name == there.metadata.name)
        }),
        Reading::Forbidden | Reading::Unreadable(_) => false,
    }
}

impl LastText {
    fn new(text: String) -> Self {
        Self { text, vanished: None }
    }
}

impl LastPolicy {
    /// Reads the copy that nacre kept; nothing if there is none.
    pub fn read(copy: Option<&ConfigMap>) -> Self {
        let data = copy.and_then(|copy| copy.data.as_ref());
        let text = |key: &str| {
            let data = data?;
            let vanished = data.get(&format!("{key}{VANISHED}")).and_then(|time| time.parse().ok());
            Some(LastText { text: data.get(key)?.clone(), vanished })
        };
        Self { config_map: text(KEY), application: text(APPLICATION) }
    }

    /// The write that makes the copy say this, if it does not.
    pub fn write(&self, namespace: &str, found: Option<&ConfigMap>) -> Option<Action> {
        config_map::ensure(namespace, IN_FORCE, self.data(), found)
    }

    fn data(&self) -> BTreeMap<String, String> {
        let texts = [(KEY, &self.config_map), (APPLICATION, &self.application)];
        let texts = texts.into_iter().filter_map(|(key, text)| Some((key, text.as_ref()?)));
        let entries = texts.flat_map(|(key, LastText { text, vanished })| {
            let vanished = vanished.map(|time| (format!("{key}{VANISHED}"), time.to_string()));
            [(key.to_owned(), text.clone())].into_iter().chain(vanished)
        });
        entries.collect()
    }

    /// Takes what is there and can be used.
    fn take(&mut self, readings: &Readings, usable: Usable, map_gone: bool, application_gone: bool) {
        if let (Reading::Found(map), true, false) = (&readings.config_map, usable.config_map, map_gone) {
            // What says nothing would not be missed.
            let text = map.data.as_ref().and_then(|data| data.get(KEY)).filter(|_| usable.limits);
            self.config_map = text.cloned().map(LastText::new);
        }
        if let (Reading::Found(all), true, false) =
            (&readings.applications, usable.applications, application_gone)
        {
            let all: Vec<_> = all.iter().map(AsRef::as_ref).collect();
            self.application = dpa::counts(&all).and_then(copy_of).map(LastText::new);
        }
    }
}

fn config_map_of(last: &LastText) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(CONFIG_MAP.to_owned()), ..ObjectMeta::default() },
        data: Some(BTreeMap::from([(KEY.to_owned(), last.text.clone())])),
        ..ConfigMap::default()
    }
}

fn application_of(last: &LastText) -> Option<DataProtectionApplication> {
    serde_json::from_str(&last.text).ok()
}

/// What an application says about tenants, and nothing else of it; none if it limits nothing. Whether it is enabled is no
/// part of the policy.
fn copy_of(application: &DataProtectionApplication) -> Option<String> {
    let limits = |block: Option<&NonAdmin>| {
        let block = NonAdmin { enable: None, ..block?.clone() };
        (block != NonAdmin::default()).then_some(block)
    };
    let seeded = application.spec.features.as_ref().and_then(|features| features.non_admin.as_ref());
    let spec = DataProtectionApplicationSpec {
        non_admin: limits(application.spec.non_admin.as_ref()),
        features: limits(seeded).map(|block| Features { non_admin: Some(block) }),
        rest: BTreeMap::new(),
    };
    let name = application.metadata.name.as_deref().unwrap_or_default();
    let says_something = spec.non_admin.is_some() || spec.features.is_some();
    says_something.then(|| json!(DataProtectionApplication::new(name, spec)).to_string())
}
