//! Conditions: setting one, keeping its transition time, and the reasons, which are API.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// Whether the request was understood and allowed.
pub const ACCEPTED: &str = "Accepted";
/// Whether Velero has it.
pub const QUEUED: &str = "Queued";
/// Whether it waits for its turn to be given to Velero. Only ever True.
pub const WAITING_FOR_TURN: &str = "WaitingForTurn";
/// Whether the object is being deleted.
pub const DELETING: &str = "Deleting";
/// Whether an edit made after Velero got the request could still be honoured. Only ever False.
pub const SPEC_APPLIED: &str = "SpecApplied";
/// Whether an administrator lets the storage be used.
pub const CLUSTER_ADMIN_APPROVED: &str = "ClusterAdminApproved";
/// Whether a changed storage location is allowed. Only ever False.
pub const SPEC_UPDATE_APPROVED: &str = "SpecUpdateApproved";
/// Whether the credential reached the administrators' namespace.
pub const SECRET_SYNCED: &str = "SecretSynced";
/// Whether the storage location reached Velero.
pub const LOCATION_SYNCED: &str = "BackupStorageLocationSynced";
/// Whether Velero could import the backups that it found in the storage. Only ever False.
pub const BACKUPS_IMPORTED: &str = "BackupsImported";
/// Whether a download is ready.
pub const PROCESSED: &str = "Processed";
/// The backup a download names is not there.
pub const BACKUP_NOT_AVAILABLE: &str = "NonAdminBackupNotAvailable";
/// The restore a download names is not there.
pub const RESTORE_NOT_AVAILABLE: &str = "NonAdminRestoreNotAvailable";
/// The backup a download names is not in the namespace's own storage.
pub const LOCATION_NOT_USED: &str = "NonAdminBackupStorageLocationNotUsed";
/// Whether the data of every claim in the namespace is in the backup.
pub const DATA_PROTECTED: &str = "DataProtected";
/// Whether the data of every claim in the backup came back.
pub const DATA_RESTORED: &str = "DataRestored";
/// Whether the errors and warnings that Velero reported were read; the first of them is the message.
pub const RESULTS_READ: &str = "ResultsRead";
/// Whether the latest run of a schedule was made as it was due.
pub const RUNNING_ON_TIME: &str = "RunsOnTime";
/// Whether the record of who asks for the runs of a schedule is recent enough.
pub const REQUESTER_CONFIRMED: &str = "RequesterConfirmed";
/// Whether a schedule keeps what it is to keep, and nothing else.
pub const RETAINED: &str = "Retained";
/// Whether whoever asked has the permissions for all of it. Only ever False.
pub const REQUESTER_PERMITTED: &str = "RequesterPermitted";
/// Whether an operator has done what a DataProtectionApplication says.
pub const RECONCILED: &str = "Reconciled";

/// The backup is allowed.
pub const BACKUP_ACCEPTED: &str = "BackupAccepted";
/// The backup is not allowed; the message says which field and what would be.
pub const INVALID_BACKUP_SPEC: &str = "InvalidBackupSpec";
/// The backup is allowed, but the namespace has reached a limit of the policy. It starts by itself when another backup of
/// the namespace is finished or deleted, or when the limit is raised.
pub const NAMESPACE_LIMIT_REACHED: &str = "NamespaceLimitReached";
/// The Velero Backup is gone and will not be made again.
pub const VELERO_BACKUP_NOT_FOUND: &str = "VeleroBackupNotFound";
/// Velero has the backup.
pub const BACKUP_SCHEDULED: &str = "BackupScheduled";
/// Others are given to Velero first; the message says how many, and when it starts, most likely.
pub const OTHERS_FIRST: &str = "OthersFirst";
/// An administrator holds it back. It goes on once an administrator releases it.
pub const HELD_BY_ADMINISTRATOR: &str = "HeldByAdministrator";
/// Deletion was asked for and is not finished.
pub const DELETION_PENDING: &str = "DeletionPending";
/// The spec was edited after Velero got it. The edit changes nothing: a new object is needed.
pub const EDITED_TOO_LATE: &str = "EditedAfterCreation";

/// The schedule is allowed, and runs.
pub const SCHEDULE_ACCEPTED: &str = "ScheduleAccepted";
/// The schedule is not allowed; the message says which field and what would be.
pub const INVALID_SCHEDULE_SPEC: &str = "InvalidScheduleSpec";
/// The latest run was made.
pub const RUN_CREATED: &str = "RunCreated";
/// A run was skipped: the message says which and why.
pub const RUN_SKIPPED: &str = "RunSkipped";
/// The latest run is refused, or waits; the message is its own. It starts by itself, or the next run takes its place.
pub const RUN_REFUSED: &str = "RunRefused";
/// Retention deletes a backup with its data.
pub const BACKUP_NOT_KEPT: &str = "BackupNotKept";
/// Backups that are no longer kept could not be deleted for a day; the message names them.
pub const RETENTION_STUCK: &str = "RetentionStuck";
/// Who asks for the runs of a schedule was recorded recently enough.
pub const RECENTLY_CONFIRMED: &str = "RecentlyConfirmed";
/// Somebody has to confirm the schedule soon.
pub const CONFIRMATION_DUE: &str = "ConfirmationDue";
/// Nobody confirmed the schedule in time.
pub const CONFIRMATION_OVERDUE: &str = "ConfirmationOverdue";
/// So many backups are kept that the namespace has no place for the next run.
pub const RETENTION_OVER_LIMIT: &str = "RetentionOverLimit";
/// What is to be kept is kept, and nothing else.
pub const RETENTION_APPLIED: &str = "RetentionApplied";
/// Backups expire earlier than the retention says, because the administrators enforce a ttl or allow none that is longer.
pub const TTL_ENFORCED: &str = "TtlEnforced";
/// Retention does not delete a backup after all, since it is the last good one now, or Velero has found it again.
pub const BACKUP_KEPT: &str = "BackupKept";
/// Whoever asked lacks permissions for some of it, which was left out; the message names it.
pub const RESOURCES_LEFT_OUT: &str = "ResourcesLeftOut";
/// Whoever asked lacks permissions for some of it. The policy only warns, so nothing was left out.
pub const NOT_ENFORCED: &str = "NotEnforced";
/// Nobody recorded who asked, so no permissions were checked.
pub const REQUESTER_NOT_RECORDED: &str = "NotRecorded";
/// Whoever asked lacks a permission without which the request makes no sense. It starts once the permission is there.
pub const REQUESTER_NOT_PERMITTED: &str = "RequesterNotPermitted";

/// There is no policy that can be read, so nothing new is allowed. The request waits, and proceeds by itself when the
/// administrators have corrected the policy.
pub const POLICY_UNAVAILABLE: &str = "PolicyUnavailable";

/// nacre does not see the request's namespace, so nothing is done about the request. It proceeds by itself when nacre
/// sees it.
pub const NAMESPACE_NOT_SEEN: &str = "NamespaceNotSeen";

/// The API server rejected the Velero object; the message says why, and nacre retries.
pub const HAND_OVER_FAILED: &str = "HandOverFailed";

/// The restore is allowed.
pub const RESTORE_ACCEPTED: &str = "RestoreAccepted";
/// The restore is not allowed; the message says which field and what would be.
pub const INVALID_RESTORE_SPEC: &str = "InvalidRestoreSpec";
/// The Velero Restore is gone and will not run again.
pub const VELERO_RESTORE_NOT_FOUND: &str = "VeleroRestoreNotFound";
/// Velero has the restore.
pub const RESTORE_SCHEDULED: &str = "RestoreScheduled";

/// The backup or the restore is not over: nothing can be said about its volumes yet.
pub const STILL_RUNNING: &str = "StillRunning";
/// The data of every claim is in the backup, or was left out on purpose.
pub const ALL_CLAIMS_SAVED: &str = "AllClaimsSaved";
/// The namespace has no claims, so there is no volume data to save.
pub const NO_CLAIMS: &str = "NoClaims";
/// The data of at least one claim is not in the backup; the message names them and says what to do.
pub const CLAIMS_NOT_SAVED: &str = "ClaimsNotSaved";

/// Velero reported errors.
pub const ERRORS_REPORTED: &str = "ErrorsReported";
/// Velero reported warnings and no errors.
pub const WARNINGS_REPORTED: &str = "WarningsReported";
/// What Velero reported is about other namespaces or could not be shown.
pub const NOTHING_TO_SHOW: &str = "NothingToShow";
/// Velero's list of errors and warnings, or of objects, could not be read.
pub const RESULTS_NOT_READABLE: &str = "ResultsNotReadable";

/// The data of every claim in the backup came back.
pub const ALL_VOLUMES_RESTORED: &str = "AllVolumesRestored";
/// The backup holds no volume data, and no claim that had any.
pub const NO_VOLUMES: &str = "NoVolumes";
/// At least one claim exists already, so its data was left as it is. Nothing of it was restored.
pub const CLAIMS_KEPT: &str = "ClaimsKept";
/// At least one volume was written over a claim that exists already: newer files are still there.
pub const CLAIMS_MIXED: &str = "ClaimsMixed";
/// At least one claim came back empty: the backup holds no data of it.
pub const CLAIMS_WITHOUT_DATA: &str = "ClaimsWithoutData";
/// The data of at least one claim could not be restored; the message is Velero's.
pub const VOLUMES_FAILED: &str = "VolumesFailed";
/// Restoring the data of at least one claim was cancelled; the message says why.
pub const VOLUMES_CANCELLED: &str = "VolumesCancelled";

/// The result of checking a storage location, both ways.
pub const BSL_SPEC_VALIDATION: &str = "BslSpecValidation";
/// An administrator lets the storage be used.
pub const BSL_SPEC_APPROVED: &str = "BslSpecApproved";
/// No administrator has decided yet.
pub const BSL_SPEC_APPROVAL_PENDING: &str = "BslSpecApprovalPending";
/// An administrator said no.
pub const BSL_SPEC_REJECTED: &str = "BslSpecRejected";
/// The decision cannot be understood.
pub const BSL_SPEC_INVALID: &str = "BslSpecInvalid";
/// The storage location differs from the one that was asked for.
pub const BSL_SPEC_UPDATE_REJECTED: &str = "BslSpecUpdateRejected";
/// The credential was copied for the first time.
pub const SECRET_CREATED: &str = "SecretCreated";
/// The credential was copied again.
pub const SECRET_UPDATED: &str = "SecretUpdated";
/// The credential could not be copied.
pub const SECRET_SYNC_FAILED: &str = "SecretSyncFailed";
/// Velero was given the storage location.
pub const LOCATION_CREATED: &str = "BackupStorageLocationCreated";
/// Velero was given a changed storage location.
pub const LOCATION_UPDATED: &str = "BackupStorageLocationUpdated";
/// Velero could not be given the storage location.
pub const LOCATION_SYNC_ERROR: &str = "BackupStorageLocationSyncError";
/// The API server refused backups that Velero found in the storage; the message names some and says why.
pub const IMPORTS_REFUSED: &str = "ImportsRefused";

/// A download is ready.
pub const SUCCESS: &str = "Success";
/// nacre reads the list of objects, or the log, itself.
pub const BEING_READ: &str = "BeingRead";
/// Something is missing; the condition's type says what.
pub const ERROR: &str = "Error";
/// What a DataProtectionApplication says is done.
pub const COMPLETE: &str = "Complete";

/// The status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It is so.
    True,
    /// It is not so.
    False,
    /// It cannot be said, or not yet.
    Unknown,
}

impl Status {
    /// As it stands in a condition.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for Status {
    fn from(is: bool) -> Self {
        if is { Self::True } else { Self::False }
    }
}

/// What shall be so from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding<'a> {
    /// The condition's type, from the constants above.
    pub type_: &'static str,
    /// Whether it is so.
    pub status: Status,
    /// Why, in one word from the constants above.
    pub reason: &'static str,
    /// Why, in a sentence.
    pub message: &'a str,
}

/// Sets a condition. Its transition time moves only when its status does.
pub fn set(conditions: &mut Vec<Condition>, finding: Finding<'_>, generation: Option<i64>, now: Timestamp) {
    let status = finding.status.as_str();
    let before = conditions.iter_mut().find(|condition| condition.type_ == finding.type_);
    let since = before.as_ref().filter(|condition| condition.status == status);
    let condition = Condition {
        type_: finding.type_.to_owned(),
        status: status.to_owned(),
        reason: finding.reason.to_owned(),
        message: shorten(finding.message),
        observed_generation: generation,
        last_transition_time: since.map_or(Time(now), |condition| condition.last_transition_time.clone()),
    };
    match before {
        Some(before) => *before = condition,
        None => conditions.push(condition),
    }
}

/// Removes a condition whose cause went away.
pub fn remove(conditions: &mut Vec<Condition>, type_: &str) {
    conditions.retain(|condition| condition.type_ != type_);
}

/// The condition of this type.
pub fn get<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether the condition of this type is there and True.
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    get(conditions, type_).is_some_and(|condition| condition.status == "True")
}

/// The API server takes messages up to 32 KiB; nobody reads that much.
const LONGEST_MESSAGE: usize = 1024;

fn shorten(message: &str) -> String {
    if message.len() <= LONGEST_MESSAGE {
        return message.to_owned();
    }
    let end = (0..=LONGEST_MESSAGE).rev().find(|&end| message.is_char_boundary(end)).unwrap_or(0);
    format!("{}...", &message[..end])
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::{ACCEPTED, BACKUP_ACCEPTED, Finding, INVALID_BACKUP_SPEC, Status, get, is_true, remove, set};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn the_transition_time_moves_only_with_the_status() {
        let mut conditions = Vec::new();
        let refused =
            Finding { type_: ACCEPTED, status: Status::False, reason: INVALID_BACKUP_SPEC, message: "ttl" };
        set(&mut conditions, refused, Some(1), at(1));
        set(&mut conditions, Finding { message: "hooks", ..refused }, Some(2), at(2));
        let condition = get(&conditions, ACCEPTED).unwrap();
        assert_eq!(condition.message, "hooks");
        assert_eq!(condition.observed_generation, Some(2));
        assert_eq!(condition.last_transition_time.0, at(1));

        set(
            &mut conditions,
            Finding { status: Status::True, reason: BACKUP_ACCEPTED, ..refused },
            Some(3),
            at(3),
        );
        assert_eq!(get(&conditions, ACCEPTED).unwrap().last_transition_time.0, at(3));
        assert!(is_true(&conditions, ACCEPTED));
        remove(&mut conditions, ACCEPTED);
        assert!(conditions.is_empty());
    }

    #[test]
    fn an_absurd_message_is_cut_on_a_character() {
        let mut conditions = Vec::new();
        let message = "\u{e9}".repeat(5000);
        set(
            &mut conditions,
            Finding { type_: ACCEPTED, status: Status::False, reason: "X", message: &message },
            None,
            at(0),
        );
        assert!(conditions[0].message.len() <= 1030);
    }
}
