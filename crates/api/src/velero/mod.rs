//! The part of Velero's API that nacre reads or writes, field by field as Velero 1.18 has it.
//!
//! Reading is lenient (a newer Velero may say more), and a zero in one of Velero's non-pointer fields is read
//! as "not set", because Go clients always send those.

mod backup;
mod hooks;
mod location;
mod requests;
mod restore;
mod schedule;
mod unset;
mod volumes;

pub use backup::{Backup, BackupProgress, BackupSpec, BackupStatus, Metadata, UploaderConfigForBackup};
pub use hooks::{
    BackupHook, BackupHooks, BackupResourceHook, ExecHook, ExecRestoreHook, HookStatus, InitRestoreHook,
    RestoreHook, RestoreHooks, RestoreResourceHook,
};
pub use location::{
    BackupStorageLocation, BackupStorageLocationSpec, BackupStorageLocationStatus, ObjectStorageLocation,
};
pub use requests::{
    DeleteBackupRequest, DeleteBackupRequestSpec, DeleteBackupRequestStatus, DownloadRequest,
    DownloadRequestSpec, DownloadRequestStatus, ServerStatusRequest, ServerStatusRequestSpec,
    ServerStatusRequestStatus,
};
pub use restore::{
    Restore, RestoreProgress, RestoreSpec, RestoreStatus, RestoreStatusSpec, UploaderConfigForRestore,
};
pub use schedule::{Schedule, ScheduleSpec, ScheduleStatus};
pub use volumes::{
    DataDownload, DataUpload, PodReference, PodVolumeBackup, PodVolumeRestore, VolumeOperation,
    VolumeProgress, VolumeStatus,
};
