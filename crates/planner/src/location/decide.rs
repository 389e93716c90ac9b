//! Decides about a tenant's storage location: request approval, create it in Velero, remove it again.
//!
//! Unlike a backup, a location is checked at every reconcile: what was deleted by hand is created again, and what is
//! not allowed any more is removed.

use std::sync::Arc;
use std::time::Duration;

use api::velero::{BackupStorageLocation, BackupStorageLocationSpec};
use api::{
    ApprovalDecision, HiddenSecret, Kind, NonAdminBackup, NonAdminBackupStorageLocation,
    NonAdminBackupStorageLocationRequest, condition, labels,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::core::ObjectMeta;

use super::credentials::Credential as Parsed;
use super::{
    check_credential, check_limit, check_spec, conditions, delete, generate, neighbours, review, status,
};
use crate::ownership::{made_for, own_name};
use crate::policy::Import;
use crate::rejected_write::{self, retry_after, since};
use crate::state::State;
use crate::view::{Credential, Seen};
use crate::{Action, Key, Plan, Policy, Refusal, RejectedWrite, Target};

/// Everything a decision about one location reads.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The location.
    pub location: Arc<NonAdminBackupStorageLocation>,
    /// Why it could not be parsed; none if it could.
    pub unreadable: Option<Arc<str>>,
    /// The request's namespace.
    pub namespace: Option<Arc<Namespace>>,
    /// What its objects in the administrators' namespace are called.
    pub name: String,
    /// What an administrator decides.
    pub request: Option<Seen<NonAdminBackupStorageLocationRequest>>,
    /// Velero's side of it.
    pub storage: Option<Arc<BackupStorageLocation>>,
    /// The credential as Velero has it.
    pub copy: Option<Arc<HiddenSecret>>,
    /// Whether another object already has the name of one of these.
    pub name_taken: bool,
    /// The credential as the tenant has it.
    pub credential: Credential,
    /// How many other locations of this namespace count before this one.
    pub others: usize,
    /// Whether another location has the place in the bucket.
    pub path_taken: bool,
    /// The backups that are kept in it.
    pub backups: Vec<Arc<NonAdminBackup>>,
    /// The last write for this object that the API server rejected.
    pub rejected_write: Option<Arc<RejectedWrite>>,
    /// Velero's version, if it is known.
    pub velero_version: Option<String>,
    /// The policy for the namespace; none while it is unknown.
    pub policy: Option<Arc<Policy>>,
    /// Velero's namespace.
    pub admin_namespace: String,
    /// The current time, given by the caller.
    pub now: Timestamp,
}

/// The names the objects of a location can have: the one they would be given now, and the one the Go controller gave
/// them. The second is a hint that a tenant may have written, and is followed only to what was made for this location.
pub fn references(location: &NonAdminBackupStorageLocation) -> Vec<String> {
    let reported = location
        .status
        .as_ref()
        .and_then(|status| status.velero_backup_storage_location.as_ref()?.nacuuid.clone());
    let mut names = vec![own_name(&location.metadata)];
    names.extend(reported.filter(|name| !name.is_empty()));
    names.dedup();
    names
}

/// Gathers what a decision about this location reads; none if there is no such location.
pub fn observe(view: &State, namespace: &str, name: &str) -> Option<Observed> {
    Some(gather(view, view.location(namespace, name)?, namespace))
}

/// The same for an object that is not stored yet, or is about to change.
pub(crate) fn gather(
    view: &State,
    Seen { object: location, unreadable }: Seen<NonAdminBackupStorageLocation>,
    namespace: &str,
) -> Observed {
    let meta = &location.metadata;
    let ours = |found: &ObjectMeta| made_for(found, meta, labels::NABSL_NAME, labels::NABSL_NAMESPACE);
    let mut names = references(&location).into_iter();
    let known = names.find(|name| {
        view.location_request(name).is_some_and(|request| ours(&request.object.metadata))
            || view.storage_location(name).is_some_and(|storage| ours(&storage.metadata))
            || view.secret_copy(name).is_some_and(|copy| ours(&copy.metadata))
    });
    let stored_as = known.unwrap_or_else(|| own_name(meta));
    let (request, storage, copy) =
        (view.location_request(&stored_as), view.storage_location(&stored_as), view.secret_copy(&stored_as));
    let name_taken = request.as_ref().is_some_and(|request| !ours(&request.object.metadata))
        || storage.as_ref().is_some_and(|storage| !ours(&storage.metadata))
        || copy.as_ref().is_some_and(|copy| !ours(&copy.metadata));
    let spec = &location.spec.backup_storage_location_spec;
    let credential = named_key(spec).map(|(secret, key)| view.credential(namespace, secret, key));
    Observed {
        name_taken,
        credential: credential.unwrap_or_default(),
        // Neither matters any more once it has come that far.
        others: if request.is_none() { neighbours::before(view, &location) } else { 0 },
        path_taken: storage.is_none() && neighbours::has_place(view, &location, &stored_as),
        backups: delete::backups(view, &location, &stored_as),
        request: request.filter(|request| ours(&request.object.metadata)),
        storage: storage.filter(|storage| ours(&storage.metadata)),
        copy: copy.filter(|copy| ours(&copy.metadata)),
        rejected_write: rejected_write::persistent(view, &Key::of(Kind::NonAdminBackupStorageLocation, meta)),
        velero_version: view.velero_version(),
        policy: view.policy(namespace),
        admin_namespace: view.admin_namespace().to_owned(),
        now: view.now(),
        namespace: view.namespace(namespace),
        name: stored_as,
        location,
        unreadable,
    }
}

/// The Secret and the key in it that a location names, if both can be names.
pub fn named_key(spec: &BackupStorageLocationSpec) -> Option<(&str, &str)> {
    let reference = spec.credential.as_ref()?;
    super::check::names_a_secret(reference).then_some((reference.name.as_str(), reference.key.as_str()))
}

impl Observed {
    pub(super) fn meta(&self) -> &ObjectMeta {
        &self.location.metadata
    }

    pub(super) fn target(&self) -> Target {
        Target::of(Kind::NonAdminBackupStorageLocation, self.meta())
    }

    pub(super) fn spec(&self) -> &BackupStorageLocationSpec {
        &self.location.spec.backup_storage_location_spec
    }

    pub(super) fn tenant(&self) -> &str {
        self.meta().namespace.as_deref().unwrap_or_default()
    }

    /// The request has nacre's finalizer.
    pub(super) fn has_finalizer(&self) -> bool {
        self.meta().finalizers.iter().flatten().any(|finalizer| finalizer == labels::NABSL_FINALIZER)
    }

    /// The spec as it was when it was asked for.
    fn requested(&self) -> Option<&BackupStorageLocationSpec> {
        let status = self.request.as_ref()?.object.status.as_ref()?;
        Some(&status.non_admin_backup_storage_location.as_ref()?.requested_spec)
    }

    /// It says something else than what was asked for.
    pub(super) fn edited(&self) -> bool {
        self.requested().is_some_and(|requested| !generate::same(requested, self.spec()))
    }

    /// The request was made for another location than it says.
    fn request_is_odd(&self) -> bool {
        let asked = self
            .request
            .as_ref()
            .and_then(|request| request.object.status.as_ref()?.non_admin_backup_storage_location.as_ref());
        asked.is_some_and(|asked| asked.nacuuid.as_deref() != Some(self.name.as_str()))
    }

    /// Whether Velero is to look for backups in it; none if that is not known yet.
    pub(super) fn imports(&self, policy: &Policy) -> Option<bool> {
        match policy.storage_locations.import {
            Import::On => Some(true),
            Import::Off => Some(false),
            Import::Auto => self.velero_version.as_deref().map(super::import::is_safe),
        }
    }
}

/// How long the location of a Secret that went away is kept: rotation is often a deletion and a creation.
const GRACE: Duration = Duration::from_mins(5);
/// Requeue delay until the watch has reported a namespace, or a Secret has been read for the first time.
pub(super) const SOON: Duration = Duration::from_secs(2);

/// The decision about a location.
#[derive(Debug)]
pub(super) enum LocationDecision {
    /// Not enough is known to decide.
    Wait,
    /// It is refused.
    Refused(Refusal),
    /// Its spec was changed after approval was requested.
    Edited,
    /// The Secret is missing, within the grace period.
    Grace(Refusal, Duration),
    /// Approval has to be requested.
    Ask,
    /// Approval is pending.
    Pending,
    /// An administrator rejected it, perhaps with a reason.
    Rejected(Option<String>),
    /// The approval request cannot be parsed.
    RequestUnreadable,
    /// The approval request belongs to another location.
    RequestMismatch,
    /// Approved: Velero gets it, with this credential.
    Approved(Parsed),
}

/// Decides what to do about one location.
pub fn decide(seen: &Observed) -> Plan {
    if seen.meta().deletion_timestamp.is_some() {
        return delete::decide(seen);
    }
    if seen.namespace.is_none() {
        return Plan::done().requeue_after(SOON);
    }
    let Some(policy) = &seen.policy else {
        return status::wait_for_policy(seen);
    };
    let verdict = verdict(seen, policy);
    if let Some(rejected_write) = &seen.rejected_write
        && let Some(failed) = conditions::failed(rejected_write, Some(&verdict))
    {
        return write_rejected(seen, policy, &verdict, &failed, rejected_write.kind);
    }
    let mut plan = Plan::done();
    if seen.request.is_some() {
        plan.actions.extend(generate::request_writes(seen, policy));
    }
    match &verdict {
        LocationDecision::Wait => return plan.requeue_after(SOON),
        LocationDecision::Ask => return ask(seen, policy, plan),
        LocationDecision::Approved(credential) => {
            plan = ensure_finalizer(seen, plan);
            plan.actions.extend(generate::secret_writes(seen, credential));
            plan.actions.extend(generate::storage_writes(seen, policy, credential));
            plan.events.extend(status::import_is_off(seen, policy));
        }
        LocationDecision::Grace(_, left) => plan = plan.requeue_after(*left),
        LocationDecision::Refused(_)
        | LocationDecision::Edited
        | LocationDecision::Pending
        | LocationDecision::Rejected(_)
        | LocationDecision::RequestUnreadable
        | LocationDecision::RequestMismatch => plan.actions.extend(generate::removal(seen)),
    }
    status::report(seen, policy, &verdict, None, plan)
}

/// A write was rejected: reports that, and retries later. Deletes are executed all the same.
fn write_rejected(
    seen: &Observed,
    policy: &Policy,
    verdict: &LocationDecision,
    failed: &conditions::ConditionUpdate,
    kind: Kind,
) -> Plan {
    let conditions = seen.location.status.as_ref().map(|status| status.conditions.as_slice());
    let mut plan = Plan::done().requeue_after(retry_after(since(conditions, failed.type_), seen.now));
    match verdict {
        LocationDecision::Wait
        | LocationDecision::Ask
        | LocationDecision::Approved(_)
        | LocationDecision::Grace(..) => {}
        LocationDecision::Refused(_)
        | LocationDecision::Edited
        | LocationDecision::Pending
        | LocationDecision::Rejected(_)
        | LocationDecision::RequestUnreadable
        | LocationDecision::RequestMismatch => {
            plan.actions.extend(generate::removal(seen).into_iter().filter(|action| action.kind() != kind));
        }
    }
    status::report(seen, policy, verdict, Some(failed), plan)
}

/// The approval request takes two writes, since its status is a subresource; the rest follows at once.
fn ask(seen: &Observed, policy: &Policy, plan: Plan) -> Plan {
    ensure_finalizer(seen, plan).then(Action::Create(generate::request(seen, policy))).again_at_once()
}

fn ensure_finalizer(seen: &Observed, plan: Plan) -> Plan {
    if seen.has_finalizer() {
        plan
    } else {
        plan.then(Action::AddFinalizer(seen.target(), labels::NABSL_FINALIZER))
    }
}

fn verdict(seen: &Observed, policy: &Policy) -> LocationDecision {
    if seen.edited() {
        return LocationDecision::Edited;
    }
    if let Some(refusal) = refusal(seen, policy) {
        return LocationDecision::Refused(refusal);
    }
    let credential = match &seen.credential {
        // What Velero has already stays as it is.
        Credential::Withheld if seen.storage.is_none() => return LocationDecision::Refused(withheld(seen)),
        Credential::Unseen | Credential::Withheld => return LocationDecision::Wait,
        Credential::Missing(since) => return missing(seen, *since),
        Credential::Found(bytes) => {
            match check_credential(seen.spec(), bytes.reveal(), seen.tenant(), &policy.storage_locations) {
                Ok(credential) => credential,
                Err(refusal) => return LocationDecision::Refused(refusal),
            }
        }
    };
    let Some(request) = &seen.request else { return LocationDecision::Ask };
    if request.unreadable.is_some() {
        return LocationDecision::RequestUnreadable;
    }
    if seen.request_is_odd() {
        return LocationDecision::RequestMismatch;
    }
    match decision(&request.object, policy) {
        ApprovalDecision::Approve => LocationDecision::Approved(credential),
        ApprovalDecision::Pending => LocationDecision::Pending,
        ApprovalDecision::Reject => LocationDecision::Rejected(review::rejection_reason(&request.object)),
    }
}

/// The approval in effect: an administrator's decision, or that none is needed. A recorded rejection stays in effect
/// when approval is switched off.
pub(super) fn decision(request: &NonAdminBackupStorageLocationRequest, policy: &Policy) -> ApprovalDecision {
    match request.spec.approval_decision {
        Some(said @ (ApprovalDecision::Approve | ApprovalDecision::Reject)) => said,
        _ if !policy.storage_locations.require_approval => ApprovalDecision::Approve,
        _ => ApprovalDecision::Pending,
    }
}

fn refusal(seen: &Observed, policy: &Policy) -> Option<Refusal> {
    refused_for_good(seen, policy).or_else(|| refused_for_now(seen, policy))
}

/// Refusals that only a change of the spec or of the policy can fix.
pub(super) fn refused_for_good(seen: &Observed, policy: &Policy) -> Option<Refusal> {
    if let Some(error) = &seen.unreadable {
        return Some(Refusal::new("spec", format!("cannot be read: {error}")));
    }
    namespace_closed(seen.tenant(), &seen.admin_namespace, policy)
        .or_else(|| check_spec(seen.spec(), seen.tenant(), &policy.storage_locations))
}

/// Refusals that a change of another object can fix.
pub(super) fn refused_for_now(seen: &Observed, policy: &Policy) -> Option<Refusal> {
    // An approved location stays when others are created or the limit is lowered.
    check_limit(seen.others, &policy.storage_locations)
        .filter(|_| seen.request.is_none())
        .or_else(|| (seen.path_taken && seen.storage.is_none()).then(path_taken))
        .or_else(|| name_taken(seen))
}

/// Refuses storage of a namespace that may not ask for any.
pub(super) fn namespace_closed(tenant: &str, admin_namespace: &str, policy: &Policy) -> Option<Refusal> {
    let closed = tenant == admin_namespace || !policy.namespaces.allows(tenant);
    let message = "storage cannot be brought to this namespace; the administrators' policy leaves it out";
    closed.then(|| Refusal::new("metadata.namespace", message))
}

/// Refuses a bucket and prefix that another location uses.
pub(super) fn path_taken() -> Refusal {
    let message =
        "this place in the bucket is used by another storage location; choose another bucket or prefix";
    Refusal::new(super::field("objectStorage"), message)
}

fn name_taken(seen: &Observed) -> Option<Refusal> {
    let message = "an object of the administrators' has the name this location would get; \
                   create the location under another name";
    seen.name_taken.then(|| Refusal::new("metadata.name", message))
}

/// Condition message for a missing Secret.
pub(super) fn no_secret(seen: &Observed) -> Refusal {
    let (secret, key) = named_key(seen.spec()).unwrap_or_default();
    let message = format!("there is no Secret {secret:?} with a key {key:?} in this namespace; create it");
    Refusal::goes_on(super::field("credential"), message)
}

/// Condition message for a Secret that nacre is not permitted to read.
fn withheld(seen: &Observed) -> Refusal {
    let (secret, _) = named_key(seen.spec()).unwrap_or_default();
    let message = format!("nacre is not allowed to read the Secret {secret:?}; ask the administrators");
    Refusal::goes_on(super::field("credential"), message)
}

/// A missing Secret: the location waits for it, or is removed after the grace period.
fn missing(seen: &Observed, since: Timestamp) -> LocationDecision {
    let refusal = no_secret(seen);
    if seen.storage.is_none() {
        return LocationDecision::Refused(refusal);
    }
    // The condition's time survives a restart; it can only shorten the wait.
    let conditions = seen.location.status.as_ref().map(|status| status.conditions.as_slice());
    let reported = condition::get(conditions.unwrap_or_default(), condition::SECRET_SYNCED)
        .filter(|reported| reported.status == "False")
        .map_or(since, |reported| reported.last_transition_time.0);
    let gone_for = seen.now.duration_since(reported.min(since)).unsigned_abs();
    match GRACE.checked_sub(gone_for).filter(|left| !left.is_zero()) {
        Some(left) => LocationDecision::Grace(refusal, left),
        None => LocationDecision::Refused(refusal),
    }
}

#[cfg(test)]
#[path = "decide_tests/mod.rs"]
mod tests;
