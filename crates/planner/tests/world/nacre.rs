//! nacre in the world: woken, deciding, carrying out plans as the engine does, forgetting everything in a crash.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use api::Kind;
use jiff::{SignedDuration, Timestamp};
use planner::{Action, Key, Plan, Target, Trouble, backup, copies, download, location, restore, sync};
use serde_json::{Value, json};

use super::tape::Op;
use super::trace::{shown_action, shown_event};
use super::trouble::Refused;
use super::{ADMIN, World, short};

/// More decisions than any story needs before all is quiet.
const ENDLESS: usize = 2_000;

/// Changes a plan into one with a bug.
pub(crate) type Sabotage = fn(Plan) -> Plan;

/// What nacre has in its memory, and how it is being treated.
#[expect(clippy::struct_excessive_bools, reason = "each is a hardship of its own")]
#[derive(Clone, Default)]
pub(super) struct Nacre {
    pub(super) woken: VecDeque<Key>,
    pub(super) timers: BTreeMap<Key, Timestamp>,
    /// Whom the plan that is being carried out is about, while that need not hear of its own writes.
    pub(super) acting_for: Option<Key>,
    pub(super) down: bool,
    /// Not zero while what happens belongs to something else that is taped, or is nacre's own doing.
    pub(super) acting: u32,
    /// How often it has waited a moment since it was last at rest.
    pub(super) moments: u32,
    /// How many writes it has made.
    writes: usize,
    /// The write before which it crashes.
    dies_before: Option<usize>,
    /// Whether whoever was just decided about is woken by its own writes all the same.
    hears_itself: bool,
    /// Where set, whom it decides about next is shuffled.
    shuffle: Option<u64>,
    sabotage: Option<Sabotage>,
    pub(super) is_yet_to_see_namespaces: bool,
    /// The chore that brings positions up to date is running.
    positions_are_due: bool,
    /// What the API server does not take, with what answer.
    pub(super) refuses: Vec<Refused>,
    /// What it did not take when nacre last tried.
    pub(super) troubles: BTreeMap<Key, Arc<Trouble>>,
    /// What it did that it must never do.
    complaints: Vec<String>,
}

impl World {
    /// Lets nacre act until it has nothing more to do, and checks that it has behaved.
    pub(crate) fn settle(&mut self) {
        self.rest();
        self.complain_of_what_was_missed();
        self.complain_of_what_is_too_large();
        let complaints = self.complaints();
        assert!(complaints.is_empty(), "{}\n\nnacre did:\n{}", complaints.join("\n"), self.trace.join("\n"));
    }

    /// Time passes, and nacre looks again when it said it would.
    pub(crate) fn pass(&mut self, time: Duration) {
        self.rest_for(time);
        self.settle();
    }

    /// Lets nacre act until it has nothing more to do; what it does wrong is in `complaints`.
    pub(crate) fn rest(&mut self) {
        self.note(|| Op::Rest);
        self.wake_by_timers();
        for _ in 0..ENDLESS {
            let Some(key) = self.next() else { return };
            let plan = self.decide(&key);
            self.within(|world| world.carry_out(&key, &plan));
            self.namespaces_go();
        }
        self.complain("nacre does not come to rest");
        self.nacre.woken.clear();
    }

    /// Lets time pass without looking at complaints.
    pub(crate) fn rest_for(&mut self, time: Duration) {
        self.note(|| Op::RestFor(time));
        self.within(|world| {
            world.rest();
            let end = world.now + SignedDuration::try_from(time).unwrap();
            while let Some(due) = world.nacre.timers.values().min().copied().filter(|due| *due <= end) {
                world.now = world.now.max(due);
                world.rest();
            }
            world.now = end;
            world.rest();
        });
    }

    /// Time passes at a stroke, and nacre has not looked yet.
    pub(crate) fn jump(&mut self, time: Duration) {
        self.note(|| Op::Jump(time));
        self.now += SignedDuration::try_from(time).unwrap();
    }

    /// Somebody sets the clock. Who waits goes on waiting for as long as before: that is not counted by the clock.
    pub(crate) fn set_clock(&mut self, by: SignedDuration) {
        self.now += by;
        for due in self.nacre.timers.values_mut() {
            *due += by;
        }
    }

    /// What nacre has done so far that it must never do.
    pub(crate) fn complaints(&self) -> &[String] {
        &self.nacre.complaints
    }

    /// The background chore that brings the positions of everybody in the queue up to date.
    pub(crate) fn refresh_positions(&mut self) {
        use planner::view::View;
        self.nacre.positions_are_due = true;
        self.note(|| Op::Rest);
        let backups: Vec<_> = self.backup_queue.names().flat_map(|name| self.backups_of(name)).collect();
        let restores: Vec<_> = self.restore_queue.names().flat_map(|name| self.restores_of(name)).collect();
        self.wake(backups);
        self.wake(restores);
        self.rest();
        self.nacre.positions_are_due = false;
    }

    /// How many writes nacre has made.
    pub(crate) fn writes(&self) -> usize {
        self.nacre.writes
    }

    /// nacre will crash when it has made this many writes.
    pub(crate) fn dies_after(&mut self, writes: usize) {
        self.stop_tape();
        self.nacre.dies_before = Some(writes);
    }

    /// Whether nacre has crashed and was not started again.
    pub(crate) fn is_down(&self) -> bool {
        self.nacre.down
    }

    /// nacre starts and looks at everything.
    pub(crate) fn restart(&mut self) {
        self.stop_tape();
        self.nacre.down = false;
        self.nacre.dies_before = None;
        self.list_anew();
        let everybody = self.requests();
        self.wake(everybody);
    }

    /// nacre works with plans that have a bug.
    pub(crate) fn sabotage(&mut self, bug: Option<Sabotage>) {
        self.stop_tape();
        self.nacre.sabotage = bug;
    }

    /// nacre decides in an order of its own, and hears of its own writes or does not.
    pub(crate) fn shuffle(&mut self, order: u64, hears_itself: bool) {
        self.stop_tape();
        self.nacre.shuffle = Some(order);
        self.nacre.hears_itself = hears_itself;
    }

    /// The watch on namespaces falls behind the others.
    pub(crate) fn namespaces_are_not_seen(&mut self) {
        self.note(|| Op::SeeNamespaces(false));
        self.nacre.is_yet_to_see_namespaces = true;
    }

    /// It catches up.
    pub(crate) fn namespaces_are_seen(&mut self) {
        self.note(|| Op::SeeNamespaces(true));
        self.nacre.is_yet_to_see_namespaces = false;
        let spaces = self.objects.iter().filter(|(key, _)| key.kind == Kind::Namespace);
        for namespace in spaces.map(|(_, stored)| stored.typed.clone()).collect::<Vec<_>>() {
            self.changed(None, Some(&namespace));
        }
    }

    /// nacre also looks after tenants' locations, and after what Velero finds in storage.
    pub(crate) fn mind_storage(&mut self) {
        self.note(|| Op::MindStorage);
        self.minds_storage = true;
    }

    /// The chore that removes what has outlived its owner.
    pub(crate) fn collect_garbage(&mut self) -> Vec<String> {
        let leftovers = planner::gc::leftovers(self);
        let shown = leftovers.iter().map(|target| short(&format!("{} {}", target.kind.name(), target.name)));
        let shown = shown.collect();
        self.note(|| Op::Collect);
        self.within(|world| leftovers.iter().for_each(|target| world.remove(&key_of(target))));
        self.settle();
        shown
    }

    /// Notes something that must never happen.
    pub(super) fn complain(&mut self, about: &str) {
        self.nacre.complaints.push(short(about));
    }

    /// Wakes whom a change concerns.
    pub(super) fn wake_concerned(&mut self, mut concerned: Vec<Key>) {
        if let Some(about) = &self.nacre.acting_for {
            concerned.retain(|key| key != about);
        }
        self.wake(concerned);
    }

    pub(super) fn wake(&mut self, keys: Vec<Key>) {
        for key in keys {
            if !self.nacre.down && !self.nacre.woken.contains(&key) {
                self.nacre.woken.push_back(key);
            }
        }
    }

    fn next(&mut self) -> Option<Key> {
        let Some(seed) = self.nacre.shuffle.as_mut() else {
            return self.nacre.woken.pop_front();
        };
        // A linear congruential generator: any order will do, as long as it is the same next time.
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let many = u64::try_from(self.nacre.woken.len()).unwrap().max(1);
        self.nacre.woken.remove(usize::try_from((*seed >> 33) % many).unwrap())
    }

    pub(super) fn wake_by_timers(&mut self) {
        let due = self.nacre.timers.iter().filter(|(_, due)| **due <= self.now);
        let due: Vec<_> = due.map(|(key, _)| key.clone()).collect();
        self.nacre.timers.retain(|_, due| *due > self.now);
        self.wake(due);
    }

    pub(super) fn decide(&self, key: &Key) -> Plan {
        let (namespace, name, position_due) = (&key.namespace, &key.name, self.nacre.positions_are_due);
        let plan = match key.kind {
            Kind::DownloadRequest if key.namespace != ADMIN => {
                download::observe_shown(self, namespace, name).map(|seen| download::decide(&seen))
            }
            kind if kind.group() == Kind::Backup.group() && key.namespace != ADMIN => {
                copies::observe(self, key).map(|seen| copies::decide(&seen))
            }
            Kind::NonAdminBackup => backup::observe(self, namespace, name)
                .map(|seen| backup::decide(&backup::Observed { position_due, ..seen })),
            Kind::NonAdminRestore => restore::observe(self, namespace, name)
                .map(|seen| restore::decide(&restore::Observed { position_due, ..seen })),
            Kind::NonAdminDownloadRequest => {
                download::observe(self, namespace, name).map(|seen| download::decide(&seen))
            }
            Kind::DownloadRequest => {
                download::observe_leftover(self, name).map(|seen| download::decide_leftover(&seen))
            }
            // Where a story is not about storage, tenants' locations and what is found in them are as it says.
            Kind::NonAdminBackupStorageLocation | Kind::Backup if !self.minds_storage => None,
            Kind::NonAdminBackupStorageLocation => {
                location::observe(self, namespace, name).map(|seen| location::decide(&seen))
            }
            Kind::Backup => sync::decide(self, name).map(|(_, plan)| plan),
            other => panic!("nobody decides about a {}", other.name()),
        };
        let plan = plan.unwrap_or_default();
        match self.nacre.sabotage {
            Some(bug) => bug(plan),
            None => plan,
        }
    }

    pub(super) fn requests(&self) -> Vec<Key> {
        let ours = |key: &&Key| match key.kind {
            _ if key.namespace != ADMIN && key.kind.group() == Kind::Backup.group() => true,
            Kind::NonAdminBackup
            | Kind::NonAdminRestore
            | Kind::NonAdminDownloadRequest
            | Kind::DownloadRequest => true,
            Kind::NonAdminBackupStorageLocation | Kind::Backup => self.minds_storage,
            _ => false,
        };
        let mut all: Vec<_> = self.objects.keys().filter(ours).cloned().collect();
        all.extend(copies::everything(self));
        all.sort();
        all.dedup();
        all
    }

    /// Whoever was not woken, and will not be by a timer, must have nothing to do. A position in the queue is the
    /// business of a chore.
    pub(crate) fn complain_of_what_was_missed(&mut self) {
        if self.nacre.down {
            return;
        }
        let unplanned = self.requests().into_iter().filter(|key| !self.nacre.timers.contains_key(key));
        for key in unplanned.collect::<Vec<_>>() {
            let mut actions = self.decide(&key).actions;
            actions.retain(|action| !only_a_position(action));
            if !actions.is_empty() {
                let missed: Vec<_> = actions.iter().map(|action| self.described(action)).collect();
                self.complain(&format!(
                    "nobody woke {} {}/{} to: {missed:?}",
                    key.kind.name(),
                    key.namespace,
                    key.name
                ));
            }
        }
    }

    fn carry_out(&mut self, key: &Key, plan: &Plan) {
        match plan.wake {
            // As the engine has it: what is half done comes first.
            Some(delay) if delay.is_zero() => self.nacre.woken.push_front(key.clone()),
            Some(delay) => {
                let due = self.now + SignedDuration::try_from(delay).unwrap();
                self.nacre.timers.insert(key.clone(), due);
            }
            None => {
                self.nacre.timers.remove(key);
            }
        }
        for action in &plan.actions {
            if self.is_refused(key, action) {
                return;
            }
            if self.nacre.dies_before == Some(self.nacre.writes) {
                self.trace.push("crash".to_owned());
                self.nacre.down = true;
                self.nacre.woken.clear();
                self.nacre.timers.clear();
                self.nacre.troubles.clear();
                return;
            }
            self.nacre.writes += 1;
            self.check_rules(key, action);
            // As the engine has it: only a deletion leaves something to decide about at once.
            let quiet = !self.nacre.hears_itself && !matches!(action, Action::Delete(_));
            self.nacre.acting_for = quiet.then(|| key.clone());
            let done = self.act(action);
            self.nacre.acting_for = None;
            let shown = self.described(action);
            self.trace.push(if done { shown } else { format!("{shown} (nothing to do)") });
        }
        self.trouble_is_over(key);
        self.trace.extend(plan.events.iter().map(shown_event));
    }

    pub(super) fn described(&self, action: &Action) -> String {
        let status = match action {
            Action::PatchStatus(target, _) => {
                self.objects.get(&key_of(target)).map_or(Value::Null, |stored| stored.json["status"].clone())
            }
            _ => Value::Null,
        };
        shown_action(action, &status)
    }

    /// Carries out one action. Returns whether there was anything to do.
    fn act(&mut self, action: &Action) -> bool {
        match action {
            Action::Create(object) | Action::Apply(object) => {
                let key = Key::new(object.kind, object.namespace(), object.name());
                let absent = !self.objects.contains_key(&key);
                if absent {
                    self.insert(object.kind, object.body.clone());
                }
                absent
            }
            Action::Hold(target, finalizer) => self.on(target, |world, key, found| {
                world.expect_current(target, found);
                if !found["metadata"]["deletionTimestamp"].is_null() {
                    world.complain(&format!("the API server forbids to hold {} on its way out", target.name));
                    return;
                }
                let mut finalizers = target.finalizers.clone();
                finalizers.push((*finalizer).to_owned());
                world.set_finalizers(key, &finalizers);
            }),
            Action::Release(target, finalizer) => self.on(target, |world, key, found| {
                world.expect_current(target, found);
                let rest = target.finalizers.iter().filter(|one| one != finalizer).cloned();
                world.set_finalizers(key, &rest.collect::<Vec<_>>());
            }),
            Action::Patch(target, change) => self.on(target, |world, key, _| world.merge(key, change)),
            Action::PatchStatus(target, change) => {
                self.on(target, |world, key, _| world.merge_status(key, change))
            }
            Action::Delete(target) => self.on(target, |world, key, _| world.remove(key)),
            Action::DeleteUnchanged(target) => self.on(target, |world, key, found| {
                world.expect_current(target, found);
                world.remove(key);
            }),
        }
    }

    /// Does something to exactly this object, if it is still there.
    fn on(&mut self, target: &Target, act: impl FnOnce(&mut Self, &Key, &Value)) -> bool {
        let key = key_of(target);
        let found = self.objects.get(&key).map(|stored| stored.json.clone());
        match found.filter(|found| found["metadata"]["uid"] == json!(target.uid)) {
            Some(found) => {
                act(self, &key, &found);
                true
            }
            None => false,
        }
    }

    /// A list is replaced as a whole, so the API server wants to know which version was seen. Nobody else acts while
    /// a plan is carried out here: a conflict is of nacre's own making.
    fn expect_current(&mut self, target: &Target, found: &Value) {
        if found["metadata"]["resourceVersion"] != json!(target.resource_version) {
            self.complain(&format!(
                "nacre is in conflict with itself about {}/{}",
                target.namespace, target.name
            ));
        }
    }
}

pub(super) fn key_of(target: &Target) -> Key {
    Key::new(target.kind, &target.namespace, &target.name)
}

/// Whether a write would do no more than show another position, nacre's estimate or Velero's own.
fn only_a_position(action: &Action) -> bool {
    let Action::PatchStatus(_, body) = action else {
        return false;
    };
    let only = |json: &Value, name: &str| {
        json.as_object().is_some_and(|fields| fields.len() == 1 && fields.contains_key(name))
    };
    body["status"].as_object().is_some_and(|status| {
        status.iter().all(|(name, change)| match name.as_str() {
            "queueInfo" => true,
            "veleroBackup" => only(change, "status") && only(&change["status"], "queuePosition"),
            _ => false,
        })
    })
}
