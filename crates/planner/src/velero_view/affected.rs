//! Which objects in tenant namespaces a change affects.

use api::velero::DownloadRequest;
use api::{Kind, NonAdminBackup, NonAdminBackupStorageLocation, NonAdminRestore, NonAdminSchedule};
use kube::core::{DynamicObject, ObjectMeta};

use super::{enabled_in, related};
use crate::state::State;
use crate::{Key, backup, download, policy, restore};

/// The copies that a change affects, in addition to the affected requests (`keys`). `before` and `after` are the
/// metadata of the changed object.
pub fn affected(
    view: &State,
    kind: Kind,
    before: Option<&ObjectMeta>,
    after: Option<&ObjectMeta>,
    keys: &[Key],
) -> Vec<Key> {
    let Some(meta) = after.or(before).filter(|_| view.velero_view_active()) else { return Vec::new() };
    let name = meta.name.as_deref().unwrap_or_default();
    let came_or_went = before.is_none() || after.is_none();
    let mut affected: Vec<_> = keys.iter().filter_map(copy_of).collect();
    match kind {
        Kind::Namespace => affected.extend(within(view, name)),
        Kind::DataProtectionApplication => affected.extend(everything(view)),
        Kind::ConfigMap if name == policy::CONFIG_MAP => affected.extend(everything(view)),
        Kind::DeleteBackupRequest
        | Kind::PodVolumeBackup
        | Kind::PodVolumeRestore
        | Kind::DataUpload
        | Kind::DataDownload => {
            affected.extend(keys.iter().map(|request| Key::new(kind, &request.namespace, name)));
        }
        // What a location is called, and whose what lies in it is.
        Kind::NonAdminBackupStorageLocation | Kind::BackupStorageLocation if came_or_went => {
            let locations = affected.iter().filter(|key| key.kind == Kind::BackupStorageLocation);
            let spaces: Vec<_> = locations.map(|key| key.namespace.clone()).collect();
            affected.extend(spaces.iter().flat_map(|namespace| within(view, namespace)));
        }
        _ => {}
    }
    affected.retain(|key| {
        enabled_in(view, &key.namespace) != Some(false)
            || view.velero_view(key.kind, &key.namespace, &key.name).is_some()
    });
    affected
}

/// The copy for a request.
fn copy_of(request: &Key) -> Option<Key> {
    let kind = match request.kind {
        Kind::NonAdminBackup => Kind::Backup,
        Kind::NonAdminRestore => Kind::Restore,
        Kind::NonAdminBackupStorageLocation => Kind::BackupStorageLocation,
        Kind::NonAdminSchedule => Kind::Schedule,
        _ => return None,
    };
    Some(Key::new(kind, &request.namespace, &request.name))
}

/// A change of an object in a tenant namespace affects itself; if it was created or deleted, also what belongs to it.
pub fn affected_by_copy(
    view: &State,
    kind: Kind,
    before: Option<&DynamicObject>,
    after: Option<&DynamicObject>,
) -> Vec<Key> {
    let Some(object) = after.or(before) else { return Vec::new() };
    let key = Key::of(kind, &object.metadata);
    let uid = |object: Option<&DynamicObject>| object.and_then(|object| object.metadata.uid.clone());
    let mut affected = vec![key.clone()];
    if uid(before) != uid(after) {
        affected.extend(children(view, &key));
        let left = uid(before).filter(|_| kind == Kind::DownloadRequest && after.is_none());
        let left = left.and_then(|uid| view.admin::<DownloadRequest>(&download::velero_name(&uid)));
        affected.extend(left.map(|velero| Key::of(Kind::DownloadRequest, &velero.metadata)));
    }
    affected
}

/// What belongs to a Backup or Restore in a tenant's namespace, or did.
fn children(view: &State, key: &Key) -> Vec<Key> {
    let velero = match key.kind {
        Kind::Backup => view
            .get(&key.namespace, &key.name)
            .and_then(|request| backup::velero_of(view, &request))
            .and_then(|velero| velero.metadata.name.clone()),
        Kind::Restore => view
            .get(&key.namespace, &key.name)
            .and_then(|request| restore::velero_of(view, &request))
            .and_then(|velero| velero.metadata.name.clone()),
        _ => return Vec::new(),
    };
    let here = |child: Key| Key::new(child.kind, &key.namespace, &child.name);
    let mut children: Vec<_> = velero.iter().flat_map(|velero| view.volumes_of(velero)).map(here).collect();
    if key.kind == Kind::Backup {
        let requests = velero.iter().flat_map(|velero| view.delete_requests(velero));
        children.extend(requests.map(|request| here(Key::of(Kind::DeleteBackupRequest, &request.metadata))));
    }
    let mine = |child: &Key| related::ties(child.kind).is_some_and(|ties| ties.parent == key.kind);
    children.extend(view.velero_view_in(&key.namespace).into_iter().filter(mine));
    children
}

/// Everything in a tenant's namespace that may have to be made, changed or removed.
fn within(view: &State, namespace: &str) -> Vec<Key> {
    let backups = view.list::<NonAdminBackup>(namespace).into_iter();
    let backups = backups.map(|found| Key::of(Kind::Backup, &found.metadata));
    let restores = view.list::<NonAdminRestore>(namespace).into_iter();
    let restores = restores.map(|found| Key::of(Kind::Restore, &found.metadata));
    let locations = view.list::<NonAdminBackupStorageLocation>(namespace).into_iter();
    let locations = locations.map(|found| Key::of(Kind::BackupStorageLocation, &found.metadata));
    let schedules = view.list::<NonAdminSchedule>(namespace).into_iter();
    let schedules = schedules.map(|found| Key::of(Kind::Schedule, &found.metadata));
    // What belongs to a backup or restore is enqueued once the copy of that exists.
    let there = view.velero_view_in(namespace);
    let mut all: Vec<_> = backups.chain(restores).chain(locations).chain(schedules).chain(there).collect();
    let parents = [Kind::Backup, Kind::Restore];
    let present: Vec<_> = all.iter().filter(|key| parents.contains(&key.kind)).cloned().collect();
    all.extend(present.iter().flat_map(|key| children(view, key)));
    all
}

/// Everything in tenants' namespaces that may have to be made, changed or removed.
pub fn everything(view: &State) -> Vec<Key> {
    let mut all: Vec<_> =
        view.velero_view_namespaces().iter().flat_map(|namespace| within(view, namespace)).collect();
    all.extend(view.all_velero_views());
    all.sort();
    all.dedup();
    all
}
