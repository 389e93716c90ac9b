//! A cluster in memory: a simulated API server (`store`, `server`), the runtime driven with it (`nacre`), writes that
//! the API server rejects (`rejected_write`), a simulated Velero (`velero`), and a record of it all for people (`trace`).
//!
//! What is driven is the runtime that the engine runs, with simulated IO. It is woken by nothing but watch events and
//! its own timers, so that a missing wake-up shows: whatever a decision would still do once it is idle fails the test.

pub(crate) mod manifests;
mod nacre;
pub(crate) mod people;
mod rejected_writes;
pub(crate) mod replay;
mod rules;
mod server;
pub(crate) mod split;
mod store;
mod trace;
mod velero;
mod volumes;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::Kind;
use jiff::Timestamp;
use planner::results::{self, OwnLines, Results};
use planner::state::Moment;
use planner::{Key, Policy, State};
use serde_json::{Value, json};

use nacre::Nacre;
use replay::{Op, Recording};
use store::Stored;
pub(crate) use trace::{long, short};

/// Where Velero and the administrators are.
pub(crate) const ADMIN: &str = "velero";

/// A cluster in memory: its objects, Velero, nacre, and the clock.
#[derive(Clone)]
pub(crate) struct World {
    objects: BTreeMap<Key, Stored>,
    policy: Option<Arc<Policy>>,
    now: Timestamp,
    /// How much time has passed, whatever the clock was set to.
    uptime: Duration,
    /// The last resourceVersion given out.
    version: u64,
    /// The last uid given out, by kind: so that one of another kind more or less changes no name.
    births: BTreeMap<Kind, u32>,
    /// How many Velero objects were ever made for a request, by its uid, and how many runs of a schedule by their name.
    made_for: BTreeMap<String, usize>,
    /// Whether nacre looks after tenants' locations and what is found in storage.
    minds_storage: bool,
    /// What people may do.
    permissions: people::Permissions,
    /// How many reviews were made.
    reviews: usize,
    nacre: Nacre,
    recording: Recording,
    trace: Vec<String>,
    /// How much of the trace was read already.
    read: usize,
}

impl World {
    /// A cluster with Velero, its default storage, and these namespaces.
    pub(crate) fn with(namespaces: &[&str]) -> Self {
        let mut world = Self::empty();
        world.recording();
        for name in [ADMIN].iter().chain(namespaces) {
            world.apply(manifests::namespace(name));
        }
        world.apply(manifests::default_storage());
        world
    }

    fn empty() -> Self {
        Self {
            objects: BTreeMap::new(),
            policy: Some(Arc::default()),
            now: "2026-01-01T00:00:00Z".parse().unwrap(),
            uptime: Duration::ZERO,
            version: 0,
            births: BTreeMap::new(),
            made_for: BTreeMap::new(),
            minds_storage: false,
            permissions: people::Permissions::new(),
            reviews: 0,
            nacre: Nacre::default(),
            recording: Recording::default(),
            trace: Vec::new(),
            read: 0,
        }
    }

    /// What an administrator allows from now on.
    pub(crate) fn policy(&mut self, change: impl FnOnce(&mut Policy)) {
        change(Arc::make_mut(self.policy.get_or_insert_default()));
        let policy = self.policy.clone();
        self.note(|| Op::Policy(policy));
        self.policy_was_read();
    }

    /// Velero is given everything at once: for stories about its own queue.
    pub(crate) fn hand_over_at_once(&mut self) {
        self.policy(|policy| policy.queue.in_flight = Some(0));
    }

    /// nacre reads that Velero has a VolumeSnapshotLocation, or none.
    pub(crate) fn velero_takes_native_snapshots(&mut self, takes: bool) {
        let affected = self.nacre.runtime.state.set_takes_native_snapshots(takes);
        self.nacre.runtime.work.enqueue(affected);
    }

    /// nacre has read this log for a request. Reading is nothing that a replay knows of.
    pub(crate) fn nacre_reads_log(&mut self, request: &str, log: &str) {
        self.stop_recording();
        let key = self.found(request);
        let state = &mut self.nacre.runtime.state;
        assert_eq!(state.unread_results(""), std::slice::from_ref(&key));
        let file = results::file(state, &key).expect("a file that nacre may read");
        let velero = file.velero_objects(ADMIN);
        let mut own = OwnLines::new(&key.namespace, &velero, |name| state.namespace(name).is_some());
        log.lines().for_each(|line| own.add(line.as_bytes()));
        let read = own.finish().expect("a log");
        let affected = state.set_results(&key, Results::Log(read.into()));
        self.nacre.runtime.work.enqueue(affected);
    }

    /// Velero is for tenants alone. That is a flag of the process, which a replay starts without.
    pub(crate) fn dedicate_velero(&mut self) {
        self.stop_recording();
        self.nacre.runtime.state.set_dedicated(true);
    }

    /// Wakes the requests that a change of a source of the policy affects.
    fn policy_was_read(&mut self) {
        self.nacre.runtime.state.set_policy(self.policy.clone());
        nacre::wake_by_policy(&mut self.nacre.runtime);
    }

    /// How many backups Velero may be given at a time.
    pub(crate) fn in_flight(&self) -> Option<usize> {
        let policy = self.policy.as_ref()?;
        planner::turns::Capacity::of(1, policy.queue.in_flight).in_flight
    }

    /// How many more that is once a backup was over in a moment.
    pub(crate) fn more_if_short(&self) -> usize {
        let is_short = |(key, object): (&Key, &Value)| {
            let status = &object["status"];
            let took_no_time = status["startTimestamp"] == status["completionTimestamp"];
            key.kind == Kind::Backup && took_no_time && !status["startTimestamp"].is_null()
        };
        let policy = self.policy.as_ref().filter(|_| self.everything().any(is_short));
        policy.map_or(0, |policy| planner::turns::Capacity::of(1, policy.queue.in_flight).short)
    }

    /// What nacre has observed, for a question that is asked now.
    pub(crate) fn state(&self) -> State {
        let mut state = self.nacre.runtime.state.clone();
        state.set_now(self.now);
        state
    }

    fn moment(&self) -> Moment {
        Moment { clock: self.now, uptime: self.uptime }
    }

    /// The policy is unknown.
    pub(crate) fn policy_cannot_be_read(&mut self) {
        self.policy = None;
        self.nacre.runtime.state.set_policy(None);
        self.note(|| Op::Policy(None));
    }

    /// Somebody creates an object, or changes it to be so. A status is ignored where the API server ignores it.
    pub(crate) fn apply(&mut self, object: Value) {
        let kind = kind_of(object["kind"].as_str().unwrap_or_default());
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let key = Key::new(kind, namespace, name);
        if self.objects.contains_key(&key) {
            self.respecify(&key, object);
        } else {
            self.insert(kind, object);
        }
    }

    /// Somebody edits an object: a merge patch of everything but the status.
    pub(crate) fn edit(&mut self, object: &str, change: Value) {
        let key = self.found(object);
        self.merge(&key, &change);
    }

    /// Somebody with more rights than they should have writes a status.
    pub(crate) fn forge_status(&mut self, object: &str, status: Value) {
        let key = self.found(object);
        self.merge_status(&key, &json!({ "status": status }));
    }

    /// Somebody deletes an object. A namespace takes everything in it along.
    pub(crate) fn delete(&mut self, object: &str) {
        let key = self.found(object);
        self.remove(&key);
        if key.kind == Kind::Namespace {
            let inside: Vec<_> =
                self.objects.keys().filter(|inside| inside.namespace == key.name).cloned().collect();
            for key in inside {
                self.remove(&key);
            }
            self.namespaces_go();
        }
    }

    /// An object as it is stored; null if there is none.
    pub(crate) fn get(&self, object: &str) -> Value {
        self.objects.get(&key(object)).map_or(Value::Null, |stored| (*stored.json).clone())
    }

    /// An object for people to read, with uids made short.
    pub(crate) fn show(&self, object: &str, field: &str) -> String {
        short(&serde_json::to_string_pretty(&self.get(object)[field]).unwrap())
    }

    /// What the condition of this type says: `True/BackupAccepted: the backup is allowed`.
    pub(crate) fn condition(&self, object: &str, type_: &str) -> String {
        let status = self.get(object)["status"].clone();
        let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        let found = conditions.iter().find(|condition| condition["type"] == type_);
        let text = |field: &str| found.map_or("", |found| found[field].as_str().unwrap_or_default());
        format!("{}/{}: {}", text("status"), text("reason"), short(text("message")))
    }

    /// Whether there is such an object.
    pub(crate) fn has(&self, object: &str) -> bool {
        self.objects.contains_key(&key(object))
    }

    /// All objects of a kind, as `namespace/name`, with uids made short.
    pub(crate) fn names(&self, kind: Kind) -> Vec<String> {
        let keys = self.objects.keys().filter(|key| key.kind == kind);
        keys.map(|key| short(&format!("{}/{}", key.namespace, key.name))).collect()
    }

    /// All objects, for comparing two worlds.
    pub(crate) fn everything(&self) -> impl Iterator<Item = (&Key, &Value)> {
        self.objects.iter().map(|(key, stored)| (key, &*stored.json))
    }

    /// How many Velero objects were ever made for a request, by its uid.
    pub(crate) fn made_for(&self) -> &BTreeMap<String, usize> {
        &self.made_for
    }

    /// The writes and Events since the last call, once nacre is idle.
    pub(crate) fn trace(&mut self) -> String {
        self.settle();
        let news = self.trace[self.read..].join("\n");
        self.read = self.trace.len();
        news
    }

    /// All writes and Events.
    pub(crate) fn whole_trace(&self) -> String {
        self.trace.join("\n")
    }

    /// An object that must be there.
    pub(crate) fn found(&self, object: &str) -> Key {
        let key = key(object);
        assert!(
            self.objects.contains_key(&key),
            "there is no {object}; there are {:?}",
            self.names(key.kind)
        );
        key
    }
}

/// Reads `nab shop/daily`, `ns shop` or `backup shop-daily-<1>`; what has no namespace given is Velero's.
fn key(object: &str) -> Key {
    let (kind, place) = object.split_once(' ').expect("a kind and a name");
    let kind = match kind {
        "nab" => Kind::NonAdminBackup,
        "nar" => Kind::NonAdminRestore,
        "request" => Kind::NonAdminBackupStorageLocationRequest,
        "secret" => Kind::Secret,
        "nabsl" => Kind::NonAdminBackupStorageLocation,
        "backup" => Kind::Backup,
        "restore" => Kind::Restore,
        "bsl" => Kind::BackupStorageLocation,
        "nadr" => Kind::NonAdminDownloadRequest,
        "nas" => Kind::NonAdminSchedule,
        "dr" => Kind::DownloadRequest,
        "dbr" => Kind::DeleteBackupRequest,
        "ns" => return Key::new(Kind::Namespace, "", place),
        "cm" => Kind::ConfigMap,
        other => kind_of(other),
    };
    let (namespace, name) = place.split_once('/').unwrap_or((ADMIN, place));
    Key::new(kind, namespace, &long(name))
}

fn kind_of(name: &str) -> Kind {
    *Kind::ALL.iter().find(|kind| kind.name() == name).unwrap_or_else(|| panic!("no kind {name:?}"))
}
