//! What a decision sees of the world, and whom a change concerns.

use std::sync::Arc;

use api::velero::{Backup, BackupStorageLocation, DeleteBackupRequest, DownloadRequest, Restore};
use api::{
    DataMoverCounts, HiddenSecret, Kind, NonAdminBackup, NonAdminBackupStorageLocation,
    NonAdminBackupStorageLocationRequest, NonAdminDownloadRequest, NonAdminRestore, Phase, PodVolumeCounts,
    labels,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::core::{DynamicObject, ObjectMeta};
use planner::ownership::is_default;
use planner::queue::{Heard, Queue};
use planner::view::{Credential, Seen, View};
use planner::{Key, Policy, Trouble, backup, concern, copies, restore};

use super::store::Typed;
use super::{ADMIN, World};

/// The objects of one kind in one namespace, read.
macro_rules! read {
    ($world:ident, $kind:ident, $namespace:expr) => {
        $world.of_kind(Kind::$kind).filter_map(|(key, typed)| match typed {
            Typed::$kind(object) if key.namespace == $namespace => Some(object),
            _ => None,
        })
    };
    ($world:ident, $kind:ident, $namespace:expr, $name:expr) => {
        match $world.objects.get(&Key::new(Kind::$kind, $namespace, $name)).map(|stored| &stored.typed) {
            Some(Typed::$kind(object)) => Some(object.clone()),
            _ => None,
        }
    };
}

impl View for World {
    fn admin_namespace(&self) -> &str {
        ADMIN
    }

    fn now(&self) -> Timestamp {
        self.now
    }

    fn policy(&self, _: &str) -> Option<Arc<Policy>> {
        self.policy.clone()
    }

    fn namespace(&self, name: &str) -> Option<Arc<Namespace>> {
        read!(self, Namespace, "", name).filter(|_| !self.nacre.is_yet_to_see_namespaces)
    }

    fn config_map(&self, name: &str) -> Option<Arc<ConfigMap>> {
        read!(self, ConfigMap, ADMIN, name)
    }

    fn backup(&self, namespace: &str, name: &str) -> Option<Seen<NonAdminBackup>> {
        read!(self, NonAdminBackup, namespace, name)
    }

    fn backups_in(&self, namespace: &str) -> Vec<Seen<NonAdminBackup>> {
        read!(self, NonAdminBackup, namespace).cloned().collect()
    }

    fn restore(&self, namespace: &str, name: &str) -> Option<Seen<NonAdminRestore>> {
        read!(self, NonAdminRestore, namespace, name)
    }

    fn restores_in(&self, namespace: &str) -> Vec<Seen<NonAdminRestore>> {
        read!(self, NonAdminRestore, namespace).cloned().collect()
    }

    fn location(&self, namespace: &str, name: &str) -> Option<Seen<NonAdminBackupStorageLocation>> {
        read!(self, NonAdminBackupStorageLocation, namespace, name)
    }

    fn download(&self, namespace: &str, name: &str) -> Option<Seen<NonAdminDownloadRequest>> {
        read!(self, NonAdminDownloadRequest, namespace, name)
    }

    fn downloads_in(&self, namespace: &str) -> Vec<Seen<NonAdminDownloadRequest>> {
        read!(self, NonAdminDownloadRequest, namespace).cloned().collect()
    }

    fn download_request(&self, name: &str) -> Option<Arc<DownloadRequest>> {
        read!(self, DownloadRequest, ADMIN, name)
    }

    fn locations_in(&self, namespace: &str) -> Vec<Seen<NonAdminBackupStorageLocation>> {
        read!(self, NonAdminBackupStorageLocation, namespace).cloned().collect()
    }

    fn credential(&self, namespace: &str, secret: &str, key: &str) -> Credential {
        let secret: Option<Arc<HiddenSecret>> = read!(self, Secret, namespace, secret);
        let found = secret.and_then(|secret| secret.data.get(key).cloned());
        found.map_or(Credential::Missing(self.now), |found| Credential::Found(Arc::new(found)))
    }

    fn location_request(&self, name: &str) -> Option<Seen<NonAdminBackupStorageLocationRequest>> {
        read!(self, NonAdminBackupStorageLocationRequest, ADMIN, name)
    }

    fn secret_copy(&self, name: &str) -> Option<Arc<HiddenSecret>> {
        read!(self, Secret, ADMIN, name)
    }

    fn trouble(&self, key: &Key) -> Option<Arc<Trouble>> {
        self.nacre.troubles.get(key).cloned()
    }

    fn velero_version(&self) -> Option<String> {
        Some("v1.18.3".to_owned())
    }

    fn locations(&self) -> Vec<Key> {
        self.keys_of(Kind::NonAdminBackupStorageLocation, |_| true)
    }

    fn default_storage(&self) -> Option<Arc<BackupStorageLocation>> {
        read!(self, BackupStorageLocation, ADMIN).find(|storage| is_default(storage)).cloned()
    }

    fn storage_locations(&self) -> Vec<Arc<BackupStorageLocation>> {
        read!(self, BackupStorageLocation, ADMIN).cloned().collect()
    }

    fn velero_backups(&self) -> Vec<Arc<Backup>> {
        read!(self, Backup, ADMIN).cloned().collect()
    }

    fn velero_restores(&self) -> Vec<Arc<Restore>> {
        read!(self, Restore, ADMIN).cloned().collect()
    }

    fn all_delete_requests(&self) -> Vec<Arc<DeleteBackupRequest>> {
        read!(self, DeleteBackupRequest, ADMIN).cloned().collect()
    }

    fn location_requests(&self) -> Vec<Seen<NonAdminBackupStorageLocationRequest>> {
        read!(self, NonAdminBackupStorageLocationRequest, ADMIN).cloned().collect()
    }

    fn secret_copies(&self) -> Vec<Arc<HiddenSecret>> {
        read!(self, Secret, ADMIN).cloned().collect()
    }

    fn velero_backup(&self, name: &str) -> Option<Arc<Backup>> {
        read!(self, Backup, ADMIN, name)
    }

    fn velero_restore(&self, name: &str) -> Option<Arc<Restore>> {
        read!(self, Restore, ADMIN, name)
    }

    fn storage_location(&self, name: &str) -> Option<Arc<BackupStorageLocation>> {
        read!(self, BackupStorageLocation, ADMIN, name)
    }

    fn delete_requests(&self, backup: &str) -> Vec<Arc<DeleteBackupRequest>> {
        let all = read!(self, DeleteBackupRequest, ADMIN);
        let mut named: Vec<_> = all.filter(|request| request.spec.backup_name == backup).cloned().collect();
        named.sort_by_key(|request| request.metadata.creation_timestamp.as_ref().map(|time| time.0));
        named
    }

    fn backup_volumes(&self, backup: &str) -> (PodVolumeCounts, DataMoverCounts) {
        let phases = |kind| self.volume_phases(kind, labels::VELERO_BACKUP_NAME, backup);
        (PodVolumeCounts::of(phases(Kind::PodVolumeBackup)), DataMoverCounts::of(phases(Kind::DataUpload)))
    }

    fn restore_volumes(&self, restore: &str) -> (PodVolumeCounts, DataMoverCounts) {
        let phases = |kind| self.volume_phases(kind, labels::VELERO_RESTORE_NAME, restore);
        (PodVolumeCounts::of(phases(Kind::PodVolumeRestore)), DataMoverCounts::of(phases(Kind::DataDownload)))
    }

    fn backups_of(&self, velero_backup: &str) -> Vec<Key> {
        let named = |typed: &Typed| match typed {
            Typed::NonAdminBackup(seen) => {
                backup::references(&seen.object).iter().any(|name| name == velero_backup)
            }
            _ => false,
        };
        self.keys_of(Kind::NonAdminBackup, named)
    }

    fn restores_of(&self, velero_restore: &str) -> Vec<Key> {
        let named = |typed: &Typed| match typed {
            Typed::NonAdminRestore(seen) => {
                restore::references(&seen.object).iter().any(|name| name == velero_restore)
            }
            _ => false,
        };
        self.keys_of(Kind::NonAdminRestore, named)
    }

    fn backing_off(&self) -> Vec<Key> {
        let backs_off = |typed: &Typed| {
            let phase = match typed {
                Typed::NonAdminBackup(seen) => seen.object.status.as_ref().and_then(|status| status.phase),
                Typed::NonAdminRestore(seen) => seen.object.status.as_ref().and_then(|status| status.phase),
                Typed::NonAdminDownloadRequest(seen) => {
                    seen.object.status.as_ref().and_then(|status| status.phase)
                }
                Typed::NonAdminBackupStorageLocation(seen) => {
                    seen.object.status.as_ref().and_then(|status| status.phase)
                }
                _ => None,
            };
            phase == Some(Phase::BackingOff)
        };
        let mut keys = self.keys_of(Kind::NonAdminBackup, backs_off);
        keys.extend(self.keys_of(Kind::NonAdminRestore, backs_off));
        keys.extend(self.keys_of(Kind::NonAdminDownloadRequest, backs_off));
        keys.extend(self.keys_of(Kind::NonAdminBackupStorageLocation, backs_off));
        keys
    }

    fn backup_queue(&self) -> &Queue {
        &self.backup_queue
    }

    fn restore_queue(&self) -> &Queue {
        &self.restore_queue
    }

    fn shows_velero(&self) -> bool {
        true
    }

    fn shown(&self, kind: Kind, namespace: &str, name: &str) -> Option<Arc<DynamicObject>> {
        match self.objects.get(&Key::new(kind, namespace, name)).map(|stored| &stored.typed) {
            Some(Typed::Shown(_, object)) => Some(object.clone()),
            _ => None,
        }
    }

    fn shown_in(&self, namespace: &str) -> Vec<Key> {
        self.all_shown().into_iter().filter(|key| key.namespace == namespace).collect()
    }

    fn all_shown(&self) -> Vec<Key> {
        let shown = self.objects.iter().filter(|(_, stored)| matches!(stored.typed, Typed::Shown(..)));
        shown.map(|(key, _)| key.clone()).collect()
    }

    fn viewed(&self) -> Vec<String> {
        let spaces = self.of_kind(Kind::Namespace).map(|(key, _)| key.name.clone());
        spaces.filter(|name| copies::viewed(self, name) == Some(true)).collect()
    }

    fn delete_request(&self, name: &str) -> Option<Arc<DeleteBackupRequest>> {
        read!(self, DeleteBackupRequest, ADMIN, name)
    }

    fn volume(&self, kind: Kind, name: &str) -> Option<DynamicObject> {
        let stored = self.objects.get(&Key::new(kind, ADMIN, name))?;
        serde_json::from_value((*stored.json).clone()).ok()
    }

    fn volumes_of(&self, velero: &str) -> Vec<Key> {
        let ties = [labels::VELERO_BACKUP_NAME, labels::VELERO_RESTORE_NAME];
        let those = self.objects.iter().filter(|(_, stored)| {
            let marks = &stored.json["metadata"]["labels"];
            matches!(stored.typed, Typed::Volume(..)) && ties.iter().any(|tie| marks[*tie] == velero)
        });
        those.map(|(key, _)| key.clone()).collect()
    }
}

impl World {
    /// Keeps the queues and wakes whom a change concerns, and nobody else.
    pub(super) fn changed(&mut self, before: Option<&Typed>, after: Option<&Typed>) {
        let Some(known) = after.or(before) else { return };
        match known {
            Typed::Backup(backup) if after.is_none() => _ = self.backup_queue.gone(&**backup),
            Typed::Backup(backup) => _ = self.backup_queue.note(&**backup, Heard::JustNow),
            Typed::Restore(restore) if after.is_none() => _ = self.restore_queue.gone(&**restore),
            Typed::Restore(restore) => _ = self.restore_queue.note(&**restore, Heard::JustNow),
            _ => {}
        }
        if self.nacre.down {
            return;
        }
        /// Asks about an object as it was and as it is.
        macro_rules! ask {
            ($whom:path, $kind:ident, $object:ident => $read:expr) => {{
                let read = |typed: Option<&Typed>| match typed {
                    Some(Typed::$kind($object)) => Some($read),
                    _ => None,
                };
                $whom(self, read(before).as_deref(), read(after).as_deref())
            }};
        }
        let concerned = match known {
            Typed::Backup(_) => ask!(concern::velero_backup, Backup, velero => velero.clone()),
            Typed::BackupStorageLocation(_) => {
                ask!(concern::storage_location, BackupStorageLocation, storage => storage.clone())
            }
            Typed::ConfigMap(_) => ask!(concern::config_map, ConfigMap, map => map.clone()),
            Typed::DeleteBackupRequest(_) => {
                ask!(concern::delete_request, DeleteBackupRequest, request => request.clone())
            }
            Typed::DownloadRequest(_) => {
                ask!(concern::download_request, DownloadRequest, velero => velero.clone())
            }
            Typed::NonAdminDownloadRequest(_) => {
                ask!(concern::download, NonAdminDownloadRequest, seen => seen.object.clone())
            }
            Typed::Namespace(_) => ask!(concern::namespace, Namespace, namespace => namespace.clone()),
            Typed::NonAdminBackup(_) => ask!(concern::backup, NonAdminBackup, seen => seen.object.clone()),
            Typed::NonAdminBackupStorageLocation(_) => {
                ask!(concern::location, NonAdminBackupStorageLocation, seen => seen.object.clone())
            }
            Typed::NonAdminBackupStorageLocationRequest(_) => {
                ask!(concern::of_location, NonAdminBackupStorageLocationRequest, seen => seen.object.clone())
            }
            // A tenant's own is looked at now and then, which is as good as at once here.
            Typed::Secret(secret) if secret.metadata.namespace.as_deref() != Some(ADMIN) => self.locations(),
            Typed::Secret(_) => ask!(concern::of_location, Secret, secret => secret.clone()),
            Typed::NonAdminRestore(_) => ask!(concern::restore, NonAdminRestore, seen => seen.object.clone()),
            Typed::Restore(_) => ask!(concern::velero_restore, Restore, velero => velero.clone()),
            Typed::Volume(..) => {
                let volume = |typed: Option<&Typed>| match typed {
                    Some(Typed::Volume(_, volume)) => Some(volume.clone()),
                    _ => None,
                };
                concern::volume(self, volume(before).as_deref(), volume(after).as_deref())
            }
            Typed::Shown(kind, _) => {
                let object = |typed: Option<&Typed>| match typed {
                    Some(Typed::Shown(_, object)) => Some(object.clone()),
                    _ => None,
                };
                copies::shown(self, *kind, object(before).as_deref(), object(after).as_deref())
            }
        };
        let (before, after) = (before.map(Typed::meta), after.map(Typed::meta));
        let also = copies::also(self, known.kind(), before.as_ref(), after.as_ref(), &concerned);
        self.wake_concerned(concerned);
        self.wake_concerned(also);
    }

    /// Forgets the queues and learns them from a list, which is in the order of names.
    pub(super) fn list_anew(&mut self) {
        (self.backup_queue, self.restore_queue) = (Queue::default(), Queue::default());
        for stored in self.objects.values() {
            match &stored.typed {
                Typed::Backup(backup) => _ = self.backup_queue.note(&**backup, Heard::InAList),
                Typed::Restore(restore) => _ = self.restore_queue.note(&**restore, Heard::InAList),
                _ => {}
            }
        }
    }

    fn of_kind(&self, kind: Kind) -> impl Iterator<Item = (&Key, &Typed)> {
        let from = Key::new(kind, "", "");
        let those = self.objects.range(from..).take_while(move |(key, _)| key.kind == kind);
        those.map(|(key, stored)| (key, &stored.typed))
    }

    fn keys_of(&self, kind: Kind, fits: impl Fn(&Typed) -> bool) -> Vec<Key> {
        self.of_kind(kind).filter(|(_, typed)| fits(typed)).map(|(key, _)| key.clone()).collect()
    }

    fn volume_phases<'a>(&'a self, kind: Kind, label: &str, owner: &str) -> Vec<&'a str> {
        let those = self.objects.iter().filter(|(key, stored)| {
            key.kind == kind
                && key.namespace == ADMIN
                && stored.json["metadata"]["labels"][label].as_str() == Some(owner)
        });
        those.map(|(_, stored)| stored.json["status"]["phase"].as_str().unwrap_or_default()).collect()
    }
}

impl Typed {
    /// What it is.
    fn kind(&self) -> Kind {
        match self {
            Self::Backup(_) => Kind::Backup,
            Self::BackupStorageLocation(_) => Kind::BackupStorageLocation,
            Self::ConfigMap(_) => Kind::ConfigMap,
            Self::DeleteBackupRequest(_) => Kind::DeleteBackupRequest,
            Self::DownloadRequest(_) => Kind::DownloadRequest,
            Self::Namespace(_) => Kind::Namespace,
            Self::NonAdminBackup(_) => Kind::NonAdminBackup,
            Self::NonAdminBackupStorageLocation(_) => Kind::NonAdminBackupStorageLocation,
            Self::NonAdminDownloadRequest(_) => Kind::NonAdminDownloadRequest,
            Self::NonAdminBackupStorageLocationRequest(_) => Kind::NonAdminBackupStorageLocationRequest,
            Self::NonAdminRestore(_) => Kind::NonAdminRestore,
            Self::Restore(_) => Kind::Restore,
            Self::Secret(_) => Kind::Secret,
            Self::Volume(kind, _) | Self::Shown(kind, _) => *kind,
        }
    }

    fn meta(&self) -> ObjectMeta {
        match self {
            Self::Backup(object) => object.metadata.clone(),
            Self::BackupStorageLocation(object) => object.metadata.clone(),
            Self::ConfigMap(object) => object.metadata.clone(),
            Self::DeleteBackupRequest(object) => object.metadata.clone(),
            Self::DownloadRequest(object) => object.metadata.clone(),
            Self::Namespace(object) => object.metadata.clone(),
            Self::NonAdminBackup(seen) => seen.object.metadata.clone(),
            Self::NonAdminBackupStorageLocation(seen) => seen.object.metadata.clone(),
            Self::NonAdminDownloadRequest(seen) => seen.object.metadata.clone(),
            Self::NonAdminBackupStorageLocationRequest(seen) => seen.object.metadata.clone(),
            Self::NonAdminRestore(seen) => seen.object.metadata.clone(),
            Self::Restore(object) => object.metadata.clone(),
            Self::Secret(object) => object.metadata.clone(),
            Self::Volume(_, object) => object.metadata.clone(),
            Self::Shown(_, object) => object.metadata.clone(),
        }
    }
}
