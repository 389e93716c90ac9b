//! What a tenant may ask for. Each rule is a small function; the first refusal is reported to the user.

use api::velero::{BackupResourceHook, BackupSpec, ExecHook};
use api::{Duration, Phase};

use super::Observed;
use super::generate::{filled, scoped_filter};
use crate::policy::{Bounds, StorageMode};
use crate::refusal::{BACKUP, StartsWhen};
use crate::requester::{self, LeftOut, Verdict};
use crate::{Policy, Refusal, bounds, common, enforce, fence, filters, selectors};

const PATH: &str = "spec.backupSpec";

/// The rules that need only the request and the policy. Controller, webhook and CLI share them.
pub fn check_spec(spec: &BackupSpec, namespace: &str, policy: &Policy) -> Option<Refusal> {
    let effective = filled(spec, policy);
    included_namespaces(spec, namespace)
        .or_else(|| absent("excludedNamespaces", spec.excluded_namespaces.is_some()))
        .or_else(|| cluster_resources(spec))
        .or_else(|| absent("volumeSnapshotLocations", spec.volume_snapshot_locations.is_some()))
        .or_else(|| mixed_filters(spec, &effective))
        .or_else(|| resource_lists(spec))
        .or_else(|| mixed_selectors(spec, &effective))
        .or_else(|| selectors::check(PATH, spec.label_selector.as_ref(), spec.or_label_selectors.as_deref()))
        .or_else(|| durations(spec))
        .or_else(|| hooks(spec, namespace, policy))
        .or_else(|| beyond_bounds(spec, policy))
        .or_else(|| ordered_resources(spec, namespace))
        .or_else(|| enforce::conflict(&policy.backup.enforce, spec, PATH))
        .or_else(|| resource_lists(&effective).map(Refusal::together))
        .or_else(|| ttl_bounds(&effective, policy))
        .or_else(|| whose_storage(spec, policy))
}

/// All rules: the spec first, then the objects it refers to.
pub(super) fn refusal(seen: &Observed, policy: &Policy) -> Option<Refusal> {
    refused_for_good(seen, policy).or_else(|| refused_for_now(seen))
}

/// Refusals that only a change of the spec or of the policy can fix.
pub(super) fn refused_for_good(seen: &Observed, policy: &Policy) -> Option<Refusal> {
    if let Some(error) = &seen.unreadable {
        return Some(Refusal::new("spec", format!("cannot be read: {error}")));
    }
    let spec = &seen.spec().backup_spec;
    let namespace = seen.meta().namespace.as_deref().unwrap_or_default();
    closed_namespace(namespace, &seen.admin_namespace, policy).or_else(|| check_spec(spec, namespace, policy))
}

/// Refusals that a change of another object can fix.
pub(super) fn refused_for_now(seen: &Observed) -> Option<Refusal> {
    storage_location(seen)
        .or_else(|| resource_policy(seen))
        .or_else(|| name_taken(seen))
        .or_else(|| seen.velero_access.refusal(BACKUP))
}

/// What of it the requester is permitted.
pub(super) fn permitted(seen: &Observed, policy: &Policy) -> Verdict {
    if !seen.access.applies(&policy.requester) {
        return Verdict::all();
    }
    let asked = &seen.spec().backup_spec;
    let verdict = requester::of_backup(&seen.access, asked, &filled(asked, policy), policy);
    match verdict {
        Verdict::Permitted(left_out) if nothing_left(asked, &left_out, seen) => {
            Verdict::Refused(requester::refusal(&seen.access, &field("includedResources"), &left_out.denied))
        }
        verdict => verdict,
    }
}

/// Whether every resource that the request names would be left out.
fn nothing_left(asked: &BackupSpec, left_out: &LeftOut, seen: &Observed) -> bool {
    let served = seen.access.served.as_deref().unwrap_or_default();
    let lists = [&asked.included_resources, &asked.included_namespace_scoped_resources];
    let mut named = lists.into_iter().flatten().filter(|names| !names.is_empty());
    named.any(|names| filters::all_left_out(names, left_out.withheld(), served))
}

fn field(name: &str) -> String {
    format!("{PATH}.{name}")
}

/// Backups and schedules are refused in the administrators' namespace and in those that the policy leaves out.
pub(crate) fn closed_namespace(namespace: &str, admin_namespace: &str, policy: &Policy) -> Option<Refusal> {
    let why = policy.namespaces.why_closed(namespace, admin_namespace)?;
    Some(Refusal::new("metadata.namespace", format!("backups cannot be asked for in this namespace; {why}")))
}

fn included_namespaces(spec: &BackupSpec, namespace: &str) -> Option<Refusal> {
    let others = spec.included_namespaces.iter().flatten().any(|name| name != namespace);
    others.then(|| {
        let message = format!(
            "only {namespace:?}, the namespace of this object, can be backed up; leave the field out"
        );
        Refusal::new(field("includedNamespaces"), message)
    })
}

fn absent(name: &str, given: bool) -> Option<Refusal> {
    given.then(|| Refusal::new(field(name), "not available to namespace owners; leave the field out"))
}

fn cluster_resources(spec: &BackupSpec) -> Option<Refusal> {
    if spec.include_cluster_resources == Some(true) {
        let message = "cluster-scoped resources cannot be backed up; leave the field out or set it to false";
        return Some(Refusal::new(field("includeClusterResources"), message));
    }
    let some = spec.included_cluster_scoped_resources.as_ref().is_some_and(|names| !names.is_empty());
    some.then(|| {
        let message = "cluster-scoped resources cannot be backed up; leave the field out";
        Refusal::new(field("includedClusterScopedResources"), message)
    })
}

/// Velero has two families of filters that do not go together, and would refuse them only after they were queued.
fn mixed_filters(spec: &BackupSpec, effective: &BackupSpec) -> Option<Refusal> {
    let (older, newer) = (older_filter(effective)?, scoped_filter(effective)?);
    let (name, message) = match (older_filter(spec), scoped_filter(spec)) {
        (None, Some(given)) => {
            let instead = "use includedResources and excludedResources";
            (given, format!("cannot be used together with {older}, which the administrator sets; {instead}"))
        }
        (Some(given), None) => {
            let instead = "use the filters for namespace-scoped and cluster-scoped resources";
            (given, format!("cannot be used together with {newer}, which the administrator sets; {instead}"))
        }
        _ => {
            let message = "cannot be used together with the filters for namespace-scoped and cluster-scoped \
                           resources; use one or the other";
            (older, message.to_owned())
        }
    };
    Some(Refusal::new(field(name), message))
}

/// Velero would refuse these only after the backup was queued.
fn resource_lists(spec: &BackupSpec) -> Option<Refusal> {
    let (namespaced, cluster_scoped) =
        (fence::namespaced_out_of_backups(), fence::cluster_scoped_out_of_backups());
    let both: Vec<_> = namespaced.iter().chain(&cluster_scoped).cloned().collect();
    let families = [
        ("Resources", &spec.included_resources, &spec.excluded_resources, false, both),
        (
            "NamespaceScopedResources",
            &spec.included_namespace_scoped_resources,
            &spec.excluded_namespace_scoped_resources,
            true,
            namespaced,
        ),
        (
            "ClusterScopedResources",
            &spec.included_cluster_scoped_resources,
            &spec.excluded_cluster_scoped_resources,
            true,
            cluster_scoped,
        ),
    ];
    families.into_iter().find_map(|(family, included, excluded, lone_star, fence)| {
        let names = (field(&format!("included{family}")), field(&format!("excluded{family}")));
        let fenced = filters::fenced_off(names.0.clone(), included.as_deref(), &fence);
        filters::refusal(names, included.as_deref(), excluded.as_deref(), lone_star).or(fenced)
    })
}

fn older_filter(spec: &BackupSpec) -> Option<&'static str> {
    let given = |list: &Option<Vec<String>>| list.as_ref().is_some_and(|names| !names.is_empty());
    let filters = [
        ("includedResources", given(&spec.included_resources)),
        ("excludedResources", given(&spec.excluded_resources)),
        ("includeClusterResources", spec.include_cluster_resources.is_some()),
    ];
    filters.into_iter().find(|(_, given)| *given).map(|(name, _)| name)
}

fn mixed_selectors(spec: &BackupSpec, effective: &BackupSpec) -> Option<Refusal> {
    let several = |spec: &BackupSpec| spec.or_label_selectors.as_ref().is_some_and(|list| !list.is_empty());
    if effective.label_selector.is_none() || !several(effective) {
        return None;
    }
    let refuse = |name, message| Some(Refusal::new(field(name), message));
    match (spec.label_selector.is_some(), several(spec)) {
        (true, false) => refuse(
            "labelSelector",
            "cannot be used together with orLabelSelectors, which the administrator sets; leave the field out",
        ),
        (false, true) => refuse(
            "orLabelSelectors",
            "cannot be used together with labelSelector, which the administrator sets; leave the field out",
        ),
        _ => refuse("orLabelSelectors", "cannot be used together with labelSelector; use one or the other"),
    }
}

fn durations(spec: &BackupSpec) -> Option<Refusal> {
    let given = [
        ("ttl", &spec.ttl),
        ("csiSnapshotTimeout", &spec.csi_snapshot_timeout),
        ("itemOperationTimeout", &spec.item_operation_timeout),
    ];
    given.into_iter().find_map(|(name, value)| unreadable_duration(&field(name), value.as_ref()?))
}

fn unreadable_duration(path: &str, value: &Duration) -> Option<Refusal> {
    let fine = value.nanos().is_some_and(|nanos| nanos >= 0);
    (!fine).then(|| {
        Refusal::new(
            path,
            format!("{:?} is not a duration; write for example 72h or 1h30m", value.to_string()),
        )
    })
}

fn hooks(spec: &BackupSpec, namespace: &str, policy: &Policy) -> Option<Refusal> {
    let hooks = spec.hooks.as_ref()?.resources.as_deref().unwrap_or_default();
    if policy.backup.forbid_hooks && !hooks.is_empty() {
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
        let commands = hook.pre.iter().flatten().chain(hook.post.iter().flatten());
        commands.map(|command| &command.exec).find_map(|exec: &ExecHook| {
            unreadable_duration(&format!("{path}.timeout"), exec.timeout.as_ref()?)
        })
    })
}

/// No duration and no count is open: each has a bound, and data is moved by what the administrators chose.
fn beyond_bounds(spec: &BackupSpec, policy: &Policy) -> Option<Refusal> {
    let set = [&policy.backup.enforce, &policy.backup.defaults];
    let ttls = [set[0].ttl.as_ref(), set[1].ttl.as_ref(), policy.backup.ttl.max.as_ref()];
    let upload = |spec: &BackupSpec| spec.uploader_config.as_ref()?.parallel_files_upload;
    let within_the_policy = policy.backup.ttl.max.is_some();
    let resources = spec.hooks.as_ref().and_then(|hooks| hooks.resources.as_deref()).unwrap_or_default();
    let commands = |hook: &BackupResourceHook| {
        hook.pre.as_ref().map_or(0, Vec::len) + hook.post.as_ref().map_or(0, Vec::len)
    };
    let commands = resources.iter().map(commands).max().unwrap_or(0);
    bounds::duration(field("ttl"), spec.ttl.as_ref().filter(|_| !within_the_policy), bounds::TTL, &ttls)
        .or_else(|| {
            let set = set.map(|set| set.csi_snapshot_timeout.as_ref());
            let asked = spec.csi_snapshot_timeout.as_ref();
            bounds::duration(field("csiSnapshotTimeout"), asked, bounds::SNAPSHOT, &set)
        })
        .or_else(|| {
            let set = set.map(|set| set.item_operation_timeout.as_ref());
            let asked = spec.item_operation_timeout.as_ref();
            bounds::duration(field("itemOperationTimeout"), asked, bounds::ITEM_OPERATION, &set)
        })
        .or_else(|| {
            let path = field("uploaderConfig.parallelFilesUpload");
            bounds::number(path, upload(spec), bounds::PARALLEL_FILES, &set.map(upload))
        })
        .or_else(|| bounds::count(field("hooks.resources"), resources.len(), bounds::HOOKS))
        .or_else(|| bounds::count(field("hooks.resources"), commands, bounds::HOOKS))
        .or_else(|| foreign_datamover(spec, &set.map(|set| set.datamover.as_deref())))
}

/// Velero's own name for its mover.
const OWN_MOVER: [&str; 2] = ["", "velero"];

/// A mover that nobody installed leaves the backup waiting for it until it times out.
fn foreign_datamover(spec: &BackupSpec, set: &[Option<&str>]) -> Option<Refusal> {
    let asked = spec
        .datamover
        .as_deref()
        .filter(|asked| !OWN_MOVER.contains(asked) && !set.contains(&Some(*asked)))?;
    let message =
        format!("{asked:?} is not a data mover the administrators set in the policy; leave the field out");
    Some(Refusal::new(field("datamover"), message))
}

fn ordered_resources(spec: &BackupSpec, namespace: &str) -> Option<Refusal> {
    let entries = spec.ordered_resources.iter().flatten();
    let elsewhere = |names: &str| {
        names.split(',').filter_map(|name| name.trim().split_once('/')).any(|(space, _)| space != namespace)
    };
    let (kind, _) = entries.into_iter().find(|(_, names)| elsewhere(names))?;
    let message =
        format!("may only name objects of {namespace:?}, the namespace of this object, as {namespace}/name");
    Some(Refusal::new(field(&format!("orderedResources[{kind}]")), message))
}

/// How long Velero keeps a backup that does not say, unless its own administrator says otherwise.
const VELERO_KEEPS: &str = "720h";

/// The bounds hold for what will be in effect: defaults, enforcement and Velero's own choice included.
fn ttl_bounds(effective: &BackupSpec, policy: &Policy) -> Option<Refusal> {
    let Bounds { min, max } = &policy.backup.ttl;
    let asked = effective.ttl.clone().unwrap_or_else(|| VELERO_KEEPS.into()).nanos()?;
    let refuse = |message: String| Some(Refusal::new(field("ttl"), message));
    match (min, max) {
        (Some(min), _) if min.nanos().is_some_and(|least| asked < least) => refuse(format!(
            "the administrator requires backups to be kept at least {min}; ask for that or more"
        )),
        (_, Some(max)) if max.nanos().is_some_and(|most| asked > most) => {
            refuse(format!("the administrator allows backups to be kept at most {max}; ask for that or less"))
        }
        _ => None,
    }
}

/// The `ttl` for a backup that need not be kept: this one, or the bound that is nearest to it. None where the
/// administrators set it, since another one would be refused.
pub fn nearest_ttl(wanted: Duration, policy: &Policy) -> Option<Duration> {
    if policy.backup.enforce.ttl.is_some() {
        return None;
    }
    let asked = wanted.nanos()?;
    let Bounds { min, max } = &policy.backup.ttl;
    let least = min.as_ref().filter(|min| min.nanos().is_some_and(|least| asked < least));
    let most = max.as_ref().filter(|max| max.nanos().is_some_and(|most| asked > most));
    Some(least.or(most).cloned().unwrap_or(wanted))
}

fn whose_storage(spec: &BackupSpec, policy: &Policy) -> Option<Refusal> {
    let message = match (policy.storage_locations.mode, &spec.storage_location) {
        (StorageMode::Own, None) => {
            "the administrator requires backups to go to your own storage; name a NonAdminBackupStorageLocation of this namespace"
        }
        (StorageMode::Platform, Some(_)) => {
            "the administrator requires backups to go to the cluster's storage; leave the field out"
        }
        _ => return None,
    };
    Some(Refusal::new(field("storageLocation"), message))
}

/// The named location must be this namespace's, handed to Velero, and reachable; without one, the cluster's own must not
/// be known to be unreachable.
fn storage_location(seen: &Observed) -> Option<Refusal> {
    let wait = |message: String, when| Some(Refusal::until(field("storageLocation"), message, BACKUP, when));
    let Some(name) = seen.spec().backup_spec.storage_location.as_deref() else {
        // Velero would fail the backup for good. One without a phase is left to Velero: it may run without validation.
        let lost = seen.default_storage.as_deref().is_some_and(|storage| storage.phase() == "Unavailable");
        let message = || "Velero cannot reach the cluster's storage".to_owned();
        return lost.then(message).and_then(|message| wait(message, StartsWhen::Can));
    };
    let Some(location) = seen.location.as_deref() else {
        let message = format!(
            "there is no NonAdminBackupStorageLocation {name:?} in this namespace; create it or name another"
        );
        return wait(message, StartsWhen::IsReady);
    };
    if location.metadata.deletion_timestamp.is_some() {
        let message = format!("NonAdminBackupStorageLocation {name:?} is being deleted; name another");
        return wait(message, StartsWhen::IsReady);
    }
    let phase = location.status.as_ref().and_then(|status| status.phase);
    if phase != Some(Phase::Created) {
        let message = format!("NonAdminBackupStorageLocation {name:?} is not ready; its conditions say why");
        return wait(message, StartsWhen::Is);
    }
    let storage = seen.storage.as_deref();
    let own = storage.filter(|one| crate::ownership::tenant_of(one) == seen.meta().namespace.as_deref());
    let Some(storage) = own else {
        let message = format!(
            "Velero does not have NonAdminBackupStorageLocation {name:?} yet; its conditions may say why"
        );
        return wait(message, StartsWhen::Has);
    };
    match storage.phase() {
        "Available" => None,
        // It was handed over a moment ago, for example because it has just been approved.
        "" => wait(
            format!("Velero has not reported yet that NonAdminBackupStorageLocation {name:?} is available"),
            StartsWhen::Has,
        ),
        _ => wait(
            format!("Velero cannot reach NonAdminBackupStorageLocation {name:?}; its status says why"),
            StartsWhen::Can,
        ),
    }
}

fn resource_policy(seen: &Observed) -> Option<Refusal> {
    let named = seen.spec().backup_spec.resource_policy.as_ref();
    common::config_map_not_for_tenants(field("resourcePolicy"), named, seen.resource_policy.as_deref())
}

fn name_taken(seen: &Observed) -> Option<Refusal> {
    seen.name_taken.then(|| {
        let message = "Velero already has an object under the name this backup would get; create the backup under another name";
        Refusal::new("metadata.name", message)
    })
}
