//! The bridge: temporary roles that keep the permissions of `admin` and `edit` while an upgrade removes them from
//! KubeVirt's roles.
//!
//! There are two, because `edit` never could delete a whole collection: one role for both would give it more than it had. They carry
//! no `managed-by` label, since KubeVirt's operator deletes whatever carries its own and is not on its list.

use std::time::Duration;

use api::Kind;
use jiff::Timestamp;
use k8s_openapi::{
    api::rbac::v1::{ClusterRole, PolicyRule},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::{ResourceExt, core::ObjectMeta};

use super::{
    preview::{Loss, losses, without},
    roles::{AGGREGATE, MIGRATE, lost_by_admin, lost_by_edit},
};
use planner::kubevirt::Power;
use planner::plan::{Action, Object, Plan, Target};
use planner::rbac::{Rbac, aggregate};

/// The name in KubeVirt's proposal for live-migration roles; keeps `admin`.
pub const NAME: &str = "kubevirt.io:upgrademigrate";
/// Keeps `edit`.
pub const EDIT_NAME: &str = "kubevirt.io:upgrademigrate-edit";
/// Both.
pub const NAMES: [&str; 2] = [EDIT_NAME, NAME];

/// How old a binding has to be before it is relied upon: the API server learns of bindings and of roles separately.
const RELIABLE: Duration = Duration::from_secs(2);

/// Both of them.
pub fn roles() -> [ClusterRole; 2] {
    [bridge(EDIT_NAME, "edit", lost_by_edit()), bridge(NAME, "admin", lost_by_admin())]
}

fn bridge(name: &str, role: &str, rules: Vec<PolicyRule>) -> ClusterRole {
    ClusterRole {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some([(format!("{AGGREGATE}{role}"), "true".to_owned())].into()),
            ..ObjectMeta::default()
        },
        rules: Some(rules),
        aggregation_rule: None,
    }
}

/// Decides what to make. A role of that name that is there already is the administrator's, and stays as it is.
pub fn create(rbac: &Rbac) -> Plan {
    let there =
        |role: &ClusterRole| rbac.cluster_roles.iter().any(|found| found.name_any() == role.name_any());
    let missing = roles().into_iter().filter(|role| !there(role));
    missing.fold(Plan::done(), |plan, role| plan.then(Action::Create(Object::of(Kind::ClusterRole, &role))))
}

/// What `admin` or `edit` have yet to get from the bridge; the upgrade may begin when that is nothing.
pub fn missing(rbac: &Rbac) -> Vec<(&'static str, Power)> {
    let mut missing = Vec::new();
    for name in ["edit", "admin"] {
        let Some(role) = rbac.cluster_roles.iter().find(|role| role.name_any() == name) else {
            continue;
        };
        let has = Power::given_by(role.rules.as_deref().unwrap_or_default());
        let shall = Power::given_by(&aggregate::settled_rules(role, &rbac.cluster_roles));
        missing.extend(shall.into_iter().filter(|power| !has.contains(power)).map(|power| (name, power)));
    }
    missing
}

/// Who would lose permissions if the bridge were removed now.
pub fn cut_off(rbac: &Rbac) -> Vec<Loss> {
    losses(rbac, &without(rbac, &NAMES))
}

/// Decides about taking it away. Nothing goes while somebody would be cut off, unless forced; and a binding made a moment ago is given
/// the time to arrive.
pub fn remove(rbac: &Rbac, force: bool, now: Timestamp) -> Plan {
    let standing: Vec<&ClusterRole> =
        rbac.cluster_roles.iter().filter(|role| NAMES.contains(&role.name_any().as_str())).collect();
    if standing.is_empty() || (!force && !cut_off(rbac).is_empty()) {
        return Plan::done();
    }
    if !force && let Some(wait) = youngest_grant(rbac).and_then(|made| settling(made, now)) {
        return Plan::done().requeue_after(wait);
    }
    standing.into_iter().fold(Plan::done(), |plan, role| {
        plan.then(Action::Delete(Target::of(Kind::ClusterRole, &role.metadata)))
    })
}

fn settling(made: Timestamp, now: Timestamp) -> Option<Duration> {
    let age = now.duration_since(made);
    // A clock that is behind the API server's shows a negative age: then the whole time is waited for, once.
    let age = if age.is_negative() { Duration::ZERO } else { age.unsigned_abs() };
    RELIABLE.checked_sub(age).filter(|left| !left.is_zero())
}

fn youngest_grant(rbac: &Rbac) -> Option<Timestamp> {
    let made = |metadata: &ObjectMeta| metadata.creation_timestamp.as_ref().map(|Time(time)| *time);
    let everywhere = rbac.cluster_role_bindings.iter().map(|binding| (&binding.role_ref, &binding.metadata));
    let somewhere = rbac.role_bindings.iter().map(|binding| (&binding.role_ref, &binding.metadata));
    everywhere
        .chain(somewhere)
        .filter(|(role, _)| role.name == MIGRATE)
        .filter_map(|(_, metadata)| made(metadata))
        .max()
}

#[cfg(test)]
mod tests {
    use jiff::ToSpan;

    use super::*;
    use crate::{
        fixtures::{bound, standard_roles},
        roles::Era,
    };

    const NOON: Timestamp = Timestamp::UNIX_EPOCH;

    fn bridged(bindings: &[(&str, &str)]) -> Rbac {
        let mut cluster_roles = standard_roles(Era::Current);
        cluster_roles.extend(roles());
        Rbac {
            cluster_roles: aggregate::settle(&cluster_roles),
            role_bindings: bindings.iter().map(|(role, who)| bound("shop", role, role, &[who])).collect(),
            ..Rbac::default()
        }
    }

    #[test]
    fn labels_are_a_map_and_nothing_invites_the_operator_to_delete_it() {
        for role in roles() {
            let manifest = serde_json::to_value(&role).unwrap();
            assert!(
                manifest["metadata"]["labels"].as_object().unwrap().values().all(|value| value == "true")
            );
            assert!(!role.labels().contains_key("app.kubernetes.io/managed-by"));
        }
    }

    #[test]
    fn it_gives_admin_and_edit_exactly_what_they_had() {
        let old = standard_roles(Era::Old);
        let powers = |name: &str, all: &[ClusterRole]| {
            Power::given_by(
                all.iter().find(|role| role.name_any() == name).unwrap().rules.as_deref().unwrap(),
            )
        };
        for name in ["admin", "edit", "view"] {
            assert_eq!(powers(name, &bridged(&[]).cluster_roles), powers(name, &old), "{name}");
        }
    }

    #[test]
    fn making_it_twice_is_making_it_once() {
        let rbac = Rbac { cluster_roles: standard_roles(Era::Old), ..Rbac::default() };
        assert_eq!(create(&rbac).actions.len(), 2);
        assert_eq!(create(&bridged(&[])), Plan::done());
    }

    #[test]
    fn it_does_not_go_while_somebody_stands_on_it() {
        let rbac = bridged(&[("admin", "user:ann"), (MIGRATE, "user:bob")]);
        assert_eq!(cut_off(&rbac)[0].who.to_string(), "user ann");
        assert_eq!(remove(&rbac, false, NOON), Plan::done());
        assert_eq!(remove(&rbac, true, NOON).actions.len(), 2);
        let granted = bridged(&[("admin", "user:ann"), (MIGRATE, "user:ann")]);
        assert_eq!(remove(&granted, false, NOON).actions.len(), 2);
    }

    #[test]
    fn a_grant_made_a_moment_ago_is_given_time_to_arrive() {
        let mut rbac = bridged(&[(MIGRATE, "user:ann")]);
        rbac.role_bindings[0].metadata.creation_timestamp = Some(Time(NOON));
        let early = remove(&rbac, false, NOON + 1.second());
        assert!(early.actions.is_empty() && early.delay() == Some(Duration::from_secs(1)));
        assert_eq!(remove(&rbac, false, NOON + 2.seconds()).actions.len(), 2);
    }
}
