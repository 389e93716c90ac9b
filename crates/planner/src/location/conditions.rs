//! The conditions of a location: of each decision, and of each rejected write.

use api::condition::{self, Finding};
use api::{ApprovalDecision, Kind, Phase};

use super::decide::LocationDecision;
use super::status::EDITED;
use crate::RejectedWrite;

/// A condition to be written.
pub(super) struct ConditionUpdate {
    /// Its type.
    pub(super) type_: &'static str,
    is: bool,
    reason: &'static str,
    message: String,
}

impl ConditionUpdate {
    fn new(type_: &'static str, is: bool, reason: &'static str, message: impl Into<String>) -> Self {
        Self { type_, is, reason, message: message.into() }
    }

    /// As conditions are set.
    pub(super) fn as_finding(&self) -> Finding<'_> {
        Finding { type_: self.type_, status: self.is.into(), reason: self.reason, message: &self.message }
    }
}

/// The phase and the conditions for a decision, one of which may report a failure; none if there is nothing to report
/// yet.
pub(super) fn of(
    verdict: &LocationDecision,
    failed: Option<&ConditionUpdate>,
) -> Option<(Phase, Vec<ConditionUpdate>)> {
    let (phase, mut reported) = match verdict {
        LocationDecision::Wait | LocationDecision::Review(_) => return None,
        LocationDecision::Ask => (Phase::BackingOff, vec![valid()]),
        LocationDecision::Refused(refusal) | LocationDecision::NotPermitted(refusal) => {
            (Phase::BackingOff, vec![refused(refusal.condition_message())])
        }
        LocationDecision::Grace(refusal, _) => {
            let message = "the Secret is gone; Velero keeps the location for five minutes";
            let gone =
                ConditionUpdate::new(condition::SECRET_SYNCED, false, condition::SECRET_SYNC_FAILED, message);
            (Phase::BackingOff, vec![refused(refusal.condition_message()), gone])
        }
        LocationDecision::Edited => {
            let reason = condition::BSL_SPEC_UPDATE_REJECTED;
            let reported = ConditionUpdate::new(condition::SPEC_UPDATE_APPROVED, false, reason, EDITED);
            (Phase::BackingOff, vec![reported])
        }
        LocationDecision::Pending => (Phase::New, vec![valid(), decided(ApprovalDecision::Pending, None)]),
        LocationDecision::Rejected(reason) => {
            (Phase::BackingOff, vec![valid(), decided(ApprovalDecision::Reject, reason.as_deref())])
        }
        LocationDecision::RequestUnreadable => {
            let message = "what the administrators decided cannot be understood; ask them";
            (Phase::BackingOff, approval(false, condition::BSL_SPEC_INVALID, message))
        }
        LocationDecision::RequestMismatch => {
            let message =
                "what the administrators decided about is another location; ask them to delete the request";
            (Phase::BackingOff, approval(false, condition::BSL_SPEC_UPDATE_REJECTED, message))
        }
        LocationDecision::Approved(_) => {
            (Phase::Created, vec![valid(), decided(ApprovalDecision::Approve, None)])
        }
    };
    let Some(failed) = failed else { return Some((phase, reported)) };
    // A condition is not set to True and False in one status: its transition time would change each time.
    reported.retain(|reported| reported.type_ != failed.type_);
    reported.push(ConditionUpdate::new(failed.type_, failed.is, failed.reason, failed.message.clone()));
    Some((Phase::BackingOff, reported))
}

fn valid() -> ConditionUpdate {
    ConditionUpdate::new(condition::ACCEPTED, true, condition::BSL_SPEC_VALIDATION, "the location is allowed")
}

fn refused(message: String) -> ConditionUpdate {
    ConditionUpdate::new(condition::ACCEPTED, false, condition::BSL_SPEC_VALIDATION, message)
}

/// What the administrators decided, perhaps with a reason.
pub(super) fn decided(decision: ApprovalDecision, why: Option<&str>) -> ConditionUpdate {
    let (is, reason, message) = match decision {
        ApprovalDecision::Approve => {
            (true, condition::BSL_SPEC_APPROVED, "the location may be used".to_owned())
        }
        ApprovalDecision::Pending => {
            let message = "an administrator has to approve the location".to_owned();
            (false, condition::BSL_SPEC_APPROVAL_PENDING, message)
        }
        ApprovalDecision::Reject => {
            let why = why.map(|why| format!(": {why}")).unwrap_or_default();
            let message = format!("an administrator has rejected the location{why}");
            (false, condition::BSL_SPEC_REJECTED, message)
        }
    };
    ConditionUpdate::new(condition::CLUSTER_ADMIN_APPROVED, is, reason, message)
}

fn approval(is: bool, reason: &'static str, message: &str) -> Vec<ConditionUpdate> {
    vec![valid(), ConditionUpdate::new(condition::CLUSTER_ADMIN_APPROVED, is, reason, message)]
}

/// The condition for a rejected write of a location's own objects; without a decision the location is being deleted.
pub(super) fn failed(
    rejected_write: &RejectedWrite,
    verdict: Option<&LocationDecision>,
) -> Option<ConditionUpdate> {
    let (type_, reason, what) = match rejected_write.kind {
        Kind::Secret => (condition::SECRET_SYNCED, condition::SECRET_SYNC_FAILED, "the credential"),
        Kind::BackupStorageLocation => {
            (condition::LOCATION_SYNCED, condition::LOCATION_SYNC_ERROR, "the location")
        }
        Kind::NonAdminBackupStorageLocationRequest => {
            (condition::CLUSTER_ADMIN_APPROVED, condition::BSL_SPEC_APPROVAL_PENDING, "the request")
        }
        _ => return None,
    };
    let failed = match (rejected_write.kind, verdict) {
        (Kind::NonAdminBackupStorageLocationRequest, Some(_)) => {
            "the administrators could not be asked".to_owned()
        }
        (_, Some(LocationDecision::Approved(_))) => format!("Velero could not be given {what}"),
        _ => format!("{what} could not be taken from Velero"),
    };
    Some(ConditionUpdate::new(type_, false, reason, format!("{failed}: {}", rejected_write.why())))
}
