//! NonAdminRestore: from a tenant's request to a Velero Restore. It runs once.

mod admit;
mod check;
mod data;
mod delete;
pub(crate) mod from_tenants;
mod generate;
mod modifier;
mod status;
mod unfinished;

use std::sync::Arc;

use api::condition;
use api::velero::{Backup, BackupStorageLocation, Restore};
use api::{
    DataMoverCounts, Kind, NonAdminBackup, NonAdminRestore, NonAdminRestoreStatus, Phase, PodVolumeCounts,
    RestoredFrom, labels,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::core::ObjectMeta;

pub(crate) use admit::admit;
pub use check::check_spec;
pub use data::DataFacts;
pub use modifier::MODIFIERS;
pub(crate) use modifier::NEVER as NEVER_FROM_TENANTS;
pub use unfinished::unfinished;

use crate::dedicated::VeleroAccess;
use crate::ownership::{Storage, annotation, made_for, made_in, own_name, own_restore_name, storage};
use crate::rejected_write;
use crate::request::{JUST_GIVEN, Request, mirrored};
use crate::requester::{Access, LeftOut, Verdict};
use crate::results::Results;
use crate::state::State;
use crate::turns::{Place, Turn};
use crate::view::Seen;
use crate::{Action, Key, Object, Plan, Policy, Refusal, RejectedWrite, Target, backup, turns};

/// Everything a decision about one restore reads.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The request.
    pub restore: Arc<NonAdminRestore>,
    /// Why the request could not be parsed; none if it could.
    pub unreadable: Option<Arc<str>>,
    /// The request's namespace.
    pub namespace: Option<Arc<Namespace>>,
    /// Its Velero Restore, if there is one and it was made for this request.
    pub velero: Option<Arc<Restore>>,
    /// Whether another object already has the name its Velero Restore would get.
    pub name_taken: bool,
    /// The backup it names.
    pub backup: Option<Arc<NonAdminBackup>>,
    /// The Velero Backup behind that, if it is this namespace's own.
    pub source: Option<Arc<Backup>>,
    /// The BackupStorageLocation of that, if it exists.
    pub velero_location: Option<Arc<BackupStorageLocation>>,
    /// The volumes of that backup that were saved from inside pods.
    pub source_volumes: PodVolumeCounts,
    /// nacre's own modifier for what comes from tenants' storage, if it exists.
    pub modifier: Option<Arc<ConfigMap>>,
    /// The ConfigMaps the request names as modifier and as policy, if they exist.
    pub config_maps: [Option<Arc<ConfigMap>>; 2],
    /// Progress of the volumes.
    pub volumes: (PodVolumeCounts, DataMoverCounts),
    /// What decides whether the data came back.
    pub data: data::DataFacts,
    /// Its position in Velero's queue, once the Velero object exists.
    pub position: i64,
    /// Whether a new queue position alone is written. With many waiting requests, a periodic job with a budget decides
    /// that.
    pub publish_position: bool,
    /// Whether it is its turn to be handed over; none once the Velero object exists.
    pub turn: Option<Place>,
    /// Whether Velero was given it, though its status does not show it yet.
    pub was_given: bool,
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

/// The names of this request's Velero Restore that are known without its namespace: the one an older version of nacre
/// would have given it, and the one that was noted.
pub fn references(restore: &NonAdminRestore) -> Vec<String> {
    let reported = restore.status.as_ref().and_then(|status| status.velero_restore.as_ref()?.nacuuid.clone());
    let mut names = vec![own_name(&restore.metadata)];
    names.extend(reported.filter(|name| !name.is_empty()));
    names.dedup();
    names
}

/// Gathers what a decision about this restore reads; none if there is no such restore.
pub fn observe(view: &State, namespace: &str, name: &str) -> Option<Observed> {
    Some(gather(view, view.seen::<NonAdminRestore>(namespace, name)?, namespace))
}

/// Why this restore would be refused now; none while the policy is unknown.
pub(crate) fn judge(view: &State, restore: NonAdminRestore) -> Option<Result<(), Refusal>> {
    let namespace = restore.metadata.namespace.clone()?;
    let seen = gather(view, Seen { object: Arc::new(restore), unreadable: None }, &namespace);
    let refusal = check::refusal(&seen, seen.policy.as_deref()?);
    Some(refusal.map_or(Ok(()), Err))
}

/// The same for an object that is not stored yet, or is about to change.
pub(crate) fn gather(
    view: &State,
    Seen { object: restore, unreadable }: Seen<NonAdminRestore>,
    namespace: &str,
) -> Observed {
    let space = view.namespace(namespace);
    let velero = velero_of(view, &restore);
    let spec = &restore.spec.restore_spec;
    let backup = spec.backup_name.as_deref().and_then(|name| view.get::<NonAdminBackup>(namespace, name));
    let source = backup.as_deref().and_then(|backup| backup::velero_of(view, backup));
    let location = source.as_deref().and_then(|source| source.spec.storage_location.as_deref());
    let named = [&spec.resource_modifier, &spec.resource_policy];
    let policy = view.policy(namespace);
    let velero_name = velero.as_deref().and_then(|velero| velero.metadata.name.clone());
    let taken = space.as_deref().is_some_and(|space| {
        own_names(&restore, space).iter().any(|name| view.admin::<Restore>(name).is_some())
    });
    Observed {
        name_taken: velero.is_none() && taken,
        velero_location: location.and_then(|name| view.admin::<BackupStorageLocation>(name)),
        config_maps: named.map(|named| named.as_ref().and_then(|named| view.admin::<ConfigMap>(&named.name))),
        volumes: velero_name.as_deref().map_or_else(Default::default, |name| view.restore_volumes(name)),
        data: data::DataFacts::gather(view, namespace, &restore, velero.as_deref()),
        position: velero.as_deref().map_or(0, |velero| view.restore_queue().position(velero)),
        publish_position: true,
        turn: velero.is_none().then(|| view.place_in_queue(Kind::NonAdminRestore, &restore.metadata)),
        was_given: view
            .turns(Kind::NonAdminRestore)
            .was_given(&Key::of(Kind::NonAdminRestore, &restore.metadata)),
        source_volumes: source
            .as_deref()
            .and_then(|source| source.metadata.name.as_deref())
            .map_or_else(PodVolumeCounts::default, |name| view.backup_volumes(name).0),
        modifier: policy
            .as_deref()
            .and_then(|policy| view.admin::<ConfigMap>(modifier::name(&policy.restore.from_tenant_storage))),
        policy,
        rejected_write: rejected_write::persistent(view, &Key::of(Kind::NonAdminRestore, &restore.metadata)),
        results: view.results(&Key::of(Kind::NonAdminRestore, &restore.metadata)),
        access: Access::gather(view, &restore.metadata, namespace),
        velero_access: VeleroAccess::gather(view, namespace),
        admin_namespace: view.admin_namespace().to_owned(),
        now: view.now(),
        namespace: space,
        restore,
        unreadable,
        velero,
        backup,
        source,
    }
}

/// The request that a Velero Restore says it was made for.
pub(crate) fn origin(velero: &Restore) -> Option<Key> {
    let namespace = annotation(&velero.metadata, labels::NAR_NAMESPACE)?;
    Some(Key::new(Kind::NonAdminRestore, namespace, annotation(&velero.metadata, labels::NAR_NAME)?))
}

/// The names its Velero Restore would be given now, from either storage.
fn own_names(restore: &NonAdminRestore, namespace: &Namespace) -> [String; 2] {
    RestoredFrom::ALL.map(|from| own_restore_name(from, &restore.metadata, namespace))
}

/// The Velero Restore of a request: made for this very object and namespace.
pub(crate) fn velero_of(view: &State, restore: &NonAdminRestore) -> Option<Arc<Restore>> {
    let namespace = view.namespace(restore.metadata.namespace.as_deref()?)?;
    let names = own_names(restore, &namespace).into_iter().chain(references(restore));
    let mut found = names.filter_map(|name| view.admin::<Restore>(&name));
    found.find(|velero| {
        made_for(&velero.metadata, &restore.metadata, labels::NAR_NAME, labels::NAR_NAMESPACE)
            && made_in(&velero.metadata, &namespace)
    })
}

impl Observed {
    fn meta(&self) -> &ObjectMeta {
        &self.restore.metadata
    }

    fn target(&self) -> Target {
        Target::of(Kind::NonAdminRestore, self.meta())
    }

    fn status(&self) -> NonAdminRestoreStatus {
        self.restore.status.clone().unwrap_or_default()
    }

    /// The data is in the administrators' storage; any other data may be forged.
    fn trusted(&self) -> bool {
        let source = self.source.as_deref();
        source.is_some_and(|source| storage(source, self.velero_location.as_deref()) == Storage::Platform)
    }
}

impl Request for Observed {
    const NOUN: &'static str = "restore";
    const FINALIZER: Option<&'static str> = Some(labels::NAR_FINALIZER);
    const LOST: Option<&'static str> = Some(condition::VELERO_RESTORE_NOT_FOUND);

    fn object(&self) -> (Kind, &ObjectMeta) {
        (Kind::NonAdminRestore, self.meta())
    }

    fn reported(&self) -> (Option<Phase>, &[Condition]) {
        let status = self.restore.status.as_ref();
        status.map_or((None, [].as_slice()), |status| (status.phase, status.conditions.as_slice()))
    }

    fn refusal_write(&self, reason: &'static str, message: &str) -> Option<Action> {
        status::patch(self, &status::refused(self, reason, message))
    }

    fn now(&self) -> Timestamp {
        self.now
    }

    fn deletion_write(&self, message: &str) -> Option<Action> {
        status::patch(self, &status::deleting(self, message))
    }
}

/// Decides what to do about one restore.
pub fn decide(seen: &Observed) -> Plan {
    if seen.namespace.is_none() {
        // The owner of a Velero Restore is unknown yet: neither create nor release one.
        return seen.wait_for_namespace();
    }
    if seen.is_deleting() {
        return delete::decide(seen);
    }
    if let Some(velero) = &seen.velero {
        return mirror(seen, velero);
    }
    if seen.handed_over_before() || seen.was_given || seen.lost_before() {
        let message = "the Velero Restore is gone and does not run again; create a new NonAdminRestore";
        return seen.refuse(condition::VELERO_RESTORE_NOT_FOUND, message);
    }
    let Some(policy) = &seen.policy else {
        return seen.wait_for_policy();
    };
    match check::refusal(seen, policy) {
        Some(refusal) => seen.refuse(condition::INVALID_RESTORE_SPEC, &refusal.condition_message()),
        None => match seen.rejected_write.as_deref().and_then(write_rejected) {
            Some(message) => seen.hand_over_failed(&message),
            None => match check::permitted(seen, policy) {
                Verdict::Permitted(left_out) => hand_over(seen, policy, &left_out),
                Verdict::Ask(asks) => Plan::done().ask(asks),
                Verdict::Refused(refusal) => seen.not_permitted(&refusal),
            },
        },
    }
}

/// Condition message if the API server rejects the Velero Restore, or an object it needs.
fn write_rejected(rejected_write: &RejectedWrite) -> Option<String> {
    let what = match rejected_write.kind {
        Kind::Restore => "Velero could not be given the restore",
        Kind::ConfigMap => {
            "nothing comes back from your own storage without nacre's own resource modifier, a ConfigMap in Velero's namespace, \
             which could not be written"
        }
        _ => return None,
    };
    Some(format!("{what}: {}; nacre retries", rejected_write.why()))
}

/// It passed every check: Velero is given it if it is its turn.
fn hand_over(seen: &Observed, policy: &Policy, left_out: &LeftOut) -> Plan {
    let Some(Place::Next(tag)) = seen.turn else {
        return seen.wait_for_turn(seen.turn, status::patch(seen, &status::waiting(seen)));
    };
    let mut velero = generate::restore(seen, policy, left_out);
    let name = turns::stamp(&mut velero.metadata, tag);
    create(seen, policy, &velero).with_turn(Turn::Taken(name, tag))
}

/// Finalizer and Velero Restore. The status follows at once, so there are three writes; the queue position is known
/// only after the create.
fn create(seen: &Observed, policy: &Policy, velero: &Restore) -> Plan {
    let mut plan = Plan::done();
    // The modifier first, since it may be rejected.
    if !seen.trusted() {
        plan = plan.then_if(modifier::ensure(seen, &policy.restore.from_tenant_storage));
    }
    plan = seen.ensure_finalizer(plan);
    plan.then(Action::Create(Object::of(Kind::Restore, velero)))
        .again_at_once()
        .because("it passed every check, and it is its turn: Velero is given the restore")
}

/// The Velero Restore exists: mirrors its status, whatever happened to the backup since.
fn mirror(seen: &Observed, velero: &Restore) -> Plan {
    let mut plan = seen.ensure_finalizer(Plan::done());
    if annotation(&velero.metadata, labels::ORIGIN_UID).is_none() {
        plan = plan.then(generate::stamp(seen, velero));
    }
    if let Some(wait) = seen.awaits_first_report(velero) {
        return plan.requeue_after(wait).because(JUST_GIVEN);
    }
    let outcome = data::outcome(seen, velero);
    if let Some(wait) = data::may_be_late(seen, velero, outcome.as_ref()) {
        return plan
            .requeue_after(wait)
            .because("Velero has ended it, and what became of its volumes is not seen yet");
    }
    if let Some(wait) = data::waits_for_volume(outcome.as_ref()) {
        plan = plan.requeue_after(wait);
    }
    let status = status::mirrored(seen, velero, outcome);
    plan = plan.then_if(status::patch(seen, &status));
    plan.events.extend(status::news(seen, velero, &status));
    let plan = data::cancelling(seen, velero, false).add_to(plan, seen.rejected_write.as_deref());
    plan.because(mirrored(velero))
}

/// Refuses because of what the request says.
type CheckResult = Option<Refusal>;
