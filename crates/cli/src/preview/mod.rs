//! What nacre would do with a request: the planner's decision on what the caller can read, without executing it.

mod world;

use api::{Kind, NonAdminBackup, NonAdminBackupStorageLocation, NonAdminRestore, condition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::core::ObjectMeta;
use planner::{Action, HealedBy, Plan, healed_by, location};
use serde_json::{Value, json};

pub(crate) use world::World;

/// The predicted result of a request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PreviewResult {
    /// It passes, and this is the spec of what is made of it.
    Passes(Value),
    /// It passes once an administrator approves it.
    NeedsApproval,
    /// It is refused: which field, what is wrong and what would do.
    Refused(String),
    /// It is fine and has to wait.
    Waits(String),
}

/// A request as if it were sent just now: nothing has become of it yet.
fn as_new(meta: &ObjectMeta, world: &World) -> ObjectMeta {
    ObjectMeta {
        name: meta.name.clone().or_else(|| meta.generate_name.clone()),
        namespace: world.namespace.metadata.name.clone(),
        // As long as a real one, for the names that are made of it.
        uid: Some("00000000-0000-4000-8000-000000000000".to_owned()),
        generation: Some(1),
        creation_timestamp: Some(Time(world.now)),
        ..ObjectMeta::default()
    }
}

/// The predicted result of a backup.
pub(crate) fn of_backup(world: &World, asked: &NonAdminBackup) -> PreviewResult {
    let spec = api::NonAdminBackupSpec { backup_spec: asked.spec.backup_spec.clone(), delete_backup: None };
    let asked = NonAdminBackup { metadata: as_new(&asked.metadata, world), spec, status: None };
    let plan = world.decide_backup(&asked);
    plan.map_or_else(unknown, |plan| verdict(&plan, Kind::Backup))
}

/// The predicted result of a restore.
pub(crate) fn of_restore(world: &World, asked: &NonAdminRestore) -> PreviewResult {
    let metadata = as_new(&asked.metadata, world);
    let plan = world.decide_restore(&NonAdminRestore { metadata, spec: asked.spec.clone(), status: None });
    plan.map_or_else(unknown, |plan| verdict(&plan, Kind::Restore))
}

/// The predicted result of a location.
pub(crate) fn of_location(world: &World, asked: &NonAdminBackupStorageLocation) -> PreviewResult {
    let (metadata, spec) = (as_new(&asked.metadata, world), asked.spec.clone());
    let plan = world.decide_location(&NonAdminBackupStorageLocation { metadata, spec, status: None });
    let made = Kind::NonAdminBackupStorageLocationRequest;
    let approval = world.policy.as_ref().is_some_and(|policy| policy.storage_locations.require_approval);
    match plan.map_or_else(unknown, |plan| verdict(&plan, made)) {
        PreviewResult::Passes(_) if approval => PreviewResult::NeedsApproval,
        PreviewResult::Passes(_) => {
            let mut spec = asked.spec.backup_storage_location_spec.clone();
            if let Some(policy) = &world.policy {
                location::fill(&policy.storage_locations.enforce, &mut spec);
            }
            PreviewResult::Passes(json!(spec))
        }
        other => other,
    }
}

/// Reads a plan as a person would: something is made, or a condition says why not.
fn verdict(plan: &Plan, made: Kind) -> PreviewResult {
    for action in &plan.actions {
        match action {
            Action::Create(object) if object.kind == made => {
                return PreviewResult::Passes(object.body["spec"].clone());
            }
            Action::PatchStatus(_, body) => {
                let conditions = body["status"]["conditions"].clone();
                let conditions: Vec<Condition> = serde_json::from_value(conditions).unwrap_or_default();
                let accepted = condition::get(&conditions, condition::ACCEPTED);
                if let Some(refusal) = accepted.filter(|accepted| accepted.status == "False") {
                    let message = refusal.message.clone();
                    return if healed_by(refusal).is_some_and(HealedBy::is_waiting) {
                        PreviewResult::Waits(message)
                    } else {
                        PreviewResult::Refused(message)
                    };
                }
            }
            _ => {}
        }
    }
    unknown()
}

fn unknown() -> PreviewResult {
    PreviewResult::Waits("nacre needs to know more than can be seen from here".to_owned())
}

/// Where the bytes of a backup are, in words.
pub(crate) fn storage_in_words(backup: &NonAdminBackup) -> String {
    match backup.spec.backup_spec.storage_location.as_deref() {
        Some(own) => format!("{own}, your own"),
        None => "the cluster's own".to_owned(),
    }
}

#[cfg(test)]
pub(crate) mod tests;
