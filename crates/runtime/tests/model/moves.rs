//! The possible next steps of a state, and their results.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use api::{Kind, labels};
use planner::{Action, Key};
use serde_json::{Value, json};

use crate::setups::Setup;
use crate::world::World;
use crate::world::split::{Fate, Split};

/// The world, and what everybody may still do.
#[derive(Clone)]
pub(crate) struct State {
    pub(crate) split: Split,
    pub(crate) left: Left,
    /// Which steps of the setup were taken already.
    taken: u64,
    /// Requests, by uid, that somebody wanted deleted, and those whose data too.
    pub(crate) asked: BTreeSet<String>,
    pub(crate) asked_with_data: BTreeSet<String>,
    /// Runs, by uid, that retention marked when there was no newer good one.
    pub(crate) wrongly_marked: BTreeSet<String>,
    /// How many backups of another namespace Velero was given while a request of one that has used nothing waited for its
    /// turn, by the uid of that request.
    passed: BTreeMap<(String, String), u8>,
}

/// How often something may still happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Left {
    /// nacre crashes, or an answer is lost.
    pub(crate) faults: u8,
    /// nacre hears of something later than it could.
    pub(crate) delays: u8,
    /// Somebody hostile does something.
    pub(crate) tricks: u8,
    /// Somebody with good intentions does something.
    pub(crate) wishes: u8,
    /// A minute and more goes by.
    pub(crate) minutes: u8,
}

/// Something that a tenant or an administrator can do, once.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) hostile: bool,
    pub(crate) possible: fn(&World) -> bool,
    pub(crate) act: fn(&mut World),
}

/// What Velero does next, if it is fair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Start(String),
    Complete(String),
    Delete,
    Tidy,
    Reach(String),
}

/// One thing that happens.
#[derive(Clone, Debug)]
pub(crate) enum Move {
    Restart,
    Hear(Key),
    Write(Key, Fate),
    Begin(Key),
    Velero(Work, bool),
    Step(usize, bool),
    Minute,
    Crash,
}

impl State {
    /// Where a setup begins.
    pub(crate) fn new(setup: &Setup, bug: Option<runtime::Bug>) -> Self {
        Self {
            split: Split::new(setup.start.clone(), bug),
            left: setup.left,
            taken: 0,
            asked: BTreeSet::new(),
            asked_with_data: BTreeSet::new(),
            wrongly_marked: BTreeSet::new(),
            passed: BTreeMap::new(),
        }
    }

    /// Everything that can happen now. What comes first is what happens if everybody is fair; whether it is says the
    /// second part.
    pub(crate) fn moves(&self, setup: &Setup) -> Vec<(Move, bool)> {
        let mut moves = Vec::new();
        let down = self.split.is_down();
        let mut busy = false;
        if down {
            moves.push((Move::Restart, true));
        } else {
            moves.extend(self.split.news().into_iter().map(|key| (Move::Hear(key), true)));
            for key in self.split.flying() {
                busy = true;
                moves.push((Move::Write(key.clone(), Fate::Arrives), true));
                if self.left.faults > 0 {
                    moves.push((Move::Write(key, Fate::Unanswered), false));
                }
            }
            for key in self.split.enqueued() {
                busy = true;
                moves.push((Move::Begin(key), true));
            }
        }
        let late = !down && self.left.delays > 0;
        for work in works(&self.split.real) {
            moves.push((Move::Velero(work.clone(), false), true));
            if late {
                moves.push((Move::Velero(work, true), false));
            }
        }
        for (at, step) in setup.steps.iter().enumerate() {
            let left = if step.hostile { self.left.tricks } else { self.left.wishes };
            if left > 0 && self.taken & (1 << at) == 0 && (step.possible)(&self.split.real) {
                moves.push((Move::Step(at, false), false));
                if late {
                    moves.push((Move::Step(at, true), false));
                }
            }
        }
        if self.left.minutes > 0 && self.split.next_timer().is_some() {
            moves.push((Move::Minute, false));
        }
        if busy && self.left.faults > 0 {
            moves.push((Move::Crash, false));
        }
        moves
    }

    /// How it is handled.
    pub(crate) fn after(&self, setup: &Setup, step: &Move) -> Self {
        let mut next = self.clone();
        match step {
            Move::Restart => next.split.restart(),
            Move::Hear(key) => next.split.deliver(key),
            Move::Begin(key) => next.split.begin(key),
            Move::Write(key, fate) => {
                next.left.faults -= u8::from(*fate != Fate::Arrives);
                next.note_passed(key);
                let marks = next.marks(key);
                next.split.write(key, *fate);
                next.note_marks(marks);
                // What was rightly deleted takes along what was made for it.
                next.note_wishes();
            }
            Move::Velero(work, late) => next.outside(*late, |world| do_work(world, work)),
            Move::Step(at, late) => {
                let step = &setup.steps[*at];
                next.taken |= 1 << at;
                let left = if step.hostile { &mut next.left.tricks } else { &mut next.left.wishes };
                *left -= 1;
                next.outside(*late, step.act);
                next.note_wishes();
            }
            Move::Minute => {
                next.left.minutes -= 1;
                next.split.pass(Duration::from_secs(70));
            }
            Move::Crash => {
                next.left.faults -= 1;
                next.split.crash();
            }
        }
        next.split.decide_on_nothing();
        next
    }

    /// The state as a number.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.split.fingerprint(), self.left, self.taken, &self.asked, &self.asked_with_data, &self.passed)
            .hash(&mut hasher);
        self.wrongly_marked.hash(&mut hasher);
        hasher.finish()
    }

    /// For people.
    pub(crate) fn reported(&self, setup: &Setup, step: &Move) -> String {
        let named = |key: &Key| format!("{} {}/{}", key.kind.name(), key.namespace, key.name);
        let line = match step {
            Move::Write(key, fate) => {
                let write = self.split.next_write(key).map(|(_, action)| action);
                format!("nacre writes ({fate:?}) about {}: {write:?}", named(key))
            }
            Move::Begin(key) => format!("nacre decides about {}", named(key)),
            Move::Hear(key) => format!("nacre hears of {}", named(key)),
            Move::Step(at, late) => {
                format!("{}{}", setup.steps[*at].name, if *late { ", unheard" } else { "" })
            }
            other => format!("{other:?}"),
        };
        crate::world::short(&line).chars().take(300).collect()
    }

    fn outside(&mut self, late: bool, act: impl FnOnce(&mut World)) {
        self.left.delays -= u8::from(late);
        self.split.outside(act);
        if !late && !self.split.is_down() {
            self.split.deliver_all();
        }
    }

    /// The run that a write is about to mark, if there is no newer good one now.
    fn marks(&self, about: &Key) -> Option<String> {
        let (_, action) = self.split.next_write(about)?;
        let world = &self.split.real;
        crate::rules::wrong_to_mark(world, action)?;
        Some(uid(&world.get(&format!("nab {}/{}", action.key().namespace, action.key().name))))
    }

    /// Writes down which marks are to be withdrawn: those that were wrong, and are still there.
    fn note_marks(&mut self, marked: Option<String>) {
        self.wrongly_marked.extend(marked);
        let world = &self.split.real;
        let is_marked = |wanted: &String| {
            world
                .everything()
                .any(|(_, object)| uid(object) == *wanted && object["spec"]["deleteBackup"] == json!(true))
        };
        self.wrongly_marked.retain(is_marked);
    }

    /// Writes down whom a backup goes before that is about to be handed over.
    fn note_passed(&mut self, about: &Key) {
        let hands_over =
            |action: &Action| matches!(action, Action::Create(object) if object.kind == Kind::Backup);
        if !self.split.next_write(about).is_some_and(|(_, action)| hands_over(action)) {
            return;
        }
        let world = &self.split.real;
        let has_used_nothing = |namespace: &str| {
            let mark =
                |object: &Value| object["metadata"]["annotations"][labels::NAB_NAMESPACE] == json!(namespace);
            !world.everything().any(|(key, object)| key.kind == Kind::Backup && mark(object))
        };
        let waits = |(key, object): &(&Key, &Value)| {
            key.kind == Kind::NonAdminBackup
                && key.namespace != about.namespace
                && object["status"]["phase"] == "New"
                && object["metadata"]["deletionTimestamp"].is_null()
                && has_used_nothing(&key.namespace)
        };
        let waiting: Vec<_> = world.everything().filter(waits).map(|(_, object)| uid(object)).collect();
        for uid in waiting {
            *self.passed.entry((uid, about.namespace.clone())).or_default() += 1;
        }
    }

    /// Whoever has used nothing waits for at most one backup of each other namespace.
    pub(crate) fn passed_twice(&self) -> Option<String> {
        let twice = self.passed.iter().find(|(_, number)| **number > 1);
        twice.map(|((_, namespace), number)| {
            format!("{number} of {namespace} went before somebody who waited")
        })
    }

    /// Writes down who wants what deleted.
    fn note_wishes(&mut self) {
        let wishes: Vec<_> = self
            .split
            .real
            .everything()
            .filter(|(key, _)| key.kind.group() == Kind::NonAdminBackup.group())
            .map(|(_, object)| {
                let is_deleting = !object["metadata"]["deletionTimestamp"].is_null();
                (uid(object), is_deleting, object["spec"]["deleteBackup"] == json!(true))
            })
            .collect();
        for (uid, is_deleting, with_data) in wishes {
            if is_deleting {
                self.asked.insert(uid.clone());
            }
            if with_data {
                self.asked_with_data.insert(uid);
            }
        }
    }
}

fn uid(object: &Value) -> String {
    object["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
}

/// What Velero has to do.
fn works(world: &World) -> Vec<Work> {
    let mut works = Vec::new();
    for (key, object) in world.everything() {
        let phase = object["status"]["phase"].as_str().unwrap_or_default();
        let is_deleting = !object["metadata"]["deletionTimestamp"].is_null();
        match (key.kind, phase) {
            (Kind::Restore, _) if is_deleting => works.push(Work::Tidy),
            (Kind::Backup | Kind::Restore, "") => works.push(Work::Start(key.name.clone())),
            (Kind::Backup | Kind::Restore, "InProgress") => works.push(Work::Complete(key.name.clone())),
            (Kind::DeleteBackupRequest, "" | "New") => works.push(Work::Delete),
            (Kind::BackupStorageLocation, "") => works.push(Work::Reach(key.name.clone())),
            _ => {}
        }
    }
    works.dedup();
    works
}

fn do_work(world: &mut World, work: &Work) {
    match work {
        Work::Start(name) => world.velero_starts(name),
        Work::Complete(name) => world.velero_completes_one_item(name),
        Work::Delete => world.velero_deletes(),
        Work::Tidy => world.velero_tidies(),
        Work::Reach(name) => world.edit(&format!("bsl {name}"), json!({"status": {"phase": "Available"}})),
    }
}
