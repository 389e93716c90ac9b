//! The status of the request. There is one condition at a time, as released clients expect.

use api::condition::{self, Finding};
use api::velero::DownloadRequestStatus;
use api::{Kind, NonAdminDownloadRequestStatus, Phase, VeleroDownloadRequest};

use super::{Observed, velero_view};
use crate::{Action, velero_status};

/// Velero was asked, and nothing is in the way any more.
pub(super) fn asked() -> NonAdminDownloadRequestStatus {
    NonAdminDownloadRequestStatus { velero: None, phase: Some(Phase::New), conditions: Vec::new() }
}

/// The link is there.
pub(super) fn processed(seen: &Observed, answer: DownloadRequestStatus) -> NonAdminDownloadRequestStatus {
    let mut status = only(seen, condition::PROCESSED, true, condition::SUCCESS, "");
    status.velero = Some(VeleroDownloadRequest { status: Some(answer) });
    status.phase = Some(Phase::Created);
    status
}

/// Refused, or waiting for something.
pub(super) fn refused(
    seen: &Observed,
    type_: &'static str,
    reason: &'static str,
    message: &str,
) -> NonAdminDownloadRequestStatus {
    let mut status = only(seen, type_, type_ != condition::PROCESSED, reason, message);
    status.phase = Some(Phase::BackingOff);
    if seen.kind == Kind::DownloadRequest {
        status.velero = Some(VeleroDownloadRequest { status: Some(velero_view::refusal(seen, message)) });
    }
    status
}

fn only(
    seen: &Observed,
    type_: &'static str,
    is: bool,
    reason: &'static str,
    message: &str,
) -> NonAdminDownloadRequestStatus {
    let mut status = seen.status();
    status.conditions.retain(|condition| condition.type_ == type_);
    let finding = Finding { type_, status: is.into(), reason, message };
    condition::set(&mut status.conditions, finding, seen.meta().generation, seen.now);
    status
}

/// The status patch, if the status changes.
pub(super) fn patch(seen: &Observed, wanted: &NonAdminDownloadRequestStatus) -> Option<Action> {
    if seen.kind == Kind::DownloadRequest {
        return velero_view::patch(seen, wanted);
    }
    velero_status::status(seen.target(), seen.request.status.as_ref(), wanted)
}
