//! What the reasons of Events mean for a person, where they are not those of a condition. `docs/troubleshooting.md` is made
//! of this, too.

use crate::reasons::{NOTHING, REASONS, Reason, Symptom, reason};

/// Whether the page explains this reason of an Event.
pub fn is_explained(name: &str) -> bool {
    REASONS.iter().chain(EVENTS).any(|known| known.name == name)
}

const OF_BACKUP: &str = "an Event of a NonAdminBackup";
const OF_RESTORE: &str = "an Event of a NonAdminRestore";
const OF_EITHER: &str = "an Event of a NonAdminBackup or NonAdminRestore";
const OF_LOCATION: &str = "an Event of a NonAdminBackupStorageLocation";
const OF_DPA: &str = "an Event of a DataProtectionApplication";
const OF_POLICY: &str = "an Event of the policy's ConfigMap or of the DataProtectionApplication";
const OF_SETTINGS: &str = "an Event of the ConfigMap kube-system/nacre-migration";

/// Every reason of an Event that is not the reason of a condition.
pub const EVENTS: &[Reason] = &[
    reason(
        "VolumeCancelled",
        OF_EITHER,
        Symptom::DataMissing,
        "The copy of a volume could not end: its pod is gone or does not start, nothing moves any more, or the request is \
         being deleted. nacre cancelled it, so that it does not hold up everybody. The message names volume and cause.",
        "Remove the cause, for example a pod that cannot be scheduled, and make a new backup or restore.",
    ),
    reason(
        "DataNotRestored",
        OF_RESTORE,
        Symptom::DataMissing,
        "Velero has ended the restore, but the data of a claim is not back. The message names each claim and why.",
        "`kubectl nacre restore describe NAME` shows each claim. Remove the cause and restore the claim again.",
    ),
    reason(
        "BackupFailed",
        OF_BACKUP,
        Symptom::DataMissing,
        "Velero ended the backup in another phase than `Completed`. The message has the phase and Velero's reason.",
        "`kubectl nacre backup describe NAME` shows errors and warnings, `kubectl nacre backup logs NAME` the log.",
    ),
    reason(
        "RestoreFailed",
        OF_RESTORE,
        Symptom::DataMissing,
        "Velero ended the restore in another phase than `Completed`. The message has the phase and Velero's reason.",
        "`kubectl nacre restore describe NAME` shows errors and warnings, `kubectl nacre restore logs NAME` the log.",
    ),
    reason(
        "BackupHeldBack",
        OF_BACKUP,
        Symptom::NoEffect,
        "The cluster's storage has a backup of an earlier namespace of this name. The namespace was deleted and re-created, or \
         the cluster is new. It may belong to somebody else, so it is not shown.",
        "Ask an administrator: `kubectl nacre adopt NAMESPACE` gives it to the namespace.",
    ),
    reason(
        "DataNotDeleted",
        OF_BACKUP,
        Symptom::NoEffect,
        "The backup was deleted, but its data stays in the storage. The message has the reason.",
        "Where the data has to go, ask whoever owns the storage to delete it there.",
    ),
    reason(
        "DeletionRefused",
        OF_BACKUP,
        Symptom::NoEffect,
        "Velero refused to delete the backup with its data. The message is Velero's.",
        "Remove the cause that the message names. nacre asks again by itself.",
    ),
    reason(
        "RequestRefused",
        "an Event of a Velero object in the namespace of its owner",
        Symptom::Refused,
        "Somebody asked by Velero's own command line for something that is not possible in a namespace. The message has the \
         reason.",
        "Use `kubectl nacre`, or ask for what the message names.",
    ),
    reason(
        "QueueHeld",
        OF_EITHER,
        Symptom::Waits,
        "An administrator holds the request. The message has who, and perhaps why.",
        "Wait until it is released, or ask that administrator.",
    ),
    reason(
        "QueuePromoted",
        OF_EITHER,
        Symptom::Waits,
        "An administrator moved the request to the front of the queue.",
        NOTHING,
    ),
    reason(
        "QueueReleased",
        OF_EITHER,
        Symptom::Waits,
        "An administrator gave the request its usual place in the queue again.",
        NOTHING,
    ),
    reason(
        "BackupIgnored",
        OF_LOCATION,
        Symptom::Location,
        "A backup in this storage is not what its owner could have made with nacre, for example one of another namespace. It \
         is left alone. The message names it and the reason.",
        "Nothing, if it is not yours. Whoever can write to the bucket can put such backups there.",
    ),
    reason(
        "ImportOff",
        OF_LOCATION,
        Symptom::Location,
        "Velero is older than 1.18.3: it would run unfinished backups that it finds in a bucket. So backups that are already in \
         this storage are not imported.",
        "Administrators: upgrade Velero, or set `storageLocations.import` in the policy if every bucket is trusted.",
    ),
    reason(
        "LocationDeleted",
        OF_LOCATION,
        Symptom::Location,
        "The location is gone. What is in the bucket stays.",
        NOTHING,
    ),
    reason(
        "PolicyBroken",
        OF_POLICY,
        Symptom::Administrators,
        "The policy has a mistake. The last valid policy stays in effect.",
        "Correct the line that the message names. `kubectl nacre policy check -f FILE` checks it before it is applied.",
    ),
    reason(
        "PolicyMended",
        OF_POLICY,
        Symptom::Administrators,
        "The policy is valid again, and counts as written.",
        NOTHING,
    ),
    reason(
        "PolicyVanished",
        OF_POLICY,
        Symptom::Administrators,
        "The object that has the policy was deleted. Its policy still counts, for the time that the message names.",
        "Create it again, if it was deleted by mistake.",
    ),
    reason(
        "PolicyReturned",
        OF_POLICY,
        Symptom::Administrators,
        "The policy is there again, and counts as written.",
        NOTHING,
    ),
    reason(
        "PolicyEnded",
        OF_POLICY,
        Symptom::Administrators,
        "The object that has the policy has been gone for too long: its policy no longer applies.",
        "Create it again. `kubectl nacre policy show` shows what applies now.",
    ),
    reason(
        "NonAdminDeploymentReconciled",
        OF_DPA,
        Symptom::Administrators,
        "`nacre operator` created or changed the Deployment of nacre, as the DataProtectionApplication asks.",
        NOTHING,
    ),
    reason(
        "NonAdminDeploymentDeleteSucceed",
        OF_DPA,
        Symptom::Administrators,
        "The DataProtectionApplication switched nacre off, so `nacre operator` deleted its Deployment.",
        NOTHING,
    ),
    reason(
        "RoleRepaired",
        OF_SETTINGS,
        Symptom::Administrators,
        "Roles for live migration were not as asked for. nacre put them right; the message names them.",
        "Nothing after an upgrade or a rollback. Otherwise somebody changed them: the audit log shows who.",
    ),
    reason(
        "RolesContested",
        OF_SETTINGS,
        Symptom::Administrators,
        "Somebody else keeps changing a role for live migration. nacre retries after ten minutes.",
        "Find the other controller, for example GitOps with another version of the role, and let one of the two manage it.",
    ),
    reason(
        "GuardContested",
        OF_SETTINGS,
        Symptom::Administrators,
        "Somebody else keeps changing the guard of live migration. nacre retries after ten minutes.",
        "Find the other controller, and let one of the two manage the policies.",
    ),
    reason(
        "MigrationRightsChanged",
        OF_SETTINGS,
        Symptom::Administrators,
        "Who can migrate machines has changed. The message names who was added or removed.",
        "`kubectl nacre migration who-can -A` shows everybody, and by which path.",
    ),
    reason(
        "GrantExpired",
        OF_SETTINGS,
        Symptom::Administrators,
        "A grant has reached its end, and was removed.",
        NOTHING,
    ),
    reason(
        "GrantExpiryUnreadable",
        OF_SETTINGS,
        Symptom::Administrators,
        "The annotation `nacre.dev/expires` of a grant is not a time. The grant does not end.",
        "Correct the annotation, or grant again with `kubectl nacre migration grant --expires 24h`.",
    ),
    reason("BackupStarted", OF_BACKUP, Symptom::Fine, "Velero has started the backup.", NOTHING),
    reason("BackupCompleted", OF_BACKUP, Symptom::Fine, "The backup is complete.", NOTHING),
    reason(
        "BackupDeleted",
        OF_BACKUP,
        Symptom::Fine,
        "The backup is gone, as somebody asked.",
        ASK_IF_NOBODY,
    ),
    reason("RestoreStarted", OF_RESTORE, Symptom::Fine, "Velero has started the restore.", NOTHING),
    reason("RestoreCompleted", OF_RESTORE, Symptom::Fine, "The restore is complete.", NOTHING),
    reason(
        "RestoreDeleted",
        OF_RESTORE,
        Symptom::Fine,
        "The restore is gone. What it brought back stays.",
        NOTHING,
    ),
    reason(
        "DeletionRequested",
        OF_BACKUP,
        Symptom::Fine,
        "Velero was asked to delete the backup with its data. The message has who asked.",
        NOTHING,
    ),
    reason(
        "DownloadRequested",
        "an Event of a NonAdminDownloadRequest",
        Symptom::Fine,
        "Velero was asked for a link. The message has who asked.",
        NOTHING,
    ),
];

const ASK_IF_NOBODY: &str = "Nothing. If nobody in the namespace asked, the audit log shows who did.";
