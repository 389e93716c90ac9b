//! What a requester is permitted, as far as it was asked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::core::ObjectMeta;

use super::identity::{self, Identity, Requester};
use crate::policy::{RequesterMode, RequesterPolicy};
use crate::served::Served;
use crate::state::State;

/// How long an answer is good for. RBAC is not watched, so this is also how late a lost permission is noticed.
pub const FRESH: Duration = Duration::from_mins(1);

/// What a permission is about, within a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attributes {
    /// The verb.
    pub verb: &'static str,
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural.
    pub resource: String,
    /// The subresource; empty for none.
    pub subresource: &'static str,
    /// The name of one object; empty for all.
    pub name: String,
}

impl Attributes {
    /// This verb on all objects of a resource.
    pub(crate) fn on(verb: &'static str, group: &str, resource: &str) -> Self {
        Self { verb, group: group.to_owned(), resource: resource.to_owned(), ..Self::default() }
    }

    /// Everything there is. Only a wildcard in a role gives it, and it saves asking for each kind.
    fn everything() -> Self {
        Self::on("*", "*", "*")
    }
}

/// One SubjectAccessReview.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Review {
    /// As whom.
    pub requester: Arc<Requester>,
    /// Where.
    pub namespace: String,
    /// What.
    pub attributes: Attributes,
}

/// A fact that a decision needs and that is not watched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ask {
    /// Which resources the cluster serves.
    Served,
    /// Whether somebody is permitted something.
    Review(Review),
}

/// The answer to a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Whether it is permitted.
    pub allowed: bool,
    /// When that was so.
    pub at: Timestamp,
}

/// All answers about one requester in one namespace.
pub type Answers = BTreeMap<Attributes, Answer>;

/// What is known of the permissions of whoever asked for one object.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// Who asked.
    pub identity: Identity,
    /// The namespace of the object.
    pub namespace: String,
    /// When it was asked for.
    pub asked_at: Option<Timestamp>,
    /// What was answered about this requester here.
    pub answers: Arc<Answers>,
    /// The resources that the cluster serves, if that was read lately.
    pub served: Option<Arc<[Served]>>,
    /// Whether nacre is not permitted to ask.
    pub forbidden: bool,
    /// The current time, given by the caller.
    pub now: Timestamp,
}

/// The result of a check of permissions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Permits {
    /// What has to be asked first.
    pub(crate) asks: Vec<Ask>,
    /// What is not permitted.
    pub(crate) denied: Vec<Attributes>,
}

impl Access {
    /// What is known of the requester of this object.
    pub(crate) fn gather(view: &State, meta: &ObjectMeta, namespace: &str) -> Self {
        let identity = identity::of(meta);
        let answers = match &identity {
            Identity::Known(requester) => view.answers(requester, namespace),
            Identity::Unrecorded | Identity::Unreadable | Identity::Policy => Arc::default(),
        };
        Self {
            answers,
            identity,
            namespace: namespace.to_owned(),
            asked_at: meta.creation_timestamp.as_ref().map(|time| time.0),
            served: view.served(),
            forbidden: view.reviews_forbidden(),
            now: view.now(),
        }
    }

    /// Whether anything is checked: the policy wants it, and nacre may ask.
    pub(crate) fn applies(&self, policy: &RequesterPolicy) -> bool {
        self.mode(policy) != RequesterMode::Ignore && !self.forbidden
    }

    /// What the policy wants of this requester.
    pub(crate) fn mode(&self, policy: &RequesterPolicy) -> RequesterMode {
        match self.identity {
            Identity::Known(_) | Identity::Unreadable => policy.mode,
            Identity::Unrecorded => policy.unrecorded.max(policy.mode),
            Identity::Policy => RequesterMode::Ignore,
        }
    }

    /// Whether the record is too old to go by: groups may have changed since.
    pub(crate) fn is_outdated(&self, policy: &RequesterPolicy) -> bool {
        let Some((asked, limit)) = self.asked_at.zip(policy.max_age()) else { return false };
        Duration::try_from(self.now.duration_since(asked)).is_ok_and(|age| age > limit)
    }

    /// Whether something is permitted; none if it has to be asked.
    fn allowed(&self, attributes: &Attributes) -> Option<bool> {
        let answer = self.answers.get(attributes)?;
        let age = Duration::try_from(self.now.duration_since(answer.at)).unwrap_or_default();
        (age < FRESH).then_some(answer.allowed)
    }

    /// Which of these are permitted. The wildcard is asked first: it answers all of them at once.
    pub(crate) fn check(&self, needed: &BTreeSet<Attributes>) -> Permits {
        let Identity::Known(requester) = &self.identity else {
            return Permits { asks: Vec::new(), denied: needed.iter().cloned().collect() };
        };
        let ask = |attributes: &Attributes| {
            Ask::Review(Review {
                requester: requester.clone(),
                namespace: self.namespace.clone(),
                attributes: attributes.clone(),
            })
        };
        if needed.len() > 1 {
            let everything = Attributes::everything();
            match self.allowed(&everything) {
                None => return Permits { asks: vec![ask(&everything)], denied: Vec::new() },
                Some(true) => return Permits::default(),
                Some(false) => {}
            }
        }
        let mut permits = Permits::default();
        for attributes in needed {
            match self.allowed(attributes) {
                Some(true) => {}
                Some(false) => permits.denied.push(attributes.clone()),
                None => permits.asks.push(ask(attributes)),
            }
        }
        permits
    }
}
