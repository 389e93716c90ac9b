//! The policy: one model, whatever it was read from.
//!
//! `yaml` reads it from a ConfigMap and `dpa` from a DataProtectionApplication; `rules` says what makes no sense in
//! it, `combine` makes one of both, `source` decides what holds when one of them cannot be read, and `in_force` when one
//! of them vanishes. `check` and `origin` are for people: what is wrong with a policy, and who says what in it. The
//! names of the fields below, in camel case, are the keys of `policy.yaml`, and their comments are `docs/policy.md`.

mod check;
mod combine;
mod dpa;
mod in_force;
mod namespaces;
mod node;
mod origin;
mod problem;
mod queue;
mod read;
mod requester;
mod resources;
mod rules;
mod schedules;
mod size;
mod source;
mod spelling;
mod storage;
mod views;
mod volumes;
mod yaml;

use std::time::Duration as Wait;

use api::Duration;
use api::velero::{BackupSpec, RestoreSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use check::{Examined, check, examine, render};
pub use combine::Policies;
pub use dpa::{IN_APPLICATIONS, counts};
pub use in_force::{IN_FORCE, InForce, LastPolicy, STAYS_IN_FORCE, Vanished, WHEN_VANISHED, in_force};
pub use namespaces::NamespacePolicy;
pub(crate) use namespaces::matches;
pub use origin::{Origin, Setting};
pub use problem::{Position, Problem, Severity, Source};
pub use queue::QueuePolicy;
pub use requester::{DeleteBy, NotPermitted, RequesterMode, RequesterPolicy};
pub(crate) use resources::{may_come_back_from_tenants, never_from_tenants};
pub use schedules::{DefaultSchedule, RetentionBounds, SchedulePolicy, Windows};
pub use size::Size;
pub use source::{CONFIG_MAP, KEY, Loaded, Reading, Readings, load};
pub use storage::{
    EnforcedLocation, EnforcedObjectStorage, Import, NativeSnapshots, StorageMode, StoragePolicy,
};
pub use views::{VeleroView, ViewPolicy};
pub use volumes::VolumePolicy;

/// The policy of a namespace; what is not set is not limited.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Policy {
    /// What backups may ask for, and what they get where they ask for nothing.
    pub backup: BackupPolicy,
    /// What restores may ask for, and what may come back.
    pub restore: RestorePolicy,
    /// Which storage tenants may bring, and who approves it.
    pub storage_locations: StoragePolicy,
    /// How often schedules may run, when, and how long their backups are kept.
    pub schedules: SchedulePolicy,
    /// In which order backups and restores are handed over to Velero.
    pub queue: QueuePolicy,
    /// What tenants may fetch of their backups and restores.
    pub downloads: DownloadPolicy,
    /// After what time nacre cancels volume operations that cannot end; 0 means never.
    pub volumes: VolumePolicy,
    /// How backups that Velero finds in storage become visible to tenants.
    pub sync: SyncPolicy,
    /// How often nacre removes Velero objects whose request no longer exists.
    pub garbage_collection: GarbageCollectionPolicy,
    /// Which namespaces may make requests. A star stands for any run of characters. `kube-*`, `openshift-*` and
    /// Velero's own namespace are closed, whatever is set here.
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BackupPolicy {
    /// Filled in where a request sets nothing. Its fields are listed below.
    pub defaults: BackupSpec,
    /// Filled in where a request sets nothing, and refused where it sets another value. Its fields are listed below.
    pub enforce: BackupSpec,
    /// How long a backup may be kept, by its `ttl`.
    pub ttl: Bounds,
    /// How many backups a namespace may have in Velero at a time. More wait until one is deleted or expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_per_namespace: Option<usize>,
    /// How many backups of a namespace may be unfinished at a time. More wait until one is finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_active_per_namespace: Option<usize>,
    /// How much volume data a namespace may have in the cluster's own storage, as `500Gi`. It is an estimate. More backups
    /// wait until one is deleted or expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_bytes_per_namespace: Option<Size>,
    /// How long Velero may work for a namespace in a day, from midnight UTC. Restores count and never wait; more backups
    /// wait until the next day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_work_per_day: Option<Duration>,
    /// What becomes of a backup that would exceed one of these four limits.
    pub at_limit: AtLimit,
    /// Whether specs may have hooks.
    #[serde(rename = "hooks", with = "spelling::backup_hooks")]
    #[schemars(with = "spelling::backup_hooks::Word")]
    pub forbid_hooks: bool,
    /// The longest a hook may take; 0 means without limit. Longer timeouts, and absent ones, become this.
    pub hook_timeout: Duration,
    /// Who chooses how volumes are saved where a request does not say.
    pub volumes: Volumes,
    /// Who may have the data of a backup deleted.
    pub delete: DeleteBy,
}

/// What becomes of a backup that would exceed a limit of its namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AtLimit {
    /// It waits, and starts by itself when the limit allows it.
    #[default]
    Wait,
    /// It is refused, and has to be created again.
    Refuse,
}

/// Who chooses how volumes are saved where a request does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Volumes {
    /// nacre: the data of every claim is saved, if anything in the cluster can save it.
    #[default]
    Auto,
    /// Velero: its own defaults hold.
    Velero,
}

/// What is allowed of restores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RestorePolicy {
    /// Filled in where a request sets nothing, and refused where it sets another value. Its fields are listed below.
    pub enforce: RestoreSpec,
    /// How many restores of a namespace may be unfinished at a time. More wait until one is finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_active_per_namespace: Option<usize>,
    /// Whether specs may have hooks.
    #[serde(rename = "hooks", with = "spelling::restore_hooks")]
    #[schemars(with = "spelling::restore_hooks::Word")]
    pub forbid_hooks: bool,
    /// The longest a hook may take, and may wait for its container; 0 means without limit. Longer timeouts, and absent
    /// ones, become this.
    pub hook_timeout: Duration,
    /// What may come back from storage that a tenant can write to.
    pub from_tenant_storage: FromTenantStorage,
    /// What may come back from the cluster's own storage.
    #[serde(rename = "fromPlatformStorage", with = "spelling::from_platform_storage")]
    #[schemars(with = "spelling::from_platform_storage::Block")]
    pub excluded_from_platform_storage: Vec<String>,
}

/// What may come back from storage that a tenant can write to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct FromTenantStorage {
    /// These resources and nothing else, such as `deployments.apps`.
    pub allowed_resources: Vec<String>,
    /// Whether pods come back too. Velero needs them to bring back volumes that it saved from inside pods.
    pub pods: TenantPods,
    /// The most objects that a backup may have to be restored; 0 means without limit. The number is the one that the
    /// backup says, and its owner may have written it: only the limits of Velero's pod hold against a forged one.
    pub max_items: u32,
    /// How long Velero may take to finish a restore, once all is restored, before nacre ends it; 0 means without limit.
    /// Velero itself waits ten minutes each for volumes and for hooks.
    pub finalize_timeout: Duration,
    /// Whether the API server holds pods that a tenant's restore creates to Pod Security level baseline. No setting: it
    /// is seen in the cluster.
    #[serde(skip)]
    pub pods_are_fenced: bool,
}

impl FromTenantStorage {
    /// How long Velero may take to finish a restore; none without limit.
    pub fn finalize_timeout(&self) -> Option<Wait> {
        self.finalize_timeout.to_std().filter(|limit| !limit.is_zero())
    }

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "lowercase")]
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Bounds {
    /// The shortest time that is allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<Duration>,
    /// The longest time that is allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<Duration>,
}

/// What is allowed of downloads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DownloadPolicy {
    /// What tenants may fetch of backups in the cluster's own storage. What is in their own storage, they may fetch
    /// anyway.
    pub platform_storage: Downloads,
}

/// What tenants may fetch of a backup, from nothing to everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Downloads {
    /// Nothing. nacre shows errors and warnings, and the lines of logs that are about the namespace.
    #[default]
    None,
    /// Logs, results and the list of objects, whole.
    Logs,
    /// The contents as well.
    All,
}

/// How backups that are found in storage become visible to tenants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SyncPolicy {
    /// How often nacre looks through all of Velero's Backups, in addition to watch events; 0 means never.
    pub period: Duration,
    /// What happens to backups of a namespace that was deleted and re-created.
    pub adoption: Adoption,
}

/// What happens to backups of a namespace that was deleted and re-created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Adoption {
    /// An administrator has to adopt them.
    #[default]
    Approval,
    /// The namespace of that name gets them: for disaster recovery.
    Name,
}

/// How leftovers are collected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GarbageCollectionPolicy {
    /// How often nacre looks for them; 0 means never.
    pub period: Duration,
}

/// The longest a hook may take, unless the policy says otherwise.
const HOOK_TIMEOUT: &str = "10m";

impl BackupPolicy {
    /// How many bytes a namespace may have in the cluster's own storage.
    pub fn max_bytes(&self) -> Option<u64> {
        self.max_bytes_per_namespace.as_ref().and_then(Size::bytes)
    }

    /// How many seconds Velero may work for a namespace in a day.
    pub fn max_work(&self) -> Option<u64> {
        self.max_work_per_day.as_ref().and_then(Duration::to_std).map(|most| most.as_secs())
    }

    /// Whether a namespace has any limit.
    pub fn has_limits(&self) -> bool {
        self.max_per_namespace.is_some()
            || self.max_active_per_namespace.is_some()
            || self.max_bytes().is_some()
            || self.max_work().is_some()
    }
}

impl Default for BackupPolicy {
    fn default() -> Self {
        Self {
            defaults: BackupSpec::default(),
            enforce: BackupSpec::default(),
            ttl: Bounds::default(),
            max_per_namespace: None,
            max_active_per_namespace: None,
            max_bytes_per_namespace: None,
            max_work_per_day: None,
            at_limit: AtLimit::default(),
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
            max_active_per_namespace: None,
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
        Self {
            allowed_resources,
            pods: TenantPods::default(),
            max_items: 100_000,
            finalize_timeout: Duration::from("30m"),
            pods_are_fenced: false,
        }
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
