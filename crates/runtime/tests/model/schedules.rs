//! What holds of a schedule once everything has come to rest: "always ends" for runs and for retention.

use api::{Kind, NonAdminSchedule, condition, labels};
use planner::{Key, Policy, schedule};
use serde_json::Value;

use crate::world::World;

/// Every run that was due was made, or its schedule says why not; and nothing is left that the schedule does not keep.
pub(crate) fn unfinished(world: &World, key: &Key, object: &Value) -> Option<&'static str> {
    run_without_a_trace(world, key, object).or_else(|| more_than_is_kept(world, key, object))
}

fn run_without_a_trace(world: &World, key: &Key, object: &Value) -> Option<&'static str> {
    let found: NonAdminSchedule = serde_json::from_value(object.clone()).unwrap();
    let conditions = found.status.iter().flat_map(|status| &status.conditions);
    let says_why = |one: &&k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition| one.status == "False";
    let refusals: Vec<_> = conditions.filter(says_why).collect();
    let is_refused = refusals.iter().any(|one| one.type_ == condition::ACCEPTED);
    if is_refused || found.spec.paused == Some(true) {
        return None;
    }
    let mut policy = Policy::default();
    policy.schedules.spread = "0".into();
    let created = found.metadata.creation_timestamp.as_ref().unwrap().0;
    let times = schedule::times(&found, "", &policy, world.now()).unwrap();
    let is_known = |due: &jiff::Timestamp| {
        let run = format!("run {}/{}", key.namespace, schedule::name(&key.name, *due));
        let reports = |due: &str| refusals.iter().any(|one| one.message.contains(due));
        world.made_for().contains_key(&run) || reports(&due.to_string())
    };
    let was_due = times.cron.after(created).take_while(|due| *due <= world.now());
    let unknown = was_due.into_iter().find(|due| !is_known(due));
    unknown.map(|_| "has a run that was due, and was neither made nor reported")
}

fn more_than_is_kept(world: &World, key: &Key, object: &Value) -> Option<&'static str> {
    let most = object["spec"]["retention"]["keepLast"].as_u64()?;
    let is_good_run = |(of, run): &(&Key, &Value)| {
        of.kind == Kind::NonAdminBackup
            && of.namespace == key.namespace
            && run["metadata"]["labels"][labels::NAS_NAME] == key.name
            && run["status"]["veleroBackup"]["status"]["phase"] == "Completed"
    };
    let left = world.everything().filter(is_good_run).count();
    (left as u64 > most).then_some("has more good runs than it keeps")
}
