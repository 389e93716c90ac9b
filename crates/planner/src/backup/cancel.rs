//! Volume operations of a backup that cannot end.

use api::velero::Backup;

use super::Observed;
use crate::policy::VolumePolicy;
use crate::queue::Queued;
use crate::volumes::{self, Cancelling, Owner};

impl Observed {
    fn volume_limits(&self) -> VolumePolicy {
        self.policy.as_deref().map(|policy| policy.volumes.clone()).unwrap_or_default()
    }

    /// Cancels the volume operations that cannot end, or all of them if the request is being deleted. Nobody works on those
    /// of an imported backup.
    pub(super) fn cancelling(&self, velero: &Backup, is_deleting: bool) -> Cancelling {
        if self.synced() {
            return Cancelling::default();
        }
        let owner = Owner::backup(velero, is_deleting);
        volumes::cancel(&self.operations, &owner, &self.volume_limits(), &self.canceller, self.now)
    }

    /// Whether Velero works on it, so that it cannot be deleted yet.
    pub(super) fn is_at_work(&self, velero: &Backup) -> bool {
        Owner::backup(velero, true).is_at_work(velero.stage(), &self.volume_limits(), self.now)
    }
}
