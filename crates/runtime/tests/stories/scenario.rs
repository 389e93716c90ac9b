//! What can happen in the crash property: steps of tenants and of Velero, over two namespaces.

use std::collections::BTreeMap;
use std::time::Duration;

use api::{Kind, labels};
use jiff::SignedDuration;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::world::manifests::{nab, nab_with, nar};
use crate::world::{World, short};

/// One of the two backups: one in the tenant's own storage, one in the platform's.
#[derive(Clone, Copy, Debug)]
pub(super) enum Which {
    Shop,
    Office,
}

/// Somebody does something. What is not possible at the time does nothing. Nobody takes off a finalizer: who does so
/// while nacre is down leaves something behind for the garbage collector.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    AskForBackup(Which),
    AskForNonsense(Which),
    EditBackup(Which),
    DeleteData(Which),
    KeepData(Which),
    DeleteBackup(Which),
    AskForRestore,
    DeleteRestore,
    VeleroGetsOn(Which),
    VeleroFails(Which),
    VeleroExpires(Which),
    VeleroGetsOnWithRestore,
    VeleroTidies,
    VeleroDeletes,
    VeleroFailsToDelete,
    StorageGoesAway(Which),
    StorageComesBack(Which),
    TimePasses,
    ClockIsSet { back: bool },
}

/// What happens in any case at the end, so that whatever can end does.
const END: [Step; 8] = [
    Step::StorageComesBack(Which::Shop),
    Step::StorageComesBack(Which::Office),
    Step::TimePasses,
    Step::VeleroDeletes,
    Step::VeleroTidies,
    Step::TimePasses,
    Step::VeleroDeletes,
    Step::TimePasses,
];

/// Sequences that get somewhere: what usually comes next is likelier.
pub(super) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let which = || prop_oneof![Just(Which::Shop), Just(Which::Office)];
    let step = prop_oneof![
        6 => which().prop_map(Step::AskForBackup),
        1 => which().prop_map(Step::AskForNonsense),
        1 => which().prop_map(Step::EditBackup),
        4 => which().prop_map(Step::DeleteData),
        1 => which().prop_map(Step::KeepData),
        3 => which().prop_map(Step::DeleteBackup),
        3 => Just(Step::AskForRestore),
        1 => Just(Step::DeleteRestore),
        8 => which().prop_map(Step::VeleroGetsOn),
        1 => which().prop_map(Step::VeleroFails),
        1 => which().prop_map(Step::VeleroExpires),
        2 => Just(Step::VeleroGetsOnWithRestore),
        1 => Just(Step::VeleroTidies),
        2 => Just(Step::VeleroDeletes),
        1 => Just(Step::VeleroFailsToDelete),
        2 => which().prop_map(Step::StorageGoesAway),
        1 => which().prop_map(Step::StorageComesBack),
        2 => Just(Step::TimePasses),
        1 => any::<bool>().prop_map(|back| Step::ClockIsSet { back }),
    ];
    let done = |which| vec![Step::AskForBackup(which), Step::VeleroGetsOn(which), Step::VeleroGetsOn(which)];
    let before = prop_oneof![
        2 => Just(Vec::new()),
        2 => Just(done(Which::Shop)),
        1 => Just(done(Which::Office)),
        1 => which().prop_map(|which| vec![Step::AskForBackup(which), Step::DeleteBackup(which)]),
        2 => which().prop_map(move |which| {
            [done(which), vec![Step::StorageGoesAway(which), Step::DeleteData(which)]].concat()
        }),
    ];
    (before, prop::collection::vec(step, 1..8))
        .prop_map(|(before, steps)| [before, steps, END.to_vec()].concat())
}

impl Which {
    fn request(self) -> &'static str {
        match self {
            Self::Shop => "nab shop/a",
            Self::Office => "nab office/b",
        }
    }

    fn wish(self, spec: Value) -> Value {
        match self {
            Self::Shop => {
                let mut spec = spec;
                spec["storageLocation"] = json!("bucket");
                nab_with("shop/a", spec)
            }
            Self::Office => nab_with("office/b", spec),
        }
    }

    fn storage(self) -> &'static str {
        match self {
            Self::Shop => "bsl shop-bucket-<l1>",
            Self::Office => "bsl default",
        }
    }

    /// Velero's name for it, if Velero has it.
    fn at_velero(self, world: &World) -> Option<String> {
        world
            .has(self.request())
            .then(|| world.velero_name(self.request()))
            .filter(|name| has(world, "backup", name))
    }
}

fn has(world: &World, kind: &str, name: &str) -> bool {
    world.has(&format!("{kind} {name}"))
}

/// Two tenants, one of them with storage of its own, and a bystander whose backup is done.
pub(super) fn start(viewed: bool) -> World {
    let mut world = World::with(&["shop", "office", "bystander"]);
    if viewed {
        for space in ["ns shop", "ns office"] {
            world.edit(space, json!({"metadata": {"labels": {labels::VELERO_VIEW: "true"}}}));
        }
    }
    world.stop_recording();
    world.tenant_storage("shop/bucket");
    world.apply(nab("bystander/theirs"));
    world.rest();
    world.velero_starts("bystander-theirs-<1>");
    world.velero_completes("bystander-theirs-<1>");
    world.rest();
    world
}

/// Everything of the bystander's.
pub(super) fn the_bystander(world: &World) -> Vec<Value> {
    ["nab bystander/theirs", "backup bystander-theirs-<1>"].map(|name| world.get(name)).to_vec()
}

/// Does one step, if it is possible.
pub(super) fn perform(world: &mut World, step: Step) {
    match step {
        Step::AskForBackup(which) if !world.has(which.request()) => world.apply(which.wish(json!({}))),
        Step::AskForNonsense(which) if !world.has(which.request()) => {
            world.apply(which.wish(json!({"ttl": "soon"})));
        }
        Step::EditBackup(which) if world.has(which.request()) => {
            world.edit(which.request(), json!({"spec": {"backupSpec": {"ttl": "24h"}}}));
        }
        Step::DeleteData(which) | Step::KeepData(which) if world.has(which.request()) => {
            let delete = matches!(step, Step::DeleteData(_));
            world.edit(which.request(), json!({"spec": {"deleteBackup": delete}}));
        }
        Step::DeleteBackup(which) if world.has(which.request()) => world.delete(which.request()),
        Step::AskForRestore if !world.has("nar shop/r") => world.apply(nar("shop/r", "a")),
        Step::DeleteRestore if world.has("nar shop/r") => world.delete("nar shop/r"),
        Step::VeleroGetsOn(which) => {
            if let Some(name) = which.at_velero(world) {
                gets_on(world, "backup", &name);
            }
        }
        Step::VeleroFails(which) => {
            let waiting = |name: &String| phase(world, "backup", name).is_empty();
            if let Some(name) = which.at_velero(world).filter(waiting) {
                world.velero_fails_validation(&name, "no");
            }
        }
        Step::VeleroExpires(which) => {
            let done = |name: &String| phase(world, "backup", name) == "Completed";
            if let Some(name) = which.at_velero(world).filter(done) {
                world.velero_expires(&name);
            }
        }
        Step::VeleroGetsOnWithRestore if world.has("nar shop/r") => {
            let name = world.velero_name("nar shop/r");
            if has(world, "restore", &name) {
                gets_on(world, "restore", &name);
            }
        }
        Step::VeleroTidies => world.velero_tidies(),
        Step::VeleroDeletes => world.velero_deletes(),
        Step::VeleroFailsToDelete => {
            let requests = world.names(Kind::DeleteBackupRequest);
            if let Some(request) = requests.iter().find(|name| name.starts_with("velero/")) {
                let request = world.found(&format!("dbr {request}"));
                world.velero_fails_to_delete(&request, "access denied");
            }
        }
        Step::StorageGoesAway(which) | Step::StorageComesBack(which) => {
            let phase = if matches!(step, Step::StorageGoesAway(_)) { "Unavailable" } else { "Available" };
            world.edit(which.storage(), json!({"status": {"phase": phase}}));
        }
        Step::TimePasses => world.jump(Duration::from_secs(70)),
        Step::ClockIsSet { back: true } => world.set_clock(SignedDuration::from_hours(-1)),
        Step::ClockIsSet { back: false } => world.set_clock(SignedDuration::from_hours(24)),
        _ => {}
    }
}

fn phase(world: &World, kind: &str, name: &str) -> String {
    world.get(&format!("{kind} {name}"))["status"]["phase"].as_str().unwrap_or_default().to_owned()
}

fn gets_on(world: &mut World, kind: &str, name: &str) {
    match phase(world, kind, name).as_str() {
        "" => world.velero_starts(name),
        "InProgress" => world.velero_completes(name),
        _ => {}
    }
}

/// Velero's objects whose request is gone, and requests being deleted that nothing keeps.
pub(super) fn orphans(world: &World) -> Vec<String> {
    let text = |json: &Value| json.as_str().unwrap_or_default().to_owned();
    let uids: Vec<_> = world.everything().map(|(_, object)| text(&object["metadata"]["uid"])).collect();
    let mut left = Vec::new();
    for (key, object) in world.everything() {
        let origin = text(&object["metadata"]["annotations"][labels::ORIGIN_UID]);
        let name = short(&format!("{} {}/{}", key.kind.name(), key.namespace, key.name));
        if !origin.is_empty() && !uids.contains(&origin) {
            left.push(name);
        } else if !object["metadata"]["deletionTimestamp"].is_null() && key.kind != Kind::Restore {
            let uid = text(&object["metadata"]["uid"]);
            let kept = world
                .everything()
                .any(|(_, other)| text(&other["metadata"]["annotations"][labels::ORIGIN_UID]) == uid);
            if !kept {
                left.push(format!("{name}, being deleted"));
            }
        }
    }
    left
}

/// What is left of a world, to be compared.
pub(super) type End = BTreeMap<String, Value>;

/// Everything at the end, without what may differ: times, versions, uids of Velero's objects and attempts.
pub(super) fn end(world: &World) -> End {
    let mut world = world.clone();
    world.refresh_positions();
    let mut end = BTreeMap::new();
    for (key, object) in world.everything() {
        let mut object = object.clone();
        plain(&mut object);
        let mut name = format!("{} {}/{}", key.kind.name(), key.namespace, key.name);
        if key.kind == Kind::DeleteBackupRequest {
            name.truncate(name.rfind('-').unwrap_or(name.len()));
        }
        end.insert(short(&name), object);
    }
    end
}

fn plain(json: &mut Value) {
    match json {
        Value::Object(fields) => {
            let passing = [
                "uid",
                "resourceVersion",
                "generation",
                "name",
                labels::VELERO_BACKUP_UID,
                "expiration",
                planner::turns::TAG,
            ];
            fields.retain(|name, _| {
                !passing.contains(&name.as_str()) && !name.ends_with("Timestamp") && !name.ends_with("Time")
            });
            fields.values_mut().for_each(plain);
        }
        Value::Array(items) => items.iter_mut().for_each(plain),
        _ => {}
    }
}
