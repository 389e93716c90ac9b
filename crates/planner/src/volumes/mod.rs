//! Volume operations: PodVolumeBackups, PodVolumeRestores, DataUploads and DataDownloads. Which of them cannot end, and
//! what became of the data of each claim in a restore.

mod cancel;
mod from_snapshot;
mod operation;
mod outcome;
mod progress;
mod scope;
mod stuck;
mod summary;

#[cfg(test)]
mod outcome_tests;
#[cfg(test)]
mod stuck_tests;

use api::labels;

use crate::policy::VolumePolicy;

pub(crate) use cancel::{BY_NACRE, now_in_seconds};
pub use cancel::{Cancelling, Velero, cancel};
pub use operation::{Operation, Pod, PodState, of_backup, of_restore};
pub use outcome::{Facts, Outcome, outcome};
pub use progress::{VolumeBytes, size};
pub(crate) use scope::{PERSISTENT_VOLUMES, claims_without_volumes};
pub use stuck::{Check, Downloads, Owner, Stuck, check};
pub(crate) use stuck::{span, time_left};

/// The annotation on a Velero Backup or Restore that bounds its PodVolumeBackups or PodVolumeRestores while nacre is
/// down; none if the policy sets no limit.
pub(crate) fn timeout_annotation(limits: &VolumePolicy) -> Option<(String, String)> {
    limits.longest()?;
    Some((labels::VELERO_POD_VOLUME_TIMEOUT.to_owned(), limits.longest.to_string()))
}
