//! Rules for policies, whatever their source.

use api::Duration;
use api::velero::{BackupSpec, RestoreSpec};

use super::problem::Severity::{self, Error, Warning};
use super::storage::{KNOWN_PROVIDERS, StoragePolicy};
use super::{
    BackupPolicy, Bounds, Policy, RestorePolicy, TenantPods, queue, requester, resources, schedules,
};
use crate::enforce::Fields;
use crate::{Refusal, backup, restore};

/// A problem, and its field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) severity: Severity,
    pub(super) path: String,
    pub(super) message: String,
}

pub(super) fn finding(severity: Severity, path: impl Into<String>, message: impl Into<String>) -> Finding {
    Finding { severity, path: path.into(), message: message.into() }
}

/// All problems of a policy.
pub(super) fn check(policy: &Policy) -> Vec<Finding> {
    let mut found = of_backups(&policy.backup);
    found.extend(of_restores(&policy.restore));
    found.extend(of_storage(&policy.storage_locations));
    found.extend(of_periods(policy));
    found.extend(of_namespaces(policy));
    found.extend(schedules::problems(policy));
    found.extend(queue::problems(policy));
    found.extend(requester::problems(policy));
    found
}

fn of_backups(policy: &BackupPolicy) -> Vec<Finding> {
    let BackupPolicy { defaults, enforce, ttl, forbid_hooks, .. } = policy;
    let mut found = enforced_backup("backup.enforce", enforce, *forbid_hooks);
    found.extend(enforced_backup("backup.defaults", defaults, *forbid_hooks));
    let Bounds { min, max } = ttl;
    for (path, bound) in [("backup.ttl.min", min), ("backup.ttl.max", max)] {
        found.extend(bound.as_ref().and_then(|bound| duration(path, bound)));
    }
    if let (Some(least), Some(most)) =
        (min.as_ref().and_then(Duration::nanos), max.as_ref().and_then(Duration::nanos))
        && least > most
    {
        found.push(finding(
            Error,
            "backup.ttl.min",
            "is longer than backup.ttl.max: no backup could satisfy both",
        ));
    }
    found.extend(policy.max_work_per_day.as_ref().and_then(|most| duration("backup.maxWorkPerDay", most)));
    if let Some(most) = policy.max_bytes_per_namespace.as_ref().filter(|most| most.bytes().is_none()) {
        let message = format!("{:?} is not a size; write for example 500Gi or 2Ti", most.to_string());
        found.push(finding(Error, "backup.maxBytesPerNamespace", message));
    }
    let mut outside = |severity, path: &str, ttl: Option<&Duration>, so: &str| {
        let Some(asked) = ttl.and_then(Duration::nanos) else {
            return;
        };
        if let Some(min) = min.as_ref().filter(|min| min.nanos().is_some_and(|least| asked < least)) {
            found.push(finding(
                severity,
                path,
                format!("is shorter than backup.ttl.min, which is {min}: {so}"),
            ));
        }
        if let Some(max) = max.as_ref().filter(|max| max.nanos().is_some_and(|most| asked > most)) {
            found.push(finding(
                severity,
                path,
                format!("is longer than backup.ttl.max, which is {max}: {so}"),
            ));
        }
    };
    outside(Error, "backup.enforce.ttl", enforce.ttl.as_ref(), "no backup could satisfy both");
    let refused = "backups that ask for no ttl are refused";
    outside(Warning, "backup.defaults.ttl", defaults.ttl.as_ref().filter(|_| enforce.ttl.is_none()), refused);
    if let Some((field, wanted)) = enforce.conflict(defaults) {
        let message = format!("is never used, since backup.enforce requires {wanted}");
        found.push(finding(Warning, format!("backup.defaults.{field}"), message));
    }
    found
}

/// What cannot be required of, or filled into, every backup.
pub(super) fn enforced_backup(at: &str, spec: &BackupSpec, forbid_hooks: bool) -> Vec<Finding> {
    let forbidden = [
        ("storageLocation", spec.storage_location.is_some()),
        ("volumeSnapshotLocations", spec.volume_snapshot_locations.is_some()),
        ("includedNamespaces", spec.included_namespaces.is_some()),
        ("excludedNamespaces", spec.excluded_namespaces.is_some()),
        ("includeClusterResources", spec.include_cluster_resources == Some(true)),
        (
            "includedClusterScopedResources",
            spec.included_cluster_scoped_resources.as_ref().is_some_and(|names| !names.is_empty()),
        ),
    ];
    let found = out_of_reach(at, &forbidden);
    if !found.is_empty() {
        return found;
    }
    let mut policy = Policy::default();
    policy.backup.forbid_hooks = forbid_hooks;
    // What the administrators set may be beyond the bounds of what tenants may ask for.
    policy.backup.defaults = spec.clone();
    as_if_asked(at, backup::check_spec(spec, "", &policy))
}

/// What cannot be required of, or filled into, every restore.
pub(super) fn enforced_restore(at: &str, spec: &RestoreSpec, forbid_hooks: bool) -> Vec<Finding> {
    let forbidden = [
        ("scheduleName", spec.schedule_name.is_some()),
        ("includedNamespaces", spec.included_namespaces.is_some()),
        ("excludedNamespaces", spec.excluded_namespaces.is_some()),
        ("namespaceMapping", spec.namespace_mapping.is_some()),
    ];
    let found = out_of_reach(at, &forbidden);
    if !found.is_empty() {
        return found;
    }
    let mut policy = Policy::default();
    policy.restore.forbid_hooks = forbid_hooks;
    policy.restore.enforce = spec.clone();
    let mut spec = spec.clone();
    // Which backup is for each restore to say.
    spec.backup_name.get_or_insert_with(|| "any".to_owned());
    as_if_asked(at, restore::check_spec(&spec, "", &policy))
}

fn out_of_reach(at: &str, fields: &[(&str, bool)]) -> Vec<Finding> {
    let set = fields.iter().filter(|(_, set)| *set);
    set.map(|(name, _)| {
        let message = "cannot be set for all tenants; leave it out";
        finding(Error, format!("{at}.{name}"), message)
    })
    .collect()
}

/// What a tenant would be refused for cannot be required of tenants.
fn as_if_asked(at: &str, refusal: Option<Refusal>) -> Vec<Finding> {
    let found = refusal.map(|Refusal { field, message, .. }| {
        let below = field.splitn(3, '.').nth(2).unwrap_or_default();
        let names_a_namespace = below.ends_with("Namespaces") || below.starts_with("orderedResources");
        let message = if names_a_namespace {
            "holds for every namespace and cannot name one; leave it out".to_owned()
        } else {
            message
        };
        finding(Error, format!("{at}.{below}"), message)
    });
    found.into_iter().collect()
}

fn of_restores(policy: &RestorePolicy) -> Vec<Finding> {
    let mut found = enforced_restore("restore.enforce", &policy.enforce, policy.forbid_hooks);
    for (at, name) in policy.from_tenant_storage.allowed_resources.iter().enumerate() {
        let path = format!("restore.fromTenantStorage.allowedResources[{at}]");
        match resources::never_from_tenants(name) {
            Some(why) => found.push(finding(Error, path, format!("{name:?}: {why}"))),
            None => found
                .extend(resources::odd(name).map(|how| finding(Warning, path, format!("{name:?}: {how}")))),
        }
    }
    if policy.from_tenant_storage.pods == TenantPods::None {
        let message = "volumes that tenants save file by file in their own storage cannot be restored";
        found.push(finding(Warning, "restore.fromTenantStorage.pods", message));
    }
    for (at, name) in policy.excluded_from_platform_storage.iter().enumerate() {
        let path = format!("restore.fromPlatformStorage.excludedResources[{at}]");
        if name == "*" {
            found.push(finding(Warning, path, "nothing can be restored from the cluster's own storage"));
        } else {
            found.extend(resources::odd(name).map(|how| finding(Warning, path, format!("{name:?}: {how}"))));
        }
    }
    found
}

fn of_storage(policy: &StoragePolicy) -> Vec<Finding> {
    let mut found = enforced_location("storageLocations.enforce", &policy.enforce);
    let known = |name: &str| KNOWN_PROVIDERS.contains(&short(name));
    for (at, name) in policy.providers.iter().enumerate().filter(|(_, name)| !known(name)) {
        let message = format!(
            "nobody can use {name:?}: credentials can be checked for {} only",
            KNOWN_PROVIDERS.join(", ")
        );
        found.push(finding(Warning, format!("storageLocations.providers[{at}]"), message));
    }
    if policy.providers.is_empty() {
        let message = "nobody can bring storage; storageLocations.mode: platform says so more plainly";
        found.push(finding(Warning, "storageLocations.providers", message));
    }
    let provider = policy.enforce.provider.as_ref();
    if let Some(provider) = provider.filter(|name| {
        !policy.providers.is_empty() && !policy.providers.iter().any(|other| short(other) == short(name))
    }) {
        let message =
            format!("{provider:?} is not among storageLocations.providers: nobody could satisfy both");
        found.push(finding(Error, "storageLocations.enforce.provider", message));
    }
    found
}

/// Velero takes `aws` and `velero.io/aws` for the same.
fn short(provider: &str) -> &str {
    provider.strip_prefix("velero.io/").unwrap_or(provider)
}

/// What cannot be required of every location.
pub(super) fn enforced_location(at: &str, spec: &super::EnforcedLocation) -> Vec<Finding> {
    let mut found = Vec::new();
    let durations =
        [("backupSyncPeriod", &spec.backup_sync_period), ("validationFrequency", &spec.validation_frequency)];
    for (name, value) in durations {
        found.extend(value.as_ref().and_then(|value| duration(&format!("{at}.{name}"), value)));
    }
    let mode = spec.access_mode.as_deref();
    if let Some(mode) = mode.filter(|mode| !matches!(*mode, "ReadOnly" | "ReadWrite")) {
        found.push(finding(
            Error,
            format!("{at}.accessMode"),
            format!("{mode:?} is not ReadOnly or ReadWrite"),
        ));
    }
    found
}

/// A duration that is none, or runs backwards.
pub(super) fn duration(path: &str, value: &Duration) -> Option<Finding> {
    let fine = value.nanos().is_some_and(|nanos| nanos >= 0);
    (!fine).then(|| {
        let message = format!("{:?} is not a duration; write for example 72h or 1h30m", value.to_string());
        finding(Error, path, message)
    })
}

fn of_periods(policy: &Policy) -> Vec<Finding> {
    let (sync, collect) = (&policy.sync.period, &policy.garbage_collection.period);
    let mut found = Vec::new();
    let timeouts = [
        ("backup.hookTimeout", &policy.backup.hook_timeout),
        ("restore.hookTimeout", &policy.restore.hook_timeout),
        ("restore.fromTenantStorage.finalizeTimeout", &policy.restore.from_tenant_storage.finalize_timeout),
        ("requester.maxAge", &policy.requester.max_age),
    ];
    for (path, limit) in policy.volumes.all().into_iter().chain(timeouts) {
        found.extend(duration(path, limit));
    }
    found.extend(duration("sync.period", sync));
    found.extend(duration("garbageCollection.period", collect));
    for (path, period) in [("sync.period", sync), ("garbageCollection.period", collect)] {
        if period.to_std().is_some_and(|wait| !wait.is_zero() && wait < super::MOST_OFTEN) {
            found.push(finding(Warning, path, "is taken as 1s, which is often enough; 0 switches it off"));
        }
    }
    // Switched off, a loop has no place in the order.
    let order = |faster: &Duration, slower: &Duration| match (faster.nanos(), slower.nanos()) {
        (Some(faster), Some(slower)) => faster > 0 && slower > 0 && faster >= slower,
        _ => false,
    };
    if order(sync, collect) {
        let message = format!("should be longer than sync.period, which is {sync}");
        found.push(finding(Warning, "garbageCollection.period", message));
    }
    let velero = policy.velero_sync_period.clone().unwrap_or_else(|| Duration::from("1m"));
    if order(&velero, sync) {
        let message =
            format!("should be longer than the time after which Velero looks into storage, {velero}");
        found.push(finding(Warning, "sync.period", message));
    }
    let enforced = policy.storage_locations.enforce.backup_sync_period.as_ref();
    if enforced.is_some_and(|enforced| order(enforced, sync)) {
        let message = format!("should be shorter than sync.period, which is {sync}");
        found.push(finding(Warning, "storageLocations.enforce.backupSyncPeriod", message));
    }
    found
}

fn of_namespaces(policy: &Policy) -> Vec<Finding> {
    let lists = [("included", &policy.namespaces.included), ("excluded", &policy.namespaces.excluded)];
    let fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '*';
    let mut found = Vec::new();
    for (list, patterns) in lists {
        for (at, pattern) in patterns.iter().enumerate() {
            if pattern.is_empty() || !pattern.chars().all(fine) {
                let message =
                    format!("no namespace fits {pattern:?}: small letters, digits, dashes and stars can");
                found.push(finding(Warning, format!("namespaces.{list}[{at}]"), message));
            }
        }
    }
    if policy.namespaces.included.is_empty() {
        found.push(finding(
            Warning,
            "namespaces.included",
            "nobody may ask for anything; [\"*\"] means everybody",
        ));
    }
    found
}
