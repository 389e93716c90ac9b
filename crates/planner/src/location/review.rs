//! What an administrator is shown of a request for storage, and what follows from the decision.

use api::velero::{BackupStorageLocation, BackupStorageLocationSpec};
use api::{
    ApprovalDecision, NonAdminBackupStorageLocationRequest as Request, RequestPhase, RequestedLocation,
    labels,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::decide::{namespace_closed, path_taken};
use super::endpoint::Scheme;
use super::generate::plain;
use super::{check_spec, endpoint_of, neighbours};
use crate::ownership::annotation;
use crate::{Policy, Refusal};

/// Namespace, location and spec of an approval request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StorageRequest<'a> {
    /// The approval request's name.
    pub request: &'a str,
    /// The namespace that asks.
    pub namespace: &'a str,
    /// Its location.
    pub location: &'a str,
    /// The storage as it was asked for; none until nacre has written it down.
    pub spec: Option<&'a BackupStorageLocationSpec>,
    /// What nacre wrote down contradicts the request's own name.
    mismatch: bool,
}

/// What nacre wrote down of what was asked for.
pub(super) fn recorded(request: &Request) -> Option<&RequestedLocation> {
    request.status.as_ref()?.non_admin_backup_storage_location.as_ref()
}

impl<'a> From<&'a Request> for StorageRequest<'a> {
    fn from(request: &'a Request) -> Self {
        let reported = recorded(request);
        let name = request.metadata.name.as_deref().unwrap_or_default();
        // The annotations are what nacre itself goes by.
        let namespace = annotation(&request.metadata, labels::NABSL_NAMESPACE)
            .or_else(|| reported.and_then(|reported| reported.namespace.as_deref()));
        let location = annotation(&request.metadata, labels::NABSL_NAME)
            .or_else(|| reported.and_then(|reported| reported.name.as_deref()));
        Self {
            request: name,
            namespace: namespace.unwrap_or_default(),
            location: location.unwrap_or_default(),
            spec: reported.map(|reported| &reported.requested_spec),
            mismatch: reported.is_some_and(|reported| reported.nacuuid.as_deref() != Some(name)),
        }
    }
}

impl StorageRequest<'_> {
    /// Whether somebody who writes this may mean this request: `NAMESPACE/NAME` of the location, the name of the
    /// location alone, or that of the request.
    fn fits(&self, text: &str) -> bool {
        match text.split_once('/') {
            Some(both) => both == (self.namespace, self.location),
            None => [self.request, self.location].contains(&text),
        }
    }
}

/// The one request that is meant; if there is not exactly one, all that could be. Tenants choose the names of their
/// locations, so that one can be called like another's request: no kind of name goes before another.
pub fn meant<'a>(
    requests: impl IntoIterator<Item = &'a Request>,
    text: &str,
) -> Result<&'a Request, Vec<&'a Request>> {
    let mut fitting: Vec<_> =
        requests.into_iter().filter(|request| StorageRequest::from(*request).fits(text)).collect();
    match (fitting.pop(), fitting.is_empty()) {
        (Some(only), true) => Ok(only),
        (last, _) => Err(fitting.into_iter().chain(last).collect()),
    }
}

/// Where a decision stands.
pub const fn phase(decision: ApprovalDecision) -> RequestPhase {
    match decision {
        ApprovalDecision::Approve => RequestPhase::Approved,
        ApprovalDecision::Reject => RequestPhase::Rejected,
        ApprovalDecision::Pending => RequestPhase::Pending,
    }
}

/// The last decision of an administrator.
pub fn last_decision(request: &Request) -> ApprovalDecision {
    request.spec.approval_decision.unwrap_or(ApprovalDecision::Pending)
}

/// Whether nacre approved a request because the policy required no approval, and nobody has confirmed it by hand.
/// What the Go controller and earlier versions of nacre approved so is not marked.
pub fn approved_by_policy(request: &Request) -> bool {
    last_decision(request) == ApprovalDecision::Approve
        && annotation(&request.metadata, labels::APPROVED_BY) == Some(labels::APPROVED_BY_POLICY)
}

/// More than this of a reason is not passed on: conditions are short.
const LONGEST_REASON: usize = 300;

/// Why an administrator rejected a request, as the tenant may read it.
pub fn rejection_reason(request: &Request) -> Option<String> {
    let reason = annotation(&request.metadata, labels::REJECTION_REASON)?.trim();
    let plain = reason.chars().map(|c| if c.is_control() { ' ' } else { c });
    Some(plain.take(LONGEST_REASON).collect::<String>()).filter(|reason| !reason.is_empty())
}

/// A field that is not what it was.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// The field, as the request spells it.
    pub field: String,
    /// What was asked for; null if nothing.
    pub asked: Value,
    /// What stands there now; null if nothing.
    pub now: Value,
}

/// How what a location says now differs from what was asked for, by fields. There is none if it is the same storage.
pub fn differences(asked: &BackupStorageLocationSpec, now: &BackupStorageLocationSpec) -> Vec<Difference> {
    let (asked, mut now) = (plain(asked), plain(now));
    // One time may be written in several ways.
    for (one, other) in [
        (&asked.backup_sync_period, &mut now.backup_sync_period),
        (&asked.validation_frequency, &mut now.validation_frequency),
    ] {
        if one == other {
            other.clone_from(one);
        }
    }
    let mut differences = Vec::new();
    compare("", &json!(asked), &json!(now), &mut differences);
    differences
}

fn compare(field: &str, asked: &Value, now: &Value, differences: &mut Vec<Difference>) {
    let none = Map::new();
    let block = |value: &Value| value.as_object().cloned().or_else(|| value.is_null().then(|| none.clone()));
    match (block(asked), block(now)) {
        _ if asked == now => {}
        (Some(one), Some(other)) => {
            let mut names: Vec<&String> = one.keys().chain(other.keys()).collect();
            names.sort();
            names.dedup();
            for name in names {
                let path = if field.is_empty() { name.clone() } else { format!("{field}.{name}") };
                compare(&path, &asked[name], &now[name], differences);
            }
        }
        _ => differences.push(Difference { field: field.to_owned(), asked: asked.clone(), now: now.clone() }),
    }
}

/// A decision of an administrator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// The storage may be used.
    Approve,
    /// It may not.
    Reject,
    /// The approval is revoked; a new decision is needed.
    Revoke,
}

/// The effect of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weighed {
    /// This is to be written.
    Write(ApprovalDecision),
    /// That is what stands there already.
    Stands,
    /// It would mean nothing, or something else than was meant.
    Pointless(&'static str),
}

/// Checks a decision about a request, given the policy of the namespace if it is known.
pub fn weigh(request: &Request, word: Word, policy: Option<&Policy>) -> Weighed {
    let (asked, before) = (StorageRequest::from(request), last_decision(request));
    match word {
        Word::Approve if asked.spec.is_none() => {
            Weighed::Pointless("nacre has not written down yet what is asked for; look again in a moment")
        }
        Word::Approve if asked.mismatch => Weighed::Pointless(
            "it was made for another location than it says; delete it, and nacre requests approval again",
        ),
        Word::Revoke if before != ApprovalDecision::Approve => {
            Weighed::Pointless("it is not approved, so that there is nothing to take back")
        }
        Word::Revoke if policy.is_some_and(|policy| !policy.storage_locations.require_approval) => {
            Weighed::Pointless(
                "the policy does not require approval (storageLocations.requireApproval), so that nacre would \
                 approve it again at once; reject it instead",
            )
        }
        _ => {
            let decision = match word {
                Word::Approve => ApprovalDecision::Approve,
                Word::Reject => ApprovalDecision::Reject,
                Word::Revoke => ApprovalDecision::Pending,
            };
            let confirms = word == Word::Approve && approved_by_policy(request);
            if decision == before && !confirms { Weighed::Stands } else { Weighed::Write(decision) }
        }
    }
}

/// Why Velero would not get the storage in spite of an approval, as far as that is known without the credential.
pub fn obstacle<'a>(
    asked: &StorageRequest<'_>,
    policy: &Policy,
    admin_namespace: &str,
    storage: impl IntoIterator<Item = &'a BackupStorageLocation>,
) -> Option<Refusal> {
    let spec = asked.spec?;
    let place = neighbours::place(spec, asked.namespace, Some(policy));
    namespace_closed(asked.namespace, admin_namespace, policy)
        .or_else(|| check_spec(spec, asked.namespace, &policy.storage_locations))
        .or_else(|| neighbours::in_the_way(&place, asked.request, storage).then(path_taken))
}

/// What an owner of storage gets with it. Velero 1.18.3 goes by files of the backup's storage while it finishes a
/// backup, and no admission policy sees what is read.
pub const VELERO_READS: &str =
    "whoever owns the storage of a backup can read all Secrets that Velero can read";

/// What an approver should not overlook.
pub fn remarkable(spec: &BackupStorageLocationSpec) -> Vec<&'static str> {
    let setting = |name: &str| spec.config.as_ref()?.get(name).map(String::as_str);
    let facts = [
        (endpoint_of(spec).is_none(), "the endpoint of its storage is unknown"),
        (
            endpoint_of(spec).is_some_and(|endpoint| endpoint.scheme == Scheme::Http),
            "its endpoint is not encrypted: whoever is on the way can read what is backed up",
        ),
        (
            setting("insecureSkipTLSVerify") == Some("true"),
            "its certificate is not checked: whoever is on the way can pose as the store",
        ),
    ];
    facts.into_iter().filter(|(is, _)| *is).map(|(_, words)| words).collect()
}

#[cfg(test)]
#[path = "review_tests.rs"]
mod tests;
