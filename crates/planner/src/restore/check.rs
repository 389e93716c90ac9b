//! What a tenant may restore, and from what.

use api::velero::{BackupStorageLocation, RestoreSpec};
use api::{NonAdminBackup, Phase, condition};

use super::generate::{self, effective, moved_its_data};
use super::{CheckResult, Observed, from_tenants};
use crate::ownership::{Storage, storage};
use crate::queue::{Queued, Stage};
use crate::refusal::{RESTORE, StartsWhen};
use crate::requester::{self, LeftOut, Verdict};
use crate::{
    HealedBy, Policy, Refusal, bounds, common, enforce, fence, filters, healed_by, selectors, volumes,
};

const PATH: &str = "spec.restoreSpec";

/// The rules that need only the request and the policy. Controller, webhook and CLI share them.
pub fn check_spec(spec: &RestoreSpec, namespace: &str, policy: &Policy) -> Option<Refusal> {
    rules(spec, namespace, policy)
        .or_else(|| enforce::conflict(&policy.restore.enforce, spec, PATH))
        .or_else(|| rules(&effective(spec, policy), namespace, policy).map(Refusal::together))
}

/// What holds for a spec, whoever said what in it.
fn rules(spec: &RestoreSpec, namespace: &str, policy: &Policy) -> CheckResult {
    absent("scheduleName", spec.schedule_name.is_some())
        .or_else(|| backup_name(spec))
        .or_else(|| absent("includedNamespaces", spec.included_namespaces.is_some()))
        .or_else(|| absent("excludedNamespaces", spec.excluded_namespaces.is_some()))
        .or_else(|| absent("namespaceMapping", spec.namespace_mapping.is_some()))
        .or_else(|| cluster_resources(spec))
        .or_else(|| absent("restoreStatus", spec.restore_status.is_some()))
        .or_else(|| resource_lists(spec))
        .or_else(|| mixed_selectors(spec))
        .or_else(|| selectors::check(PATH, spec.label_selector.as_ref(), spec.or_label_selectors.as_deref()))
        .or_else(|| existing_resources(spec))
        .or_else(|| item_operation_timeout(spec))
        .or_else(|| hooks(spec, namespace, policy))
        .or_else(|| beyond_bounds(spec, policy))
}

/// All rules: the spec first, then the objects it refers to.
pub(super) fn refusal(seen: &Observed, policy: &Policy) -> CheckResult {
    refused_for_good(seen, policy).or_else(|| refused_for_now(seen, policy))
}

/// Refusals that only a change of the spec or of the policy can fix.
pub(super) fn refused_for_good(seen: &Observed, policy: &Policy) -> CheckResult {
    if let Some(error) = &seen.unreadable {
        return Some(Refusal::new("spec", format!("cannot be read: {error}")));
    }
    let spec = &seen.restore.spec.restore_spec;
    let namespace = seen.meta().namespace.as_deref().unwrap_or_default();
    namespace_allowed(seen, policy, namespace).or_else(|| check_spec(spec, namespace, policy))
}

/// Refusals that a change of another object can fix.
pub(super) fn refused_for_now(seen: &Observed, policy: &Policy) -> CheckResult {
    let spec = &seen.restore.spec.restore_spec;
    namespace_is_deleting(seen)
        .or_else(|| source(seen))
        .or_else(|| provenance(seen, policy))
        .or_else(|| {
            common::config_map_not_for_tenants(
                field("resourceModifier"),
                spec.resource_modifier.as_ref(),
                seen.config_maps[0].as_deref(),
            )
        })
        .or_else(|| {
            common::config_map_not_for_tenants(
                field("resourcePolicy"),
                spec.resource_policy.as_ref(),
                seen.config_maps[1].as_deref(),
            )
        })
        .or_else(|| name_taken(seen))
        .or_else(|| seen.velero_access.refusal(RESTORE))
}

/// What of it the requester is permitted.
pub(super) fn permitted(seen: &Observed, policy: &Policy) -> Verdict {
    if !seen.access.applies(&policy.requester) {
        return Verdict::all();
    }
    let asked = &seen.restore.spec.restore_spec;
    let wanted = generate::spec(seen, policy, &[]);
    match requester::of_restore(&seen.access, asked, &wanted, policy, seen.trusted()) {
        Verdict::Permitted(left_out) if nothing_left(seen, policy, &left_out) => {
            Verdict::Refused(requester::refusal(&seen.access, &field("includedResources"), &left_out.denied))
        }
        verdict => verdict,
    }
}

/// Whether nothing that the request names, or that may come back at all, is left.
fn nothing_left(seen: &Observed, policy: &Policy, left_out: &LeftOut) -> bool {
    let mut wanted = generate::spec(seen, policy, &[]).included_resources.unwrap_or_default();
    wanted.retain(|name| name != volumes::PERSISTENT_VOLUMES);
    let served = seen.access.served.as_deref().unwrap_or_default();
    !wanted.is_empty() && filters::all_left_out(&wanted, left_out.withheld(), served)
}

/// What depends on whose bytes the backup is made of.
fn provenance(seen: &Observed, policy: &Policy) -> CheckResult {
    let spec = effective(&seen.restore.spec.restore_spec, policy);
    if seen.trusted() {
        let guard_rails = &policy.restore.excluded_from_platform_storage;
        let included = spec.included_resources.as_deref();
        return filters::fenced_off(field("includedResources"), included, guard_rails);
    }
    let policy = &policy.restore.from_tenant_storage;
    too_many_items(seen, policy.max_items)
        .or_else(|| from_tenants::resources(&spec, policy).err())
        .or_else(|| own_modifier(&spec))
        .or_else(|| snapshots(seen))
        .or_else(|| volumes_in_pods(seen, policy.pods_come_back()))
}

/// Velero reads a whole backup before it restores anything of it.
fn too_many_items(seen: &Observed, most: u32) -> CheckResult {
    let progress = seen.source.as_deref()?.status.as_ref()?.progress.as_ref()?;
    let items = progress.total_items.max(progress.items_backed_up)?;
    (most > 0 && items > i64::from(most)).then(|| {
        let message = format!(
            "the backup has {items} objects, and from your own storage backups with up to {most} are restored; make backups \
             of fewer objects, or ask the administrators to raise restore.fromTenantStorage.maxItems"
        );
        Refusal::new(field("backupName"), message)
    })
}

/// A tarball can name anybody's snapshot, so none is followed; what was moved into the storage location is there.
fn snapshots(seen: &Observed) -> CheckResult {
    let asked = seen.restore.spec.restore_spec.restore_pvs == Some(true);
    let moved = seen.source.as_deref().is_some_and(moved_its_data);
    (asked && !moved).then(|| {
        let message = "volumes come back from your own storage only if the backup was made with snapshotMoveData: true; \
                       leave the field out to get empty volumes";
        Refusal::new(field("restorePVs"), message)
    })
}

/// Two modifiers cannot be had, and nacre's own must be there.
fn own_modifier(spec: &RestoreSpec) -> CheckResult {
    spec.resource_modifier.is_some().then(|| {
        let message = "is not available for what comes back from your own storage; leave the field out, \
                       or ask the administrators if it is they who require it";
        Refusal::new(field("resourceModifier"), message)
    })
}

/// Without its pod Velero brings back no volume that it saved from inside the pod, and says that all is well.
fn volumes_in_pods(seen: &Observed, pods: bool) -> CheckResult {
    let saved = seen.source_volumes.total;
    let wanted = seen.restore.spec.restore_spec.restore_pvs != Some(false);
    (saved > 0 && !pods && wanted).then(|| {
        let message = format!(
            "the backup has {saved} volumes that were saved from inside pods, and pods do not come back from your own \
             storage, so their data would be missing; the administrators can allow it, or leave the data out with \
             restorePVs: false"
        );
        Refusal::new(field("backupName"), message)
    })
}

pub(super) fn field(name: &str) -> String {
    format!("{PATH}.{name}")
}

fn absent(name: &str, given: bool) -> CheckResult {
    given.then(|| Refusal::new(field(name), "not available to namespace owners; leave the field out"))
}

fn namespace_is_deleting(seen: &Observed) -> CheckResult {
    let is_deleting =
        seen.namespace.as_deref().is_some_and(|space| space.metadata.deletion_timestamp.is_some());
    let message = "the namespace is being deleted; nothing is restored into it";
    is_deleting.then(|| Refusal::new("metadata.namespace", message))
}

fn namespace_allowed(seen: &Observed, policy: &Policy, namespace: &str) -> CheckResult {
    let why = policy.namespaces.why_closed(namespace, &seen.admin_namespace)?;
    Some(Refusal::new("metadata.namespace", format!("restores cannot be asked for in this namespace; {why}")))
}

fn backup_name(spec: &RestoreSpec) -> CheckResult {
    spec.backup_name
        .is_none()
        .then(|| Refusal::new(field("backupName"), "is missing; name a NonAdminBackup of this namespace"))
}

fn cluster_resources(spec: &RestoreSpec) -> CheckResult {
    (spec.include_cluster_resources == Some(true)).then(|| {
        let message = "cluster-scoped resources cannot be restored; leave the field out or set it to false";
        Refusal::new(field("includeClusterResources"), message)
    })
}

/// Velero would refuse these only after the restore was queued.
fn resource_lists(spec: &RestoreSpec) -> CheckResult {
    let (included, excluded) = (spec.included_resources.as_deref(), spec.excluded_resources.as_deref());
    let fields = (field("includedResources"), field("excludedResources"));
    filters::refusal(fields, included, excluded, false)
        .or_else(|| filters::fenced_off(field("includedResources"), included, &fence::out_of_restores()))
}

fn existing_resources(spec: &RestoreSpec) -> CheckResult {
    let asked = spec.existing_resource_policy.as_deref()?;
    (!matches!(asked, "none" | "update")).then(|| {
        Refusal::new(field("existingResourcePolicy"), format!("{asked:?} is not known; write none or update"))
    })
}

fn mixed_selectors(spec: &RestoreSpec) -> CheckResult {
    let both = spec.label_selector.is_some()
        && spec.or_label_selectors.as_ref().is_some_and(|list| !list.is_empty());
    both.then(|| {
        Refusal::new(
            field("orLabelSelectors"),
            "cannot be used together with labelSelector; use one or the other",
        )
    })
}

fn item_operation_timeout(spec: &RestoreSpec) -> CheckResult {
    let value = spec.item_operation_timeout.as_ref()?;
    let fine = value.nanos().is_some_and(|nanos| nanos >= 0);
    (!fine).then(|| {
        let message = format!("{:?} is not a duration; write for example 4h or 1h30m", value.to_string());
        Refusal::new(field("itemOperationTimeout"), message)
    })
}

fn hooks(spec: &RestoreSpec, namespace: &str, policy: &Policy) -> CheckResult {
    let hooks = spec.hooks.as_ref()?.resources.as_deref().unwrap_or_default();
    if policy.restore.forbid_hooks && !hooks.is_empty() {
        return Some(Refusal::new(
            field("hooks"),
            "the administrator does not allow hooks; leave the field out",
        ));
    }
    hooks.iter().enumerate().find_map(|(at, hook)| {
        let path = field(&format!("hooks.resources[{at}]"));
        let (included, excluded) = (hook.included_namespaces.as_deref(), hook.excluded_namespaces.as_deref());
        if let Some(refusal) = common::hook_elsewhere(&path, included, excluded, namespace) {
            return Some(refusal);
        }
        let init = hook.post_hooks.iter().flatten().any(|hook| hook.init.is_some());
        init.then(|| {
            let message = "init containers cannot be added by a restore; use an exec hook instead";
            Refusal::new(format!("{path}.postHooks.init"), message)
        })
    })
}

/// No duration and no count is open.
fn beyond_bounds(spec: &RestoreSpec, policy: &Policy) -> CheckResult {
    let set = &policy.restore.enforce;
    let download = |spec: &RestoreSpec| spec.uploader_config.as_ref()?.parallel_files_download;
    let resources = spec.hooks.as_ref().and_then(|hooks| hooks.resources.as_deref()).unwrap_or_default();
    let commands = resources.iter().map(|hook| hook.post_hooks.as_ref().map_or(0, Vec::len)).max();
    let asked = spec.item_operation_timeout.as_ref();
    let set_timeout = [set.item_operation_timeout.as_ref()];
    bounds::duration(field("itemOperationTimeout"), asked, bounds::ITEM_OPERATION, &set_timeout)
        .or_else(|| {
            let path = field("uploaderConfig.parallelFilesDownload");
            bounds::number(path, download(spec), bounds::PARALLEL_FILES, &[download(set)])
        })
        .or_else(|| bounds::count(field("hooks.resources"), resources.len(), bounds::HOOKS))
        .or_else(|| bounds::count(field("hooks.resources"), commands.unwrap_or(0), bounds::HOOKS))
}

/// The named backup must be this namespace's, and Velero must be done with it.
fn source(seen: &Observed) -> CheckResult {
    let name = seen.restore.spec.restore_spec.backup_name.as_deref().unwrap_or_default();
    let refuse = |message: String| Some(Refusal::new(field("backupName"), message));
    let Some(backup) = seen.backup.as_deref() else {
        return refuse(format!(
            "there is no NonAdminBackup {name:?} in this namespace; name one that exists"
        ));
    };
    if backup.metadata.deletion_timestamp.is_some() || backup.spec.delete_backup == Some(true) {
        return refuse(format!("NonAdminBackup {name:?} is being deleted; name another"));
    }
    let wait = |message: String, when| Some(Refusal::until(field("backupName"), message, RESTORE, when));
    let not_yet = || wait(format!("NonAdminBackup {name:?} is not finished"), StartsWhen::Is);
    let Some(source) = seen.source.as_deref() else {
        if may_still_start(backup) {
            return not_yet();
        }
        return refuse(format!("Velero has no backup for NonAdminBackup {name:?}; its conditions say why"));
    };
    let kept_in = storage(source, seen.velero_location.as_deref());
    if kept_in == Storage::Unknown {
        let message = format!("the storage location of NonAdminBackup {name:?} is not there");
        return wait(message, StartsWhen::Is);
    }
    match (seen.velero_location.as_deref().map_or("", BackupStorageLocation::phase), kept_in) {
        ("Unavailable", _) => {
            let message = format!("Velero cannot reach the storage of NonAdminBackup {name:?}");
            return wait(message, StartsWhen::Can);
        }
        // Velero fails a restore for good while it has not validated the location, for example right after approval.
        // A location of the administrators' without a phase is left to Velero: it may run without validation.
        ("Available", _) | (_, Storage::Platform | Storage::Unknown) => {}
        (_, Storage::Tenant(_)) => {
            let message = format!(
                "Velero has not reported yet that the storage of NonAdminBackup {name:?} is available"
            );
            return wait(message, StartsWhen::Has);
        }
    }
    match (source.phase(), source.stage()) {
        ("Completed" | "PartiallyFailed", _) => None,
        (phase, Stage::Finished) => {
            refuse(format!("NonAdminBackup {name:?} ended as {phase} and cannot be restored; name another"))
        }
        _ => not_yet(),
    }
}

/// Whether a backup that Velero does not have is undecided, or waits itself.
fn may_still_start(backup: &NonAdminBackup) -> bool {
    let Some(status) = &backup.status else { return true };
    let accepted = condition::get(&status.conditions, condition::ACCEPTED);
    matches!(status.phase, None | Some(Phase::New))
        || accepted.and_then(healed_by).is_some_and(HealedBy::is_waiting)
}

fn name_taken(seen: &Observed) -> CheckResult {
    seen.name_taken.then(|| {
        let message = "Velero already has an object under the name this restore would get; create it under another name";
        Refusal::new("metadata.name", message)
    })
}
