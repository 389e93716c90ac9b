//! What a decision is made of: actions in order, events to tell, and when to look again.

use std::fmt;
use std::time::Duration;

use api::Kind;
use kube::core::ObjectMeta;
use serde_json::Value;

/// What shall be done about one object. Nothing in it leaves a choice to whoever carries it out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Carried out in order; each is safe to repeat, and each may be the last before a crash.
    pub actions: Vec<Action>,
    /// Told to the owner of the object, if there is room: losing one changes nothing.
    pub events: Vec<Event>,
    /// When to decide again.
    pub again: Again,
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

/// Which object a decision is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// What it is.
    pub kind: Kind,
    /// Where it is.
    pub namespace: String,
    /// What it is called.
    pub name: String,
}

/// One write to the API server.
#[derive(Clone, PartialEq)]
pub enum Action {
    /// Put a finalizer on an object that exists.
    Hold(Target, &'static str),
    /// Take a finalizer off; an object that is gone already counts as done.
    Release(Target, &'static str),
    /// Create an object under a fixed name; one that exists already counts as done.
    Create(Object),
    /// Make the fields of this object so, and drop those that were made so before and are no more in it. With a uid in its
    /// metadata it means exactly that one; without, it is made if it is not there.
    Apply(Object),
    /// Merge a change into an object that exists.
    Patch(Target, Value),
    /// Merge a change into the status of an object that exists.
    PatchStatus(Target, Value),
    /// Delete exactly this object; one that is gone already counts as done.
    Delete(Target),
    /// Delete this object only as it was seen; if somebody changed it meanwhile, that is decided about anew.
    DeleteUnchanged(Target),
}

/// An object to be created, whole.
#[derive(Clone, PartialEq)]
pub struct Object {
    /// What it is.
    pub kind: Kind,
    /// Its manifest, with apiVersion, kind and metadata.
    pub body: Value,
}

/// An object that was seen. The uid goes with every write, so that a namesake made later is never meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// What it is.
    pub kind: Kind,
    /// Where it is; empty for a kind without namespaces.
    pub namespace: String,
    /// What it is called.
    pub name: String,
    /// Which one of that name.
    pub uid: String,
    /// As of when; sent where a list is replaced as a whole.
    pub resource_version: String,
    /// The finalizers it had when seen.
    pub finalizers: Vec<String>,
}

/// A Kubernetes Event on the object the plan is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Whether somebody should look.
    pub warning: bool,
    /// One word, from `api::condition`.
    pub reason: &'static str,
    /// One sentence.
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

    /// And then this.
    #[must_use]
    pub fn then(mut self, action: Action) -> Self {
        self.actions.push(action);
        self
    }

    /// And then this, if there is anything.
    #[must_use]
    pub fn then_if(mut self, action: Option<Action>) -> Self {
        self.actions.extend(action);
        self
    }

    /// And tell the owner.
    #[must_use]
    pub fn telling(mut self, event: Event) -> Self {
        self.events.push(event);
        self
    }

    /// And decide again after this time; of several, the shortest counts.
    #[must_use]
    pub fn waking_in(mut self, delay: Duration) -> Self {
        self.again = match self.again {
            Again::OnChange => Again::After(delay),
            Again::After(earlier) => Again::After(earlier.min(delay)),
            Again::AtOnce => Again::AtOnce,
        };
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
    /// What it writes.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Create(object) | Self::Apply(object) => object.kind,
            Self::Hold(target, _)
            | Self::Release(target, _)
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
            Self::Hold(target, _)
            | Self::Release(target, _)
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

    /// What it will be called.
    pub fn name(&self) -> &str {
        self.body["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// Where it will be; empty for a kind without namespaces.
    pub fn namespace(&self) -> &str {
        self.body["metadata"]["namespace"].as_str().unwrap_or_default()
    }
}

/// Plans are shown to people; what is in a Secret is not.
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
            Self::Hold(target, finalizer) => f.debug_tuple("Hold").field(target).field(finalizer).finish(),
            Self::Release(target, finalizer) => {
                f.debug_tuple("Release").field(target).field(finalizer).finish()
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
    /// Something went as it should.
    pub fn normal(reason: &'static str, note: impl Into<String>) -> Self {
        Self { warning: false, reason, note: note.into() }
    }

    /// Somebody should look.
    pub fn warning(reason: &'static str, note: impl Into<String>) -> Self {
        Self { warning: true, reason, note: note.into() }
    }
}
