//! Every subject that can create, change, delete or request a migration, and by which path.

use std::collections::{BTreeMap, BTreeSet};

use planner::kubevirt::Power;
use planner::rbac::subject::{Identity, Who};
use planner::rbac::{Path, Rbac, Scope, holdings};
use serde::Serialize;

/// One right of one subject in one place, with every path that leads to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Right {
    /// The subject.
    pub who: Who,
    /// The scope.
    pub scope: Scope,
    /// What the subject may do.
    pub power: Power,
    /// The paths.
    pub paths: Vec<Path>,
}

impl Right {
    /// Whether it holds for every object, or only for some by name.
    pub fn whole(&self) -> bool {
        self.paths.iter().any(|path| path.only.is_empty())
    }

    /// Whether it is a right of this identity in this namespace.
    pub fn serves(&self, identity: &Identity, namespace: &str) -> bool {
        self.who.includes(identity) && self.scope.includes(namespace)
    }
}

/// Every live-migration permission in the cluster, sorted by subject, place and power.
pub fn rights(rbac: &Rbac) -> Vec<Right> {
    let requests = Power::ALL.map(Power::request);
    let mut found: BTreeMap<(Who, Scope, Power), BTreeSet<Path>> = BTreeMap::new();
    for holding in holdings(rbac, &requests) {
        let power = Power::ALL[holding.request];
        found.entry((holding.who, holding.scope, power)).or_default().insert(holding.path);
    }
    found
        .into_iter()
        .map(|((who, scope, power), paths)| Right { who, scope, power, paths: paths.into_iter().collect() })
        .collect()
}

#[cfg(test)]
mod tests;
