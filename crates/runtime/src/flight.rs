//! One plan being carried out.

use std::borrow::Cow;

use api::Kind;
use kube::core::ObjectMeta;
use planner::{Action, Again, Event, Key, Object, Plan, Target};
use serde_json::Value;

use crate::reply::Failure;
use crate::work_queue::Requeue;

/// A plan about one object, from the decision to its last write.
#[derive(Clone, Debug)]
pub struct Flight {
    /// The object that was decided about.
    pub about: Key,
    pub(crate) stage: Stage,
    /// What was fetched for this flight, so that the cache is not behind.
    pub(crate) confirmed: Vec<Key>,
    plan: Plan,
    /// How many of its actions were carried out.
    done: usize,
    /// The object its Events are about.
    subject: Option<(Kind, ObjectMeta)>,
    reports: Vec<Report>,
    requeue: Requeue,
    pub(crate) failure: Option<Failure>,
}

/// What is awaited.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Stage {
    /// The object of a write whose outcome is unknown, before anything is decided.
    Resolving(Key),
    /// An object that the cache may be behind, before the plan is carried out, and the uid it has there.
    Confirming(Key, Option<String>),
    /// The reply to the next write.
    Writing,
    /// The object as it is after a conflict.
    Refreshing,
    /// Whether the object that was to be deleted is still there, after a conflict.
    CheckingReplaced,
    /// Nothing.
    Done,
}

/// One request to the API server.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Fetch an object.
    Fetch(Key),
    /// Create an object.
    Create(Object),
    /// Apply an object server-side, by force.
    Apply(Object),
    /// Merge a change into exactly this object, as of its resourceVersion.
    Patch {
        /// The object, with the resourceVersion to send.
        target: Target,
        /// Whether its status subresource is meant.
        status: bool,
        /// The merge patch.
        body: Value,
    },
    /// Delete exactly this object.
    Delete {
        /// The object.
        target: Target,
        /// Only if it still has this resourceVersion.
        unchanged: bool,
    },
}

/// A Kubernetes Event to record.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The kind of the object it is about.
    pub kind: Kind,
    /// The object it is about.
    pub meta: ObjectMeta,
    /// What to record.
    pub event: Event,
}

/// What became of a plan.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The object that was decided about.
    pub about: Key,
    /// Events to record.
    pub reports: Vec<Report>,
    /// When to decide again even if nothing changes.
    pub requeue: Requeue,
    /// The reason for what was done, or for doing nothing.
    pub because: Cow<'static, str>,
    /// Why the plan was not carried out to its end, and what was tried.
    pub failure: Option<Failure>,
    /// The action that failed.
    pub failed_action: Option<Action>,
}

impl Flight {
    pub(crate) fn new(about: Key) -> Self {
        Self {
            about,
            stage: Stage::Writing,
            confirmed: Vec::new(),
            plan: Plan::default(),
            done: 0,
            subject: None,
            reports: Vec::new(),
            requeue: Requeue::OnChange,
            failure: None,
        }
    }

    pub(crate) fn load(&mut self, plan: Plan, subject: Option<(Kind, ObjectMeta)>) {
        self.stage = if plan.actions.is_empty() { Stage::Done } else { Stage::Writing };
        (self.plan, self.done, self.subject) = (plan, 0, subject);
    }

    /// The action that is being carried out.
    pub fn action(&self) -> Option<&Action> {
        self.plan.actions.get(self.done)
    }

    /// The plan, and how many of its actions were carried out.
    pub fn progress(&self) -> (&Plan, usize) {
        (&self.plan, self.done)
    }

    /// Whether nothing more is to be sent.
    pub fn is_done(&self) -> bool {
        self.stage == Stage::Done
    }

    /// The Events to record so far.
    pub fn reports(&self) -> &[Report] {
        &self.reports
    }

    /// Whether an action failed.
    pub fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    pub(crate) fn next_action(&mut self) {
        self.done += 1;
    }

    /// All actions were carried out. Returns whether to decide again at once.
    pub(crate) fn complete(&mut self) -> bool {
        self.stage = Stage::Done;
        if let Some((kind, meta)) = &self.subject {
            let events = self.plan.events.drain(..);
            self.reports.extend(events.map(|event| Report { kind: *kind, meta: meta.clone(), event }));
        }
        match self.plan.again {
            Again::OnChange => false,
            Again::After(delay) => {
                self.requeue = Requeue::After(delay);
                false
            }
            // Without anything written, the next decision would be the same.
            Again::AtOnce if self.subject.is_none() || self.plan.actions.is_empty() => false,
            Again::AtOnce => true,
        }
    }

    pub(crate) fn fail(&mut self) {
        self.stage = Stage::Done;
    }

    pub(crate) fn fail_with(&mut self, failure: Failure) {
        self.failure = Some(failure);
        self.stage = Stage::Done;
    }

    pub(crate) fn outcome(self) -> Outcome {
        let failed_action = self.failure.as_ref().and_then(|_| self.plan.actions.get(self.done).cloned());
        Outcome {
            about: self.about,
            reports: self.reports,
            requeue: self.requeue,
            because: self.plan.because,
            failure: self.failure,
            failed_action,
        }
    }
}
