//! What a decision may look at: the cluster as it was last seen.

use std::sync::Arc;

use api::velero::{Backup, BackupStorageLocation, DeleteBackupRequest, DownloadRequest, Restore};
use api::{
    DataMoverCounts, Hidden, HiddenSecret, Kind, NonAdminBackup, NonAdminBackupStorageLocation,
    NonAdminBackupStorageLocationRequest, NonAdminDownloadRequest, NonAdminRestore, PodVolumeCounts,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::core::DynamicObject;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::queue::Queue;
use crate::{Key, Policy, Trouble};

/// A tenant's object as it was seen. One that cannot be read has its metadata and what could be saved of its
/// status, and says what is wrong with it, so that it can still be refused plainly and deleted.
#[derive(Debug, PartialEq)]
pub struct Seen<K> {
    /// The object, or what is left of it.
    pub object: Arc<K>,
    /// Why it could not be read.
    pub unreadable: Option<Arc<str>>,
}

impl<K: DeserializeOwned + Serialize + Default> Seen<K> {
    /// Reads an object, or what can be saved of it.
    pub fn read(given: &Value) -> Self {
        let (object, unreadable) = read(given);
        Self { object: Arc::new(object), unreadable: unreadable.map(Arc::from) }
    }
}

/// Reads an object; or what can be saved of it, and what is wrong with it.
pub fn read<K: DeserializeOwned + Serialize + Default>(given: &Value) -> (K, Option<String>) {
    // Reading by reference leaves the value for a second try, and costs the sound ones nothing.
    let error = match K::deserialize(given) {
        Ok(object) => return (object, None),
        Err(error) => error.to_string(),
    };
    // Keep the status if it can be read without the spec, else at least the metadata.
    let saved = [&["metadata", "status"][..], &["metadata"]].into_iter().find_map(|kept| {
        let mut blank = serde_json::to_value(K::default()).ok()?;
        for name in kept {
            blank[*name] = given[*name].clone();
        }
        K::deserialize(&blank).ok()
    });
    (saved.unwrap_or_default(), Some(error))
}

impl<K> Clone for Seen<K> {
    fn clone(&self) -> Self {
        Self { object: self.object.clone(), unreadable: self.unreadable.clone() }
    }
}

/// What was found of a tenant's credential. Tenants' Secrets are not watched; each that is named is looked at now and
/// then, and only the key that is needed is kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Credential {
    /// Nobody has looked yet.
    #[default]
    Unseen,
    /// nacre may not look.
    Withheld,
    /// There is no such Secret, or no such key in it, as far as is known since then.
    Missing(Timestamp),
    /// What the key holds.
    Found(Arc<Hidden>),
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
    /// All of a tenant's storage locations.
    fn locations_in(&self, namespace: &str) -> Vec<Seen<NonAdminBackupStorageLocation>>;
    /// What one key of a tenant's Secret holds.
    fn credential(&self, namespace: &str, secret: &str, key: &str) -> Credential;
    /// What an administrator decides about a tenant's location.
    fn location_request(&self, name: &str) -> Option<Seen<NonAdminBackupStorageLocationRequest>>;
    /// A tenant's credential as Velero has it.
    fn secret_copy(&self, name: &str) -> Option<Arc<HiddenSecret>>;
    /// What was wanted for this object when it was last decided about, and was not taken by the API server.
    fn trouble(&self, key: &Key) -> Option<Arc<Trouble>>;
    /// Velero's version, if it has told.
    fn velero_version(&self) -> Option<String>;

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

    /// Every tenant's storage location.
    fn locations(&self) -> Vec<Key>;
    /// The location of the administrators' that Velero uses for what names none, if one says that it is the default.
    fn default_storage(&self) -> Option<Arc<BackupStorageLocation>>;
    /// Every Velero BackupStorageLocation.
    fn storage_locations(&self) -> Vec<Arc<BackupStorageLocation>>;
    /// Every Velero Backup. These and the rest are for what is done now and then and looks at everything.
    fn velero_backups(&self) -> Vec<Arc<Backup>>;
    /// Every Velero Restore.
    fn velero_restores(&self) -> Vec<Arc<Restore>>;
    /// Every request to delete a Velero Backup.
    fn all_delete_requests(&self) -> Vec<Arc<DeleteBackupRequest>>;
    /// Everything an administrator decides about.
    fn location_requests(&self) -> Vec<Seen<NonAdminBackupStorageLocationRequest>>;
    /// Every tenant's credential as Velero has it.
    fn secret_copies(&self) -> Vec<Arc<HiddenSecret>>;

    /// Whether what there is of Velero's kinds in tenants' namespaces is known. Where nobody is to see it, nobody looks,
    /// and this and the rest say nothing.
    fn shows_velero(&self) -> bool {
        false
    }
    /// An object of Velero's kinds in a tenant's namespace, whoever wrote it.
    fn shown(&self, _kind: Kind, _namespace: &str, _name: &str) -> Option<Arc<DynamicObject>> {
        None
    }
    /// All objects of Velero's kinds in a tenant's namespace.
    fn shown_in(&self, _namespace: &str) -> Vec<Key> {
        Vec::new()
    }
    /// All objects of Velero's kinds in tenants' namespaces.
    fn all_shown(&self) -> Vec<Key> {
        Vec::new()
    }
    /// The namespaces whose owners are to see Velero's objects.
    fn viewed(&self) -> Vec<String> {
        Vec::new()
    }
    /// A request to delete a Velero Backup.
    fn delete_request(&self, _name: &str) -> Option<Arc<DeleteBackupRequest>> {
        None
    }
    /// What Velero does about a volume.
    fn volume(&self, _kind: Kind, _name: &str) -> Option<DynamicObject> {
        None
    }
    /// What Velero does about the volumes of this Velero Backup or Restore.
    fn volumes_of(&self, _velero: &str) -> Vec<Key> {
        Vec::new()
    }
}
