//! The policy: one model, whatever it was read from.
//!
//! `yaml` reads it from a ConfigMap and `dpa` from a DataProtectionApplication; `rules` says what makes no sense in
//! it, `combine` makes one of both, `source` decides what holds when one of them cannot be read, and `in_force` when one
//! of them vanishes. `check` and `origin` are for people: what is wrong with a policy, and who says what in it. The
//! names of the fields below, in camel case, are the keys of `policy.yaml`.

mod check;
mod combine;
mod dpa;
mod in_force;
mod namespaces;
mod node;
mod origin;
mod problem;
mod read;
mod requester;
mod resources;
mod rules;
mod schedules;
mod source;
mod storage;
mod views;
mod volumes;
mod words;
mod yaml;

use std::time::Duration as Wait;

use api::Duration;
use api::velero::{BackupSpec, RestoreSpec};
use serde::{Deserialize, Serialize};

pub use check::{Examined, check, examine, render};
pub use combine::Policies;
pub use dpa::counts;
pub use in_force::{IN_FORCE, InForce, LastPolicy, STAYS_IN_FORCE, Vanished, WHEN_VANISHED, in_force};
pub use namespaces::NamespacePolicy;
pub(crate) use namespaces::matches;
pub use origin::{Origin, Setting};
pub use problem::{Position, Problem, Severity, Source};
pub use requester::{DeleteBy, NotPermitted, RequesterMode, RequesterPolicy};
pub(crate) use resources::never_from_tenants;
pub use schedules::{DefaultSchedule, RetentionBounds, SchedulePolicy};
pub use source::{CONFIG_MAP, KEY, Loaded, Reading, Readings, load};
pub use storage::{
    EnforcedLocation, EnforcedObjectStorage, Import, NativeSnapshots, StorageMode, StoragePolicy,
};
pub use views::{VeleroView, ViewPolicy};
pub use volumes::VolumePolicy;

/// The policy of a namespace; what is not set is not limited.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Policy {
    /// Of backups.
    pub backup: BackupPolicy,
    /// Of restores.
    pub restore: RestorePolicy,
    /// Of storage that tenants bring.
    pub storage_locations: StoragePolicy,
    /// Of schedules.
    pub schedules: SchedulePolicy,
    /// Of downloads.
    pub downloads: DownloadPolicy,
    /// Of volume operations that cannot end.
    pub volumes: VolumePolicy,
    /// Of backups that are found in storage.
    pub sync: SyncPolicy,
    /// Of leftovers.
    pub garbage_collection: GarbageCollectionPolicy,
    /// Which namespaces may make requests.
    pub namespaces: NamespacePolicy,
    /// What tenants see of Velero in their own namespaces.
    pub views: ViewPolicy,
    /// Of people who ask for what they may not have.
    pub requester: RequesterPolicy,
    /// Velero's default backup sync period, if OADP sets one.
    #[serde(skip)]
    pub velero_sync_period: Option<Duration>,
}

/// What is allowed of backups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BackupPolicy {
    /// Defaults: filled in where the user sets nothing.
    pub defaults: BackupSpec,
    /// Enforced: filled in where the user sets nothing, and refused where the user sets another value.
    pub enforce: BackupSpec,
    /// The shortest and the longest time a backup may be kept.
    pub ttl: Bounds,
    /// How many backups a namespace may have in Velero at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_per_namespace: Option<usize>,
    /// How many of them may be unfinished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_active_per_namespace: Option<usize>,
    /// Whether specs may have hooks.
    #[serde(rename = "hooks", with = "words::backup_hooks")]
    pub forbid_hooks: bool,
    /// The longest a hook may take; 0 means without limit. Longer timeouts, and absent ones, become this.
    pub hook_timeout: Duration,
    /// Who chooses how volumes are saved where a request does not say.
    pub volumes: Volumes,
    /// Who may have the data of a backup deleted.
    pub delete: DeleteBy,
}

/// Who chooses how volumes are saved where a request does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Volumes {
    /// nacre: the data of every claim is saved, if anything in the cluster can save it.
    #[default]
    Auto,
    /// Velero: its own defaults hold.
    Velero,
}

/// What is allowed of restores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RestorePolicy {
    /// Enforced: filled in where the user sets nothing, and refused where the user sets another value.
    pub enforce: RestoreSpec,
    /// Whether specs may have hooks.
    #[serde(rename = "hooks", with = "words::restore_hooks")]
    pub forbid_hooks: bool,
    /// The longest a hook may take, and may wait for its container; 0 means without limit. Longer timeouts, and absent
    /// ones, become this.
    pub hook_timeout: Duration,
    /// What may come back from storage that a tenant can write to.
    pub from_tenant_storage: FromTenantStorage,
    /// What never comes back from the cluster's own storage, as group-resources.
    #[serde(rename = "fromPlatformStorage", with = "words::from_platform_storage")]
    pub excluded_from_platform_storage: Vec<String>,
}

/// What may come back from storage that a tenant can write to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FromTenantStorage {
    /// These and nothing else, as group-resources.
    pub allowed_resources: Vec<String>,
    /// Whether pods come back too. Velero needs them to bring back volumes that it saved from inside pods.
    pub pods: TenantPods,
    /// Whether the API server holds pods that a tenant's restore creates to Pod Security level baseline. No setting: it
    /// is seen in the cluster.
    #[serde(skip)]
    pub pods_are_fenced: bool,
}

impl FromTenantStorage {
    /// Whether pods come back.
    pub fn pods_come_back(&self) -> bool {
        match self.pods {
            TenantPods::Auto => self.pods_are_fenced,
            TenantPods::Baseline => true,
            TenantPods::None => false,
        }
    }
}

/// Whether pods come back from storage that a tenant can write to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TenantPods {
    /// As `baseline` where nacre's admission policies around restores are installed, else as `none`.
    #[default]
    Auto,
    /// At Pod Security level baseline or better.
    Baseline,
    /// Not at all.
    None,
}

/// The shortest and the longest that is allowed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Bounds {
    /// The shortest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<Duration>,
    /// The longest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<Duration>,
}

/// What is allowed of downloads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DownloadPolicy {
    /// What tenants may fetch of their backups that are kept in the cluster's own storage.
    pub platform_storage: Downloads,
}

/// What tenants may fetch of a backup, from nothing to everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Downloads {
    /// Nothing.
    #[default]
    None,
    /// Logs, results and the list of objects.
    Logs,
    /// The contents as well.
    All,
}

/// How backups that are found in storage become visible to tenants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SyncPolicy {
    /// The period, in addition to watch events; 0 means never.
    pub period: Duration,
    /// What happens to backups of a namespace that was deleted and re-created.
    pub adoption: Adoption,
}

/// What happens to backups of a namespace that was deleted and re-created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Adoption {
    /// An administrator has to adopt them.
    #[default]
    Approval,
    /// The namespace of that name gets them: for disaster recovery.
    Name,
}

/// How leftovers are collected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GarbageCollectionPolicy {
    /// How often; 0 means never.
    pub period: Duration,
}

/// The longest a hook may take, unless the policy says otherwise.
const HOOK_TIMEOUT: &str = "10m";

impl Default for BackupPolicy {
    fn default() -> Self {
        Self {
            defaults: BackupSpec::default(),
            enforce: BackupSpec::default(),
            ttl: Bounds::default(),
            max_per_namespace: None,
            max_active_per_namespace: None,
            forbid_hooks: false,
            hook_timeout: Duration::from(HOOK_TIMEOUT),
            volumes: Volumes::default(),
            delete: DeleteBy::default(),
        }
    }
}

impl Default for RestorePolicy {
    fn default() -> Self {
        Self {
            enforce: RestoreSpec::default(),
            forbid_hooks: false,
            hook_timeout: Duration::from(HOOK_TIMEOUT),
            from_tenant_storage: FromTenantStorage::default(),
            excluded_from_platform_storage: resources::GUARD_RAILS.map(str::to_owned).to_vec(),
        }
    }
}

impl Default for FromTenantStorage {
    fn default() -> Self {
        let allowed_resources = resources::HARMLESS.map(str::to_owned).to_vec();
        Self { allowed_resources, pods: TenantPods::default(), pods_are_fenced: false }
    }
}

impl Default for SyncPolicy {
    fn default() -> Self {
        Self { period: Duration::from("2m"), adoption: Adoption::default() }
    }
}

impl Default for GarbageCollectionPolicy {
    fn default() -> Self {
        Self { period: Duration::from("24h") }
    }
}

impl SyncPolicy {
    /// How long to wait between two looks; none if it is switched off.
    pub fn every(&self) -> Option<Wait> {
        every(&self.period)
    }
}

impl GarbageCollectionPolicy {
    /// How long to wait between two collections; none if they are switched off.
    pub fn every(&self) -> Option<Wait> {
        every(&self.period)
    }
}

/// A loop that runs more often than this is a mistake, and would do nothing but load the API server.
const MOST_OFTEN: Wait = Wait::from_secs(1);

fn every(period: &Duration) -> Option<Wait> {
    period.to_std().filter(|wait| !wait.is_zero()).map(|wait| wait.max(MOST_OFTEN))
}
