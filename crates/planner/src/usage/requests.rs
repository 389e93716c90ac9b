//! Usage as the owner of a namespace can see it: from the statuses of the namespace's own requests.
//!
//! Nothing has to be published for it. It lacks what a request no longer shows: work for requests that were deleted today,
//! volumes beyond those that a status lists, and the bytes of backups that were imported from storage.

use api::{ClaimState, ClaimStatus, NonAdminBackup, NonAdminRestore};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::core::ObjectMeta;

use super::Usage;
use super::chains::{Chains, SavedVolume};
use super::work::{Span, work_on};
use crate::queue::{Stage, stage};

/// What a namespace uses, by its own requests.
pub fn of_requests(backups: &[NonAdminBackup], restores: &[NonAdminRestore], now: Timestamp) -> Usage {
    let mut usage = Usage::default();
    let (mut chains, mut spans) = (Chains::default(), Vec::new());
    for backup in backups {
        let Some(velero) = backup.status.as_ref().and_then(|status| status.velero_backup.as_ref()) else {
            continue;
        };
        let status = velero.status.clone().unwrap_or_default();
        let end = status.completion_timestamp.as_ref();
        let is_over = stage(status.phase.as_deref().unwrap_or_default(), end.is_some()) == Stage::Finished;
        let is_here = backup.spec.backup_spec.storage_location.is_none();
        usage.backups += 1;
        usage.unfinished += u64::from(!is_over);
        usage.unfinished_here += u64::from(is_here && !is_over);
        usage.finished_here += u64::from(is_here && is_over);
        let span = span(&backup.metadata, status.start_timestamp.as_ref(), end, is_over);
        spans.extend(span);
        if is_here {
            let start = status.start_timestamp.as_ref().map(|time| time.0);
            let claims = backup.status.iter().flat_map(|status| &status.claims);
            for claim in claims.filter(|claim| claim.state == ClaimState::Saved) {
                let name = backup.metadata.name.clone().unwrap_or_default();
                chains.add(&claim.name, (start, name), saved(claim));
            }
        }
    }
    for restore in restores {
        let velero = restore.status.as_ref().and_then(|status| status.velero_restore.as_ref());
        let Some(status) = velero.and_then(|velero| velero.status.as_ref()) else { continue };
        let end = status.completion_timestamp.as_ref();
        let is_over = stage(status.phase.as_deref().unwrap_or_default(), end.is_some()) == Stage::Finished;
        usage.unfinished += u64::from(!is_over);
        spans.extend(span(&restore.metadata, status.start_timestamp.as_ref(), end, is_over));
    }
    Usage { bytes: chains.bytes(), work_seconds: work_on(spans, now), ..usage }
}

fn saved(claim: &ClaimStatus) -> SavedVolume {
    SavedVolume::reported(claim.total_bytes.or(claim.bytes).unwrap_or(0), claim.new_bytes)
}

/// When Velero worked on it; what is over without an end did not take Velero any time.
fn span(meta: &ObjectMeta, start: Option<&Time>, end: Option<&Time>, is_over: bool) -> Option<Span> {
    let (start, created) = (start?.0, meta.creation_timestamp.as_ref()?.0);
    let end = end.map(|end| end.0);
    (created <= start && (end.is_some() || !is_over)).then_some(Span { start, end })
}
