//! The status of the request. There is one condition at a time, as released clients expect.

use api::condition::{self, Finding, Status};
use api::velero::DownloadRequestStatus;
use api::{Kind, NonAdminDownloadRequestStatus, Phase, VeleroDownloadRequest};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{KEPT, OBJECTS, Observed, target, velero_view};
use crate::{Action, velero_status};

/// Velero was asked, and nothing is in the way any more.
pub(super) fn asked() -> NonAdminDownloadRequestStatus {
    NonAdminDownloadRequestStatus { phase: Some(Phase::New), ..NonAdminDownloadRequestStatus::default() }
}

/// The link is there.
pub(super) fn processed(seen: &Observed, answer: DownloadRequestStatus) -> NonAdminDownloadRequestStatus {
    let mut status = only(seen, condition::PROCESSED, Status::True, condition::SUCCESS, "");
    status.velero = Some(VeleroDownloadRequest { status: Some(answer) });
    status.phase = Some(Phase::Created);
    status
}

/// What nacre reads.
fn file(seen: &Observed) -> &'static str {
    match seen.request.spec.target.kind.as_str() {
        OBJECTS => "the list of objects in the backup",
        _ => "the log",
    }
}

/// nacre is about to read the file.
pub(super) fn being_read(seen: &Observed) -> NonAdminDownloadRequestStatus {
    let message = format!("nacre reads {}", file(seen));
    let mut status = only(seen, condition::PROCESSED, Status::Unknown, condition::BEING_READ, &message);
    status.phase = Some(Phase::New);
    status
}

/// What nacre has read is there, for as long as a link would be.
pub(super) fn read(seen: &Observed) -> NonAdminDownloadRequestStatus {
    let expires = Timestamp::from_second((seen.now + KEPT).as_second()).unwrap_or(seen.now);
    let answer = DownloadRequestStatus {
        phase: Some("Processed".to_owned()),
        download_url: None,
        expiration: Some(Time(expires)),
    };
    processed(seen, answer)
}

/// The file could not be read.
pub(super) fn not_readable(seen: &Observed) -> NonAdminDownloadRequestStatus {
    let message = format!("{} could not be read; the administrators find out why in nacre's log", file(seen));
    refused(seen, condition::PROCESSED, condition::RESULTS_NOT_READABLE, &message)
}

/// What was read is not in the status: there is no more than the policy hands out, as if nacre had not read it.
pub(super) fn dropped(seen: &Observed) -> NonAdminDownloadRequestStatus {
    let closed = target::closed(&seen.request.spec.target.kind);
    let message =
        format!("{closed}. nacre would show {}, but this cluster's CRD has no field for it", file(seen));
    let mut status = refused(seen, condition::LOCATION_NOT_USED, condition::RESULTS_NOT_READABLE, &message);
    status.velero = None;
    status
}

/// Refused, or waiting for something.
pub(super) fn refused(
    seen: &Observed,
    type_: &'static str,
    reason: &'static str,
    message: &str,
) -> NonAdminDownloadRequestStatus {
    let mut status = only(seen, type_, (type_ != condition::PROCESSED).into(), reason, message);
    status.phase = Some(Phase::BackingOff);
    if seen.kind == Kind::DownloadRequest {
        status.velero = Some(VeleroDownloadRequest { status: Some(velero_view::refusal(seen, message)) });
    }
    status
}

fn only(
    seen: &Observed,
    type_: &'static str,
    is: Status,
    reason: &'static str,
    message: &str,
) -> NonAdminDownloadRequestStatus {
    let mut status = seen.status();
    status.conditions.retain(|condition| condition.type_ == type_);
    let finding = Finding { type_, status: is, reason, message };
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
