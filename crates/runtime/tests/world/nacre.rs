//! nacre in the world: its runtime, driven with the simulated API server, and forgetting everything in a crash.

use std::time::Duration;

use api::Kind;
use jiff::{SignedDuration, Timestamp};
use kube::core::ObjectMeta;
use planner::state::{Moment, SecretKey, Update};
use planner::view::Credential;
use planner::{Action, Key, affected, velero_view};
use runtime::{Bug, Flight, Request, Runtime};
use serde_json::Value;

use super::rejected_writes::Refused;
use super::replay::Op;
use super::server::Answer;
use super::store::Stored;
use super::trace::{shown_action, shown_event};
use super::{ADMIN, World, short};

/// More decisions than any story needs before all is quiet.
const ENDLESS: usize = 2_000;

/// nacre, and how it is being treated.
#[derive(Clone)]
pub(super) struct Nacre {
    pub(super) runtime: Runtime,
    /// Watch events that are delivered once the reply to the write that caused them has arrived.
    pending: Option<Vec<(Key, Stored, bool)>>,
    /// The last object that was deleted.
    pub(super) last_gone: Option<Stored>,
    pub(super) down: bool,
    /// Not zero while what happens belongs to something else that is recorded, or is nacre's own doing.
    pub(super) acting: u32,
    /// How many writes it has made.
    writes: usize,
    /// The write before which it crashes.
    dies_before: Option<usize>,
    /// Whether watch events of its own writes arrive before the replies.
    sees_own_writes: bool,
    /// Where set, the order of its decisions is shuffled.
    shuffle: Option<u64>,
    pub(super) is_yet_to_see_namespaces: bool,
    /// What the API server rejects, with what answer.
    pub(super) refuses: Vec<Refused>,
    /// What it did that it must never do.
    complaints: Vec<String>,
}

impl Default for Nacre {
    fn default() -> Self {
        Self {
            runtime: started(None),
            pending: None,
            last_gone: None,
            down: false,
            acting: 0,
            writes: 0,
            dies_before: None,
            sees_own_writes: false,
            shuffle: None,
            is_yet_to_see_namespaces: false,
            refuses: Vec::new(),
            complaints: Vec::new(),
        }
    }
}

/// A runtime that has seen nothing yet.
pub(super) fn started(bug: Option<Bug>) -> Runtime {
    let mut runtime = Runtime::new(ADMIN);
    runtime.retry_at_once();
    runtime.plant(bug);
    runtime.state.set_policy(Some(std::sync::Arc::default()));
    runtime.state.set_velero_version("v1.18.3");
    runtime.state.set_takes_native_snapshots(false);
    runtime.state.velero_view_listed();
    let start = Moment { clock: jiff::Timestamp::UNIX_EPOCH, uptime: Duration::ZERO };
    // Permitted to list, though there may be none.
    for kind in [Kind::PersistentVolumeClaim, Kind::Pod, Kind::DaemonSet] {
        runtime.on_event::<Stored>(kind, Update::ListBegins, start);
        runtime.on_event::<Stored>(kind, Update::ListEnds, start);
    }
    runtime
}

/// Delivers a watch event.
pub(super) fn observe(runtime: &mut Runtime, key: &Key, object: &Stored, gone: bool, now: Moment) {
    let update = if gone { Update::ObservedGone(object) } else { Update::Observed(object) };
    if runtime.state.is_in_velero_view(key.kind, &key.namespace) {
        runtime.on_velero_view_event(key.kind, update, now);
    } else if key.kind != Kind::Secret || key.namespace == ADMIN {
        runtime.on_event(key.kind, update, now);
    }
}

/// Wakes the requests that a change of a source of the policy affects.
pub(super) fn wake_by_policy(runtime: &mut Runtime) {
    let mut affected = affected::application(&runtime.state, None, None);
    let (kind, source) = (Kind::DataProtectionApplication, ObjectMeta::default());
    affected.extend(velero_view::affected(&runtime.state, kind, Some(&source), Some(&source), &affected));
    runtime.work.enqueue(affected);
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
        self.nacre.runtime.work.on_time(self.uptime);
        for _ in 0..ENDLESS {
            let Some(key) = self.next() else { return };
            self.within(|world| world.reconcile(&key));
            self.namespaces_go();
        }
        self.complain("nacre does not come to rest");
        self.nacre.runtime.work = runtime::WorkQueue::default();
    }

    /// Lets time pass without looking at complaints.
    pub(crate) fn rest_for(&mut self, time: Duration) {
        self.note(|| Op::RestFor(time));
        self.within(|world| {
            world.rest();
            let end = world.uptime + time;
            while let Some(due) = world.nacre.runtime.work.next_timer().filter(|due| *due <= end) {
                world.jump(due.saturating_sub(world.uptime));
                world.rest();
            }
            world.jump(end.saturating_sub(world.uptime));
            world.rest();
        });
    }

    /// Time passes at a stroke, and nacre has not looked yet.
    pub(crate) fn jump(&mut self, time: Duration) {
        self.note(|| Op::Jump(time));
        self.now += SignedDuration::try_from(time).unwrap();
        self.uptime += time;
    }

    /// Somebody sets the clock. Timers are not counted by it.
    pub(crate) fn set_clock(&mut self, by: SignedDuration) {
        self.note(|| Op::SetClock(by));
        self.now += by;
    }

    /// What the clock shows.
    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    /// What nacre has done so far that it must never do.
    pub(crate) fn complaints(&self) -> &[String] {
        &self.nacre.complaints
    }

    /// The background chore that brings the positions of everybody in the queue up to date.
    pub(crate) fn refresh_positions(&mut self) {
        self.note(|| Op::Rest);
        let state = &self.nacre.runtime.state;
        let backups = state.backup_queue().names().flat_map(|name| state.backups_of(name));
        let restores = state.restore_queue().names().flat_map(|name| state.restores_of(name));
        let waiting = [Kind::NonAdminBackup, Kind::NonAdminRestore].map(|kind| state.turns(kind).waiting());
        let waiting = waiting.into_iter().flatten().map(|waiter| waiter.arrival.1.clone());
        let keys: Vec<_> = backups.chain(restores).chain(waiting).collect();
        self.nacre.runtime.publish_positions(keys);
        self.rest();
    }

    /// The same for these requests.
    pub(crate) fn publish_positions(&mut self, keys: Vec<planner::Key>) {
        self.note(|| Op::Rest);
        self.nacre.runtime.publish_positions(keys);
        self.rest();
    }

    /// The simulated clock.
    pub(crate) fn clock(&self) -> jiff::Timestamp {
        self.now
    }

    /// How many writes nacre has made.
    pub(crate) fn writes(&self) -> usize {
        self.nacre.writes
    }

    /// nacre will crash when it has made this many writes.
    pub(crate) fn dies_after(&mut self, writes: usize) {
        self.stop_recording();
        self.nacre.dies_before = Some(writes);
    }

    /// Whether nacre has crashed and was not started again.
    pub(crate) fn is_down(&self) -> bool {
        self.nacre.down
    }

    /// nacre starts, and lists everything.
    pub(crate) fn restart(&mut self) {
        self.stop_recording();
        self.nacre.down = false;
        self.nacre.dies_before = None;
        self.list_all();
    }

    /// A new runtime lists everything, kind by kind.
    fn list_all(&mut self) {
        let mut runtime = started(self.nacre.bug());
        runtime.state.set_policy(self.policy.clone());
        list_into(&mut runtime, self, self.nacre.is_yet_to_see_namespaces);
        self.nacre.runtime = runtime;
    }

    /// nacre works with plans that have a bug.
    pub(crate) fn sabotage(&mut self, bug: Option<Bug>) {
        self.stop_recording();
        self.nacre.runtime.plant(bug);
    }

    /// nacre decides in an order of its own, and hears of its own writes before or after the replies.
    pub(crate) fn shuffle(&mut self, order: u64, sees_own_writes: bool) {
        self.stop_recording();
        self.nacre.shuffle = Some(order);
        self.nacre.sees_own_writes = sees_own_writes;
    }

    /// nacre starts, and the watch on namespaces falls behind the others.
    pub(crate) fn namespaces_are_not_seen(&mut self) {
        self.note(|| Op::SeeNamespaces(false));
        self.nacre.is_yet_to_see_namespaces = true;
        self.list_all();
    }

    /// It catches up.
    pub(crate) fn namespaces_are_seen(&mut self) {
        self.note(|| Op::SeeNamespaces(true));
        self.nacre.is_yet_to_see_namespaces = false;
        let spaces = self.objects.iter().filter(|(key, _)| key.kind == Kind::Namespace);
        for (key, space) in spaces.map(|(key, space)| (key.clone(), space.clone())).collect::<Vec<_>>() {
            self.changed(&key, space, false);
        }
    }

    /// nacre also looks after tenants' locations, and after what Velero finds in storage.
    pub(crate) fn mind_storage(&mut self) {
        self.note(|| Op::MindStorage);
        self.minds_storage = true;
        let all = self.requests();
        let storage = |key: &Key| matches!(key.kind, Kind::NonAdminBackupStorageLocation | Kind::Backup);
        self.nacre.runtime.work.enqueue(all.into_iter().filter(storage));
    }

    /// The chore that removes what has outlived its owner.
    pub(crate) fn collect_garbage(&mut self) -> Vec<String> {
        let leftovers = planner::gc::leftovers(&self.nacre.runtime.state);
        let shown = leftovers.iter().map(|target| short(&format!("{} {}", target.kind.name(), target.name)));
        let shown = shown.collect();
        self.note(|| Op::Collect);
        self.within(|world| leftovers.iter().for_each(|target| world.remove(&super::server::key_of(target))));
        self.settle();
        shown
    }

    /// The chore that moves the expiration of backups whose schedule is gone. Returns how many there were.
    pub(crate) fn shorten_lives(&mut self) -> usize {
        let outlived = planner::gc::outlived(&self.nacre.runtime.state);
        self.patch_all(&outlived)
    }

    /// The chore that labels Restores that ended a while ago. Returns how many there were.
    pub(crate) fn label_ended(&mut self) -> usize {
        self.nacre.runtime.state.set_now(self.now);
        let ended = planner::gc::ended(&self.nacre.runtime.state);
        self.patch_all(&ended)
    }

    /// The chore that ends a Restore that Velero does not finish. Returns which.
    pub(crate) fn end_unfinished(&mut self) -> Option<String> {
        self.nacre.runtime.state.set_now(self.now);
        let unfinished = planner::restore::unfinished(&self.nacre.runtime.state)?;
        self.patch_all(std::slice::from_ref(&unfinished));
        Some(short(&unfinished.0.name))
    }

    /// Since when Velero has been idle, as the metric has it.
    pub(crate) fn idle_since(&self) -> Option<jiff::Timestamp> {
        self.nacre.runtime.state.measures().idle_since
    }

    /// The chore that sets Velero's queue of backups going again. Returns which one it is about.
    pub(crate) fn restart_queue(&mut self) -> Option<String> {
        self.nacre.runtime.state.set_now(self.now);
        let (name, action) = planner::backup::standstill(&self.nacre.runtime.state)?;
        match action {
            Action::Patch(target, body) => drop(self.patch_all(&[(target, body)])),
            Action::Create(object) => {
                self.apply(object.body);
                self.settle();
            }
            Action::Delete(_) => {
                self.delete(&format!("backup {}", short(&name)));
                self.settle();
            }
            other => panic!("{other:?}"),
        }
        Some(short(&name))
    }

    /// The chore that keeps Velero from pausing. Returns which backup is queued again.
    pub(crate) fn end_pause(&mut self) -> Option<String> {
        self.nacre.runtime.state.set_now(self.now);
        let (name, action) = planner::backup::paused(&self.nacre.runtime.state)?;
        let Action::Patch(target, body) = action else { panic!("{action:?}") };
        self.patch_all(&[(target, body)]);
        Some(short(&name))
    }

    fn patch_all(&mut self, patches: &[(planner::Target, serde_json::Value)]) -> usize {
        for (target, body) in patches {
            let object = format!("{} {}/{}", target.kind.name(), target.namespace, target.name);
            self.edit(&short(&object), body.clone());
        }
        self.settle();
        patches.len()
    }

    /// Notes something that must never happen.
    pub(super) fn complain(&mut self, about: &str) {
        self.nacre.complaints.push(short(about));
    }

    /// An object was written or is gone: nacre observes it, or will once it has the reply to its write.
    pub(super) fn changed(&mut self, key: &Key, object: Stored, gone: bool) {
        if gone {
            self.nacre.last_gone = Some(object.clone());
        }
        let unseen = key.kind == Kind::Namespace && self.nacre.is_yet_to_see_namespaces;
        if self.nacre.down || unseen {
            return;
        }
        if let Some(pending) = &mut self.nacre.pending {
            pending.push((key.clone(), object, gone));
            return;
        }
        let now = self.moment();
        observe(&mut self.nacre.runtime, key, &object, gone, now);
        self.fetch_credentials();
    }

    /// Tenants' Secrets are fetched regularly, which is as good as at once here.
    fn fetch_credentials(&mut self) {
        for name in self.nacre.runtime.state.named_credentials().into_keys() {
            let found = self.credential(&name);
            let affected = self.nacre.runtime.state.set_credential(&name, found);
            self.nacre.runtime.work.enqueue(affected);
        }
    }

    /// A credential as it is.
    pub(crate) fn credential(&self, name: &SecretKey) -> Credential {
        let secret = self.objects.get(&Key::new(Kind::Secret, &name.namespace, &name.secret));
        let secret: Option<api::HiddenSecret> =
            secret.map(|secret| serde_json::from_value((*secret.json).clone()).unwrap());
        let found = secret.and_then(|mut secret| secret.data.remove(&name.key));
        found.map_or(Credential::Missing(self.now), |found| Credential::Found(found.into()))
    }

    fn next(&mut self) -> Option<Key> {
        let key = match self.nacre.shuffle.as_mut() {
            None => self.nacre.runtime.next(self.uptime)?,
            Some(seed) => {
                let work = &mut self.nacre.runtime.work;
                // A linear congruential generator: any order will do, as long as it is the same next time.
                *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let many = u64::try_from(work.len()).unwrap().max(1);
                let key = work.ready().nth(usize::try_from((*seed >> 33) % many).unwrap())?.clone();
                work.take(&key);
                key
            }
        };
        if self.is_ignored(&key) {
            self.nacre.runtime.work.done(&key, true);
            return self.next();
        }
        Some(key)
    }

    /// Where a story is not about storage, tenants' locations and what is found in them are as it says.
    pub(super) fn is_ignored(&self, key: &Key) -> bool {
        let storage = key.kind == Kind::NonAdminBackupStorageLocation
            || (key.kind == Kind::Backup && key.namespace == ADMIN);
        storage && !self.minds_storage
    }

    fn reconcile(&mut self, key: &Key) {
        let mut flight = self.nacre.runtime.begin(key, self.moment());
        let mut reported = self.report(&flight, 0);
        while let Some(request) = self.nacre.runtime.request(&flight) {
            let Some(answer) = self.send(&flight, &request) else { return };
            let now = self.moment();
            self.nacre.runtime.on_reply(&mut flight, answer.reply(), now);
            self.deliver();
            reported = self.report(&flight, reported);
        }
        let now = self.moment();
        self.nacre.runtime.finish(flight, now);
        let mut runtime = std::mem::replace(&mut self.nacre.runtime, Runtime::new(ADMIN));
        self.reviews += self.answer_asks(&mut runtime);
        self.nacre.runtime = runtime;
    }

    fn report(&mut self, flight: &Flight, reported: usize) -> usize {
        let all = flight.reports();
        self.trace.extend(all.iter().skip(reported).map(|report| shown_event(&report.event)));
        all.len()
    }

    /// Sends a request; none if nacre crashed before it.
    fn send(&mut self, flight: &Flight, request: &Request) -> Option<Answer> {
        let (Some(action), false) = (flight.action().cloned(), matches!(request, Request::Fetch(_))) else {
            return Some(self.serve(request));
        };
        if let Some(answer) = self.refused(&action) {
            return Some(answer);
        }
        if self.nacre.dies_before == Some(self.nacre.writes) {
            self.trace.push("crash".to_owned());
            self.nacre.down = true;
            let bug = self.nacre.bug();
            self.nacre.runtime = started(bug);
            return None;
        }
        self.nacre.writes += 1;
        self.check_rules(&flight.about, &action);
        if !self.nacre.sees_own_writes {
            self.nacre.pending = Some(Vec::new());
        }
        let answer = self.serve(request);
        if answer.code() == Some(409) && matches!(request, Request::Patch { .. }) {
            // Nobody else writes while a plan is carried out here: a conflict is of nacre's own making.
            self.complain(&format!("nacre is in conflict with itself about {:?}", action.key()));
        }
        if answer.code() == Some(422) {
            self.complain(&format!("the API server forbids to add a finalizer to {:?}", action.key()));
        }
        let shown = self.described(&action);
        self.trace.push(if answer.code().is_none() { shown } else { format!("{shown} (nothing to do)") });
        Some(answer)
    }

    /// Delivers the watch events of a write whose reply has arrived.
    fn deliver(&mut self) {
        for (key, object, gone) in self.nacre.pending.take().into_iter().flatten() {
            self.changed(&key, object, gone);
        }
    }

    pub(super) fn requests(&self) -> Vec<Key> {
        let ours = |key: &&Key| match key.kind {
            _ if key.namespace != ADMIN && key.kind.group() == Kind::Backup.group() => true,
            Kind::NonAdminBackup
            | Kind::NonAdminRestore
            | Kind::NonAdminDownloadRequest
            | Kind::NonAdminSchedule
            | Kind::DownloadRequest => true,
            Kind::NonAdminBackupStorageLocation | Kind::Backup => self.minds_storage,
            _ => false,
        };
        let mut all: Vec<_> = self.objects.keys().filter(ours).cloned().collect();
        all.extend(velero_view::everything(&self.nacre.runtime.state));
        all.sort();
        all.dedup();
        all
    }

    /// Whoever was not woken, and will not be by a timer, must have nothing to do.
    pub(crate) fn complain_of_what_was_missed(&mut self) {
        if self.nacre.down {
            return;
        }
        let mut runtime = self.nacre.runtime.clone();
        for complaint in self.missed(&mut runtime) {
            self.complain(&complaint);
        }
    }

    /// What a runtime would do about objects that nobody woke. A position in the queue is the business of a chore.
    pub(super) fn missed(&self, runtime: &mut Runtime) -> Vec<String> {
        runtime.state.set_now(self.now);
        let mut complaints = Vec::new();
        // Nearly every schedule has a timer, for its next run: it is no excuse for what is to be done now.
        let waits = |key: &Key| key.kind != Kind::NonAdminSchedule && runtime.work.timers().contains_key(key);
        let woken: Vec<_> = self.requests().into_iter().filter(|key| !waits(key)).collect();
        for key in woken {
            let mut actions = runtime.peek(&key).actions;
            actions.retain(|action| !only_a_position(action));
            if !actions.is_empty() {
                let missed: Vec<_> = actions.iter().map(|action| self.described(action)).collect();
                let (kind, Key { namespace, name, .. }) = (key.kind.name(), &key);
                complaints.push(format!("nobody woke {kind} {namespace}/{name} to: {missed:?}"));
            }
        }
        complaints
    }

    pub(super) fn described(&self, action: &Action) -> String {
        let status = match action {
            Action::PatchStatus(..) => {
                self.objects.get(&action.key()).map_or(Value::Null, |stored| stored.json["status"].clone())
            }
            _ => Value::Null,
        };
        shown_action(action, &status)
    }
}

impl Nacre {
    fn bug(&self) -> Option<Bug> {
        self.runtime.planted()
    }
}

/// A runtime that has just started lists everything, kind by kind.
pub(super) fn list_into(runtime: &mut Runtime, world: &World, without_namespaces: bool) {
    let now = world.moment();
    let kinds: std::collections::BTreeSet<_> = world.objects.keys().map(|key| key.kind).collect();
    for kind in kinds.into_iter().filter(|kind| *kind != Kind::Namespace || !without_namespaces) {
        runtime.on_event::<Stored>(kind, Update::ListBegins, now);
        for (key, object) in world.objects.iter().filter(|(key, _)| key.kind == kind) {
            observe(runtime, key, object, false, now);
        }
        runtime.on_event::<Stored>(kind, Update::ListEnds, now);
    }
    for name in runtime.state.named_credentials().into_keys() {
        let affected = runtime.state.set_credential(&name, world.credential(&name));
        runtime.work.enqueue(affected);
    }
    let shown = runtime.state.velero_view_listed();
    runtime.work.enqueue(shown);
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
