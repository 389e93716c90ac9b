//! Which part of a policy causes a refusal: the one without which there would be none.

use api::velero::{BackupSpec, RestoreSpec};
use planner::{
    Policy,
    location::endpoint::EndpointPolicy,
    policy::{
        Bounds, EnforcedLocation, NamespacePolicy, NativeSnapshots, StorageMode, StoragePolicy, TenantPods,
    },
};

use crate::preview::PreviewResult;

type Relax = fn(&mut Policy);

/// Each part of a policy that can refuse, and how it looks if nobody has said anything.
const PARTS: &[(&str, Relax)] = &[
    ("namespaces", |policy| policy.namespaces = NamespacePolicy::default()),
    ("backup.enforce", |policy| policy.backup.enforce = BackupSpec::default()),
    ("backup.defaults", |policy| policy.backup.defaults = BackupSpec::default()),
    ("backup.ttl", |policy| policy.backup.ttl = Bounds::default()),
    ("backup.hooks", |policy| policy.backup.forbid_hooks = false),
    ("backup.maxPerNamespace", |policy| policy.backup.max_per_namespace = None),
    ("backup.maxActivePerNamespace", |policy| policy.backup.max_active_per_namespace = None),
    ("restore.enforce", |policy| policy.restore.enforce = RestoreSpec::default()),
    ("restore.hooks", |policy| policy.restore.forbid_hooks = false),
    ("restore.fromTenantStorage.pods", |policy| {
        policy.restore.from_tenant_storage.pods = TenantPods::Baseline;
    }),
    ("restore.fromPlatformStorage", |policy| policy.restore.excluded_from_platform_storage.clear()),
    ("storageLocations.mode", |policy| policy.storage_locations.mode = StorageMode::Any),
    ("storageLocations.enforce", |policy| policy.storage_locations.enforce = EnforcedLocation::default()),
    ("storageLocations.providers", |policy| {
        policy.storage_locations.providers = StoragePolicy::default().providers;
    }),
    ("storageLocations.endpoints", |policy| policy.storage_locations.endpoints = EndpointPolicy::default()),
    ("storageLocations.allowInsecureSkipTLSVerify", |policy| {
        policy.storage_locations.allow_insecure_skip_tls_verify = true;
    }),
    ("storageLocations.nativeSnapshots", |policy| {
        policy.storage_locations.native_snapshots = NativeSnapshots::Accept;
    }),
    ("storageLocations.maxPerNamespace", |policy| policy.storage_locations.max_per_namespace = None),
];

/// The part of the policy without which the verdict would be another; none if it is nacre's own rule.
pub(super) fn behind(
    verdict: &PreviewResult,
    policy: Option<&Policy>,
    judge: impl Fn(Policy) -> PreviewResult,
) -> Option<&'static str> {
    let policy = policy?;
    let matters = |relax: &Relax| {
        let mut relaxed = policy.clone();
        relax(&mut relaxed);
        relaxed != *policy && judge(relaxed) != *verdict
    };
    PARTS.iter().find(|(_, relax)| matters(relax)).map(|(name, _)| *name)
}
