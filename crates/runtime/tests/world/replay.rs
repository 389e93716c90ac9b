//! Every story again, under faults. The operations of a story from outside are recorded; after the story they are
//! replayed for some seeds, with nacre split from the API server: writes get lost, responses get lost, there are false
//! conflicts, watch events come late and in any order, and nacre crashes. The final state must be the same.
//!
//! `NACRE_FAULTS` says how many seeds, `NACRE_FAULT_SEED` replays a single one and prints what happened.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use api::{Kind, condition, labels};
use jiff::SignedDuration;
use planner::{Key, Policy};
use runtime::Requeue;
use serde_json::Value;

use super::split::{Fate, Split};
use super::{World, short};

/// Default number of seeds per story. Each costs as much as the story: one that is as long as a year of nights gets a
/// fiftieth of them.
const SEEDS: u64 = 2;
const FEWER_IF_LONG: u64 = 50;
/// A story with more operations than this is long.
const LONG: usize = 1000;
/// More than any story needs before all is quiet.
const ENDLESS: usize = 20_000;
/// How much goes wrong while nacre comes to rest, at most.
const FAULTS: u32 = 4;
/// How many short requeues there may be before nacre counts as idle.
const MOMENTS: u32 = 3;
/// By then everything that waits for a first report of Velero shows that Velero has it.
const MOMENT: Duration = Duration::from_secs(3);

/// The recorded operations from outside. A copy of a world has none.
#[derive(Default)]
pub(super) struct Recording(Option<Vec<Op>>);

impl Clone for Recording {
    fn clone(&self) -> Self {
        Self(None)
    }
}

/// Something that happened from outside, or a time given to nacre.
#[derive(Clone, Debug)]
pub(super) enum Op {
    Insert(Kind, Value),
    Merge(Key, Value),
    MergeStatus(Key, Value),
    Respecify(Key, Value),
    Finalizers(Key, Vec<String>),
    Remove(Key),
    Policy(Option<Arc<Policy>>),
    Jump(Duration),
    SetClock(SignedDuration),
    May(String, BTreeSet<String>),
    MindStorage,
    SeeNamespaces(bool),
    Spare(Spared),
    Collect,
    Rest,
    RestFor(Duration),
}

/// Faults that rightly lead to another end of a story.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spared {
    /// A write that the API server rejects: whoever is next in the queue passes then.
    Rejections,
    /// A crash: nacre does not remember what only it knows, such as since when the node agent is gone.
    Crashes,
}

impl World {
    /// These faults are left out of the replays of this story; all others are not.
    pub(crate) fn spare(&mut self, spared: Spared) {
        self.note(|| Op::Spare(spared));
    }

    /// Begins a recording.
    pub(super) fn recording(&mut self) {
        self.recording.0 = crate::RECORDED.then(Vec::new);
    }

    /// This world is treated in ways of its own: it is not played again.
    pub(crate) fn stop_recording(&mut self) {
        self.recording.0 = None;
    }

    /// Records what happens from outside.
    pub(super) fn note(&mut self, op: impl FnOnce() -> Op) {
        if self.nacre.acting == 0
            && let Some(recording) = &mut self.recording.0
        {
            recording.push(op());
        }
    }

    /// Does something that belongs to what was just recorded.
    pub(super) fn within<T>(&mut self, act: impl FnOnce(&mut Self) -> T) -> T {
        self.nacre.acting += 1;
        let done = act(self);
        self.nacre.acting -= 1;
        done
    }
}

impl Split {
    /// Those who wait a moment for another watch have waited. Returns whether there are any.
    fn enqueue_due_soon(&mut self) -> bool {
        let soon = self.real.uptime + Duration::from_secs(15);
        let due = self.runtime.work.timers().iter().filter(|(_, due)| **due <= soon);
        let due: Vec<_> = due.map(|(key, _)| key.clone()).collect();
        let moment = !due.is_empty() && self.moments < MOMENTS;
        if moment {
            self.moments += 1;
            for key in due {
                self.runtime.work.requeue(&key, Requeue::Now, self.real.uptime);
            }
        }
        moment
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let Some(recording) = self.recording.0.take() else { return };
        if std::thread::panicking() || !recording.iter().any(|op| matches!(op, Op::Rest | Op::RestFor(_))) {
            return;
        }
        let mut calm = self.clone();
        calm.rest_for(MOMENT);
        let expected = (end(&calm), calm.made_for.clone());
        let tell = number("NACRE_FAULT_SEED").is_some();
        let mut seeds = seeds(SEEDS);
        if recording.len() > LONG && !tell {
            seeds.end = seeds.end.div_ceil(FEWER_IF_LONG);
        }
        for seed in seeds {
            let mut player = Player::new(seed, tell);
            let end = player.play(&recording).and_then(|()| player.compare(&expected));
            if let Err(wrong) = end {
                let story = std::thread::current().name().unwrap_or("a story").to_owned();
                let reported = player.reported.unwrap_or_default().join("\n");
                panic!(
                    "{story} ends otherwise under faults: {wrong}\n{reported}\n\
                     again: NACRE_FAULT_SEED={seed} cargo test --package runtime --test stories -- --exact {story}"
                );
            }
        }
    }
}

/// The seeds of faults that are tried: those that the environment names, or so many.
pub(crate) fn seeds(default: u64) -> Range<u64> {
    let single = number("NACRE_FAULT_SEED");
    single.map_or_else(|| 0..number("NACRE_FAULTS").unwrap_or(default), |seed| seed..seed + 1)
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Replays a recording under the faults of one seed.
struct Player {
    split: Split,
    seed: u64,
    spared: Vec<Spared>,
    /// What happened, where somebody wants to know.
    reported: Option<Vec<String>>,
}

impl Player {
    fn new(seed: u64, tell: bool) -> Self {
        let seed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Self {
            split: Split::new(World::empty(), None),
            seed,
            spared: Vec::new(),
            reported: tell.then(Vec::new),
        }
    }

    fn log(&mut self, what: impl FnOnce() -> String) {
        if let Some(reported) = &mut self.reported {
            reported.push(short(&what()).chars().take(300).collect());
        }
    }

    fn play(&mut self, recording: &[Op]) -> Result<(), String> {
        for op in recording {
            match op {
                Op::Rest => self.rest()?,
                Op::RestFor(time) => self.rest_for(*time)?,
                op => {
                    self.log(|| format!("outside: {op:?}"));
                    self.perform(op)?;
                }
            }
        }
        self.rest_for(MOMENT)
    }

    fn perform(&mut self, op: &Op) -> Result<(), String> {
        if let Op::Merge(key, _)
        | Op::MergeStatus(key, _)
        | Op::Respecify(key, _)
        | Op::Finalizers(key, _)
        | Op::Remove(key) = op
            && !self.split.real.objects.contains_key(key)
        {
            return Err(short(&format!("there is no {key:?}")));
        }
        match op.clone() {
            Op::Insert(kind, json) => self.split.outside(|world| _ = world.insert(kind, json)),
            Op::Merge(key, change) => self.split.outside(|world| world.merge(&key, &change)),
            Op::MergeStatus(key, change) => self.split.outside(|world| world.merge_status(&key, &change)),
            Op::Respecify(key, object) => self.split.outside(|world| world.respecify(&key, object)),
            Op::Finalizers(key, all) => self.split.outside(|world| world.set_finalizers(&key, &all)),
            Op::Remove(key) => self.split.outside(|world| world.remove(&key)),
            Op::Jump(time) => self.split.pass(time),
            Op::SetClock(by) => self.split.real.set_clock(by),
            Op::Policy(policy) => {
                self.split.real.policy.clone_from(&policy);
                self.split.read_policy();
            }
            Op::May(user, given) => _ = self.split.real.permissions.insert(user, given),
            Op::Spare(spared) => self.spared.push(spared),
            Op::MindStorage => {
                self.split.mind_storage();
            }
            Op::SeeNamespaces(seen) => {
                self.split.is_yet_to_see_namespaces = !seen;
                if !seen {
                    self.split.restart();
                }
            }
            Op::Collect => {
                self.rest()?;
                for target in self.split.leftovers() {
                    self.split.outside(|world| world.remove(&super::server::key_of(&target)));
                }
                self.rest()?;
            }
            Op::Rest | Op::RestFor(_) => {}
        }
        Ok(())
    }

    fn rest_for(&mut self, time: Duration) -> Result<(), String> {
        self.rest()?;
        let mut left = time;
        while let Some(next) = self.split.next_timer().filter(|next| *next <= left) {
            left -= next;
            self.split.pass(next);
            self.rest()?;
        }
        self.split.pass(left);
        self.rest()
    }

    /// nacre works until there is nothing to do and all its timers have run out, while things go wrong now and then.
    fn rest(&mut self) -> Result<(), String> {
        let mut faults = FAULTS;
        self.split.moments = 0;
        for _ in 0..ENDLESS {
            if self.split.is_down() {
                self.log(|| "restart".to_owned());
                self.split.restart();
            }
            self.deliver_imported();
            let (news, flying, enqueued) = (self.split.news(), self.split.flying(), self.split.enqueued());
            let many = news.len() + flying.len() + enqueued.len();
            if many == 0 && !self.split.enqueue_due_soon() {
                return Ok(());
            }
            if many == 0 {
                continue;
            }
            let at = self.below(many);
            if let Some(key) = news.get(at) {
                self.split.deliver(key);
            } else if let Some(key) = flying.get(at - news.len()) {
                let fate = self.fate(&mut faults);
                let write = self.split.next_write(key).map(|(_, action)| action.clone());
                self.log(|| format!("{fate:?}: {write:?}"));
                match fate {
                    Some(fate) => self.split.write(key, fate),
                    None => self.split.crash(),
                }
            } else if let Some(key) = enqueued.get(at - news.len() - flying.len()) {
                self.log(|| format!("decide about {key:?}"));
                self.split.begin(key);
            }
        }
        Err("nacre does not come to rest".to_owned())
    }

    /// Velero objects that nacre did not create are delivered before requests refer to them. A Backup that was not
    /// delivered yet is taken for one that is gone, and a location likewise: which of two watches is faster decides.
    /// They are old when requests for them come, so this order is kept. So is what a backup's volumes are saved by.
    fn deliver_imported(&mut self) {
        let news = self.split.news();
        let version = |key: &Key| {
            let stored = self.split.real.objects.get(key)?;
            stored.json["metadata"]["resourceVersion"].as_str()?.parse::<u64>().ok()
        };
        let is_new = |key: &&Key| !self.split.has_observed(key);
        let requests = news.iter().filter(|key| key.kind == Kind::NonAdminBackup).filter(is_new);
        let youngest_request = requests.filter_map(version).max();
        let is_due = |key: &&Key| match key.kind {
            Kind::BackupStorageLocation => true,
            Kind::Backup | Kind::Restore | Kind::PersistentVolume => is_new(key),
            Kind::DaemonSet | Kind::PersistentVolumeClaim => {
                version(key).zip(youngest_request).is_some_and(|(fact, request)| fact < request)
            }
            _ => false,
        };
        let due: Vec<Key> = news.iter().filter(is_due).cloned().collect();
        for key in due {
            self.split.deliver(&key);
        }
    }

    /// What becomes of a write; none for a crash.
    fn fate(&mut self, faults: &mut u32) -> Option<Fate> {
        if *faults == 0 || self.below(4) > 0 {
            return Some(Fate::Arrives);
        }
        *faults -= 1;
        let wrong =
            [Some(Fate::Lost), Some(Fate::Unanswered), Some(Fate::Contested), Some(Fate::Failed), None];
        let fate = wrong[self.below(wrong.len())];
        let is_spared = match fate {
            Some(Fate::Contested | Fate::Failed) => self.spared.contains(&Spared::Rejections),
            None => self.spared.contains(&Spared::Crashes),
            Some(Fate::Arrives | Fate::Lost | Fate::Unanswered) => false,
        };
        if is_spared { Some(Fate::Lost) } else { fate }
    }

    /// Whether all is as it is without faults.
    fn compare(
        &self,
        (expected, made): &(BTreeMap<String, Value>, BTreeMap<String, usize>),
    ) -> Result<(), String> {
        if let Some(complaint) = self.split.complaints().first() {
            return Err(complaint.clone());
        }
        if self.split.real.made_for != *made {
            return Err(short(&format!("Velero was given {:?} and not {made:?}", self.split.real.made_for)));
        }
        let found = end(&self.split.real);
        let names = expected.keys().chain(found.keys());
        let differs = |name: &&String| expected.get(*name) != found.get(*name);
        names.into_iter().find(differs).map_or(Ok(()), |name| {
            let show = |end: &BTreeMap<String, Value>| {
                end.get(name).map_or_else(|| "nothing".to_owned(), Value::to_string)
            };
            Err(format!("{name} is\n{}\nand not\n{}", show(&found), show(expected)))
        })
    }

    /// A number below this one.
    fn below(&mut self, many: usize) -> usize {
        // A linear congruential generator: any order will do, as long as it is the same next time.
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.seed >> 33) % u64::try_from(many).unwrap()).unwrap()
    }
}

/// Everything, without what may differ: times, versions, uids, and positions, which are a chore's to keep.
fn end(world: &World) -> BTreeMap<String, Value> {
    let mut end = BTreeMap::new();
    for (key, object) in world.everything() {
        // Asked for once more when Velero had done it already: left to the garbage collector.
        let backup = object["spec"]["backupName"].as_str().unwrap_or_default();
        if key.kind == Kind::DeleteBackupRequest && !world.has(&format!("backup {backup}")) {
            continue;
        }
        let mut object = object.clone();
        plain(&mut object);
        end.insert(short(&format!("{} {}/{}", key.kind.name(), key.namespace, key.name)), object);
    }
    end
}

fn plain(json: &mut Value) {
    const PASSING: [&str; 8] = [
        "uid",
        "resourceVersion",
        "generation",
        "observedGeneration",
        "queueInfo",
        "queuePosition",
        labels::VELERO_BACKUP_UID,
        planner::turns::TAG,
    ];
    match json {
        Value::Object(fields) => {
            if fields.get("type").is_some_and(|type_| type_ == condition::WAITING_FOR_TURN) {
                fields.remove("message");
            }
            fields.retain(|name, _| {
                !PASSING.contains(&name.as_str()) && !name.ends_with("Timestamp") && !name.ends_with("Time")
            });
            fields.values_mut().for_each(plain);
        }
        Value::Array(items) => items.iter_mut().for_each(plain),
        _ => {}
    }
}
