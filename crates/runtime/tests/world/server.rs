//! What the simulated API server does about a request, and what it answers.

use api::Kind;
use planner::state::Rejection;
use planner::{Key, Target};
use runtime::{Failure, Reply, Request};
use serde_json::{Value, json};

use super::World;
use super::store::Stored;

/// What the API server answers.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    /// The object as it is now.
    Object(Stored),
    /// It is deleted.
    Gone,
    /// It was not done.
    Failed(Failure),
}

impl Answer {
    pub(super) fn rejected(code: u16, message: &str) -> Self {
        Self::Failed(Failure::Rejected(Rejection { code, message: message.to_owned(), retry_after: None }))
    }

    pub(super) fn code(&self) -> Option<u16> {
        match self {
            Self::Failed(failure) => failure.code(),
            Self::Object(_) | Self::Gone => None,
        }
    }

    pub(super) fn reply(&self) -> Reply<'_, Stored> {
        match self {
            Self::Object(object) => Reply::Object(object),
            Self::Gone => Reply::Gone,
            Self::Failed(failure) => Reply::Failed(failure.clone()),
        }
    }
}

impl World {
    /// Does what is asked for, or says why not.
    pub(super) fn serve(&mut self, request: &Request) -> Answer {
        match request {
            Request::Fetch(key) => match self.objects.get(key) {
                Some(found) => Answer::Object(found.clone()),
                None => Answer::rejected(404, "not found"),
            },
            Request::Create(object) | Request::Apply(object) => {
                let key = Key::new(object.kind, object.namespace(), object.name());
                if self.objects.contains_key(&key) {
                    return Answer::rejected(409, "already exists");
                }
                self.insert(object.kind, object.body.clone());
                Answer::Object(self.objects[&key].clone())
            }
            Request::Patch { target, status, body } => self.patch(target, *status, body),
            Request::Delete { target, unchanged } => {
                let key = key_of(target);
                if let Some(wrong) = self.differs(target, *unchanged) {
                    return wrong;
                }
                self.remove(&key);
                // A namespace goes with what is in it, later.
                self.objects.get(&key).map_or(Answer::Gone, |left| Answer::Object(left.clone()))
            }
        }
    }

    fn patch(&mut self, target: &Target, status: bool, body: &Value) -> Answer {
        if let Some(wrong) = self.differs(target, true) {
            return wrong;
        }
        let key = key_of(target);
        let meta = self.objects[&key].json["metadata"].clone();
        if status {
            self.merge_status(&key, body);
        } else {
            let adds = |one: &Value| !meta["finalizers"].as_array().is_some_and(|had| had.contains(one));
            let finalizers = body["metadata"]["finalizers"].as_array();
            if !meta["deletionTimestamp"].is_null() && finalizers.is_some_and(|all| all.iter().any(adds)) {
                return Answer::rejected(
                    422,
                    "no new finalizers can be added if the object is being deleted",
                );
            }
            self.merge(&key, body);
        }
        // Without its last finalizer an object that is being deleted is gone, and is shown a last time.
        let last = || self.nacre.last_gone.clone().expect("what was there and is not was deleted");
        Answer::Object(self.objects.get(&key).cloned().unwrap_or_else(last))
    }

    /// Why a write to exactly this object, as of its version, cannot be done.
    fn differs(&self, target: &Target, as_of_version: bool) -> Option<Answer> {
        let Some(found) = self.objects.get(&key_of(target)) else {
            return Some(Answer::rejected(404, "not found"));
        };
        let meta = &found.json["metadata"];
        let stale = as_of_version && meta["resourceVersion"] != json!(target.resource_version);
        (meta["uid"] != json!(target.uid) || stale)
            .then(|| Answer::rejected(409, "the object has been modified"))
    }

    /// How many objects of a kind there ever were.
    pub(crate) fn births(&self, kind: Kind) -> u32 {
        self.births.get(&kind).copied().unwrap_or_default()
    }
}

pub(super) fn key_of(target: &Target) -> Key {
    Key::new(target.kind, &target.namespace, &target.name)
}
