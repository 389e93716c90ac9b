//! Decides about a tenant's storage location: request approval, create it in Velero, remove it again.
//!
//! Unlike a backup, a location is checked at every reconcile: what was deleted by hand is created again, and what is
//! not allowed any more is removed.

use std::borrow::Cow;
use std::time::Duration;

use api::{ApprovalDecision, Kind, NonAdminBackupStorageLocationRequest, condition};
use jiff::Timestamp;

use super::credentials::Credential as Parsed;
use super::{
    Observed, check_credential, check_limit, check_spec, conditions, delete, generate, named_key, review,
    status,
};
use crate::rejected_write::{retry_after, since};
use crate::request::Request;
use crate::requester::Verdict;
use crate::view::Credential;
use crate::{Action, Plan, Policy, Refusal, requester};

/// How long the location of a Secret that went away is kept: rotation is often a deletion and a creation.
const GRACE: Duration = Duration::from_mins(5);
/// Requeue delay until the watch has reported a namespace, or a Secret has been read for the first time.
pub(super) const SOON: Duration = Duration::from_secs(2);

/// The decision about a location.
#[derive(Debug)]
pub(super) enum LocationDecision {
    /// Not enough is known to decide.
    Wait,
    /// What the requester is permitted has to be asked first.
    Review(Vec<requester::Ask>),
    /// It is refused.
    Refused(Refusal),
    /// The requester may not read the Secret.
    NotPermitted(Refusal),
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
    if seen.is_deleting() {
        return delete::decide(seen);
    }
    if seen.namespace.is_none() {
        return seen.wait_for_namespace();
    }
    let Some(policy) = &seen.policy else {
        let mut plan = seen.wait_for_policy();
        if rejected_without_policy(seen) {
            plan.actions.extend(generate::removal(seen));
        }
        return plan;
    };
    let verdict = verdict(seen, policy);
    if let Some(rejected_write) = &seen.rejected_write
        && let Some(failed) = conditions::failed(rejected_write, Some(&verdict))
    {
        return write_rejected(seen, policy, &verdict, &failed, rejected_write.kind);
    }
    if let Some(back_to_pending) = generate::take_back_early_approval(seen, policy) {
        let why =
            "it was approved before it was written down what is asked for, so that nobody can have seen it";
        return Plan::done().because(why).then(back_to_pending).again_at_once();
    }
    let mut plan = Plan::done().because(reason(&verdict));
    if seen.request.is_some() {
        plan.actions.extend(generate::request_writes(seen, policy, may_be_recorded(seen, &verdict)));
    }
    match &verdict {
        LocationDecision::Wait => return plan.requeue_after(SOON),
        LocationDecision::Review(asks) => return plan.ask(asks.clone()),
        LocationDecision::Ask => return ask(seen, policy, plan),
        LocationDecision::Approved(credential) => {
            plan = seen.ensure_finalizer(plan);
            plan.actions.extend(generate::secret_writes(seen, credential));
            plan.actions.extend(generate::storage_writes(seen, policy, credential));
            plan.events.extend(status::import_is_off(seen, policy));
        }
        LocationDecision::Grace(_, left) => plan = plan.requeue_after(*left),
        LocationDecision::NotPermitted(_) => {
            plan.actions.extend(generate::removal(seen));
            plan = plan.requeue_after(look_again(seen));
        }
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
    plan = plan.because(failed.as_finding().message.to_owned());
    match verdict {
        LocationDecision::Wait
        | LocationDecision::Review(_)
        | LocationDecision::Ask
        | LocationDecision::Approved(_)
        | LocationDecision::Grace(..) => {}
        LocationDecision::Refused(_)
        | LocationDecision::NotPermitted(_)
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
    seen.ensure_finalizer(plan).then(Action::Create(generate::request(seen, policy))).again_at_once()
}

/// Why a location gets what it gets.
fn reason(verdict: &LocationDecision) -> Cow<'static, str> {
    match verdict {
        LocationDecision::Wait => {
            "waiting until the Secret it names and Velero's VolumeSnapshotLocations have been read".into()
        }
        LocationDecision::Review(_) => requester::NEEDS_REVIEW.into(),
        LocationDecision::Refused(refusal)
        | LocationDecision::NotPermitted(refusal)
        | LocationDecision::Grace(refusal, _) => refusal.to_string().into(),
        LocationDecision::Edited => status::EDITED.into(),
        LocationDecision::Ask => "it passed every check: approval is requested".into(),
        LocationDecision::Pending => "waiting for an administrator to approve it".into(),
        LocationDecision::Rejected(_) => "an administrator rejected it".into(),
        LocationDecision::RequestUnreadable => "its approval request cannot be read".into(),
        LocationDecision::RequestMismatch => "its approval request belongs to another location".into(),
        LocationDecision::Approved(_) => "it is approved: Velero has it or is given it".into(),
    }
}

fn verdict(seen: &Observed, policy: &Policy) -> LocationDecision {
    if seen.edited() {
        return LocationDecision::Edited;
    }
    if let Some(refusal) = refusal(seen, policy) {
        return LocationDecision::Refused(refusal);
    }
    if let Some(withdrawn) = withdrawn(seen, policy) {
        return withdrawn;
    }
    if seen.endangers_snapshots(policy).is_none() {
        return LocationDecision::Wait;
    }
    // Before the Secret is read: what is wrong with it is for those to know who may read it.
    if seen.storage.is_none()
        && let Some(not_permitted) = not_permitted(seen, policy)
    {
        return not_permitted;
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
    // What Velero has already stays, but it may be the content of another Secret.
    if (seen.copy.is_none() || generate::rotates(seen, &credential))
        && let Some(not_permitted) = not_permitted(seen, policy)
    {
        return not_permitted;
    }
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

/// Whether what the location says may be written down as what was asked for. That is final, and permissions are not
/// checked after it: so only what has passed every check is.
fn may_be_recorded(seen: &Observed, verdict: &LocationDecision) -> bool {
    match verdict {
        LocationDecision::Approved(_) => true,
        // As long as Velero has something of it, these come before the checks.
        LocationDecision::Pending | LocationDecision::Rejected(_) => {
            seen.storage.is_none() && seen.copy.is_none()
        }
        LocationDecision::Wait
        | LocationDecision::Review(_)
        | LocationDecision::Refused(_)
        | LocationDecision::NotPermitted(_)
        | LocationDecision::Edited
        | LocationDecision::Grace(..)
        | LocationDecision::Ask
        | LocationDecision::RequestUnreadable
        | LocationDecision::RequestMismatch => false,
    }
}

/// A Secret that the requester may not read is not given to Velero.
fn not_permitted(seen: &Observed, policy: &Policy) -> Option<LocationDecision> {
    match permitted(seen, policy) {
        Verdict::Permitted(_) => None,
        Verdict::Ask(asks) => Some(LocationDecision::Review(asks)),
        Verdict::Refused(refusal) => Some(LocationDecision::NotPermitted(refusal)),
    }
}

/// Whether the requester may bring the Secret. That is asked until it is written down what was asked for: a request
/// alone does not say which Secret that was. What was approved is made again when somebody removed it, whoever has left
/// since.
pub(super) fn permitted(seen: &Observed, policy: &Policy) -> Verdict {
    match named_key(seen.spec()).filter(|_| seen.requested().is_none()) {
        Some((secret, _)) => requester::of_location(&seen.access, secret, policy),
        None => Verdict::all(),
    }
}

/// When to ask again for a permission that is missing: permissions are not watched.
fn look_again(seen: &Observed) -> Duration {
    let reported = seen.location.status.as_ref().map(|status| status.conditions.as_slice());
    retry_after(since(reported, condition::ACCEPTED), seen.now).max(requester::FRESH)
}

/// Velero has the location and the administrators do not approve it any more. That needs no credential: a tenant may
/// have removed the Secret, and nacre may be unable to read it.
fn withdrawn(seen: &Observed, policy: &Policy) -> Option<LocationDecision> {
    let request = seen.readable_request()?;
    if (seen.storage.is_none() && seen.copy.is_none()) || seen.request_is_odd() {
        return None;
    }
    match decision(request, policy) {
        ApprovalDecision::Approve => None,
        ApprovalDecision::Pending => Some(LocationDecision::Pending),
        ApprovalDecision::Reject => Some(LocationDecision::Rejected(review::rejection_reason(request))),
    }
}

/// An administrator's decision that needs no policy to be understood: what Velero has goes, whatever else is unknown.
fn rejected_without_policy(seen: &Observed) -> bool {
    let request = seen.readable_request();
    request.is_some_and(|request| request.spec.approval_decision == Some(ApprovalDecision::Reject))
}

/// The approval in effect: an administrator's decision, or that none is needed. A recorded rejection stays in effect
/// when approval is switched off. Nobody can have approved what is not written down: the tenant may have changed it since.
pub(super) fn decision(request: &NonAdminBackupStorageLocationRequest, policy: &Policy) -> ApprovalDecision {
    match request.spec.approval_decision {
        Some(ApprovalDecision::Reject) => ApprovalDecision::Reject,
        _ if !policy.storage_locations.require_approval => ApprovalDecision::Approve,
        Some(ApprovalDecision::Approve) if review::recorded(request).is_some() => ApprovalDecision::Approve,
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
    native_snapshots(seen, policy)
        .or_else(|| check_limit(seen.others, &policy.storage_locations).filter(|_| seen.request.is_none()))
        .or_else(|| (seen.path_taken && seen.storage.is_none()).then(path_taken))
        .or_else(|| name_taken(seen))
}

/// Refuses storage of a namespace that may not ask for any.
pub(super) fn namespace_closed(tenant: &str, admin_namespace: &str, policy: &Policy) -> Option<Refusal> {
    let why = policy.namespaces.why_closed(tenant, admin_namespace)?;
    Some(Refusal::new("metadata.namespace", format!("storage cannot be brought to this namespace; {why}")))
}

/// Refuses storage while Velero deletes native snapshots by what a backup's files say. What Velero has already goes too:
/// its backups expire, and are deleted, without nacre being asked.
fn native_snapshots(seen: &Observed, policy: &Policy) -> Option<Refusal> {
    let message = "storage cannot be brought to this cluster while Velero has a VolumeSnapshotLocation: whoever writes to a \
                   bucket could have others' snapshots deleted; the administrators can remove it or set \
                   storageLocations.nativeSnapshots: accept";
    (seen.endangers_snapshots(policy) == Some(true)).then(|| Refusal::goes_on(super::PATH, message))
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
