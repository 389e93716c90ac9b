//! Fingerprints of states: a hash of everything that influences what can happen next.

use std::hash::{DefaultHasher, Hash, Hasher};

use api::Kind;
use planner::{Action, Plan, Target};
use serde_json::{Value, json};

use super::Split;
use crate::world::store::Stored;

impl Split {
    /// All that matters for what can happen next, as a number. Versions are left out, but not whether they are current.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        let mut mix = |value: &dyn Fn(&mut DefaultHasher)| value(&mut hasher);
        for (key, stored) in &self.real.objects {
            mix(&|hasher| {
                key.hash(hasher);
                fingerprint(key.kind, stored).hash(hasher);
            });
        }
        for key in self.news() {
            mix(&|hasher| {
                key.hash(hasher);
                self.observed.get(&key).map(|stored| fingerprint(key.kind, stored)).hash(hasher);
            });
        }
        for (key, (flight, _, fingerprint)) in &self.flights {
            let (plan, done) = flight.progress();
            let current: Vec<_> = (done..plan.actions.len()).map(|at| self.is_current(plan, at)).collect();
            mix(&|hasher| (key, *fingerprint, done, &current).hash(hasher));
        }
        mix(&|hasher| self.unreported.hash(hasher));
        let work = &self.runtime.work;
        mix(&|hasher| (self.enqueued(), work.timers(), self.down, self.real.now).hash(hasher));
        let unknown = self.runtime.unknown_writes();
        mix(&|hasher| (unknown, &self.real.made_for, &self.real.births).hash(hasher));
        hasher.finish()
    }

    fn is_current(&self, plan: &Plan, at: usize) -> bool {
        let action = &plan.actions[at];
        target_of(action).is_none_or(|target| {
            let found = self.real.objects.get(&action.key());
            let version = self.runtime.as_of(plan, at, target).resource_version;
            found.is_some_and(|found| found.json["metadata"]["resourceVersion"] == json!(version))
        })
    }
}

fn fingerprint(kind: Kind, stored: &Stored) -> u64 {
    *stored.fingerprint.get_or_init(|| {
        let mut hasher = DefaultHasher::new();
        // Nobody looks at the generation of what is not a tenant's.
        let generation = kind.group() != Kind::NonAdminBackup.group();
        mix(&stored.json, generation, &mut hasher);
        hasher.finish()
    })
}

fn mix(json: &Value, generation: bool, hasher: &mut DefaultHasher) {
    match json {
        Value::Object(fields) => {
            for (name, value) in fields {
                if name != "resourceVersion" && !(generation && name == "generation") {
                    name.hash(hasher);
                    mix(value, generation, hasher);
                }
            }
        }
        Value::Array(items) => {
            items.len().hash(hasher);
            for item in items {
                mix(item, generation, hasher);
            }
        }
        Value::String(text) => text.hash(hasher),
        Value::Bool(value) => value.hash(hasher),
        Value::Null => 0_u8.hash(hasher),
        Value::Number(number) => number.to_string().hash(hasher),
    }
}

pub(super) fn of_plan(plan: &Plan) -> u64 {
    let mut hasher = DefaultHasher::new();
    plan.again.hash(&mut hasher);
    for action in &plan.actions {
        std::mem::discriminant(action).hash(&mut hasher);
        action.key().hash(&mut hasher);
        if let Some(target) = target_of(action) {
            (&target.uid, &target.finalizers).hash(&mut hasher);
        }
        match action {
            Action::Create(object) | Action::Apply(object) => mix(&object.body, true, &mut hasher),
            Action::Patch(_, body) | Action::PatchStatus(_, body) => mix(body, true, &mut hasher),
            Action::AddFinalizer(_, finalizer) | Action::RemoveFinalizer(_, finalizer) => {
                finalizer.hash(&mut hasher);
            }
            Action::Delete(_) | Action::DeleteUnchanged(_) => {}
        }
    }
    hasher.finish()
}

fn target_of(action: &Action) -> Option<&Target> {
    match action {
        Action::Create(_) | Action::Apply(_) => None,
        Action::AddFinalizer(target, _)
        | Action::RemoveFinalizer(target, _)
        | Action::Patch(target, _)
        | Action::PatchStatus(target, _)
        | Action::Delete(target)
        | Action::DeleteUnchanged(target) => Some(target),
    }
}
