//! Whether the API server holds what Velero creates for tenants, and what it cannot hold.

use super::{Area, Finding, Observed};
use crate::Object;
use crate::admission::{around_restores, is_in_force};
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

/// Says which mode is on: nacre knows one, in which administrators and tenants share a Velero.
pub(super) fn examine(seen: &Observed) -> Option<Finding> {
    match state(seen) {
        Fence::Closed => Some(AREA.ok(
            "administrators and tenants share one Velero (shared mode), and the API server holds what it creates for tenants \
             to their namespaces; it cannot hold webhook configurations and admission policies, which filters leave out",
        )),
        Fence::Open => Some(AREA.problem(
            "administrators and tenants share one Velero (shared mode), and the API server does not hold what it creates for \
             tenants to their namespaces",
            seen.installer(),
        )),
        Fence::Unknown => None,
    }
}
