use std::time::Duration;

use api::Kind;
use jiff::Timestamp;
use planner::state::{Moment, RawObject, Rejection};
use planner::{Action, Key, Plan, Target};
use serde_json::json;

use super::{Failure, Reply, Request, Runtime};

/// What is asked of the API server after it answered a write to an object of this kind with a conflict.
fn after_a_conflict(kind: Kind, deletes: bool) -> Option<Request> {
    let now = Moment { clock: Timestamp::UNIX_EPOCH, uptime: Duration::ZERO };
    let target = Target {
        kind,
        namespace: String::new(),
        name: "one".to_owned(),
        uid: "1".to_owned(),
        resource_version: "6".to_owned(),
        finalizers: Vec::new(),
    };
    let action = if deletes { Action::Delete(target) } else { Action::Patch(target, json!({})) };
    let mut runtime = Runtime::new("velero");
    let about = Key::new(Kind::ConfigMap, "velero", "settings");
    let mut flight = runtime.execute_plan(&about, Plan::done().then(action));
    assert!(runtime.request(&flight).is_some());
    let conflict = Failure::Rejected(Rejection { code: 409, message: "changed".into(), retry_after: None });
    runtime.on_reply::<RawObject>(&mut flight, Reply::Failed(conflict), now);
    assert!(flight.has_failed());
    runtime.request(&flight)
}

#[test]
fn after_a_conflict_only_what_is_cached_is_fetched() {
    for deletes in [false, true] {
        let fetched = after_a_conflict(Kind::Backup, deletes);
        assert!(matches!(fetched, Some(Request::Fetch(_))), "{fetched:?}");
        // nacre reads roles before each decision, and may only list them.
        assert!(after_a_conflict(Kind::ClusterRole, deletes).is_none());
    }
}
