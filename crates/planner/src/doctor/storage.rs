//! Where backups are kept: the default location, those of tenants, and whom Velero can be sent to.

use api::labels;
use api::velero::BackupStorageLocation;
use kube::ResourceExt as _;

use super::{Area, Finding, Observed, count, some};
use crate::ownership::{annotation, tenant_of};
use crate::policy::{NativeSnapshots, Policies, Reading, StorageMode};

const AREA: Area = Area::Storage;
const AVAILABLE: &str = "Available";

pub(super) fn examine(seen: &Observed, policies: Option<&Policies>) -> Vec<Finding> {
    let namespace = &seen.namespace;
    let may_not = format!("list backupstoragelocations in namespace {namespace}");
    if let Some(unseen) = AREA.unseen(&seen.locations, "storage locations", &may_not) {
        return vec![unseen];
    }
    let Reading::Found(locations) = &seen.locations else {
        return vec![AREA.problem(
            "the API server does not know BackupStorageLocations",
            "install Velero's CRDs (velero install --crds-only)",
        )];
    };
    let (tenants, own): (Vec<_>, Vec<_>) =
        locations.iter().partition(|location| tenant_of(location).is_some());
    let mode = policies.map(|policies| policies.base().storage_locations.mode).unwrap_or_default();
    let mut findings = default_location(namespace, &own, mode);
    findings.extend(of_tenants(&tenants));
    if mode != StorageMode::Platform {
        findings.extend(native_snapshots(seen, policies));
        findings.extend(egress(seen));
    }
    findings
}

fn default_location(namespace: &str, own: &[&BackupStorageLocation], mode: StorageMode) -> Vec<Finding> {
    let set = |name: &str| format!("velero backup-location set {name} --default -n {namespace}");
    let defaults: Vec<_> =
        own.iter().filter(|location| location.spec.default == Some(true)).copied().collect();
    match defaults.as_slice() {
        [] if mode == StorageMode::Own => {
            vec![AREA.ok("tenants bring their own storage, so no default location is needed")]
        }
        [] => {
            let candidate = own.first().map_or_else(|| "NAME".to_owned(), |location| location.name_any());
            vec![AREA.problem("there is no default location: backups that name none fail", set(&candidate))]
        }
        [one] => vec![state(one)],
        several => {
            let names: Vec<String> = several.iter().map(|location| location.name_any()).collect();
            vec![AREA.warning(
                format!("several locations say that they are the default: {}", some(&names)),
                set(&names[0]),
            )]
        }
    }
}

fn state(location: &BackupStorageLocation) -> Finding {
    let name = location.name_any();
    let said = location.status.as_ref().and_then(|status| status.message.as_deref()).unwrap_or_default();
    let look = format!(
        "kubectl describe backupstoragelocation {name} -n {}",
        location.namespace().unwrap_or_default()
    );
    match location.phase() {
        AVAILABLE if location.spec.access_mode.as_deref() == Some("ReadOnly") => AREA.problem(
            format!("the default location {name:?} is ReadOnly: every backup into it fails"),
            format!("set spec.accessMode of backupstoragelocation {name} to ReadWrite"),
        ),
        AVAILABLE => AREA.ok(format!("the default location {name:?} is Available")),
        "" => AREA.problem(format!("Velero has not looked at the default location {name:?} yet"), look),
        phase => AREA.problem(format!("the default location {name:?} is {phase}: {said}"), look),
    }
}

fn of_tenants(tenants: &[&BackupStorageLocation]) -> Vec<Finding> {
    let in_phase = |phase: &str| tenants.iter().filter(|location| location.phase() == phase).count();
    let (good, fresh) = (in_phase(AVAILABLE), in_phase(""));
    let bad: Vec<_> =
        tenants.iter().filter(|location| ![AVAILABLE, ""].contains(&location.phase())).collect();
    if tenants.is_empty() {
        return vec![AREA.ok("no tenant has brought storage")];
    }
    let mut findings = Vec::new();
    if bad.is_empty() || good + fresh > 0 {
        let fresh = if fresh > 0 { format!(", {fresh} not looked at yet") } else { String::new() };
        findings.push(AREA.ok(format!("{} of tenants Available{fresh}", count(good, "location"))));
    }
    if !bad.is_empty() {
        let of = |location: &&&BackupStorageLocation| {
            let at = |key: &str| annotation(&location.metadata, key).unwrap_or("?").to_owned();
            format!("{}/{}", at(labels::NABSL_NAMESPACE), at(labels::NABSL_NAME))
        };
        let names: Vec<String> = bad.iter().map(of).collect();
        findings.push(AREA.warning(
            format!(
                "Velero does not reach {} of tenants, mostly for the tenant's bucket or key: {}",
                count(bad.len(), "location"),
                some(&names)
            ),
            "kubectl nacre location describe NAME -n NAMESPACE",
        ));
    }
    findings
}

/// Velero deletes the native snapshots that a backup's files name, and tenants can write these in their own storage.
fn native_snapshots(seen: &Observed, policies: Option<&Policies>) -> Option<Finding> {
    let found = match &seen.snapshot_locations {
        Reading::Found(found) => found,
        Reading::Forbidden => {
            let may_not = format!("list volumesnapshotlocations in namespace {}", seen.namespace);
            return Some(AREA.not_checked("whether Velero deletes native snapshots", &may_not));
        }
        Reading::Absent | Reading::Unreadable(_) => return None,
    };
    if found.is_empty() {
        return Some(AREA.ok(
            "Velero has no VolumeSnapshotLocation, so no tenant's bucket has a say about native snapshots",
        ));
    }
    let accepted = policies.map(|policies| policies.base().storage_locations.native_snapshots);
    if accepted == Some(NativeSnapshots::Accept) {
        return None;
    }
    Some(AREA.problem(
        format!(
            "tenants cannot bring storage while Velero has VolumeSnapshotLocations, which CSI snapshots do not need: {}. Where \
             they are needed, accept the risk with storageLocations.nativeSnapshots: accept, or set storageLocations.mode: \
             platform",
            some(found)
        ),
        format!("kubectl delete volumesnapshotlocations {} -n {}", found.join(" "), seen.namespace),
    ))
}

/// A location's endpoint is checked as it is written; what its name resolves to when Velero calls it is not.
fn egress(seen: &Observed) -> Option<Finding> {
    let limits = match &seen.network_policies {
        Reading::Found(found) => found,
        Reading::Forbidden => {
            let may_not = format!("list networkpolicies in namespace {}", seen.namespace);
            return Some(AREA.not_checked("whom Velero can talk to", &may_not));
        }
        Reading::Absent | Reading::Unreadable(_) => return None,
    };
    let about_egress = limits.iter().find(|policy| {
        let types = policy.spec.as_ref().and_then(|spec| spec.policy_types.as_deref()).unwrap_or_default();
        types.iter().any(|one| one == "Egress")
    });
    Some(match about_egress {
        Some(policy) => AREA.ok(format!(
            "NetworkPolicy {} limits whom pods in {} can talk to",
            policy.name_any(),
            seen.namespace
        )),
        None => AREA.note(format!(
            "tenants may name endpoints, and what a name resolves to is not checked: a NetworkPolicy for egress in {} \
             would keep Velero from addresses inside the cluster; kubectl nacre install --egress -n {} applies one",
            seen.namespace, seen.namespace
        )),
    })
}
