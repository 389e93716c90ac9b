//! The indexes over the stores: which requests refer to a Velero object, which volumes belong to one, who backs off.

use std::collections::BTreeSet;

use api::velero::{Backup, BackupStorageLocation, DeleteBackupRequest, Restore, Schedule, VolumeOperation};
use api::{
    Kind, NonAdminBackup, NonAdminBackupStorageLocation, NonAdminDownloadRequest, NonAdminRestore,
    NonAdminSchedule, Phase, Volume, labels,
};
use k8s_openapi::api::core::v1::Namespace;

use super::{State, WatchedKind};
use crate::ownership::{annotation, is_default, label};
use crate::queue::{Queue, Queued, Source};
use crate::{Key, backup, last_good, restore, schedule};

impl State {
    pub(super) fn index_namespace(&mut self, before: Option<&Namespace>, after: Option<&Namespace>) {
        if let Some(name) = after.or(before).and_then(|space| space.metadata.name.clone()) {
            self.review(&name);
            self.note_turns_again(Some(&name));
        }
    }

    pub(super) fn index_backup(&mut self, before: Option<&NonAdminBackup>, after: Option<&NonAdminBackup>) {
        self.totals.shift(before, after);
        let Some(object) = after.or(before) else { return };
        let key = Key::of(Kind::NonAdminBackup, &object.metadata);
        let names = |backup: Option<&NonAdminBackup>| backup.map(backup::references).unwrap_or_default();
        self.references.shift(&key, &names(before), &names(after));
        let run_of = |backup: Option<&NonAdminBackup>| -> Vec<String> {
            let schedule = backup.and_then(|backup| schedule::of_run(&backup.metadata));
            schedule.map(|schedule| place(&key.namespace, schedule)).into_iter().collect()
        };
        self.runs.shift(&key.name, &run_of(before), &run_of(after));
        let stored = |backup: Option<&NonAdminBackup>| {
            let storage = backup.and_then(last_good::stored_in)?;
            run_of(backup).pop().map(|run_of| (storage, run_of))
        };
        self.schedules_stored_in.shift(stored(before), stored(after));
        self.note_results_of_backup(&key, after);
        self.note_phase(&key, after.is_some(), after.and_then(|backup| backup.status.as_ref()?.phase));
        self.place_backup(before, after);
        self.note_backup_turn(before, after);
    }

    pub(super) fn index_restore(
        &mut self,
        before: Option<&NonAdminRestore>,
        after: Option<&NonAdminRestore>,
    ) {
        self.totals.shift(before, after);
        let Some(object) = after.or(before) else { return };
        let key = Key::of(Kind::NonAdminRestore, &object.metadata);
        let names = |restore: Option<&NonAdminRestore>| restore.map(restore::references).unwrap_or_default();
        self.references.shift(&key, &names(before), &names(after));
        self.note_results_of_restore(&key, after);
        let name = key.name.clone();
        let from = |restore: Option<&NonAdminRestore>| -> Vec<String> {
            let backup = restore.and_then(|restore| restore.spec.restore_spec.backup_name.as_deref());
            backup.map(|backup| place(&key.namespace, backup)).into_iter().collect()
        };
        self.restores_from.shift(&name, &from(before), &from(after));
        self.note_phase(&key, after.is_some(), after.and_then(|restore| restore.status.as_ref()?.phase));
        self.note_restore_turn(before, after);
    }

    pub(super) fn index_download(
        &mut self,
        before: Option<&NonAdminDownloadRequest>,
        after: Option<&NonAdminDownloadRequest>,
    ) {
        self.totals.shift(before, after);
        let Some(object) = after.or(before) else { return };
        let key = Key::of(Kind::NonAdminDownloadRequest, &object.metadata);
        self.note_phase(&key, after.is_some(), after.and_then(|request| request.status.as_ref()?.phase));
        self.note_results_of_download(&key, after);
    }

    pub(super) fn index_schedule(
        &mut self,
        before: Option<&NonAdminSchedule>,
        after: Option<&NonAdminSchedule>,
    ) {
        self.totals.shift(before, after);
        let Some(object) = after.or(before) else { return };
        let key = Key::of(Kind::NonAdminSchedule, &object.metadata);
        self.note_phase(&key, after.is_some(), after.and_then(|schedule| schedule.status.as_ref()?.phase));
    }

    pub(super) fn index_velero_schedule(&mut self, before: Option<&Schedule>, after: Option<&Schedule>) {
        let Some(name) = after.or(before).and_then(|velero| velero.metadata.name.clone()) else { return };
        let owner = |velero: Option<&Schedule>| -> Vec<String> {
            let key = velero.and_then(|velero| schedule::origin(&velero.metadata));
            key.map(|key| place(&key.namespace, &key.name)).into_iter().collect()
        };
        self.velero_schedules_for.shift(&name, &owner(before), &owner(after));
    }

    pub(super) fn index_location(
        &mut self,
        before: Option<&NonAdminBackupStorageLocation>,
        after: Option<&NonAdminBackupStorageLocation>,
    ) {
        self.totals.shift(before, after);
        let Some(object) = after.or(before) else { return };
        let key = Key::of(Kind::NonAdminBackupStorageLocation, &object.metadata);
        self.note_phase(&key, after.is_some(), after.and_then(|location| location.status.as_ref()?.phase));
    }

    /// Notes how far nacre has got with a request.
    fn note_phase(&mut self, key: &Key, exists: bool, phase: Option<Phase>) {
        note_in(&mut self.backing_off, key, phase == Some(Phase::BackingOff));
        note_in(&mut self.unsettled, key, exists && phase != Some(Phase::Created));
    }

    pub(super) fn index_velero_backup(&mut self, before: Option<&Backup>, after: Option<&Backup>) {
        if let Some(name) = after.or(before).and_then(|velero| velero.metadata.name.clone()) {
            let tenant = |velero: Option<&Backup>| -> Vec<String> {
                let namespace = velero.and_then(|velero| annotation(&velero.metadata, labels::NAB_NAMESPACE));
                namespace.map(str::to_owned).into_iter().collect()
            };
            self.made_for.shift(&name, &tenant(before), &tenant(after));
            let storage = |velero: Option<&Backup>| -> Vec<String> {
                velero.and_then(|velero| velero.spec.storage_location.clone()).into_iter().collect()
            };
            self.stored_in.shift(&name, &storage(before), &storage(after));
        }
        note(&mut self.backup_queue, self.velero_backups.source(), before, after);
        self.note_standstill(before, after);
        self.note_backup_job(before, after);
        if let Some(velero) = after.or(before) {
            self.place_referring(velero);
        }
        self.account_for_backup(before, after);
    }

    pub(super) fn queue_restore(&mut self, before: Option<&Restore>, after: Option<&Restore>) {
        note(&mut self.restore_queue, self.velero_restores.source(), before, after);
        self.note_finalizing(before, after);
        self.note_restore_job(before, after);
        self.account_for_restore(before, after);
    }

    pub(super) fn index_storage(
        &mut self,
        before: Option<&BackupStorageLocation>,
        after: Option<&BackupStorageLocation>,
    ) {
        self.account_for_storage(before, after);
        let Some(name) = after.or(before).and_then(|storage| storage.metadata.name.clone()) else { return };
        if before.is_none() || after.is_none() {
            self.note_jobs_stored_in(&name);
        }
        self.forget_refused_imports(&name, after);
        if after.is_some_and(is_default) {
            self.default_storage.insert(name);
        } else {
            self.default_storage.remove(&name);
        }
    }

    pub(super) fn index_delete_request(
        &mut self,
        before: Option<&DeleteBackupRequest>,
        after: Option<&DeleteBackupRequest>,
    ) {
        let Some(name) = after.or(before).and_then(|request| request.metadata.name.clone()) else { return };
        let backup = |request: Option<&DeleteBackupRequest>| -> Vec<String> {
            request.map(|request| request.spec.backup_name.clone()).into_iter().collect()
        };
        self.deletions.shift(&name, &backup(before), &backup(after));
    }

    pub(super) fn index_persistent_volume(&mut self, before: Option<&Volume>, after: Option<&Volume>) {
        let (before, after) = (before.and_then(Volume::host_path_of), after.and_then(Volume::host_path_of));
        if before != after {
            before.map(|claim| self.host_paths.remove(claim));
            self.host_paths.extend(after.map(str::to_owned));
        }
    }

    pub(super) fn index_volume<K: WatchedKind + VolumeOperation>(
        &mut self,
        before: Option<&K>,
        after: Option<&K>,
    ) {
        let Some(object) = after.or(before) else { return };
        let key = Key::of(K::KIND, object.meta());
        let owners = |volume: Option<&K>| -> Vec<String> {
            let labels = [labels::VELERO_BACKUP_NAME, labels::VELERO_RESTORE_NAME];
            let named = labels.into_iter().filter_map(|name| label(volume?.meta(), name));
            named.map(str::to_owned).collect()
        };
        let now_of = owners(after);
        self.volumes.shift(&key, &owners(before), &now_of);
        self.note_volume(&key, after, now_of);
        self.account_for_volume(before, after);
    }
}

fn note_in(keys: &mut BTreeSet<Key>, key: &Key, is_in: bool) {
    if !is_in {
        keys.remove(key);
    } else if !keys.contains(key) {
        keys.insert(key.clone());
    }
}

/// What is indexed under an object of a namespace.
pub(super) fn place(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

fn note<K: Queued>(queue: &mut Queue, source: Source, before: Option<&K>, after: Option<&K>) {
    match (before, after) {
        (_, Some(object)) => _ = queue.note(object, source),
        (Some(object), None) => _ = queue.gone(object),
        (None, None) => {}
    }
}
