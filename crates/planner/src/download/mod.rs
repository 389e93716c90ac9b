//! NonAdminDownloadRequest: from a tenant's request to a download URL that is valid for minutes.
//!
//! The target is found through the tenant's own requests and checked for ownership (`target`), so that a name or label
//! copied from somebody else reaches nothing. The request has no finalizer: after it is deleted, its Velero
//! DownloadRequest is deleted by `leftover`. A DownloadRequest that Velero's own command line makes in a tenant's
//! namespace is read as such a request (`velero_view`).

mod admit;
mod leftover;
mod status;
mod target;
mod velero_view;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::condition;
use api::velero::{DownloadRequest, DownloadRequestSpec};
use api::{DownloadTarget, Kind, NonAdminDownloadRequest, NonAdminDownloadRequestStatus, Phase, labels};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::core::ObjectMeta;

pub(crate) use admit::admit;
pub use leftover::{Leftover, decide_leftover, observe_leftover};
pub(crate) use leftover::{origin, orphaned};
pub use target::{Behind, Sought};
pub(crate) use target::{concerns_backups, concerns_restores};
pub use velero_view::observe_velero_view;

use crate::ownership::{annotation, label};
use crate::state::State;
use crate::view::Seen;
use crate::{Action, Event, Object, Plan, Policy, Target};

/// Everything a decision about one download reads.
#[derive(Clone, Debug)]
pub struct Observed {
    /// As what it was asked for: a NonAdminDownloadRequest, or a DownloadRequest in the tenant's namespace.
    pub kind: Kind,
    /// The request.
    pub request: Arc<NonAdminDownloadRequest>,
    /// Why the request could not be parsed; none if it could.
    pub unreadable: Option<Arc<str>>,
    /// The request's namespace.
    pub namespace: Option<Arc<Namespace>>,
    /// Its Velero DownloadRequest, if there is one and it was made for this request.
    pub velero: Option<Arc<DownloadRequest>>,
    /// Whether another object already has the name its Velero DownloadRequest would get.
    pub name_taken: bool,
    /// What it names.
    pub sought: Sought,
    /// The policy for the namespace; none while it is unknown.
    pub policy: Option<Arc<Policy>>,
    /// Velero's namespace.
    pub admin_namespace: String,
    /// The current time, given by the caller.
    pub now: Timestamp,
}

/// The name of the Velero DownloadRequest for a request with this uid.
pub(crate) fn velero_name(uid: &str) -> String {
    format!("nadr-{uid}")
}

/// Gathers what a decision about this download reads; none if there is no such request.
pub fn observe(view: &State, namespace: &str, name: &str) -> Option<Observed> {
    Some(gather(view, view.download(namespace, name)?, namespace))
}

/// The same for an object that is not stored yet, or is about to change.
pub(crate) fn gather(
    view: &State,
    Seen { object: request, unreadable }: Seen<NonAdminDownloadRequest>,
    namespace: &str,
) -> Observed {
    let found = view.download_request(&velero_name(request.metadata.uid.as_deref().unwrap_or_default()));
    let name_taken = found.as_deref().is_some_and(|velero| !made_for(velero, &request.metadata));
    Observed {
        kind: Kind::NonAdminDownloadRequest,
        velero: found.filter(|_| !name_taken),
        name_taken,
        sought: target::seek(view, namespace, &request.spec.target),
        namespace: view.namespace(namespace),
        policy: view.policy(namespace),
        admin_namespace: view.admin_namespace().to_owned(),
        now: view.now(),
        request,
        unreadable,
    }
}

/// Whether a Velero DownloadRequest was made for this very request; the Go controller wrote its uid down as a label.
fn made_for(velero: &DownloadRequest, request: &ObjectMeta) -> bool {
    label(&velero.metadata, labels::NADR_UID) == request.uid.as_deref()
        && annotation(&velero.metadata, labels::NADR_NAMESPACE) == request.namespace.as_deref()
}

impl Observed {
    fn meta(&self) -> &ObjectMeta {
        &self.request.metadata
    }

    fn target(&self) -> Target {
        Target::of(self.kind, self.meta())
    }

    fn status(&self) -> NonAdminDownloadRequestStatus {
        self.request.status.clone().unwrap_or_default()
    }

    /// Until when the link works, as far as anybody has said.
    fn expires(&self) -> Option<Timestamp> {
        let said = |status: Option<&api::velero::DownloadRequestStatus>| {
            let status = status.filter(|status| status.download_url.is_some())?;
            status.expiration.as_ref().map(|time| time.0)
        };
        let reported = self.request.status.as_ref().and_then(|status| status.velero.as_ref());
        said(self.velero.as_deref().and_then(|velero| velero.status.as_ref()))
            .or_else(|| said(reported.and_then(|velero| velero.status.as_ref())))
    }
}

/// Requeue delay until the watch has reported the namespace.
const NAMESPACE_RETRY: Duration = Duration::from_secs(2);

/// Condition message while the policy is unknown.
const POLICY_UNREADABLE: &str = "what the administrators allow cannot be read at the moment; \
                                        the download waits, and goes on by itself when that is mended";

/// Decides what to do about one download.
pub fn decide(seen: &Observed) -> Plan {
    if seen.meta().deletion_timestamp.is_some() {
        return forget(seen);
    }
    if let Some(expires) = seen.expires() {
        return if expires <= seen.now {
            forget(seen).then(Action::Delete(seen.target()))
        } else {
            mirror(seen).requeue_after(until(seen.now, expires))
        };
    }
    if seen.namespace.is_none() {
        return Plan::done().requeue_after(NAMESPACE_RETRY);
    }
    if seen.velero.is_some() {
        return Plan::done().then_if(no_word_left(seen));
    }
    let Some(policy) = &seen.policy else {
        if seen.kind == Kind::DownloadRequest {
            return Plan::done().requeue_after(NAMESPACE_RETRY);
        }
        return refuse(seen, condition::PROCESSED, condition::POLICY_UNAVAILABLE, POLICY_UNREADABLE);
    };
    match target::resolve(seen, policy) {
        Ok(name) => create(seen, name),
        Err((condition, message)) => refuse(seen, condition, condition::ERROR, &message),
    }
}

fn until(now: Timestamp, then: Timestamp) -> Duration {
    Duration::try_from(then.duration_since(now)).unwrap_or_default()
}

/// Creates the Velero DownloadRequest, and clears the old condition.
fn create(seen: &Observed, name: &str) -> Plan {
    let plan = Plan::done().then(Action::Create(Object::of(Kind::DownloadRequest, &generate(seen, name))));
    plan.then_if(no_word_left(seen))
}

/// The Velero DownloadRequest exists: clears the condition that reported what it waited for.
fn no_word_left(seen: &Observed) -> Option<Action> {
    let waited = seen.status().phase == Some(Phase::BackingOff);
    status::patch(seen, &status::asked()).filter(|_| waited)
}

fn generate(seen: &Observed, name: &str) -> DownloadRequest {
    let origin = seen.meta();
    let uid = origin.uid.clone().unwrap_or_default();
    let namespace_uid = seen.namespace.as_deref().and_then(|space| space.metadata.uid.clone());
    let by_velero = (labels::ASKED_BY.to_owned(), labels::ASKED_BY_VELERO.to_owned());
    DownloadRequest {
        metadata: ObjectMeta {
            name: Some(velero_name(&uid)),
            namespace: Some(seen.admin_namespace.clone()),
            labels: Some(BTreeMap::from([
                (labels::OADP.to_owned(), labels::OADP_VALUE.to_owned()),
                (labels::MANAGED_BY.to_owned(), labels::MANAGED_BY_VALUE.to_owned()),
                (labels::NADR_UID.to_owned(), uid.clone()),
            ])),
            annotations: Some(
                [
                    (labels::NADR_NAME.to_owned(), origin.name.clone().unwrap_or_default()),
                    (labels::NADR_NAMESPACE.to_owned(), origin.namespace.clone().unwrap_or_default()),
                    (labels::ORIGIN_UID.to_owned(), uid),
                    (labels::ORIGIN_NAMESPACE_UID.to_owned(), namespace_uid.unwrap_or_default()),
                ]
                .into_iter()
                .chain((seen.kind == Kind::DownloadRequest).then_some(by_velero))
                .collect(),
            ),
            ..ObjectMeta::default()
        },
        spec: DownloadRequestSpec {
            target: DownloadTarget { kind: seen.request.spec.target.kind.clone(), name: name.to_owned() },
        },
        status: None,
    }
}

/// Velero has answered: shows the URL.
fn mirror(seen: &Observed) -> Plan {
    let answer = seen.velero.as_deref().and_then(|velero| velero.status.clone());
    let Some(answer) = answer.filter(|answer| answer.phase.as_deref() == Some("Processed")) else {
        return Plan::done();
    };
    Plan::done().then_if(status::patch(seen, &status::processed(seen, answer)))
}

/// A request that is being deleted: deletes its Velero DownloadRequest.
fn forget(seen: &Observed) -> Plan {
    let delete =
        |velero: &Arc<DownloadRequest>| Action::Delete(Target::of(Kind::DownloadRequest, &velero.metadata));
    Plan::done().then_if(seen.velero.as_ref().map(delete))
}

fn refuse(seen: &Observed, condition: &'static str, reason: &'static str, message: &str) -> Plan {
    let status = status::refused(seen, condition, reason, message);
    let Some(write) = status::patch(seen, &status) else {
        return Plan::done();
    };
    let plan = Plan::done().then(write).with_event(Event::warning(condition, message));
    if seen.kind == Kind::DownloadRequest { plan.requeue_after(velero_view::UNTIL_READ) } else { plan }
}
