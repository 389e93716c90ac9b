//! What the aggregation controller makes of labelled roles.
//!
//! A role with an aggregation rule gets the rules of every role its selectors match, in steps: `view` is part of
//! `edit`, and `edit` of `admin`. Computing the result in advance shows what an upgrade will remove, and when the
//! controller has caught up.

use std::collections::BTreeSet;

use k8s_openapi::{
    api::rbac::v1::{ClusterRole, PolicyRule},
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use kube::{
    ResourceExt,
    core::{Selector, SelectorExt},
};
use serde::Serialize;

/// One step of aggregation: a role that is part of another, and because of which label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Via {
    /// The role that is part.
    pub role: String,
    /// The selector that matched, as labels are written.
    pub label: String,
}

/// A plain role that an aggregated one is made of in the end, and the steps that lead there.
#[derive(Clone, Debug)]
pub struct Source<'a> {
    /// Where the rules are written.
    pub role: &'a ClusterRole,
    /// The steps, outermost first; the last one names the role itself.
    pub via: Vec<Via>,
}

/// The plain roles that make up an aggregated role; nothing for a plain one. Each comes once, by the shortest way.
pub fn sources<'a>(role: &ClusterRole, all: &'a [ClusterRole]) -> Vec<Source<'a>> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::from([role.name_any()]);
    let mut layer: Vec<(&ClusterRole, Vec<Via>)> = vec![(role, Vec::new())];
    while !layer.is_empty() {
        let mut next = Vec::new();
        for (outer, way) in layer {
            for (part, label) in parts(outer, all) {
                if !seen.insert(part.name_any()) {
                    continue;
                }
                let via = [way.clone(), vec![Via { role: part.name_any(), label }]].concat();
                match part.aggregation_rule {
                    Some(_) => next.push((part, via)),
                    None => found.push(Source { role: part, via }),
                }
            }
        }
        layer = next;
    }
    found
}

/// The rules a role has once the aggregation controller is done.
pub fn settled_rules(role: &ClusterRole, all: &[ClusterRole]) -> Vec<PolicyRule> {
    match role.aggregation_rule {
        None => role.rules.clone().unwrap_or_default(),
        Some(_) => {
            sources(role, all).iter().flat_map(|source| source.role.rules.iter().flatten().cloned()).collect()
        }
    }
}

/// Every role as it will be once the aggregation controller is done.
pub fn settle(all: &[ClusterRole]) -> Vec<ClusterRole> {
    let settled = |role: &ClusterRole| ClusterRole { rules: Some(settled_rules(role, all)), ..role.clone() };
    all.iter().map(settled).collect()
}

/// The roles that an aggregated role selects directly, each with the first selector that matched.
fn parts<'a>(role: &ClusterRole, all: &'a [ClusterRole]) -> Vec<(&'a ClusterRole, String)> {
    let selectors: Vec<(String, Selector)> = role
        .aggregation_rule
        .iter()
        .flat_map(|rule| rule.cluster_role_selectors.iter().flatten())
        .filter_map(compile)
        .collect();
    let name = role.name_any();
    all.iter()
        .filter(|part| part.name_any() != name)
        .filter_map(|part| {
            let matching = selectors.iter().find(|(_, selector)| selector.matches(part.labels()))?;
            Some((part, matching.0.clone()))
        })
        .collect()
}

/// A selector the API server would not understand selects nothing, as in the controller.
fn compile(selector: &LabelSelector) -> Option<(String, Selector)> {
    let compiled = Selector::try_from(selector.clone()).ok()?;
    Some((compiled.to_string(), compiled))
}
