//! What a decision may look at: the cluster as it was last seen.

use std::sync::Arc;

use api::velero::{Backup, BackupStorageLocation, DeleteBackupRequest, DownloadRequest, Restore};
use api::{
    DataMoverCounts, NonAdminBackup, NonAdminBackupStorageLocation, NonAdminDownloadRequest, NonAdminRestore,
    PodVolumeCounts,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};

use crate::queue::Queue;
use crate::{Key, Policy};

/// A tenant's object as it was seen. One that cannot be read has its metadata and what could be saved of its
/// status, and says what is wrong with it, so that it can still be refused plainly and deleted.
#[derive(Debug, PartialEq)]
pub struct Seen<K> {
    /// The object, or what is left of it.
    pub object: Arc<K>,
    /// Why it could not be read.
    pub unreadable: Option<Arc<str>>,
}

impl<K> Clone for Seen<K> {
    fn clone(&self) -> Self {
        Self { object: self.object.clone(), unreadable: self.unreadable.clone() }
    }
}

/// The cluster as it was last seen: the engine's stores, or a world in memory. Every look-up goes by name; none
/// lists more than one namespace or what belongs to one object.
pub trait View {
    /// The namespace of Velero and the administrators.
    fn admin_namespace(&self) -> &str;
    /// The time of this look.
    fn now(&self) -> Timestamp;
    /// What an administrator allows in this namespace; none while that is not known. Then nothing new is begun.
    fn policy(&self, namespace: &str) -> Option<Arc<Policy>>;
    /// A namespace.
    fn namespace(&self, name: &str) -> Option<Arc<Namespace>>;
    /// A ConfigMap of the administrators.
    fn config_map(&self, name: &str) -> Option<Arc<ConfigMap>>;

    /// A tenant's backup request.
    fn backup(&self, namespace: &str, name: &str) -> Option<Seen<NonAdminBackup>>;
    /// All of a tenant's backup requests.
    fn backups_in(&self, namespace: &str) -> Vec<Seen<NonAdminBackup>>;
    /// A tenant's restore request.
    fn restore(&self, namespace: &str, name: &str) -> Option<Seen<NonAdminRestore>>;
    /// All of a tenant's restore requests.
    fn restores_in(&self, namespace: &str) -> Vec<Seen<NonAdminRestore>>;
    /// A tenant's storage location.
    fn location(&self, namespace: &str, name: &str) -> Option<Seen<NonAdminBackupStorageLocation>>;

    /// A tenant's request for a download.
    fn download(&self, namespace: &str, name: &str) -> Option<Seen<NonAdminDownloadRequest>>;
    /// All of a tenant's requests for downloads.
    fn downloads_in(&self, namespace: &str) -> Vec<Seen<NonAdminDownloadRequest>>;

    /// A Velero Backup.
    fn velero_backup(&self, name: &str) -> Option<Arc<Backup>>;
    /// A Velero Restore.
    fn velero_restore(&self, name: &str) -> Option<Arc<Restore>>;
    /// A Velero BackupStorageLocation.
    fn storage_location(&self, name: &str) -> Option<Arc<BackupStorageLocation>>;
    /// A Velero DownloadRequest.
    fn download_request(&self, name: &str) -> Option<Arc<DownloadRequest>>;
    /// The requests to delete this Velero Backup, oldest first.
    fn delete_requests(&self, backup: &str) -> Vec<Arc<DeleteBackupRequest>>;
    /// How far the volumes of this Velero Backup are.
    fn backup_volumes(&self, backup: &str) -> (PodVolumeCounts, DataMoverCounts);
    /// How far the volumes of this Velero Restore are.
    fn restore_volumes(&self, restore: &str) -> (PodVolumeCounts, DataMoverCounts);
    /// The backup requests that refer to this Velero Backup, by name alone.
    fn backups_of(&self, velero_backup: &str) -> Vec<Key>;
    /// The restore requests that refer to this Velero Restore, by name alone.
    fn restores_of(&self, velero_restore: &str) -> Vec<Key>;
    /// Every request that was refused or waits for something, in all namespaces.
    fn backing_off(&self) -> Vec<Key>;
    /// The unfinished Velero Backups in order.
    fn backup_queue(&self) -> &Queue;
    /// The unfinished Velero Restores in order.
    fn restore_queue(&self) -> &Queue;
}
