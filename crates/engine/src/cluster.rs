//! The cluster as it was last seen, for decisions to look at.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use api::velero::{
    Backup, BackupStorageLocation, DataDownload, DataUpload, DeleteBackupRequest, DownloadRequest,
    PodVolumeBackup, PodVolumeRestore, Restore,
};
use api::{
    DataProtectionApplication, HiddenSecret, Kind, NonAdminBackup, NonAdminBackupStorageLocation,
    NonAdminBackupStorageLocationRequest, NonAdminDownloadRequest, NonAdminRestore, Phase, labels,
};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Resource;
use planner::location::endpoint::HostPattern;
use planner::ownership::{is_default, label};
use planner::policy::{LastPolicy, Policies, Problem, Vanished};
use planner::queue::{Heard, Queue, Queued};
use planner::view::Credential;
use planner::{Key, Trouble, backup, copies, restore};

use crate::credentials::Named;
use crate::guard::Told;
use crate::index::Index;
use crate::kept::Kept;
use crate::lacking::Lacking;
use crate::shown::Shown;
use crate::store::{Change, Store};

/// Everything seen so far, shared by watches and workers. A decision holds it for microseconds.
#[derive(Debug)]
pub struct Cluster {
    state: RwLock<State>,
    lacking: Arc<Lacking>,
}

/// Everything seen so far.
#[derive(Debug)]
pub struct State {
    pub(crate) admin_namespace: String,
    /// Whether the sources of the policy are known, so that it can be said to be absent.
    pub(crate) policy_known: bool,
    pub(crate) policies: Option<Policies>,
    pub(crate) policy_problems: Vec<Problem>,
    /// What each source of the policy last said, for when one vanishes.
    pub(crate) last_policy: LastPolicy,
    /// Which sources vanished and are in force all the same.
    pub(crate) policy_vanished: Vec<Vanished>,
    /// How the API server is reached: nowhere to send Velero.
    pub(crate) api_server: Vec<HostPattern>,
    pub(crate) backups: Store<NonAdminBackup>,
    pub(crate) restores: Store<NonAdminRestore>,
    pub(crate) locations: Store<NonAdminBackupStorageLocation>,
    pub(crate) downloads: Store<NonAdminDownloadRequest>,
    pub(crate) download_requests: Store<DownloadRequest>,
    pub(crate) location_requests: Store<NonAdminBackupStorageLocationRequest>,
    pub(crate) secret_copies: Store<HiddenSecret>,
    pub(crate) credentials: HashMap<Named, Credential>,
    pub(crate) velero_version: Option<String>,
    pub(crate) velero_backups: Store<Backup>,
    pub(crate) velero_restores: Store<Restore>,
    pub(crate) storage_locations: Store<BackupStorageLocation>,
    /// Those of the administrators' that say they are the default; there should be one.
    pub(crate) default_storage: BTreeSet<String>,
    pub(crate) delete_requests: Store<DeleteBackupRequest>,
    pub(crate) namespaces: Store<Namespace>,
    pub(crate) config_maps: Store<ConfigMap>,
    pub(crate) applications: Store<DataProtectionApplication>,
    pub(crate) pod_volume_backups: Store<PodVolumeBackup>,
    pub(crate) pod_volume_restores: Store<PodVolumeRestore>,
    pub(crate) data_uploads: Store<DataUpload>,
    pub(crate) data_downloads: Store<DataDownload>,
    pub(crate) backup_queue: Queue,
    pub(crate) restore_queue: Queue,
    /// By the names of Velero objects that requests refer to.
    pub(crate) references: Index<Key>,
    /// By the Velero Backup they ask to delete.
    pub(crate) deletions: Index<String>,
    /// By the Velero Backup or Restore they belong to.
    pub(crate) volumes: Index<Key>,
    pub(crate) backing_off: BTreeSet<Key>,
    /// By whom it was wanted: the write that the API server did not take when it was last tried.
    pub(crate) troubles: HashMap<Key, Arc<Trouble>>,
    /// What there is of Velero's kinds in tenants' namespaces.
    pub(crate) shown: Shown,
}

impl Cluster {
    /// Nothing seen yet.
    pub fn new(admin_namespace: &str) -> Self {
        Self { state: RwLock::new(State::new(admin_namespace)), lacking: Arc::default() }
    }

    /// What is switched off here, and why.
    pub fn lacking(&self) -> &Arc<Lacking> {
        &self.lacking
    }

    /// A look at everything, for as long as it is held.
    pub fn look(&self) -> RwLockReadGuard<'_, State> {
        // A panic while writing would have left single objects stale at worst, which the next event mends.
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes something and returns whom it concerns.
    pub(crate) fn change(&self, change: impl FnOnce(&mut State) -> Vec<Key>) -> Vec<Key> {
        change(&mut self.state.write().unwrap_or_else(PoisonError::into_inner))
    }
}

impl State {
    fn new(admin_namespace: &str) -> Self {
        Self {
            admin_namespace: admin_namespace.to_owned(),
            policy_known: false,
            policies: None,
            policy_problems: Vec::new(),
            last_policy: LastPolicy::default(),
            policy_vanished: Vec::new(),
            api_server: Vec::new(),
            backups: Store::default(),
            restores: Store::default(),
            locations: Store::default(),
            downloads: Store::default(),
            download_requests: Store::default(),
            location_requests: Store::default(),
            secret_copies: Store::default(),
            credentials: HashMap::new(),
            velero_version: None,
            velero_backups: Store::default(),
            velero_restores: Store::default(),
            storage_locations: Store::default(),
            default_storage: BTreeSet::new(),
            delete_requests: Store::default(),
            namespaces: Store::default(),
            config_maps: Store::default(),
            applications: Store::default(),
            pod_volume_backups: Store::default(),
            pod_volume_restores: Store::default(),
            data_uploads: Store::default(),
            data_downloads: Store::default(),
            backup_queue: Queue::default(),
            restore_queue: Queue::default(),
            references: Index::default(),
            deletions: Index::default(),
            volumes: Index::default(),
            backing_off: BTreeSet::new(),
            troubles: HashMap::new(),
            shown: Shown::default(),
        }
    }

    /// Takes what the watch says about one object.
    pub(crate) fn told<K: Kept>(&mut self, object: &Told) -> Vec<Key> {
        let change = K::store_mut(self).told(object.meta(), || object.read());
        self.follow(change)
    }

    /// Takes the API server's answer to a write of ours.
    pub(crate) fn wrote<K: Kept>(&mut self, object: &Told) -> Vec<Key> {
        let change = K::store_mut(self).wrote(object.meta(), || object.read());
        self.follow(change)
    }

    /// Indexes a change and says whom it concerns.
    pub(crate) fn follow<K: Kept>(&mut self, change: Option<Change<K>>) -> Vec<Key> {
        let Some((before, after)) = change else { return Vec::new() };
        let (before, after) = (before.as_deref(), after.as_ref().map(|seen| &*seen.object));
        K::index(self, before, after);
        if let (Some(gone), None) = (before, after) {
            self.troubles.remove(&Key::of(K::KIND, gone.meta()));
        }
        let mut keys = K::concerned(self, before, after);
        keys.extend(copies::also(self, K::KIND, before.map(K::meta), after.map(K::meta), &keys));
        keys
    }

    pub(crate) fn index_namespace(&mut self, before: Option<&Namespace>, after: Option<&Namespace>) {
        if let Some(name) = after.or(before).and_then(|space| space.metadata.name.clone()) {
            self.review(&name);
        }
    }

    pub(crate) fn index_backup(&mut self, before: Option<&NonAdminBackup>, after: Option<&NonAdminBackup>) {
        let Some(object) = after.or(before) else { return };
        let key = Key::of(Kind::NonAdminBackup, &object.metadata);
        let names = |backup: Option<&NonAdminBackup>| backup.map(backup::references).unwrap_or_default();
        self.references.shift(&key, &names(before), &names(after));
        self.note_backing_off(key, after.and_then(|backup| backup.status.as_ref()?.phase));
    }

    pub(crate) fn index_restore(
        &mut self,
        before: Option<&NonAdminRestore>,
        after: Option<&NonAdminRestore>,
    ) {
        let Some(object) = after.or(before) else { return };
        let key = Key::of(Kind::NonAdminRestore, &object.metadata);
        let names = |restore: Option<&NonAdminRestore>| restore.map(restore::references).unwrap_or_default();
        self.references.shift(&key, &names(before), &names(after));
        self.note_backing_off(key, after.and_then(|restore| restore.status.as_ref()?.phase));
    }

    pub(crate) fn index_download(
        &mut self,
        before: Option<&NonAdminDownloadRequest>,
        after: Option<&NonAdminDownloadRequest>,
    ) {
        let Some(object) = after.or(before) else { return };
        let key = Key::of(Kind::NonAdminDownloadRequest, &object.metadata);
        self.note_backing_off(key, after.and_then(|request| request.status.as_ref()?.phase));
    }

    pub(crate) fn index_location(
        &mut self,
        before: Option<&NonAdminBackupStorageLocation>,
        after: Option<&NonAdminBackupStorageLocation>,
    ) {
        let Some(object) = after.or(before) else { return };
        let key = Key::of(Kind::NonAdminBackupStorageLocation, &object.metadata);
        self.note_backing_off(key, after.and_then(|location| location.status.as_ref()?.phase));
    }

    fn note_backing_off(&mut self, key: Key, phase: Option<Phase>) {
        if phase == Some(Phase::BackingOff) {
            self.backing_off.insert(key);
        } else {
            self.backing_off.remove(&key);
        }
    }

    pub(crate) fn queue_backup(&mut self, before: Option<&Backup>, after: Option<&Backup>) {
        note(&mut self.backup_queue, self.velero_backups.heard(), before, after);
    }

    pub(crate) fn queue_restore(&mut self, before: Option<&Restore>, after: Option<&Restore>) {
        note(&mut self.restore_queue, self.velero_restores.heard(), before, after);
    }

    pub(crate) fn index_storage(
        &mut self,
        before: Option<&BackupStorageLocation>,
        after: Option<&BackupStorageLocation>,
    ) {
        let Some(name) = after.or(before).and_then(|storage| storage.metadata.name.clone()) else { return };
        if after.is_some_and(is_default) {
            self.default_storage.insert(name);
        } else {
            self.default_storage.remove(&name);
        }
    }

    pub(crate) fn index_delete_request(
        &mut self,
        before: Option<&DeleteBackupRequest>,
        after: Option<&DeleteBackupRequest>,
    ) {
        let Some(name) = after.or(before).and_then(|request| request.metadata.name.clone()) else { return };
        let backup = |request: Option<&DeleteBackupRequest>| -> Vec<String> {
            request.map(|request| request.spec.backup_name.clone()).into_iter().collect()
        };
        self.deletions.shift(&name, &backup(before), &backup(after));
    }

    pub(crate) fn index_volume<K: Kept>(&mut self, before: Option<&K>, after: Option<&K>) {
        let Some(object) = after.or(before) else { return };
        let key = Key::of(K::KIND, object.meta());
        let owners = |volume: Option<&K>| -> Vec<String> {
            let labels = [labels::VELERO_BACKUP_NAME, labels::VELERO_RESTORE_NAME];
            let named = labels.into_iter().filter_map(|name| label(volume?.meta(), name));
            named.map(str::to_owned).collect()
        };
        self.volumes.shift(&key, &owners(before), &owners(after));
    }
}

fn note<K: Queued>(queue: &mut Queue, heard: Heard, before: Option<&K>, after: Option<&K>) {
    match (before, after) {
        (_, Some(object)) => _ = queue.note(object, heard),
        (Some(object), None) => _ = queue.gone(object),
        (None, None) => {}
    }
}
