//! The small worlds: their initial states, and the possible steps.

use api::{Kind, labels};
use serde_json::{Value, json};

use crate::moves::{Left, Step};
use crate::world::World;
use crate::world::manifests::{nab, nab_with, nar, object};

/// A small world.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) name: &'static str,
    pub(crate) start: World,
    pub(crate) steps: Vec<Step>,
    pub(crate) left: Left,
    /// A namespace in which nothing may change, whatever the others do.
    pub(crate) bystander: Option<&'static str>,
    /// Whether somebody may take off nacre's finalizer: what that leaves behind is for the garbage collector.
    pub(crate) may_leave: bool,
}

/// Whether everything is to be explored, and not only a slice.
pub(crate) fn full() -> bool {
    std::env::var("NACRE_MODEL").is_ok_and(|how| how == "full")
}

const KEYS: &str = "W2RlZmF1bHRdCmF3c19hY2Nlc3Nfa2V5X2lkPWEKYXdzX3NlY3JldF9hY2Nlc3Nfa2V5PWh1bnRlcjIK";
/// What somebody else holds things with.
const FOREIGN: &str = "example.com/mine";

fn has(world: &World, object: &str) -> bool {
    world.has(object)
}

fn is_staying(world: &World, object: &str) -> bool {
    world.has(object) && world.get(object)["metadata"]["deletionTimestamp"].is_null()
}

fn wish(name: &'static str, possible: fn(&World) -> bool, act: fn(&mut World)) -> Step {
    Step { name, hostile: false, possible, act }
}

fn trick(name: &'static str, possible: fn(&World) -> bool, act: fn(&mut World)) -> Step {
    Step { name, hostile: true, possible, act }
}

fn with_data() -> Value {
    json!({"spec": {"deleteBackup": true}})
}

/// `shop` has a backup that is complete.
fn done(world: &mut World) {
    world.apply(nab("shop/a"));
    world.settle();
    let name = world.velero_name("nab shop/a");
    world.velero_starts(&name);
    world.velero_completes(&name);
    world.settle();
}

/// What `shop` may want of its backup.
fn of_a_backup() -> Vec<Step> {
    vec![
        wish("shop asks for a backup", |w| !has(w, "nab shop/a"), |w| w.apply(nab("shop/a"))),
        wish("shop wants the data gone", |w| has(w, "nab shop/a"), |w| w.edit("nab shop/a", with_data())),
        wish("shop deletes its backup", |w| is_staying(w, "nab shop/a"), |w| w.delete("nab shop/a")),
        wish(
            "shop wants the data to stay after all",
            |w| w.get("nab shop/a")["spec"]["deleteBackup"] == json!(true),
            |w| w.edit("nab shop/a", json!({"spec": {"deleteBackup": false}})),
        ),
        wish(
            "shop asks again under the same name",
            |w| !has(w, "nab shop/a") && w.births(Kind::NonAdminBackup) > 0,
            |w| w.apply(nab("shop/a")),
        ),
        // Only once its status shows it: nothing but the status says that Velero had it, so a Backup that comes and
        // goes while nacre is away for as long as it lives is made once more. The same goes for a Restore, which Velero
        // deletes with its Backup; a second one then fails.
        wish(
            "the backup is too old",
            |w| {
                let reported = w.get("nab shop/a")["status"]["phase"] == "Created";
                let over = |name: String| w.get(&format!("backup {name}"))["status"]["phase"] == "Completed";
                let untold = has(w, "nar shop/r")
                    && w.births(Kind::Restore) > 0
                    && w.get("nar shop/r")["status"]["phase"] != "Created";
                reported && !untold && stolen(w).is_some_and(over)
            },
            |w| {
                let name = stolen(w).unwrap();
                w.velero_expires(&name);
            },
        ),
        wish(
            "shop holds its backup itself",
            |w| is_staying(w, "nab shop/a"),
            |w| add_finalizer(w, "nab shop/a"),
        ),
    ]
}

fn add_finalizer(world: &mut World, object: &str) {
    let mut all = world.get(object)["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    all.push(json!(FOREIGN));
    world.edit(object, json!({"metadata": {"finalizers": all}}));
}

/// The name of the victim's Velero Backup, as it can be read in logs and metrics.
fn stolen(world: &World) -> Option<String> {
    world.has("nab shop/a").then(|| world.velero_name("nab shop/a"))
}

fn copied_marks(world: &World) -> Value {
    let name = stolen(world).unwrap_or_default();
    let uid = world.get("nab shop/a")["metadata"]["uid"].clone();
    json!({"metadata": {
        "labels": {labels::SYNCED_FROM: name, labels::NAB_NACUUID: name},
        "annotations": {labels::NAB_NAMESPACE: "shop", labels::NAB_NAME: "a", labels::ORIGIN_UID: uid},
    }})
}

/// What somebody hostile may do with a request of their own.
fn of_an_attacker() -> Vec<Step> {
    vec![
        trick("evil asks for a backup", |w| !has(w, "nab evil/b"), |w| w.apply(nab("evil/b"))),
        trick(
            "evil asks with a copied label",
            |w| !has(w, "nab evil/b") && stolen(w).is_some(),
            |w| {
                let mut request = nab("evil/b");
                request["metadata"]["labels"] = copied_marks(w)["metadata"]["labels"].clone();
                w.apply(request);
            },
        ),
        trick(
            "evil asks under the victim's name",
            |w| !has(w, "nab evil/a"),
            |w| w.apply(nab_with("evil/a", json!({"includedNamespaces": ["evil"]}))),
        ),
        trick(
            "evil copies marks onto its request",
            |w| has(w, "nab evil/b") && stolen(w).is_some(),
            |w| {
                let marks = copied_marks(w);
                w.edit("nab evil/b", marks);
            },
        ),
        trick(
            "evil forges a status that names the victim's backup",
            |w| has(w, "nab evil/b") && stolen(w).is_some(),
            |w| {
                let name = stolen(w).unwrap();
                let velero = json!({"nacuuid": name, "name": name, "namespace": "velero"});
                w.forge_status("nab evil/b", json!({"phase": "Created", "veleroBackup": velero}));
            },
        ),
        trick(
            "evil wipes a status",
            |w| has(w, "nab evil/b") && !w.get("nab evil/b")["status"].is_null(),
            |w| w.forge_status("nab evil/b", Value::Null),
        ),
        trick(
            "evil takes off all finalizers",
            |w| has(w, "nab evil/b"),
            |w| w.edit("nab evil/b", json!({"metadata": {"finalizers": []}})),
        ),
        trick(
            "evil puts on a finalizer of its own",
            |w| is_staying(w, "nab evil/b"),
            |w| add_finalizer(w, "nab evil/b"),
        ),
        trick("evil wants the data gone", |w| has(w, "nab evil/b"), |w| w.edit("nab evil/b", with_data())),
        trick("evil deletes its request", |w| is_staying(w, "nab evil/b"), |w| w.delete("nab evil/b")),
        trick(
            "evil asks to restore what is the victim's",
            |w| !has(w, "nar evil/r"),
            |w| w.apply(nar("evil/r", "b")),
        ),
        trick("evil deletes its restore", |w| is_staying(w, "nar evil/r"), |w| w.delete("nar evil/r")),
    ]
}

fn left(slice: [u8; 5], whole: [u8; 5]) -> Left {
    let [faults, delays, tricks, wishes, minutes] = if full() { whole } else { slice };
    Left { faults, delays, tricks, wishes, minutes }
}

/// Two tenants who each want a backup made and removed.
pub(crate) fn two_tenants() -> Setup {
    let start = World::with(&["shop", "evil"]);
    let mut steps = of_a_backup();
    steps.push(wish("evil asks for a backup", |w| !has(w, "nab evil/b"), |w| w.apply(nab("evil/b"))));
    let left = left([0, 1, 0, 2, 0], [1, 1, 0, 2, 1]);
    Setup { name: "two tenants", start, steps, left, bystander: None, may_leave: false }
}

/// Somebody has a backup, and a neighbour who wants it.
pub(crate) fn hostile_neighbour() -> Setup {
    let mut start = World::with(&["shop", "evil"]);
    done(&mut start);
    let left = left([0, 1, 2, 0, 0], [1, 1, 2, 0, 1]);
    Setup {
        name: "a hostile neighbour",
        start,
        steps: of_an_attacker(),
        left,
        bystander: Some("shop"),
        may_leave: true,
    }
}

fn of_a_restore() -> Vec<Step> {
    vec![
        wish("shop asks for a restore", |w| !has(w, "nar shop/r"), |w| w.apply(nar("shop/r", "a"))),
        wish("shop deletes the restore", |w| is_staying(w, "nar shop/r"), |w| w.delete("nar shop/r")),
        wish(
            "shop asks for it again",
            |w| !has(w, "nar shop/r") && w.births(Kind::NonAdminRestore) > 0,
            |w| w.apply(nar("shop/r", "a")),
        ),
    ]
}

/// A restore, and a backup that may go meanwhile.
pub(crate) fn restore() -> Setup {
    let mut start = World::with(&["shop"]);
    done(&mut start);
    let steps = [of_a_restore(), of_a_backup()].concat();
    let left = left([0, 1, 0, 2, 0], [1, 1, 0, 2, 1]);
    Setup { name: "a restore and its backup", start, steps, left, bystander: None, may_leave: false }
}

fn bucket_of(place: &str, bucket: &str) -> Value {
    let spec = json!({"provider": "aws", "objectStorage": {"bucket": bucket}, "config": {"region": "eu-west-1"},
        "credential": {"name": "keys", "key": "cloud"}});
    object(Kind::NonAdminBackupStorageLocation, place, json!({"spec": {"backupStorageLocationSpec": spec}}))
}

/// A cluster where nacre looks after storage, and locations need a yes.
fn with_storage(namespaces: &[&str]) -> World {
    let mut world = World::with(namespaces);
    world.mind_storage();
    world.policy(|policy| policy.storage_locations.require_approval = true);
    for name in namespaces {
        world.apply(object(Kind::Secret, &format!("{name}/keys"), json!({"data": {"cloud": KEYS}})));
    }
    world.settle();
    world
}

fn request(world: &World) -> Option<String> {
    let name = world.has("nabsl shop/l").then(|| world.velero_name("nabsl shop/l"))?;
    world.has(&format!("request {name}")).then(|| format!("request {name}"))
}

fn say(world: &mut World, decision: &str) {
    let request = request(world).unwrap();
    world.edit(&request, json!({"spec": {"approvalDecision": decision}}));
}

fn of_a_bucket() -> Vec<Step> {
    vec![
        wish("shop brings a bucket", |w| !has(w, "nabsl shop/l"), |w| w.apply(bucket_of("shop/l", "mine"))),
        wish("an administrator approves", |w| request(w).is_some(), |w| say(w, "approve")),
        wish(
            "shop asks for a backup in it",
            |w| !has(w, "nab shop/c"),
            |w| w.apply(nab_with("shop/c", json!({"storageLocation": "l"}))),
        ),
        wish("an administrator rejects", |w| request(w).is_some(), |w| say(w, "reject")),
        wish("shop deletes the location", |w| is_staying(w, "nabsl shop/l"), |w| w.delete("nabsl shop/l")),
        wish(
            "shop changes the bucket",
            |w| is_staying(w, "nabsl shop/l"),
            |w| {
                let change = json!({"objectStorage": {"bucket": "other"}});
                w.edit("nabsl shop/l", json!({"spec": {"backupStorageLocationSpec": change}}));
            },
        ),
        wish(
            "an administrator approves again",
            |w| request(w).is_some_and(|name| w.get(&name)["spec"]["approvalDecision"] == "reject"),
            |w| say(w, "approve"),
        ),
        trick(
            "evil asks to use the location",
            |w| !has(w, "nab evil/b"),
            |w| w.apply(nab_with("evil/b", json!({"storageLocation": "l"}))),
        ),
        trick(
            "evil brings the same bucket, with a status that names shop's",
            |w| !has(w, "nabsl evil/l") && w.has("nabsl shop/l"),
            |w| {
                let name = w.velero_name("nabsl shop/l");
                w.apply(bucket_of("evil/l", "mine"));
                let reported = json!({"name": name, "nacuuid": name});
                w.forge_status(
                    "nabsl evil/l",
                    json!({"phase": "Created", "veleroBackupStorageLocation": reported}),
                );
            },
        ),
        trick("evil deletes its location", |w| is_staying(w, "nabsl evil/l"), |w| w.delete("nabsl evil/l")),
    ]
}

/// A bucket that an administrator has to approve, and somebody who would like to use it too.
pub(crate) fn bucket() -> Setup {
    let start = with_storage(&["shop", "evil"]);
    let left = left([1, 1, 0, 2, 0], [1, 1, 1, 3, 0]);
    Setup {
        name: "a bucket to be approved",
        start,
        steps: of_a_bucket(),
        left,
        bystander: None,
        may_leave: false,
    }
}

/// Two namespaces, two backups, a location, a restore and somebody hostile.
pub(crate) fn everything() -> Setup {
    let mut start = with_storage(&["shop", "evil"]);
    start.apply(bucket_of("shop/l", "mine"));
    start.settle();
    say(&mut start, "approve");
    start.settle();
    let storage = start.velero_name("nabsl shop/l");
    start.edit(&format!("bsl {storage}"), json!({"status": {"phase": "Available"}}));
    start.apply(nab_with("shop/a", json!({"storageLocation": "l"})));
    start.settle();
    // What else shop may want is wanted in the other worlds.
    let tricks = [of_a_bucket(), of_an_attacker()].concat().into_iter().filter(|step| step.hostile);
    let steps = of_a_restore().into_iter().chain(tricks).collect();
    let left = left([0, 1, 1, 0, 0], [1, 0, 1, 1, 0]);
    Setup { name: "everything at once", start, steps, left, bystander: None, may_leave: true }
}

/// The runs of the schedule that are there.
fn first_run(world: &World) -> Option<String> {
    let names = world.names(Kind::NonAdminBackup).into_iter();
    names.map(|name| format!("nab {name}")).find(|name| is_staying(world, name))
}

/// A backup that Velero is at work on.
fn running(world: &World) -> Option<String> {
    let mut all = world.everything();
    let found =
        all.find(|(key, object)| key.kind == Kind::Backup && object["status"]["phase"] == "InProgress");
    found.map(|(key, _)| key.name.clone())
}

/// A schedule that has made a run and has another one due, keeps one of them, and whose owner changes their mind.
pub(crate) fn schedule() -> Setup {
    let mut start = World::with(&["shop"]);
    start.policy(|policy| policy.schedules.spread = "0".into());
    let spec =
        json!({"schedule": "1,2 0 1 1 *", "template": {"backupSpec": {}}, "retention": {"keepLast": 1}});
    start.apply(object(Kind::NonAdminSchedule, "shop/s", json!({ "spec": spec })));
    start.pass(std::time::Duration::from_mins(1));
    let name = start.velero_name("nab shop/s-20260101000100");
    start.velero_starts(&name);
    start.velero_completes_one_item(&name);
    start.settle();
    let steps = vec![
        wish("shop deletes a run", |w| first_run(w).is_some(), |w| w.delete(&first_run(w).unwrap())),
        wish(
            "shop deletes the new run",
            |w| is_staying(w, "nab shop/s-20260101000200"),
            |w| w.delete("nab shop/s-20260101000200"),
        ),
        wish(
            "shop pauses the schedule",
            |w| has(w, "nas shop/s"),
            |w| w.edit("nas shop/s", json!({"spec": {"paused": true}})),
        ),
        wish("shop deletes the schedule", |w| has(w, "nas shop/s"), |w| w.delete("nas shop/s")),
        wish(
            "Velero fails a run",
            |w| running(w).is_some(),
            |w| {
                let name = running(w).unwrap();
                w.velero_ends(&name, "Failed", json!({}));
            },
        ),
        wish(
            "shop keeps two",
            |w| has(w, "nas shop/s"),
            |w| w.edit("nas shop/s", json!({"spec": {"retention": {"keepLast": 2}}})),
        ),
    ];
    let left = left([1, 0, 0, 0, 1], [1, 0, 0, 1, 1]);
    Setup {
        name: "a schedule with runs and retention",
        start,
        steps,
        left,
        bystander: None,
        may_leave: false,
    }
}

/// Somebody has asked for two or three backups, of which Velero is given one at a time, and somebody else for one.
pub(crate) fn turns() -> Setup {
    turns_of(if full() { &["evil/b", "evil/c", "evil/d", "shop/a"] } else { &["evil/b", "evil/c", "shop/a"] })
}

/// The same for these requests, of which the first is evil/b.
pub(crate) fn turns_of(asked: &[&str]) -> Setup {
    let mut start = World::with(&["shop", "evil"]);
    start.policy(|policy| policy.queue.in_flight = Some(1));
    turns_in(start, "turns", asked)
}

/// The policy says nothing about how many Velero is given, the backups of evil are over in a moment, and shop's are expected
/// to take a minute, as the last one of all did.
pub(crate) fn turns_of_short_jobs() -> Setup {
    let mut start = World::with(&["shop", "evil", "lab"]);
    for (request, takes) in [("evil/a", 0), ("lab/a", 60)] {
        start.apply(nab(request));
        start.settle();
        let name = start.velero_name(&format!("nab {request}"));
        start.velero_starts(&name);
        start.pass(std::time::Duration::from_secs(takes));
        start.velero_completes_one_item(&name);
        start.settle();
    }
    let asked: &[&str] =
        if full() { &["evil/b", "evil/c", "shop/a", "evil/d"] } else { &["evil/b", "evil/c", "shop/a"] };
    let setup = turns_in(start, "turns of short jobs", asked);
    // Without faults and wishes, so that it is quick enough for every run. Velero may stay silent about what it was given.
    Setup { left: left([0, 0, 0, 0, 1], [1, 0, 0, 1, 1]), ..setup }
}

fn turns_in(mut start: World, name: &'static str, asked: &[&str]) -> Setup {
    for name in asked {
        start.apply(nab(name));
        start.settle();
    }
    let running = start.velero_name("nab evil/b");
    start.velero_starts(&running);
    start.settle();
    let steps = vec![
        wish("shop deletes its backup", |w| is_staying(w, "nab shop/a"), |w| w.delete("nab shop/a")),
        wish("evil deletes what waits", |w| is_staying(w, "nab evil/c"), |w| w.delete("nab evil/c")),
        wish("evil deletes what runs", |w| is_staying(w, "nab evil/b"), |w| w.delete("nab evil/b")),
    ];
    // A minute: Velero may stay silent about what it was given, also when nacre crashes.
    let left = left([1, 0, 0, 0, 1], [1, 0, 0, 1, 1]);
    Setup { name, start, steps, left, bystander: None, may_leave: false }
}
