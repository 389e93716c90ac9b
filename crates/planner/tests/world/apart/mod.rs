//! nacre and the API server apart: nacre decides on what it has heard, its plans are carried out write by write while
//! others act, and a write can go wrong in every way a network has. What the engine does about each answer is done here
//! in the same way.

mod print;
mod server;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use planner::{Action, Key, Plan, Target};
use serde_json::Value;

use super::World;
use super::nacre::key_of;
use super::store::Stored;
use server::Answer;

/// A cluster, and nacre with a picture of it that may be out of date.
#[derive(Clone)]
pub(crate) struct Apart {
    /// The cluster as it is. Nobody is woken in it.
    pub(crate) real: World,
    /// The cluster as nacre has heard of it, and what nacre has in mind.
    pub(super) seen: World,
    /// Plans that are being carried out, each about one object.
    flights: BTreeMap<Key, Flight>,
    /// What nacre tried to write without hearing whether it did: it looks before it decides again.
    unsure: BTreeMap<Key, Key>,
    bug: Option<Bug>,
}

/// Decides instead of nacre, wrongly.
pub(crate) type Bug = fn(&World, &Key, Plan) -> Plan;

#[derive(Clone)]
struct Flight {
    /// The uid of the object that was decided about.
    uid: String,
    plan: Arc<Plan>,
    /// How many of its actions were carried out.
    done: usize,
    print: u64,
}

/// What becomes of one write on its way to the API server and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fate {
    /// Nothing out of the ordinary.
    Arrives,
    /// The server never hears of it.
    Lost,
    /// The server does it, and nobody hears the answer.
    Unanswered,
    /// The server says that somebody else was faster, without need.
    Contested,
    /// The server has trouble of its own, and says so.
    Failed,
}

impl Apart {
    /// Parts a world that has come to rest.
    pub(crate) fn new(world: World, bug: Option<Bug>) -> Self {
        let seen = world.clone();
        let mut real = world;
        real.nacre.down = true;
        Self { real, seen, flights: BTreeMap::new(), unsure: BTreeMap::new(), bug }
    }

    /// Somebody who is not nacre does something; nacre hears of it later.
    pub(crate) fn outside(&mut self, act: impl FnOnce(&mut World)) {
        act(&mut self.real);
        self.real.namespaces_go();
    }

    /// What nacre has yet to hear of.
    pub(crate) fn news(&self) -> Vec<Key> {
        let (real, seen) = (&self.real.objects, &self.seen.objects);
        let changed =
            real.iter().filter(|(key, stored)| !seen.get(*key).is_some_and(|old| same(old, stored)));
        let gone = seen.keys().filter(|key| !real.contains_key(*key));
        changed.map(|(key, _)| key).chain(gone).cloned().collect()
    }

    /// nacre hears of one object, as it is now.
    pub(crate) fn hear(&mut self, key: &Key) {
        if self.seen.nacre.down {
            return;
        }
        let now = self.real.objects.get(key).cloned();
        let before = self.seen.objects.get(key).cloned();
        match (before, now) {
            (Some(before), Some(now)) if same(&before, &now) => {}
            (Some(before), Some(now)) if uid(&before) == uid(&now) => {
                self.seen.objects.insert(key.clone(), now.clone());
                self.seen.changed(Some(&before.typed), Some(&now.typed));
            }
            (before, now) => {
                if let Some(before) = before {
                    self.seen.objects.remove(key);
                    self.seen.changed(Some(&before.typed), None);
                }
                if let Some(now) = now {
                    self.seen.objects.insert(key.clone(), now.clone());
                    self.seen.changed(None, Some(&now.typed));
                }
            }
        }
    }

    /// nacre hears of everything.
    pub(crate) fn hear_all(&mut self) {
        for key in self.news() {
            self.hear(&key);
        }
    }

    /// Whom nacre can decide about now.
    pub(crate) fn woken(&self) -> Vec<Key> {
        let mut woken: Vec<_> =
            self.seen.nacre.woken.iter().filter(|key| !self.flights.contains_key(*key)).cloned().collect();
        woken.sort();
        woken
    }

    /// Whose plans are being carried out.
    pub(crate) fn flying(&self) -> Vec<Key> {
        self.flights.keys().cloned().collect()
    }

    /// nacre decides about one object and begins to carry out what it decided.
    pub(crate) fn begin(&mut self, key: &Key) {
        if let Some(written) = self.unsure.remove(key) {
            self.hear(&written);
        }
        self.seen.nacre.woken.retain(|woken| woken != key);
        let plan = self.decided(key);
        if plan.actions.is_empty() {
            self.wait(key, &plan);
        } else {
            let (uid, print) = (self.uid_of(key), print::of_plan(&plan));
            self.flights.insert(key.clone(), Flight { uid, plan: Arc::new(plan), done: 0, print });
        }
    }

    fn decided(&self, key: &Key) -> Plan {
        let plan = self.seen.decide(key);
        match self.bug {
            Some(bug) => bug(&self.seen, key, plan),
            None => plan,
        }
    }

    /// nacre decides about everybody for whom there is nothing to do. Whatever changes later wakes them again.
    pub(crate) fn decide_on_nothing(&mut self) {
        for key in self.woken() {
            if !self.unsure.contains_key(&key) && self.decided(&key) == Plan::done() {
                self.seen.nacre.woken.retain(|woken| *woken != key);
            }
        }
    }

    /// The next write of a plan, and the uid of whom it is about.
    pub(crate) fn next_write(&self, key: &Key) -> Option<(&str, &Action)> {
        let flight = self.flights.get(key)?;
        Some((&flight.uid, flight.plan.actions.get(flight.done)?))
    }

    /// Sends the next write of a plan.
    pub(crate) fn write(&mut self, about: &Key, fate: Fate) {
        let Some(flight) = self.flights.get(about).cloned() else { return };
        let Some(action) = flight.plan.actions.get(flight.done) else { return };
        let key = key_of_action(action);
        let answer = match fate {
            Fate::Lost => return self.abandon(about, true),
            Fate::Failed => {
                self.seen.note_trouble(about, action, 500, String::new());
                return self.abandon(about, true);
            }
            Fate::Contested => Answer::Conflict,
            Fate::Arrives | Fate::Unanswered => {
                if !self.is_in_vain(action) {
                    self.real.check_rules(about, action);
                }
                let answer = self.send(action);
                self.real.namespaces_go();
                answer
            }
        };
        if fate == Fate::Unanswered {
            if !matches!(action, Action::Delete(_) | Action::DeleteUnchanged(_)) {
                self.unsure.insert(about.clone(), key);
            }
            return self.abandon(about, true);
        }
        let deletes = matches!(action, Action::Delete(_) | Action::DeleteUnchanged(_));
        match (answer, action) {
            // What is gone or replaced is forgotten; whoever was to be deleted or let go is.
            (Answer::Done, _) | (Answer::NotFound, Action::Delete(_) | Action::DeleteUnchanged(_)) => {
                self.seen.nacre.acting_for = (!deletes).then(|| about.clone());
                self.hear(&key);
                self.seen.nacre.acting_for = None;
            }
            (Answer::NotFound, Action::Release(..)) => {}
            (Answer::Conflict, Action::Delete(target)) if !self.is_there(target) => self.hear(&key),
            (Answer::NotFound, _) => return self.abandon(about, false),
            (Answer::Conflict, Action::DeleteUnchanged(_)) | (Answer::Forbidden, _) => {
                return self.abandon(about, true);
            }
            (Answer::Conflict, _) => {
                if self.real.objects.contains_key(&key) {
                    self.hear(&key);
                }
                return self.abandon(about, true);
            }
        }
        if flight.done + 1 == flight.plan.actions.len() {
            self.flights.remove(about);
            self.wait(about, &flight.plan);
        } else {
            self.flights.insert(about.clone(), Flight { done: flight.done + 1, ..flight });
        }
    }

    /// nacre is gone, with all it had in mind.
    pub(crate) fn crash(&mut self) {
        self.flights.clear();
        self.unsure.clear();
        self.seen.nacre.woken.clear();
        self.seen.nacre.timers.clear();
        self.seen.nacre.troubles.clear();
        self.seen.nacre.down = true;
    }

    /// Whether nacre is gone.
    pub(crate) fn is_down(&self) -> bool {
        self.seen.nacre.down
    }

    /// nacre starts, and looks at everything.
    pub(crate) fn restart(&mut self) {
        self.seen.nacre.down = false;
        self.seen.objects = self.real.objects.clone();
        self.seen.list_anew();
        let everybody = self.seen.requests();
        self.seen.wake(everybody);
    }

    /// Time passes, and whoever said so is decided about again.
    pub(crate) fn pass(&mut self, time: Duration) {
        self.real.jump(time);
        self.seen.now = self.real.now;
        self.seen.wake_by_timers();
    }

    /// When nacre wants to look again even if nothing happens.
    pub(crate) fn next_timer(&self) -> Option<Duration> {
        let due = self.seen.nacre.timers.values().min()?;
        Some(Duration::try_from(due.duration_since(self.real.now)).unwrap_or_default())
    }

    fn uid_of(&self, key: &Key) -> String {
        let known = self.seen.objects.get(key).map(|stored| &stored.json["metadata"]["uid"]);
        known.and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    /// What nacre did that it must never do.
    pub(crate) fn complaints(&self) -> &[String] {
        self.real.complaints()
    }

    /// What nobody has woken anybody for.
    pub(crate) fn missed(&self) -> Vec<String> {
        if self.bug.is_some() {
            // Whoever decides wrongly would not do what is missing.
            return Vec::new();
        }
        let mut seen = self.seen.clone();
        seen.complain_of_what_was_missed();
        seen.complaints().to_vec()
    }

    /// A plan is carried out.
    fn wait(&mut self, key: &Key, plan: &Plan) {
        self.seen.trouble_is_over(key);
        match plan.wake {
            Some(delay) if delay.is_zero() => self.seen.wake(vec![key.clone()]),
            Some(delay) => {
                // The earliest wish counts, and none is taken back.
                let due = self.real.now + jiff::SignedDuration::try_from(delay).unwrap();
                let timer = self.seen.nacre.timers.entry(key.clone()).or_insert(due);
                *timer = due.min(*timer);
            }
            None => {}
        }
    }

    fn abandon(&mut self, about: &Key, again: bool) {
        self.flights.remove(about);
        if again {
            self.seen.wake(vec![about.clone()]);
        }
    }
}

fn uid(stored: &Stored) -> &Value {
    &stored.json["metadata"]["uid"]
}

fn same(one: &Stored, other: &Stored) -> bool {
    Arc::ptr_eq(&one.json, &other.json)
}

fn target_of(action: &Action) -> Option<&Target> {
    match action {
        Action::Create(_) | Action::Apply(_) => None,
        Action::Hold(target, _)
        | Action::Release(target, _)
        | Action::Patch(target, _)
        | Action::PatchStatus(target, _)
        | Action::Delete(target)
        | Action::DeleteUnchanged(target) => Some(target),
    }
}

/// The object that a write is about.
pub(crate) fn key_of_action(action: &Action) -> Key {
    match (action, target_of(action)) {
        (_, Some(target)) => key_of(target),
        (Action::Create(object) | Action::Apply(object), _) => {
            Key::new(object.kind, object.namespace(), object.name())
        }
        _ => unreachable!("only what is created has no target"),
    }
}
