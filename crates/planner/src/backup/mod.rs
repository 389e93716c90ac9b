//! NonAdminBackup: from a tenant's wish to a Velero Backup, and back to nothing.
//!
//! A backup is checked once, before its Velero Backup is made (`check`), built field by field (`generate`),
//! mirrored from then on (`status`), and deleted with or without its data (`delete`).

mod admit;
mod check;
mod delete;
mod generate;
mod status;

use std::sync::Arc;
use std::time::Duration;

use api::condition;
use api::velero::{Backup, BackupStorageLocation, DeleteBackupRequest};
use api::{
    DataMoverCounts, Kind, NonAdminBackup, NonAdminBackupSpec, NonAdminBackupStatus,
    NonAdminBackupStorageLocation, NonAdminRestore, Phase, PodVolumeCounts, labels,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::core::ObjectMeta;

pub(crate) use admit::admit;
pub use check::{Others, check_spec};

use check::NoRoom;

use crate::ownership::{Storage, annotation, label, made_for, own_name, owns_backup, storage};
use crate::trouble::{self, again, since};
use crate::view::{Seen, View};
use crate::{Action, Event, Key, Object, Plan, Policy, Refusal, Target, Trouble};

/// Everything a decision about one backup reads.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The request.
    pub backup: Arc<NonAdminBackup>,
    /// Why the request could not be read.
    pub unreadable: Option<Arc<str>>,
    /// The namespace it is in.
    pub namespace: Option<Arc<Namespace>>,
    /// Its Velero Backup, if there is one and it is this namespace's own.
    pub velero: Option<Arc<Backup>>,
    /// Whether somebody else's object has the name its Velero Backup would get.
    pub name_taken: bool,
    /// Whether the Velero Backup it was found to be is there, but where it is kept is not: nobody can say whose it is.
    pub out_of_sight: bool,
    /// Where the Velero Backup is kept, if that location exists.
    pub kept_at: Option<Arc<BackupStorageLocation>>,
    /// The location the request names, and Velero's side of it.
    pub location: Option<Arc<NonAdminBackupStorageLocation>>,
    /// Velero's side of the location the request names.
    pub storage: Option<Arc<BackupStorageLocation>>,
    /// The ConfigMap the request names, if it exists.
    pub resource_policy: Option<Arc<ConfigMap>>,
    /// The requests to delete the Velero Backup, oldest first.
    pub delete_requests: Vec<Arc<DeleteBackupRequest>>,
    /// The restores of this namespace that name this backup.
    pub restores: Vec<Arc<NonAdminRestore>>,
    /// How far the volumes are.
    pub volumes: (PodVolumeCounts, DataMoverCounts),
    /// Where it stands in Velero's queue, once Velero has it.
    pub position: i64,
    /// Whether a new position alone is worth a write. Where many wait, that is for a chore with a budget to say.
    pub position_due: bool,
    /// The other backups of this namespace, where their number is limited.
    pub others: Others,
    /// What the API server did not take when it was last tried.
    pub trouble: Option<Arc<Trouble>>,
    /// What an administrator allows, if that is known.
    pub policy: Option<Arc<Policy>>,
    /// Where Velero is.
    pub admin_namespace: String,
    /// The time.
    pub now: Timestamp,
}

/// The names a Velero Backup of this request can have: the one it would be given now, the one it was found under in
/// storage, and the one the Go controller gave it. All but the first are only hints that a tenant may have
/// written, and are followed only to what is the namespace's own.
pub fn references(backup: &NonAdminBackup) -> Vec<String> {
    let synced = label(&backup.metadata, labels::SYNCED_FROM);
    let told = backup.status.as_ref().and_then(|status| status.velero_backup.as_ref()?.nacuuid.as_deref());
    let mut names = vec![own_name(&backup.metadata)];
    names.extend([synced, told].into_iter().flatten().filter(|name| !name.is_empty()).map(str::to_owned));
    names.dedup();
    names
}

/// Gathers what a decision about this backup reads; none if there is no such backup.
pub fn observe(view: &impl View, namespace: &str, name: &str) -> Option<Observed> {
    Some(gather(view, view.backup(namespace, name)?, namespace, name))
}

/// Why this backup would be refused if it were asked for now; none if nobody can tell.
pub(crate) fn judge(view: &impl View, backup: NonAdminBackup) -> Option<Result<(), Refusal>> {
    let (namespace, name) = (backup.metadata.namespace.clone()?, backup.metadata.name.clone()?);
    let seen = gather(view, Seen { object: Arc::new(backup), unreadable: None }, &namespace, &name);
    let refusal = check::refusal(&seen, seen.policy.as_deref()?);
    Some(refusal.map_or(Ok(()), Err))
}

/// Gathers the same for one that is not stored yet, or not so.
pub(crate) fn gather(
    view: &impl View,
    Seen { object: backup, unreadable }: Seen<NonAdminBackup>,
    namespace: &str,
    name: &str,
) -> Observed {
    let velero = velero_of(view, &backup);
    let name_taken = velero.is_none() && view.velero_backup(&own_name(&backup.metadata)).is_some();
    let out_of_sight = velero.is_none() && out_of_sight(view, &backup);

    let spec = &backup.spec.backup_spec;
    let location = spec.storage_location.as_deref().and_then(|name| view.location(namespace, name));
    let location = location.map(|seen| seen.object);
    let storage = location.as_deref().and_then(|location| view.storage_location(&storage_name(location)));
    let policy = view.policy(namespace);
    let velero_name = velero.as_deref().and_then(|velero| velero.metadata.name.clone());
    let restores = view.restores_in(namespace).into_iter().map(|seen| seen.object);
    Observed {
        kept_at: velero.as_deref().and_then(|velero| place(view, velero)),
        resource_policy: spec.resource_policy.as_ref().and_then(|named| view.config_map(&named.name)),
        delete_requests: velero_name.as_deref().map_or_else(Vec::new, |name| view.delete_requests(name)),
        restores: restores
            .filter(|restore| restore.spec.restore_spec.backup_name.as_deref() == Some(name))
            .collect(),
        volumes: velero_name.as_deref().map_or_else(Default::default, |name| view.backup_volumes(name)),
        position: velero.as_deref().map_or(0, |velero| view.backup_queue().position(velero)),
        position_due: true,
        others: policy
            .as_deref()
            .filter(|_| velero.is_none())
            .map_or_else(Others::default, |policy| check::others(view, &backup, policy)),
        trouble: trouble::lasting(view, &Key::of(Kind::NonAdminBackup, &backup.metadata)),
        admin_namespace: view.admin_namespace().to_owned(),
        now: view.now(),
        namespace: view.namespace(namespace),
        backup,
        unreadable,
        velero,
        name_taken,
        out_of_sight,
        location,
        storage,
        policy,
    }
}

/// The Velero Backup of a request, if there is one and it is the namespace's own.
pub(crate) fn velero_of(view: &impl View, backup: &NonAdminBackup) -> Option<Arc<Backup>> {
    let namespace = view.namespace(backup.metadata.namespace.as_deref()?)?;
    let named = references(backup).into_iter().filter_map(|name| view.velero_backup(&name));
    let mut own = named.filter(|velero| owns_backup(&namespace, velero, place(view, velero).as_deref()));
    own.find(|velero| meant(backup, velero))
}

/// Whether the Velero Backup that a synchronised request has shown before is kept in a place that is away. In a tenant's
/// storage it is the place that says whose it is. A request that has never shown it learns nothing.
fn out_of_sight(view: &impl View, backup: &NonAdminBackup) -> bool {
    let synced = label(&backup.metadata, labels::SYNCED_FROM);
    let shown = backup.status.as_ref().and_then(|status| status.velero_backup.as_ref()?.name.as_deref());
    let Some(velero) = shown.filter(|_| shown == synced).and_then(|name| view.velero_backup(name)) else {
        return false;
    };
    storage(&velero, place(view, &velero).as_deref()) == Storage::Unknown
}

/// The location a Velero Backup names, if it exists.
fn place(view: &impl View, velero: &Backup) -> Option<Arc<BackupStorageLocation>> {
    velero.spec.storage_location.as_deref().and_then(|name| view.storage_location(name))
}

/// Whether a Velero Backup of this namespace is this request's: made for this very object, named by the label of a
/// request that came out of storage, or made by the Go controller for an object of this name and told in status.
fn meant(backup: &NonAdminBackup, velero: &Backup) -> bool {
    let name = velero.metadata.name.as_deref();
    let origin = &backup.metadata;
    let synced = label(origin, labels::SYNCED_FROM).is_some() && label(origin, labels::SYNCED_FROM) == name;
    let told = name != Some(&own_name(origin)) && named_alike(&velero.metadata, origin);
    synced || told || made_for(&velero.metadata, origin, labels::NAB_NAME, labels::NAB_NAMESPACE)
}

fn named_alike(velero: &ObjectMeta, origin: &ObjectMeta) -> bool {
    annotation(velero, labels::NAB_NAME) == origin.name.as_deref()
}

/// The name of Velero's side of a tenant's location.
pub(crate) fn storage_name(location: &NonAdminBackupStorageLocation) -> String {
    let told = location
        .status
        .as_ref()
        .and_then(|status| status.velero_backup_storage_location.as_ref()?.name.clone());
    told.unwrap_or_else(|| own_name(&location.metadata))
}

impl Observed {
    fn meta(&self) -> &ObjectMeta {
        &self.backup.metadata
    }

    fn target(&self) -> Target {
        Target::of(Kind::NonAdminBackup, self.meta())
    }

    fn spec(&self) -> &NonAdminBackupSpec {
        &self.backup.spec
    }

    fn status(&self) -> NonAdminBackupStatus {
        self.backup.status.clone().unwrap_or_default()
    }

    /// Somebody asked Kubernetes to delete the request.
    fn leaving(&self) -> bool {
        self.meta().deletion_timestamp.is_some()
    }

    /// Our finalizer is on it.
    fn held(&self) -> bool {
        self.meta().finalizers.iter().flatten().any(|finalizer| finalizer == labels::NAB_FINALIZER)
    }

    /// The user wants the data gone too.
    fn data_shall_go(&self) -> bool {
        self.spec().delete_backup == Some(true)
    }

    /// It was made from a Velero Backup found in storage; such a request never makes one.
    fn synced(&self) -> bool {
        label(self.meta(), labels::SYNCED_FROM).is_some_and(|name| !name.is_empty())
    }

    /// Velero has had it before.
    fn handed_over_before(&self) -> bool {
        let Some(status) = &self.backup.status else {
            return false;
        };
        status.phase == Some(Phase::Created) || condition::is_true(&status.conditions, condition::QUEUED)
    }

    /// It was said to be lost: from then on it stays so, whatever made nacre think that Velero had it.
    fn lost_before(&self) -> bool {
        let accepted = self
            .backup
            .status
            .as_ref()
            .and_then(|status| condition::get(&status.conditions, condition::ACCEPTED));
        accepted.is_some_and(|accepted| accepted.reason == condition::VELERO_BACKUP_NOT_FOUND)
    }

    /// The namespace itself is on its way out.
    fn namespace_leaving(&self) -> bool {
        self.namespace.as_deref().is_some_and(|space| space.metadata.deletion_timestamp.is_some())
    }
}

/// How long to wait for a namespace that a watch has yet to tell us about.
const UNTIL_THE_NAMESPACE_IS_SEEN: Duration = Duration::from_secs(2);

/// Why a request waits while the policy is not known.
const UNTIL_THE_POLICY_IS_READ: &str = "what the administrators allow cannot be read at the moment; \
                                        the backup waits, and goes on by itself when that is mended";

/// How long to wait for older requests of the namespace that may take the room there is.
const UNTIL_THE_OLDER_ARE_DECIDED: Duration = Duration::from_secs(5);

/// Decides what to do about one backup.
pub fn decide(seen: &Observed) -> Plan {
    if seen.namespace.is_none() {
        // Whose a Velero Backup is cannot be told yet: neither make one nor let go of one.
        return Plan::done().waking_in(UNTIL_THE_NAMESPACE_IS_SEEN);
    }
    if seen.leaving() || seen.data_shall_go() {
        return delete::decide(seen);
    }
    if let Some(velero) = &seen.velero {
        return mirror(seen, velero);
    }
    if seen.out_of_sight {
        // It is shown as it was until its storage is back, or until it is gone.
        return Plan::done();
    }
    if seen.handed_over_before() || seen.lost_before() || seen.synced() {
        return lost(seen);
    }
    let Some(policy) = &seen.policy else {
        return wait_for_policy(seen);
    };
    if let Some(refusal) = check::refusal(seen, policy) {
        return refuse(seen, condition::INVALID_BACKUP_SPEC, &refusal.to_string());
    }
    match check::no_room(seen, policy) {
        Some(no_room) => wait_for_room(seen, &no_room),
        None => match &seen.trouble {
            Some(trouble) if trouble.kind == Kind::Backup => not_taken(seen, trouble),
            _ => create(seen, policy),
        },
    }
}

/// The API server does not take the Velero Backup: that is told, and tried again later.
fn not_taken(seen: &Observed, trouble: &Trouble) -> Plan {
    let message = format!("Velero could not be given the backup: {}; it is tried again", trouble.why());
    let conditions = seen.backup.status.as_ref().map(|status| status.conditions.as_slice());
    let wait = again(since(conditions, condition::ACCEPTED), seen.now);
    refuse(seen, condition::HAND_OVER_FAILED, &message).waking_in(wait)
}

/// Finalizer and Velero Backup. Then it is mirrored at once, which makes three writes; its place in the queue is
/// known only when it stands there.
fn create(seen: &Observed, policy: &Policy) -> Plan {
    let velero = generate::backup(seen, policy);
    let mut plan = Plan::done();
    if !seen.held() {
        plan = plan.then(Action::Hold(seen.target(), labels::NAB_FINALIZER));
    }
    plan.then(Action::Create(Object::of(Kind::Backup, &velero))).waking_in(Duration::ZERO)
}

/// Velero has it: show what Velero says, and see that the finalizer is on.
fn mirror(seen: &Observed, velero: &Backup) -> Plan {
    let status = status::mirrored(seen, velero);
    let mut plan = Plan::done();
    if !seen.held() {
        plan = plan.then(Action::Hold(seen.target(), labels::NAB_FINALIZER));
    }
    for withdrawn in delete::not_begun(seen) {
        plan = plan.then(Action::Delete(Target::of(Kind::DeleteBackupRequest, &withdrawn.metadata)));
    }
    plan = plan.then_if(generate::stamp(seen, velero)).then_if(status::patch(seen, &status));
    plan.events.extend(status::news(seen, velero, &status));
    plan
}

/// Velero had it, or should have had it, and has it no more. It is never made a second time.
fn lost(seen: &Observed) -> Plan {
    let shown_before = seen.backup.status.as_ref().is_some_and(|status| status.velero_backup.is_some());
    let message = if seen.synced() && !shown_before {
        "there is no backup of this namespace to synchronise from; remove this object and create a new NonAdminBackup"
    } else {
        "the Velero Backup is gone (expired or deleted) and is not made again; create a new NonAdminBackup"
    };
    refuse(seen, condition::VELERO_BACKUP_NOT_FOUND, message)
}

/// Fine as it is, but there are too many others.
fn wait_for_room(seen: &Observed, no_room: &NoRoom) -> Plan {
    let plan = refuse(seen, condition::NAMESPACE_LIMIT_REACHED, &no_room.refusal.to_string());
    // Whoever leaves room wakes this one; an older one that does not take the room after all does not.
    if no_room.contested { plan.waking_in(UNTIL_THE_OLDER_ARE_DECIDED) } else { plan }
}

/// Allowing it would be a guess. Whoever waits is decided about again when the policy changes.
fn wait_for_policy(seen: &Observed) -> Plan {
    refuse(seen, condition::POLICY_UNAVAILABLE, UNTIL_THE_POLICY_IS_READ)
}

/// Writes a refusal and tells it, but only when it is news. There is nothing at Velero to hold the request for.
fn refuse(seen: &Observed, reason: &'static str, message: &str) -> Plan {
    let mut plan = Plan::done();
    if seen.held() {
        plan = plan.then(Action::Release(seen.target(), labels::NAB_FINALIZER));
    }
    match status::patch(seen, &status::refused(seen, reason, message)) {
        None => plan,
        Some(write) => plan.then(write).telling(Event::warning(reason, message)),
    }
}
