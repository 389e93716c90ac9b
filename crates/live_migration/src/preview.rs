//! Who would lose what, before it happens.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::ResourceExt;
use serde::Serialize;

use super::{
    reconcile,
    roles::{Era, MIGRATE, Role},
    who_can::{Right, rights},
};
use planner::kubevirt::Power;
use planner::rbac::{Path, Rbac, Scope, aggregate, subject::Who};

/// Rights that go, and those of the same subject in the same place that stay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Loss {
    /// The subject.
    pub who: Who,
    /// The scope.
    pub scope: Scope,
    /// What goes.
    pub loses: Vec<Power>,
    /// How it was come by.
    pub paths: Vec<Path>,
}

/// Rights that stay although the roles shrink, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeptAccess {
    /// The subject.
    pub who: Who,
    /// The scope.
    pub scope: Scope,
    /// What stays.
    pub keeps: Vec<Power>,
    /// By which paths.
    pub paths: Vec<Path>,
}

/// A namespace's own role that holds live-migration permissions: it outlives every upgrade, whoever made it and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OwnRole {
    /// The scope.
    pub namespace: String,
    /// The name of the Role.
    pub name: String,
    /// What it gives.
    pub gives: Vec<Power>,
    /// Since when.
    pub since: Option<String>,
    /// Whether it was made after the change became known.
    pub suspicious: bool,
}

/// What an upgrade would do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Preview {
    /// Who loses what.
    pub losses: Vec<Loss>,
    /// Who keeps what.
    pub kept: Vec<KeptAccess>,
    /// Who comes into a right, because a binding waits for the role.
    pub gains: Vec<KeptAccess>,
    /// Roles of single namespaces to look at.
    pub own_roles: Vec<OwnRole>,
    /// Commands that grant the permission again to everybody who loses it.
    pub grants: Vec<String>,
}

/// What an upgrade to the current roles would do. `announced` is when tenants learned of it.
pub fn preview(rbac: &Rbac, announced: Option<Timestamp>) -> Preview {
    let after = upgraded(rbac);
    let (before, later) = (rights(rbac), rights(&after));
    let had = |right: &Right| before.iter().any(|old| stays(old, std::slice::from_ref(right)));
    let (kept, gained): (Vec<&Right>, Vec<&Right>) = later.iter().partition(|right| had(right));
    let losses = losses(rbac, &after);
    let grants = losses.iter().map(|loss| grant_command(&loss.who, &loss.scope)).collect();
    Preview {
        losses,
        kept: grouped(&kept),
        gains: grouped(&gained),
        own_roles: own_roles(rbac, announced),
        grants,
    }
}

/// The rights of `before` that nobody has in `after`, by subject and place.
pub fn losses(before: &Rbac, after: &Rbac) -> Vec<Loss> {
    let later = rights(after);
    let mut found: BTreeMap<(Who, Scope), Loss> = BTreeMap::new();
    for right in rights(before).into_iter().filter(|right| !stays(right, &later)) {
        let key = (right.who.clone(), right.scope.clone());
        let loss = found.entry(key).or_insert_with(|| Loss {
            who: right.who,
            scope: right.scope,
            loses: Vec::new(),
            paths: Vec::new(),
        });
        loss.loses.push(right.power);
        loss.paths.extend(right.paths);
    }
    found.into_values().collect()
}

/// Whether somebody who has this right has it among those too, be it by another path, a group or a wider scope.
fn stays(right: &Right, later: &[Right]) -> bool {
    later.iter().any(|other| {
        other.power == right.power
            && other.who.includes(&right.who.identity())
            && right
                .scope
                .namespace()
                .map_or(other.scope == Scope::Cluster, |namespace| other.scope.includes(namespace))
            && (other.whole() || !right.whole())
    })
}

/// The cluster after an upgrade, once the aggregation controller is done.
fn upgraded(rbac: &Rbac) -> Rbac {
    let mut roles: Vec<ClusterRole> = rbac.cluster_roles.clone();
    // Where some of the roles are there, those that are not stay away.
    let is_fresh =
        !Role::OF_KUBERNETES.iter().any(|role| roles.iter().any(|found| found.name_any() == role.name()));
    for role in Role::ALL {
        match roles.iter_mut().find(|found| found.name_any() == role.name()) {
            None if is_fresh || role == Role::Migrate => roles.push(role.object(Era::Current)),
            None => {}
            Some(found) if role == Role::Migrate => {
                *found = reconcile::ours(found, role, role.rules(Era::Current));
            }
            Some(found) => *found = reconcile::upgraded(found, role),
        }
    }
    Rbac { cluster_roles: aggregate::settle(&roles), ..rbac.clone() }
}

/// The cluster without these roles, once the aggregation controller is done.
pub fn without(rbac: &Rbac, names: &[&str]) -> Rbac {
    let left: Vec<ClusterRole> = rbac
        .cluster_roles
        .iter()
        .filter(|role| !names.contains(&role.name_any().as_str()))
        .cloned()
        .collect();
    Rbac { cluster_roles: aggregate::settle(&left), ..rbac.clone() }
}

fn grouped(rights: &[&Right]) -> Vec<KeptAccess> {
    let mut found: BTreeMap<(&Who, &Scope), KeptAccess> = BTreeMap::new();
    for right in rights {
        let kept = found.entry((&right.who, &right.scope)).or_insert_with(|| KeptAccess {
            who: right.who.clone(),
            scope: right.scope.clone(),
            keeps: Vec::new(),
            paths: Vec::new(),
        });
        kept.keeps.push(right.power);
        kept.paths.extend(right.paths.iter().cloned());
    }
    found.into_values().collect()
}

fn own_roles(rbac: &Rbac, announced: Option<Timestamp>) -> Vec<OwnRole> {
    let gives =
        |role: &k8s_openapi::api::rbac::v1::Role| Power::given_by(role.rules.as_deref().unwrap_or_default());
    rbac.roles
        .iter()
        .filter(|role| !gives(role).is_empty())
        .map(|role| {
            let since = role.creation_timestamp().map(|time| time.0);
            OwnRole {
                namespace: role.namespace().unwrap_or_default(),
                name: role.name_any(),
                gives: gives(role),
                since: since.map(|time| time.to_string()),
                suspicious: announced.zip(since).is_some_and(|(announced, since)| since >= announced),
            }
        })
        .collect()
}

/// The command that gives the permission to migrate.
pub fn grant_command(who: &Who, scope: &Scope) -> String {
    let place =
        scope.namespace().map_or_else(|| "--cluster".to_owned(), |namespace| format!("-n {namespace}"));
    format!("kubectl nacre migration grant {} {place}", who.flag())
}

/// Bindings that name a role which is not there: they give nothing today, and come alive when anybody makes the role.
pub fn dormant(rbac: &Rbac) -> Vec<String> {
    if rbac.cluster_roles.iter().any(|role| role.name_any() == MIGRATE) {
        return Vec::new();
    }
    let everywhere = rbac.cluster_role_bindings.iter().map(|binding| (&binding.role_ref, &binding.metadata));
    let somewhere = rbac.role_bindings.iter().map(|binding| (&binding.role_ref, &binding.metadata));
    everywhere
        .chain(somewhere)
        .filter(|(role, _)| role.kind == "ClusterRole" && role.name == MIGRATE)
        .map(|(_, metadata)| {
            let name = metadata.name.as_deref().unwrap_or_default();
            metadata
                .namespace
                .as_ref()
                .map_or_else(|| name.to_owned(), |namespace| format!("{namespace}/{name}"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        bridge,
        fixtures::{bound, bound_everywhere, standard_roles},
    };

    fn cluster() -> Rbac {
        Rbac {
            cluster_roles: standard_roles(Era::Old),
            role_bindings: vec![
                bound("shop", "owners", "admin", &["user:ann"]),
                bound("shop", "editors", "edit", &["group:devs"]),
                bound("shop", "viewers", "view", &["user:vic"]),
                bound("shop", "migrate", MIGRATE, &["user:ann"]),
            ],
            cluster_role_bindings: vec![bound_everywhere("root", "cluster-admin", &["user:root"])],
            ..Rbac::default()
        }
    }

    #[test]
    fn whoever_is_bound_in_advance_loses_nothing() {
        let preview = preview(&cluster(), None);
        let losers: Vec<_> =
            preview.losses.iter().map(|loss| (loss.who.to_string(), loss.loses.len())).collect();
        assert_eq!(losers, [("group devs".to_owned(), 5)]);
        assert_eq!(preview.grants, ["kubectl nacre migration grant --group devs -n shop"]);
        let keepers: Vec<_> = preview.kept.iter().map(|kept| kept.who.to_string()).collect();
        assert_eq!(keepers, ["user ann", "user root"]);
        assert_eq!(preview.gains, []);
        assert_eq!(dormant(&cluster()), ["shop/migrate"]);
    }

    #[test]
    fn a_bridge_keeps_everybody_and_taking_it_away_names_whom_it_kept() {
        let mut bridged = cluster();
        bridged.cluster_roles.extend(bridge::roles());
        bridged.cluster_roles = aggregate::settle(&bridged.cluster_roles);
        assert_eq!(preview(&bridged, None).losses, []);
        let after = upgraded(&bridged);
        let cut = losses(&after, &without(&after, &bridge::NAMES));
        assert_eq!(cut.iter().map(|loss| loss.who.to_string()).collect::<Vec<_>>(), ["group devs"]);
    }

    #[test]
    fn once_upgraded_there_is_nothing_left_to_lose() {
        assert_eq!(preview(&upgraded(&cluster()), None).losses, []);
    }

    #[test]
    fn a_role_made_after_the_announcement_stands_out() {
        let announced = Timestamp::UNIX_EPOCH;
        let mut hoarded = k8s_openapi::api::rbac::v1::Role::default();
        hoarded.metadata.name = Some("mine".to_owned());
        hoarded.metadata.namespace = Some("shop".to_owned());
        hoarded.metadata.creation_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(announced));
        hoarded.rules = Some(Role::Migrate.rules(Era::Current));
        let rbac = Rbac { roles: vec![hoarded], ..cluster() };
        assert!(preview(&rbac, Some(announced)).own_roles[0].suspicious);
        assert!(!preview(&rbac, None).own_roles[0].suspicious);
    }
}
