//! What a tenant is told about a location, in words: of each verdict, and of what could not be written.

use api::condition::{self, Finding};
use api::{Kind, Phase};

use super::decide::Verdict;
use super::status::EDITED;
use crate::Trouble;

/// A condition as it is told.
pub(super) struct Told {
    /// Its type.
    pub(super) type_: &'static str,
    is: bool,
    reason: &'static str,
    message: String,
}

impl Told {
    fn new(type_: &'static str, is: bool, reason: &'static str, message: impl Into<String>) -> Self {
        Self { type_, is, reason, message: message.into() }
    }

    /// As conditions are set.
    pub(super) fn as_finding(&self) -> Finding<'_> {
        Finding { type_: self.type_, status: self.is, reason: self.reason, message: &self.message }
    }
}

/// The phase and the conditions that go with a verdict, where one of them may be that something failed; none if there
/// is nothing to tell yet.
pub(super) fn of(verdict: &Verdict, failed: Option<&Told>) -> Option<(Phase, Vec<Told>)> {
    let (phase, mut told) = match verdict {
        Verdict::Wait => return None,
        Verdict::Ask => (Phase::BackingOff, vec![valid()]),
        Verdict::Refused(refusal) => (Phase::BackingOff, vec![refused(refusal.to_string())]),
        Verdict::Grace(refusal, _) => {
            let message = "the Secret is gone; Velero keeps the location for five minutes";
            let gone = Told::new(condition::SECRET_SYNCED, false, condition::SECRET_SYNC_FAILED, message);
            (Phase::BackingOff, vec![refused(refusal.to_string()), gone])
        }
        Verdict::Edited => {
            let reason = condition::BSL_SPEC_UPDATE_REJECTED;
            let told = Told::new(condition::SPEC_UPDATE_APPROVED, false, reason, EDITED);
            (Phase::BackingOff, vec![told])
        }
        Verdict::Pending => {
            let message = "an administrator has to approve the location";
            (Phase::New, approval(false, condition::BSL_SPEC_APPROVAL_PENDING, message))
        }
        Verdict::Rejected(reason) => {
            let why = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            let message = format!("an administrator has rejected the location{why}");
            (Phase::BackingOff, approval(false, condition::BSL_SPEC_REJECTED, &message))
        }
        Verdict::Unclear => {
            let message = "what the administrators decided cannot be understood; ask them";
            (Phase::BackingOff, approval(false, condition::BSL_SPEC_INVALID, message))
        }
        Verdict::Odd => {
            let message =
                "what the administrators decided about is another location; ask them to delete the request";
            (Phase::BackingOff, approval(false, condition::BSL_SPEC_UPDATE_REJECTED, message))
        }
        Verdict::Approved(_) => {
            (Phase::Created, approval(true, condition::BSL_SPEC_APPROVED, "the location may be used"))
        }
    };
    let Some(failed) = failed else { return Some((phase, told)) };
    // One condition is not said to be so and not so in one breath: its time would move.
    told.retain(|told| told.type_ != failed.type_);
    told.push(Told::new(failed.type_, failed.is, failed.reason, failed.message.clone()));
    Some((Phase::BackingOff, told))
}

fn valid() -> Told {
    Told::new(condition::ACCEPTED, true, condition::BSL_SPEC_VALIDATION, "the location is allowed")
}

fn refused(message: String) -> Told {
    Told::new(condition::ACCEPTED, false, condition::BSL_SPEC_VALIDATION, message)
}

fn approval(is: bool, reason: &'static str, message: &str) -> Vec<Told> {
    vec![valid(), Told::new(condition::CLUSTER_ADMIN_APPROVED, is, reason, message)]
}

/// How a trouble is told, if it is one of a location's own objects; without a verdict the location is on its way out.
pub(super) fn failed(trouble: &Trouble, verdict: Option<&Verdict>) -> Option<Told> {
    let (type_, reason, what) = match trouble.kind {
        Kind::Secret => (condition::SECRET_SYNCED, condition::SECRET_SYNC_FAILED, "the credential"),
        Kind::BackupStorageLocation => {
            (condition::LOCATION_SYNCED, condition::LOCATION_SYNC_ERROR, "the location")
        }
        Kind::NonAdminBackupStorageLocationRequest => {
            (condition::CLUSTER_ADMIN_APPROVED, condition::BSL_SPEC_APPROVAL_PENDING, "the request")
        }
        _ => return None,
    };
    let failed = match (trouble.kind, verdict) {
        (Kind::NonAdminBackupStorageLocationRequest, Some(_)) => {
            "the administrators could not be asked".to_owned()
        }
        (_, Some(Verdict::Approved(_))) => format!("Velero could not be given {what}"),
        _ => format!("{what} could not be taken from Velero"),
    };
    Some(Told::new(type_, false, reason, format!("{failed}: {}", trouble.why())))
}
