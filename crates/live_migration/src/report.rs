//! The state of the roles.

use k8s_openapi::{api::rbac::v1::ClusterRole, apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry};
use kube::ResourceExt;
use serde::Serialize;

use super::{
    narrow::lets_migrate,
    reconcile::{Observed, foreign_labels, is_settled},
    roles::{AGGREGATE, Era, Role},
};
use planner::kubevirt::Power;
use planner::rbac::{
    aggregate::{self, Via},
    rules,
};

/// One of the four roles.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RoleState {
    /// The name of the ClusterRole.
    pub role: &'static str,
    /// `current`, `old`, `missing` or `different`.
    pub state: &'static str,
}

/// A live-migration permission that `admin`, `edit` or `view` has from a role that is not one of KubeVirt's three.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OptIn {
    /// Which Kubernetes role.
    pub role: &'static str,
    /// What it gets.
    pub powers: Vec<Power>,
    /// The paths.
    pub via: Vec<Via>,
    /// Who set the label that does it, as the API server noted it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set_by: Option<String>,
    /// And when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
}

/// The whole picture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Whether roles are as asked for and the aggregation controller has caught up.
    pub converged: bool,
    /// Why nacre leaves the roles alone, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managed_elsewhere: Option<String>,
    /// Each of the four.
    pub roles: Vec<RoleState>,
    /// Kubernetes roles the aggregation controller has yet to bring up to date.
    pub waiting_for: Vec<&'static str>,
    /// What an administrator chose to give to everybody with a role.
    pub opt_ins: Vec<OptIn>,
    /// What ought to be looked at.
    pub warnings: Vec<String>,
}

/// Reports the state of the roles.
pub fn report(seen: &Observed<'_>) -> Report {
    let roles: Vec<RoleState> =
        Role::ALL.into_iter().map(|role| RoleState { role: role.name(), state: state(seen, role) }).collect();
    let managed_elsewhere = seen.step_aside();
    let waiting_for: Vec<&'static str> =
        ["view", "edit", "admin"].into_iter().filter(|name| lags(seen, name)).collect();
    Report {
        converged: is_settled(seen) && waiting_for.is_empty(),
        managed_elsewhere,
        roles,
        waiting_for,
        opt_ins: opt_ins(seen),
        warnings: warnings(seen),
    }
}

fn shrinks(name: &str) -> bool {
    [Role::Admin, Role::Edit].iter().any(|role| role.name() == name)
}

fn state(seen: &Observed<'_>, role: Role) -> &'static str {
    let Some(found) = seen.role(role) else {
        return "missing";
    };
    let rules = found.rules.as_deref().unwrap_or_default();
    let labelled = role.labels().iter().all(|(key, value)| found.labels().get(key) == Some(value));
    // After a rollback the others are what they were, labels and aggregation too.
    let is_ours = role == Role::Migrate || seen.settings.roles != Some(Era::Old);
    if is_ours && (found.aggregation_rule.is_some() || !labelled) {
        "different"
    } else if role == Role::Migrate {
        if rules::same(rules, &role.rules(Era::Current)) { "current" } else { "different" }
    } else if rules.iter().any(lets_migrate) {
        "old"
    } else {
        "current"
    }
}

fn lags(seen: &Observed<'_>, name: &str) -> bool {
    seen.named(name).is_some_and(|role| {
        let settled = aggregate::settled_rules(role, seen.cluster_roles);
        !rules::same(role.rules.as_deref().unwrap_or_default(), &settled)
    })
}

fn opt_ins(seen: &Observed<'_>) -> Vec<OptIn> {
    let mut found = Vec::new();
    for name in ["view", "edit", "admin"] {
        let Some(role) = seen.named(name) else { continue };
        for source in aggregate::sources(role, seen.cluster_roles) {
            let powers = Power::given_by(source.role.rules.as_deref().unwrap_or_default());
            if !powers.is_empty() && !shrinks(&source.role.name_any()) {
                let label = source.via.last().map_or("", |via| via.label.as_str());
                let noted = labelled_by(source.role, label.split('=').next().unwrap_or_default());
                let (set_by, since) = noted.unzip();
                found.push(OptIn { role: name, powers, via: source.via, set_by, since: since.flatten() });
            }
        }
    }
    found
}

/// The field manager that owns a label, and when it last wrote.
fn labelled_by(role: &ClusterRole, label: &str) -> Option<(String, Option<String>)> {
    let owns = |entry: &&ManagedFieldsEntry| {
        let fields = entry.fields_v1.as_ref();
        fields.is_some_and(|fields| fields.0["f:metadata"]["f:labels"].get(format!("f:{label}")).is_some())
    };
    let entry = role.managed_fields().iter().find(owns)?;
    Some((entry.manager.clone()?, entry.time.as_ref().map(|time| time.0.to_string())))
}

fn warnings(seen: &Observed<'_>) -> Vec<String> {
    let to_view = format!("{AGGREGATE}view");
    let viewers = seen
        .role(Role::Migrate)
        .filter(|role| foreign_labels(role).get(&to_view).is_some_and(|value| value == "true"));
    viewers
        .map(|role| {
            format!("{} is labelled {to_view}=true: everybody who may look may also migrate", role.name_any())
        })
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        contest::Repairs,
        fixtures::{labelled, standard_roles},
        roles::MIGRATE,
        settings::Settings,
        world::World,
    };

    fn report_of(world: &World, settings: &Settings) -> Report {
        report(&Observed {
            settings,
            config: None,
            cluster_roles: &world.roles,
            virt_operator: None,
            repairs: Repairs { at: &[], now: jiff::Timestamp::UNIX_EPOCH },
        })
    }

    #[test]
    fn converged_means_the_aggregation_controller_has_caught_up_too() {
        let asked = Settings { roles: Some(Era::Current), ..Settings::default() };
        let mut world = World::new(standard_roles(Era::Old), &asked);
        assert!(!report_of(&world, &asked).converged);
        for _ in 0..2 {
            world.plan().actions.iter().for_each(|action| world.carry_out(action));
        }
        let report = report_of(&world, &world.settings());
        assert!(!report.converged);
        assert_eq!(report.waiting_for, ["edit", "admin"]);
        world.settle_aggregation();
        assert!(report_of(&world, &world.settings()).converged);
    }

    #[test]
    fn who_labelled_it_and_when_is_told() {
        let asked = Settings { roles: Some(Era::Current), ..Settings::default() };
        let mut world = World::new(standard_roles(Era::Current), &asked);
        labelled(&mut world.roles, MIGRATE, "rbac.authorization.k8s.io/aggregate-to-admin", "true");
        world.edit(MIGRATE, |role| {
            let noted = serde_json::json!([{
                "manager": "kubectl-label", "time": "2026-01-01T00:00:00Z",
                "fieldsV1": { "f:metadata": { "f:labels": { "f:rbac.authorization.k8s.io/aggregate-to-admin": {} } } },
            }]);
            role.metadata.managed_fields = serde_json::from_value(noted).unwrap();
        });
        let opt_in = report_of(&world, &asked).opt_ins.remove(0);
        assert_eq!(opt_in.set_by.as_deref(), Some("kubectl-label"));
        assert_eq!(opt_in.since.as_deref(), Some("2026-01-01T00:00:00Z"));
    }

    #[test]
    fn opt_ins_are_listed_and_viewers_are_warned_about() {
        let asked = Settings { roles: Some(Era::Current), ..Settings::default() };
        let mut world = World::new(standard_roles(Era::Current), &asked);
        labelled(&mut world.roles, MIGRATE, "rbac.authorization.k8s.io/aggregate-to-view", "true");
        let report = report_of(&world, &asked);
        let given: Vec<_> = report.opt_ins.iter().map(|given| given.role).collect();
        assert_eq!(given, ["view", "edit", "admin"]);
        assert_eq!(report.warnings.len(), 1);
    }
}
