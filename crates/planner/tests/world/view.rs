//! What a decision sees of the world, and whom a change concerns.

use std::sync::Arc;

use api::velero::{Backup, BackupStorageLocation, DeleteBackupRequest, Restore};
use api::{
    DataMoverCounts, Kind, NonAdminBackup, NonAdminBackupStorageLocation, NonAdminRestore, Phase,
    PodVolumeCounts, labels,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::core::ObjectMeta;
use planner::queue::{Queue, Stage, stage};
use planner::view::{Seen, View};
use planner::{Key, Policy, backup, concern, restore};

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

    fn policy(&self, _: &str) -> Arc<Policy> {
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
                _ => None,
            };
            phase == Some(Phase::BackingOff)
        };
        let mut keys = self.keys_of(Kind::NonAdminBackup, backs_off);
        keys.extend(self.keys_of(Kind::NonAdminRestore, backs_off));
        keys
    }

    fn backup_queue(&self) -> &Queue {
        &self.backup_queue
    }

    fn restore_queue(&self) -> &Queue {
        &self.restore_queue
    }
}

impl World {
    /// Keeps the queues and wakes whom a change concerns, and nobody else.
    pub(super) fn changed(&mut self, key: &Key, object: &Typed, gone: bool) {
        if key.namespace == ADMIN {
            match object {
                Typed::Backup(backup) => {
                    let over =
                        backup.status.as_ref().is_some_and(|status| status.completion_timestamp.is_some());
                    let stage = stage(backup.phase(), over);
                    keep(&mut self.backup_queue, &backup.metadata, stage, gone);
                }
                Typed::Restore(restore) => {
                    let over =
                        restore.status.as_ref().is_some_and(|status| status.completion_timestamp.is_some());
                    let stage = stage(restore.phase(), over);
                    keep(&mut self.restore_queue, &restore.metadata, stage, gone);
                }
                _ => {}
            }
        }
        let concerned = match object {
            Typed::NonAdminBackup(seen) => concern::backup(self, &seen.object, gone),
            Typed::NonAdminRestore(seen) => concern::restore(&seen.object),
            Typed::NonAdminBackupStorageLocation(seen) => concern::location(self, &seen.object),
            Typed::Namespace(namespace) => concern::namespace(self, namespace),
            // Only the administrators' namespace is watched for the rest.
            _ if key.namespace != ADMIN => Vec::new(),
            Typed::Backup(velero) => concern::velero_backup(self, velero, gone),
            Typed::Restore(velero) => concern::velero_restore(self, velero),
            Typed::DeleteBackupRequest(request) => concern::delete_request(self, request),
            Typed::BackupStorageLocation(storage) => concern::storage_location(self, storage),
            Typed::ConfigMap(_) => concern::policy(self),
            Typed::Volume(meta) => concern::volume(self, meta),
        };
        self.wake_after(key, concerned);
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
            key.kind == kind && stored.json["metadata"]["labels"][label].as_str() == Some(owner)
        });
        those.map(|(_, stored)| stored.json["status"]["phase"].as_str().unwrap_or_default()).collect()
    }
}

fn keep(queue: &mut Queue, meta: &ObjectMeta, stage: Stage, gone: bool) {
    let name = meta.name.as_deref().unwrap_or_default();
    match meta.creation_timestamp.as_ref() {
        Some(made) if !gone && matches!(stage, Stage::Waiting | Stage::Running) => queue.enter(name, made.0),
        _ => queue.leave(name),
    };
}
