//! The owner of an object that belongs to a Velero Backup or Restore, and its name in the tenant namespace.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::velero::{Backup, Restore};
use api::{Kind, NonAdminBackupStorageLocation, labels};
use kube::core::{DynamicObject, ObjectMeta};

use crate::ownership::{label, own_name};
use crate::state::State;
use crate::turns::TAG;
use crate::{Key, backup, restore};

/// Whether a label or annotation is Velero's, OADP's or ours. Others on a Velero object are an administrator's notes and
/// not shown; others on a copy are somebody else's and left alone.
pub(super) fn is_veleros(name: &str) -> bool {
    name == labels::MANAGED_BY
        || ["velero.io/", "openshift.io/", "nacre.dev/"].iter().any(|prefix| name.starts_with(prefix))
}

/// The marks of a Velero object that a copy has. When it got its turn says something about others.
pub(super) fn marks(given: Option<&BTreeMap<String, String>>) -> BTreeMap<String, String> {
    let shown = given.into_iter().flatten().filter(|(name, _)| is_veleros(name) && *name != TAG);
    shown.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// What a location is called in this namespace: a tenant's own by the tenant's name for it.
pub(super) fn location_name(view: &State, namespace: &str, storage: &str) -> String {
    let own = view.list::<NonAdminBackupStorageLocation>(namespace).into_iter();
    let reported = |status: &api::NonAdminBackupStorageLocationStatus| {
        status.velero_backup_storage_location.as_ref()?.name.clone()
    };
    let mut meant = own.filter(|location| {
        location.status.as_ref().and_then(reported).as_deref() == Some(storage)
            || own_name(&location.metadata) == storage
    });
    meant.find_map(|location| location.metadata.name.clone()).unwrap_or_else(|| storage.to_owned())
}

/// What a Velero object belongs to: the tenant's request, and the copy of its Backup or Restore.
pub(super) struct Parent {
    /// What the tenant calls it.
    pub(super) name: String,
    /// The copy.
    pub(super) copy: Arc<DynamicObject>,
}

/// The names of the labels by which an object says what it belongs to.
pub(super) struct Ties {
    pub(super) parent: Kind,
    pub(super) name: &'static str,
    pub(super) uid: &'static str,
}

/// What an object of this kind belongs to.
pub(super) fn ties(kind: Kind) -> Option<Ties> {
    match kind {
        Kind::PodVolumeBackup | Kind::DataUpload | Kind::DeleteBackupRequest => Some(Ties {
            parent: Kind::Backup,
            name: labels::VELERO_BACKUP_NAME,
            uid: labels::VELERO_BACKUP_UID,
        }),
        Kind::PodVolumeRestore | Kind::DataDownload => Some(Ties {
            parent: Kind::Restore,
            name: labels::VELERO_RESTORE_NAME,
            uid: labels::VELERO_RESTORE_UID,
        }),
        _ => None,
    }
}

/// What a volume belongs to, if that is this namespace's own. Both labels must fit: Velero imports volumes from
/// tenants' buckets with whatever name they bear, but with the uid of the Backup they came with.
pub(super) fn of_volume(view: &State, kind: Kind, namespace: &str, meta: &ObjectMeta) -> Option<Parent> {
    let ties = ties(kind)?;
    let velero = label(meta, ties.name)?;
    let uid = label(meta, ties.uid)?;
    match ties.parent {
        Kind::Restore => {
            of_restore(view, namespace, velero, |found| found.metadata.uid.as_deref() == Some(uid))
        }
        _ => of_backup(view, namespace, velero, |found| found.metadata.uid.as_deref() == Some(uid)),
    }
}

/// The tenant's request for this Velero Backup, if it is this namespace's own, and its copy.
pub(super) fn of_backup(
    view: &State,
    namespace: &str,
    velero: &str,
    is: impl Fn(&Backup) -> bool,
) -> Option<Parent> {
    let requests = view.backups_of(velero).into_iter().filter(|key| key.namespace == namespace);
    let mut own = requests.filter(|key| {
        let request = view.get(namespace, &key.name);
        let found = request.and_then(|request| backup::velero_of(view, &request));
        found.is_some_and(|found| found.metadata.name.as_deref() == Some(velero) && is(&found))
    });
    own.find_map(|key| parent(view, Kind::Backup, &key))
}

fn of_restore(view: &State, namespace: &str, velero: &str, is: impl Fn(&Restore) -> bool) -> Option<Parent> {
    let requests = view.restores_of(velero).into_iter().filter(|key| key.namespace == namespace);
    let mut own = requests.filter(|key| {
        let request = view.get(namespace, &key.name);
        let found = request.and_then(|request| restore::velero_of(view, &request));
        found.is_some_and(|found| found.metadata.name.as_deref() == Some(velero) && is(&found))
    });
    own.find_map(|key| parent(view, Kind::Restore, &key))
}

fn parent(view: &State, kind: Kind, request: &Key) -> Option<Parent> {
    let copy = view.velero_view(kind, &request.namespace, &request.name)?;
    let stays = copy.metadata.deletion_timestamp.is_none();
    stays.then(|| Parent { name: request.name.clone(), copy })
}
