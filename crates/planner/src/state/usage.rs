//! What each namespace uses, kept current with Velero's objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::Kind;
use api::velero::{Backup, BackupStorageLocation, DataUpload, PodVolumeBackup, Restore, VolumeOperation};
use k8s_openapi::api::core::v1::ConfigMap;

use super::{State, WatchedKind};
use crate::ownership::tenant_of;
use crate::usage::{
    Job, Owner, RECORD, SavedVolume, Span, Usage, day, job, owner_of_backup, owner_of_restore,
};
use crate::{Action, Key};

impl State {
    /// What a namespace uses.
    pub fn usage(&self, namespace: &str) -> Usage {
        let uid = self.namespace(namespace).and_then(|space| space.metadata.uid.clone());
        self.usage.usage(namespace, uid.as_deref(), self.now)
    }

    /// What all namespaces use that use something.
    pub fn all_usage(&self) -> BTreeMap<String, Usage> {
        let all = self.usage.namespaces().map(|name| (name.to_owned(), self.usage(name)));
        all.filter(|(_, usage)| *usage != Usage::default()).collect()
    }

    /// The write that keeps what deleted objects used today, if there is something new.
    pub fn usage_record_write(&self) -> Option<Action> {
        let found: Option<Arc<ConfigMap>> = self.admin(RECORD);
        self.usage.record(&self.admin_namespace, day(self.now), found.as_deref())
    }

    pub(super) fn read_usage_record(&mut self, map: &ConfigMap) {
        if map.metadata.name.as_deref() == Some(RECORD) {
            self.usage.read(map);
        }
    }

    pub(super) fn account_for_backup(&mut self, before: Option<&Backup>, after: Option<&Backup>) {
        let Some(name) = after.or(before).and_then(|velero| velero.metadata.name.clone()) else { return };
        let was = before.and_then(|velero| Counted::of(velero, self.location_of(velero).as_deref()));
        let is = after.and_then(|velero| Counted::of(velero, self.location_of(velero).as_deref()));
        self.move_backup(&name, was.as_ref(), is.as_ref(), after.is_none());
    }

    pub(super) fn account_for_restore(&mut self, before: Option<&Restore>, after: Option<&Restore>) {
        let Some(name) = after.or(before).and_then(|velero| velero.metadata.name.clone()) else { return };
        let of = |velero: &Restore| {
            owner_of_restore(velero).map(|owner| job(velero, owner, false, false, Span::of_restore(velero)))
        };
        let (was, is) = (before.and_then(of), after.and_then(of));
        match (&was, after) {
            (Some(was), None) => self.usage.delete(Kind::Restore, &name, was, self.now),
            _ => self.usage.shift(Kind::Restore, &name, was.as_ref(), is.as_ref()),
        }
    }

    /// A location came, went, or became somebody else's: so did the backups in it.
    pub(super) fn account_for_storage(
        &mut self,
        before: Option<&BackupStorageLocation>,
        after: Option<&BackupStorageLocation>,
    ) {
        if before.map(tenant_of) == after.map(tenant_of) {
            return;
        }
        let Some(location) = after.or(before).and_then(|storage| storage.metadata.name.clone()) else {
            return;
        };
        for name in self.velero_backups_stored_in(&location) {
            let Some(velero) = self.admin::<Backup>(&name) else { continue };
            let (was, is) = (Counted::of(&velero, before), Counted::of(&velero, after));
            // With its location, a tenant could otherwise remove what Velero worked for it.
            let is_lost = is.is_none() && was.as_ref().is_some_and(|was| !was.job.here);
            self.move_backup(&name, was.as_ref(), is.as_ref(), is_lost);
        }
    }

    pub(super) fn account_for_volume<K: WatchedKind + VolumeOperation>(
        &mut self,
        before: Option<&K>,
        after: Option<&K>,
    ) {
        if !matches!(K::KIND, Kind::PodVolumeBackup | Kind::DataUpload) {
            return;
        }
        for (volume, is_there) in [(before, false), (after, true)] {
            let saved = volume.and_then(|volume| Some((Saved::of(volume)?, volume.owner_uid()?)));
            let Some((saved, uid)) = saved else { continue };
            let velero = self.admin::<Backup>(&saved.backup);
            let velero = velero.filter(|velero| velero.metadata.uid.as_deref() == Some(uid));
            let counted =
                velero.and_then(|velero| Counted::of(&velero, self.location_of(&velero).as_deref()));
            if let Some(counted) = counted.filter(|counted| counted.job.here) {
                self.count_volume(&counted.job.owner, &saved, is_there);
            }
        }
    }

    /// Moves a Velero Backup, and what it has in the platform's storage, from one account to another.
    fn move_backup(&mut self, name: &str, was: Option<&Counted>, is: Option<&Counted>, is_gone: bool) {
        match was {
            Some(was) if is_gone => self.usage.delete(Kind::Backup, name, &was.job, self.now),
            _ => self.usage.shift(
                Kind::Backup,
                name,
                was.map(|counted| &counted.job),
                is.map(|counted| &counted.job),
            ),
        }
        if was.map(Counted::place) == is.map(Counted::place) {
            return;
        }
        for (counted, is_there) in [(was, false), (is, true)] {
            let Some(counted) = counted.filter(|counted| counted.job.here) else { continue };
            for saved in self.saved_volumes(name, &counted.uid) {
                self.count_volume(&counted.job.owner, &saved, is_there);
            }
        }
    }

    fn count_volume(&mut self, owner: &Owner, saved: &Saved, is_there: bool) {
        if is_there {
            self.usage.add_volume(owner, &saved.claim, saved.at.clone(), saved.volume);
        } else {
            self.usage.remove_volume(owner, &saved.claim, &saved.at);
        }
    }

    fn saved_volumes(&self, backup: &str, uid: &str) -> Vec<Saved> {
        let files = self.volume_operations::<PodVolumeBackup>(backup, uid);
        let moved = self.volume_operations::<DataUpload>(backup, uid);
        let files = files.iter().filter_map(|volume| Saved::of(volume.as_ref()));
        files.chain(moved.iter().filter_map(|volume| Saved::of(volume.as_ref()))).collect()
    }

    fn location_of(&self, velero: &Backup) -> Option<Arc<BackupStorageLocation>> {
        velero.spec.storage_location.as_deref().and_then(|name| self.admin::<BackupStorageLocation>(name))
    }
}

/// A Velero Backup that counts.
struct Counted {
    job: Job,
    uid: String,
}

impl Counted {
    fn of(velero: &Backup, location: Option<&BackupStorageLocation>) -> Option<Self> {
        let (owner, here) = owner_of_backup(velero, location)?;
        let uid = velero.metadata.uid.clone().unwrap_or_default();
        Some(Self { job: job(velero, owner, true, here, Span::of_backup(velero)), uid })
    }

    /// What its volumes depend on.
    fn place(&self) -> (&Owner, bool, &str) {
        (&self.job.owner, self.job.here, &self.uid)
    }
}

/// A volume that was saved, and where it stands among the others of its claim.
struct Saved {
    backup: String,
    claim: String,
    at: (Option<jiff::Timestamp>, String),
    volume: SavedVolume,
}

impl Saved {
    fn of<K: WatchedKind + VolumeOperation>(object: &K) -> Option<Self> {
        if !object.is_completed() {
            return None;
        }
        let Key { name, .. } = Key::of(K::KIND, object.meta());
        let backup = object.meta().labels.as_ref()?.get(api::labels::VELERO_BACKUP_NAME)?.clone();
        // A volume without a claim, such as an emptyDir, is another one each time.
        let claim = object.claim_uid().map_or_else(|| name.clone(), str::to_owned);
        let volume = SavedVolume::reported(object.progress().total, object.new_bytes());
        Some(Self { backup, claim, at: (object.started(), name), volume })
    }
}
