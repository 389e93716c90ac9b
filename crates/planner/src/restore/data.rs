//! Whether the data of every claim came back, and what is to be done about volume operations that cannot end.

use std::sync::Arc;
use std::time::Duration;

use api::velero::{Backup, Restore};
use api::{Claim, Kind, NonAdminBackupStatus, NonAdminRestore, condition};

use super::Observed;
use crate::policy::VolumePolicy;
use crate::queue::{Queued, Stage, stage};
use crate::state::State;
use crate::volumes::{self, Cancelling, Facts, Operation, Outcome, Owner, Velero};

/// How long after its end a restore waits for watch events about volumes and claims, if something is missing.
const LATE: Duration = Duration::from_secs(3);

/// What decides whether the data came back.
#[derive(Clone, Debug, Default)]
pub struct DataFacts {
    /// The Velero Backup that the Velero Restore names, if it still exists.
    pub source: Option<Arc<Backup>>,
    /// The volume operations of that backup.
    pub saved: Vec<Operation>,
    /// The volume operations of the Velero Restore.
    pub operations: Vec<Operation>,
    /// The claims in the namespace; none if nacre may not list claims.
    pub claims: Option<Vec<Arc<Claim>>>,
    /// Who can cancel volume operations.
    pub canceller: Velero,
}

impl DataFacts {
    /// What is known about the volumes of a Velero Restore; nothing without one. Once it is decided whether the data came
    /// back, only the operations are of interest.
    pub(super) fn gather(
        view: &State,
        namespace: &str,
        restore: &NonAdminRestore,
        velero: Option<&Restore>,
    ) -> Self {
        let Some(velero) = velero else { return Self::default() };
        let operations = volumes::of_restore(view, velero);
        let canceller = Velero::of(view);
        if is_decided(restore, velero) {
            return Self { operations, canceller, ..Self::default() };
        }
        // nacre wrote this name, so it is this namespace's own backup.
        let source = velero.spec.backup_name.as_deref().and_then(|name| view.admin::<Backup>(name));
        Self {
            saved: source.as_deref().map_or_else(Vec::new, |source| volumes::of_backup(view, source)),
            claims: view.is_listed(Kind::PersistentVolumeClaim).then(|| view.list::<Claim>(namespace)),
            source,
            operations,
            canceller,
        }
    }
}

/// Whether the condition says already what became of the data. It does not change after that. Of a restore that ended
/// before nacre had this condition, nothing is known any more.
fn is_decided(restore: &NonAdminRestore, velero: &Restore) -> bool {
    let Some(status) = restore.status.as_ref().filter(|_| velero.stage() == Stage::Finished) else {
        return false;
    };
    let mirrored = || {
        let mirrored = status.velero_restore.as_ref()?.status.as_ref()?;
        Some(stage(mirrored.phase.as_deref().unwrap_or_default(), mirrored.completion_timestamp.is_some()))
    };
    match condition::get(&status.conditions, condition::DATA_RESTORED) {
        Some(found) => found.status != "Unknown",
        None => mirrored() == Some(Stage::Finished),
    }
}

/// What became of the data; none before Velero has started, and once it was decided.
pub(super) fn outcome(seen: &Observed, velero: &Restore) -> Option<Outcome> {
    if velero.stage() == Stage::Waiting || is_decided(&seen.restore, velero) {
        return None;
    }
    let facts = &seen.data;
    let reported = seen.backup.as_deref().and_then(|backup| backup.status.as_ref());
    Some(volumes::outcome(&Facts {
        velero,
        source: facts.source.as_deref(),
        backup_name: seen.restore.spec.restore_spec.backup_name.as_deref().unwrap_or_default(),
        saved: &facts.saved,
        reported: reported.map(|status| status.claims.as_slice()).unwrap_or_default(),
        unlisted: reported.and_then(unlisted),
        operations: &facts.operations,
        claims: facts.claims.as_deref(),
        now: seen.now,
    }))
}

/// Why a backup is called protected or not, if it had claims and lists none.
fn unlisted(status: &NonAdminBackupStatus) -> Option<&str> {
    let found = condition::get(&status.conditions, condition::DATA_PROTECTED)?;
    let had_claims = [condition::ALL_CLAIMS_SAVED, condition::CLAIMS_NOT_SAVED].contains(&&*found.reason);
    (had_claims && status.claims.is_empty()).then_some(&*found.reason)
}

/// How long to wait before a claim is looked at again whose volume is still missing. Claims change too often to have their
/// changes looked at.
pub(super) fn waits_for_volume(outcome: Option<&Outcome>) -> Option<Duration> {
    outcome.filter(|outcome| outcome.waits_for_volume).map(|_| LATE)
}

/// How long to wait before the end of the restore is reported, since watch events about what is missing may be late.
pub(super) fn may_be_late(seen: &Observed, velero: &Restore, outcome: Option<&Outcome>) -> Option<Duration> {
    outcome.filter(|outcome| outcome.may_be_late)?;
    let completed = velero.status.as_ref()?.completion_timestamp.as_ref()?.0;
    let passed = Duration::try_from(seen.now.duration_since(completed)).ok()?;
    LATE.checked_sub(passed).filter(|left| !left.is_zero())
}

fn limits(seen: &Observed) -> VolumePolicy {
    seen.policy.as_deref().map(|policy| policy.volumes.clone()).unwrap_or_default()
}

/// Cancels the volume operations that cannot end, or all of them if the request is being deleted.
pub(super) fn cancelling(seen: &Observed, velero: &Restore, is_deleting: bool) -> Cancelling {
    let operations = &seen.data.operations;
    let owner = Owner::restore(velero, operations, is_deleting);
    volumes::cancel(operations, &owner, &limits(seen), &seen.data.canceller, seen.now)
}

/// Whether Velero works on it, so that it cannot be deleted yet.
pub(super) fn is_at_work(seen: &Observed, velero: &Restore) -> bool {
    Owner::restore(velero, &[], true).is_at_work(velero.stage(), &limits(seen), seen.now)
}
