//! NonAdminRestore: from a tenant's wish to a Velero Restore. It runs once.

mod admit;
mod check;
mod from_tenants;
mod generate;
mod modifier;
mod status;

use std::sync::Arc;
use std::time::Duration;

use api::condition;
use api::velero::{Backup, BackupStorageLocation, Restore};
use api::{
    DataMoverCounts, Kind, NonAdminBackup, NonAdminRestore, NonAdminRestoreStatus, Phase, PodVolumeCounts,
    labels,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::core::ObjectMeta;

pub(crate) use admit::admit;
pub use check::{STARTS_BY_ITSELF, check_spec};
pub use modifier::MODIFIERS;

use crate::ownership::{Storage, annotation, made_for, made_in, own_name, storage};
use crate::state::State;
use crate::trouble::{self, again, since};
use crate::view::Seen;
use crate::{Action, Event, Key, Object, Plan, Policy, Refusal, Target, Trouble, backup};

/// Everything a decision about one restore reads.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The request.
    pub restore: Arc<NonAdminRestore>,
    /// Why the request could not be read.
    pub unreadable: Option<Arc<str>>,
    /// The namespace it is in.
    pub namespace: Option<Arc<Namespace>>,
    /// Its Velero Restore, if there is one and it was made for this request.
    pub velero: Option<Arc<Restore>>,
    /// Whether somebody else's object has the name its Velero Restore would get.
    pub name_taken: bool,
    /// The backup it names.
    pub backup: Option<Arc<NonAdminBackup>>,
    /// The Velero Backup behind that, if it is this namespace's own.
    pub source: Option<Arc<Backup>>,
    /// Where that is kept, if the location exists.
    pub kept_at: Option<Arc<BackupStorageLocation>>,
    /// The volumes of that backup that were saved from inside pods.
    pub source_volumes: PodVolumeCounts,
    /// nacre's own modifier for what comes from tenants' storage, if it exists.
    pub modifier: Option<Arc<ConfigMap>>,
    /// The ConfigMaps the request names as modifier and as policy, if they exist.
    pub config_maps: [Option<Arc<ConfigMap>>; 2],
    /// How far the volumes are.
    pub volumes: (PodVolumeCounts, DataMoverCounts),
    /// Where it stands in Velero's queue, once Velero has it.
    pub position: i64,
    /// Whether a new position alone is worth a write. Where many wait, that is for a chore with a budget to say.
    pub position_due: bool,
    /// What the API server did not take when it was last tried.
    pub trouble: Option<Arc<Trouble>>,
    /// What an administrator allows, if that is known.
    pub policy: Option<Arc<Policy>>,
    /// Where Velero is.
    pub admin_namespace: String,
    /// The time.
    pub now: Timestamp,
}

/// The names a Velero Restore of this request can have: the one it would be given now, and the one the Go controller
/// gave it.
pub fn references(restore: &NonAdminRestore) -> Vec<String> {
    let told = restore.status.as_ref().and_then(|status| status.velero_restore.as_ref()?.nacuuid.clone());
    let mut names = vec![own_name(&restore.metadata)];
    names.extend(told.filter(|name| !name.is_empty()));
    names.dedup();
    names
}

/// Gathers what a decision about this restore reads; none if there is no such restore.
pub fn observe(view: &State, namespace: &str, name: &str) -> Option<Observed> {
    Some(gather(view, view.restore(namespace, name)?, namespace))
}

/// Why this restore would be refused if it were asked for now; none if nobody can tell.
pub(crate) fn judge(view: &State, restore: NonAdminRestore) -> Option<Result<(), Refusal>> {
    let namespace = restore.metadata.namespace.clone()?;
    let seen = gather(view, Seen { object: Arc::new(restore), unreadable: None }, &namespace);
    let refusal = check::refusal(&seen, seen.policy.as_deref()?);
    Some(refusal.map_or(Ok(()), Err))
}

/// Gathers the same for one that is not stored yet, or not so.
pub(crate) fn gather(
    view: &State,
    Seen { object: restore, unreadable }: Seen<NonAdminRestore>,
    namespace: &str,
) -> Observed {
    let space = view.namespace(namespace);
    let velero = velero_of(view, &restore);
    let spec = &restore.spec.restore_spec;
    let backup =
        spec.backup_name.as_deref().and_then(|name| view.backup(namespace, name)).map(|seen| seen.object);
    let source = backup.as_deref().and_then(|backup| backup::velero_of(view, backup));
    let location = source.as_deref().and_then(|source| source.spec.storage_location.as_deref());
    let named = [&spec.resource_modifier, &spec.resource_policy];
    let policy = view.policy(namespace);
    let velero_name = velero.as_deref().and_then(|velero| velero.metadata.name.clone());
    Observed {
        name_taken: velero.is_none() && view.velero_restore(&own_name(&restore.metadata)).is_some(),
        kept_at: location.and_then(|name| view.storage_location(name)),
        config_maps: named.map(|named| named.as_ref().and_then(|named| view.config_map(&named.name))),
        volumes: velero_name.as_deref().map_or_else(Default::default, |name| view.restore_volumes(name)),
        position: velero.as_deref().map_or(0, |velero| view.restore_queue().position(velero)),
        position_due: true,
        source_volumes: source
            .as_deref()
            .and_then(|source| source.metadata.name.as_deref())
            .map_or_else(PodVolumeCounts::default, |name| view.backup_volumes(name).0),
        modifier: policy
            .as_deref()
            .and_then(|policy| view.config_map(modifier::name(&policy.restore.from_tenant_storage))),
        policy,
        trouble: trouble::lasting(view, &Key::of(Kind::NonAdminRestore, &restore.metadata)),
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

/// The Velero Restore of a request: made for this very object and namespace.
pub(crate) fn velero_of(view: &State, restore: &NonAdminRestore) -> Option<Arc<Restore>> {
    let namespace = view.namespace(restore.metadata.namespace.as_deref()?)?;
    let mut named = references(restore).into_iter().filter_map(|name| view.velero_restore(&name));
    named.find(|velero| {
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

    /// Somebody asked Kubernetes to delete the request.
    fn leaving(&self) -> bool {
        self.meta().deletion_timestamp.is_some()
    }

    /// Our finalizer is on it.
    fn held(&self) -> bool {
        self.meta().finalizers.iter().flatten().any(|finalizer| finalizer == labels::NAR_FINALIZER)
    }

    /// The bytes are an administrator's; any others may be forged.
    fn trusted(&self) -> bool {
        let source = self.source.as_deref();
        source.is_some_and(|source| storage(source, self.kept_at.as_deref()) == Storage::Platform)
    }

    /// Velero has had it before.
    fn handed_over_before(&self) -> bool {
        let Some(status) = &self.restore.status else {
            return false;
        };
        status.phase == Some(Phase::Created) || condition::is_true(&status.conditions, condition::QUEUED)
    }

    /// It was said to be lost: from then on it stays so, whatever made nacre think that Velero had it.
    fn lost_before(&self) -> bool {
        let accepted = self
            .restore
            .status
            .as_ref()
            .and_then(|status| condition::get(&status.conditions, condition::ACCEPTED));
        accepted.is_some_and(|accepted| accepted.reason == condition::VELERO_RESTORE_NOT_FOUND)
    }
}

/// How long to wait for a namespace that a watch has yet to tell us about.
const UNTIL_THE_NAMESPACE_IS_SEEN: Duration = Duration::from_secs(2);

/// Why a request waits while the policy is not known.
const UNTIL_THE_POLICY_IS_READ: &str = "what the administrators allow cannot be read at the moment; \
                                        the restore waits, and goes on by itself when that is mended";

/// Decides what to do about one restore.
pub fn decide(seen: &Observed) -> Plan {
    if seen.namespace.is_none() {
        // Whose a Velero Restore is cannot be told yet: neither make one nor let go of one.
        return Plan::done().waking_in(UNTIL_THE_NAMESPACE_IS_SEEN);
    }
    if seen.leaving() {
        return delete(seen);
    }
    if let Some(velero) = &seen.velero {
        return mirror(seen, velero);
    }
    if seen.handed_over_before() || seen.lost_before() {
        let message = "the Velero Restore is gone and does not run again; create a new NonAdminRestore";
        return refuse(seen, condition::VELERO_RESTORE_NOT_FOUND, message);
    }
    let Some(policy) = &seen.policy else {
        // Allowing it would be a guess. Whoever waits is decided about again when the policy changes.
        return refuse(seen, condition::POLICY_UNAVAILABLE, UNTIL_THE_POLICY_IS_READ);
    };
    match check::refusal(seen, policy) {
        Some(refusal) => refuse(seen, condition::INVALID_RESTORE_SPEC, &refusal.to_string()),
        None => match seen.trouble.as_deref().and_then(not_taken) {
            Some(message) => {
                let conditions = seen.restore.status.as_ref().map(|status| status.conditions.as_slice());
                let wait = again(since(conditions, condition::ACCEPTED), seen.now);
                refuse(seen, condition::HAND_OVER_FAILED, &message).waking_in(wait)
            }
            None => create(seen, policy),
        },
    }
}

/// What the tenant is told where the API server does not take the Velero Restore, or what it must not be without.
fn not_taken(trouble: &Trouble) -> Option<String> {
    let what = match trouble.kind {
        Kind::Restore => "Velero could not be given the restore",
        Kind::ConfigMap => {
            "nothing comes back from your own storage without nacre's own resource modifier, a ConfigMap beside Velero, \
             which could not be written"
        }
        _ => return None,
    };
    Some(format!("{what}: {}; it is tried again", trouble.why()))
}

/// Finalizer and Velero Restore. Then it is mirrored at once, which makes three writes; its place in the queue is
/// known only when it stands there.
fn create(seen: &Observed, policy: &Policy) -> Plan {
    let velero = generate::restore(seen, policy);
    let mut plan = Plan::done();
    // First what may not be to be had at all.
    if !seen.trusted() {
        plan = plan.then_if(modifier::ensure(seen, &policy.restore.from_tenant_storage));
    }
    if !seen.held() {
        plan = plan.then(Action::Hold(seen.target(), labels::NAR_FINALIZER));
    }
    plan.then(Action::Create(Object::of(Kind::Restore, &velero))).again_at_once()
}

/// Velero has it: show what Velero says, whatever has become of the backup since.
fn mirror(seen: &Observed, velero: &Restore) -> Plan {
    let status = status::mirrored(seen, velero);
    let mut plan = Plan::done();
    if !seen.held() {
        plan = plan.then(Action::Hold(seen.target(), labels::NAR_FINALIZER));
    }
    if annotation(&velero.metadata, labels::ORIGIN_UID).is_none() {
        plan = plan.then(generate::stamp(seen, velero));
    }
    plan = plan.then_if(status::patch(seen, &status));
    plan.events.extend(status::news(seen, velero, &status));
    plan
}

/// Writes a refusal and tells it, but only when it is news. There is nothing at Velero to hold the request for.
fn refuse(seen: &Observed, reason: &'static str, message: &str) -> Plan {
    let mut plan = Plan::done();
    if seen.held() {
        plan = plan.then(Action::Release(seen.target(), labels::NAR_FINALIZER));
    }
    match status::patch(seen, &status::refused(seen, reason, message)) {
        None => plan,
        Some(write) => plan.then(write).telling(Event::warning(reason, message)),
    }
}

/// The Velero Restore goes first; Velero may hold it until it has cleaned up.
fn delete(seen: &Observed) -> Plan {
    let Some(velero) = &seen.velero else {
        if !seen.held() {
            return Plan::done();
        }
        let plan = Plan::done().then(Action::Release(seen.target(), labels::NAR_FINALIZER));
        return plan.telling(Event::normal("RestoreDeleted", "the restore is gone"));
    };
    let status = status::deleting(seen, velero);
    let mut plan = Plan::done().then_if(status::patch(seen, &status));
    if velero.metadata.deletion_timestamp.is_none() {
        plan = plan.then(Action::Delete(Target::of(Kind::Restore, &velero.metadata)));
    }
    plan
}

/// Refuses because of what the request says.
type Verdict = Option<Refusal>;
