//! The lifecycle that backups, restores, downloads and storage locations share: nacre's finalizer, deletion, what the
//! status says about earlier decisions, refusals, and the wait for the policy.
//!
//! Each kind implements [`Request`] for its `Observed`. What differs between the kinds is in their own folders, under
//! the same file names: `check` refuses, `generate` makes Velero's object, `status` is what the tenant is shown, `admit`
//! is the webhook's answer.

use std::borrow::Cow;
use std::time::Duration;

use api::{Kind, Phase, condition};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::core::ObjectMeta;

use crate::queue::{Queued, Stage};
use crate::rejected_write::{retry_after, since};
use crate::requester::FRESH;
use crate::turns::{Place, Turn};
use crate::{Action, Event, Plan, Refusal, RejectedWrite, Target};

/// Requeue delay until the watch has reported the namespace of a new request.
const NAMESPACE_RETRY: Duration = Duration::from_secs(2);
/// How long the watch on namespaces may be behind the watch on requests.
const WATCH_DELAY: Duration = Duration::from_secs(30);

/// How long a request goes on to show that it waits after Velero was given it, unless Velero reports about it. Mostly it does
/// within a moment, and then one write shows both.
const FIRST_REPORT: Duration = Duration::from_secs(2);

/// Whether removing this Velero object takes longer than the request to do so: then the tenant is shown that it is being
/// deleted. Otherwise it is gone before anybody could look, and the status would be a write for nothing.
pub(crate) fn removal_lasts(velero: &ObjectMeta, at_work: bool, rejected: Option<&RejectedWrite>) -> bool {
    let held = velero.finalizers.as_ref().is_some_and(|finalizers| !finalizers.is_empty());
    at_work || held || velero.deletion_timestamp.is_some() || rejected.is_some()
}

/// The reason to write nothing while Velero's first report is waited for.
pub(crate) const JUST_GIVEN: &str =
    "Velero was given it a moment ago: its status is shown with what Velero reports first";

/// The reason to show what Velero reports, and to do nothing else.
pub(crate) fn mirrored(velero: &impl Queued) -> &'static str {
    match velero.stage() {
        Stage::Waiting => "Velero has it and has not started it: its status is shown",
        Stage::Running => "Velero works on it: its status is shown",
        Stage::Finalizing => {
            "Velero has backed up or restored everything and finalizes it: its status is shown"
        }
        Stage::Finished => "Velero is done with it: nothing is left to do",
    }
}

/// A tenant's request as it was observed.
pub(crate) trait Request {
    /// What it is called in messages.
    const NOUN: &'static str;
    /// nacre's finalizer; none for a kind that needs no cleanup.
    const FINALIZER: Option<&'static str>;
    /// The reason of the condition that says its Velero object is lost; none for a kind that makes it again.
    const LOST: Option<&'static str>;

    /// Its kind and metadata.
    fn object(&self) -> (Kind, &ObjectMeta);
    /// The phase and the conditions of its status.
    fn reported(&self) -> (Option<Phase>, &[Condition]);
    /// The status that refuses it, if it has not been written.
    fn refusal_write(&self, reason: &'static str, message: &str) -> Option<Action>;
    /// The current time, given by the caller.
    fn now(&self) -> Timestamp;

    /// Somebody is yet to notice that the request exists: nacre's finalizer stays until then.
    fn is_awaited(&self) -> bool {
        false
    }

    /// The request has a deletionTimestamp.
    fn is_deleting(&self) -> bool {
        self.object().1.deletion_timestamp.is_some()
    }

    /// The request has nacre's finalizer.
    fn has_finalizer(&self) -> bool {
        let mut finalizers = self.object().1.finalizers.iter().flatten();
        finalizers.any(|finalizer| Some(finalizer.as_str()) == Self::FINALIZER)
    }

    /// The status says that the Velero object was created before.
    fn handed_over_before(&self) -> bool {
        let (phase, conditions) = self.reported();
        phase == Some(Phase::Created) || condition::is_true(conditions, condition::QUEUED)
    }

    /// The status says that the Velero object is lost: that is final.
    fn lost_before(&self) -> bool {
        let accepted = condition::get(self.reported().1, condition::ACCEPTED);
        accepted.is_some_and(|accepted| Some(accepted.reason.as_str()) == Self::LOST)
    }

    /// Adds nacre's finalizer, if the request does not have it.
    fn ensure_finalizer(&self, plan: Plan) -> Plan {
        let finalizer = Self::FINALIZER.filter(|_| !self.has_finalizer());
        let (kind, meta) = self.object();
        plan.then_if(finalizer.map(|finalizer| Action::AddFinalizer(Target::of(kind, meta), finalizer)))
    }

    /// Removes nacre's finalizer, if the request has it and nobody waits for it.
    fn drop_finalizer(&self, plan: Plan) -> Plan {
        let finalizer = Self::FINALIZER.filter(|_| self.has_finalizer() && !self.is_awaited());
        let (kind, meta) = self.object();
        plan.then_if(finalizer.map(|finalizer| Action::RemoveFinalizer(Target::of(kind, meta), finalizer)))
    }

    /// Writes a refusal and its Event, if it is new. The finalizer is removed, since there is nothing to clean up in
    /// Velero.
    fn refuse(&self, reason: &'static str, message: &str) -> Plan {
        let plan = self.drop_finalizer(Plan::done()).because(message.to_owned());
        match self.refusal_write(reason, message) {
            None => plan,
            Some(write) => plan.then(write).with_event(Event::warning(reason, message)),
        }
    }

    /// It passed every check, and others go first: says so, and waits for its turn.
    fn wait_for_turn(&self, place: Option<Place>, write: Option<Action>) -> Plan {
        let because = match place {
            Some(Place::OnHold(_)) => {
                Cow::from("an administrator holds it back: nacre waits until it is released")
            }
            Some(Place::AtLimit(most)) => {
                format!("it waits until its namespace has fewer than {most} that are not over").into()
            }
            Some(place) => format!("it waits for its turn: {} go before it", place.position() - 1).into(),
            None => Cow::from("it waits for its turn"),
        };
        let plan = Plan::done().then_if(write).because(because);
        if matches!(place, Some(Place::OnHold(_))) { plan } else { plan.with_turn(Turn::Waits) }
    }

    /// How long Velero's first report is waited for; none if the status is to be written now. A request that shows nothing
    /// yet never waits for it.
    fn awaits_first_report(&self, velero: &impl Queued) -> Option<Duration> {
        let shows_waiting = condition::is_true(self.reported().1, condition::WAITING_FOR_TURN);
        let made = velero
            .meta()
            .creation_timestamp
            .as_ref()
            .filter(|_| shows_waiting && !self.handed_over_before())?
            .0;
        let age = self.now().duration_since(made);
        // The clock of the API server may be another one.
        let is_fresh = age.unsigned_abs() < FIRST_REPORT && velero.phase().is_empty();
        is_fresh.then(|| FIRST_REPORT.saturating_sub(Duration::try_from(age).unwrap_or_default()))
    }

    /// The API server rejects what Velero is to be given: reports that, and retries later.
    fn hand_over_failed(&self, message: &str) -> Plan {
        let wait = retry_after(since(Some(self.reported().1), condition::ACCEPTED), self.now());
        self.refuse(condition::HAND_OVER_FAILED, message).requeue_after(wait)
    }

    /// Whoever asked lacks a permission: reports that, and looks again later, since permissions are not watched.
    fn not_permitted(&self, refusal: &Refusal) -> Plan {
        let wait = retry_after(since(Some(self.reported().1), condition::ACCEPTED), self.now());
        self.refuse(condition::REQUESTER_NOT_PERMITTED, &refusal.to_string()).requeue_after(wait.max(FRESH))
    }

    /// The request cannot be checked without the policy. Waiting requests are decided about again when the policy
    /// changes.
    fn wait_for_policy(&self) -> Plan {
        self.refuse(condition::POLICY_UNAVAILABLE, &Self::policy_unreadable())
    }

    /// The watch has not reported the request's namespace: nobody owns anything yet, so nothing is created, deleted or
    /// released. For a new request the watch may only be late. After that the request reports it.
    fn wait_for_namespace(&self) -> Plan {
        let plan = Plan::done();
        if self.is_new() {
            let because = "waiting for the watch to report its namespace";
            return plan.requeue_after(NAMESPACE_RETRY).because(because);
        }
        let message = self.namespace_unseen();
        let write = if self.deletion_requested() {
            self.deletion_write(&message)
        } else if self.keeps_status() {
            None
        } else {
            self.refusal_write(condition::NAMESPACE_NOT_SEEN, &message)
        };
        let event = write.is_some().then(|| Event::warning(condition::NAMESPACE_NOT_SEEN, &*message));
        let mut plan = plan.then_if(write).requeue_after(WATCH_DELAY).because(message);
        plan.events.extend(event);
        plan
    }

    /// The request was created so recently that the watch may not have reported its namespace.
    fn is_new(&self) -> bool {
        let created = self.object().1.creation_timestamp.as_ref();
        created.is_none_or(|created| self.now().duration_since(created.0).unsigned_abs() < WATCH_DELAY)
    }

    /// Somebody asked for the deletion of the request or of what it made.
    fn deletion_requested(&self) -> bool {
        self.is_deleting()
    }

    /// The status of a request whose deletion waits; none for a kind that is deleted without its namespace.
    fn deletion_write(&self, _message: &str) -> Option<Action> {
        None
    }

    /// The status stays as it is while the namespace is not seen: Velero has the request, or it is lost.
    fn keeps_status(&self) -> bool {
        self.handed_over_before() || self.lost_before()
    }

    /// Condition message while the namespace is not seen.
    fn namespace_unseen(&self) -> String {
        let namespace = self.object().1.namespace.as_deref().unwrap_or_default();
        format!(
            "nacre does not see the namespace {namespace}, so nothing is done about this {noun}; the {noun} goes on by \
             itself when nacre sees it. Administrators: nacre needs permission to list and watch namespaces; \
             kubectl nacre doctor shows what is missing",
            noun = Self::NOUN
        )
    }

    /// Condition message while the policy is unknown.
    fn policy_unreadable() -> String {
        format!(
            "what the administrators allow cannot be read at the moment; the {} waits, and goes on by itself when that \
             is mended",
            Self::NOUN
        )
    }
}
