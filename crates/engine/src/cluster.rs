//! The cluster as it was last seen, for decisions to look at.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use api::velero::{
    Backup, BackupStorageLocation, DataDownload, DataUpload, DeleteBackupRequest, DownloadRequest,
    PodVolumeBackup, PodVolumeRestore, Restore, VolumeStatus,
};
use api::{
    DataMoverCounts, DataProtectionApplication, HiddenSecret, Kind, NonAdminBackup,
    NonAdminBackupStorageLocation, NonAdminBackupStorageLocationRequest, NonAdminDownloadRequest,
    NonAdminRestore, Phase, PodVolumeCounts, labels,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Resource;
use kube::core::DynamicObject;
use planner::ownership::label;
use planner::policy::{self, Policies, Problem, Reading, Readings};
use planner::queue::Queue;
use planner::view::{Credential, Seen, View};
use planner::{Key, Policy, backup, copies, restore};
use tracing::{info, warn};

use crate::credentials::Named;
use crate::guard::Guarded;
use crate::index::Index;
use crate::kept::Kept;
use crate::shown::Shown;
use crate::store::{Change, Store};

/// Everything seen so far, shared by watches and workers. A decision holds it for microseconds.
#[derive(Debug)]
pub struct Cluster {
    state: RwLock<State>,
}

/// Everything seen so far.
#[derive(Debug)]
pub struct State {
    admin_namespace: String,
    /// Whether the sources of the policy are known, so that it can be said to be absent.
    policy_known: bool,
    policies: Option<Policies>,
    policy_problems: Vec<Problem>,
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
    pub(crate) delete_requests: Store<DeleteBackupRequest>,
    pub(crate) namespaces: Store<Namespace>,
    pub(crate) config_maps: Store<ConfigMap>,
    pub(crate) applications: Store<DataProtectionApplication>,
    pub(crate) pod_volume_backups: Store<PodVolumeBackup>,
    pub(crate) pod_volume_restores: Store<PodVolumeRestore>,
    pub(crate) data_uploads: Store<DataUpload>,
    pub(crate) data_downloads: Store<DataDownload>,
    backup_queue: Queue,
    restore_queue: Queue,
    /// By the names of Velero objects that requests refer to.
    references: Index<Key>,
    /// By the Velero Backup they ask to delete.
    deletions: Index<String>,
    /// By the Velero Backup or Restore they belong to.
    volumes: Index<Key>,
    backing_off: BTreeSet<Key>,
    /// What there is of Velero's kinds in tenants' namespaces.
    pub(crate) shown: Shown,
}

impl Cluster {
    /// Nothing seen yet.
    pub fn new(admin_namespace: &str) -> Self {
        Self { state: RwLock::new(State::new(admin_namespace)) }
    }

    /// Everything has been seen once: the policy can be read, and is read anew from now on whenever a source changes.
    /// Until then there is none, and nothing should be decided.
    pub fn read_policy(&self) {
        self.change(|state| {
            state.policy_known = true;
            state.load_policy();
            Vec::new()
        });
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
            shown: Shown::default(),
        }
    }

    /// Takes what the watch says about one object.
    pub(crate) fn told<K: Kept>(&mut self, object: Guarded<K>) -> Vec<Key> {
        let change = K::store_mut(self).told(object);
        self.follow(change)
    }

    /// Takes the API server's answer to a write of ours.
    pub(crate) fn wrote<K: Kept>(&mut self, object: Guarded<K>) -> Vec<Key> {
        let change = K::store_mut(self).wrote(object);
        self.follow(change)
    }

    /// Indexes a change and says whom it concerns.
    pub(crate) fn follow<K: Kept>(&mut self, change: Option<Change<K>>) -> Vec<Key> {
        let Some((before, after)) = change else { return Vec::new() };
        let (before, after) = (before.as_deref(), after.as_ref().map(|seen| &*seen.object));
        K::index(self, before, after);
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
        if let Some(object) = after.or(before) {
            self.backup_queue.note(object, after.is_none());
        }
    }

    pub(crate) fn queue_restore(&mut self, before: Option<&Restore>, after: Option<&Restore>) {
        if let Some(object) = after.or(before) {
            self.restore_queue.note(object, after.is_none());
        }
    }

    /// What is wrong with the policy as it was last read.
    pub fn policy_problems(&self) -> &[Problem] {
        &self.policy_problems
    }

    pub(crate) fn index_config_map(&mut self, before: Option<&ConfigMap>, after: Option<&ConfigMap>) {
        let name = after.or(before).and_then(|map| map.metadata.name.as_deref());
        if name == Some(policy::CONFIG_MAP) {
            self.load_policy();
        }
    }

    pub(crate) fn index_application<K>(&mut self, _: Option<&K>, _: Option<&K>) {
        self.load_policy();
    }

    fn load_policy(&mut self) {
        if !self.policy_known {
            return;
        }
        let reading = |seen: &Seen<ConfigMap>| match &seen.unreadable {
            Some(why) => Reading::Unreadable(why.to_string()),
            None => Reading::Found(seen.object.clone()),
        };
        let map = self.config_maps.get(&self.admin_namespace, policy::CONFIG_MAP);
        let odd = self.applications.all().find_map(|seen| seen.unreadable.as_ref());
        let applications = match odd {
            Some(why) => Reading::Unreadable(why.to_string()),
            None if self.applications.is_empty() => Reading::Absent,
            None => Reading::Found(self.applications.all().map(|seen| seen.object.clone()).collect()),
        };
        let readings = Readings { config_map: map.map_or(Reading::Absent, reading), applications };
        let loaded = policy::load(self.policies.as_ref(), &readings);
        for problem in &loaded.problems {
            warn!(%problem, "the policy as written does not count in full");
        }
        info!(outdated = loaded.is_outdated(), in_effect = loaded.policies.is_some(), "read the policy");
        self.policies = loaded.policies;
        self.policy_problems = loaded.problems;
        let spaces: Vec<_> =
            self.namespaces.all().filter_map(|seen| seen.object.metadata.name.clone()).collect();
        for name in &spaces {
            self.review(name);
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

    pub(crate) fn admin<K: Kept>(&self, name: &str) -> Option<Arc<K>> {
        K::store(self).get(&self.admin_namespace, name).map(|seen| seen.object.clone())
    }

    fn keys_of(&self, kind: Kind, velero: &str) -> Vec<Key> {
        self.references.under(velero).filter(|key| key.kind == kind).cloned().collect()
    }

    /// The phases of the volumes of one kind that belong to a Velero object.
    fn phases<K: Kept>(&self, owner: &str, status: fn(&K) -> Option<&VolumeStatus>) -> Vec<String> {
        let of_kind = self.volumes.under(owner).filter(|key| key.kind == K::KIND);
        let volumes = of_kind.filter_map(|key| K::store(self).get(&key.namespace, &key.name));
        volumes
            .map(|volume| status(&volume.object).and_then(|status| status.phase.clone()).unwrap_or_default())
            .collect()
    }
}

impl View for State {
    fn admin_namespace(&self) -> &str {
        &self.admin_namespace
    }

    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn policy(&self, namespace: &str) -> Option<Arc<Policy>> {
        let labels =
            self.namespace(namespace).and_then(|space| space.metadata.labels.clone()).unwrap_or_default();
        Some(self.policies.as_ref()?.for_namespace(namespace, &labels))
    }

    fn namespace(&self, name: &str) -> Option<Arc<Namespace>> {
        self.namespaces.get("", name).map(|seen| seen.object.clone())
    }

    fn config_map(&self, name: &str) -> Option<Arc<ConfigMap>> {
        self.admin(name)
    }

    fn backup(&self, namespace: &str, name: &str) -> Option<Seen<NonAdminBackup>> {
        self.backups.get(namespace, name).cloned()
    }

    fn backups_in(&self, namespace: &str) -> Vec<Seen<NonAdminBackup>> {
        self.backups.within(namespace).cloned().collect()
    }

    fn restore(&self, namespace: &str, name: &str) -> Option<Seen<NonAdminRestore>> {
        self.restores.get(namespace, name).cloned()
    }

    fn restores_in(&self, namespace: &str) -> Vec<Seen<NonAdminRestore>> {
        self.restores.within(namespace).cloned().collect()
    }

    fn location(&self, namespace: &str, name: &str) -> Option<Seen<NonAdminBackupStorageLocation>> {
        self.locations.get(namespace, name).cloned()
    }

    fn download(&self, namespace: &str, name: &str) -> Option<Seen<NonAdminDownloadRequest>> {
        self.downloads.get(namespace, name).cloned()
    }

    fn downloads_in(&self, namespace: &str) -> Vec<Seen<NonAdminDownloadRequest>> {
        self.downloads.within(namespace).cloned().collect()
    }

    fn download_request(&self, name: &str) -> Option<Arc<DownloadRequest>> {
        self.admin(name)
    }

    fn locations_in(&self, namespace: &str) -> Vec<Seen<NonAdminBackupStorageLocation>> {
        self.locations.within(namespace).cloned().collect()
    }

    fn credential(&self, namespace: &str, secret: &str, key: &str) -> Credential {
        self.credentials.get(&Named::new(namespace, secret, key)).cloned().unwrap_or_default()
    }

    fn location_request(&self, name: &str) -> Option<Seen<NonAdminBackupStorageLocationRequest>> {
        self.location_requests.get(&self.admin_namespace, name).cloned()
    }

    fn secret_copy(&self, name: &str) -> Option<Arc<HiddenSecret>> {
        self.admin(name)
    }

    fn velero_version(&self) -> Option<String> {
        self.velero_version.clone()
    }

    fn velero_backup(&self, name: &str) -> Option<Arc<Backup>> {
        self.admin(name)
    }

    fn velero_restore(&self, name: &str) -> Option<Arc<Restore>> {
        self.admin(name)
    }

    fn storage_location(&self, name: &str) -> Option<Arc<BackupStorageLocation>> {
        self.admin(name)
    }

    fn delete_requests(&self, backup: &str) -> Vec<Arc<DeleteBackupRequest>> {
        let mut requests: Vec<_> = self.deletions.under(backup).filter_map(|name| self.admin(name)).collect();
        requests.sort_by_key(|request: &Arc<DeleteBackupRequest>| {
            let meta = request.meta();
            (meta.creation_timestamp.as_ref().map(|time| time.0), meta.name.clone())
        });
        requests
    }

    fn backup_volumes(&self, backup: &str) -> (PodVolumeCounts, DataMoverCounts) {
        let files = self.phases::<PodVolumeBackup>(backup, |volume| volume.status.as_ref());
        let moved = self.phases::<DataUpload>(backup, |volume| volume.status.as_ref());
        (
            PodVolumeCounts::of(files.iter().map(String::as_str)),
            DataMoverCounts::of(moved.iter().map(String::as_str)),
        )
    }

    fn restore_volumes(&self, restore: &str) -> (PodVolumeCounts, DataMoverCounts) {
        let files = self.phases::<PodVolumeRestore>(restore, |volume| volume.status.as_ref());
        let moved = self.phases::<DataDownload>(restore, |volume| volume.status.as_ref());
        (
            PodVolumeCounts::of(files.iter().map(String::as_str)),
            DataMoverCounts::of(moved.iter().map(String::as_str)),
        )
    }

    fn backups_of(&self, velero_backup: &str) -> Vec<Key> {
        self.keys_of(Kind::NonAdminBackup, velero_backup)
    }

    fn restores_of(&self, velero_restore: &str) -> Vec<Key> {
        self.keys_of(Kind::NonAdminRestore, velero_restore)
    }

    fn backing_off(&self) -> Vec<Key> {
        self.backing_off.iter().cloned().collect()
    }

    fn backup_queue(&self) -> &Queue {
        &self.backup_queue
    }

    fn restore_queue(&self) -> &Queue {
        &self.restore_queue
    }

    fn locations(&self) -> Vec<Key> {
        let all = self.locations.all();
        all.map(|seen| Key::of(Kind::NonAdminBackupStorageLocation, &seen.object.metadata)).collect()
    }

    fn storage_locations(&self) -> Vec<Arc<BackupStorageLocation>> {
        self.storage_locations.all().map(|seen| seen.object.clone()).collect()
    }

    fn velero_backups(&self) -> Vec<Arc<Backup>> {
        self.velero_backups.all().map(|seen| seen.object.clone()).collect()
    }

    fn velero_restores(&self) -> Vec<Arc<Restore>> {
        self.velero_restores.all().map(|seen| seen.object.clone()).collect()
    }

    fn all_delete_requests(&self) -> Vec<Arc<DeleteBackupRequest>> {
        self.delete_requests.all().map(|seen| seen.object.clone()).collect()
    }

    fn location_requests(&self) -> Vec<Seen<NonAdminBackupStorageLocationRequest>> {
        self.location_requests.all().cloned().collect()
    }

    fn secret_copies(&self) -> Vec<Arc<HiddenSecret>> {
        self.secret_copies.all().map(|seen| seen.object.clone()).collect()
    }

    fn shows_velero(&self) -> bool {
        self.shown.known()
    }

    fn shown(&self, kind: Kind, namespace: &str, name: &str) -> Option<Arc<DynamicObject>> {
        self.shown.get(kind, namespace, name)
    }

    fn shown_in(&self, namespace: &str) -> Vec<Key> {
        self.shown.within(namespace)
    }

    fn all_shown(&self) -> Vec<Key> {
        self.shown.all()
    }

    fn viewed(&self) -> Vec<String> {
        self.shown.viewed().cloned().collect()
    }

    fn delete_request(&self, name: &str) -> Option<Arc<DeleteBackupRequest>> {
        self.admin(name)
    }

    fn volume(&self, kind: Kind, name: &str) -> Option<DynamicObject> {
        self.whole_volume(kind, name)
    }

    fn volumes_of(&self, velero: &str) -> Vec<Key> {
        self.volumes.under(velero).cloned().collect()
    }
}
