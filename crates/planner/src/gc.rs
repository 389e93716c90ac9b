//! What is left in the administrators' namespace of requests that are no more.
//!
//! Owners are identified by uid. Nothing goes whose owner lives, nothing that waits for an administrator, and nothing
//! that would be found in storage again.

use std::sync::Arc;

use api::velero::{Backup, BackupStorageLocation, DeleteBackupRequest, Restore, Schedule};
use api::{
    HiddenSecret, Kind, NonAdminBackup, NonAdminBackupStorageLocation, NonAdminBackupStorageLocationRequest,
    NonAdminRestore, labels,
};
use jiff::SignedDuration;
use kube::core::ObjectMeta;
use serde_json::{Value, json};

use crate::ownership::{Storage, annotation, label, made_for, storage};
use crate::queue::{Queued, Stage};
use crate::state::State;
use crate::{Target, backup, schedule};

/// Every object whose owner is gone.
pub fn leftovers(view: &State) -> Vec<Target> {
    let mut found = Vec::new();
    let mut left = |kind: Kind, meta: &ObjectMeta, is: bool| {
        if is && is_ours(meta) && meta.deletion_timestamp.is_none() {
            found.push(Target::of(kind, meta));
        }
    };
    for velero in view.all::<Backup>() {
        left(Kind::Backup, &velero.metadata, is_left_backup(view, &velero));
    }
    for velero in view.all::<Restore>() {
        let owner = origin(&velero.metadata, labels::NAR_NAMESPACE, labels::NAR_NAME);
        let gone = owner.is_some_and(|(namespace, name)| {
            view.get::<NonAdminRestore>(namespace, name).is_none_or(|restore| {
                let owner = &restore.metadata;
                !made_for(&velero.metadata, owner, labels::NAR_NAME, labels::NAR_NAMESPACE)
            })
        });
        // Deleting what Velero works on leaves Velero waiting for ever (velero#4556).
        let at_work = matches!(velero.stage(), Stage::Running | Stage::Finalizing);
        left(Kind::Restore, &velero.metadata, gone && !at_work);
    }
    for storage in view.all::<BackupStorageLocation>() {
        left(Kind::BackupStorageLocation, &storage.metadata, lost_its_location(view, &storage.metadata));
    }
    for copy in view.all::<HiddenSecret>() {
        left(Kind::Secret, &copy.metadata, lost_its_location(view, &copy.metadata));
    }
    for velero in view.all::<Schedule>() {
        left(Kind::Schedule, &velero.metadata, schedule::is_left(view, &velero.metadata));
    }
    for request in view.all::<NonAdminBackupStorageLocationRequest>() {
        let meta = &request.metadata;
        left(Kind::NonAdminBackupStorageLocationRequest, meta, lost_its_location(view, meta));
    }
    for request in view.all::<DeleteBackupRequest>() {
        let done = request.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Processed");
        let gone = view.admin::<Backup>(&request.spec.backup_name).is_none();
        let meta = &request.metadata;
        left(Kind::DeleteBackupRequest, meta, (done || gone) && lost_its_backup(view, meta));
    }
    found
}

/// The Velero Backups that outlived their schedule, and what moves their expiration.
pub fn outlived(view: &State) -> Vec<(Target, Value)> {
    let ours =
        |velero: &Arc<Backup>| is_ours(&velero.metadata) && velero.metadata.deletion_timestamp.is_none();
    let all = view.all::<Backup>().into_iter().filter(ours);
    all.filter_map(|velero| schedule::shorten(view, &velero)).collect()
}

/// How long after its end a Velero Restore is labelled as ended, so that whoever looks at it meanwhile is not disturbed.
const ENDED_FOR: SignedDuration = SignedDuration::from_hours(1);
/// How many are labelled at once: after an upgrade there may be thousands.
const LABELLED_AT_ONCE: usize = 200;

/// The Velero Restores that ended a while ago, and the label that says so. The API server evaluates some admission
/// policies once for each Restore without it, at every new namespace and at every change of a volume or service account.
pub fn ended(view: &State) -> Vec<(Target, Value)> {
    let is_over = |velero: &Restore| {
        let since = |ended| view.now().duration_since(ended) > ENDED_FOR;
        velero.stage() == Stage::Finished && velero.ended().is_some_and(since)
    };
    let new = |meta: &ObjectMeta| is_ours(meta) && label(meta, labels::ENDED).is_none();
    let all = view.all::<Restore>().into_iter();
    let over = all.filter(|velero| new(&velero.metadata) && is_over(velero)).take(LABELLED_AT_ONCE);
    let body = json!({"metadata": {"labels": {labels::ENDED: "true"}}});
    over.map(|velero| (Target::of(Kind::Restore, &velero.metadata), body.clone())).collect()
}

/// Made by nacre or by the Go controller.
fn is_ours(meta: &ObjectMeta) -> bool {
    label(meta, labels::OADP) == Some(labels::OADP_VALUE)
        && label(meta, labels::MANAGED_BY) == Some(labels::MANAGED_BY_VALUE)
}

fn origin<'a>(meta: &'a ObjectMeta, namespace: &str, name: &str) -> Option<(&'a str, &'a str)> {
    annotation(meta, namespace).zip(annotation(meta, name))
}

fn lost_its_location(view: &State, meta: &ObjectMeta) -> bool {
    label(meta, labels::NABSL_NACUUID).is_some()
        && origin(meta, labels::NABSL_NAMESPACE, labels::NABSL_NAME).is_some_and(|(namespace, name)| {
            let owner = view.get::<NonAdminBackupStorageLocation>(namespace, name);
            owner.is_none_or(|owner| {
                !made_for(meta, &owner.metadata, labels::NABSL_NAME, labels::NABSL_NAMESPACE)
            })
        })
}

fn lost_its_backup(view: &State, meta: &ObjectMeta) -> bool {
    origin(meta, labels::NAB_NAMESPACE, labels::NAB_NAME).is_some_and(|(namespace, name)| {
        let owner = view.get::<NonAdminBackup>(namespace, name);
        owner.is_none_or(|owner| !made_for(meta, &owner.metadata, labels::NAB_NAME, labels::NAB_NAMESPACE))
    })
}

/// A Velero Backup that no request refers to and none ever will: one that ended before it began, or whose storage is
/// not there any more. Every other is found by its owner again, now or when the namespace comes back.
fn is_left_backup(view: &State, velero: &Backup) -> bool {
    let name = velero.metadata.name.as_deref().unwrap_or_default();
    if label(&velero.metadata, labels::NAB_NACUUID).is_none() || velero.stage() != Stage::Finished {
        return false;
    }
    let Some(owner) = annotation(&velero.metadata, labels::NAB_NAMESPACE) else { return false };
    let referred = view.backups_of(name).into_iter().filter(|key| key.namespace == owner).any(|key| {
        let request = view.get::<NonAdminBackup>(&key.namespace, &key.name);
        request.is_some_and(|request| {
            label(&request.metadata, labels::SYNCED_FROM) == Some(name)
                || backup::velero_of(view, &request)
                    .is_some_and(|found| found.metadata.name.as_deref() == Some(name))
        })
    });
    let location =
        velero.spec.storage_location.as_deref().and_then(|name| view.admin::<BackupStorageLocation>(name));
    let completed = velero.status.as_ref().is_some_and(|status| status.completion_timestamp.is_some());
    let unknown = storage(velero, location.as_deref()) == Storage::Unknown;
    !referred && (unknown || !completed)
}
