//! What the roles were before an upgrade. It is written down before the first change, so that a rollback can restore it.

use std::collections::BTreeMap;

use k8s_openapi::api::rbac::v1::{AggregationRule, ClusterRole, PolicyRule};
use kube::ResourceExt;
use kube::core::ObjectMeta;
use serde::{Deserialize, Serialize};

use super::{narrow::widened, roles::Role};

/// The roles at the time of an upgrade.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BeforeUpgrade {
    /// What each was, by its name. A role that was not there has no entry. Without any entry the roles are nacre's own.
    pub roles: BTreeMap<String, RoleBefore>,
    /// Whether a rollback has restored all of it. From then on nacre leaves the roles alone, until the next upgrade.
    pub rolled_back: bool,
}

/// Everything of a role that an upgrade may change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RoleBefore {
    /// Its rules.
    pub rules: Vec<PolicyRule>,
    /// All its labels.
    pub labels: BTreeMap<String, String>,
    /// Which roles it was made of, if another controller wrote its rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aggregation_rule: Option<AggregationRule>,
}

impl BeforeUpgrade {
    /// What nacre wrote down before it also recorded labels: the rules of the roles that could migrate.
    pub fn of_rules(rules: &BTreeMap<String, Vec<PolicyRule>>) -> Self {
        let entry = |role: &Role| {
            let rules = rules.get(role.name())?.clone();
            Some((
                role.name().to_owned(),
                RoleBefore { rules, labels: role.labels(), aggregation_rule: None },
            ))
        };
        Self { roles: Role::OF_KUBERNETES.iter().filter_map(entry).collect(), rolled_back: false }
    }

    /// What this role was, if it was there.
    pub fn entry(&self, role: Role) -> Option<&RoleBefore> {
        self.roles.get(role.name())
    }
}

impl RoleBefore {
    /// What a role is.
    pub fn of(found: &ClusterRole) -> Self {
        Self {
            rules: rules_of(found).to_vec(),
            labels: found.labels().clone(),
            aggregation_rule: found.aggregation_rule.clone(),
        }
    }

    /// The role as it was.
    pub fn object(&self, role: Role) -> ClusterRole {
        ClusterRole {
            metadata: ObjectMeta {
                name: Some(role.name().to_owned()),
                labels: Some(self.labels.clone()),
                ..ObjectMeta::default()
            },
            rules: Some(self.rules.clone()),
            aggregation_rule: self.aggregation_rule.clone(),
        }
    }

    /// The role as a rollback leaves it. What somebody else has changed since the upgrade stays.
    pub fn restored(&self, role: Role, found: &ClusterRole) -> ClusterRole {
        let mut back = found.clone();
        for key in role.labels().into_keys() {
            match self.labels.get(&key) {
                Some(value) => drop(back.labels_mut().insert(key, value.clone())),
                None => drop(back.labels_mut().remove(&key)),
            }
        }
        // Once the aggregation rule is there, its controller writes the rules.
        if self.aggregation_rule.is_none() || found.aggregation_rule != self.aggregation_rule {
            back.rules = Some(widened(rules_of(found), &self.rules));
        }
        back.aggregation_rule.clone_from(&self.aggregation_rule);
        back
    }
}

/// The rules of a role.
pub fn rules_of(role: &ClusterRole) -> &[PolicyRule] {
    role.rules.as_deref().unwrap_or_default()
}

#[cfg(test)]
mod tests;
