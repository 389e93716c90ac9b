//! When the times of Velero's last looks at a location are shown again. Velero writes them about twice a minute for each
//! location. A change of anything else is shown at once, with the times.

use std::time::Duration;

use api::velero::{BackupStorageLocation, BackupStorageLocationStatus};
use api::{Kind, NonAdminBackupStorageLocation};
use jiff::Timestamp;

use crate::Key;
use crate::state::State;

/// The least time between two writes for one location.
const LEAST: Duration = Duration::from_mins(5);
/// The time between two writes, whichever location they are for.
const BETWEEN_WRITES: Duration = Duration::from_secs(10);

/// How far the times that a location shows may be behind Velero's. It grows with the number of locations, so that all of
/// them together are written six times a minute at most. The uid spreads it up to twice as far: locations that were made
/// together are not written together.
pub(crate) fn allowed_lag(number_of_locations: usize, uid: Option<&str>) -> Duration {
    let number = u32::try_from(number_of_locations).unwrap_or(u32::MAX);
    let least = LEAST.max(BETWEEN_WRITES.saturating_mul(number));
    let end = uid.and_then(|uid| u8::from_str_radix(uid.get(uid.len().checked_sub(2)?..)?, 16).ok());
    least + least * u32::from(end.unwrap_or_default()) / 256
}

/// Whether the times alone are worth a write.
pub(crate) fn are_due(
    shown: &BackupStorageLocationStatus,
    now: &BackupStorageLocationStatus,
    allowed_lag: Duration,
) -> bool {
    match (latest(shown), latest(now)) {
        // A later time than Velero's is not Velero's.
        (Some(shown), Some(now)) => shown > now || now.duration_since(shown).unsigned_abs() >= allowed_lag,
        (None, now) => now.is_some(),
        (Some(_), None) => false,
    }
}

/// Whether a change of the times alone has to be shown by a tenant's location, or by its copy in the Velero view.
pub(crate) fn are_due_for(view: &State, location: &Key, storage: &BackupStorageLocation) -> bool {
    let (namespace, name) = (location.namespace.as_str(), location.name.as_str());
    let Some(found) = view.get::<NonAdminBackupStorageLocation>(namespace, name) else { return false };
    let Some(now) = &storage.status else { return false };
    let allowed_lag = allowed_lag(view.number_of_locations(), found.metadata.uid.as_deref());
    let reported = found.status.as_ref().and_then(|status| status.velero_backup_storage_location.as_ref());
    let reported = reported.and_then(|velero| velero.status.clone());
    let copy = view.velero_view(Kind::BackupStorageLocation, namespace, name);
    let copy = copy.and_then(|copy| serde_json::from_value(copy.data.get("status")?.clone()).ok());
    reported.into_iter().chain(copy).any(|shown| are_due(&shown, now, allowed_lag))
}

fn latest(status: &BackupStorageLocationStatus) -> Option<Timestamp> {
    [&status.last_synced_time, &status.last_validation_time].into_iter().flatten().map(|time| time.0).max()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn few_locations_lag_by_minutes_and_many_are_written_six_times_a_minute_at_most() {
        let lag = |number: usize, uid: &str| allowed_lag(number, Some(uid));
        assert_eq!((lag(1, "00"), lag(30, "x-80")), (LEAST, LEAST * 3 / 2));
        assert!((LEAST..LEAST * 2).contains(&lag(1, "ff")));
        assert_eq!(lag(500, "00"), Duration::from_mins(1) * 500 / 6);
        // A uid of another shape counts as any.
        for uid in ["", "z", "zz", "\u{e9}"] {
            assert_eq!(lag(1, uid), LEAST, "{uid:?}");
        }
    }

    #[test]
    fn a_time_that_is_not_shown_is_due_and_one_that_is_gone_is_not() {
        let at = |time: Option<&str>| -> BackupStorageLocationStatus {
            serde_json::from_value(json!({"lastValidationTime": time})).unwrap()
        };
        let (early, late) = (Some("2026-01-01T00:00:00Z"), Some("2026-01-01T00:01:00Z"));
        let due = |shown, now, lag| are_due(&at(shown), &at(now), Duration::from_secs(lag));
        assert!(due(None, early, 60) && due(early, late, 60));
        assert!(due(late, early, 60), "somebody else wrote it");
        assert!(!due(early, late, 61) && !due(early, None, 0) && !due(None, None, 0));
    }
}
