//! The result of a decision: actions in order, Events, and when to reconcile again.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use api::Kind;
use kube::core::ObjectMeta;
use serde_json::Value;

use crate::requester::{Ask, NEEDS_REVIEW};
use crate::turns::Turn;

/// The plan for one object. It leaves no choice to the executor.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Executed in order; each is safe to repeat, and each may be the last before a crash.
    pub actions: Vec<Action>,
    /// Recorded on the object, as far as the rate limit allows; a lost Event changes nothing.
    pub events: Vec<Event>,
    /// Facts that have to be found out before more can be decided; the object is decided about again when they are.
    pub asks: Vec<Ask>,
    /// What becomes of the turn of the request it is about; none if it does not want one.
    pub turn: Option<Turn>,
    /// When to decide again.
    pub again: Again,
    /// The reason for the actions, or for doing nothing: for the debug log and for `kubectl nacre explain`.
    pub because: Cow<'static, str>,
}

/// Two plans that do the same are equal, whatever their reasons, and whether or not they wait for a turn.
impl PartialEq for Plan {
    fn eq(&self, other: &Self) -> bool {
        let Self { actions, events, asks, again, turn: _, because: _ } = self;
        (actions, events, asks, again) == (&other.actions, &other.events, &other.asks, &other.again)
    }
}

/// When to decide about an object again, once its plan is carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Again {
    /// When something it depends on changes.
    #[default]
    OnChange,
    /// After this time, even if nothing changes.
    After(Duration),
    /// At once, before anything else is begun: the plan was only the first half.
    AtOnce,
}

/// The object a decision is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The object's kind.
    pub kind: Kind,
    /// The object's namespace.
    pub namespace: String,
    /// The object's name.
    pub name: String,
}

/// One write to the API server.
#[derive(Clone, PartialEq)]
pub enum Action {
    /// Add a finalizer to an existing object.
    AddFinalizer(Target, &'static str),
    /// Remove a finalizer; an object that is gone counts as done.
    RemoveFinalizer(Target, &'static str),
    /// Create an object with a fixed name; one that exists counts as done.
    Create(Object),
    /// Server-side apply. With a uid in its metadata, only that object; without, it is created if it does not exist.
    Apply(Object),
    /// Merge a change into an object that exists.
    Patch(Target, Value),
    /// Merge a change into the status of an object that exists.
    PatchStatus(Target, Value),
    /// Delete exactly this object (by uid); one that is gone counts as done.
    Delete(Target),
    /// Delete this object only in the observed resourceVersion; if it was changed meanwhile, decide again.
    DeleteUnchanged(Target),
}

/// A complete object to be created.
#[derive(Clone, PartialEq)]
pub struct Object {
    /// The object's kind.
    pub kind: Kind,
    /// Its manifest, with apiVersion, kind and metadata.
    pub body: Value,
}

/// An observed object. Its uid is sent with every write, so that an object re-created under the same name is never
/// changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The object's kind.
    pub kind: Kind,
    /// The object's namespace; empty for a cluster-scoped kind.
    pub namespace: String,
    /// The object's name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Its resourceVersion; sent where a list is replaced as a whole.
    pub resource_version: String,
    /// Its finalizers when observed.
    pub finalizers: Vec<String>,
}

/// A Kubernetes Event on the object the plan is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Whether it is a Warning.
    pub warning: bool,
    /// The Event's reason, from `api::condition`.
    pub reason: &'static str,
    /// The Event's message.
    pub note: String,
}

impl Key {
    /// The object with this metadata.
    pub fn of(kind: Kind, meta: &ObjectMeta) -> Self {
        Self::new(
            kind,
            meta.namespace.as_deref().unwrap_or_default(),
            meta.name.as_deref().unwrap_or_default(),
        )
    }

    /// The object of this name.
    pub fn new(kind: Kind, namespace: &str, name: &str) -> Self {
        Self { kind, namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

impl Plan {
    /// Nothing to do.
    pub fn done() -> Self {
        Self::default()
    }

    /// Adds an action.
    #[must_use]
    pub fn then(mut self, action: Action) -> Self {
        self.actions.push(action);
        self
    }

    /// Adds an action, if there is one.
    #[must_use]
    pub fn then_if(mut self, action: Option<Action>) -> Self {
        self.actions.extend(action);
        self
    }

    /// Adds another plan for the same object.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        let Self { actions, events, asks, turn, again, because } = other;
        self.turn = self.turn.or(turn);
        if !actions.is_empty() && self.actions.is_empty() {
            self.because = because;
        }
        self.actions.extend(actions);
        self.events.extend(events);
        self.asks.extend(asks);
        match again {
            Again::OnChange => self,
            Again::After(delay) => self.requeue_after(delay),
            Again::AtOnce => self.again_at_once(),
        }
    }

    /// Gives the reason. If there is one, it stays: what was decided further down is more precise.
    #[must_use]
    pub fn because(mut self, reason: impl Into<Cow<'static, str>>) -> Self {
        if self.because.is_empty() {
            self.because = reason.into();
        }
        self
    }

    /// Adds an Event.
    #[must_use]
    pub fn with_event(mut self, event: Event) -> Self {
        self.events.push(event);
        self
    }

    /// Asks for facts, and decides again when they are there.
    #[must_use]
    pub(crate) fn ask(mut self, asks: Vec<Ask>) -> Self {
        self.asks.extend(asks);
        self.because(NEEDS_REVIEW)
    }

    /// And decide again after this time; of several, the shortest counts.
    #[must_use]
    pub fn requeue_after(mut self, delay: Duration) -> Self {
        self.again = match self.again {
            Again::OnChange => Again::After(delay),
            Again::After(earlier) => Again::After(earlier.min(delay)),
            Again::AtOnce => Again::AtOnce,
        };
        self
    }

    /// It takes its turn, or waits for it.
    #[must_use]
    pub(crate) fn with_turn(mut self, turn: Turn) -> Self {
        self.turn = Some(turn);
        self
    }

    /// How long to wait before the next decision, for whoever has a loop of their own; none to wait for a change.
    pub fn delay(&self) -> Option<Duration> {
        match self.again {
            Again::OnChange => None,
            Again::After(delay) => Some(delay),
            Again::AtOnce => Some(Duration::ZERO),
        }
    }

    /// And decide again at once, with what was written.
    #[must_use]
    pub fn again_at_once(mut self) -> Self {
        self.again = Again::AtOnce;
        self
    }
}

impl Action {
    /// The kind it writes.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Create(object) | Self::Apply(object) => object.kind,
            Self::AddFinalizer(target, _)
            | Self::RemoveFinalizer(target, _)
            | Self::Patch(target, _)
            | Self::PatchStatus(target, _)
            | Self::Delete(target)
            | Self::DeleteUnchanged(target) => target.kind,
        }
    }
}

impl Action {
    /// The object it writes.
    pub fn key(&self) -> Key {
        match self {
            Self::Create(object) | Self::Apply(object) => {
                Key::new(object.kind, object.namespace(), object.name())
            }
            Self::AddFinalizer(target, _)
            | Self::RemoveFinalizer(target, _)
            | Self::Patch(target, _)
            | Self::PatchStatus(target, _)
            | Self::Delete(target)
            | Self::DeleteUnchanged(target) => Key::new(target.kind, &target.namespace, &target.name),
        }
    }
}

impl Target {
    /// Its namespace, name and uid.
    pub fn meta(&self) -> ObjectMeta {
        ObjectMeta {
            namespace: Some(self.namespace.clone()),
            name: Some(self.name.clone()),
            uid: Some(self.uid.clone()),
            ..ObjectMeta::default()
        }
    }

    /// The object with this metadata.
    pub fn of(kind: Kind, meta: &ObjectMeta) -> Self {
        Self {
            kind,
            namespace: meta.namespace.clone().unwrap_or_default(),
            name: meta.name.clone().unwrap_or_default(),
            uid: meta.uid.clone().unwrap_or_default(),
            resource_version: meta.resource_version.clone().unwrap_or_default(),
            finalizers: meta.finalizers.clone().unwrap_or_default(),
        }
    }
}

impl Object {
    /// A typed object, ready to be sent.
    pub fn of(kind: Kind, typed: &impl serde::Serialize) -> Self {
        // Our own types always become JSON: their keys are strings and nothing in them fails to serialise.
        Self { kind, body: serde_json::to_value(typed).unwrap_or_default() }
    }

    /// The object's name in its namespace.
    pub fn name(&self) -> &str {
        self.body["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// Its namespace; empty for a cluster-scoped kind.
    pub fn namespace(&self) -> &str {
        self.body["metadata"]["namespace"].as_str().unwrap_or_default()
    }
}

/// Debug output of plans is logged; the data of a Secret is hidden.
impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Object")
            .field("kind", &self.kind)
            .field("body", &shown(self.kind, &self.body))
            .finish()
    }
}

impl fmt::Debug for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AddFinalizer(target, finalizer) => {
                f.debug_tuple("AddFinalizer").field(target).field(finalizer).finish()
            }
            Self::RemoveFinalizer(target, finalizer) => {
                f.debug_tuple("RemoveFinalizer").field(target).field(finalizer).finish()
            }
            Self::Create(object) => f.debug_tuple("Create").field(object).finish(),
            Self::Apply(object) => f.debug_tuple("Apply").field(object).finish(),
            Self::Patch(target, body) => {
                f.debug_tuple("Patch").field(target).field(&shown(target.kind, body)).finish()
            }
            Self::PatchStatus(target, body) => {
                f.debug_tuple("PatchStatus").field(target).field(body).finish()
            }
            Self::Delete(target) => f.debug_tuple("Delete").field(target).finish(),
            Self::DeleteUnchanged(target) => f.debug_tuple("DeleteUnchanged").field(target).finish(),
        }
    }
}

fn shown(kind: Kind, body: &Value) -> Value {
    let mut shown = body.clone();
    if kind == Kind::Secret && shown.get("data").is_some() {
        shown["data"] = "(hidden)".into();
    }
    shown
}

impl Event {
    /// A Normal Event.
    pub fn normal(reason: &'static str, note: impl Into<String>) -> Self {
        Self::of(false, reason, note.into())
    }

    /// A Warning Event.
    pub fn warning(reason: &'static str, note: impl Into<String>) -> Self {
        Self::of(true, reason, note.into())
    }

    fn of(warning: bool, reason: &'static str, note: String) -> Self {
        debug_assert!(api::events::is_explained(reason), "{reason} is not in docs/troubleshooting.md");
        Self { warning, reason, note }
    }
}

#[cfg(test)]
mod tests {
    use super::Plan;

    #[test]
    fn the_more_precise_reason_stays_and_no_reason_makes_a_difference() {
        let plan = Plan::done().because("the Secret is missing").because("it waits");
        assert_eq!(plan.because, "the Secret is missing");
        assert_eq!(plan, Plan::done());
    }
}
