//! nacre and the API server split: nacre decides on what it has observed, its plans are carried out write by write while
//! others act, and a write can go wrong in every way a network has.

mod fingerprint;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api::Kind;
use planner::{Action, Key, Plan, Target};
use runtime::{Bug, Failure, Flight, MADE_ONCE_FOR, Request, Runtime};
use serde_json::Value;

use super::nacre::{list_into, observe, started, wake_by_policy};
use super::server::Answer;
use super::store::Stored;
use super::{ADMIN, World};

/// A cluster, and nacre with a cache of it that may be out of date.
#[derive(Clone)]
pub(crate) struct Split {
    /// The cluster as it is. Nobody is woken in it.
    pub(crate) real: World,
    pub(super) runtime: Runtime,
    /// What nacre has observed, object by object.
    observed: BTreeMap<Key, Stored>,
    /// NonAdminBackups that nacre wrote to, and whose watch events are yet to arrive: after those of others of the kind.
    unreported: BTreeSet<Key>,
    /// Plans that are being carried out, each about one object: with its uid, and with the plan as a number.
    flights: BTreeMap<Key, (Flight, String, u64)>,
    down: bool,
    /// How often it has waited a moment since it was last idle.
    pub(super) moments: u32,
    pub(super) is_yet_to_see_namespaces: bool,
}

/// What becomes of one write on its way to the API server and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fate {
    /// Nothing out of the ordinary.
    Arrives,
    /// It never reaches the server, and there is no reply.
    Lost,
    /// The server does it, and the reply is lost.
    Unanswered,
    /// The server answers a conflict, without need.
    Contested,
    /// The server answers an error of its own.
    Failed,
}

impl Split {
    /// Splits a world that is idle.
    pub(crate) fn new(world: World, bug: Option<Bug>) -> Self {
        let (mut runtime, observed) = (world.nacre.runtime.clone(), world.objects.clone());
        runtime.plant(bug);
        let mut real = world;
        real.nacre.down = true;
        Self {
            real,
            runtime,
            observed,
            unreported: BTreeSet::new(),
            flights: BTreeMap::new(),
            down: false,
            moments: 0,
            is_yet_to_see_namespaces: false,
        }
    }

    /// Somebody who is not nacre does something; nacre observes it later.
    pub(crate) fn outside(&mut self, act: impl FnOnce(&mut World)) {
        act(&mut self.real);
        self.real.namespaces_go();
    }

    /// What nacre has yet to observe.
    pub(crate) fn news(&self) -> Vec<Key> {
        let (real, seen) = (&self.real.objects, &self.observed);
        let changed =
            real.iter().filter(|(key, stored)| !seen.get(*key).is_some_and(|old| same(old, stored)));
        let gone = seen.keys().filter(|key| !real.contains_key(*key));
        let unseen = |key: &&Key| key.kind == Kind::Namespace && self.is_yet_to_see_namespaces;
        changed.map(|(key, _)| key).chain(gone).filter(|key| !unseen(key)).cloned().collect()
    }

    /// nacre observes one object, as it is now.
    pub(crate) fn deliver(&mut self, key: &Key) {
        if self.down {
            return;
        }
        let now = self.real.moment();
        let (before, after) = (self.observed.get(key).cloned(), self.real.objects.get(key).cloned());
        match (&before, &after) {
            (Some(before), Some(after)) if same(before, after) => return,
            (Some(before), after) if after.as_ref().is_none_or(|after| uid(before) != uid(after)) => {
                observe(&mut self.runtime, key, before, true, now);
            }
            _ => {}
        }
        if let Some(after) = &after {
            observe(&mut self.runtime, key, after, false, now);
        }
        match after {
            Some(after) => self.observed.insert(key.clone(), after),
            None => self.observed.remove(key),
        };
        self.fetch_credentials();
        self.report();
        self.drop_ignored();
    }

    /// Watch events of own writes arrive once everything of the kind has arrived that was stored before.
    fn report(&mut self) {
        let waits = self.news().iter().any(|key| key.kind == Kind::NonAdminBackup);
        if waits || self.down {
            return;
        }
        for key in std::mem::take(&mut self.unreported) {
            if let Some(found) = self.observed.get(&key) {
                observe(&mut self.runtime, &key, found, false, self.real.moment());
            }
        }
    }

    fn fetch_credentials(&mut self) {
        for name in self.runtime.state.named_credentials().into_keys() {
            let affected = self.runtime.state.set_credential(&name, self.real.credential(&name));
            self.runtime.work.enqueue(affected);
        }
    }

    /// What this world is not about is not decided about.
    fn drop_ignored(&mut self) {
        let ignored: Vec<_> =
            self.runtime.work.ready().filter(|key| self.real.is_ignored(key)).cloned().collect();
        for key in ignored {
            self.runtime.work.take(&key);
            self.runtime.work.done(&key, true);
        }
    }

    /// nacre observes everything.
    pub(crate) fn deliver_all(&mut self) {
        for key in self.news() {
            self.deliver(&key);
        }
    }

    /// What nacre can decide about now.
    pub(crate) fn enqueued(&self) -> Vec<Key> {
        let mut enqueued: Vec<_> = self.runtime.work.ready().cloned().collect();
        enqueued.sort();
        enqueued
    }

    /// Whose plans are being carried out.
    pub(crate) fn flying(&self) -> Vec<Key> {
        self.flights.keys().cloned().collect()
    }

    /// nacre decides about one object and begins to carry out what it decided.
    pub(crate) fn begin(&mut self, key: &Key) {
        self.runtime.work.take(key);
        let uid = self.uid_of(key);
        let flight = self.runtime.begin(key, self.real.moment());
        self.go_on(flight, uid);
    }

    /// Answers what is merely fetched, and keeps the flight if there is something to write.
    fn go_on(&mut self, mut flight: Flight, uid: String) {
        let now = self.real.moment();
        while let Some(request @ Request::Fetch(_)) = self.runtime.request(&flight) {
            let answer = self.real.serve(&request);
            self.runtime.on_reply(&mut flight, answer.reply(), now);
            if let (Request::Fetch(key), Answer::Object(found)) = (request, answer) {
                self.observed.insert(key.clone(), found);
                self.await_report(key);
            }
        }
        let about = flight.about.clone();
        if flight.is_done() {
            self.runtime.finish(flight, now);
            self.flights.remove(&about);
            self.real.answer_asks(&mut self.runtime);
        } else {
            let fingerprint = fingerprint::of_plan(flight.progress().0);
            self.flights.insert(about, (flight, uid, fingerprint));
        }
        self.drop_ignored();
    }

    /// nacre decides about everybody for whom there is nothing to do. Whatever changes later wakes them again.
    pub(crate) fn decide_on_nothing(&mut self) {
        self.runtime.state.set_now(self.real.now);
        for key in self.enqueued() {
            if !self.runtime.unknown_writes().contains_key(&key) && self.runtime.peek(&key) == Plan::done() {
                self.begin(&key);
            }
        }
    }

    /// The next write of a plan, and the uid of the object it is about.
    pub(crate) fn next_write(&self, key: &Key) -> Option<(&str, &Action)> {
        let (flight, uid, _) = self.flights.get(key)?;
        Some((uid, flight.action()?))
    }

    /// The plan about this object that is being carried out.
    pub(crate) fn plan(&self, key: &Key) -> Option<&Plan> {
        self.flights.get(key).map(|(flight, ..)| flight.progress().0)
    }

    /// Sends the next write of a plan.
    pub(crate) fn write(&mut self, about: &Key, fate: Fate) {
        let Some((mut flight, uid, _)) = self.flights.remove(about) else { return };
        let (Some(action), Some(request)) = (flight.action().cloned(), self.runtime.request(&flight)) else {
            return;
        };
        let answer = match fate {
            Fate::Lost => Answer::Failed(Failure::NoReply),
            Fate::Failed => Answer::rejected(500, ""),
            Fate::Contested => Answer::rejected(409, ""),
            Fate::Arrives | Fate::Unanswered => {
                if !self.is_in_vain(&action) {
                    self.real.check_rules(about, &action);
                }
                self.check_finalizers(&action, &request);
                self.real.nacre.last_gone = None;
                let answer = self.real.serve(&request);
                self.real.namespaces_go();
                if fate == Fate::Unanswered { Answer::Failed(Failure::NoReply) } else { answer }
            }
        };
        self.runtime.on_reply(&mut flight, answer.reply(), self.real.moment());
        if answer.code().is_none() && fate == Fate::Arrives {
            self.echo(&action.key());
        }
        self.go_on(flight, uid);
    }

    /// The watch event of a write whose reply has arrived is no news; but that the object is gone with its last finalizer
    /// is.
    fn echo(&mut self, key: &Key) {
        match self.real.objects.get(key).cloned() {
            Some(now) => {
                self.observed.insert(key.clone(), now);
                self.await_report(key.clone());
            }
            None => self.hear_gone(key),
        }
    }

    /// nacre knows an object by an answer: the watch has yet to report it.
    fn await_report(&mut self, key: Key) {
        if key.kind == Kind::NonAdminBackup {
            self.unreported.insert(key);
        }
        self.report();
    }

    fn hear_gone(&mut self, key: &Key) {
        self.observed.remove(key);
        if let Some(gone) = self.real.nacre.last_gone.take() {
            observe(&mut self.runtime, key, &gone, true, self.real.moment());
        }
    }

    /// A list is replaced as a whole: what others have put there meanwhile must not get lost, nor come back.
    fn check_finalizers(&mut self, action: &Action, request: &Request) {
        let (Action::AddFinalizer(target, own) | Action::RemoveFinalizer(target, own)) = action else {
            return;
        };
        let Request::Patch { body, target: sent, .. } = request else { return };
        let Some(found) = self.real.objects.get(&action.key()) else { return };
        let meta = &found.json["metadata"];
        if meta["uid"] != target.uid || meta["resourceVersion"] != sent.resource_version {
            return;
        }
        let foreign = |list: &Value| -> Vec<String> {
            let all = list.as_array().into_iter().flatten().filter_map(Value::as_str);
            all.filter(|one| one != own).map(str::to_owned).collect()
        };
        let (before, after) = (foreign(&meta["finalizers"]), foreign(&body["metadata"]["finalizers"]));
        if before != after {
            self.real
                .complain(&format!("somebody else's finalizers {before:?} become {after:?}: {target:?}"));
        }
    }

    /// Asks Velero to delete what is gone already: nobody's business any more.
    fn is_in_vain(&self, action: &Action) -> bool {
        let Action::Create(object) = action else { return false };
        let backup = object.body["spec"]["backupName"].as_str().unwrap_or_default();
        let gone = !self.real.objects.contains_key(&Key::new(Kind::Backup, ADMIN, backup));
        object.kind == Kind::DeleteBackupRequest && gone
    }

    /// nacre is gone, with all it had in memory.
    pub(crate) fn crash(&mut self) {
        self.flights.clear();
        self.unreported.clear();
        self.runtime = started(self.runtime.planted());
        self.down = true;
    }

    /// nacre runs, has seen everything, and waits for nothing but news.
    pub(crate) fn has_nothing_to_do(&self) -> bool {
        !self.down
            && self.flights.is_empty()
            && self.enqueued().is_empty()
            && self.news().is_empty()
            && self.runtime.work.timers().is_empty()
            && self.runtime.unknown_writes().is_empty()
    }

    /// Whether nacre is gone.
    pub(crate) fn is_down(&self) -> bool {
        self.down
    }

    /// nacre starts, and lists everything.
    pub(crate) fn restart(&mut self) {
        self.down = false;
        self.observed = self.real.objects.clone();
        if self.is_yet_to_see_namespaces {
            self.observed.retain(|key, _| key.kind != Kind::Namespace);
        }
        self.runtime = started(self.runtime.planted());
        self.runtime.state.set_policy(self.real.policy.clone());
        list_into(&mut self.runtime, &self.real, self.is_yet_to_see_namespaces);
        self.drop_ignored();
    }

    /// nacre becomes leader after another instance, whose last writes it may be yet to observe.
    pub(crate) fn becomes_leader(&mut self) {
        let newest = self.real.version;
        self.runtime.becomes_leader(MADE_ONCE_FOR.map(|kind| (kind, newest)).into());
    }

    /// Whether nacre has observed an object of this name.
    pub(super) fn has_observed(&self, key: &Key) -> bool {
        self.observed.contains_key(key)
    }

    /// nacre also looks after storage from now on.
    pub(super) fn mind_storage(&mut self) {
        self.real.minds_storage = true;
        let storage = |key: &Key| matches!(key.kind, Kind::NonAdminBackupStorageLocation | Kind::Backup);
        let keys: Vec<_> = self.real.requests().into_iter().filter(storage).collect();
        self.runtime.work.enqueue(keys);
    }

    /// What the garbage collector would remove.
    pub(crate) fn leftovers(&self) -> Vec<Target> {
        let mut state = self.runtime.state.clone();
        state.set_now(self.real.now);
        planner::gc::leftovers(&state)
    }

    /// The policy is read again.
    pub(super) fn read_policy(&mut self) {
        self.runtime.state.set_policy(self.real.policy.clone());
        if self.real.policy.is_some() {
            wake_by_policy(&mut self.runtime);
        }
        self.drop_ignored();
    }

    /// Time passes, and timers that are due wake.
    pub(crate) fn pass(&mut self, time: Duration) {
        self.real.jump(time);
        self.runtime.work.on_time(self.real.uptime);
        self.drop_ignored();
    }

    /// When nacre wants to decide again even if nothing happens.
    pub(crate) fn next_timer(&self) -> Option<Duration> {
        Some(self.runtime.work.next_timer()?.saturating_sub(self.real.uptime))
    }

    fn uid_of(&self, key: &Key) -> String {
        let known = self.observed.get(key).map(|stored| &stored.json["metadata"]["uid"]);
        known.and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    /// What nacre did that it must never do.
    pub(crate) fn complaints(&self) -> &[String] {
        self.real.complaints()
    }

    /// What nobody has woken anybody for.
    pub(crate) fn missed(&self) -> Vec<String> {
        if self.runtime.planted().is_some() {
            // Whoever decides wrongly would not do what is missing.
            return Vec::new();
        }
        self.real.missed(&mut self.runtime.clone())
    }
}

fn uid(stored: &Stored) -> &Value {
    &stored.json["metadata"]["uid"]
}

fn same(one: &Stored, other: &Stored) -> bool {
    Arc::ptr_eq(&one.json, &other.json)
}
