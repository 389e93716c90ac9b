//! Invariants of every state, of every write, and of idle states.

use std::time::Duration;

use api::{Kind, labels};
use planner::{Action, Key, Target};
use serde_json::{Value, json};

use crate::moves::{Move, State};
use crate::schedules;
use crate::setups::Setup;
use crate::world::{ADMIN, World, short};

/// More moves than any world needs before it comes to rest.
const ENDLESS: usize = 400;
/// How often time passes until nothing waits for it any more.
const ROUNDS: usize = 12;

const FINALIZERS: [&str; 3] = [labels::NAB_FINALIZER, labels::NAR_FINALIZER, labels::NABSL_FINALIZER];

fn text(json: &Value) -> &str {
    json.as_str().unwrap_or_default()
}

/// What is wrong with a write that is about to be sent: nothing goes that nobody wanted gone.
pub(crate) fn wrong_to_send(state: &State, step: &Move) -> Option<String> {
    let Move::Write(about, _) = step else { return None };
    let (uid, action) = state.split.next_write(about)?;
    if about.kind == Kind::NonAdminSchedule {
        return None;
    }
    let deletes_data = |action: &Action| matches!(action, Action::Create(object) if object.kind == Kind::DeleteBackupRequest);
    let is_last = || no_newer_good(&state.split.real, &about.namespace, &about.name);
    if deletes_data(action) && state.wrongly_marked.contains(uid) && is_last() {
        return Some(format!("the data of the last good run is deleted: {}", about.name));
    }
    let asked = state.asked.contains(uid);
    let with_data = state.asked_with_data.contains(uid);
    let right = match action {
        Action::Create(object) => object.kind != Kind::DeleteBackupRequest || with_data,
        Action::Delete(target) | Action::DeleteUnchanged(target) => match (about.kind, target.kind) {
            (Kind::NonAdminBackup, Kind::Backup) => asked || with_data,
            (Kind::NonAdminBackup, Kind::NonAdminBackup | Kind::NonAdminRestore) => with_data,
            (Kind::NonAdminRestore, Kind::Restore)
            | (Kind::NonAdminBackupStorageLocation, Kind::NonAdminBackup) => asked,
            // What an administrator takes back, or a tenant changes, goes without being asked for.
            (Kind::NonAdminBackup, Kind::DeleteBackupRequest) | (Kind::NonAdminBackupStorageLocation, _) => {
                true
            }
            _ => false,
        },
        _ => true,
    };
    (!right).then(|| format!("nobody asked for this: {}", short(&format!("{action:?}"))))
}

/// What is wrong with a decision that was just made. What becomes of other backups between a decision and its writes is
/// checked when the data is to be deleted.
pub(crate) fn wrong_to_decide(state: &State, step: &Move) -> Option<String> {
    let Move::Begin(about) = step else { return None };
    let plan = state.split.plan(about).filter(|_| about.kind == Kind::NonAdminSchedule)?;
    // With news on their way it decides on what it knows.
    let knows = state.split.news().is_empty();
    plan.actions.iter().filter(|_| knows).find_map(|action| wrong_to_schedule(&state.split.real, action))
}

/// What is wrong with marking a run to be deleted with its data, as things are now.
pub(crate) fn wrong_to_mark(world: &World, action: &Action) -> Option<String> {
    let marks = matches!(action, Action::Patch(_, body) if body["spec"]["deleteBackup"] == json!(true));
    if marks { wrong_to_schedule(world, action) } else { None }
}

/// A schedule deletes only backups that are not its last good one: there must be a newer one that stays. Of runs that never
/// started, it may delete the request alone.
fn wrong_to_schedule(world: &World, action: &Action) -> Option<String> {
    let target = match action {
        Action::Patch(target, body) if body["spec"]["deleteBackup"] == json!(true) => target,
        Action::Delete(target) if target.kind == Kind::NonAdminBackup => target,
        _ => return None,
    };
    no_newer_good(world, &target.namespace, &target.name)
        .then(|| format!("the last good run is deleted: {}", target.name))
}

/// Whether a run has data, and no newer good one stays.
fn no_newer_good(world: &World, namespace: &str, name: &str) -> bool {
    let run = world.get(&format!("nab {namespace}/{name}"));
    let began = |run: &Value| text(&run["status"]["veleroBackup"]["status"]["startTimestamp"]).to_owned();
    let is_newer = |other: &Value| {
        other["metadata"]["labels"][labels::NAS_NAME] == run["metadata"]["labels"][labels::NAS_NAME]
            && other["status"]["veleroBackup"]["status"]["phase"] == "Completed"
            && other["spec"]["deleteBackup"] != json!(true)
            && other["metadata"]["deletionTimestamp"].is_null()
            && began(other) > began(&run)
    };
    let has_data = !began(&run).is_empty();
    let newer = world.everything().any(|(key, other)| key.kind == Kind::NonAdminBackup && is_newer(other));
    has_data && !newer
}

/// What is wrong with a state, whatever comes next.
pub(crate) fn wrong(state: &State, setup: &Setup) -> Option<String> {
    if let Some(complaint) = state.split.complaints().first() {
        return Some(complaint.clone());
    }
    let world = &state.split.real;
    if let Some((uid, made)) = world.made_for().iter().find(|(_, made)| **made > 1) {
        return Some(format!("Velero was given {} {made} times", short(uid)));
    }
    if let Some(passed) = state.passed_twice() {
        return Some(passed);
    }
    if let Some(wrong) = too_much_at_once(world).or_else(|| idle_while_somebody_waits(state)) {
        return Some(wrong);
    }
    for (key, object) in world.everything() {
        if let Some(wrong) = wrong_object(world, key, object) {
            return Some(format!("{} {wrong}", short(&format!("{} {}", key.kind.name(), key.name))));
        }
    }
    setup.bystander.and_then(|name| {
        let theirs = |world: &World| -> Vec<Value> {
            let all = world.everything().filter(|(key, object)| of(key, object, name));
            all.map(|(_, object)| object.clone()).collect()
        };
        (theirs(world) != theirs(&setup.start)).then(|| format!("something of {name}'s has changed"))
    })
}

/// Velero has more at a time than it may be given.
fn too_much_at_once(world: &World) -> Option<String> {
    // Where the policy says nothing, jobs that are over in a moment allow some more, and so do workers that nacre has seen.
    let most = world.in_flight()? + world.more_if_short();
    [Kind::Backup, Kind::Restore].into_iter().find_map(|kind| {
        let unfinished = |(key, object): &(&Key, &Value)| {
            key.kind == kind && matches!(text(&object["status"]["phase"]), "" | "InProgress")
        };
        let number = world.everything().filter(unfinished).count();
        (number > most).then(|| format!("a turn is given twice: Velero has {number} of {}", kind.name()))
    })
}

/// nacre has nothing to do, Velero could be given one, and somebody waits for their turn.
fn idle_while_somebody_waits(state: &State) -> Option<String> {
    let world = &state.split.real;
    let most = world.in_flight().filter(|_| state.split.has_nothing_to_do())?;
    let at_velero = |(key, object): &(&Key, &Value)| {
        key.kind == Kind::Backup && matches!(text(&object["status"]["phase"]), "" | "InProgress")
    };
    let waits = |(key, object): &(&Key, &Value)| {
        let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
        let turn =
            |one: &Value| text(&one["type"]) == "WaitingForTurn" && text(&one["reason"]) == "OthersFirst";
        key.kind == Kind::NonAdminBackup
            && object["metadata"]["deletionTimestamp"].is_null()
            && conditions.into_iter().any(turn)
    };
    let waiting = world.everything().filter(waits).count();
    let is_free = world.everything().filter(at_velero).count() < most;
    (is_free && waiting > 0).then(|| format!("Velero is idle while {waiting} wait for their turn"))
}

fn of(key: &Key, object: &Value, namespace: &str) -> bool {
    let marks = &object["metadata"]["annotations"];
    let marked = [labels::NAB_NAMESPACE, labels::NAR_NAMESPACE, labels::NABSL_NAMESPACE]
        .iter()
        .any(|mark| text(&marks[*mark]) == namespace);
    key.namespace == namespace || (key.namespace == ADMIN && marked)
}

/// No object of Velero's reaches beyond the namespace it was made for.
fn wrong_object(world: &World, key: &Key, object: &Value) -> Option<String> {
    let marks = &object["metadata"]["annotations"];
    let (origin, spec) = match key.kind {
        Kind::Backup => (text(&marks[labels::NAB_NAMESPACE]), &object["spec"]),
        Kind::Restore => (text(&marks[labels::NAR_NAMESPACE]), &object["spec"]),
        _ => return None,
    };
    if spec["includedNamespaces"] != json!([origin]) {
        return Some(format!("was made for {origin} and names {}", spec["includedNamespaces"]));
    }
    let place = world.get(&format!("bsl {}", text(&spec["storageLocation"])));
    let owner = text(&place["metadata"]["annotations"][labels::NABSL_NAMESPACE]);
    if !owner.is_empty() && owner != origin {
        return Some(format!("of {origin} is kept in the storage of {owner}"));
    }
    let source = world.get(&format!("backup {}", text(&spec["backupName"])));
    let owner = text(&source["metadata"]["annotations"][labels::NAB_NAMESPACE]);
    (!owner.is_empty() && owner != origin).then(|| format!("of {origin} restores what is {owner}'s"))
}

/// Whether a state leads to a good end if nothing happens but time: returns what is wrong there.
pub(crate) fn ends_badly(state: &State, setup: &Setup) -> Option<String> {
    let mut state = state.clone();
    for _ in 0..ROUNDS {
        if let Err(wrong) = rest(&mut state, setup) {
            return Some(wrong);
        }
        let wait = state.split.next_timer();
        state.split.pass(wait.unwrap_or(Duration::from_mins(10)).max(Duration::from_secs(20)));
    }
    if let Err(wrong) = rest(&mut state, setup) {
        return Some(wrong);
    }
    if let Some(missed) = state.split.missed().first() {
        return Some(missed.clone());
    }
    let leftovers = state.split.leftovers();
    state.split.outside(|world| collect_requests(world, &leftovers));
    let world = &state.split.real;
    world.everything().find_map(|(key, object)| {
        let wrong = if key.kind.group() == Kind::NonAdminBackup.group() {
            unfinished(world, key, object)
        } else {
            left_behind(world, object, setup.may_leave)
        };
        wrong.map(|wrong| {
            short(&format!("{} {}/{} {wrong}: {object}", key.kind.name(), key.namespace, key.name))
        })
    })
}

/// The garbage collector takes requests to delete what was gone already. Anything else must not need it.
fn collect_requests(world: &mut World, leftovers: &[Target]) {
    for target in leftovers {
        if target.kind == Kind::DeleteBackupRequest {
            world.delete(&format!("dbr {}", target.name));
        }
    }
}

/// Everybody does what is to be done, until there is nothing.
fn rest(state: &mut State, setup: &Setup) -> Result<(), String> {
    for _ in 0..ENDLESS {
        let Some((step, true)) = state.moves(setup).into_iter().next() else { return Ok(()) };
        if let Some(wrong) = wrong_to_send(state, &step) {
            return Err(wrong);
        }
        *state = state.after(setup, &step);
        if let Some(wrong) = wrong(state, setup).or_else(|| wrong_to_decide(state, &step)) {
            return Err(wrong);
        }
    }
    Err("it does not come to rest".to_owned())
}

/// A request is finished, or says what it waits for; one that is being deleted is gone, unless it has another
/// finalizer.
fn unfinished(world: &World, key: &Key, object: &Value) -> Option<&'static str> {
    let metadata = &object["metadata"];
    let held = |own: bool| {
        let all = metadata["finalizers"].as_array().into_iter().flatten();
        all.filter(|one| FINALIZERS.contains(&text(one)) == own).count() > 0
    };
    if !metadata["deletionTimestamp"].is_null() {
        return (held(true) || !held(false)).then_some("is stuck while being deleted");
    }
    if key.kind == Kind::NonAdminSchedule {
        return schedules::unfinished(world, key, object);
    }
    let status = &object["status"];
    let conditions = status["conditions"].as_array();
    let says_why = conditions.into_iter().flatten().any(|condition| {
        let news = text(&condition["status"]) == "False" || text(&condition["type"]) == "Deleting";
        news && !text(&condition["message"]).is_empty()
    });
    let over = |part: &str| {
        let shown = &status[part];
        let name = text(&shown["name"]);
        let kind = if part == "veleroBackup" { "backup" } else { "restore" };
        let real = world.get(&format!("{kind} {name}"));
        let phase = text(&shown["status"]["phase"]);
        phase == text(&real["status"]["phase"]) && !matches!(phase, "" | "InProgress")
    };
    let created = text(&status["phase"]) == "Created";
    let ended = match key.kind {
        Kind::NonAdminBackup => created && over("veleroBackup"),
        Kind::NonAdminRestore => created && over("veleroRestore"),
        Kind::NonAdminBackupStorageLocation => created,
        _ => true,
    };
    if !ended && (created || !says_why) {
        return Some("neither ended nor says what it waits for");
    }
    let honest = key.namespace == "shop" && key.kind == Kind::NonAdminBackup;
    let lost = world.made_for().get(text(&metadata["uid"])).is_none() && says_lost(object);
    (honest && lost).then_some("says that Velero lost what Velero never had")
}

/// What was made for a request goes with it.
fn left_behind(world: &World, object: &Value, may_leave: bool) -> Option<&'static str> {
    let origin = text(&object["metadata"]["annotations"][labels::ORIGIN_UID]);
    let alive = world.everything().any(|(_, other)| text(&other["metadata"]["uid"]) == origin);
    (!origin.is_empty() && !alive && !may_leave).then_some("is left behind")
}

fn says_lost(request: &Value) -> bool {
    let conditions = request["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|one| text(&one["reason"]) == "VeleroBackupNotFound")
}
