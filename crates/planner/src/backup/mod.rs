//! NonAdminBackup: from a tenant's request to a Velero Backup, until it is deleted.
//!
//! A backup is checked once, before its Velero Backup is made (`check`), built field by field (`generate`),
//! mirrored from then on (`status`), and deleted with or without its data (`delete`).

mod admit;
mod cancel;
mod check;
mod data_protected;
mod delete;
pub mod fixed;
mod generate;
mod left_out;
mod limits;
mod not_restorable;
mod not_saved;
mod restore_helper;
mod standstill;
mod status;
mod volumes;

use std::sync::Arc;

use api::condition;
use api::velero::{Backup, BackupStorageLocation, DeleteBackupRequest};
use api::{
    DataMoverCounts, Kind, NonAdminBackup, NonAdminBackupSpec, NonAdminBackupStatus,
    NonAdminBackupStorageLocation, NonAdminRestore, Phase, PodVolumeCounts, labels,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::core::ObjectMeta;

pub(crate) use admit::admit;
pub(crate) use check::closed_namespace;
pub use check::{check_spec, nearest_ttl};
pub use not_restorable::not_restorable;
pub use restore_helper::pods_without_user;
pub use standstill::{paused, standstill};
pub(crate) use volumes::is_own_policy;
pub use volumes::{SnapshotClasses, VOLUME_POLICY, VolumeFacts, VolumeMethod, volume_method};

pub use limits::{Others, used};
pub(crate) use limits::{is_next, next_in_line};

use crate::dedicated::VeleroAccess;
use crate::ownership::{Storage, annotation, label, made_for, own_name, owns_backup, storage, tenant_of};
use crate::policy::{DeleteBy, RequesterMode};
use crate::rejected_write;
use crate::request::{JUST_GIVEN, Request, mirrored};
use crate::requester::{self, Access, Identity, LeftOut, Verdict};
use crate::results::Results;
use crate::schedule::{self, Marked};
use crate::state::State;
use crate::turns::{Place, Turn};
use crate::view::Seen;
use crate::volumes::{Operation, Velero, of_backup};
use crate::{Action, Key, Object, Plan, Policy, Refusal, RejectedWrite, Target, turns};

/// Everything a decision about one backup reads.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact that was observed by itself")]
pub struct Observed {
    /// The request.
    pub backup: Arc<NonAdminBackup>,
    /// Why the request could not be parsed; none if it could.
    pub unreadable: Option<Arc<str>>,
    /// The request's namespace.
    pub namespace: Option<Arc<Namespace>>,
    /// Its Velero Backup, if there is one and it is this namespace's own.
    pub velero: Option<Arc<Backup>>,
    /// Whether another object already has the name its Velero Backup would get.
    pub name_taken: bool,
    /// That object, if Velero found it in another tenant's storage.
    pub squatter: Option<Target>,
    /// Whether its Velero Backup exists but the BackupStorageLocation does not, so that the owner is unknown.
    pub storage_missing: bool,
    /// The BackupStorageLocation of the Velero Backup, if it exists.
    pub velero_location: Option<Arc<BackupStorageLocation>>,
    /// The location the request names, and Velero's side of it.
    pub location: Option<Arc<NonAdminBackupStorageLocation>>,
    /// Velero's side of the location the request names.
    pub storage: Option<Arc<BackupStorageLocation>>,
    /// The administrators' location that Velero uses if the request names none.
    pub default_storage: Option<Arc<BackupStorageLocation>>,
    /// The ConfigMap the request names, if it exists.
    pub resource_policy: Option<Arc<ConfigMap>>,
    /// Whether a schedule's retention has it deleted, and whether that still holds.
    pub marked: Marked,
    /// The requests to delete the Velero Backup, oldest first.
    pub delete_requests: Vec<Arc<DeleteBackupRequest>>,
    /// The restores of this namespace that name this backup.
    pub restores: Vec<Arc<NonAdminRestore>>,
    /// Progress of the volumes.
    pub volumes: (PodVolumeCounts, DataMoverCounts),
    /// The volume operations of the Velero Backup.
    pub operations: Vec<Operation>,
    /// Who can cancel volume operations.
    pub canceller: Velero,
    /// The claims of the namespace, and by what they can be saved.
    pub volume_facts: VolumeFacts,
    /// Its position in Velero's queue, once the Velero object exists.
    pub position: i64,
    /// Whether a new queue position alone is written. With many waiting requests, a periodic job with a budget decides
    /// that.
    pub publish_position: bool,
    /// Whether it is its turn to be handed over; none once the Velero object exists.
    pub turn: Option<Place>,
    /// Whether Velero was given it, though its status does not show it yet.
    pub was_given: bool,
    /// The other backups of this namespace, where their number is limited.
    pub others: Others,
    /// Whether it is a run of a schedule whose status is yet to say that it was made.
    pub awaited: bool,
    /// The last write for this object that the API server rejected.
    pub rejected_write: Option<Arc<RejectedWrite>>,
    /// What was read of the errors and warnings that Velero reported, if it is not published yet.
    pub results: Option<Results>,
    /// What is known of the permissions of whoever asked.
    pub access: Access,
    /// What Velero may do in the namespace.
    pub velero_access: VeleroAccess,
    /// The policy for the namespace; none while it is unknown.
    pub policy: Option<Arc<Policy>>,
    /// Velero's namespace.
    pub admin_namespace: String,
    /// The current time, given by the caller.
    pub now: Timestamp,
}

/// The names a Velero Backup of this request can have: the one it would be given now, the one it was found under in
/// storage, and the one the Go controller gave it. All but the first may have been written by a tenant, and are used
/// only if the object belongs to the namespace.
pub fn references(backup: &NonAdminBackup) -> Vec<String> {
    let synced = label(&backup.metadata, labels::SYNCED_FROM);
    let reported =
        backup.status.as_ref().and_then(|status| status.velero_backup.as_ref()?.nacuuid.as_deref());
    let mut names = vec![own_name(&backup.metadata)];
    names.extend([synced, reported].into_iter().flatten().filter(|name| !name.is_empty()).map(str::to_owned));
    names.dedup();
    names
}

/// Gathers what a decision about this backup reads; none if there is no such backup.
pub fn observe(view: &State, namespace: &str, name: &str) -> Option<Observed> {
    Some(gather(view, view.seen::<NonAdminBackup>(namespace, name)?, namespace, name))
}

/// Why this backup would be refused now; none while the policy is unknown.
pub(crate) fn judge(view: &State, backup: NonAdminBackup) -> Option<Result<(), Refusal>> {
    let (namespace, name) = (backup.metadata.namespace.clone()?, backup.metadata.name.clone()?);
    let seen = gather(view, Seen { object: Arc::new(backup), unreadable: None }, &namespace, &name);
    let refusal = check::refusal(&seen, seen.policy.as_deref()?);
    Some(refusal.map_or(Ok(()), Err))
}

/// The same for an object that is not stored yet, or is about to change.
pub(crate) fn gather(
    view: &State,
    Seen { object: backup, unreadable }: Seen<NonAdminBackup>,
    namespace: &str,
    name: &str,
) -> Observed {
    let velero = velero_of(view, &backup);
    let taken = velero.is_none().then(|| view.admin::<Backup>(&own_name(&backup.metadata))).flatten();
    let squatter = taken.as_deref().filter(|taken| is_in_storage_of_others(view, taken, namespace));
    let squatter = squatter.map(|taken| Target::of(Kind::Backup, &taken.metadata));
    let name_taken = taken.is_some();
    let storage_missing = velero.is_none() && storage_missing(view, &backup);

    let spec = &backup.spec.backup_spec;
    let location = spec
        .storage_location
        .as_deref()
        .and_then(|name| view.get::<NonAdminBackupStorageLocation>(namespace, name));
    let storage =
        location.as_deref().and_then(|location| view.admin::<BackupStorageLocation>(&storage_name(location)));
    let default_storage = spec.storage_location.is_none().then(|| view.default_storage()).flatten();
    let policy = view.policy(namespace);
    let velero_name = velero.as_deref().and_then(|velero| velero.metadata.name.clone());
    Observed {
        velero_location: velero.as_deref().and_then(|velero| place(view, velero)),
        resource_policy: spec.resource_policy.as_ref().and_then(|named| view.admin::<ConfigMap>(&named.name)),
        delete_requests: velero_name.as_deref().map_or_else(Vec::new, |name| view.delete_requests(name)),
        restores: view.restores_from(namespace, name),
        volumes: velero_name.as_deref().map_or_else(Default::default, |name| view.backup_volumes(name)),
        operations: velero.as_deref().map_or_else(Vec::new, |velero| of_backup(view, velero)),
        canceller: Velero::of(view),
        volume_facts: VolumeFacts::gather(view, namespace),
        position: velero.as_deref().map_or(0, |velero| view.backup_queue().position(velero)),
        publish_position: true,
        turn: velero.is_none().then(|| view.place_in_queue(Kind::NonAdminBackup, &backup.metadata)),
        was_given: view
            .turns(Kind::NonAdminBackup)
            .was_given(&Key::of(Kind::NonAdminBackup, &backup.metadata)),
        others: policy
            .as_deref()
            .filter(|_| velero.is_none())
            .map_or_else(Others::default, |policy| limits::others(view, &backup, policy)),
        awaited: schedule::awaits(view, &backup.metadata),
        marked: schedule::marked(view, &backup),
        rejected_write: rejected_write::persistent(view, &Key::of(Kind::NonAdminBackup, &backup.metadata)),
        results: view.results(&Key::of(Kind::NonAdminBackup, &backup.metadata)),
        access: Access::gather(view, &backup.metadata, namespace),
        velero_access: VeleroAccess::gather(view, namespace),
        admin_namespace: view.admin_namespace().to_owned(),
        now: view.now(),
        namespace: view.namespace(namespace),
        backup,
        unreadable,
        velero,
        name_taken,
        squatter,
        storage_missing,
        location,
        storage,
        default_storage,
        policy,
    }
}

/// The Velero Backup of a request, if there is one and it is the namespace's own.
pub(crate) fn velero_of(view: &State, backup: &NonAdminBackup) -> Option<Arc<Backup>> {
    let namespace = view.namespace(backup.metadata.namespace.as_deref()?)?;
    let named = references(backup).into_iter().filter_map(|name| view.admin::<Backup>(&name));
    let mut own = named.filter(|velero| owns_backup(&namespace, velero, place(view, velero).as_deref()));
    own.find(|velero| meant(backup, velero))
}

/// Whether the Velero Backup of an imported request is in a BackupStorageLocation that does not exist. In a tenant's
/// storage, the location determines the owner. A request that never showed the backup learns nothing.
fn storage_missing(view: &State, backup: &NonAdminBackup) -> bool {
    let synced = label(&backup.metadata, labels::SYNCED_FROM);
    let shown = backup.status.as_ref().and_then(|status| status.velero_backup.as_ref()?.name.as_deref());
    let Some(velero) = shown.filter(|_| shown == synced).and_then(|name| view.admin::<Backup>(name)) else {
        return false;
    };
    storage(&velero, place(view, &velero).as_deref()) == Storage::Unknown
}

/// Whether a Velero Backup lies in storage of another tenant.
fn is_in_storage_of_others(view: &State, velero: &Backup, namespace: &str) -> bool {
    place(view, velero).as_deref().and_then(tenant_of).is_some_and(|owner| owner != namespace)
}

/// The location a Velero Backup names, if it exists.
fn place(view: &State, velero: &Backup) -> Option<Arc<BackupStorageLocation>> {
    velero.spec.storage_location.as_deref().and_then(|name| view.admin::<BackupStorageLocation>(name))
}

/// Whether a Velero Backup of this namespace is this request's: made for this very object, named by the label of a
/// request that came out of storage, or made by the Go controller for an object of this name and named in its status.
fn meant(backup: &NonAdminBackup, velero: &Backup) -> bool {
    let name = velero.metadata.name.as_deref();
    let origin = &backup.metadata;
    let synced = label(origin, labels::SYNCED_FROM).is_some() && label(origin, labels::SYNCED_FROM) == name;
    let reported = name != Some(&own_name(origin)) && named_alike(&velero.metadata, origin);
    synced || reported || made_for(&velero.metadata, origin, labels::NAB_NAME, labels::NAB_NAMESPACE)
}

fn named_alike(velero: &ObjectMeta, origin: &ObjectMeta) -> bool {
    annotation(velero, labels::NAB_NAME) == origin.name.as_deref()
}

/// The name of Velero's side of a tenant's location.
pub(crate) fn storage_name(location: &NonAdminBackupStorageLocation) -> String {
    let reported = location
        .status
        .as_ref()
        .and_then(|status| status.velero_backup_storage_location.as_ref()?.name.clone());
    reported.unwrap_or_else(|| own_name(&location.metadata))
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

    /// The user asked to delete the data too, and may.
    fn deletes_data(&self) -> bool {
        self.spec().delete_backup == Some(true) && self.not_theirs().is_none()
    }

    /// Why the data is not deleted although somebody asked for it: the policy leaves that to whoever asked for the backup.
    fn not_theirs(&self) -> Option<String> {
        let policy = self.policy.as_deref().filter(|policy| policy.backup.delete == DeleteBy::Own)?;
        // Whoever deletes is recorded apart, so this holds for a backup of which nobody recorded who asked, too: one that was
        // imported again.
        let asks = self.spec().delete_backup == Some(true) && policy.requester.mode != RequesterMode::Ignore;
        let by = requester::of_deletion(self.meta());
        // The Velero Backup knows who asked for it: the request may have been edited since, by somebody else.
        let owner =
            self.velero.as_ref().and_then(|velero| annotation(&velero.metadata, labels::REQUESTER))?;
        let theirs = match &by {
            Identity::Policy => true,
            Identity::Unrecorded => policy.requester.unrecorded != RequesterMode::Enforce,
            Identity::Known(_) | Identity::Unreadable => by.user() == Some(owner),
        };
        let theirs = !asks || theirs;
        (!theirs).then(|| {
            format!("spec.deleteBackup: the data is for {owner:?} to delete, who asked for the backup; set it to false")
        })
    }

    /// It was made from a Velero Backup found in storage; such a request never makes one.
    fn synced(&self) -> bool {
        label(self.meta(), labels::SYNCED_FROM).is_some_and(|name| !name.is_empty())
    }

    /// The namespace is being deleted.
    fn namespace_is_deleting(&self) -> bool {
        self.namespace.as_deref().is_some_and(|space| space.metadata.deletion_timestamp.is_some())
    }
}

impl Request for Observed {
    const NOUN: &'static str = "backup";
    const FINALIZER: Option<&'static str> = Some(labels::NAB_FINALIZER);
    const LOST: Option<&'static str> = Some(condition::VELERO_BACKUP_NOT_FOUND);

    fn object(&self) -> (Kind, &ObjectMeta) {
        (Kind::NonAdminBackup, self.meta())
    }

    fn reported(&self) -> (Option<Phase>, &[Condition]) {
        let status = self.backup.status.as_ref();
        status.map_or((None, [].as_slice()), |status| (status.phase, status.conditions.as_slice()))
    }

    fn refusal_write(&self, reason: &'static str, message: &str) -> Option<Action> {
        status::patch(self, &status::refused(self, reason, message))
    }

    fn now(&self) -> Timestamp {
        self.now
    }

    fn is_awaited(&self) -> bool {
        self.awaited
    }

    fn deletion_requested(&self) -> bool {
        self.is_deleting() || self.spec().delete_backup == Some(true)
    }

    fn deletion_write(&self, message: &str) -> Option<Action> {
        status::patch(self, &status::deleting(self, message, None))
    }
}

/// Decides what to do about one backup.
pub fn decide(seen: &Observed) -> Plan {
    if seen.namespace.is_none() {
        // The owner of a Velero Backup is unknown yet: neither create nor release one.
        return seen.wait_for_namespace();
    }
    if seen.is_deleting() || seen.deletes_data() {
        return delete::decide(seen);
    }
    if let Some(velero) = &seen.velero {
        return mirror(seen, velero);
    }
    if seen.storage_missing {
        // The status stays as it is until the storage is back, or the backup is gone.
        return Plan::done().because("its BackupStorageLocation does not exist at the moment");
    }
    if seen.handed_over_before() || seen.lost_before() || seen.synced() {
        return lost(seen);
    }
    if let Some(squatter) = &seen.squatter {
        // Nobody but this request has its uid, so it is forged. Only Velero's record of it goes: the bytes are another's.
        return Plan::done().then(Action::DeleteUnchanged(squatter.clone())).again_at_once().because(
            "a backup that Velero found in another tenant's storage has the name of this one and goes",
        );
    }
    if seen.was_given {
        return lost(seen);
    }
    let Some(policy) = &seen.policy else {
        return seen.wait_for_policy();
    };
    if let Some(refusal) = check::refusal(seen, policy) {
        return seen.refuse(condition::INVALID_BACKUP_SPEC, &refusal.condition_message());
    }
    match limits::over_limit(seen, policy) {
        Some(full) => limits::wait(seen, policy, &full),
        None => match &seen.rejected_write {
            Some(rejected_write) if rejected_write.kind == Kind::Backup => {
                write_rejected(seen, rejected_write)
            }
            _ => match check::permitted(seen, policy) {
                Verdict::Permitted(left_out) => hand_over(seen, policy, &left_out),
                Verdict::Ask(asks) => Plan::done().ask(asks),
                Verdict::Refused(refusal) => seen.not_permitted(&refusal),
            },
        },
    }
}

/// The API server rejects the Velero Backup: reports that, and retries later.
fn write_rejected(seen: &Observed, rejected_write: &RejectedWrite) -> Plan {
    let message = format!("Velero could not be given the backup: {}; nacre retries", rejected_write.why());
    seen.hand_over_failed(&message)
}

/// It passed every check: Velero is given it if it is its turn.
fn hand_over(seen: &Observed, policy: &Policy, left_out: &LeftOut) -> Plan {
    let mut velero = generate::backup(seen, policy, left_out);
    let Some(Place::Next(tag)) = seen.turn else {
        let status = status::waiting(seen, policy, &velero.spec);
        return seen.wait_for_turn(seen.turn, status::patch(seen, &status));
    };
    let name = turns::stamp(&mut velero.metadata, tag);
    create(seen, &velero).with_turn(Turn::Taken(name, tag))
}

/// Finalizer and Velero Backup, and before them nacre's volume policy if the backup needs it. The status follows at once,
/// so there are three writes; the queue position is known only after the create.
fn create(seen: &Observed, velero: &Backup) -> Plan {
    // The volume policy first, since it may be rejected.
    let plan = seen.ensure_finalizer(Plan::done().then_if(volumes::ensure(seen, &velero.spec)));
    plan.then(Action::Create(Object::of(Kind::Backup, velero)))
        .again_at_once()
        .because("it passed every check, and it is its turn: Velero is given the backup")
}

/// The Velero Backup exists: mirrors its status, and ensures the finalizer.
fn mirror(seen: &Observed, velero: &Backup) -> Plan {
    let mut plan = seen.ensure_finalizer(Plan::done());
    for withdrawn in delete::not_begun(seen) {
        plan = plan.then(Action::Delete(Target::of(Kind::DeleteBackupRequest, &withdrawn.metadata)));
    }
    plan = plan.then_if(generate::stamp(seen, velero));
    if let Some(wait) = seen.awaits_first_report(velero) {
        return plan.requeue_after(wait).because(JUST_GIVEN);
    }
    let status = status::mirrored(seen, velero);
    plan = plan.then_if(status::patch(seen, &status));
    plan.events.extend(status::news(seen, velero, &status));
    let plan = seen.cancelling(velero, false).add_to(plan, seen.rejected_write.as_deref());
    plan.because(mirrored(velero))
}

/// The Velero Backup existed and is gone. It is never created a second time.
fn lost(seen: &Observed) -> Plan {
    let shown_before = seen.backup.status.as_ref().is_some_and(|status| status.velero_backup.is_some());
    let message = if seen.synced() && !shown_before {
        "there is no backup of this namespace to synchronise from; remove this object and create a new NonAdminBackup"
    } else {
        "the Velero Backup is gone (expired or deleted) and is not made again; create a new NonAdminBackup"
    };
    seen.refuse(condition::VELERO_BACKUP_NOT_FOUND, message)
}
