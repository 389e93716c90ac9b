//! What decisions look up about volumes: Velero's objects about each, by the Backup or Restore they belong to.

use std::sync::Arc;

use api::velero::{
    DataDownload, DataUpload, PodVolumeBackup, PodVolumeRestore, VolumeOperation, VolumeStatus,
};
use api::{DataMoverCounts, Kind, PodVolumeCounts};
use kube::core::DynamicObject;

use super::{State, WatchedKind};
use crate::Key;

impl State {
    /// How far the volumes of this Velero Backup are.
    pub fn backup_volumes(&self, backup: &str) -> (PodVolumeCounts, DataMoverCounts) {
        let velero = self.velero_backup(backup);
        let owner = (backup, velero.as_deref().and_then(|velero| velero.metadata.uid.as_deref()));
        let files = self.phases::<PodVolumeBackup>(owner, |volume| volume.status.as_ref());
        let moved = self.phases::<DataUpload>(owner, |volume| volume.status.as_ref());
        (
            PodVolumeCounts::of(files.iter().map(String::as_str)),
            DataMoverCounts::of(moved.iter().map(String::as_str)),
        )
    }

    /// How far the volumes of this Velero Restore are.
    pub fn restore_volumes(&self, restore: &str) -> (PodVolumeCounts, DataMoverCounts) {
        let velero = self.velero_restore(restore);
        let owner = (restore, velero.as_deref().and_then(|velero| velero.metadata.uid.as_deref()));
        let files = self.phases::<PodVolumeRestore>(owner, |volume| volume.status.as_ref());
        let moved = self.phases::<DataDownload>(owner, |volume| volume.status.as_ref());
        (
            PodVolumeCounts::of(files.iter().map(String::as_str)),
            DataMoverCounts::of(moved.iter().map(String::as_str)),
        )
    }

    /// The objects of one kind about the volumes of a Velero Backup or Restore. The name alone may be forged in a
    /// tenant's bucket, so the uid counts too.
    pub fn volume_operations<K: WatchedKind + VolumeOperation>(&self, name: &str, uid: &str) -> Vec<Arc<K>> {
        let of_kind = self.volumes.under(name).filter(|key| key.kind == K::KIND);
        let volumes = of_kind.filter_map(|key| K::store(self).get(&key.namespace, &key.name));
        volumes.filter(|seen| seen.object.owner_uid() == Some(uid)).map(|seen| seen.object).collect()
    }

    /// An object of Velero about a volume.
    pub fn volume(&self, kind: Kind, name: &str) -> Option<DynamicObject> {
        self.whole_volume(kind, name)
    }

    /// The objects about the volumes of this Velero Backup or Restore.
    pub fn volumes_of(&self, velero: &str) -> Vec<Key> {
        self.volumes.under(velero).cloned().collect()
    }

    /// The phases of the volumes of one kind that belong to a Velero object. One that says it belongs to another object
    /// of that name was forged in a tenant's bucket.
    fn phases<K: WatchedKind + VolumeOperation>(
        &self,
        (owner, uid): (&str, Option<&str>),
        status: fn(&K) -> Option<&VolumeStatus>,
    ) -> Vec<String> {
        let of_kind = self.volumes.under(owner).filter(|key| key.kind == K::KIND);
        let volumes =
            of_kind.filter_map(|key| K::store(self).get(&key.namespace, &key.name)).filter(|seen| {
                let claimed = seen.object.owner_uid();
                claimed.is_none() || uid.is_none() || claimed == uid
            });
        volumes
            .map(|volume| status(&volume.object).and_then(|status| status.phase.clone()).unwrap_or_default())
            .collect()
    }
}
