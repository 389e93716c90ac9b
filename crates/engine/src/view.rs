//! What decisions see of the cluster: every look-up goes to a store or an index, by name.

use std::sync::Arc;

use api::velero::{
    Backup, BackupStorageLocation, DataDownload, DataUpload, DeleteBackupRequest, DownloadRequest,
    PodVolumeBackup, PodVolumeRestore, Restore, VolumeStatus,
};
use api::{
    DataMoverCounts, HiddenSecret, Kind, NonAdminBackup, NonAdminBackupStorageLocation,
    NonAdminBackupStorageLocationRequest, NonAdminDownloadRequest, NonAdminRestore, PodVolumeCounts,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Resource;
use kube::core::DynamicObject;
use planner::queue::Queue;
use planner::view::{Credential, Seen, View};
use planner::{Key, Policy, Trouble};

use crate::cluster::State;
use crate::credentials::Named;
use crate::kept::Kept;

impl State {
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

    fn trouble(&self, key: &Key) -> Option<Arc<Trouble>> {
        self.troubles.get(key).cloned()
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

    fn default_storage(&self) -> Option<Arc<BackupStorageLocation>> {
        self.admin(self.default_storage.first()?)
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

#[cfg(test)]
mod tests {
    use api::labels;
    use planner::view::View as _;
    use serde_json::json;

    use super::BackupStorageLocation;
    use crate::cluster::Cluster;
    use crate::guard::Told;

    #[test]
    fn the_default_location_is_known_by_name_and_is_never_a_tenants() {
        let cluster = Cluster::new("velero");
        let tell = |name: &str, version: u64, default: bool, tenant: bool| {
            let mut metadata = json!({"name": name, "namespace": "velero", "uid": name, "resourceVersion": version.to_string()});
            if tenant {
                metadata["labels"] = json!({labels::NABSL_NACUUID: name});
                metadata["annotations"] = json!({labels::NABSL_NAMESPACE: "shop"});
            }
            let text = json!({"apiVersion": "velero.io/v1", "kind": "BackupStorageLocation", "metadata": metadata,
                "spec": {"provider": "aws", "objectStorage": {"bucket": "b"}, "default": default}});
            cluster.change(|state| state.told::<BackupStorageLocation>(&Told::new(&text.to_string())));
        };
        let found = || cluster.look().default_storage().and_then(|storage| storage.metadata.name.clone());
        tell("a-tenants", 1, true, true);
        tell("other", 2, false, false);
        assert_eq!(found(), None);
        tell("own", 3, true, false);
        assert_eq!(found().as_deref(), Some("own"));
        tell("own", 4, false, false);
        tell("other", 5, true, false);
        assert_eq!(found().as_deref(), Some("other"));
    }
}
