//! A DownloadRequest that Velero's own command line makes in a tenant's namespace.
//!
//! It is answered as a NonAdminDownloadRequest of that name would be, with one difference: that command line gives up
//! after a minute, and has no field to read a reason from. So it is not kept waiting for what may come later, and a
//! refusal is given as a link that leads nowhere and says why, which it prints at once.

use std::sync::Arc;
use std::time::Duration;

use api::velero::{DownloadRequestSpec, DownloadRequestStatus};
use api::{
    Kind, NonAdminDownloadRequest, NonAdminDownloadRequestSpec, NonAdminDownloadRequestStatus,
    VeleroDownloadRequest, labels,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::core::DynamicObject;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Observed, gather};
use crate::ownership::label;
use crate::state::State;
use crate::view::Seen;
use crate::{Action, merge, velero_view};

/// How a link begins that is none. No program fetches it, and Velero's prints it.
const REFUSED: &str = "refused:";

/// How long a refusal is kept.
pub(super) const UNTIL_READ: Duration = Duration::from_mins(1);

/// Gathers what a decision about a DownloadRequest in a tenant's namespace reads; none if there is none, or if nobody
/// there is known to see Velero's objects or not.
pub fn observe_velero_view(view: &State, namespace: &str, name: &str) -> Option<Observed> {
    let found =
        view.velero_view(Kind::DownloadRequest, namespace, name).filter(|_| view.velero_view_active())?;
    let is_withdrawn = !velero_view::enabled_in(view, namespace)?;
    if velero_view::has_its_own_velero(view, namespace) {
        return None;
    }
    let is_answered = is_answered(&found);
    let spec = read::<DownloadRequestSpec>(found.data.get("spec"));
    // What somebody wrote into the status is of no consequence: it is compared with the answer, and shown to nobody else.
    let status = read::<DownloadRequestStatus>(found.data.get("status")).unwrap_or_default();
    let unreadable = spec.as_ref().err().map(|error| error.to_string().into());
    let request = NonAdminDownloadRequest {
        metadata: found.metadata.clone(),
        spec: NonAdminDownloadRequestSpec { target: spec.unwrap_or_default().target },
        status: Some(NonAdminDownloadRequestStatus {
            velero: Some(VeleroDownloadRequest { status: Some(status) }),
            ..NonAdminDownloadRequestStatus::default()
        }),
    };
    let seen = gather(view, Seen { object: Arc::new(request), unreadable }, namespace);
    Some(Observed { kind: Kind::DownloadRequest, withdrawn: is_withdrawn.then_some(is_answered), ..seen })
}

/// Whether nacre answered it. Whoever can write the same onto one has it removed, and nothing else.
pub fn is_answered(found: &DynamicObject) -> bool {
    let has_link = found.data.get("status").is_some_and(|status| status["downloadURL"].is_string());
    has_link && label(&found.metadata, labels::EXCLUDE_FROM_BACKUP) == Some("true")
}

fn read<T: DeserializeOwned>(part: Option<&Value>) -> Result<T, serde_json::Error> {
    serde_json::from_value(part.cloned().unwrap_or_else(|| json!({})))
}

/// A link that leads nowhere and says why.
pub(super) fn refusal(seen: &Observed, message: &str) -> DownloadRequestStatus {
    DownloadRequestStatus {
        phase: Some("Processed".to_owned()),
        download_url: Some(format!("{REFUSED}{message}")),
        expiration: seen.now.checked_add(UNTIL_READ).ok().map(Time),
    }
}

/// The write that answers so, if it is not answered already. Velero's kinds have their status among the rest.
pub(super) fn patch(seen: &Observed, wanted: &NonAdminDownloadRequestStatus) -> Option<Action> {
    let answer = |status: Option<&NonAdminDownloadRequestStatus>| {
        let answer = status.and_then(|status| status.velero.as_ref()?.status.as_ref());
        serde_json::to_value(answer.cloned().unwrap_or_default()).unwrap_or_default()
    };
    let change = merge::diff(&answer(seen.request.status.as_ref()), &answer(Some(wanted)))?;
    // A link is nothing to be found in a backup, were it an administrator's.
    let marks = json!({"labels": {labels::EXCLUDE_FROM_BACKUP: "true"}});
    Some(Action::Patch(seen.target(), json!({ "metadata": marks, "status": change })))
}
