//! Who waits for a turn, and what Velero has, as `crate::turns` wants to know it.

use std::sync::Arc;

use api::velero::{Backup, BackupStorageLocation, Restore};
use api::{Kind, NonAdminBackup, NonAdminRestore, Phase, condition, labels};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::Resource;
use kube::core::ObjectMeta;

use super::State;
use crate::ownership::{Storage, annotation, label, storage};
use crate::queue::{Queued, Stage};
use crate::turns::{Capacity, Job, LEDGER, Place, Progress, TAG, Tag, Took, Turn, Turns, Uid, Waiter};
use crate::usage::was_imported;
use crate::{Action, Key, backup, config_map, restore};

/// The keys of the ConfigMap with what namespaces have used.
const BACKUPS: &str = "backups";
const RESTORES: &str = "restores";

/// What an administrator says about the place of a request, in the annotation `nacre.dev/queue`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// It goes before all others.
    Front,
    /// It stays where it is until it is released.
    Hold,
}

/// Reads the annotation. Admission lets nobody but administrators write it.
pub(crate) fn said(meta: &ObjectMeta) -> Option<Said> {
    match annotation(meta, labels::QUEUE)? {
        labels::QUEUE_FRONT => Some(Said::Front),
        labels::QUEUE_HOLD => Some(Said::Hold),
        _ => None,
    }
}

/// Whether the request may wait for its turn, as far as it shows itself.
fn may_wait(meta: &ObjectMeta, is_undecided: bool) -> bool {
    meta.deletion_timestamp.is_none() && is_undecided && said(meta) != Some(Said::Hold)
}

/// Whether the status shows neither that Velero was given the request nor why it is not.
fn is_undecided(phase: Option<Phase>, conditions: &[Condition]) -> bool {
    matches!(phase, None | Some(Phase::New)) && !condition::is_true(conditions, condition::QUEUED)
}

fn backup_is_undecided(request: &NonAdminBackup) -> bool {
    request.status.as_ref().is_none_or(|status| is_undecided(status.phase, &status.conditions))
}

fn restore_is_undecided(request: &NonAdminRestore) -> bool {
    request.status.as_ref().is_none_or(|status| is_undecided(status.phase, &status.conditions))
}

fn backup_may_wait(request: &NonAdminBackup) -> bool {
    may_wait(&request.metadata, backup_is_undecided(request))
        && request.spec.delete_backup != Some(true)
        && label(&request.metadata, labels::SYNCED_FROM).is_none()
}

fn restore_may_wait(request: &NonAdminRestore) -> bool {
    may_wait(&request.metadata, restore_is_undecided(request))
}

fn is_restore(kind: Kind) -> bool {
    matches!(kind, Kind::NonAdminRestore | Kind::Restore)
}

/// What took from then to then.
fn took(start: Timestamp, end: Timestamp) -> Took {
    (end.as_second(), u64::try_from(end.duration_since(start).as_millis()).unwrap_or(0))
}

/// Whose job a Velero object is.
#[derive(Default)]
struct Owner {
    /// The namespace it is for.
    uid: Option<Uid>,
    /// Whether what it says can be believed.
    is_trusted: bool,
    /// The priority that its tag must have; none for any.
    priority: Option<u64>,
}

impl State {
    /// The turns of backups or of restores.
    pub fn turns(&self, kind: Kind) -> &Turns {
        if is_restore(kind) { &self.restore_turns } else { &self.backup_turns }
    }

    fn turns_mut(&mut self, kind: Kind) -> &mut Turns {
        if is_restore(kind) { &mut self.restore_turns } else { &mut self.backup_turns }
    }

    /// How many of this kind Velero is given at a time. Velero works on one restore at a time.
    pub fn capacity(&self, kind: Kind) -> Capacity {
        let workers = if is_restore(kind) { 1 } else { self.turns(kind).workers() };
        let most = self.policies.as_ref().and_then(|policies| policies.base().queue.in_flight);
        Capacity::of(workers, most)
    }

    /// A request as one that waits; none while its namespace or the policy is unknown.
    pub(crate) fn waiter(&self, kind: Kind, meta: &ObjectMeta) -> Option<Waiter> {
        let namespace = meta.namespace.as_deref()?;
        let uid = self.namespace(namespace)?.metadata.uid.clone().unwrap_or_default();
        let policy = self.policy(namespace)?;
        let made = meta.creation_timestamp.as_ref().map(|time| time.0);
        Some(Waiter {
            uid: uid.into(),
            arrival: (made, Key::of(kind, meta)),
            priority: policy.queue.priority,
            weight: policy.queue.weight,
            is_front: said(meta) == Some(Said::Front),
            // Backups have a limit of their own, which is about those that are yet to be accepted.
            most: policy.restore.max_active_per_namespace.filter(|_| is_restore(kind)),
        })
    }

    /// Where a request that Velero does not have is in the queue.
    pub(crate) fn place_in_queue(&self, kind: Kind, meta: &ObjectMeta) -> Place {
        let (waiter, turns, capacity) = (self.waiter(kind, meta), self.turns(kind), self.capacity(kind));
        // Nothing is decided while its namespace or the policy is unknown.
        if said(meta) == Some(Said::Hold) {
            return waiter.map_or(Place::OnHold(0), |waiter| turns.on_hold(&waiter, capacity));
        }
        waiter.map_or(Place::Behind(0, None), |waiter| turns.place(&waiter, capacity, self.now))
    }

    /// The requests whose turn it is.
    pub fn next_turns(&self) -> Vec<Key> {
        let kinds = [Kind::NonAdminBackup, Kind::NonAdminRestore].into_iter();
        kinds.filter_map(|kind| self.turns(kind).next(self.capacity(kind)).cloned()).collect()
    }

    /// A decision about a request was made. Returns the requests whose turn it is now.
    pub fn turn_decided(&mut self, about: &Key, turn: Option<&Turn>) -> Vec<Key> {
        if !matches!(about.kind, Kind::NonAdminBackup | Kind::NonAdminRestore) {
            return Vec::new();
        }
        let waiter = turn.and_then(|_| self.waiter(about.kind, &self.meta_of(about)?));
        self.turns_mut(about.kind).decided(about, turn, waiter);
        let due = self.next_turns().into_iter();
        // Who has just been decided about would be decided about in the same way.
        due.filter(|key| key != about).collect()
    }

    pub(super) fn note_backup_turn(
        &mut self,
        before: Option<&NonAdminBackup>,
        after: Option<&NonAdminBackup>,
    ) {
        let Some(object) = after.or(before) else { return };
        self.note_shown(Kind::NonAdminBackup, (before, after), backup_is_undecided);
        let exists = |request: &NonAdminBackup| {
            let names = backup::references(request);
            names.iter().any(|name| self.velero_backups.contains(&self.admin_namespace, name))
        };
        let waits = after.filter(|request| backup_may_wait(request) && !exists(request));
        self.note_turn(Kind::NonAdminBackup, &object.metadata, waits.map(|request| &request.metadata));
    }

    pub(super) fn note_restore_turn(
        &mut self,
        before: Option<&NonAdminRestore>,
        after: Option<&NonAdminRestore>,
    ) {
        let Some(object) = after.or(before) else { return };
        self.note_shown(Kind::NonAdminRestore, (before, after), restore_is_undecided);
        let waits =
            after.filter(|request| restore_may_wait(request) && restore::velero_of(self, request).is_none());
        self.note_turn(Kind::NonAdminRestore, &object.metadata, waits.map(|request| &request.metadata));
    }

    /// A request that shows what became of it, is another one now or is gone no longer has to be remembered as given.
    fn note_shown<K: Resource>(
        &mut self,
        kind: Kind,
        (before, after): (Option<&K>, Option<&K>),
        is_undecided: fn(&K) -> bool,
    ) {
        let Some(object) = after.or(before) else { return };
        let is_same = |request: &&K| before.is_some_and(|before| before.meta().uid == request.meta().uid);
        if after.filter(is_same).is_none_or(|request| !is_undecided(request)) {
            self.turns_mut(kind).note_shown(&Key::of(kind, object.meta()));
        }
    }

    fn note_turn(&mut self, kind: Kind, meta: &ObjectMeta, waits: Option<&ObjectMeta>) {
        let key = Key::of(kind, meta);
        if self.turns(kind).is_on_the_way(&key) {
            return;
        }
        let waiter = waits.and_then(|meta| self.waiter(kind, meta));
        self.turns_mut(kind).note_request(&key, waiter);
    }

    /// The policy or a namespace changed, and with it what the turns of its requests depend on.
    pub(super) fn note_turns_again(&mut self, namespace: Option<&str>) {
        let ours = |key: &&Key| {
            matches!(key.kind, Kind::NonAdminBackup | Kind::NonAdminRestore)
                && namespace.is_none_or(|namespace| key.namespace == namespace)
        };
        let keys: Vec<Key> = match namespace {
            None => self.unsettled.iter().filter(ours).cloned().collect(),
            Some(name) => {
                let backups = self.unsettled_in(Kind::NonAdminBackup, name);
                backups.chain(self.unsettled_in(Kind::NonAdminRestore, name)).collect()
            }
        };
        for key in keys {
            if key.kind == Kind::NonAdminBackup {
                let request = self.get::<NonAdminBackup>(&key.namespace, &key.name);
                self.note_backup_turn(request.as_deref(), request.as_deref());
            } else {
                let request = self.get::<NonAdminRestore>(&key.namespace, &key.name);
                self.note_restore_turn(request.as_deref(), request.as_deref());
            }
        }
    }

    pub(super) fn note_backup_job(&mut self, before: Option<&Backup>, after: Option<&Backup>) {
        self.note_job(Kind::Backup, before, after, |state, velero| {
            let location = velero.spec.storage_location.as_deref();
            let location = location.and_then(|name| state.admin::<BackupStorageLocation>(name));
            let own = annotation(&velero.metadata, labels::ORIGIN_NAMESPACE_UID);
            match storage(velero, location.as_deref()) {
                Storage::Platform => Owner { uid: own.map(Into::into), is_trusted: true, priority: None },
                // What is in a tenant's storage may be forged, once it is more than queued.
                Storage::Tenant(namespace) => {
                    let owner = annotation(&location.as_deref()?.metadata, labels::ORIGIN_NAMESPACE_UID);
                    let is_trusted = velero.stage() == Stage::Waiting;
                    let policy = state.policy(namespace).filter(|_| !is_trusted);
                    Owner {
                        uid: owner.filter(|owner| Some(*owner) == own).map(Into::into),
                        is_trusted,
                        priority: policy.map(|policy| policy.queue.priority),
                    }
                }
                Storage::Unknown => Owner::default(),
            }
            .into()
        });
    }

    pub(super) fn note_restore_job(&mut self, before: Option<&Restore>, after: Option<&Restore>) {
        self.note_job(Kind::Restore, before, after, |_, velero| {
            let uid = annotation(&velero.metadata, labels::ORIGIN_NAMESPACE_UID).map(Into::into);
            Some(Owner { uid, is_trusted: true, priority: None })
        });
    }

    /// Notes a Velero object as a job. `owner` says whose it is, and whether what it says can be believed. What was over when
    /// it was imported from storage was a job elsewhere, or long ago.
    fn note_job<K: Queued>(
        &mut self,
        kind: Kind,
        before: Option<&K>,
        after: Option<&K>,
        owner: impl FnOnce(&Self, &K) -> Option<Owner>,
    ) {
        let Some(velero) = after.or(before) else { return };
        let name = velero.meta().name.clone().unwrap_or_default();
        let is_over = |velero: &K| velero.stage() == Stage::Finished;
        // Velero keeps updating what is over.
        let was_over = before.is_some_and(is_over) && after.is_none_or(is_over);
        let was_imported = before.is_none()
            && is_over(velero)
            && velero.started().is_some_and(|started| was_imported(velero.meta(), started));
        if !was_over && !was_imported {
            let Owner { uid, is_trusted, priority } = owner(self, velero).unwrap_or_default();
            let tag = annotation(velero.meta(), TAG).filter(|_| uid.is_some());
            let tag = tag.and_then(|text| text.parse::<Tag>().ok());
            let tag = tag.filter(|tag| priority.is_none_or(|priority| priority == tag.priority));
            let progress = self.progress(velero, after.is_none());
            let worked = self.worked(velero, progress);
            let made = velero.meta().creation_timestamp.as_ref().map(|time| time.0);
            let since = velero.started().or(made);
            let request = is_trusted.then(|| self.request_of(kind, velero.meta())).flatten();
            // After a restart nacre knows only by the object itself that Velero was given the request.
            if after.is_none()
                && let Some(given) = request.clone().filter(|key| self.is_undecided(key))
            {
                self.turns_mut(kind).note_given(given);
            }
            let job = Job { uid, request, tag, is_trusted, progress, worked, since };
            self.turns_mut(kind).note_job(&name, Some(job));
        }
        if after.is_none() {
            self.turns_mut(kind).note_job(&name, None);
        }
    }

    /// Whether a request shows neither that Velero was given it nor why it is not.
    fn is_undecided(&self, key: &Key) -> bool {
        let (namespace, name) = (&key.namespace, &key.name);
        if key.kind == Kind::NonAdminBackup {
            self.get::<NonAdminBackup>(namespace, name).is_some_and(|request| backup_is_undecided(&request))
        } else {
            self.get::<NonAdminRestore>(namespace, name).is_some_and(|request| restore_is_undecided(&request))
        }
    }

    /// The request that a Velero object was made for: it is there, and is no other one of the same name.
    fn request_of(&self, kind: Kind, velero: &ObjectMeta) -> Option<Key> {
        let (kind, namespace, name) = if is_restore(kind) {
            (Kind::NonAdminRestore, labels::NAR_NAMESPACE, labels::NAR_NAME)
        } else {
            (Kind::NonAdminBackup, labels::NAB_NAMESPACE, labels::NAB_NAME)
        };
        let key = Key::new(kind, annotation(velero, namespace)?, annotation(velero, name)?);
        let uid = annotation(velero, labels::ORIGIN_UID)?;
        self.meta_of(&key).filter(|request| request.uid.as_deref() == Some(uid)).map(|_| key)
    }

    fn progress(&self, velero: &impl Queued, is_gone: bool) -> Progress {
        // What is over and has no end never started, or nobody knows how long it took.
        let end = velero.ended().or_else(|| is_gone.then_some(self.now));
        let ended = Progress::Ended(velero.started().zip(end).map(|(start, end)| took(start, end)));
        match velero.stage() {
            _ if is_gone => ended,
            Stage::Finished => ended,
            // Velero does not begin with what is being deleted.
            Stage::Waiting if velero.meta().deletion_timestamp.is_some() => Progress::Finalizing,
            Stage::Waiting => Progress::Queued,
            Stage::Running => Progress::Running,
            Stage::Finalizing => Progress::Finalizing,
        }
    }

    /// How long a worker was busy with a job, if none is any more. Velero does not write down when that ended: it is now, if it
    /// was seen until now. What is over took as long as from its start to its end, unless plugins went on in the background.
    fn worked(&self, velero: &impl Queued, progress: Progress) -> Option<Took> {
        match progress {
            Progress::Finalizing => velero.started().map(|start| took(start, self.now)),
            Progress::Ended(took) => took.filter(|_| !velero.has_operations()),
            Progress::Queued | Progress::Running => None,
        }
    }

    /// The write that makes what namespaces have used survive the deletion of their backups, if one is needed.
    pub fn ledger_write(&self) -> Option<Action> {
        let kinds = [(Kind::Backup, BACKUPS), (Kind::Restore, RESTORES)].into_iter();
        let wanted = kinds.filter_map(|(kind, key)| Some((key.to_owned(), self.turns(kind).ledger()?)));
        let found: Option<Arc<ConfigMap>> = self.admin(LEDGER);
        config_map::ensure(&self.admin_namespace, LEDGER, wanted.collect(), found.as_deref())
    }

    /// Reads what namespaces had used when it was last written.
    pub(super) fn read_ledger(&mut self, map: &ConfigMap) {
        for (kind, key) in [(Kind::Backup, BACKUPS), (Kind::Restore, RESTORES)] {
            if let Some(text) = map.data.as_ref().and_then(|data| data.get(key)) {
                self.turns_mut(kind).remember(text);
            }
        }
    }

    /// A storage location came or went: whose the backups in it are is known now, or no more.
    pub(super) fn note_jobs_stored_in(&mut self, location: &str) {
        for name in self.velero_backups_stored_in(location) {
            let velero = self.admin::<Backup>(&name);
            self.note_backup_job(None, velero.as_deref());
        }
    }
}

#[cfg(test)]
#[path = "turns_tests.rs"]
mod tests;
