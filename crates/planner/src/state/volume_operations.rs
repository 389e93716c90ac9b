//! What decisions look up about volumes: Velero's objects about each, by the Backup or Restore they belong to.

use std::sync::Arc;

use api::velero::{
    Backup, DataDownload, DataUpload, PodVolumeBackup, PodVolumeRestore, Restore, VolumeOperation,
};
use api::{DataMoverCounts, Kind, PodVolumeCounts};
use kube::core::DynamicObject;

use super::{State, WatchedKind};
use crate::Key;

impl State {
    /// How far the volumes of this Velero Backup are.
    pub fn backup_volumes(&self, backup: &str) -> (PodVolumeCounts, DataMoverCounts) {
        let velero = self.admin::<Backup>(backup);
        let uid = velero.as_deref().and_then(|velero| velero.metadata.uid.as_deref());
        self.counts::<PodVolumeBackup, DataUpload>(backup, uid)
    }

    /// How far the volumes of this Velero Restore are.
    pub fn restore_volumes(&self, restore: &str) -> (PodVolumeCounts, DataMoverCounts) {
        let velero = self.admin::<Restore>(restore);
        let uid = velero.as_deref().and_then(|velero| velero.metadata.uid.as_deref());
        self.counts::<PodVolumeRestore, DataDownload>(restore, uid)
    }

    /// The objects of one kind about the volumes of a Velero Backup or Restore. The name alone may be forged in a
    /// tenant's bucket, so the uid counts too.
    pub fn volume_operations<K: WatchedKind + VolumeOperation>(&self, name: &str, uid: &str) -> Vec<Arc<K>> {
        self.named_after(name).filter(|volume: &Arc<K>| volume.owner_uid() == Some(uid)).collect()
    }

    /// An object of Velero about a volume.
    pub fn volume(&self, kind: Kind, name: &str) -> Option<DynamicObject> {
        self.whole_volume(kind, name)
    }

    /// The objects about the volumes of this Velero Backup or Restore.
    pub fn volumes_of(&self, velero: &str) -> Vec<Key> {
        self.volumes.under(velero).cloned().collect()
    }

    /// How far the volumes of a Velero object are, saved file by file and by the data mover.
    fn counts<F, M>(&self, owner: &str, uid: Option<&str>) -> (PodVolumeCounts, DataMoverCounts)
    where
        F: WatchedKind + VolumeOperation,
        M: WatchedKind + VolumeOperation,
    {
        let (files, moved) = (self.phases::<F>(owner, uid), self.phases::<M>(owner, uid));
        (
            PodVolumeCounts::of(files.iter().map(String::as_str)),
            DataMoverCounts::of(moved.iter().map(String::as_str)),
        )
    }

    /// The phases of the volumes of one kind that belong to a Velero object. One that says it belongs to another object
    /// of that name was forged in a tenant's bucket.
    fn phases<K: WatchedKind + VolumeOperation>(&self, owner: &str, uid: Option<&str>) -> Vec<String> {
        let volumes = self.named_after(owner).filter(|volume: &Arc<K>| {
            let claimed = volume.owner_uid();
            claimed.is_none() || uid.is_none() || claimed == uid
        });
        volumes
            .map(|volume| volume.volume_status().and_then(|status| status.phase.clone()).unwrap_or_default())
            .collect()
    }

    /// The objects of one kind that name this Velero object.
    fn named_after<K: WatchedKind>(&self, owner: &str) -> impl Iterator<Item = Arc<K>> {
        let of_kind = self.volumes.under(owner).filter(|key| key.kind == K::KIND);
        of_kind.filter_map(|key| K::store(self).get(&key.namespace, &key.name)).map(|seen| seen.object)
    }
}
