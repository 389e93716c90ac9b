//! Whom a change concerns: which requests to decide about again when something else changes.

use std::collections::BTreeSet;

use api::velero::{Backup, BackupStorageLocation, DeleteBackupRequest, Restore};
use api::{Kind, NonAdminBackup, NonAdminBackupStorageLocation, NonAdminRestore, Phase, labels};
use k8s_openapi::api::core::v1::Namespace;
use kube::core::ObjectMeta;

use crate::Key;
use crate::ownership::{annotation, label};
use crate::queue::{Stage, stage};
use crate::view::View;

/// A backup request changed: itself, and the restores that wait for it. One that is gone makes room for others.
pub fn backup(view: &impl View, backup: &NonAdminBackup, gone: bool) -> Vec<Key> {
    let mut keys = vec![Key::of(Kind::NonAdminBackup, &backup.metadata)];
    let (namespace, name) = place(&backup.metadata);
    keys.extend(waiting_restores(view, namespace, name));
    if gone {
        keys.extend(refused_backups(view, namespace));
    }
    keys
}

/// A restore request changed: itself.
pub fn restore(restore: &NonAdminRestore) -> Vec<Key> {
    vec![Key::of(Kind::NonAdminRestore, &restore.metadata)]
}

/// A tenant's location changed: the backups that name it and wait.
pub fn location(view: &impl View, location: &NonAdminBackupStorageLocation) -> Vec<Key> {
    let (namespace, name) = place(&location.metadata);
    naming_location(view, namespace, name)
}

/// A Velero Backup changed: whoever refers to it, the restores that wait for it, and, once it is over, the backups
/// that wait for room.
pub fn velero_backup(view: &impl View, velero: &Backup, gone: bool) -> Vec<Key> {
    let mut keys = view.backups_of(velero.metadata.name.as_deref().unwrap_or_default());
    let completed = velero.status.as_ref().is_some_and(|status| status.completion_timestamp.is_some());
    if !gone && stage(velero.phase(), completed) != Stage::Over {
        return keys;
    }
    let owner = annotation(&velero.metadata, labels::NAB_NAMESPACE).map(str::to_owned);
    let mut namespaces = BTreeSet::from_iter(owner);
    for key in keys.clone() {
        keys.extend(waiting_restores(view, &key.namespace, &key.name));
        namespaces.insert(key.namespace);
    }
    keys.extend(namespaces.iter().flat_map(|namespace| refused_backups(view, namespace)));
    keys
}

/// A Velero Restore changed: whoever refers to it.
pub fn velero_restore(view: &impl View, velero: &Restore) -> Vec<Key> {
    view.restores_of(velero.metadata.name.as_deref().unwrap_or_default())
}

/// A request to delete a Velero Backup changed: whoever refers to that.
pub fn delete_request(view: &impl View, request: &DeleteBackupRequest) -> Vec<Key> {
    view.backups_of(&request.spec.backup_name)
}

/// Something about a volume changed: whoever refers to the Velero object it belongs to.
pub fn volume(view: &impl View, meta: &ObjectMeta) -> Vec<Key> {
    let backup = label(meta, labels::VELERO_BACKUP_NAME).map(|name| view.backups_of(name));
    let restore = label(meta, labels::VELERO_RESTORE_NAME).map(|name| view.restores_of(name));
    backup.into_iter().chain(restore).flatten().collect()
}

/// Velero's side of a location changed: of a tenant's, the backups that name it; of any, the restores that wait,
/// for what they restore may be kept there.
pub fn storage_location(view: &impl View, storage: &BackupStorageLocation) -> Vec<Key> {
    let namespace = annotation(&storage.metadata, labels::NABSL_NAMESPACE);
    let name = annotation(&storage.metadata, labels::NABSL_NAME);
    let backups = namespace.zip(name).map(|(namespace, name)| naming_location(view, namespace, name));
    let waiting = view.backing_off().into_iter().filter(|key| {
        key.kind == Kind::NonAdminRestore && namespace.is_none_or(|namespace| key.namespace == namespace)
    });
    backups.into_iter().flatten().chain(waiting).collect()
}

/// A namespace came, changed or is on its way out: every request in it that is not settled.
pub fn namespace(view: &impl View, namespace: &Namespace) -> Vec<Key> {
    let name = namespace.metadata.name.as_deref().unwrap_or_default();
    let backups = view.backups_in(name).into_iter().filter(|seen| !backup_created(&seen.object));
    let restores = view.restores_in(name).into_iter().filter(|seen| !restore_created(&seen.object));
    let backups = backups.map(|seen| Key::of(Kind::NonAdminBackup, &seen.object.metadata));
    backups.chain(restores.map(|seen| Key::of(Kind::NonAdminRestore, &seen.object.metadata))).collect()
}

/// What an administrator allows changed, or a ConfigMap that requests may name: whoever was refused.
pub fn policy(view: &impl View) -> Vec<Key> {
    view.backing_off()
}

fn place(meta: &ObjectMeta) -> (&str, &str) {
    (meta.namespace.as_deref().unwrap_or_default(), meta.name.as_deref().unwrap_or_default())
}

fn naming_location(view: &impl View, namespace: &str, name: &str) -> Vec<Key> {
    let backups = view.backups_in(namespace).into_iter().map(|seen| seen.object);
    let naming = backups.filter(|backup| {
        backup.spec.backup_spec.storage_location.as_deref() == Some(name) && !backup_created(backup)
    });
    naming.map(|backup| Key::of(Kind::NonAdminBackup, &backup.metadata)).collect()
}

fn waiting_restores(view: &impl View, namespace: &str, backup: &str) -> Vec<Key> {
    let restores = view.restores_in(namespace).into_iter().map(|seen| seen.object);
    let waiting = restores.filter(|restore| {
        restore.spec.restore_spec.backup_name.as_deref() == Some(backup) && !restore_created(restore)
    });
    waiting.map(|restore| Key::of(Kind::NonAdminRestore, &restore.metadata)).collect()
}

fn refused_backups(view: &impl View, namespace: &str) -> Vec<Key> {
    let backups = view.backups_in(namespace).into_iter().map(|seen| seen.object);
    let refused = backups
        .filter(|backup| backup.status.as_ref().and_then(|status| status.phase) == Some(Phase::BackingOff));
    refused.map(|backup| Key::of(Kind::NonAdminBackup, &backup.metadata)).collect()
}

fn backup_created(backup: &NonAdminBackup) -> bool {
    backup.status.as_ref().and_then(|status| status.phase) == Some(Phase::Created)
}

fn restore_created(restore: &NonAdminRestore) -> bool {
    restore.status.as_ref().and_then(|status| status.phase) == Some(Phase::Created)
}
