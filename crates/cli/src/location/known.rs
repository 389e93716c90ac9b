//! The storage of backups, as far as the caller may read it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use api::{NonAdminBackup, NonAdminBackupStorageLocation, velero::BackupStorageLocation};
use kube::Api;
use planner::last_good::{Storage, as_seen_by_caller};

use crate::{connect::Session, list, output::remark};

/// Storage locations.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// Those of the namespace.
    pub(crate) own: Vec<NonAdminBackupStorageLocation>,
    /// By namespace and name, Velero's locations that backups are stored in; none for one that does not exist. Tenants
    /// may not read them, and have none here.
    velero: BTreeMap<(String, String), Option<BackupStorageLocation>>,
}

impl Known {
    /// These, and nothing of the cluster's own storage.
    pub(crate) fn of(own: Vec<NonAdminBackupStorageLocation>) -> Self {
        Self { own, velero: BTreeMap::new() }
    }

    /// Reads the namespace's own locations.
    pub(crate) async fn own(session: &Session) -> Result<Self> {
        let found = list::all(session, Some(&session.namespace), None, false).await?;
        Ok(Self::of(found.items.into_iter().map(|(location, _)| location).collect()))
    }

    /// Reads also where these backups are stored in the cluster's own storage, if the caller may. Once refused, no more is
    /// asked.
    pub(crate) async fn and_of(mut self, session: &Session, backups: &[NonAdminBackup]) -> Self {
        let named: BTreeSet<_> = backups.iter().filter_map(at_velero).collect();
        for (namespace, name) in named {
            let api: Api<BackupStorageLocation> = Api::namespaced(session.client.clone(), &namespace);
            match api.get_opt(&name).await {
                Ok(found) => self.velero.insert((namespace, name), found),
                Err(_) => return self,
            };
        }
        self
    }

    /// The storage of a backup.
    pub(crate) fn storage(&self, backup: &NonAdminBackup) -> Storage {
        let velero = at_velero(backup).and_then(|place| self.velero.get(&place));
        as_seen_by_caller(backup, &self.own, velero.map(Option::as_slice))
    }
}

/// Warns of a location that does not exist, with those that do: the name may be a typing error. A backup into it is no
/// mistake by itself, since the location may be created next, so it waits.
pub(crate) async fn warn_of_missing(session: &Session, name: Option<&str>) -> Result<()> {
    let Some(name) = name else { return Ok(()) };
    let own = Known::own(session).await?.own;
    let names: Vec<&str> = own.iter().filter_map(|location| location.metadata.name.as_deref()).collect();
    if names.contains(&name) {
        return Ok(());
    }
    let namespace = &session.namespace;
    let known = if names.is_empty() {
        "it has none; leave the flag out for the cluster's own storage".to_owned()
    } else {
        format!("it has {}", names.join(", "))
    };
    remark(format_args!(
        "warning: backups wait for location {name:?}, which namespace {namespace} does not have: {known}"
    ));
    Ok(())
}

/// The namespace and the name of Velero's location that a backup is stored in; none if that is a tenant's own, which the
/// namespace's own locations say all about.
fn at_velero(backup: &NonAdminBackup) -> Option<(String, String)> {
    let velero = backup.status.as_ref()?.velero_backup.as_ref()?;
    let name = velero.spec.as_ref()?.storage_location.clone().filter(|name| !name.is_empty())?;
    let platform = backup.spec.backup_spec.storage_location.is_none();
    Some((velero.namespace.clone()?, name)).filter(|_| platform)
}
