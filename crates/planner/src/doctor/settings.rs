//! The policy: where it comes from, what is wrong with it, and what in it is risky.

use kube::ResourceExt as _;

use super::fence::{self, Fence};
use super::{Area, Finding, Observed, oadp, recorder, tenants_storage};
use crate::install::VELERO_VIEW;
use crate::policy::{
    Adoption, CONFIG_MAP, KEY, Loaded, NativeSnapshots, Policies, Policy, Problem, Reading, RequesterMode,
    Source, TenantPods, Vanished, VeleroView, WHEN_VANISHED, counts,
};

const AREA: Area = Area::Policy;

pub(super) fn examine(seen: &Observed, loaded: &Loaded, vanished: &[Vanished]) -> Vec<Finding> {
    let mut findings = sources(seen, vanished);
    findings.extend(vanished.iter().map(|vanished| AREA.problem(vanished.to_string(), WHEN_VANISHED)));
    findings.extend(loaded.problems.iter().map(|problem| wrong(seen, problem)));
    let unread = matches!(seen.policy.config_map, Reading::Forbidden)
        || matches!(seen.policy.applications, Reading::Forbidden);
    match &loaded.policies {
        // Of what cannot be read nobody can say that it is risky.
        Some(_) if unread => {}
        Some(policies) => findings.extend(risks(seen, policies)),
        None => findings.push(AREA.problem(
            "there is no valid policy: if nacre restarts, new requests wait",
            "fix what is listed above; kubectl nacre policy check -f FILE checks it beforehand",
        )),
    }
    findings
}

fn sources(seen: &Observed, vanished: &[Vanished]) -> Vec<Finding> {
    let namespace = &seen.namespace;
    let (map, applications) = (&seen.policy.config_map, &seen.policy.applications);
    let mut findings = Vec::new();
    let mut named = Vec::new();
    match map {
        Reading::Found(_) => named.push(format!("ConfigMap {CONFIG_MAP}")),
        Reading::Forbidden => {
            findings.push(AREA.not_checked(
                &format!("ConfigMap {CONFIG_MAP}"),
                &format!("get configmaps in namespace {namespace}"),
            ));
        }
        Reading::Absent | Reading::Unreadable(_) => {}
    }
    match applications {
        Reading::Found(found) => {
            let all: Vec<_> = found.iter().map(AsRef::as_ref).collect();
            named.extend(counts(&all).map(|one| format!("DataProtectionApplication {}", one.name_any())));
        }
        Reading::Forbidden => findings.push(AREA.not_checked(
            "DataProtectionApplications",
            &format!("list dataprotectionapplications in namespace {namespace}"),
        )),
        Reading::Absent | Reading::Unreadable(_) => {}
    }
    if findings.is_empty() && named.is_empty() && vanished.is_empty() {
        named.push(format!(
            "nobody: there is no ConfigMap {CONFIG_MAP} in {namespace}, so nothing is limited"
        ));
    }
    if !named.is_empty() {
        findings.push(AREA.ok(format!("set by {}", named.join(" and "))));
    }
    findings
}

/// In the words of the controller's log and of `/readyz`.
fn wrong(seen: &Observed, problem: &Problem) -> Finding {
    let namespace = &seen.namespace;
    let fix = match problem.source {
        Source::ConfigMap => {
            format!("correct the key {KEY}: kubectl edit configmap {CONFIG_MAP} -n {namespace}")
        }
        Source::DataProtectionApplication => format!("kubectl edit dataprotectionapplication -n {namespace}"),
    };
    let message = format!("{}: {problem}", problem.source);
    if problem.is_error() { AREA.problem(message, fix) } else { AREA.warning(message, fix) }
}

/// What an administrator can switch on or leave off, and should know about.
struct Risk {
    found: fn(&Policy) -> bool,
    message: &'static str,
    fix: &'static str,
}

const RISKS: [Risk; 6] = [
    Risk {
        found: |policy| policy.storage_locations.allow_insecure_skip_tls_verify,
        message: "locations of tenants may do without checking certificates",
        fix: "remove storageLocations.allowInsecureSkipTLSVerify; tenants can give the authority as caCert",
    },
    Risk {
        found: |policy| policy.sync.adoption == Adoption::Name,
        message: "backups of a deleted namespace go to whoever makes one of its name",
        fix: "set sync.adoption: approval once you have recovered",
    },
    Risk {
        found: |policy| policy.requester.mode != RequesterMode::Enforce,
        message: "permissions of whoever asks are not enforced: a backup, restore or download can hold what they may not have",
        fix: "set requester.mode: enforce",
    },
    Risk {
        found: |policy| policy.storage_locations.native_snapshots == NativeSnapshots::Accept,
        message: "tenants may bring storage although Velero deletes native snapshots that are named there: whoever owns a \
                  bucket can have any snapshot deleted that Velero can delete",
        fix: "remove storageLocations.nativeSnapshots, and Velero's VolumeSnapshotLocations; CSI snapshots need none",
    },
    Risk {
        found: |policy| policy.views.velero == VeleroView::All,
        message: "Velero's objects are copied into every namespace that may ask for backups",
        fix: "set views.velero: labelled, and label the namespaces that want it with nacre.dev/velero-view=true",
    },
    Risk {
        found: |policy| policy.backup.forbid_hooks || policy.restore.forbid_hooks,
        message: "hooks are forbidden in requests, but Velero also runs those in annotations of pods, which nacre does not see",
        fix: "keep pods from carrying pre.hook.backup.velero.io/* and post.hook.*.velero.io/* by an admission policy of yours",
    },
];

fn risks(seen: &Observed, policies: &Policies) -> Vec<Finding> {
    let base = policies.base();
    let mut findings: Vec<Finding> = RISKS
        .iter()
        .filter_map(|risk| {
            if (risk.found)(base) {
                return Some(AREA.warning(risk.message, risk.fix));
            }
            // What holds for some namespaces was said on purpose.
            let at = policies.overrides().position(|policy| (risk.found)(policy))?;
            Some(AREA.note(format!("for the namespaces of overrides[{at}], {}", risk.message)))
        })
        .collect();
    findings.extend(tenants_storage::examine(seen, policies));
    findings.extend(view_without_rights(seen, base));
    findings.extend(pods_without_fence(seen, base));
    findings.extend(recorder::unrecorded(seen, base));
    if findings.iter().all(|finding| finding.fix.is_none()) {
        findings.push(AREA.ok("nothing risky is switched on for everybody"));
    }
    findings
}

/// Copies for everybody, and nobody may make them.
fn view_without_rights(seen: &Observed, base: &Policy) -> Option<Finding> {
    let Reading::Found(rbac) = &seen.rbac else { return None };
    let granted = rbac.cluster_roles.iter().any(|role| role.name_any() == VELERO_VIEW);
    (base.views.velero == VeleroView::All && !granted).then(|| {
        AREA.problem(
            "views.velero is all, but the permissions for it are not installed: nothing is copied. Without them, remove \
             views.velero from the policy",
            if seen.by_oadp() {
                oadp::velero_view(seen)
            } else {
                format!("kubectl nacre install --velero-view -n {}", seen.namespace)
            },
        )
    })
}

/// Pods from tenants' storage, and no admission policies that hold them to Pod Security level baseline.
fn pods_without_fence(seen: &Observed, base: &Policy) -> Option<Finding> {
    let missing = fence::state(seen) == Fence::Open;
    let install = seen.installer();
    match base.restore.from_tenant_storage.pods {
        TenantPods::Baseline if missing => Some(AREA.problem(
            "restore.fromTenantStorage.pods is baseline, but the admission policies that hold pods to it are not installed",
            install,
        )),
        TenantPods::Auto if missing => Some(AREA.warning(
            "volumes that tenants save file by file in their own storage cannot be restored: the admission policies \
             around restores are not installed, so pods do not come back",
            install,
        )),
        _ => None,
    }
}
