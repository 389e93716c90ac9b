//! The cluster as it was last seen: one store per watched kind, and indexes over them.
//!
//! There is no client and no clock here. Whoever drives it passes in what the API server reported (`Update`) and the
//! time (`Moment`): the engine does so with real watches and replies, the tests with simulated ones.

mod credentials;
mod finalizing;
pub(crate) mod imports;
mod index;
mod indexes;
mod lookup;
mod measure;
mod packed;
pub(crate) mod places;
mod policy;
pub(crate) mod prune;
mod raw_object;
mod rejected;
mod results;
mod reviews;
pub(crate) mod standstill;
mod store;
pub(crate) mod turns;
mod usage;
mod view_store;
mod volume_notes;
mod volume_operations;
mod watched_kind;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use api::velero::{
    Backup, BackupStorageLocation, DataDownload, DataUpload, DeleteBackupRequest, DownloadRequest,
    PodVolumeBackup, PodVolumeRestore, Restore, Schedule,
};
use api::{
    Claim, DataProtectionApplication, HiddenSecret, Kind, NodeAgent, NonAdminBackup,
    NonAdminBackupStorageLocation, NonAdminBackupStorageLocationRequest, NonAdminDownloadRequest,
    NonAdminRestore, NonAdminSchedule, RestoredPod, Volume,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::core::{DynamicObject, ObjectMeta};

pub use credentials::SecretKey;
pub use raw_object::RawObject;
pub use rejected::Rejection;
pub use volume_notes::VolumeNote;
pub use watched_kind::WatchedKind;

use crate::backup::SnapshotClasses;
use crate::location::endpoint::HostPattern;
use crate::measure::Totals;
use crate::policy::{LastPolicy, Policies, Problem, Vanished};
use crate::queue::Queue;
use crate::results::Results;
use crate::turns::Turns;
use crate::usage::Ledger;
use crate::view::{Credential, Seen};
use crate::{Key, RejectedWrite, Target};
use index::{Index, SharedIndex};
use reviews::Reviews;
use store::{Change, Store};
use view_store::VeleroView;

/// A point in time: by the clock, which an administrator may set, and by the uptime of the process, which only grows.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The time of day.
    pub clock: Timestamp,
    /// How long the process has been running.
    pub uptime: Duration,
}

/// An object that has arrived, to be decoded only if it is newer than what is known.
pub trait Incoming {
    /// At least its namespace, name, uid and resourceVersion.
    fn meta(&self) -> &ObjectMeta;
    /// Decodes it, or what can be saved of it.
    fn read<K: WatchedKind>(&self) -> Seen<K>;
    /// Decodes it as an object of any kind, which needs nothing but metadata.
    fn read_any(&self) -> Seen<DynamicObject>;
}

/// Something the API server reported about objects of one kind.
#[derive(Debug)]
pub enum Update<'a, O> {
    /// The watch or a list shows an object.
    Observed(&'a O),
    /// The watch says that an object is gone.
    ObservedGone(&'a O),
    /// A list begins.
    ListBegins,
    /// A list is complete: what it did not show is gone.
    ListEnds,
    /// The reply to a write of ours.
    Wrote(&'a O),
    /// The reply to a delete of ours: the object with this namespace, name and uid is gone.
    Deleted(&'a ObjectMeta),
}

impl<O> Clone for Update<'_, O> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<O> Copy for Update<'_, O> {}

/// The content of the cache.
#[derive(Clone, Debug)]
pub struct State {
    admin_namespace: String,
    /// The time of the decision or look-up that is being made.
    now: Timestamp,
    /// Whether the sources of the policy were listed, so that it can be said to be absent.
    policy_known: bool,
    policies: Option<Policies>,
    policy_problems: Vec<Problem>,
    /// What each source of the policy last said, for when one vanishes.
    last_policy: LastPolicy,
    /// Which sources vanished and are in force all the same.
    policy_vanished: Vec<Vanished>,
    /// How often the policy was read.
    policy_reads: u64,
    /// Where the API server is reached: nowhere to send Velero.
    api_server: Vec<HostPattern>,
    backups: Store<NonAdminBackup>,
    restores: Store<NonAdminRestore>,
    locations: Store<NonAdminBackupStorageLocation>,
    downloads: Store<NonAdminDownloadRequest>,
    schedules: Store<NonAdminSchedule>,
    download_requests: Store<DownloadRequest>,
    location_requests: Store<NonAdminBackupStorageLocationRequest>,
    secret_copies: Store<HiddenSecret>,
    credentials: HashMap<SecretKey, Credential>,
    velero_version: Option<String>,
    takes_native_snapshots: Option<bool>,
    snapshot_classes: Arc<SnapshotClasses>,
    pods_are_fenced: bool,
    /// Whether Velero is for tenants alone, and has its permissions in tenants' namespaces by a RoleBinding in each.
    dedicated: bool,
    velero_backups: Store<Backup>,
    velero_restores: Store<Restore>,
    storage_locations: Store<BackupStorageLocation>,
    /// The administrators' locations that say they are the default; there should be one.
    default_storage: BTreeSet<String>,
    delete_requests: Store<DeleteBackupRequest>,
    namespaces: Store<Namespace>,
    config_maps: Store<ConfigMap>,
    applications: Store<DataProtectionApplication>,
    pod_volume_backups: Store<PodVolumeBackup>,
    pod_volume_restores: Store<PodVolumeRestore>,
    data_uploads: Store<DataUpload>,
    data_downloads: Store<DataDownload>,
    claims: Store<Claim>,
    persistent_volumes: Store<Volume>,
    /// The uids of claims whose data is in a folder of a node.
    host_paths: BTreeSet<String>,
    /// The pods that Velero restored.
    restored_pods: Store<RestoredPod>,
    /// The RoleBindings that give Velero its permissions in tenants' namespaces.
    velero_bindings: Store<RoleBinding>,
    /// The DaemonSets in Velero's namespace.
    node_agents: Store<NodeAgent>,
    /// When the last node agent ended; none while one runs.
    node_agent_left: Option<Timestamp>,
    /// The kinds of which a whole list was seen. One that nacre is not permitted to list is never in it.
    listed: BTreeSet<Kind>,
    backup_queue: Queue,
    restore_queue: Queue,
    backup_turns: Turns,
    restore_turns: Turns,
    /// Requests by the names of the Velero objects they refer to.
    references: Index<Key>,
    /// DeleteBackupRequests by the Velero Backup they are about.
    deletions: Index<String>,
    /// Volume operations by the Velero Backup or Restore they belong to.
    volumes: Index<Key>,
    /// When volume operations that are not over last changed.
    volume_notes: HashMap<Key, VolumeNote>,
    finalizing: finalizing::Finalizing,
    standstill: standstill::Standstill,
    imports: imports::Imports,
    /// The names of restore requests by namespace and name of the backup.
    restores_from: Index<String>,
    /// The names of backup requests by namespace and schedule.
    runs: Index<String>,
    /// The schedules, by namespace and label, whose runs are stored in a location (`last_good::stored_in`).
    schedules_stored_in: SharedIndex,
    velero_schedules: Store<Schedule>,
    /// The names of Velero Schedules by namespace and name of the schedule they were made for.
    velero_schedules_for: Index<String>,
    /// The names of Velero Backups by the namespace they say they were made for.
    made_for: Index<String>,
    /// The names of Velero Backups by their storage location.
    stored_in: Index<String>,
    backing_off: BTreeSet<Key>,
    /// The requests in any phase but Created.
    unsettled: BTreeSet<Key>,
    /// The backup requests of each namespace, for its limits.
    places: places::AllPlaces,
    /// By the object that was decided about: the write that the API server rejected when it was last tried.
    rejected: HashMap<Key, Arc<RejectedWrite>>,
    /// Requests whose errors and warnings are to be read, and what was read of them.
    unread_results: BTreeMap<Key, Option<Results>>,
    /// What was asked about requesters, and what the API server answered.
    reviews: Reviews,
    velero_view: VeleroView,
    totals: Totals,
    /// What each namespace uses.
    usage: Ledger,
}

impl State {
    /// Nothing seen yet.
    pub fn new(admin_namespace: &str) -> Self {
        Self {
            admin_namespace: admin_namespace.to_owned(),
            now: Timestamp::UNIX_EPOCH,
            policy_known: false,
            policies: None,
            policy_problems: Vec::new(),
            last_policy: LastPolicy::default(),
            policy_vanished: Vec::new(),
            policy_reads: 0,
            api_server: Vec::new(),
            backups: Store::packing(),
            restores: Store::packing(),
            locations: Store::default(),
            downloads: Store::default(),
            schedules: Store::packing(),
            download_requests: Store::default(),
            location_requests: Store::default(),
            secret_copies: Store::default(),
            credentials: HashMap::new(),
            velero_version: None,
            takes_native_snapshots: None,
            snapshot_classes: Arc::default(),
            pods_are_fenced: false,
            dedicated: false,
            velero_backups: Store::packing(),
            velero_restores: Store::packing(),
            storage_locations: Store::default(),
            default_storage: BTreeSet::new(),
            delete_requests: Store::default(),
            namespaces: Store::packing(),
            config_maps: Store::default(),
            applications: Store::default(),
            pod_volume_backups: Store::packing(),
            pod_volume_restores: Store::packing(),
            data_uploads: Store::packing(),
            data_downloads: Store::packing(),
            claims: Store::packing(),
            persistent_volumes: Store::packing(),
            host_paths: BTreeSet::new(),
            restored_pods: Store::default(),
            velero_bindings: Store::default(),
            node_agents: Store::default(),
            node_agent_left: None,
            listed: BTreeSet::new(),
            backup_queue: Queue::default(),
            restore_queue: Queue::default(),
            backup_turns: Turns::default(),
            restore_turns: Turns::default(),
            references: Index::default(),
            deletions: Index::default(),
            volumes: Index::default(),
            volume_notes: HashMap::new(),
            finalizing: finalizing::Finalizing::default(),
            standstill: standstill::Standstill::default(),
            imports: imports::Imports::default(),
            restores_from: Index::default(),
            runs: Index::default(),
            schedules_stored_in: SharedIndex::default(),
            velero_schedules: Store::default(),
            velero_schedules_for: Index::default(),
            made_for: Index::default(),
            stored_in: Index::default(),
            backing_off: BTreeSet::new(),
            unsettled: BTreeSet::new(),
            places: HashMap::new(),
            rejected: HashMap::new(),
            unread_results: BTreeMap::new(),
            reviews: Reviews::default(),
            velero_view: VeleroView::default(),
            totals: Totals::default(),
            usage: Ledger::default(),
        }
    }

    /// Sets the time that decisions and look-ups see.
    pub fn set_now(&mut self, now: Timestamp) {
        self.now = now;
    }

    /// Takes Velero's version. Returns the locations, which depend on it, if it changed.
    pub fn set_velero_version(&mut self, version: &str) -> Vec<Key> {
        if self.velero_version.as_deref() == Some(version) {
            return Vec::new();
        }
        self.velero_version = Some(version.to_owned());
        self.locations()
    }

    /// Takes whether Velero has a VolumeSnapshotLocation. Returns the locations, which depend on it, if that changed.
    pub fn set_takes_native_snapshots(&mut self, takes: bool) -> Vec<Key> {
        if self.takes_native_snapshots == Some(takes) {
            return Vec::new();
        }
        self.takes_native_snapshots = Some(takes);
        self.locations()
    }

    /// Takes which drivers can take snapshots. Nothing is decided again because of it: it is for new backups.
    pub fn set_snapshot_classes(&mut self, classes: SnapshotClasses) -> Vec<Key> {
        self.snapshot_classes = Arc::new(classes);
        Vec::new()
    }

    /// Takes an update, and returns the requests it affects. Velero's kinds in tenants' namespaces are watched
    /// separately, but replies to writes find their way by namespace. Whatever changes may make it somebody's turn.
    pub fn update<O: Incoming>(&mut self, kind: Kind, update: Update<'_, O>, now: Moment) -> Vec<Key> {
        self.now = now.clock;
        let namespace = match &update {
            Update::Wrote(object) => object.meta().namespace.as_deref(),
            Update::Deleted(meta) => meta.namespace.as_deref(),
            _ => None,
        };
        let mut keys = match namespace {
            Some(namespace) if self.is_in_velero_view(kind, namespace) => {
                self.update_velero_view(kind, update, now)
            }
            _ => self.update_kind(kind, update, now),
        };
        keys.extend(self.next_turns());
        keys
    }

    fn update_typed<K: WatchedKind, O: Incoming>(&mut self, update: Update<'_, O>, now: Moment) -> Vec<Key> {
        let store = K::store_mut(self);
        let change = match update {
            Update::Observed(object) => {
                let meta = object.meta();
                let unreported = store.is_unreported(
                    meta.namespace.as_deref().unwrap_or_default(),
                    meta.name.as_deref().unwrap_or_default(),
                );
                let change = store.observed(meta, || object.read());
                if unreported && change.is_none() {
                    return K::reported(self, meta);
                }
                change
            }
            Update::ObservedGone(object) => store.observed_gone(object.meta(), now.uptime),
            Update::Wrote(object) => store.wrote(object.meta(), now.uptime, || object.read()),
            Update::Deleted(meta) => store.deleted(meta),
            Update::ListBegins => {
                store.list_begins(now.uptime);
                None
            }
            Update::ListEnds => {
                let changes = store.list_ends();
                self.listed.insert(K::KIND);
                return changes.into_iter().flat_map(|change| self.follow::<K>(change)).collect();
            }
        };
        change.map_or_else(Vec::new, |change| self.follow(change))
    }

    /// Indexes a change, and returns the requests it affects.
    fn follow<K: WatchedKind>(&mut self, (before, after): Change<K>) -> Vec<Key> {
        let (before, after) = (before.as_deref(), after.as_ref().map(|seen| &*seen.object));
        K::index(self, before, after);
        if let (Some(gone), None) = (before, after) {
            self.rejected.remove(&Key::of(K::KIND, gone.meta()));
        }
        let mut keys = K::affected(self, before, after);
        keys.extend(crate::velero_view::affected(
            self,
            K::KIND,
            before.map(K::meta),
            after.map(K::meta),
            &keys,
        ));
        keys
    }

    /// The target as it was last seen or written, if that is the same object: a plan of several writes to it goes on
    /// from its own.
    pub fn latest(&self, target: &Target) -> Target {
        let key = Key::new(target.kind, &target.namespace, &target.name);
        let meta = if self.is_in_velero_view(target.kind, &target.namespace) {
            self.velero_view_meta(&key)
        } else if target.kind.group() == Kind::NonAdminBackup.group() {
            self.meta_of(&key)
        } else {
            // Velero writes to its objects all the time: a plan means the version it was made with.
            None
        };
        let meta = meta.filter(|meta| meta.uid.as_ref() == Some(&target.uid));
        meta.map_or_else(|| target.clone(), |meta| Target::of(target.kind, &meta))
    }
}
