//! Whom a change concerns, of the objects in tenants' namespaces.

use api::Kind;
use kube::core::{DynamicObject, ObjectMeta};

use super::{kinship, viewed};
use crate::state::State;
use crate::{Key, backup, download, policy, restore};

/// Whom a change concerns beside those requests (`keys`) that it was found to concern: the copies of what became of
/// them. Given is the metadata of what changed as it was and as it is.
pub fn also(
    view: &State,
    kind: Kind,
    before: Option<&ObjectMeta>,
    after: Option<&ObjectMeta>,
    keys: &[Key],
) -> Vec<Key> {
    let Some(meta) = after.or(before).filter(|_| view.shows_velero()) else { return Vec::new() };
    let name = meta.name.as_deref().unwrap_or_default();
    let came_or_went = before.is_none() || after.is_none();
    let mut woken: Vec<_> = keys.iter().filter_map(copy_of).collect();
    match kind {
        Kind::Namespace => woken.extend(within(view, name)),
        Kind::DataProtectionApplication => woken.extend(everything(view)),
        Kind::ConfigMap if name == policy::CONFIG_MAP => woken.extend(everything(view)),
        Kind::DeleteBackupRequest
        | Kind::PodVolumeBackup
        | Kind::PodVolumeRestore
        | Kind::DataUpload
        | Kind::DataDownload => {
            woken.extend(keys.iter().map(|request| Key::new(kind, &request.namespace, name)));
        }
        // What a location is called, and whose what lies in it is.
        Kind::NonAdminBackupStorageLocation | Kind::BackupStorageLocation if came_or_went => {
            let locations = woken.iter().filter(|key| key.kind == Kind::BackupStorageLocation);
            let spaces: Vec<_> = locations.map(|key| key.namespace.clone()).collect();
            woken.extend(spaces.iter().flat_map(|namespace| within(view, namespace)));
        }
        _ => {}
    }
    woken.retain(|key| {
        viewed(view, &key.namespace) != Some(false)
            || view.shown(key.kind, &key.namespace, &key.name).is_some()
    });
    woken
}

/// The copy of what became of a request.
fn copy_of(request: &Key) -> Option<Key> {
    let kind = match request.kind {
        Kind::NonAdminBackup => Kind::Backup,
        Kind::NonAdminRestore => Kind::Restore,
        Kind::NonAdminBackupStorageLocation => Kind::BackupStorageLocation,
        _ => return None,
    };
    Some(Key::new(kind, &request.namespace, &request.name))
}

/// An object in a tenant's namespace, as it was and as it is: itself; if it came or went, what belongs to it.
pub fn shown(
    view: &State,
    kind: Kind,
    before: Option<&DynamicObject>,
    after: Option<&DynamicObject>,
) -> Vec<Key> {
    let Some(object) = after.or(before) else { return Vec::new() };
    let key = Key::of(kind, &object.metadata);
    let uid = |object: Option<&DynamicObject>| object.and_then(|object| object.metadata.uid.clone());
    let mut woken = vec![key.clone()];
    if uid(before) != uid(after) {
        woken.extend(children(view, &key));
        let left = uid(before).filter(|_| kind == Kind::DownloadRequest && after.is_none());
        let left = left.and_then(|uid| view.download_request(&download::velero_name(&uid)));
        woken.extend(left.map(|velero| Key::of(Kind::DownloadRequest, &velero.metadata)));
    }
    woken
}

/// What belongs to a Backup or Restore in a tenant's namespace, or did.
fn children(view: &State, key: &Key) -> Vec<Key> {
    let velero = match key.kind {
        Kind::Backup => view
            .backup(&key.namespace, &key.name)
            .and_then(|request| backup::velero_of(view, &request.object))
            .and_then(|velero| velero.metadata.name.clone()),
        Kind::Restore => view
            .restore(&key.namespace, &key.name)
            .and_then(|request| restore::velero_of(view, &request.object))
            .and_then(|velero| velero.metadata.name.clone()),
        _ => return Vec::new(),
    };
    let here = |child: Key| Key::new(child.kind, &key.namespace, &child.name);
    let mut children: Vec<_> = velero.iter().flat_map(|velero| view.volumes_of(velero)).map(here).collect();
    if key.kind == Kind::Backup {
        let requests = velero.iter().flat_map(|velero| view.delete_requests(velero));
        children.extend(requests.map(|request| here(Key::of(Kind::DeleteBackupRequest, &request.metadata))));
    }
    let mine = |child: &Key| kinship::ties(child.kind).is_some_and(|ties| ties.parent == key.kind);
    children.extend(view.shown_in(&key.namespace).into_iter().filter(mine));
    children
}

/// Everything in a tenant's namespace that may have to be made, changed or removed.
fn within(view: &State, namespace: &str) -> Vec<Key> {
    let backups = view.backups_in(namespace).into_iter();
    let backups = backups.map(|seen| Key::of(Kind::Backup, &seen.object.metadata));
    let restores = view.restores_in(namespace).into_iter();
    let restores = restores.map(|seen| Key::of(Kind::Restore, &seen.object.metadata));
    let locations = view.locations_in(namespace).into_iter();
    let locations = locations.map(|seen| Key::of(Kind::BackupStorageLocation, &seen.object.metadata));
    // What belongs to a backup or restore is woken when the copy of that has come.
    let there = view.shown_in(namespace);
    let mut all: Vec<_> = backups.chain(restores).chain(locations).chain(there).collect();
    let parents = [Kind::Backup, Kind::Restore];
    let present: Vec<_> = all.iter().filter(|key| parents.contains(&key.kind)).cloned().collect();
    all.extend(present.iter().flat_map(|key| children(view, key)));
    all
}

/// Everything in tenants' namespaces that may have to be made, changed or removed.
pub fn everything(view: &State) -> Vec<Key> {
    let mut all: Vec<_> = view.viewed().iter().flat_map(|namespace| within(view, namespace)).collect();
    all.extend(view.all_shown());
    all.sort();
    all.dedup();
    all
}
