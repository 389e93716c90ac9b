//! What limits cost while many requests wait.

use std::time::{Duration, Instant};

use api::{Kind, NonAdminBackup, velero_name};
use serde_json::{Value, json};

use crate::state::{Moment, RawObject, Update};
use crate::{Key, Policy, State, backup};

/// How many unfinished backups the namespace may have.
const MOST: usize = 3;

fn now() -> Moment {
    Moment { clock: "2026-11-16T12:00:00Z".parse().unwrap(), uptime: Duration::ZERO }
}

fn put(state: &mut State, kind: Kind, object: &Value) -> Vec<Key> {
    state.update(kind, Update::Observed(&RawObject::new(&object.to_string())), now())
}

fn request(number: usize, status: &Value) -> Value {
    json!({"metadata": {"name": format!("b{number:05}"), "namespace": "shop", "uid": format!("u{number}"),
            "resourceVersion": "1", "creationTimestamp": "2026-11-16T11:00:00Z"},
        "spec": {"backupSpec": {}}, "status": status})
}

fn velero(number: usize, version: u64, phase: &str) -> Value {
    let name = format!("b{number:05}");
    let notes = json!({"openshift.io/oadp-nab-origin-name": name, "openshift.io/oadp-nab-origin-namespace": "shop",
        "nacre.dev/origin-uid": format!("u{number}"), "nacre.dev/origin-namespace-uid": "n"});
    let name = velero_name("shop", &name, &format!("u{number}"));
    json!({"metadata": {"name": name, "namespace": "velero", "uid": format!("v{number}"), "annotations": notes,
            "resourceVersion": version.to_string(), "creationTimestamp": "2026-11-16T11:00:01Z"},
        "spec": {"storageLocation": "default"}, "status": {"phase": phase}})
}

/// A namespace at its limit, and so many requests that wait.
fn crowd(waiting: usize) -> State {
    let mut policy = Policy::default();
    policy.backup.max_active_per_namespace = Some(MOST);
    let mut state = State::new("velero");
    state.set_policy(Some(policy.into()));
    put(
        &mut state,
        Kind::Namespace,
        &json!({"metadata": {"name": "shop", "uid": "n", "resourceVersion": "1"}}),
    );
    let storage = json!({"metadata": {"name": "default", "namespace": "velero", "uid": "d", "resourceVersion": "1"},
        "spec": {"provider": "aws", "objectStorage": {"bucket": "b"}, "default": true}});
    put(&mut state, Kind::BackupStorageLocation, &storage);
    for number in 0..MOST {
        put(&mut state, Kind::NonAdminBackup, &request(number, &json!({"phase": "Created"})));
        put(&mut state, Kind::Backup, &velero(number, 1, "InProgress"));
    }
    let refused = json!({"type": "Accepted", "status": "False", "reason": "NamespaceLimitReached", "message": "full",
        "lastTransitionTime": "2026-11-16T11:00:00Z"});
    for number in MOST..MOST + waiting {
        let status = json!({"phase": "BackingOff", "conditions": [refused]});
        put(&mut state, Kind::NonAdminBackup, &request(number, &status));
    }
    state
}

/// The backup requests that the end of one backup wakes.
fn woken(state: &mut State, number: usize) -> Vec<String> {
    let keys = put(state, Kind::Backup, &velero(number, 2, "Completed"));
    let mut names: Vec<_> = keys.into_iter().filter(|key| key.kind == Kind::NonAdminBackup).collect();
    names.dedup();
    names.into_iter().map(|key| key.name).collect()
}

/// H10: thousands of requests wait for the namespace's limit, so that each completion costs as much as all of them
#[test]
fn h10_a_completion_wakes_as_many_as_fit_however_many_wait() {
    for waiting in [100, 10_000] {
        let mut state = crowd(waiting);
        assert_eq!(woken(&mut state, 0), ["b00000", "b00003"], "its own request, and the oldest that waits");
        // The room is still free: the next completion makes room for two.
        assert_eq!(woken(&mut state, 1), ["b00001", "b00003", "b00004"]);
        // The oldest that waits is withdrawn: the next two are first in line.
        let gone = RawObject::new(&request(3, &json!({})).to_string());
        let keys = state.update(Kind::NonAdminBackup, Update::ObservedGone(&gone), now());
        let names: Vec<_> = keys.iter().map(|key| key.name.as_str()).collect();
        assert!(names.contains(&"b00004") && names.contains(&"b00005") && !names.contains(&"b00006"));
    }
}

/// planted: a decision looks at each of the others
#[test]
fn h10_a_decision_costs_the_same_however_many_wait() {
    // The last in line has all the others ahead. A naive decision looks at each of them.
    let time = |waiting: usize, is_naive: bool| {
        let state = crowd(waiting);
        let last = format!("b{:05}", MOST + waiting - 1);
        let round = |_| {
            let began = Instant::now();
            for number in 0..50 {
                let seen = backup::observe(&state, "shop", &last).unwrap();
                assert_eq!((seen.others.active, seen.others.ahead), (MOST, MOST));
                assert!(!backup::decide(&seen).because.is_empty());
                // A few of them take long enough.
                if is_naive && number < 3 {
                    let all = state.list::<NonAdminBackup>("shop");
                    let ahead = all.iter().filter(|one| one.metadata.name.as_deref() < Some(&last));
                    assert_eq!(ahead.count(), MOST + waiting - 1);
                }
            }
            began.elapsed()
        };
        // The best of some: in the others something else may have had the processor.
        (0..if is_naive { 2 } else { 10 }).map(round).min().unwrap()
    };
    let is_the_same = |is_naive| {
        let (few, many) = (time(100, is_naive), time(10_000, is_naive));
        println!("{few:?} with 100, {many:?} with 10000");
        many < few * 20 + Duration::from_millis(20)
    };
    assert!(is_the_same(false), "looking at each of the others would take a hundred times as long");
    assert!(!is_the_same(true), "the planted weakness");
}
