//! The API server's side: what it does about a write, and what it says.

use api::Kind;
use planner::{Action, Key, Target};
use serde_json::{Value, json};

use super::{Apart, key_of_action, target_of};
use crate::world::nacre::key_of;
use crate::world::{ADMIN, World};

/// What the API server says to a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Done,
    NotFound,
    Conflict,
    Forbidden,
}

impl Apart {
    /// What the API server does and says.
    pub(super) fn send(&mut self, action: &Action) -> Answer {
        let key = key_of_action(action);
        let found = self.real.objects.get(&key).map(|stored| stored.json.clone());
        if let Action::Create(object) | Action::Apply(object) = action {
            if found.is_some() {
                return Answer::Conflict;
            }
            self.real.insert(object.kind, object.body.clone());
            return Answer::Done;
        }
        let (Some(found), Some(target)) = (found, target_of(action)) else { return Answer::NotFound };
        let meta = &found["metadata"];
        let version = match action {
            Action::Delete(_) => None,
            Action::DeleteUnchanged(_) => Some(json!(target.resource_version)),
            _ => Some(self.version(target)),
        };
        if meta["uid"] != json!(target.uid)
            || version.is_some_and(|version| version != meta["resourceVersion"])
        {
            return Answer::Conflict;
        }
        match action {
            Action::Create(_) | Action::Apply(_) => {}
            Action::Hold(_, finalizer) => {
                if !meta["deletionTimestamp"].is_null() {
                    return Answer::Forbidden;
                }
                let mut finalizers = self.finalizers(target, finalizer);
                finalizers.push((*finalizer).to_owned());
                self.set_finalizers(&key, meta, &finalizers, finalizer);
            }
            Action::Release(_, finalizer) => {
                let rest = self.finalizers(target, finalizer);
                self.set_finalizers(&key, meta, &rest, finalizer);
            }
            Action::Patch(_, change) => self.real.merge(&key, change),
            Action::PatchStatus(_, change) => self.real.merge_status(&key, change),
            Action::Delete(_) | Action::DeleteUnchanged(_) => self.real.remove(&key),
        }
        Answer::Done
    }

    /// A list is replaced as a whole: what others have put there meanwhile must not get lost, nor come back.
    fn set_finalizers(&mut self, key: &Key, meta: &Value, finalizers: &[String], own: &str) {
        let had: Vec<_> =
            meta["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let foreign = |one: &&str| *one != own;
        let before: Vec<_> = had.iter().copied().filter(foreign).collect();
        let after: Vec<_> = finalizers.iter().map(String::as_str).filter(foreign).collect();
        if before != after {
            self.real.complain(&format!("somebody else's finalizers {before:?} become {after:?}: {key:?}"));
        }
        self.real.set_finalizers(key, finalizers);
    }

    /// A tenant's object as nacre has heard of it, if it has: a plan goes on from that.
    fn latest(&self, target: &Target) -> Option<&Value> {
        let ours = target.kind.group() == Kind::NonAdminBackup.group();
        let known = self.seen.objects.get(&key_of(target)).map(|stored| &stored.json["metadata"]);
        known.filter(|known| ours && known["uid"] == json!(target.uid))
    }

    /// The version nacre sends: that of its picture for tenants' objects, else the one the plan was made with.
    fn version(&self, target: &Target) -> Value {
        let known = self.latest(target);
        known.map_or_else(|| json!(target.resource_version), |known| known["resourceVersion"].clone())
    }

    /// The finalizers that nacre knows of, but for its own.
    fn finalizers(&self, target: &Target, own: &str) -> Vec<String> {
        let known =
            self.latest(target).map(|meta| meta["finalizers"].as_array().cloned().unwrap_or_default());
        let known = known.map(|all| all.iter().filter_map(Value::as_str).map(str::to_owned).collect());
        let mut all: Vec<String> = known.unwrap_or_else(|| target.finalizers.clone());
        all.retain(|one| one != own);
        all
    }

    /// Asks Velero to delete what is gone already: nobody's business any more.
    pub(super) fn is_in_vain(&self, action: &Action) -> bool {
        let Action::Create(object) = action else { return false };
        let backup = object.body["spec"]["backupName"].as_str().unwrap_or_default();
        let gone = !self.real.objects.contains_key(&Key::new(Kind::Backup, ADMIN, backup));
        object.kind == Kind::DeleteBackupRequest && gone
    }

    pub(super) fn is_there(&self, target: &Target) -> bool {
        let found = self.real.objects.get(&key_of(target));
        found.is_some_and(|found| found.json["metadata"]["uid"] == json!(target.uid))
    }

    pub(super) fn is_current(&self, action: &Action) -> bool {
        target_of(action).is_none_or(|target| {
            let found = self.real.objects.get(&key_of(target));
            found.is_some_and(|found| found.json["metadata"]["resourceVersion"] == self.version(target))
        })
    }
}

impl World {
    /// How many objects of a kind there ever were.
    pub(crate) fn births(&self, kind: Kind) -> u32 {
        self.births.get(&kind).copied().unwrap_or_default()
    }
}
