//! Permissions that are not about migrations but allow them indirectly.

use std::collections::BTreeSet;

use serde::Serialize;

use super::who_can::Right;
use planner::rbac::{Path, Rbac, Scope, holdings, rules::Request, subject::Who};

/// A detour to a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Detour {
    /// Evicting a machine's pod makes KubeVirt migrate it, with the highest priority. The guard ends that.
    Evict,
    /// Acting as a service account that may migrate.
    ActAsServiceAccount,
    /// Asking for a token of a service account that may migrate.
    TokenOfServiceAccount,
    /// Running a pod as a service account that may migrate.
    RunAsServiceAccount,
    /// Acting as any user or group.
    Impersonate,
    /// Binding a role one does not hold.
    Bind,
    /// Writing a role that says more than one holds.
    Escalate,
    /// Labelling a role into `admin` or `edit`, as far as one holds its rights.
    LabelRoles,
}

/// A subject with such a right.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Roundabout {
    /// The subject.
    pub who: Who,
    /// The scope.
    pub scope: Scope,
    /// What it leads over.
    pub detour: Detour,
    /// How it was come by.
    pub path: Path,
    /// What the API server can be asked to confirm it.
    #[serde(skip)]
    pub request: Request,
}

const fn core(resource: &'static str, subresource: &'static str, verb: &'static str) -> Request {
    Request { group: "", resource, subresource, verb }
}

const fn rbac_rule(resource: &'static str, verb: &'static str) -> Request {
    Request { group: "rbac.authorization.k8s.io", resource, subresource: "", verb }
}

const ASKED: [(Detour, Request); 11] = [
    (Detour::Evict, core("pods", "eviction", "create")),
    (Detour::ActAsServiceAccount, core("serviceaccounts", "", "impersonate")),
    (Detour::TokenOfServiceAccount, core("serviceaccounts", "token", "create")),
    (Detour::RunAsServiceAccount, core("pods", "", "create")),
    (Detour::Impersonate, core("users", "", "impersonate")),
    (Detour::Impersonate, core("groups", "", "impersonate")),
    (Detour::Bind, rbac_rule("clusterroles", "bind")),
    (Detour::Escalate, rbac_rule("clusterroles", "escalate")),
    (Detour::Escalate, rbac_rule("roles", "escalate")),
    (Detour::LabelRoles, rbac_rule("clusterroles", "update")),
    (Detour::LabelRoles, rbac_rule("clusterroles", "patch")),
];

/// Everybody who can get at migrations by a detour. What goes through a service account counts only where one in reach has a right;
/// impersonating users or groups and writing cluster roles count only at cluster scope, where alone they mean something.
pub fn roundabouts(rbac: &Rbac, rights: &[Right]) -> Vec<Roundabout> {
    let homes: BTreeSet<&str> = rights
        .iter()
        .filter_map(|right| match &right.who {
            Who::ServiceAccount { namespace, .. } => Some(namespace.as_str()),
            _ => None,
        })
        .collect();
    let requests = ASKED.map(|(_, request)| request);
    let found: BTreeSet<Roundabout> = holdings(rbac, &requests)
        .into_iter()
        .map(|holding| Roundabout {
            who: holding.who,
            scope: holding.scope,
            detour: ASKED[holding.request].0,
            path: holding.path,
            request: ASKED[holding.request].1,
        })
        .filter(|found| leads_somewhere(found, &homes))
        .collect();
    found.into_iter().collect()
}

fn leads_somewhere(found: &Roundabout, homes: &BTreeSet<&str>) -> bool {
    match (found.detour, &found.scope) {
        (
            Detour::ActAsServiceAccount | Detour::TokenOfServiceAccount | Detour::RunAsServiceAccount,
            scope,
        ) => homes.iter().any(|home| scope.includes(home)),
        (Detour::Impersonate | Detour::LabelRoles, scope) => *scope == Scope::Cluster,
        // In a namespace, `bind` and `escalate` are good for bindings and roles there.
        (Detour::Evict | Detour::Bind | Detour::Escalate, _) => true,
    }
}
