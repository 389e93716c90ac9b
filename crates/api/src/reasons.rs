//! What every reason of a condition means for a person: what causes it, and what to do. `docs/troubleshooting.md` is made
//! of this.

use crate::condition as is;

/// What a person notices first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Symptom {
    /// A request does not start, since it is refused.
    Refused,
    /// A request does not start yet, since it waits.
    Waits,
    /// Data of volumes is missing, or Velero reported errors.
    DataMissing,
    /// A request lost what it had in Velero, or an edit or a deletion has no effect.
    NoEffect,
    /// A schedule does not run, or keeps too much or too little.
    Schedule,
    /// A storage location cannot be used.
    Location,
    /// A download has no link.
    Download,
    /// Administrators see it: the policy, the operator, live migration.
    Administrators,
    /// Nothing is wrong.
    Fine,
}

impl Symptom {
    /// All of them, in the order of the page.
    pub const ALL: [Self; 9] = [
        Self::Refused,
        Self::Waits,
        Self::DataMissing,
        Self::NoEffect,
        Self::Schedule,
        Self::Location,
        Self::Download,
        Self::Administrators,
        Self::Fine,
    ];

    /// As a heading.
    pub const fn heading(self) -> &'static str {
        match self {
            Self::Refused => "A backup or restore is refused",
            Self::Waits => "A backup or restore does not start",
            Self::DataMissing => "Data is missing, or Velero reported errors",
            Self::NoEffect => "An edit or a deletion has no effect, or a backup is gone",
            Self::Schedule => "A schedule does not run, or keeps too much or too little",
            Self::Location => "A storage location cannot be used",
            Self::Download => "Logs or contents cannot be downloaded",
            Self::Administrators => "For administrators: the policy, the operator, live migration",
            Self::Fine => "Nothing is wrong",
        }
    }
}

/// What a reason means for a person.
#[derive(Clone, Copy, Debug)]
pub struct Reason {
    /// The reason, as it is in the condition.
    pub name: &'static str,
    /// The condition, and whose.
    pub shown: &'static str,
    /// What a person notices.
    pub symptom: Symptom,
    /// What causes it.
    pub cause: &'static str,
    /// What to do about it.
    pub remedy: &'static str,
}

pub(crate) const fn reason(
    name: &'static str,
    shown: &'static str,
    symptom: Symptom,
    cause: &'static str,
    remedy: &'static str,
) -> Reason {
    Reason { name, shown, symptom, cause, remedy }
}

pub(crate) const NOTHING: &str = "Nothing.";
const ASK: &str = "Ask the administrators.";

/// Every reason of a condition of nacre's.
pub const REASONS: &[Reason] = &[
    reason(
        is::INVALID_BACKUP_SPEC,
        "Accepted=False of a NonAdminBackup",
        Symptom::Refused,
        "A field asks for something that namespace owners may not have, or that the administrators' policy forbids or \
         requires otherwise. The message begins with the field and ends with what would be accepted. If it ends with \
         \"the backup starts when ...\", it only waits for another object.",
        "Change the field as the message says. `kubectl nacre explain -f FILE` shows the answer before the request is \
         sent. `kubectl nacre policy show -n NAMESPACE` shows the policy.",
    ),
    reason(
        is::INVALID_RESTORE_SPEC,
        "Accepted=False of a NonAdminRestore",
        Symptom::Refused,
        "A field asks for something that namespace owners may not have, the backup does not exist or cannot be restored, or \
         it is in tenants' storage and holds what may not come back from there. The message names the field and what would \
         be accepted. If it ends with \"the restore starts when ...\", it only waits.",
        "Change the field as the message says. `kubectl nacre restore preview --from-backup NAME` shows what would come back.",
    ),
    reason(
        is::REQUESTER_NOT_PERMITTED,
        "Accepted=False of a NonAdminBackup or NonAdminRestore; SpecApplied=False of a NonAdminBackup",
        Symptom::Refused,
        "The person who made the request is not permitted to do by hand what it would do, for example to run commands in \
         pods. Or `deleteBackup` was set by somebody who did not ask for the backup.",
        "Ask an administrator for the permission: the message has the command. The request starts by itself within minutes. \
         `kubectl nacre whoami` shows what you may have.",
    ),
    reason(
        is::POLICY_UNAVAILABLE,
        "Accepted=False of every request; Processed=False of a NonAdminDownloadRequest",
        Symptom::Waits,
        "nacre has no policy that it can read, so nothing new is allowed. The request is not the cause.",
        "Nothing as a tenant: it goes on by itself. Administrators: `kubectl nacre doctor` names the line of the policy that \
         is wrong; `kubectl nacre policy check -f FILE` checks a corrected one.",
    ),
    reason(
        is::NAMESPACE_NOT_SEEN,
        "Accepted=False of every request that Velero does not have; Processed=False of a NonAdminDownloadRequest",
        Symptom::Waits,
        "nacre does not see the namespace of the request, 30 seconds after the request was made. Most often nacre may not \
         list and watch namespaces. Without the namespace nacre does not know what belongs to it, so it creates and deletes \
         nothing there. Backups and restores that Velero has keep the status they had. If one is being deleted, the \
         condition `Deleting` has this message.",
        "Nothing as a tenant: it goes on by itself. Administrators: `kubectl nacre doctor` names missing permissions; \
         nacre needs `list` and `watch` on `namespaces` in the whole cluster. nacre's log has the API server's message.",
    ),
    reason(
        is::NAMESPACE_LIMIT_REACHED,
        "Accepted=False of a NonAdminBackup; WaitingForTurn=True of a NonAdminRestore",
        Symptom::Waits,
        "The namespace has reached a limit of the policy: backups, unfinished requests, bytes in the cluster's storage, or \
         Velero's time in a day. The message has the limit and ends with what frees it.",
        "Wait, or delete a backup that is not needed: `kubectl nacre usage` shows what is used. If the message ends with \
         \"create this one again\", it does not start by itself.",
    ),
    reason(
        is::HAND_OVER_FAILED,
        "Accepted=False of a NonAdminBackup or NonAdminRestore",
        Symptom::Waits,
        "The API server rejected nacre's write in Velero's namespace: a quota, another webhook, or a missing permission of \
         nacre's.",
        "Nothing as a tenant: nacre retries. Administrators: nacre's log has the API server's message; `kubectl nacre doctor` \
         names missing permissions.",
    ),
    reason(
        is::OTHERS_FIRST,
        "WaitingForTurn=True of a NonAdminBackup or NonAdminRestore",
        Symptom::Waits,
        "Other requests are given to Velero first. Namespaces take turns, so that nobody waits for all requests of another.",
        "Wait: the message has the estimated start. Administrators: `kubectl nacre queue list`, `kubectl nacre queue promote`.",
    ),
    reason(
        is::HELD_BY_ADMINISTRATOR,
        "WaitingForTurn=True of a NonAdminBackup or NonAdminRestore",
        Symptom::Waits,
        "An administrator holds the request (`kubectl nacre queue hold`). The Event `QueueHeld` has the reason.",
        "Ask the administrators, or delete the request. Administrators: `kubectl nacre queue release`.",
    ),
    reason(
        is::CLAIMS_NOT_SAVED,
        "DataProtected=False of a NonAdminBackup",
        Symptom::DataMissing,
        "The data of at least one claim is not in the backup: nothing in the cluster can save it, its pod was not running, \
         or saving it failed. The message names the claims.",
        "Do what the message says and make a new backup. Administrators: Velero's node agent has to run, or the driver needs \
         a VolumeSnapshotClass with the label `velero.io/csi-volumesnapshot-class`.",
    ),
    reason(
        is::CLAIMS_KEPT,
        "DataRestored=False of a NonAdminRestore",
        Symptom::DataMissing,
        "A claim exists already. Velero leaves existing claims as they are, so nothing was restored into it.",
        "To replace the data: `kubectl nacre restore create --from-backup NAME --replace`. It makes a safety backup first.",
    ),
    reason(
        is::CLAIMS_MIXED,
        "DataRestored=False of a NonAdminRestore",
        Symptom::DataMissing,
        "A volume was written over a claim that exists already. Files that are not in the backup are still there.",
        "Check the data, or restore again with `--replace`.",
    ),
    reason(
        is::CLAIMS_WITHOUT_DATA,
        "DataRestored=False of a NonAdminRestore",
        Symptom::DataMissing,
        "A claim came back empty, since the backup holds no data of it. `DataProtected` of the backup said so.",
        "Restore from another backup: `kubectl nacre backup get` shows which ones are good.",
    ),
    reason(
        is::VOLUMES_FAILED,
        "DataRestored=False of a NonAdminRestore",
        Symptom::DataMissing,
        "Velero could not restore the data of a claim. The message is Velero's.",
        "`kubectl nacre restore describe NAME` shows each claim. Restore again when the cause is gone.",
    ),
    reason(
        is::VOLUMES_CANCELLED,
        "DataRestored=False of a NonAdminRestore",
        Symptom::DataMissing,
        "Restoring a volume was cancelled, because it could not end: its pod is gone or does not start, or it made no \
         progress. The message says which.",
        "Remove the cause and restore again. Administrators: `volumes` in the policy has the times.",
    ),
    reason(
        is::ERRORS_REPORTED,
        "ResultsRead=True of a NonAdminBackup or NonAdminRestore",
        Symptom::DataMissing,
        "Velero reported errors. The first one is the message.",
        "`kubectl nacre backup describe NAME` or `restore describe NAME` lists them.",
    ),
    reason(
        is::WARNINGS_REPORTED,
        "ResultsRead=True of a NonAdminBackup or NonAdminRestore",
        Symptom::DataMissing,
        "Velero reported warnings and no errors. In a restore these are mostly objects that exist already.",
        "`kubectl nacre restore describe NAME` lists them. Objects that exist are left as they are, unless `--replace` is used.",
    ),
    reason(
        is::RESULTS_NOT_READABLE,
        "ResultsRead=False of a NonAdminBackup or NonAdminRestore; Processed=False or \
         NonAdminBackupStorageLocationNotUsed=True of a NonAdminDownloadRequest",
        Symptom::DataMissing,
        "nacre could not read Velero's list of errors and warnings, the list of the objects in a backup, or a log, from the \
         storage. Or the CRD of NonAdminDownloadRequest has no field for it.",
        "Administrators: nacre's pods need a way to the storage; nacre's log has the reason. The file stays in the storage. \
         If the message names the CRD: install nacre's.",
    ),
    reason(
        is::NOTHING_TO_SHOW,
        "ResultsRead=True of a NonAdminBackup or NonAdminRestore",
        Symptom::DataMissing,
        "What Velero reported is about other namespaces, or could not be shown without naming them.",
        ASK,
    ),
    reason(
        is::RESOURCES_LEFT_OUT,
        "RequesterPermitted=False of a NonAdminBackup or NonAdminRestore",
        Symptom::DataMissing,
        "The person who asked may not read (into own storage) or create (in a restore) some resources. These were left out; \
         the message names them.",
        "Nothing, if they are not needed. Otherwise ask the administrators for the permission, and make a new request.",
    ),
    reason(
        is::NOT_ENFORCED,
        "RequesterPermitted=False of a NonAdminBackup or NonAdminRestore",
        Symptom::DataMissing,
        "The person who asked lacks permissions. The policy only warns (`requester.mode: warn`), so nothing was left out.",
        "Nothing for now. Get the permission before the administrators set `enforce`.",
    ),
    reason(
        is::REQUESTER_NOT_RECORDED,
        "RequesterPermitted=False of a NonAdminBackup or NonAdminRestore",
        Symptom::DataMissing,
        "Nobody recorded who asked, so no permissions were checked. That is so for requests made while nacre's webhook was \
         down, and on clusters without it.",
        "Nothing as a tenant. Administrators: `kubectl nacre doctor` shows whether requests are recorded.",
    ),
    reason(
        is::VELERO_BACKUP_NOT_FOUND,
        "Accepted=False of a NonAdminBackup",
        Symptom::NoEffect,
        "The Velero Backup is gone: it expired (`ttl`), or somebody deleted it. It is not made a second time.",
        "Delete the NonAdminBackup and create a new one.",
    ),
    reason(
        is::VELERO_RESTORE_NOT_FOUND,
        "Accepted=False of a NonAdminRestore",
        Symptom::NoEffect,
        "The Velero Restore is gone: its backup expired or was deleted, or somebody deleted it. It does not run again.",
        "What it brought back stays. To restore once more, create a new NonAdminRestore.",
    ),
    reason(
        is::EDITED_TOO_LATE,
        "SpecApplied=False of a NonAdminBackup",
        Symptom::NoEffect,
        "The spec was edited after Velero got it. Velero ignores that: the backup runs, or ran, as it was first requested.",
        "Create a new NonAdminBackup with the changed spec. Putting the old spec back removes the condition.",
    ),
    reason(
        is::DELETION_PENDING,
        "Deleting=True of a NonAdminBackup or NonAdminRestore",
        Symptom::NoEffect,
        "Deletion was asked for and is not finished. Velero deletes the data first; it refuses while the backup runs or its \
         storage is not available. `status.veleroDeleteBackupRequest` has Velero's message.",
        "Wait. If it lasts: `kubectl nacre backup describe NAME` shows what Velero waits for.",
    ),
    reason(
        is::INVALID_SCHEDULE_SPEC,
        "Accepted=False of a NonAdminSchedule",
        Symptom::Schedule,
        "The expression, the time zone, the retention or the template is not allowed. The message names the field and what \
         would be accepted.",
        "Change the field. `kubectl nacre schedule preview` shows when it would run.",
    ),
    reason(
        is::RUN_SKIPPED,
        "RunsOnTime=False of a NonAdminSchedule",
        Symptom::Schedule,
        "A run was left out: another one was not finished, nacre was not running at the time, or nobody confirmed the schedule. \
         The message has the time and the cause.",
        "If another run was not finished, look at that one. Otherwise nothing: the next run comes.",
    ),
    reason(
        is::RUN_REFUSED,
        "RunsOnTime=False of a NonAdminSchedule",
        Symptom::Schedule,
        "The latest run is refused or waits. The message is that of its NonAdminBackup.",
        "As for that NonAdminBackup.",
    ),
    reason(
        is::CONFIRMATION_DUE,
        "RequesterConfirmed=False of a NonAdminSchedule",
        Symptom::Schedule,
        "The runs are asked for by whoever last changed the schedule, and that is long ago (`requester.maxAge`).",
        "`kubectl nacre schedule confirm NAME`: then you ask for the runs.",
    ),
    reason(
        is::CONFIRMATION_OVERDUE,
        "RequesterConfirmed=False of a NonAdminSchedule",
        Symptom::Schedule,
        "Nobody confirmed the schedule in time. Runs into own storage and runs with hooks are skipped; others go on.",
        "`kubectl nacre schedule confirm NAME`.",
    ),
    reason(
        is::RETENTION_OVER_LIMIT,
        "Retained=False of a NonAdminSchedule",
        Symptom::Schedule,
        "The retention keeps as many backups as the namespace may have, so the next run waits for a place for ever.",
        "Keep fewer: edit `spec.retention`. Or ask the administrators for a higher `backup.maxPerNamespace`.",
    ),
    reason(
        is::RETENTION_STUCK,
        "Retained=False of a NonAdminSchedule",
        Symptom::Schedule,
        "Backups that are no longer kept could not be deleted for a day. The message names them.",
        "Look at their conditions: `kubectl nacre backup describe NAME`.",
    ),
    reason(
        is::TTL_ENFORCED,
        "Retained=True of a NonAdminSchedule",
        Symptom::Schedule,
        "The administrators enforce a `ttl`, so backups expire earlier than the retention says.",
        "Nothing, or ask the administrators. The last good backup does not expire.",
    ),
    reason(
        is::BACKUP_NOT_KEPT,
        "an Event of a NonAdminSchedule",
        Symptom::Schedule,
        "The retention of its schedule no longer keeps the backup, so it is deleted with its data.",
        "Nothing. To keep more, change `spec.retention` of the schedule.",
    ),
    reason(
        is::BACKUP_KEPT,
        "an Event of a NonAdminBackup",
        Symptom::Schedule,
        "Retention was about to delete the backup, but it is the last good one now, or Velero has found it in storage \
         again.",
        NOTHING,
    ),
    reason(
        is::BSL_SPEC_VALIDATION,
        "Accepted=True or False of a NonAdminBackupStorageLocation",
        Symptom::Location,
        "If False: a field, the Secret, or what is in it is not allowed; or another location uses the same place. The message \
         names the field and what would be accepted, never a value of the Secret. If True: the location is allowed.",
        "Change what the message names. The page storage-keys.md lists every key that is accepted.",
    ),
    reason(
        is::BSL_SPEC_APPROVAL_PENDING,
        "ClusterAdminApproved=False of a NonAdminBackupStorageLocation",
        Symptom::Location,
        "The administrators require approval, and none of them has decided yet.",
        "Ask the administrators. Administrators: `kubectl nacre request list`, `kubectl nacre request approve NAMESPACE/NAME`.",
    ),
    reason(
        is::BSL_SPEC_REJECTED,
        "ClusterAdminApproved=False of a NonAdminBackupStorageLocation",
        Symptom::Location,
        "An administrator rejected the location, or revoked the approval. The message has the reason, if there is one.",
        "Ask the administrators.",
    ),
    reason(
        is::BSL_SPEC_INVALID,
        "ClusterAdminApproved=False of a NonAdminBackupStorageLocation",
        Symptom::Location,
        "The decision in the request cannot be understood: it is none of approve, reject and pending.",
        "Administrators: decide again by `kubectl nacre request approve` or `reject`.",
    ),
    reason(
        is::BSL_SPEC_UPDATE_REJECTED,
        "SpecUpdateApproved=False or ClusterAdminApproved=False of a NonAdminBackupStorageLocation",
        Symptom::Location,
        "The location was changed after it was asked for. It was taken from Velero, with its Secret.",
        "Put the old spec back, and it works again. Or create a new location.",
    ),
    reason(
        is::SECRET_SYNC_FAILED,
        "SecretSynced=False of a NonAdminBackupStorageLocation",
        Symptom::Location,
        "Velero could not be given the credential: the API server rejected the write, or the Secret is gone. A location \
         without its Secret is taken from Velero after five minutes.",
        "Create the Secret again. If it is there: nacre retries, and its log has the API server's message.",
    ),
    reason(
        is::LOCATION_SYNC_ERROR,
        "BackupStorageLocationSynced=False of a NonAdminBackupStorageLocation",
        Symptom::Location,
        "Velero could not be given the location: the API server rejected nacre's write in Velero's namespace.",
        "Nothing as a tenant: nacre retries. Administrators: nacre's log has the API server's message.",
    ),
    reason(
        is::IMPORTS_REFUSED,
        "BackupsImported=False of a NonAdminBackupStorageLocation",
        Symptom::Location,
        "There are backups in the storage that nacre did not make for this namespace, or that somebody changed there. Velero \
         may not import them: whoever can write to the bucket could have written them. The message names some and says why.",
        "Nothing, if you do not need them here: all other backups can be used. To get rid of the message, delete their folders \
         below `backups/` in the bucket; it goes within minutes. To restore from one of them, ask the administrators.",
    ),
    reason(
        is::ERROR,
        "NonAdminBackupNotAvailable, NonAdminRestoreNotAvailable or NonAdminBackupStorageLocationNotUsed of a NonAdminDownloadRequest",
        Symptom::Download,
        "What the download names is missing, not finished, or in the cluster's own storage, of which the administrators hand \
         out nothing. The condition's type says which.",
        "Wait for the backup or restore to end. For the cluster's own storage, administrators set `downloads.platformStorage`.",
    ),
    reason(
        is::BACKUP_ACCEPTED,
        "Accepted=True of a NonAdminBackup",
        Symptom::Fine,
        "The backup is allowed. If the message has a second part, read it: it names what cannot be restored later.",
        NOTHING,
    ),
    reason(
        is::RESTORE_ACCEPTED,
        "Accepted=True of a NonAdminRestore",
        Symptom::Fine,
        "The restore is allowed.",
        NOTHING,
    ),
    reason(
        is::SCHEDULE_ACCEPTED,
        "Accepted=True of a NonAdminSchedule",
        Symptom::Fine,
        "The schedule is allowed, and runs.",
        NOTHING,
    ),
    reason(
        is::BACKUP_SCHEDULED,
        "Queued=True of a NonAdminBackup",
        Symptom::Fine,
        "Velero has the backup.",
        NOTHING,
    ),
    reason(
        is::RESTORE_SCHEDULED,
        "Queued=True of a NonAdminRestore",
        Symptom::Fine,
        "Velero has the restore.",
        NOTHING,
    ),
    reason(
        is::STILL_RUNNING,
        "DataProtected=Unknown of a NonAdminBackup, DataRestored=Unknown of a NonAdminRestore",
        Symptom::Fine,
        "It is not over, so nothing can be said about its volumes yet. The message has the progress.",
        "Wait.",
    ),
    reason(
        is::ALL_CLAIMS_SAVED,
        "DataProtected=True of a NonAdminBackup",
        Symptom::Fine,
        "The data of every claim is in the backup, or was left out on purpose.",
        NOTHING,
    ),
    reason(
        is::NO_CLAIMS,
        "DataProtected=True of a NonAdminBackup",
        Symptom::Fine,
        "The namespace has no claims.",
        NOTHING,
    ),
    reason(
        is::ALL_VOLUMES_RESTORED,
        "DataRestored=True of a NonAdminRestore",
        Symptom::Fine,
        "The data of every claim in the backup came back.",
        NOTHING,
    ),
    reason(
        is::NO_VOLUMES,
        "DataRestored=True of a NonAdminRestore",
        Symptom::Fine,
        "The backup holds no volume data.",
        NOTHING,
    ),
    reason(
        is::RUN_CREATED,
        "RunsOnTime=True of a NonAdminSchedule",
        Symptom::Fine,
        "The latest run was made.",
        NOTHING,
    ),
    reason(
        is::RECENTLY_CONFIRMED,
        "RequesterConfirmed=True of a NonAdminSchedule",
        Symptom::Fine,
        "It was recorded recently enough who asks for the runs.",
        NOTHING,
    ),
    reason(
        is::RETENTION_APPLIED,
        "Retained=True of a NonAdminSchedule",
        Symptom::Fine,
        "What is to be kept is kept, and nothing else.",
        NOTHING,
    ),
    reason(
        is::BSL_SPEC_APPROVED,
        "ClusterAdminApproved=True of a NonAdminBackupStorageLocation",
        Symptom::Fine,
        "The location may be used.",
        NOTHING,
    ),
    reason(
        is::SECRET_CREATED,
        "SecretSynced=True of a NonAdminBackupStorageLocation",
        Symptom::Fine,
        "Velero has the credential.",
        NOTHING,
    ),
    reason(
        is::SECRET_UPDATED,
        "SecretSynced=True of a NonAdminBackupStorageLocation",
        Symptom::Fine,
        "Velero has the credential, after a change.",
        NOTHING,
    ),
    reason(
        is::LOCATION_CREATED,
        "BackupStorageLocationSynced=True of a NonAdminBackupStorageLocation",
        Symptom::Fine,
        "Velero has the location. Whether it can reach the storage is in `status.veleroBackupStorageLocation.status`.",
        NOTHING,
    ),
    reason(
        is::LOCATION_UPDATED,
        "BackupStorageLocationSynced=True of a NonAdminBackupStorageLocation",
        Symptom::Fine,
        "Velero has the location, after a change.",
        NOTHING,
    ),
    reason(
        is::SUCCESS,
        "Processed=True of a NonAdminDownloadRequest",
        Symptom::Fine,
        "The link is in the status, or the list of objects, or the lines of the log.",
        NOTHING,
    ),
    reason(
        is::BEING_READ,
        "Processed=Unknown of a NonAdminDownloadRequest",
        Symptom::Fine,
        "nacre reads the list of objects in the backup, or the log, from the cluster's own storage. That takes seconds.",
        NOTHING,
    ),
    reason(
        is::COMPLETE,
        "Reconciled=True of a DataProtectionApplication",
        Symptom::Fine,
        "`nacre operator` has done what the application says.",
        NOTHING,
    ),
];
