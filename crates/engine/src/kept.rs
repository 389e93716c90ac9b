//! The kinds that are watched, where each is kept, and whom a change of one concerns.

use std::fmt::Debug;

use api::velero::{
    Backup, BackupStorageLocation, DataDownload, DataUpload, DeleteBackupRequest, DownloadRequest,
    PodVolumeBackup, PodVolumeRestore, Restore,
};
use api::{
    DataProtectionApplication, Kind, NonAdminBackup, NonAdminBackupStorageLocation,
    NonAdminBackupStorageLocationRequest, NonAdminDownloadRequest, NonAdminRestore,
};
// Kinds go by the names of their types.
use api::HiddenSecret as Secret;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Resource;
use planner::{Key, concern};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::cluster::State;
use crate::store::Store;

/// A kind that is watched.
pub trait Kept:
    Resource<DynamicType = ()> + Clone + Debug + Default + Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// Its name.
    const KIND: Kind;
    /// Where it is kept.
    fn store(state: &State) -> &Store<Self>;
    /// Where it is kept.
    fn store_mut(state: &mut State) -> &mut Store<Self>;
    /// Brings the indexes up to date.
    fn index(state: &mut State, before: Option<&Self>, after: Option<&Self>);
    /// Whom a change concerns.
    fn concerned(state: &State, before: Option<&Self>, after: Option<&Self>) -> Vec<Key>;
}

macro_rules! kept {
    ($($kind:ident in $field:ident, indexed by $index:path, concerns $concern:path;)*) => {
        $(
            impl Kept for $kind {
                const KIND: Kind = Kind::$kind;

                fn store(state: &State) -> &Store<Self> {
                    &state.$field
                }

                fn store_mut(state: &mut State) -> &mut Store<Self> {
                    &mut state.$field
                }

                fn index(state: &mut State, before: Option<&Self>, after: Option<&Self>) {
                    $index(state, before, after);
                }

                fn concerned(state: &State, before: Option<&Self>, after: Option<&Self>) -> Vec<Key> {
                    $concern(state, before, after)
                }
            }
        )*
    };
}

kept! {
    NonAdminBackup in backups, indexed by State::index_backup, concerns concern::backup;
    NonAdminRestore in restores, indexed by State::index_restore, concerns concern::restore;
    NonAdminDownloadRequest in downloads, indexed by State::index_download, concerns concern::download;
    DownloadRequest in download_requests, indexed by nothing, concerns concern::download_request;
    NonAdminBackupStorageLocation in locations, indexed by State::index_location, concerns concern::location;
    NonAdminBackupStorageLocationRequest in location_requests, indexed by nothing, concerns concern::of_location;
    Secret in secret_copies, indexed by nothing, concerns concern::of_location;
    Backup in velero_backups, indexed by State::queue_backup, concerns concern::velero_backup;
    Restore in velero_restores, indexed by State::queue_restore, concerns concern::velero_restore;
    BackupStorageLocation in storage_locations, indexed by State::index_storage, concerns concern::storage_location;
    DeleteBackupRequest in delete_requests, indexed by State::index_delete_request, concerns concern::delete_request;
    Namespace in namespaces, indexed by State::index_namespace, concerns concern::namespace;
    ConfigMap in config_maps, indexed by State::index_config_map, concerns concern::config_map;
    DataProtectionApplication in applications, indexed by State::index_application, concerns concern::application;
    PodVolumeBackup in pod_volume_backups, indexed by State::index_volume, concerns concern::volume;
    PodVolumeRestore in pod_volume_restores, indexed by State::index_volume, concerns concern::volume;
    DataUpload in data_uploads, indexed by State::index_volume, concerns concern::volume;
    DataDownload in data_downloads, indexed by State::index_volume, concerns concern::volume;
}

fn nothing<K>(_: &mut State, _: Option<&K>, _: Option<&K>) {}
