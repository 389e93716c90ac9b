//! A Velero DownloadRequest whose request is gone.
//!
//! NonAdminDownloadRequests have no finalizer, since released clients do not expect one. So the Velero object is
//! reconciled itself, when its request is deleted and whenever nacre starts.

use std::sync::Arc;

use api::velero::DownloadRequest;
use api::{Kind, NonAdminDownloadRequest, labels};
use kube::core::ObjectMeta;

use crate::ownership::{annotation, label};
use crate::state::State;
use crate::{Action, Key, Plan, Target};

/// Everything a decision about a Velero DownloadRequest reads.
#[derive(Clone, Debug)]
pub struct Leftover {
    /// The Velero DownloadRequest.
    pub velero: Arc<DownloadRequest>,
    /// Whether nacre made it, and the request it was made for is gone.
    pub orphaned: bool,
}

/// The request that a Velero DownloadRequest was made for; none if it is not one of ours.
pub(crate) fn origin(meta: &ObjectMeta) -> Option<(Key, &str)> {
    let uid = label(meta, labels::NADR_UID)?;
    let namespace = annotation(meta, labels::NADR_NAMESPACE)?;
    let name = annotation(meta, labels::NADR_NAME)?;
    let kind = match annotation(meta, labels::ASKED_BY) {
        Some(labels::ASKED_BY_VELERO) => Kind::DownloadRequest,
        _ => Kind::NonAdminDownloadRequest,
    };
    Some((Key::new(kind, namespace, name), uid))
}

/// Whether the request that a Velero DownloadRequest was made for is gone, or another one has taken its name.
pub(crate) fn orphaned(view: &State, meta: &ObjectMeta) -> bool {
    origin(meta).is_some_and(|(key, uid)| {
        let alive = match key.kind {
            // Unknown while the Velero view is not watched; Velero deletes it after some minutes.
            Kind::DownloadRequest if !view.velero_view_active() => return false,
            Kind::DownloadRequest => view
                .velero_view(key.kind, &key.namespace, &key.name)
                .and_then(|found| found.metadata.uid.clone()),
            _ => view
                .get::<NonAdminDownloadRequest>(&key.namespace, &key.name)
                .and_then(|request| request.metadata.uid.clone()),
        };
        alive.as_deref() != Some(uid)
    })
}

/// Gathers what a decision about this Velero DownloadRequest reads; none if there is none.
pub fn observe_leftover(view: &State, name: &str) -> Option<Leftover> {
    let velero = view.admin::<DownloadRequest>(name)?;
    Some(Leftover { orphaned: orphaned(view, &velero.metadata), velero })
}

/// Decides what to do about a Velero DownloadRequest.
pub fn decide_leftover(seen: &Leftover) -> Plan {
    if !seen.orphaned || seen.velero.metadata.deletion_timestamp.is_some() {
        return Plan::done().because("the request it was made for is there, or it is being deleted");
    }
    let plan = Plan::done().because("the request it was made for is gone");
    plan.then(Action::Delete(Target::of(Kind::DownloadRequest, &seen.velero.metadata)))
}
