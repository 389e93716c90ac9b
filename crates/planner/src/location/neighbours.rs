//! The other locations: how many there are, and whether one is in the way.

use std::sync::Arc;

use api::velero::{BackupStorageLocation, BackupStorageLocationSpec};
use api::{NonAdminBackupStorageLocation, NonAdminBackupStorageLocationRequest, condition};
use jiff::Timestamp;

use super::{StoragePath, fill, references};
use crate::state::State;
use crate::{HealedBy, Policy, healed_by};

/// How many other locations of the namespace count before this one: those that have got as far as being asked for,
/// and the older ones, so that of many made at once the first ones win. One that is refused for what it says counts for
/// nothing.
pub(super) fn before(view: &State, location: &NonAdminBackupStorageLocation) -> usize {
    let counts = |other: &NonAdminBackupStorageLocation| {
        asked_for(view, other) || (older(other, location) && !is_refused(other))
    };
    siblings(view, location).iter().filter(|other| counts(other)).count()
}

/// Its status says that it has to be changed before it can be used.
fn is_refused(location: &NonAdminBackupStorageLocation) -> bool {
    let conditions = location.status.as_ref().map(|status| status.conditions.as_slice());
    let accepted = condition::get(conditions.unwrap_or_default(), condition::ACCEPTED);
    accepted.and_then(healed_by) == Some(HealedBy::Spec)
}

/// Whether the place in the bucket belongs to another: to one that Velero has, be it an administrator's or a tenant's,
/// or to a location of this namespace that was there first. Other namespaces' places begin with other names.
pub(super) fn has_place(view: &State, location: &NonAdminBackupStorageLocation, own: &str) -> bool {
    let namespace = location.metadata.namespace.as_deref().unwrap_or_default();
    let policy = view.policy(namespace);
    let place = |spec: &BackupStorageLocationSpec| place(spec, namespace, policy.as_deref());
    let mine = place(&location.spec.backup_storage_location_spec);
    if in_the_way(&mine, own, view.all::<BackupStorageLocation>().iter().map(Arc::as_ref)) {
        return true;
    }
    let siblings = siblings(view, location);
    let mut first = siblings.iter().filter(|other| asked_for(view, other) && older(other, location));
    first.any(|other| place(&other.spec.backup_storage_location_spec).overlaps(&mine))
}

/// Where the bytes of a tenant's location will be, with what the administrators fill in.
pub(super) fn place(
    spec: &BackupStorageLocationSpec,
    namespace: &str,
    policy: Option<&Policy>,
) -> StoragePath {
    let mut spec = spec.clone();
    if let Some(policy) = policy {
        fill(&policy.storage_locations.enforce, &mut spec);
    }
    StoragePath::asked(&spec, namespace)
}

/// Whether a location that Velero has under another name is in the way of this place.
pub(super) fn in_the_way<'a>(
    place: &StoragePath,
    own: &str,
    storage: impl IntoIterator<Item = &'a BackupStorageLocation>,
) -> bool {
    let mut others = storage.into_iter().filter(|other| other.metadata.name.as_deref() != Some(own));
    others.any(|other| StoragePath::of(&other.spec).overlaps(place))
}

fn siblings(
    view: &State,
    location: &NonAdminBackupStorageLocation,
) -> Vec<Arc<NonAdminBackupStorageLocation>> {
    let namespace = location.metadata.namespace.as_deref().unwrap_or_default();
    let all = view.list::<NonAdminBackupStorageLocation>(namespace).into_iter();
    all.filter(|other| {
        other.metadata.uid != location.metadata.uid && other.metadata.deletion_timestamp.is_none()
    })
    .collect()
}

fn asked_for(view: &State, location: &NonAdminBackupStorageLocation) -> bool {
    references(location).iter().any(|name| view.admin::<NonAdminBackupStorageLocationRequest>(name).is_some())
}

fn older(one: &NonAdminBackupStorageLocation, other: &NonAdminBackupStorageLocation) -> bool {
    age(one) < age(other)
}

fn age(location: &NonAdminBackupStorageLocation) -> (Option<Timestamp>, &str) {
    let meta = &location.metadata;
    (meta.creation_timestamp.as_ref().map(|time| time.0), meta.name.as_deref().unwrap_or_default())
}
