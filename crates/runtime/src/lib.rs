//! The controller loop of nacre, without IO.
//!
//! [`Runtime`] owns everything a running controller has in memory: the cluster as it was last seen
//! ([`planner::State`]), the work queue, and the writes whose outcome is unknown. It is a synchronous state machine.
//! Whoever drives it does the IO:
//!
//! 1. Watch events go in through [`Runtime::on_event`]; they wake the requests they affect.
//! 2. [`WorkQueue::next`] says which object to decide about; [`Runtime::begin`] decides, and returns the plan as a
//!    [`Flight`].
//! 3. While [`Runtime::request`] returns a request, send it, and pass the reply to [`Runtime::on_reply`].
//! 4. [`Runtime::finish`] puts the object back: settled, with a timer, or to be retried.
//!
//! The engine drives it with a real client and a real clock. Stories, fault injection, crash properties and the model
//! checker drive the same machine with a simulated API server, so that what they prove is what runs.

mod dispatch;
mod flight;
mod reply;
mod work_queue;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use api::Kind;
use kube::core::ObjectMeta;
use planner::state::{Incoming, Moment, Update};
use planner::turns::Turn;
use planner::{Action, Key, Plan, State, Target};
use serde_json::json;

pub use dispatch::{Decision, decide};
pub use flight::{Flight, Outcome, Report, Request};
pub use reply::{Failure, Reply, Retry};
pub use work_queue::{Requeue, WorkQueue};

use flight::Stage;

/// Everything a running controller has in memory.
#[derive(Clone, Debug)]
pub struct Runtime {
    /// The cluster as it was last seen.
    pub state: State,
    /// Which objects to decide about, and when.
    pub work: WorkQueue,
    /// By the object that was decided about: an object that was written without a reply, so that it may be written or
    /// not. It is fetched before the next decision.
    unknown: BTreeMap<Key, Key>,
    /// Requests whose queue position may be published by their next decision.
    publish: BTreeSet<Key>,
    /// By kind of request, the newest version when this process became leader.
    led_from: BTreeMap<Kind, u64>,
    /// When a failed plan is decided again.
    retry: fn(Retry, u32) -> Requeue,
    /// A bug planted by a test: it replaces each plan.
    bug: Option<Bug>,
}

/// The kinds for whose objects something is made once. A new leader has to know their newest versions
/// ([`Runtime::becomes_leader`]).
pub const MADE_ONCE_FOR: [Kind; 3] = [Kind::NonAdminBackup, Kind::NonAdminRestore, Kind::NonAdminSchedule];

/// A bug planted by a test: replaces the plan about an object.
pub type Bug = fn(&State, &Key, Plan) -> Plan;

impl Runtime {
    /// A controller that has seen nothing yet.
    pub fn new(admin_namespace: &str) -> Self {
        Self {
            state: State::new(admin_namespace),
            work: WorkQueue::default(),
            unknown: BTreeMap::new(),
            publish: BTreeSet::new(),
            led_from: BTreeMap::new(),
            retry: Retry::after,
            bug: None,
        }
    }

    /// Failures are retried without waiting: for tests that have no use for the time in between.
    pub fn retry_at_once(&mut self) {
        self.retry = |retry, _| match retry {
            Retry::WhenItChanges => Requeue::OnChange,
            Retry::Now | Retry::After(_) | Retry::BackOff => Requeue::Now,
        };
    }

    /// Plants a bug, to see whether a test finds it.
    pub fn plant(&mut self, bug: Option<Bug>) {
        self.bug = bug;
    }

    /// The bug that was planted.
    pub fn planted(&self) -> Option<Bug> {
        self.bug
    }

    /// This process has become leader, and these were the newest versions of each kind of request after that. The cache may
    /// be behind what the leader before it did last. So a request that was not seen in a newer version is fetched before
    /// Velero is given it: it may have been given and deleted meanwhile. So is a schedule before a run is made or let go.
    pub fn becomes_leader(&mut self, newest: BTreeMap<Kind, u64>) {
        self.led_from = newest;
    }

    /// Takes what a watch or a list reports about objects of one kind, and wakes the requests it affects.
    pub fn on_event<O: Incoming>(&mut self, kind: Kind, update: Update<'_, O>, now: Moment) {
        let affected = self.state.update(kind, update, now);
        self.work.enqueue(affected);
    }

    /// The same for Velero's kinds in tenants' namespaces.
    pub fn on_velero_view_event<O: Incoming>(&mut self, kind: Kind, update: Update<'_, O>, now: Moment) {
        let affected = self.state.update_velero_view(kind, update, now);
        self.work.enqueue(affected);
    }

    /// These requests may publish their queue position by their next decision; it is made soon.
    pub fn publish_positions(&mut self, keys: Vec<Key>) {
        self.publish.extend(keys.iter().cloned());
        self.work.enqueue(keys);
    }

    /// The objects whose last write has an unknown outcome, by the object that was decided about.
    pub fn unknown_writes(&self) -> &BTreeMap<Key, Key> {
        &self.unknown
    }

    /// What would be decided about an object now, without beginning it.
    pub fn peek(&self, key: &Key) -> Plan {
        let Some(decision) = decide(&self.state, key, self.publish.contains(key)) else {
            return Plan::default();
        };
        match self.bug {
            Some(bug) => bug(&self.state, key, decision.plan),
            None => decision.plan,
        }
    }

    /// The next object to decide about. Whose turn it is at Velero goes first: Velero may be idle, and decisions about those
    /// that wait can wait too.
    pub fn next(&mut self, uptime: Duration) -> Option<Key> {
        let mut due = self.state.next_turns().into_iter();
        due.find(|key| self.work.take(key)).or_else(|| self.work.next(uptime))
    }

    /// Begins with an object that the work queue returned. If the outcome of a write about it is unknown, that is found
    /// out first: a decision that took it for not done could undo what was made, or make it a second time.
    pub fn begin(&mut self, key: &Key, now: Moment) -> Flight {
        self.state.set_now(now.clock);
        let mut flight = Flight::new(key.clone());
        match self.unknown.get(key) {
            Some(written) => flight.stage = Stage::Resolving(written.clone()),
            None => self.decide(&mut flight),
        }
        flight
    }

    /// Carries out a plan that was made elsewhere.
    pub fn execute_plan(&mut self, about: &Key, plan: Plan) -> Flight {
        let mut flight = Flight::new(about.clone());
        flight.load(plan, None);
        self.advance(&mut flight);
        flight
    }

    fn decide(&mut self, flight: &mut Flight) {
        let publish = self.publish.contains(&flight.about);
        let Some(mut decision) = decide(&self.state, &flight.about, publish) else {
            self.publish.remove(&flight.about);
            self.turn_decided(&flight.about, None);
            flight.stage = Stage::Done;
            return;
        };
        debug_assert!(!decision.plan.because.is_empty(), "the plan for {:?} gives no reason", flight.about);
        if let Some(bug) = self.bug {
            decision.plan = bug(&self.state, &flight.about, decision.plan);
        }
        if let Some((key, uid)) = self.to_be_confirmed(flight, &decision) {
            flight.stage = Stage::Confirming(key, uid);
            return;
        }
        self.publish.remove(&flight.about);
        self.state.want(&flight.about, &decision.plan.asks);
        self.turn_decided(&flight.about, decision.plan.turn.as_ref());
        flight.load(decision.plan, Some((decision.kind, decision.meta)));
        self.advance(flight);
    }

    /// What is to be fetched before a decision is carried out, since the leader before this one may have seen it in a newer
    /// version: whatever something is made for once, and the schedule of a run that is let go, which has to know of it first.
    fn to_be_confirmed(&self, flight: &Flight, decision: &Decision) -> Option<(Key, Option<String>)> {
        let once = [Kind::Backup, Kind::Restore, Kind::NonAdminBackup];
        let made = |action: &Action| matches!(action, Action::Create(object) if once.contains(&object.kind));
        let let_go = |action: &Action| matches!(action, Action::RemoveFinalizer(..));
        let actions = &decision.plan.actions;
        let schedule;
        let (key, meta) = if actions.iter().any(made) {
            (flight.about.clone(), &decision.meta)
        } else if decision.kind == Kind::NonAdminBackup && actions.iter().any(let_go) {
            schedule = planner::schedule::schedule_of(&self.state, &decision.meta)?;
            (Key::of(Kind::NonAdminSchedule, &schedule.metadata), &schedule.metadata)
        } else {
            return None;
        };
        let newest = self.led_from.get(&key.kind)?;
        let seen = meta.resource_version.as_ref().and_then(|version| version.parse().ok());
        let may_be_behind = seen.is_none_or(|seen: u64| seen <= *newest);
        (may_be_behind && !flight.confirmed.contains(&key)).then(|| (key, meta.uid.clone()))
    }

    /// Notes what became of the turn of a request, and wakes whose turn it is now.
    fn turn_decided(&mut self, about: &Key, turn: Option<&Turn>) {
        let due = self.state.turn_decided(about, turn);
        self.work.enqueue(due);
    }

    /// The next request to send; none once there is nothing more to do.
    pub fn request(&self, flight: &Flight) -> Option<Request> {
        match &flight.stage {
            Stage::Done => None,
            Stage::Resolving(key) | Stage::Confirming(key, _) => Some(Request::Fetch(key.clone())),
            Stage::Refreshing | Stage::CheckingReplaced => Some(Request::Fetch(flight.action()?.key())),
            Stage::Writing => self.write(flight),
        }
    }

    /// The version of an object that this write of a plan is for: as it was last seen or written. Two kinds are meant as
    /// they were decided about, until the plan itself has written to them. Whoever has made a run of a schedule meanwhile
    /// wrote so to its status, and then this plan makes no other. And what is asked for is written into a request only if
    /// nobody has approved it before.
    pub fn as_of(&self, plan: &Plan, write: usize, target: &Target) -> Target {
        let key = Key::new(target.kind, &target.namespace, &target.name);
        let is_first = || !plan.actions.iter().take(write).any(|earlier| earlier.key() == key);
        let as_decided = [Kind::NonAdminSchedule, Kind::NonAdminBackupStorageLocationRequest];
        if as_decided.contains(&target.kind) && is_first() {
            return target.clone();
        }
        self.state.latest(target)
    }

    /// The next write of a plan.
    fn write(&self, flight: &Flight) -> Option<Request> {
        let (plan, at) = flight.progress();
        let as_of = |target: &Target| self.as_of(plan, at, target);
        Some(match plan.actions.get(at)? {
            Action::Create(object) => Request::Create(object.clone()),
            Action::Apply(object) => Request::Apply(object.clone()),
            Action::AddFinalizer(target, finalizer) => set_finalizer(as_of(target), finalizer, true),
            Action::RemoveFinalizer(target, finalizer) => set_finalizer(as_of(target), finalizer, false),
            Action::Patch(target, body) => {
                Request::Patch { target: as_of(target), status: false, body: body.clone() }
            }
            Action::PatchStatus(target, body) => {
                Request::Patch { target: as_of(target), status: true, body: body.clone() }
            }
            Action::Delete(target) => Request::Delete { target: target.clone(), unchanged: false },
            Action::DeleteUnchanged(target) => Request::Delete { target: target.clone(), unchanged: true },
        })
    }

    /// Takes the reply to the request of [`Runtime::request`].
    pub fn on_reply<O: Incoming>(&mut self, flight: &mut Flight, reply: Reply<'_, O>, now: Moment) {
        self.state.set_now(now.clock);
        match flight.stage.clone() {
            Stage::Done => {}
            Stage::Resolving(written) => self.resolved(flight, &written, reply, now),
            Stage::Confirming(key, uid) => self.confirmed(flight, key, uid, reply, now),
            Stage::Writing => self.written(flight, reply, now),
            Stage::Refreshing => {
                if let (Reply::Object(object), Some(key)) = (reply, flight.action().map(Action::key)) {
                    // The watch will not report what is known already, so everybody affected is woken here.
                    let affected = self.state.update(key.kind, Update::Wrote(object), now);
                    self.work.enqueue(affected);
                }
                flight.fail();
            }
            Stage::CheckingReplaced => self.checked(flight, &reply, now),
        }
    }

    /// What became of a write without a reply is known, or still is not.
    fn resolved<O: Incoming>(
        &mut self,
        flight: &mut Flight,
        written: &Key,
        reply: Reply<'_, O>,
        now: Moment,
    ) {
        match reply {
            Reply::Object(object) => {
                let mut affected = self.state.update(written.kind, Update::Wrote(object), now);
                affected.retain(|key| *key != flight.about);
                self.work.enqueue(affected);
            }
            Reply::Gone => {}
            Reply::Failed(failure) if failure.code() == Some(404) => {}
            Reply::Failed(failure) => return flight.fail_with(failure),
        }
        self.unknown.remove(&flight.about);
        self.decide(flight);
    }

    /// What an object is now is known.
    fn confirmed<O: Incoming>(
        &mut self,
        flight: &mut Flight,
        key: Key,
        uid: Option<String>,
        reply: Reply<'_, O>,
        now: Moment,
    ) {
        let affected = match reply {
            Reply::Object(object) => self.state.update(key.kind, Update::Wrote(object), now),
            Reply::Failed(failure) if failure.code() != Some(404) => return flight.fail_with(failure),
            Reply::Gone | Reply::Failed(_) => {
                let (namespace, name) = (Some(key.namespace.clone()), Some(key.name.clone()));
                let gone = ObjectMeta { namespace, name, uid, ..ObjectMeta::default() };
                self.state.update::<O>(key.kind, Update::Deleted(&gone), now)
            }
        };
        self.work.enqueue(affected.into_iter().filter(|key| *key != flight.about));
        flight.confirmed.push(key);
        self.decide(flight);
    }

    fn written<O: Incoming>(&mut self, flight: &mut Flight, reply: Reply<'_, O>, now: Moment) {
        let Some(action) = flight.action().cloned() else { return };
        let deletes = matches!(action, Action::Delete(_) | Action::DeleteUnchanged(_));
        let mut affected = match reply {
            Reply::Object(object) => self.state.update(action.kind(), Update::Wrote(object), now),
            Reply::Gone => self.forget::<O>(&action, now),
            Reply::Failed(failure) => match (failure.code(), &action) {
                (Some(404), _) if deletes => self.forget::<O>(&action, now),
                (Some(404), Action::RemoveFinalizer(..)) => Vec::new(),
                _ => return self.failed(flight, &action, failure),
            },
        };
        // The object itself was decided about just now; only a deletion leaves something to decide at once.
        if !deletes {
            affected.retain(|key| *key != flight.about);
        }
        self.work.enqueue(affected);
        flight.next_action();
        self.advance(flight);
    }

    /// The first write that fails ends a plan: what follows may rest on it.
    fn failed(&mut self, flight: &mut Flight, action: &Action, failure: Failure) {
        // Without a reply, or from a server with an error of its own: it may be written or not. A deletion done a second
        // time changes nothing.
        let deletes = matches!(action, Action::Delete(_) | Action::DeleteUnchanged(_));
        if failure.code().is_none_or(|code| code >= 500) && !deletes {
            self.unknown.insert(flight.about.clone(), action.key());
        }
        if let Failure::Rejected(rejection) = &failure {
            self.state.note_rejected(&flight.about, action, rejection);
        }
        // What is not kept in the state is read before each decision: nothing is gained by fetching it now, and nacre may
        // not be permitted to.
        let conflict = failure.code() == Some(409) && State::watches(action.kind());
        flight.failure = Some(failure);
        flight.stage = match action {
            // What is really there is fetched, so that the next decision is made on that.
            Action::Create(_)
            | Action::AddFinalizer(..)
            | Action::RemoveFinalizer(..)
            | Action::Patch(..)
            | Action::PatchStatus(..)
                if conflict =>
            {
                Stage::Refreshing
            }
            Action::Delete(_) if conflict => Stage::CheckingReplaced,
            _ => Stage::Done,
        };
    }

    /// A delete met a conflict. If there is another object by that name, or none, ours is gone. A server may also answer
    /// a conflict for reasons of its own, and then it is still there.
    fn checked<O: Incoming>(&mut self, flight: &mut Flight, reply: &Reply<'_, O>, now: Moment) {
        let Some(Action::Delete(target)) = flight.action().cloned() else { return };
        let replaced = match reply {
            Reply::Object(object) => object.meta().uid.as_ref() != Some(&target.uid),
            Reply::Gone => true,
            Reply::Failed(failure) => failure.code() == Some(404),
        };
        if !replaced {
            return flight.fail();
        }
        flight.failure = None;
        let affected = self.forget::<O>(&Action::Delete(target), now);
        self.work.enqueue(affected);
        flight.stage = Stage::Writing;
        flight.next_action();
        self.advance(flight);
    }

    fn forget<O: Incoming>(&mut self, action: &Action, now: Moment) -> Vec<Key> {
        let (Action::Delete(target) | Action::DeleteUnchanged(target)) = action else { return Vec::new() };
        self.state.update::<O>(target.kind, Update::Deleted(&target.meta()), now)
    }

    /// Goes on with a plan: with the next action, or, at its end, with what the plan says about the time after it.
    fn advance(&mut self, flight: &mut Flight) {
        if flight.action().is_some() {
            return;
        }
        self.state.clear_rejected(&flight.about);
        if flight.complete() {
            // A plan that is half done continues before the next object.
            self.decide(flight);
        }
    }

    /// The decision about an object did not come to its end: it goes back to the work queue, to be retried.
    pub fn abandon(&mut self, key: &Key, now: Moment) {
        let failures = self.work.done(key, false);
        self.work.requeue(key, (self.retry)(Retry::BackOff, failures), now.uptime);
    }

    /// The object goes back to the work queue: settled, with the timer its plan asked for, or to be retried.
    pub fn finish(&mut self, flight: Flight, now: Moment) -> Outcome {
        let mut outcome = flight.outcome();
        // A turn is free again if nothing came of it, and only then: what has an unknown outcome may be at Velero.
        if outcome.failure.is_some() && !self.unknown.contains_key(&outcome.about) {
            self.turn_decided(&outcome.about, None);
        }
        let failures = self.work.done(&outcome.about, outcome.failure.is_none());
        if let Some(failure) = &outcome.failure {
            outcome.requeue = (self.retry)(failure.retry(), failures);
        }
        self.work.requeue(&outcome.about, outcome.requeue, now.uptime);
        outcome
    }
}

/// The list is replaced as a whole, so it must be the one of the version that is sent: others have finalizers too.
fn set_finalizer(target: Target, finalizer: &str, on: bool) -> Request {
    let others = target.finalizers.iter().map(String::as_str).filter(|other| *other != finalizer);
    let finalizers: Vec<_> = others.chain(on.then_some(finalizer)).collect();
    let body = json!({"metadata": {"finalizers": finalizers}});
    Request::Patch { target, status: false, body }
}

#[cfg(test)]
mod tests;
