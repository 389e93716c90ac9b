//! Restores that Velero does not finish. Velero finishes a restore by files in the storage of the backup, and their owner
//! can write what makes it exit, and exit again at each start. Such a Restore is ended by nacre, which needs no Velero
//! for that; Velero then leaves it alone. It does not depend on the request, which its owner may have deleted.

use std::time::Duration;

use api::velero::{Backup, BackupStorageLocation, Restore};
use api::{Kind, labels};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::Target;
use crate::ownership::{Storage, annotation, storage};
use crate::state::State;
use crate::volumes::{now_in_seconds, span, time_left};

/// How many times the limit a Restore may take while Velero finishes others. Velero finishes one at a time.
const WHILE_OTHERS_FINISH: u32 = 4;

/// The Velero Restore from tenants' storage that Velero has been finishing for the longest time, if that is longer than the
/// policy allows, and what ends it. Those after it may only be waiting for it, so their time begins again.
/// Velero's Restores have no status subresource.
pub fn unfinished(view: &State) -> Option<(Target, Value)> {
    let ours = view.finalizing().restores().filter_map(|(name, since)| {
        let velero = view.admin::<Restore>(name).filter(|velero| !is_platforms(view, velero))?;
        let tenant = annotation(&velero.metadata, labels::NAR_NAMESPACE)?;
        let limit = view.policy(tenant)?.restore.from_tenant_storage.finalize_timeout()?;
        Some((since, Target::of(Kind::Restore, &velero.metadata), limit))
    });
    let (since, target, limit) =
        ours.min_by(|one, other| (one.0, &one.1.name).cmp(&(other.0, &other.1.name)))?;
    is_overdue(view, since, limit).then(|| (target, end(limit, &now_in_seconds(view.now()))))
}

fn is_overdue(view: &State, since: Timestamp, limit: Duration) -> bool {
    let alone = view.finalizing().last_finished().map_or(since, |last| last.max(since));
    time_left(alone, limit, view.now()).is_none()
        || time_left(since, limit * WHILE_OTHERS_FINISH, view.now()).is_none()
}

/// Whether it reads only what administrators can write.
fn is_platforms(view: &State, velero: &Restore) -> bool {
    let source = velero.spec.backup_name.as_deref().and_then(|name| view.admin::<Backup>(name));
    source.is_some_and(|source| {
        let location = source.spec.storage_location.as_deref();
        let location = location.and_then(|name| view.admin::<BackupStorageLocation>(name));
        storage(&source, location.as_deref()) == Storage::Platform
    })
}

fn end(limit: Duration, now: &str) -> Value {
    let why = format!(
        "ended by nacre: Velero did not finish it within {}, which the policy allows \
         (restore.fromTenantStorage.finalizeTimeout); what was restored before is there",
        span(limit)
    );
    json!({"status": {"phase": "Failed", "completionTimestamp": now, "failureReason": why}})
}
