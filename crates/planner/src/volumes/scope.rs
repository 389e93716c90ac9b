//! What a restore was asked to bring back: a claim that the request left out is neither kept nor missing.

use std::collections::BTreeMap;

use api::velero::RestoreSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{Selector, SelectorExt};

/// The names under which Velero finds claims.
const CLAIMS: [&str; 3] = ["persistentvolumeclaims", "persistentvolumeclaim", "pvc"];
/// What claims need to come back.
pub(crate) const PERSISTENT_VOLUMES: &str = "persistentvolumes";
/// The names under which Velero finds the volumes of claims.
const VOLUMES: [&str; 3] = [PERSISTENT_VOLUMES, "persistentvolume", "pv"];
/// The names under which Velero finds pods.
const PODS: [&str; 3] = ["pods", "pod", "po"];

/// The filters of a Velero Restore, as far as claims and pods are concerned.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    /// Claims are asked for.
    pub(super) claims: bool,
    /// Pods are asked for. The data of a file-system backup comes back through them.
    pub(super) pods: bool,
    /// One of these must match, if there are any; none if there is no selector.
    selectors: Option<Vec<Selector>>,
}

impl Scope {
    pub(super) fn of(spec: &RestoreSpec) -> Self {
        let selectors: Vec<&LabelSelector> =
            spec.label_selector.iter().chain(spec.or_label_selectors.iter().flatten()).collect();
        let read = |selector: &&LabelSelector| Selector::try_from((*selector).clone()).ok();
        Self {
            claims: includes(spec, &CLAIMS),
            pods: includes(spec, &PODS),
            selectors: (!selectors.is_empty()).then(|| selectors.iter().filter_map(read).collect()),
        }
    }

    /// Whether objects are selected by labels: what does not exist cannot be matched then.
    pub(super) fn by_labels(&self) -> bool {
        self.selectors.is_some()
    }

    /// Whether a claim with these labels is asked for.
    pub(super) fn has_claim(&self, labels: Option<&BTreeMap<String, String>>) -> bool {
        let none = BTreeMap::new();
        let labels = labels.unwrap_or(&none);
        let selected = |selectors: &Vec<Selector>| selectors.iter().any(|selector| selector.matches(labels));
        self.claims && self.selectors.as_ref().is_none_or(selected)
    }
}

/// Whether a list of resources has claims, and not their volumes.
pub(crate) fn claims_without_volumes(list: &[String]) -> bool {
    lists(list, &CLAIMS) && !lists(list, &VOLUMES)
}

fn includes(spec: &RestoreSpec, names: &[&str]) -> bool {
    let included = spec.included_resources.as_deref().unwrap_or_default();
    let excluded = spec.excluded_resources.as_deref().unwrap_or_default();
    (included.is_empty() || lists(included, names)) && !lists(excluded, names)
}

fn lists(list: &[String], names: &[&str]) -> bool {
    list.iter().any(|name| {
        let name = name.to_ascii_lowercase();
        let name = name.trim_end_matches('.');
        name == "*" || names.contains(&name)
    })
}
