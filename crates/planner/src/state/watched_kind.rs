//! The kinds that are watched, where each is stored, and which requests a change of one affects.

use std::fmt::Debug;

use api::velero::{
    Backup, BackupStorageLocation, DataDownload, DataUpload, DeleteBackupRequest, DownloadRequest,
    PodVolumeBackup, PodVolumeRestore, Restore, Schedule,
};
use api::{
    DataProtectionApplication, Kind, NonAdminBackup, NonAdminBackupStorageLocation,
    NonAdminBackupStorageLocationRequest, NonAdminDownloadRequest, NonAdminRestore, NonAdminSchedule,
};
// The macro below derives the kind from the type's name.
use api::{
    Claim as PersistentVolumeClaim, HiddenSecret as Secret, NodeAgent as DaemonSet, RestoredPod as Pod,
    Volume as PersistentVolume,
};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::Resource;
use kube::core::ObjectMeta;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::store::Store;
use super::{Incoming, Moment, State, Update};
use crate::{Key, affected, dedicated, schedule};

/// A kind that is watched.
pub trait WatchedKind:
    Resource<DynamicType = ()> + Clone + Debug + Default + Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// The kind.
    const KIND: Kind;
    /// The store of its objects.
    fn store(state: &State) -> &Store<Self>;
    /// The store of its objects, to change it.
    fn store_mut(state: &mut State) -> &mut Store<Self>;
    /// Brings the indexes up to date after a change.
    fn index(state: &mut State, before: Option<&Self>, after: Option<&Self>);
    /// The requests that a change affects.
    fn affected(state: &State, before: Option<&Self>, after: Option<&Self>) -> Vec<Key>;

    /// The requests that waited until the watch reports what nacre wrote to this object.
    fn reported(state: &State, meta: &ObjectMeta) -> Vec<Key> {
        if Self::KIND != Kind::NonAdminBackup {
            return Vec::new();
        }
        schedule::reported(state, meta).into_iter().collect()
    }
}

macro_rules! watched_kinds {
    ($($kind:ident in $field:ident, indexed by $index:path, affects $affected:path;)*) => {
        $(
            impl WatchedKind for $kind {
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

                fn affected(state: &State, before: Option<&Self>, after: Option<&Self>) -> Vec<Key> {
                    $affected(state, before, after)
                }
            }
        )*

        impl State {
            /// Whether objects of this kind are kept here.
            pub const fn watches(kind: Kind) -> bool {
                matches!(kind, $(Kind::$kind)|*)
            }

            /// Takes an update about an object of this kind; one that is not watched is ignored.
            pub(super) fn update_kind<O: Incoming>(&mut self, kind: Kind, update: Update<'_, O>, now: Moment) -> Vec<Key> {
                match kind {
                    $(Kind::$kind => self.update_typed::<$kind, O>(update, now),)*
                    _ => Vec::new(),
                }
            }

            /// The metadata of an object as it was last seen or written.
            pub(super) fn meta_of(&self, key: &Key) -> Option<ObjectMeta> {
                match key.kind {
                    $(Kind::$kind => self.$field.get(&key.namespace, &key.name).map(|seen| seen.object.meta().clone()),)*
                    _ => None,
                }
            }
        }
    };
}

watched_kinds! {
    NonAdminBackup in backups, indexed by State::index_backup, affects affected::backup;
    NonAdminRestore in restores, indexed by State::index_restore, affects affected::restore;
    NonAdminDownloadRequest in downloads, indexed by State::index_download, affects affected::download;
    NonAdminSchedule in schedules, indexed by State::index_schedule, affects affected::schedule;
    DownloadRequest in download_requests, indexed by nothing, affects affected::download_request;
    NonAdminBackupStorageLocation in locations, indexed by State::index_location, affects affected::location;
    NonAdminBackupStorageLocationRequest in location_requests, indexed by nothing, affects affected::of_location;
    Secret in secret_copies, indexed by nothing, affects affected::of_location;
    Backup in velero_backups, indexed by State::index_velero_backup, affects affected::velero_backup;
    Restore in velero_restores, indexed by State::queue_restore, affects affected::velero_restore;
    Schedule in velero_schedules, indexed by State::index_velero_schedule, affects affected::velero_schedule;
    BackupStorageLocation in storage_locations, indexed by State::index_storage, affects affected::storage_location;
    DeleteBackupRequest in delete_requests, indexed by State::index_delete_request, affects affected::delete_request;
    Namespace in namespaces, indexed by State::index_namespace, affects affected::namespace;
    ConfigMap in config_maps, indexed by State::index_config_map, affects affected::config_map;
    DataProtectionApplication in applications, indexed by State::index_application, affects affected::application;
    PodVolumeBackup in pod_volume_backups, indexed by State::index_volume, affects affected::volume;
    PodVolumeRestore in pod_volume_restores, indexed by State::index_volume, affects affected::volume;
    DataUpload in data_uploads, indexed by State::index_volume, affects affected::volume;
    DataDownload in data_downloads, indexed by State::index_volume, affects affected::volume;
    PersistentVolumeClaim in claims, indexed by nothing, affects affected::claim;
    PersistentVolume in persistent_volumes, indexed by State::index_persistent_volume, affects affected::persistent_volume;
    Pod in restored_pods, indexed by nothing, affects affected::restored_pod;
    DaemonSet in node_agents, indexed by State::index_node_agent, affects affected::node_agent;
    RoleBinding in velero_bindings, indexed by nothing, affects dedicated::affected;
}

fn nothing<K>(_: &mut State, _: Option<&K>, _: Option<&K>) {}
