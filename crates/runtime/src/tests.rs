use std::sync::Arc;
use std::time::Duration;

use api::Kind;
use jiff::Timestamp;
use planner::state::{Moment, RawObject, Rejection, Update};
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

/// Else Velero would be idle while nacre tells a thousand others that they wait.
#[test]
fn whose_turn_it_is_goes_before_those_that_came_into_the_queue_first() {
    let now = Moment { clock: Timestamp::UNIX_EPOCH, uptime: Duration::ZERO };
    let mut runtime = Runtime::new("velero");
    runtime.state.set_policy(Some(Arc::default()));
    let mut see = |kind: Kind, object: serde_json::Value| {
        runtime.on_event(kind, Update::Observed(&RawObject::new(&object.to_string())), now);
    };
    see(
        Kind::Namespace,
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "uid": "ns", "resourceVersion": "1"}}),
    );
    for age in 1..=9 {
        see(
            Kind::NonAdminBackup,
            json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackup",
                "metadata": {"name": format!("b{age}"), "namespace": "shop", "uid": format!("{age}"),
                    "resourceVersion": "2", "creationTimestamp": format!("2026-01-01T00:00:0{}Z", 9 - age)},
                "spec": {"backupSpec": {}}}),
        );
    }
    let oldest = Key::new(Kind::NonAdminBackup, "shop", "b9");
    assert_eq!(runtime.next(Duration::ZERO), Some(oldest));
    assert_eq!(runtime.next(Duration::ZERO), Some(Key::new(Kind::NonAdminBackup, "shop", "b1")));
}
