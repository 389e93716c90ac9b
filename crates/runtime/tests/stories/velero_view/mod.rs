//! Velero's own tools for tenants: copies that follow Velero's objects, requests made with Velero's CLI, and forged
//! copies without effect.

mod copies;
mod forged;
mod requests;
mod schedules;
mod volumes;

use api::{Kind, labels};
use serde_json::{Value, json};

use crate::world::World;
use crate::world::manifests::object;

/// A world in which the owners of `shop` have Velero's objects before them, and those of `rival` do not.
fn world() -> World {
    let mut world = World::with(&["shop", "rival"]);
    label(&mut world, json!("true"));
    world
}

fn label(world: &mut World, value: Value) {
    world.edit("ns shop", json!({"metadata": {"labels": {labels::VELERO_VIEW: value}}}));
}

/// What `velero backup create` sends.
fn asked(place: &str, spec: Value) -> Value {
    let mut all = json!({
        "csiSnapshotTimeout": "0s", "hooks": {}, "includedNamespaces": ["*"], "itemOperationTimeout": "0s",
        "metadata": {}, "ttl": "0s",
    });
    all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    object(Kind::Backup, place, json!({"spec": all, "status": {}}))
}

/// A world with one complete backup.
fn with_a_backup() -> World {
    world().backed_up()
}

/// What nacre did, without what it wrote.
fn brief(world: &mut World) -> String {
    let trace = world.trace();
    let lines = trace.lines().map(|line| line.split_once(" {").map_or(line, |(brief, _)| brief));
    lines.collect::<Vec<_>>().join("\n")
}

/// The annotations and labels of an object.
fn marks(world: &World, object: &str) -> String {
    let metadata = &world.get(object)["metadata"];
    let all = ["annotations", "labels"].map(|kind| metadata[kind].as_object().cloned().unwrap_or_default());
    let lines = all.iter().flatten().map(|(name, value)| format!("{name}: {}", value.as_str().unwrap()));
    crate::world::short(&lines.collect::<Vec<_>>().join("\n"))
}

/// All copies, as `Kind namespace/name`.
fn copies(world: &World) -> Vec<String> {
    let shown = world
        .everything()
        .filter(|(key, _)| key.kind.group() == Kind::Backup.group() && key.namespace != crate::world::ADMIN);
    shown
        .map(|(key, _)| format!("{} {}/{}", key.kind.name(), key.namespace, crate::world::short(&key.name)))
        .collect()
}
