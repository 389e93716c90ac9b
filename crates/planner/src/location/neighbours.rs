//! The other locations: how many there are, and whether one is in the way.

use std::sync::Arc;

use api::NonAdminBackupStorageLocation;
use api::velero::BackupStorageLocationSpec;
use jiff::Timestamp;

use super::decide::references;
use super::{Place, fill};
use crate::view::View;

/// How many other locations of the namespace count before this one: those that have got as far as being asked for,
/// and the older ones, so that of many made at once the first ones win.
pub(super) fn before(view: &impl View, location: &NonAdminBackupStorageLocation) -> usize {
    siblings(view, location).iter().filter(|other| asked_for(view, other) || older(other, location)).count()
}

/// Whether the place in the bucket belongs to another: to one that Velero has, be it an administrator's or a tenant's,
/// or to a location of this namespace that was there first. Other namespaces' places begin with other names.
pub(super) fn has_place(view: &impl View, location: &NonAdminBackupStorageLocation, own: &str) -> bool {
    let namespace = location.metadata.namespace.as_deref().unwrap_or_default();
    let place = |spec: &BackupStorageLocationSpec| {
        let mut spec = spec.clone();
        if let Some(policy) = view.policy(namespace) {
            fill(&policy.storage_locations.enforce, &mut spec);
        }
        Place::asked(&spec, namespace)
    };
    let mine = place(&location.spec.backup_storage_location_spec);
    let others = view.storage_locations();
    let mut others = others.iter().filter(|other| other.metadata.name.as_deref() != Some(own));
    if others.any(|other| Place::of(&other.spec).overlaps(&mine)) {
        return true;
    }
    let siblings = siblings(view, location);
    let mut first = siblings.iter().filter(|other| asked_for(view, other) && older(other, location));
    first.any(|other| place(&other.spec.backup_storage_location_spec).overlaps(&mine))
}

fn siblings(
    view: &impl View,
    location: &NonAdminBackupStorageLocation,
) -> Vec<Arc<NonAdminBackupStorageLocation>> {
    let namespace = location.metadata.namespace.as_deref().unwrap_or_default();
    let all = view.locations_in(namespace).into_iter().map(|seen| seen.object);
    all.filter(|other| {
        other.metadata.uid != location.metadata.uid && other.metadata.deletion_timestamp.is_none()
    })
    .collect()
}

fn asked_for(view: &impl View, location: &NonAdminBackupStorageLocation) -> bool {
    references(location).iter().any(|name| view.location_request(name).is_some())
}

fn older(one: &NonAdminBackupStorageLocation, other: &NonAdminBackupStorageLocation) -> bool {
    age(one) < age(other)
}

fn age(location: &NonAdminBackupStorageLocation) -> (Option<Timestamp>, &str) {
    let meta = &location.metadata;
    (meta.creation_timestamp.as_ref().map(|time| time.0), meta.name.as_deref().unwrap_or_default())
}
