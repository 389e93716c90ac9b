//! One policy of two sources: if both set a field, both apply.
//!
//! - What either requires of a spec is required; where they require different things, there is no policy at all.
//! - Approval is needed if either asks for it.
//! - Periods: the more careful one wins. Disabled by either, a periodic job is disabled. Otherwise storage is looked
//!   through as often as the more frequent says, and leftovers are collected as seldom as the less frequent says, since
//!   that deletes.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::Duration;
use kube::core::{Selector, SelectorExt};

use super::dpa::DpaSettings;
use super::problem::{Problem, Severity};
use super::yaml::{Document, Written};
use super::{Policy, resources, rules};
use crate::enforce::Fields;
use crate::location::endpoint::HostPattern;

/// What an administrator allows, in every namespace.
#[derive(Clone, Debug, PartialEq)]
pub struct Policies {
    base: Arc<Policy>,
    pub(super) overrides: Vec<(Selector, Arc<Policy>)>,
    /// What each source said, for when one of them cannot be read later.
    pub(super) document: Document,
    pub(super) said: DpaSettings,
}

impl Default for Policies {
    fn default() -> Self {
        let (document, said) = (Document::default(), DpaSettings::default());
        Self { base: Arc::default(), overrides: Vec::new(), document, said }
    }
}

/// The same policy in every namespace, without sources.
impl From<Arc<Policy>> for Policies {
    fn from(base: Arc<Policy>) -> Self {
        Self { base, ..Self::default() }
    }
}

/// The label with a namespace's name that Kubernetes sets.
pub(super) const NAME: &str = "kubernetes.io/metadata.name";

impl Policies {
    /// The base policy, and the cluster-wide settings.
    pub fn base(&self) -> &Arc<Policy> {
        &self.base
    }

    /// The overrides, in their order.
    pub fn overrides(&self) -> impl Iterator<Item = &Policy> {
        self.overrides.iter().map(|(_, policy)| policy.as_ref())
    }

    /// The policy of a namespace with this name and these labels: the first matching override, else the base.
    pub fn for_namespace(&self, name: &str, labels: &BTreeMap<String, String>) -> Arc<Policy> {
        let fitting = self.override_for(name, labels);
        Arc::clone(fitting.map_or(&self.base, |at| &self.overrides[at].1))
    }

    /// Which override, counted from 0, holds in such a namespace.
    pub fn override_for(&self, name: &str, labels: &BTreeMap<String, String>) -> Option<usize> {
        if self.overrides.is_empty() {
            return None;
        }
        let mut labels = labels.clone();
        labels.insert(NAME.to_owned(), name.to_owned());
        self.overrides.iter().position(|(selector, _)| selector.matches(&labels))
    }
}

impl Policies {
    /// The same, but nobody may send Velero to the API server, which is reached at these hosts.
    #[must_use]
    pub fn sparing(self, api_server: &[HostPattern]) -> Self {
        self.with(|policy| policy.storage_locations.endpoints.api_server = api_server.to_vec())
    }

    /// The same in a cluster whose API server holds pods of tenants' restores to Pod Security level baseline, or does not.
    #[must_use]
    pub fn with_fenced_pods(self, are_fenced: bool) -> Self {
        self.with(|policy| policy.restore.from_tenant_storage.pods_are_fenced = are_fenced)
    }

    /// The same, but no restore brings back who may do what: a Velero for tenants alone may not.
    #[must_use]
    pub fn without_roles(self) -> Self {
        self.with(|policy| {
            let left_out = &mut policy.restore.excluded_from_platform_storage;
            left_out.extend(resources::ROLES.map(str::to_owned));
            left_out.dedup();
        })
    }

    /// The same with what was seen in the cluster.
    fn with(mut self, note: impl Fn(&mut Policy)) -> Self {
        let overrides = self.overrides.iter_mut().map(|(_, policy)| policy);
        std::iter::once(&mut self.base).chain(overrides).for_each(|policy| note(Arc::make_mut(policy)));
        self
    }
}

/// Merges both sources. None if there is an error.
pub(super) fn combine(document: Document, said: DpaSettings) -> (Option<Policies>, Vec<Problem>) {
    let mut problems = Vec::new();
    let base = Arc::new(both(&document.base, &said, &mut problems));
    let overrides = document.overrides.iter();
    let overrides = overrides
        .map(|(selector, written)| (selector.clone(), Arc::new(both(written, &said, &mut problems))))
        .collect();
    problems.sort();
    problems.dedup();
    let usable = !problems.iter().any(Problem::is_error);
    (usable.then_some(Policies { base, overrides, document, said }), problems)
}

fn both(written: &Written, said: &DpaSettings, problems: &mut Vec<Problem>) -> Policy {
    let mut policy = written.policy.clone();
    let mut conflict = |path: &str, name: &str, found: Option<(&'static str, String)>| {
        if let Some((field, wanted)) = found {
            let message = format!(
                "the DataProtectionApplication requires {wanted} in {name}.{field}, which is something else; make them agree"
            );
            problems.push(written.problem(Severity::Error, &format!("{path}.{field}"), message));
        }
    };
    conflict("backup.enforce", "enforceBackupSpec", said.enforce_backup.conflict(&policy.backup.enforce));
    conflict("restore.enforce", "enforceRestoreSpec", said.enforce_restore.conflict(&policy.restore.enforce));
    let locations = &policy.storage_locations.enforce;
    conflict("storageLocations.enforce", "enforceBSLSpec", said.enforce_location.conflict(locations));

    said.enforce_backup.fill(&mut policy.backup.enforce);
    said.enforce_restore.fill(&mut policy.restore.enforce);
    said.enforce_location.fill(&mut policy.storage_locations.enforce);
    policy.storage_locations.require_approval |= said.require_approval;
    let sync = written.says("sync.period").then(|| policy.sync.period.clone());
    let collection =
        written.says("garbageCollection.period").then(|| policy.garbage_collection.period.clone());
    if let Some(period) = sync_period(sync, said.sync_period.clone()) {
        policy.sync.period = period;
    }
    if let Some(period) = collection_period(collection, said.collection_period.clone()) {
        policy.garbage_collection.period = period;
    }
    policy.velero_sync_period.clone_from(&said.velero_sync_period);

    // Problems of a single source were reported when it was read.
    let known = [rules::check(&written.policy), rules::check(&said.alone())].concat();
    for found in rules::check(&policy).into_iter().filter(|found| !known.contains(found)) {
        let message = format!("together with what the DataProtectionApplication says: {}", found.message);
        problems.push(written.problem(found.severity, &found.path, message));
    }
    policy
}

/// The more careful of two periods of looking through storage.
pub(super) fn sync_period(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    careful(one, other, |one, other| one <= other)
}

/// The more careful of two periods of collecting leftovers.
pub(super) fn collection_period(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    careful(one, other, |one, other| one >= other)
}

fn careful(
    one: Option<Duration>,
    other: Option<Duration>,
    better: impl Fn(i128, i128) -> bool,
) -> Option<Duration> {
    match (one, other) {
        (Some(one), Some(other)) => {
            let (first, second) = (one.nanos().unwrap_or_default(), other.nanos().unwrap_or_default());
            let keep_first = first == 0 || (second != 0 && better(first, second));
            Some(if keep_first { one } else { other })
        }
        (one, other) => one.or(other),
    }
}
