//! NonAdminDownloadRequest: from a tenant's request to a download URL that is valid for minutes.
//!
//! The target is found through the tenant's own requests and checked for ownership (`target`), so that a name or label
//! copied from somebody else reaches nothing. The request has no finalizer: after it is deleted, its Velero
//! DownloadRequest is deleted by `leftover`. A DownloadRequest that Velero's own command line makes in a tenant's
//! namespace is read as such a request (`velero_view`).

mod admit;
mod generate;
mod leftover;
mod status;
mod target;
mod velero_view;

use std::sync::Arc;
use std::time::Duration;

use api::condition;
use api::velero::DownloadRequest;
use api::{Kind, NonAdminDownloadRequest, NonAdminDownloadRequestStatus, Phase, labels};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::core::ObjectMeta;

pub(crate) use admit::admit;
pub use leftover::{Leftover, decide_leftover, observe_leftover};
pub(crate) use leftover::{origin, orphaned};
use target::Way;
pub use target::{Behind, Sought};
pub(crate) use target::{
    OBJECTS, READ_BY_NACRE, concerns_backups, concerns_restores, is_read_by_nacre, seek,
};
pub use velero_view::{is_answered, observe_velero_view};

use crate::ownership::{annotation, label};
use crate::request::Request;
use crate::requester::{self, Access, Verdict};
use crate::results::Results;
use crate::state::State;
use crate::view::Seen;
use crate::{Action, Event, Key, Object, Plan, Policy, Target};

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
    /// What nacre has read for it.
    pub results: Option<Results>,
    /// What is known of the permissions of whoever asked.
    pub access: Access,
    /// The policy for the namespace; none while it is unknown.
    pub policy: Option<Arc<Policy>>,
    /// Nobody is to see Velero's objects there any more: whether nacre had answered it.
    pub withdrawn: Option<bool>,
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
    Some(gather(view, view.seen::<NonAdminDownloadRequest>(namespace, name)?, namespace))
}

/// The same for an object that is not stored yet, or is about to change.
pub(crate) fn gather(
    view: &State,
    Seen { object: request, unreadable }: Seen<NonAdminDownloadRequest>,
    namespace: &str,
) -> Observed {
    let found =
        view.admin::<DownloadRequest>(&velero_name(request.metadata.uid.as_deref().unwrap_or_default()));
    let name_taken = found.as_deref().is_some_and(|velero| !made_for(velero, &request.metadata));
    Observed {
        kind: Kind::NonAdminDownloadRequest,
        velero: found.filter(|_| !name_taken),
        name_taken,
        sought: target::seek(view, namespace, &request.spec.target),
        results: view.results(&Key::of(Kind::NonAdminDownloadRequest, &request.metadata)),
        namespace: view.namespace(namespace),
        access: Access::gather(view, &request.metadata, namespace),
        policy: view.policy(namespace),
        withdrawn: None,
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

    /// Whether nacre has answered it by what it read. What Velero's own command line asks for has a status that anybody may
    /// have written.
    fn was_read(&self) -> bool {
        is_read_by_nacre(self.kind, &self.request.spec.target)
            && condition::is_true(self.reported().1, condition::PROCESSED)
    }

    /// Whether what nacre read is not in the status that it wrote: a CRD of another make drops what it does not know.
    fn was_dropped(&self) -> bool {
        let status = self.status();
        let answer = status.velero.and_then(|velero| velero.status);
        let has_link = self.velero.is_some() || answer.is_some_and(|answer| answer.download_url.is_some());
        self.was_read() && !has_link && status.objects.is_none() && status.log.is_none()
    }

    /// Until when the answer is kept, as far as anybody has said.
    fn expires(&self) -> Option<Timestamp> {
        let is_answered = self.was_read();
        let said = |status: Option<&api::velero::DownloadRequestStatus>| {
            let status = status.filter(|status| is_answered || status.download_url.is_some())?;
            status.expiration.as_ref().map(|time| time.0)
        };
        let reported = self.request.status.as_ref().and_then(|status| status.velero.as_ref());
        said(self.velero.as_deref().and_then(|velero| velero.status.as_ref()))
            .or_else(|| said(reported.and_then(|velero| velero.status.as_ref())))
    }
}

impl Request for Observed {
    const NOUN: &'static str = "download";
    const FINALIZER: Option<&'static str> = None;
    const LOST: Option<&'static str> = None;

    fn object(&self) -> (Kind, &ObjectMeta) {
        (self.kind, self.meta())
    }

    fn reported(&self) -> (Option<Phase>, &[Condition]) {
        let status = self.request.status.as_ref();
        status.map_or((None, [].as_slice()), |status| (status.phase, status.conditions.as_slice()))
    }

    fn refusal_write(&self, reason: &'static str, message: &str) -> Option<Action> {
        status::patch(self, &status::refused(self, condition::PROCESSED, reason, message))
    }

    fn now(&self) -> Timestamp {
        self.now
    }

    /// What Velero's own command line asks for has no condition.
    fn keeps_status(&self) -> bool {
        self.kind == Kind::DownloadRequest || self.handed_over_before()
    }
}

/// Requeue delay while the policy is unknown, of what Velero's own command line asks for: it has no condition.
const POLICY_RETRY: Duration = Duration::from_secs(2);

/// How long what nacre read is kept for whoever asked.
const KEPT: Duration = Duration::from_mins(10);

/// Decides what to do about one download.
pub fn decide(seen: &Observed) -> Plan {
    if seen.is_deleting() {
        return forget(seen);
    }
    if let Some(is_answered) = seen.withdrawn {
        let plan = Plan::done().because("the Velero view is disabled for the namespace: there is no link");
        // One that was not answered is its owner's, and stays.
        let link = is_answered.then(|| Action::Delete(seen.target()));
        return plan.then_if(velero_removal(seen)).then_if(link);
    }
    if seen.was_dropped() {
        let plan = Plan::done().because("the CRD has no field for what nacre read: there is nothing to show");
        return plan.then_if(status::patch(seen, &status::dropped(seen)));
    }
    if let Some(expires) = seen.expires() {
        return if expires <= seen.now {
            let plan = Plan::done().because("its link has expired: it is deleted");
            plan.then_if(velero_removal(seen)).then(Action::Delete(seen.target()))
        } else {
            mirror(seen).requeue_after(until(seen.now, expires)).because("its link works until it expires")
        };
    }
    if seen.namespace.is_none() {
        return seen.wait_for_namespace();
    }
    if seen.velero.is_some() {
        return Plan::done().then_if(no_word_left(seen)).because("waiting for Velero to make the link");
    }
    let Some(policy) = &seen.policy else {
        if seen.kind == Kind::DownloadRequest {
            return Plan::done().requeue_after(POLICY_RETRY).because(Observed::policy_unreadable());
        }
        return seen.wait_for_policy();
    };
    match target::resolve(seen, policy) {
        Ok(way) => match target::permitted(seen, policy) {
            Verdict::Permitted(_) => match way {
                Way::Link(name) => create(seen, name),
                Way::Read => read(seen),
            },
            Verdict::Ask(asks) => Plan::done().ask(asks),
            Verdict::Refused(refusal) => {
                refuse(seen, condition::PROCESSED, condition::ERROR, &refusal.to_string())
                    .requeue_after(requester::FRESH)
            }
        },
        Err((condition, message)) => refuse(seen, condition, condition::ERROR, &message),
    }
}

fn until(now: Timestamp, then: Timestamp) -> Duration {
    Duration::try_from(then.duration_since(now)).unwrap_or_default()
}

/// nacre reads the file itself, and publishes what it says.
fn read(seen: &Observed) -> Plan {
    if seen.reported().1.iter().any(|found| found.reason == condition::RESULTS_NOT_READABLE) {
        return Plan::done().because("the file could not be read");
    }
    let wants_objects = seen.request.spec.target.kind == OBJECTS;
    let (status, why) = match &seen.results {
        None => {
            let plan = Plan::done().then_if(status::patch(seen, &status::being_read(seen)));
            return plan.because("nacre reads the file");
        }
        Some(Results::Objects(objects)) if wants_objects => {
            let objects = Some(objects.as_ref().clone());
            (NonAdminDownloadRequestStatus { objects, ..status::read(seen) }, "the list of objects was read")
        }
        Some(Results::Log(log)) if !wants_objects => {
            let log = Some(log.as_ref().clone());
            (NonAdminDownloadRequestStatus { log, ..status::read(seen) }, "the log was read")
        }
        Some(_) => {
            let plan = Plan::done().then_if(status::patch(seen, &status::not_readable(seen)));
            return plan.because("the file could not be read");
        }
    };
    // The answer of the API server shows whether the CRD has a field for it.
    Plan::done().then_if(status::patch(seen, &status)).again_at_once().because(why)
}

/// Creates the Velero DownloadRequest, and clears the old condition.
fn create(seen: &Observed, name: &str) -> Plan {
    let note = format!("Velero was asked for the link, {}", seen.access.identity.asked());
    Plan::done()
        .then(Action::Create(Object::of(Kind::DownloadRequest, &generate::download_request(seen, name))))
        .with_event(Event::normal(requester::DOWNLOAD_REQUESTED, note))
        .then_if(no_word_left(seen))
        .because("it passed every check: Velero is asked for the link")
}

/// The Velero DownloadRequest exists: clears the condition that reported what it waited for.
fn no_word_left(seen: &Observed) -> Option<Action> {
    let waited = seen.status().phase == Some(Phase::BackingOff);
    status::patch(seen, &status::asked()).filter(|_| waited)
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
    let plan = Plan::done().because("it is being deleted: its Velero DownloadRequest goes with it");
    plan.then_if(velero_removal(seen))
}

fn velero_removal(seen: &Observed) -> Option<Action> {
    let velero = seen.velero.as_ref()?;
    Some(Action::Delete(Target::of(Kind::DownloadRequest, &velero.metadata)))
}

fn refuse(seen: &Observed, condition: &'static str, reason: &'static str, message: &str) -> Plan {
    let status = status::refused(seen, condition, reason, message);
    let plan = Plan::done().because(message.to_owned());
    let Some(write) = status::patch(seen, &status) else {
        return plan;
    };
    let plan = plan.then(write).with_event(Event::warning(reason, message));
    if seen.kind == Kind::DownloadRequest { plan.requeue_after(velero_view::UNTIL_READ) } else { plan }
}
