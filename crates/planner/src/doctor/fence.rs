//! Whether the API server holds what Velero creates for tenants, and what it cannot hold.

use api::Kind;

use super::{Area, Finding, Observed};
use crate::Object;
use crate::admission::{around_restores, is_in_force};
use crate::install::{binds_velero, is_ours};
use crate::policy::Reading;

const AREA: Area = Area::Admission;

/// How the fence stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fence {
    /// Every policy around tenants' restores is in force.
    Closed,
    /// At least one is not.
    Open,
    /// The caller may not look at all of them, and the others are in force.
    Unknown,
}

pub(super) fn state(seen: &Observed) -> Fence {
    let around = around_restores(&seen.namespace);
    let needed =
        |wanted: &Object| around.iter().any(|one| one.kind == wanted.kind && one.name() == wanted.name());
    let mut state = Fence::Closed;
    for (_, found) in
        seen.installed.iter().filter(|(wanted, _)| needed(wanted)).filter(
            |(wanted, found)| !matches!(found, Reading::Found(found) if is_in_force(wanted, &found.body)),
        )
    {
        match found {
            Reading::Forbidden => state = Fence::Unknown,
            _ => return Fence::Open,
        }
    }
    state
}

/// Reports which mode is on: whether administrators and tenants share a Velero.
pub(super) fn examine(seen: &Observed) -> Option<Finding> {
    if is_dedicated(seen) { dedicated(seen) } else { shared(seen) }
}

fn is_dedicated(seen: &Observed) -> bool {
    seen.values().ok().is_some_and(|values| values.get("fence") == Some(&true.into()))
}

/// Whether Velero is for tenants alone, as far as is known without permissions outside their namespaces.
pub(super) fn is_held_to_tenants(seen: &Observed) -> bool {
    is_dedicated(seen) && wide_binding(seen).is_none()
}

/// What gives Velero permissions everywhere, and is not of nacre's installation.
fn wide_binding(seen: &Observed) -> Option<Object> {
    let Reading::Found(rbac) = &seen.rbac else { return None };
    let mut bindings = rbac.cluster_role_bindings.iter().map(|one| Object::of(Kind::ClusterRoleBinding, one));
    let roles: Vec<Object> =
        rbac.cluster_roles.iter().map(|one| Object::of(Kind::ClusterRole, one)).collect();
    bindings.find(|one| !is_ours(one) && binds_velero(one, &roles, &seen.namespace).is_some())
}

/// Velero is for tenants alone: nothing gives it permissions everywhere.
fn dedicated(seen: &Observed) -> Option<Finding> {
    let Reading::Found(_) = &seen.rbac else { return None };
    let Some(wide) = wide_binding(seen) else {
        return Some(AREA.ok(
            "Velero is for tenants alone (dedicated mode): it is not cluster-admin, and RBAC holds it to tenants' namespaces",
        ));
    };
    let message = format!(
        "Velero is for tenants alone (dedicated mode), and clusterrolebinding/{} still gives it the role {} everywhere",
        wide.name(),
        wide.body["roleRef"]["name"].as_str().unwrap_or_default()
    );
    Some(AREA.problem(message, seen.installer()))
}

fn shared(seen: &Observed) -> Option<Finding> {
    match state(seen) {
        Fence::Closed => Some(AREA.ok(
            "administrators and tenants share one Velero (shared mode), and the API server holds what it creates for tenants \
             to their namespaces; it cannot hold webhook configurations and admission policies, which filters leave out. \
             A Velero for tenants alone would not be cluster-admin: kubectl nacre install --velero-namespace velero-tenants --fence",
        )),
        Fence::Open => Some(AREA.problem(
            "administrators and tenants share one Velero (shared mode), and the API server does not hold what it creates for \
             tenants to their namespaces",
            seen.installer(),
        )),
        Fence::Unknown => None,
    }
}
