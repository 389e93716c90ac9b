//! Labels, annotations and finalizers that link objects to each other.
//!
//! They are trusted only on objects in Velero's namespace; on a tenant's object they are hints at best.

/// On everything nacre creates in the administrators' namespace; its value is [`OADP_VALUE`].
pub const OADP: &str = "openshift.io/oadp";
/// With a capital T, as released clients select it.
pub const OADP_VALUE: &str = "True";
/// On everything nacre creates in the administrators' namespace; its value is [`MANAGED_BY_VALUE`].
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// The name released clients know this controller by.
pub const MANAGED_BY_VALUE: &str = "oadp-nac-controller";

/// On everything an installation of nacre is made of; its value is [`PART_OF_VALUE`]. What lacks it was made by others.
pub const PART_OF: &str = "app.kubernetes.io/part-of";
/// The whole that it is part of.
pub const PART_OF_VALUE: &str = "nacre";

/// On the RoleBinding in a tenant's namespace that gives a Velero for tenants alone its permissions there.
pub const VELERO_ACCESS: &str = "nacre.dev/velero-access";

/// Names the Velero object's own name on a Velero Backup or DeleteBackupRequest.
pub const NAB_NACUUID: &str = "openshift.io/oadp-nab-origin-nacuuid";
/// The same on a Velero Restore.
pub const NAR_NACUUID: &str = "openshift.io/oadp-nar-origin-nacuuid";
/// On a Velero Restore that ended a while ago: admission policies that are evaluated once for each Restore skip it.
pub const ENDED: &str = "nacre.dev/ended";
/// The same as [`NAR_NACUUID`] on a storage location, its Secret and its approval request.
pub const NABSL_NACUUID: &str = "openshift.io/oadp-nabsl-origin-nacuuid";
/// The same on a Velero Schedule that the Go controller made.
pub const NAS_NACUUID: &str = "openshift.io/oadp-nas-origin-nacuuid";
/// The uid of the NonAdminDownloadRequest, on a Velero DownloadRequest.
pub const NADR_UID: &str = "openshift.io/oadp-nadr-origin-nacuuid";
/// On a NonAdminBackup that was made from a Velero Backup found in storage. A hint: tenants can write it too.
pub const SYNCED_FROM: &str = "openshift.io/oadp-nab-synced-from-nacuuid";

/// Which NonAdminBackup a Velero object was made for.
pub const NAB_NAME: &str = "openshift.io/oadp-nab-origin-name";
/// And where it lives.
pub const NAB_NAMESPACE: &str = "openshift.io/oadp-nab-origin-namespace";
/// Which NonAdminRestore a Velero object was made for.
pub const NAR_NAME: &str = "openshift.io/oadp-nar-origin-name";
/// And where it lives.
pub const NAR_NAMESPACE: &str = "openshift.io/oadp-nar-origin-namespace";
/// Which NonAdminBackupStorageLocation an object was made for.
pub const NABSL_NAME: &str = "openshift.io/oadp-nabsl-origin-name";
/// And where it lives.
pub const NABSL_NAMESPACE: &str = "openshift.io/oadp-nabsl-origin-namespace";
/// Which NonAdminSchedule made a NonAdminBackup, as a label, and a Velero object, as an annotation. On a NonAdminBackup it
/// is a hint: whoever writes it there has the backup count as a run of that schedule, in their own namespace.
pub const NAS_NAME: &str = "openshift.io/oadp-nas-origin-name";
/// And where it lives.
pub const NAS_NAMESPACE: &str = "openshift.io/oadp-nas-origin-namespace";
/// The time for which a NonAdminBackup was made by a schedule.
pub const SCHEDULED_FOR: &str = "nacre.dev/scheduled-for";
/// On a run of a schedule with a retention: the ttl it has once that schedule is gone.
pub const TTL_AFTER_SCHEDULE: &str = "nacre.dev/ttl-after-schedule";
/// On a Velero Backup whose schedule is gone: when it would have expired with it.
pub const EXPIRATION_BEFORE: &str = "nacre.dev/expiration-before";
/// On a NonAdminSchedule that nacre made because the policy has a default for the namespace; its value is the name of that
/// default.
pub const DEFAULT_SCHEDULE: &str = "nacre.dev/default-schedule";
/// On the same: a digest of what the policy said of it. Where it does not fit the spec, the owners have changed that.
pub const DEFAULT_DIGEST: &str = "nacre.dev/default-digest";
/// Which NonAdminDownloadRequest a Velero object was made for.
pub const NADR_NAME: &str = "openshift.io/oadp-nadr-origin-name";
/// And where it lives.
pub const NADR_NAMESPACE: &str = "openshift.io/oadp-nadr-origin-namespace";

/// On a Velero Backup of a name that is gone, and under which Velero still counts one as ready. Velero refuses it, forgets
/// the name, and nacre deletes it.
pub const STANDS_IN: &str = "nacre.dev/stands-in";
/// On a Velero Backup that Velero overlooked: when nacre last wrote to it, so that Velero looks at it.
pub const WOKEN: &str = "nacre.dev/woken-at";

/// The uid of the non-admin object an object in the administrators' namespace was made for.
pub const ORIGIN_UID: &str = "nacre.dev/origin-uid";
/// The uid of its namespace: a namespace that was deleted and re-created is a different owner.
pub const ORIGIN_NAMESPACE_UID: &str = "nacre.dev/origin-namespace-uid";
/// Who asked, as JSON: written by the API server on tenants' requests, where nobody can forge it. On a Velero object it
/// is the name alone, for administrators.
pub const REQUESTER: &str = "nacre.dev/requester";
/// Who asked for the data of a backup to be deleted, likewise.
pub const DELETION_REQUESTER: &str = "nacre.dev/deletion-requester";
/// On a Velero Backup that an administrator gave to a re-created namespace: the name of that administrator.
pub const ADOPTED_BY: &str = "nacre.dev/adopted-by";
/// On a Velero Backup or Restore: the resources that were left out because the requester lacks permissions.
pub const LEFT_OUT: &str = "nacre.dev/left-out";
/// On the same: nobody recorded who asked, and the policy warns of that.
pub const NOT_RECORDED: &str = "nacre.dev/requester-not-recorded";
/// The same as what is left out where the policy only warns: the resources that would have been left out.
pub const NOT_PERMITTED: &str = "nacre.dev/not-permitted";
/// On the Secret that takes the place of nacre's Lease where nacre may not use Leases: what the Lease's spec would be.
pub const LEASE: &str = "nacre.dev/lease";
/// On a NonAdminBackup or NonAdminRestore that waits: an administrator moved it to the front of the queue
/// ([`QUEUE_FRONT`]) or holds it ([`QUEUE_HOLD`]). Admission lets nobody else write it.
pub const QUEUE: &str = "nacre.dev/queue";
/// It is next.
pub const QUEUE_FRONT: &str = "front";
/// It waits until it is released.
pub const QUEUE_HOLD: &str = "hold";
/// An administrator's word that tenants may name this ConfigMap; its value is `true`.
pub const TENANT_USABLE: &str = "nacre.dev/tenant-usable";

/// On a request for storage that nacre approved because the policy requires no approval; its value is
/// [`APPROVED_BY_POLICY`]. What an administrator approves does not carry it.
pub const APPROVED_BY: &str = "nacre.dev/approved-by";
/// Nobody approved it by hand.
pub const APPROVED_BY_POLICY: &str = "policy";

/// Why an administrator approved a request, in their own words, on that request. Released clients write it.
pub const APPROVAL_REASON: &str = "openshift.io/oadp-approval-reason";
/// Why an administrator rejected a request. It is shown to the tenant.
pub const REJECTION_REASON: &str = "openshift.io/oadp-rejection-reason";

/// An administrator's word, on a namespace, that its owners may use Velero's own tools there; its value is `true`.
pub const VELERO_VIEW: &str = "nacre.dev/velero-view";
/// On what nacre keeps of Velero's kinds in a tenant's namespace: [`SHOWN_COPY`] or [`SHOWN_REFUSED`]. Tenants can write
/// it too, and all that does is to have the object removed.
pub const SHOWN: &str = "nacre.dev/shown";
/// On the copy of a schedule: whether the schedule was paused when the copy was last written. A copy that says otherwise was
/// changed by its owner.
pub const SHOWN_PAUSED: &str = "nacre.dev/shown-paused";
/// Keeps the copy of a schedule until nacre has seen that its owner deletes it.
pub const VELERO_VIEW_FINALIZER: &str = "nacre.dev/velero-view";
/// A copy of an object of Velero's.
pub const SHOWN_COPY: &str = "copy";
/// Somebody's request that was refused.
pub const SHOWN_REFUSED: &str = "refused";
/// On a Velero DownloadRequest that was asked for by one in a tenant's namespace; its value is `velero`.
pub const ASKED_BY: &str = "nacre.dev/asked-by";
/// With Velero's own command line.
pub const ASKED_BY_VELERO: &str = "velero";

/// Velero's own label: on what no backup of anybody's shall hold; its value is `true`.
pub const EXCLUDE_FROM_BACKUP: &str = "velero.io/exclude-from-backup";
/// Velero's own label: which Backup an object belongs to.
pub const VELERO_BACKUP_NAME: &str = "velero.io/backup-name";
/// Velero's own label: which one of that name.
pub const VELERO_BACKUP_UID: &str = "velero.io/backup-uid";
/// Velero's own label: which Restore an object belongs to.
pub const VELERO_RESTORE_NAME: &str = "velero.io/restore-name";
/// Velero's own label: on a PersistentVolume that a data mover restored, and on its claim's selector.
pub const VELERO_MOVED_VOLUME: &str = "velero.io/dynamic-pv-restore";
/// Velero's own label: which one of that name.
pub const VELERO_RESTORE_UID: &str = "velero.io/restore-uid";
/// Velero's own label: the uid of the claim whose data an object about a volume is about.
pub const VELERO_CLAIM_UID: &str = "velero.io/pvc-uid";
/// Velero's own annotation: the name of that claim, on a PodVolumeBackup.
pub const VELERO_CLAIM_NAME: &str = "velero.io/pvc-name";
/// Velero's own annotation on a Backup or Restore: how long its PodVolumeBackups or PodVolumeRestores may take together.
pub const VELERO_POD_VOLUME_TIMEOUT: &str = "velero.io/pod-volume-timeout";
/// Velero's own label: where a Backup is kept.
pub const VELERO_STORAGE_LOCATION: &str = "velero.io/storage-location";

/// Holds a NonAdminBackup until its Velero Backup is dealt with.
pub const NAB_FINALIZER: &str = "nonadminbackup.oadp.openshift.io/finalizer";
/// Holds a NonAdminRestore until its Velero Restore is gone.
pub const NAR_FINALIZER: &str = "nonadminrestore.oadp.openshift.io/finalizer";
/// The Go controller holds a NonAdminSchedule by it; nacre removes it and puts none there.
pub const NAS_FINALIZER: &str = "nonadminschedule.oadp.openshift.io/finalizer";
/// Holds a NonAdminBackupStorageLocation until its objects in the administrators' namespace are gone.
pub const NABSL_FINALIZER: &str = "nonadminbackupstoragelocation.oadp.openshift.io/finalizer";
