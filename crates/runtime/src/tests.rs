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

/// A backup in version 5 that Velero is to be given now, in the cache of an instance that became leader at version `led_from`.
fn to_be_given(led_from: Option<u64>) -> (Runtime, Key, Moment) {
    let now = Moment { clock: Timestamp::UNIX_EPOCH, uptime: Duration::ZERO };
    let mut runtime = Runtime::new("velero");
    runtime.state.set_policy(Some(Arc::default()));
    runtime.state.set_velero_version("v1.18.3");
    for kind in [Kind::PersistentVolumeClaim, Kind::Pod, Kind::DaemonSet] {
        runtime.on_event::<RawObject>(kind, Update::ListBegins, now);
        runtime.on_event::<RawObject>(kind, Update::ListEnds, now);
    }
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "shop", "uid": "ns", "resourceVersion": "1"}});
    for (kind, object) in [(Kind::Namespace, namespace), (Kind::NonAdminBackup, backup("5"))] {
        runtime.on_event(kind, Update::Observed(&RawObject::new(&object.to_string())), now);
    }
    if let Some(newest) = led_from {
        runtime.becomes_leader([(Kind::NonAdminBackup, newest)].into());
    }
    (runtime, Key::new(Kind::NonAdminBackup, "shop", "daily"), now)
}

fn backup(version: &str) -> serde_json::Value {
    json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackup",
        "metadata": {"name": "daily", "namespace": "shop", "uid": "1", "resourceVersion": version,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "finalizers": ["nonadminbackup.oadp.openshift.io/finalizer"]},
        "spec": {"backupSpec": {}}})
}

fn gives(request: Option<&Request>) -> bool {
    matches!(request, Some(Request::Create(object)) if object.kind == Kind::Backup)
}

#[test]
fn a_new_leader_fetches_what_it_saw_before_it_gives_it_to_velero() {
    // The leader of nobody, and one that saw the request after it became leader, do not.
    for led_from in [None, Some(4)] {
        let (mut runtime, key, now) = to_be_given(led_from);
        let flight = runtime.begin(&key, now);
        assert!(gives(runtime.request(&flight).as_ref()), "{led_from:?}: {:?}", runtime.request(&flight));
    }
    let (mut runtime, key, now) = to_be_given(Some(5));
    let mut flight = runtime.begin(&key, now);
    assert_eq!(runtime.request(&flight), Some(Request::Fetch(key)));
    let same = RawObject::new(&backup("5").to_string());
    runtime.on_reply(&mut flight, Reply::Object(&same), now);
    assert!(gives(runtime.request(&flight).as_ref()), "it is as it was: {:?}", runtime.request(&flight));
}

#[test]
fn a_new_leader_gives_velero_nothing_that_is_gone() {
    let gone = Failure::Rejected(Rejection { code: 404, message: "gone".into(), retry_after: None });
    for reply in [Reply::Failed(gone), Reply::Gone] {
        let (mut runtime, key, now) = to_be_given(Some(5));
        let mut flight = runtime.begin(&key, now);
        runtime.on_reply::<RawObject>(&mut flight, reply, now);
        assert!(flight.is_done() && !flight.has_failed());
        assert_eq!(runtime.peek(&key), Plan::default(), "nothing is known of it any more");
    }
    // Whether it is there is not known, so it is not given.
    let (mut runtime, key, now) = to_be_given(Some(5));
    let mut flight = runtime.begin(&key, now);
    runtime.on_reply::<RawObject>(&mut flight, Reply::Failed(Failure::NoReply), now);
    assert!(flight.is_done() && flight.has_failed());
}
