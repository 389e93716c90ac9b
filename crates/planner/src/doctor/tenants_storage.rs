//! What tenants who bring storage can have Velero read: no admission policy sees what is read.

use super::fence::is_held_to_tenants;
use super::{Area, Finding, Observed};
use crate::location::review::VELERO_READS;
use crate::policy::{Policies, Policy, StorageMode};

const AREA: Area = Area::Policy;
const DEDICATED: &str = "kubectl nacre install --velero-namespace velero-tenants --fence";

/// Who can bring storage, the fewest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Brings {
    Nobody,
    Approved,
    Everybody,
}

impl From<&Policy> for Brings {
    fn from(policy: &Policy) -> Self {
        match (policy.storage_locations.mode, policy.storage_locations.require_approval) {
            (StorageMode::Platform, _) => Self::Nobody,
            (StorageMode::Any | StorageMode::Own, true) => Self::Approved,
            (StorageMode::Any | StorageMode::Own, false) => Self::Everybody,
        }
    }
}

impl Brings {
    const fn words(self) -> &'static str {
        match self {
            Self::Nobody => "nobody brings storage",
            Self::Approved => "tenants may bring storage that is approved",
            Self::Everybody => "approval is off, so every owner of a namespace can bring storage",
        }
    }
}

pub(super) fn examine(seen: &Observed, policies: &Policies) -> Vec<Finding> {
    let held = is_held_to_tenants(seen);
    let (which, less) = if held {
        ("of all tenants' namespaces (dedicated mode)", String::new())
    } else {
        (
            "of the whole cluster (shared mode)",
            format!("; in dedicated mode only those of tenants' namespaces could be read: {DEDICATED}"),
        )
    };
    let reads = format!("{VELERO_READS}, {which}");
    let base = Brings::from(policies.base().as_ref());
    let message = format!("{}: {reads}", base.words());
    let mut findings = Vec::from_iter(match base {
        Brings::Nobody => None,
        Brings::Approved => Some(AREA.warning(
            message,
            format!(
                "approve storage only for those who may read that, or set storageLocations.mode: platform{less}"
            ),
        )),
        Brings::Everybody => Some(AREA.problem(
            message,
            format!(
                "set storageLocations.requireApproval: true, and approve storage only for those who may read that; \
                 or set storageLocations.mode: platform{less}"
            ),
        )),
    });
    // What holds for some namespaces was said on purpose.
    let more = policies.overrides().map(Brings::from).enumerate().find(|(_, brings)| *brings > base);
    findings.extend(more.map(|(at, brings)| {
        AREA.note(format!("for the namespaces of overrides[{at}], {}: {reads}", brings.words()))
    }));
    findings
}
