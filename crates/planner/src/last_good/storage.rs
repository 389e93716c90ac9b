//! Whether Velero can read a backup now, from where it is stored.

use std::fmt;

use api::velero::BackupStorageLocation;
use api::{NonAdminBackup, NonAdminBackupStorageLocation, Phase, condition};

use crate::backup::storage_name;
use crate::ownership::{annotation, tenant_of};
use crate::state::State;

/// The storage of a backup, as far as the caller can see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Storage {
    /// Velero can read it.
    Usable,
    /// The caller cannot know: tenants may not read the locations of the cluster's own storage.
    Unknown,
    /// Velero cannot read it.
    Unavailable(StorageProblem),
}

impl Storage {
    pub(super) fn problem(&self) -> Option<StorageProblem> {
        match self {
            Self::Usable | Self::Unknown => None,
            Self::Unavailable(problem) => Some(problem.clone()),
        }
    }
}

/// Why Velero cannot read a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageProblem {
    /// The NonAdminBackupStorageLocation; none for the cluster's own storage.
    pub location: Option<String>,
    /// What is wrong with it, ready to follow its name.
    pub what: &'static str,
}

/// Fits after "because".
impl fmt::Display for StorageProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.location {
            Some(name) => write!(f, "its storage location {name:?} {}", self.what),
            None => write!(f, "its storage location, the cluster's own, {}", self.what),
        }
    }
}

const IS_GONE: &str = "does not exist any more";
const IS_BEING_DELETED: &str = "is being deleted";
const IS_NOT_APPROVED: &str = "is not approved by an administrator";
const IS_NOT_AVAILABLE: &str = "is not available to Velero";

fn unavailable(location: Option<&str>, what: &'static str) -> Storage {
    Storage::Unavailable(StorageProblem { location: location.map(str::to_owned), what })
}

/// The name of Velero's location that a backup is stored in, as Velero was given it.
fn velero_location(backup: &NonAdminBackup) -> Option<&str> {
    let given = backup.status.as_ref()?.velero_backup.as_ref()?.spec.as_ref()?;
    given.storage_location.as_deref().filter(|name| !name.is_empty())
}

/// What decides whether Velero can read a backup (`as_seen_by_controller`): Velero's location by its name, or the tenant's
/// by namespace and name. None if nothing does.
pub(crate) fn stored_in(backup: &NonAdminBackup) -> Option<String> {
    let own = || {
        let asked = backup.spec.backup_spec.storage_location.as_deref()?;
        Some(tenants_location(backup.metadata.namespace.as_deref()?, asked))
    };
    velero_location(backup).map(str::to_owned).or_else(own)
}

/// A tenant's location in `stored_in`.
pub(crate) fn tenants_location(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

/// The storage of a backup for somebody with the locations of the backup's namespace, and with Velero's own if they may
/// read those. Tenants may not.
pub fn as_seen_by_caller(
    backup: &NonAdminBackup,
    own_locations: &[NonAdminBackupStorageLocation],
    velero_locations: Option<&[BackupStorageLocation]>,
) -> Storage {
    let (asked, velero) = (backup.spec.backup_spec.storage_location.as_deref(), velero_location(backup));
    let found = match velero {
        // By Velero's name: a location that was deleted and created again under its name is another one.
        Some(velero) => own_locations.iter().find(|location| storage_name(location) == velero),
        None => own_locations.iter().find(|location| location.metadata.name.as_deref() == asked),
    };
    match (found, asked, velero.zip(velero_locations)) {
        (Some(location), ..) => own(location),
        (None, Some(asked), _) => unavailable(Some(asked), IS_GONE),
        (None, None, Some((velero, locations))) => {
            let named = |location: &&BackupStorageLocation| location.metadata.name.as_deref() == Some(velero);
            locations.iter().find(named).map_or_else(|| unavailable(None, IS_GONE), at_velero)
        }
        (None, None, None) => Storage::Unknown,
    }
}

/// A tenant's own location. nacre removes what Velero reports from the status of one that it has taken from Velero.
fn own(location: &NonAdminBackupStorageLocation) -> Storage {
    let name = location.metadata.name.as_deref();
    let status = location.status.clone().unwrap_or_default();
    let deleting = location.metadata.deletion_timestamp.is_some() || status.phase == Some(Phase::Deleting);
    let approved = condition::get(&status.conditions, condition::CLUSTER_ADMIN_APPROVED);
    let velero = status.velero_backup_storage_location.and_then(|velero| velero.status?.phase);
    if deleting {
        unavailable(name, IS_BEING_DELETED)
    } else if approved.is_some_and(|approved| approved.status == "False") {
        unavailable(name, IS_NOT_APPROVED)
    } else if velero.as_deref() == Some("Available") {
        Storage::Usable
    } else {
        unavailable(name, IS_NOT_AVAILABLE)
    }
}

/// The storage of a backup for nacre's controller, which reads Velero's own locations.
pub fn as_seen_by_controller(view: &State, backup: &NonAdminBackup) -> Storage {
    let asked = backup.spec.backup_spec.storage_location.as_deref();
    let Some(velero) = velero_location(backup) else {
        // The status was too large to hold what Velero was given.
        let namespace = backup.metadata.namespace.as_deref().unwrap_or_default();
        let location = asked.and_then(|name| view.get::<NonAdminBackupStorageLocation>(namespace, name));
        return as_seen_by_caller(backup, location.map(|location| (*location).clone()).as_slice(), None);
    };
    view.admin::<BackupStorageLocation>(velero)
        .map_or_else(|| unavailable(asked, IS_GONE), |location| at_velero(&location))
}

/// A location of Velero's, whoever it was made for.
fn at_velero(location: &BackupStorageLocation) -> Storage {
    let tenants = tenant_of(location).is_some();
    let name = annotation(&location.metadata, api::labels::NABSL_NAME).filter(|_| tenants);
    match location.phase() {
        _ if location.metadata.deletion_timestamp.is_some() => unavailable(name, IS_BEING_DELETED),
        "Available" => Storage::Usable,
        // Velero uses locations that it was told never to check. A tenant's own is used once it was checked.
        "" if !tenants => Storage::Usable,
        _ => unavailable(name, IS_NOT_AVAILABLE),
    }
}
