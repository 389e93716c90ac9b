//! A cluster's roles in memory, with an aggregation controller that runs on request.

use api::Kind;
use k8s_openapi::{
    api::{
        core::v1::ConfigMap,
        rbac::v1::{ClusterRole, PolicyRule, RoleBinding},
    },
    serde::de::DeserializeOwned,
};
use kube::ResourceExt;
use serde_json::Value;

use super::{
    contest::Repairs,
    fixtures::standard_roles,
    reconcile::{self, Observed},
    roles::Era,
    settings::Settings,
    who_can::rights,
};
use planner::kubevirt::Power;
use planner::plan::{Action, Plan};
use planner::rbac::{Rbac, aggregate, subject::Who};

/// Roles, bindings and the settings.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) roles: Vec<ClusterRole>,
    pub(crate) bindings: Vec<RoleBinding>,
    pub(crate) config: ConfigMap,
    pub(crate) writes: usize,
}

impl World {
    pub(crate) fn new(roles: Vec<ClusterRole>, asked: &Settings) -> Self {
        let mut config = asked.object();
        config.metadata.resource_version = Some("1".to_owned());
        Self { roles, bindings: Vec::new(), config, writes: 0 }
    }

    /// A cluster as KubeVirt 1.4 left it, where nacre is asked for the current roles.
    pub(crate) fn before_upgrade() -> Self {
        Self::new(standard_roles(Era::Old), &Settings { roles: Some(Era::Current), ..Settings::default() })
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings::read(&self.config).unwrap()
    }

    /// Asks as the command does: what the roles were is written down in the same write.
    pub(crate) fn ask(&mut self, roles: Era) {
        let asked = Settings { roles: Some(roles), ..self.settings() };
        self.config.data = Some(reconcile::noted(&self.observed(&asked)).data());
    }

    /// Asks as somebody does who edits the ConfigMap.
    pub(crate) fn ask_by_hand(&mut self, roles: Era) {
        self.config.data = Some(Settings { roles: Some(roles), ..self.settings() }.data());
    }

    pub(crate) fn observed<'a>(&'a self, settings: &'a Settings) -> Observed<'a> {
        Observed {
            settings,
            config: Some(&self.config),
            cluster_roles: &self.roles,
            virt_operator: None,
            repairs: Repairs { at: &[], now: jiff::Timestamp::UNIX_EPOCH },
        }
    }

    pub(crate) fn plan(&self) -> Plan {
        reconcile::decide(&self.observed(&self.settings()))
    }

    pub(crate) fn role(&self, name: &str) -> Option<&ClusterRole> {
        self.roles.iter().find(|role| role.name_any() == name)
    }

    pub(crate) fn edit(&mut self, name: &str, change: impl FnOnce(&mut ClusterRole)) {
        change(self.roles.iter_mut().find(|role| role.name_any() == name).unwrap());
    }

    pub(crate) fn carry_out(&mut self, action: &Action) {
        self.writes += 1;
        match action {
            Action::Create(object) | Action::Apply(object) if object.kind == Kind::ClusterRole => {
                if self.role(object.name()).is_none() {
                    let mut role: ClusterRole = serde_json::from_value(object.body.clone()).unwrap();
                    role.metadata.resource_version = Some(self.writes.to_string());
                    self.roles.push(role);
                }
            }
            Action::Patch(target, patch) if target.kind == Kind::ClusterRole => {
                let version = self.writes.to_string();
                let found = self.roles.iter_mut().find(|role| role.name_any() == target.name).unwrap();
                assert_eq!(patch["metadata"]["resourceVersion"], *found.resource_version().unwrap());
                *found = merged(found, patch);
                found.metadata.resource_version = Some(version);
            }
            Action::Patch(target, patch) if target.kind == Kind::ConfigMap => {
                assert_eq!(patch["metadata"]["resourceVersion"], *self.config.resource_version().unwrap());
                self.config = merged(&self.config, patch);
                self.config.metadata.resource_version = Some(format!("after-{}", self.writes));
            }
            Action::Delete(target) if target.kind == Kind::ClusterRole => {
                self.roles.retain(|role| role.name_any() != target.name);
            }
            other => panic!("this world cannot {other:?}"),
        }
    }

    /// One pass over one aggregated role, from what the others are right now.
    pub(crate) fn aggregate(&mut self, name: &str) {
        let role = self.role(name).unwrap().clone();
        let flat: Vec<ClusterRole> =
            self.roles.iter().map(|role| ClusterRole { aggregation_rule: None, ..role.clone() }).collect();
        let rules: Vec<PolicyRule> = aggregate::settled_rules(&role, &flat);
        self.edit(name, |role| role.rules = Some(rules));
    }

    /// The aggregation controller catches up.
    pub(crate) fn settle_aggregation(&mut self) {
        let is_aggregated = |role: &&ClusterRole| role.aggregation_rule.is_some();
        let kubevirts = self.roles.iter().filter(is_aggregated).map(ResourceExt::name_any);
        let kubevirts: Vec<String> = kubevirts.filter(|name| name.starts_with("kubevirt.io:")).collect();
        for name in kubevirts.iter().map(String::as_str).chain(["view", "edit", "admin"]) {
            self.aggregate(name);
        }
    }

    /// Decides and carries out until there is nothing left to do.
    pub(crate) fn settle(&mut self) {
        for _ in 0..20 {
            self.settle_aggregation();
            let plan = self.plan();
            if plan.actions.is_empty() && plan.delay().is_none() {
                return;
            }
            plan.actions.iter().for_each(|action| self.carry_out(action));
        }
        panic!("never settles");
    }

    pub(crate) fn rbac(&self) -> Rbac {
        Rbac { cluster_roles: self.roles.clone(), role_bindings: self.bindings.clone(), ..Rbac::default() }
    }

    /// Whether a user has this power somewhere.
    pub(crate) fn may(&self, user: &str, power: Power) -> bool {
        let who = Who::named(user);
        rights(&self.rbac()).iter().any(|right| right.who == who && right.power == power)
    }
}

fn merged<T: serde::Serialize + DeserializeOwned>(object: &T, patch: &Value) -> T {
    let mut value = serde_json::to_value(object).unwrap();
    merge(&mut value, patch);
    serde_json::from_value(value).unwrap()
}

fn merge(into: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *into = patch.clone();
        return;
    };
    if !into.is_object() {
        *into = Value::Object(serde_json::Map::new());
    }
    for (key, change) in changes {
        match change {
            Value::Null => drop(into.as_object_mut().unwrap().remove(key)),
            change => merge(&mut into[key], change),
        }
    }
}
