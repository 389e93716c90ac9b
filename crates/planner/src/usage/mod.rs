//! What each namespace uses: backups, bytes in the platform's storage, and Velero's time.
//!
//! A namespace is meant by its uid, as Velero's objects have it in annotations that tenants cannot write. Whatever a
//! tenant deletes, only Velero's objects count: a request that is gone frees nothing by itself.
//!
//! | figure | what it is |
//! | --- | --- |
//! | backups | Velero Backups of the namespace, in any storage |
//! | unfinished | of these and of its Velero Restores, those that are not over |
//! | bytes | an estimate of volume data in the platform's storage ([`Chains`]) |
//! | work | the seconds that Velero worked for it today, counted from midnight UTC |
//!
//! [`Ledger`] is brought up to date with every change. What a deleted Velero object had used today stays in it, and in a
//! ConfigMap of nacre's ([`RECORD`]), so that deleting and restarting forget nothing.

mod chains;
mod ledger;
mod record;
mod requests;
mod work;

use std::ops::AddAssign;

use api::labels;
use api::velero::{Backup, BackupStorageLocation, Restore};
use kube::core::ObjectMeta;
use serde::Serialize;

pub use chains::{Chains, SavedVolume};
pub(crate) use ledger::{Job, Ledger};
pub use record::RECORD;
pub use requests::of_requests;
pub(crate) use work::was_imported;
pub use work::{Span, day, until_tomorrow, work_on};

use crate::ownership::{Storage, annotation, storage};
use crate::queue::{Queued, Stage};

/// What a namespace uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// How many backups Velero has of it.
    pub backups: u64,
    /// How many of its backups and restores are not over.
    pub unfinished: u64,
    /// How many of its backups to the platform's storage are not over.
    #[serde(skip)]
    pub unfinished_here: u64,
    /// How many of its backups in the platform's storage are over.
    #[serde(skip)]
    pub finished_here: u64,
    /// An estimate of its volume data in the platform's storage.
    pub bytes: u64,
    /// How many seconds Velero worked for it today.
    pub work_seconds: u64,
}

impl Usage {
    /// What one more backup may add to the bytes: as much as those that are over have on average.
    pub const fn bytes_each(&self) -> u64 {
        match self.finished_here {
            0 => 0,
            many => self.bytes / many,
        }
    }

    /// The bytes once so many backups more are over, those that run included.
    pub const fn bytes_with(&self, more: u64) -> u64 {
        let coming = self.unfinished_here.saturating_add(more);
        self.bytes.saturating_add(self.bytes_each().saturating_mul(coming))
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.backups = self.backups.saturating_add(other.backups);
        self.unfinished = self.unfinished.saturating_add(other.unfinished);
        self.unfinished_here = self.unfinished_here.saturating_add(other.unfinished_here);
        self.finished_here = self.finished_here.saturating_add(other.finished_here);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.work_seconds = self.work_seconds.saturating_add(other.work_seconds);
    }
}

/// Whose account a Velero object is on. The Go controller wrote no uid.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Owner {
    pub(crate) namespace: String,
    pub(crate) uid: Option<String>,
}

/// The owner of a Velero Backup, and whether it is in the platform's storage. None if it is nobody's: then it was made by
/// an administrator, or its storage is unknown.
pub(crate) fn owner_of_backup(
    velero: &Backup,
    location: Option<&BackupStorageLocation>,
) -> Option<(Owner, bool)> {
    let origin = annotation(&velero.metadata, labels::NAB_NAMESPACE);
    match storage(velero, location) {
        Storage::Platform => Some((owner(&velero.metadata, origin?), true)),
        // In a tenant's storage the location determines the owner, whatever the tenant wrote there.
        Storage::Tenant(tenant) if origin.is_none_or(|origin| origin == tenant) => {
            Some((owner(&location?.metadata, tenant), false))
        }
        Storage::Tenant(_) | Storage::Unknown => None,
    }
}

/// The owner of a Velero Restore.
pub(crate) fn owner_of_restore(velero: &Restore) -> Option<Owner> {
    annotation(&velero.metadata, labels::NAR_NAMESPACE).map(|namespace| owner(&velero.metadata, namespace))
}

fn owner(meta: &ObjectMeta, namespace: &str) -> Owner {
    let uid = annotation(meta, labels::ORIGIN_NAMESPACE_UID).map(str::to_owned);
    Owner { namespace: namespace.to_owned(), uid }
}

/// What a Velero Backup or Restore counts for, apart from its volumes.
pub(crate) fn job(
    velero: &impl Queued,
    owner: Owner,
    is_backup: bool,
    here: bool,
    span: Option<Span>,
) -> Job {
    Job { owner, is_backup, here, is_unfinished: velero.stage() != Stage::Finished, span }
}

#[cfg(test)]
mod tests;
