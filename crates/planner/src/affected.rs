//! Which requests a change affects: what to reconcile when another object was created, changed or deleted.
//!
//! Each function gets an object before and after the change; at least one of them is given.

use std::collections::BTreeSet;

use api::velero::{Backup, BackupStorageLocation, DeleteBackupRequest, DownloadRequest, Restore, Schedule};
use api::{
    Claim, DataProtectionApplication, Kind, NodeAgent, NonAdminBackup, NonAdminBackupStorageLocation,
    NonAdminDownloadRequest, NonAdminRestore, NonAdminSchedule, Phase, RestoredPod, Volume, labels,
};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Resource;
use kube::core::ObjectMeta;

use crate::backup::{is_next, next_in_line};
use crate::ownership::{annotation, label};
use crate::queue::{Queued, Stage};
use crate::state::State;
use crate::{Key, dedicated, download, last_good, location, policy, restore, schedule as schedules, sync};

/// A backup request: itself, and the restores that wait for it. One that is deleted, or comes to nothing, leaves its
/// place under the namespace limit to those that wait.
pub fn backup(view: &State, before: Option<&NonAdminBackup>, after: Option<&NonAdminBackup>) -> Vec<Key> {
    let Some(backup) = after.or(before) else { return Vec::new() };
    let (namespace, name) = place(&backup.metadata);
    let mut keys = vec![Key::of(Kind::NonAdminBackup, &backup.metadata)];
    keys.extend(waiting_restores(view, namespace, name));
    keys.extend(waiting_downloads(view, namespace, name, download::concerns_backups));
    let waits = |request: Option<&NonAdminBackup>| request.is_some_and(is_next);
    if after.is_none() || (waits(before) && !waits(after)) {
        keys.extend(next_in_line(view, namespace));
    }
    let goes = |backup: &NonAdminBackup| {
        backup.metadata.deletion_timestamp.is_some() || backup.spec.delete_backup == Some(true)
    };
    if before.is_some_and(|before| !goes(before)) && after.is_none_or(goes) {
        keys.extend(marked_siblings(view, namespace, &backup.metadata));
    }
    keys.extend(schedule_of(view, before.map(|backup| &backup.metadata)));
    keys.extend(schedule_of(view, after.map(|backup| &backup.metadata)));
    if after.is_none() {
        let left = crate::backup::references(backup);
        keys.extend(left.iter().map(|name| Key::new(Kind::Backup, view.admin_namespace(), name)));
    }
    keys
}

/// The runs of the same schedule that go because there is a newer one: this may be that one.
fn marked_siblings(view: &State, namespace: &str, run: &ObjectMeta) -> Vec<Key> {
    let Some(named) = schedules::of_run(run) else { return Vec::new() };
    let siblings = view.runs_labelled(namespace, named).into_iter();
    let marked = siblings.filter(|sibling| schedules::is_marked(sibling));
    marked.map(|sibling| Key::of(Kind::NonAdminBackup, &sibling.metadata)).collect()
}

/// The schedule that a backup request says it is a run of.
fn schedule_of(view: &State, backup: Option<&ObjectMeta>) -> Option<Key> {
    labelled_schedule(view, backup?.namespace.as_deref()?, schedules::of_run(backup?)?)
}

/// The schedule whose runs have this label.
fn labelled_schedule(view: &State, namespace: &str, named: &str) -> Option<Key> {
    let all = view.list::<NonAdminSchedule>(namespace).into_iter();
    let mut fitting = all
        .filter(|one| one.metadata.name.as_deref().is_some_and(|name| schedules::label_value(name) == named));
    fitting.next().map(|one| Key::of(Kind::NonAdminSchedule, &one.metadata))
}

/// The schedules with runs in this storage: which of them is the last good one depends on whether it can be read.
fn schedules_stored_in(view: &State, storage: &str) -> impl Iterator<Item = Key> {
    view.schedules_stored_in(storage)
        .filter_map(|(namespace, named)| labelled_schedule(view, namespace, named))
}

/// A schedule: itself. One that goes leaves its place under the namespace limit to those that wait.
pub fn schedule(
    view: &State,
    before: Option<&NonAdminSchedule>,
    after: Option<&NonAdminSchedule>,
) -> Vec<Key> {
    let Some(schedule) = after.or(before) else { return Vec::new() };
    let mut keys = vec![Key::of(Kind::NonAdminSchedule, &schedule.metadata)];
    // A run that was deleted before its schedule saw it waits for that.
    let unseen = before.into_iter().flat_map(schedules::unseen_runs);
    let seen = unseen
        .filter(|name| !after.is_some_and(|after| schedules::unseen_runs(after).any(|one| one == *name)));
    keys.extend(seen.map(|name| Key::new(Kind::NonAdminBackup, place(&schedule.metadata).0, name)));
    if after.is_none() {
        let namespace = place(&schedule.metadata).0;
        keys.extend(view.backing_off_in(Kind::NonAdminSchedule, namespace));
        keys.extend(schedules::may_want_defaults(view, namespace));
    }
    keys
}

/// A Velero Schedule: the schedule it was made for.
pub fn velero_schedule(_: &State, before: Option<&Schedule>, after: Option<&Schedule>) -> Vec<Key> {
    after.or(before).and_then(|velero| schedules::origin(&velero.metadata)).into_iter().collect()
}

/// A restore request: itself, the downloads that wait for it, and the backup it names if that is being deleted with its
/// data, because the restore goes with it.
pub fn restore(view: &State, before: Option<&NonAdminRestore>, after: Option<&NonAdminRestore>) -> Vec<Key> {
    let Some(restore) = after.or(before) else { return Vec::new() };
    let (namespace, name) = place(&restore.metadata);
    let named = restore.spec.restore_spec.backup_name.as_deref();
    let going = named.and_then(|name| view.get::<NonAdminBackup>(namespace, name));
    let going = going.filter(|backup| backup.spec.delete_backup == Some(true));
    let mut keys = vec![Key::of(Kind::NonAdminRestore, &restore.metadata)];
    keys.extend(going.map(|backup| Key::of(Kind::NonAdminBackup, &backup.metadata)));
    keys.extend(waiting_downloads(view, namespace, name, download::concerns_restores));
    keys
}

/// A request for a download: itself; if it is gone, its Velero DownloadRequest.
pub fn download(
    view: &State,
    before: Option<&NonAdminDownloadRequest>,
    after: Option<&NonAdminDownloadRequest>,
) -> Vec<Key> {
    if let Some(request) = after {
        return vec![Key::of(Kind::NonAdminDownloadRequest, &request.metadata)];
    }
    let uid = before.and_then(|request| request.metadata.uid.as_deref());
    let velero = uid.and_then(|uid| view.admin::<DownloadRequest>(&download::velero_name(uid)));
    velero.map(|velero| Key::of(Kind::DownloadRequest, &velero.metadata)).into_iter().collect()
}

/// A Velero DownloadRequest: the request it was made for, or itself if that is gone.
pub fn download_request(
    view: &State,
    before: Option<&DownloadRequest>,
    after: Option<&DownloadRequest>,
) -> Vec<Key> {
    let Some(velero) = after.or(before) else { return Vec::new() };
    let mut keys: Vec<_> = download::origin(&velero.metadata).map(|(key, _)| key).into_iter().collect();
    if after.is_some() && download::orphaned(view, &velero.metadata) {
        keys.push(Key::of(Kind::DownloadRequest, &velero.metadata));
    }
    keys
}

/// A tenant's location: itself, and the backups that name it and wait. One that goes makes room for others, also while
/// somebody else's finalizer holds it.
pub fn location(
    view: &State,
    before: Option<&NonAdminBackupStorageLocation>,
    after: Option<&NonAdminBackupStorageLocation>,
) -> Vec<Key> {
    let Some(location) = after.or(before) else { return Vec::new() };
    let (namespace, name) = place(&location.metadata);
    let mut keys = vec![Key::of(Kind::NonAdminBackupStorageLocation, &location.metadata)];
    keys.extend(naming_location(view, namespace, name));
    keys.extend(schedules_stored_in(view, &last_good::tenants_location(namespace, name)));
    let goes = |now: &NonAdminBackupStorageLocation| now.metadata.deletion_timestamp.is_some();
    if after.is_none_or(|now| goes(now) && !before.is_some_and(goes)) {
        keys.extend(refused_locations(view).filter(|key| key.namespace == namespace));
    }
    keys
}

/// What an administrator decides about a location, or the credential Velero has of it: that location.
pub fn of_location<K: Resource>(_: &State, before: Option<&K>, after: Option<&K>) -> Vec<Key> {
    let Some(meta) = after.or(before).map(Resource::meta) else { return Vec::new() };
    location_of(meta).into_iter().collect()
}

/// A Velero Backup: whoever refers to it; when it is over or gone, also the restores that wait for it and the backups
/// that wait for a limit.
pub fn velero_backup(view: &State, before: Option<&Backup>, after: Option<&Backup>) -> Vec<Key> {
    let Some(velero) = after.or(before) else { return Vec::new() };
    if let (Some(before), Some(after)) = (before, after)
        && only_queue_moved(before, after)
    {
        return Vec::new();
    }
    let mut keys = view.backups_of(velero.metadata.name.as_deref().unwrap_or_default());
    let expires =
        |velero: Option<&Backup>| velero.and_then(|velero| velero.status.as_ref()?.expiration.clone());
    if expires(before) != expires(after) {
        // The last good backup of a schedule must not expire.
        let runs = keys.iter().filter_map(|key| view.get::<NonAdminBackup>(&key.namespace, &key.name));
        let runs: Vec<_> = runs.filter_map(|run| schedule_of(view, Some(&run.metadata))).collect();
        keys.extend(runs);
    }
    // Velero keeps updating finished objects; that affects nobody else.
    let was_so = before.is_some_and(|before| before.phase() == velero.phase());
    if after.is_some() && (velero.stage() != Stage::Finished || was_so) {
        return keys;
    }
    let owner = annotation(&velero.metadata, labels::NAB_NAMESPACE).map(str::to_owned);
    let mut namespaces = BTreeSet::from_iter(owner);
    for key in keys.clone() {
        keys.extend(waiting_restores(view, &key.namespace, &key.name));
        keys.extend(waiting_downloads(view, &key.namespace, &key.name, download::concerns_backups));
        namespaces.insert(key.namespace);
    }
    keys.extend(namespaces.iter().flat_map(|namespace| next_in_line(view, namespace)));
    // It may be imported from storage and need a request.
    keys.extend(after.map(|velero| Key::of(Kind::Backup, &velero.metadata)));
    keys
}

/// Velero rewrites the queue position of every waiting Backup whenever one starts. Positions are updated by a periodic
/// job, not by reconciling each of them.
fn only_queue_moved(before: &Backup, after: &Backup) -> bool {
    let (Some(was), Some(is)) = (&before.status, &after.status) else { return false };
    if was.queue_position == is.queue_position || before.metadata.labels != after.metadata.labels {
        return false;
    }
    let mut alike = is.clone();
    alike.queue_position = was.queue_position;
    alike == *was && before.spec == after.spec && before.metadata.annotations == after.metadata.annotations
}

/// A Velero Restore: whoever refers to it; once it is over, also the downloads that wait for it.
pub fn velero_restore(view: &State, before: Option<&Restore>, after: Option<&Restore>) -> Vec<Key> {
    let Some(velero) = after.or(before) else { return Vec::new() };
    let mut keys = view.restores_of(velero.metadata.name.as_deref().unwrap_or_default());
    // One that is gone cannot be looked up any more.
    keys.extend(restore::origin(velero));
    keys.sort();
    keys.dedup();
    if velero.stage() == Stage::Finished {
        for key in keys.clone() {
            keys.extend(waiting_downloads(view, &key.namespace, &key.name, download::concerns_restores));
        }
    }
    keys
}

/// A request to delete a Velero Backup: whoever refers to that.
pub fn delete_request(
    view: &State,
    before: Option<&DeleteBackupRequest>,
    after: Option<&DeleteBackupRequest>,
) -> Vec<Key> {
    after.or(before).map_or_else(Vec::new, |request| view.backups_of(&request.spec.backup_name))
}

/// Something about a volume: whoever refers to the Velero object it belongs to.
pub fn volume<K: Resource>(view: &State, before: Option<&K>, after: Option<&K>) -> Vec<Key> {
    let Some(meta) = after.or(before).map(Resource::meta) else { return Vec::new() };
    let backup = label(meta, labels::VELERO_BACKUP_NAME).map(|name| view.backups_of(name));
    let restore = label(meta, labels::VELERO_RESTORE_NAME).map(|name| view.restores_of(name));
    backup.into_iter().chain(restore).flatten().collect()
}

/// A claim: nobody. Whether its data is safe is decided when the backup or the restore that is about it changes.
pub fn claim(_: &State, _: Option<&Claim>, _: Option<&Claim>) -> Vec<Key> {
    Vec::new()
}

/// A volume: nobody, for the same reason.
pub fn persistent_volume(_: &State, _: Option<&Volume>, _: Option<&Volume>) -> Vec<Key> {
    Vec::new()
}

/// A pod that Velero restored: whoever refers to that Velero Restore, which may wait for the pod.
pub fn restored_pod(view: &State, before: Option<&RestoredPod>, after: Option<&RestoredPod>) -> Vec<Key> {
    let Some(pod) = after.or(before) else { return Vec::new() };
    label(&pod.metadata, labels::VELERO_RESTORE_NAME).map(|name| view.restores_of(name)).unwrap_or_default()
}

/// The node agents: when the last one ends, whoever has volumes that are being saved or restored. Other requests are decided
/// about with what is known when they are handed over.
pub fn node_agent(view: &State, before: Option<&NodeAgent>, after: Option<&NodeAgent>) -> Vec<Key> {
    let runs = |agent: Option<&NodeAgent>| agent.is_some_and(NodeAgent::runs);
    if !runs(before) || runs(after) || view.node_agent_runs() {
        return Vec::new();
    }
    view.with_volumes_at_work()
}

/// Velero's side of a location: of a tenant's, that location and the backups that name it; of any that came, went, or can
/// be reached again, whoever else waits, for what they want may be kept there, and the schedules with runs in it. One that
/// is gone leaves its place in the bucket to others.
pub fn storage_location(
    view: &State,
    before: Option<&BackupStorageLocation>,
    after: Option<&BackupStorageLocation>,
) -> Vec<Key> {
    let Some(storage) = after.or(before) else { return Vec::new() };
    if let (Some(before), Some(after)) = (before, after)
        && only_looked_at(before, after)
    {
        let location = location_of(&after.metadata);
        return location.filter(|key| location::times::are_due_for(view, key, after)).into_iter().collect();
    }
    let mut keys: Vec<_> = location_of(&storage.metadata).into_iter().collect();
    for location in keys.clone() {
        keys.extend(naming_location(view, &location.namespace, &location.name));
    }
    if after.is_none() {
        keys.extend(refused_locations(view));
        // Whose the backups in it are is unknown now: they count for nobody.
        let namespace = annotation(&storage.metadata, labels::NABSL_NAMESPACE);
        keys.extend(namespace.into_iter().flat_map(|namespace| next_in_line(view, namespace)));
    }
    if before.is_none() {
        // Velero may have imported its backups first, and backups with missing storage may be readable again.
        let location = storage.metadata.name.as_deref().unwrap_or_default();
        for name in view.velero_backups_stored_in(location) {
            keys.extend(view.backups_of(&name));
            keys.push(Key::new(Kind::Backup, view.admin_namespace(), &name));
        }
    }
    let readable = |storage: Option<&BackupStorageLocation>| {
        let is_deleting = |storage: &BackupStorageLocation| storage.metadata.deletion_timestamp.is_some();
        storage.map(|storage| (storage.phase().to_owned(), is_deleting(storage)))
    };
    if readable(before) != readable(after) {
        keys.extend(schedules_stored_in(view, storage.metadata.name.as_deref().unwrap_or_default()));
    }
    let state = |storage: Option<&BackupStorageLocation>| {
        storage.map(|storage| (storage.phase().to_owned(), storage.spec.default))
    };
    if state(before) != state(after) {
        let namespace = annotation(&storage.metadata, labels::NABSL_NAMESPACE);
        // Backups that name a tenant's location are among the keys already; others may wait for the cluster's own.
        let waiting = view.backing_off().into_iter();
        let waiting = waiting.filter(|key| namespace.is_none() || key.kind != Kind::NonAdminBackup);
        keys.extend(waiting.filter(|key| namespace.is_none_or(|namespace| key.namespace == namespace)));
    }
    keys
}

/// All Velero Backups: each may want a request.
fn all_velero_backups(view: &State) -> impl Iterator<Item = Key> {
    let names = view.velero_backup_names().into_iter();
    names.map(|name| Key::new(Kind::Backup, view.admin_namespace(), &name))
}

/// Velero writes down every minute when it last looked at a location.
fn only_looked_at(before: &BackupStorageLocation, after: &BackupStorageLocation) -> bool {
    let (Some(was), Some(is)) = (&before.status, &after.status) else { return false };
    let mut alike = is.clone();
    alike.last_synced_time.clone_from(&was.last_synced_time);
    alike.last_validation_time.clone_from(&was.last_validation_time);
    alike == *was
        && before.spec == after.spec
        && before.metadata.labels == after.metadata.labels
        && before.metadata.annotations == after.metadata.annotations
        && before.metadata.deletion_timestamp == after.metadata.deletion_timestamp
}

/// The location that an object in the administrators' namespace says it was made for.
pub(crate) fn location_of(meta: &ObjectMeta) -> Option<Key> {
    let (namespace, name) =
        (annotation(meta, labels::NABSL_NAMESPACE)?, annotation(meta, labels::NABSL_NAME)?);
    Some(Key::new(Kind::NonAdminBackupStorageLocation, namespace, name))
}

fn refused_locations(view: &State) -> impl Iterator<Item = Key> {
    view.backing_off().into_iter().filter(|key| key.kind == Kind::NonAdminBackupStorageLocation)
}

/// A namespace: every request in it that is not settled, and every location.
pub fn namespace(view: &State, before: Option<&Namespace>, after: Option<&Namespace>) -> Vec<Key> {
    let Some(namespace) = after.or(before) else { return Vec::new() };
    let name = namespace.metadata.name.as_deref().unwrap_or_default();
    let downloads = view.list::<NonAdminDownloadRequest>(name).into_iter();
    let downloads = downloads.map(|found| Key::of(Kind::NonAdminDownloadRequest, &found.metadata));
    let locations = view.list::<NonAdminBackupStorageLocation>(name).into_iter();
    let locations = locations.map(|found| Key::of(Kind::NonAdminBackupStorageLocation, &found.metadata));
    let backups = view.unsettled_in(Kind::NonAdminBackup, name);
    let restores = view.unsettled_in(Kind::NonAdminRestore, name);
    let scheduled = view.list::<NonAdminSchedule>(name).into_iter();
    let scheduled = scheduled.map(|found| Key::of(Kind::NonAdminSchedule, &found.metadata));
    let mut keys: Vec<_> =
        backups.chain(restores).chain(downloads).chain(locations).chain(scheduled).collect();
    keys.extend(namespace_itself(view, name));
    if before.is_none() {
        // Velero may have found its backups before it was made.
        let found = view.velero_backups_for(name).into_iter();
        keys.extend(found.map(|name| Key::new(Kind::Backup, view.admin_namespace(), &name)));
    }
    keys
}

/// A namespace, if anything is decided about namespaces: which schedule it gets, and what Velero may do there.
fn namespace_itself(view: &State, name: &str) -> Option<Key> {
    schedules::may_want_defaults(view, name).or_else(|| dedicated::key(view, name))
}

/// A ConfigMap of the administrators: if it is the policy, or one that requests may name, whoever was refused.
pub fn config_map(view: &State, before: Option<&ConfigMap>, after: Option<&ConfigMap>) -> Vec<Key> {
    let matters = |map: &ConfigMap| {
        map.metadata.name.as_deref() == Some(policy::CONFIG_MAP)
            || label(&map.metadata, labels::TENANT_USABLE).is_some()
    };
    if after.or(before).is_some_and(|map| map.metadata.name.as_deref() == Some(sync::ADOPTIONS)) {
        return all_velero_backups(view).collect();
    }
    if before.is_some_and(matters) || after.is_some_and(matters) { judged_anew(view) } else { Vec::new() }
}

/// OADP's configuration, which is a source of the policy: whoever was refused.
pub fn application(
    view: &State,
    _: Option<&DataProtectionApplication>,
    _: Option<&DataProtectionApplication>,
) -> Vec<Key> {
    judged_anew(view)
}

/// Which objects a change of the policy affects: whoever was refused, every location and every schedule, since those are
/// judged for as long as they are there, and what was held back.
fn judged_anew(view: &State) -> Vec<Key> {
    let refused = view.backing_off().into_iter();
    let namespaces = view.namespace_names().into_iter();
    let namespaces = namespaces.filter_map(|name| namespace_itself(view, &name));
    let judged = view.locations().into_iter().chain(view.schedules()).chain(namespaces);
    refused.chain(judged).chain(all_velero_backups(view)).chain(view.next_turns()).collect()
}

fn place(meta: &ObjectMeta) -> (&str, &str) {
    (meta.namespace.as_deref().unwrap_or_default(), meta.name.as_deref().unwrap_or_default())
}

fn naming_location(view: &State, namespace: &str, name: &str) -> Vec<Key> {
    let unsettled = view.unsettled_in(Kind::NonAdminBackup, namespace);
    let names_it = |key: &Key| {
        let backup = view.get::<NonAdminBackup>(namespace, &key.name);
        backup.is_some_and(|backup| backup.spec.backup_spec.storage_location.as_deref() == Some(name))
    };
    unsettled.filter(names_it).collect()
}

fn waiting_restores(view: &State, namespace: &str, backup: &str) -> Vec<Key> {
    let restores = view.restores_from(namespace, backup).into_iter();
    let waiting = restores.filter(|restore| !restore_created(restore));
    waiting.map(|restore| Key::of(Kind::NonAdminRestore, &restore.metadata)).collect()
}

fn waiting_downloads(
    view: &State,
    namespace: &str,
    name: &str,
    of_kind: fn(&str) -> bool,
) -> impl Iterator<Item = Key> {
    let requests = view.list::<NonAdminDownloadRequest>(namespace).into_iter();
    let waiting = requests.filter(move |request| {
        let target = &request.spec.target;
        let answered = request.status.as_ref().and_then(|status| status.phase) == Some(Phase::Created);
        !answered && target.name == name && of_kind(&target.kind)
    });
    waiting
        .map(|request| Key::of(Kind::NonAdminDownloadRequest, &request.metadata))
        .collect::<Vec<_>>()
        .into_iter()
}

fn restore_created(restore: &NonAdminRestore) -> bool {
    restore.status.as_ref().and_then(|status| status.phase) == Some(Phase::Created)
}
