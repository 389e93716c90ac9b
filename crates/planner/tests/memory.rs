//! What a settled backup costs in memory: the request and its Velero Backup, as the watch reports them.
//!
//! The only test of this program, since it reads the memory of the whole process.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::fs::read_to_string;
use std::time::{Duration, Instant};

use api::Kind;
use planner::state::{Moment, RawObject, Update};
use planner::{Action, Policy, State, backup};
use serde_json::{Value, json};

/// How many backups there are in a namespace.
const EACH: usize = 20;
/// A settled backup may cost this much. With 10 000 in 500 namespaces it was 2434 bytes on 2026-11-16.
const LIMIT: usize = 5 * 1024;

fn now() -> Moment {
    Moment { clock: "2026-11-16T12:00:00Z".parse().unwrap(), uptime: Duration::ZERO }
}

fn put(state: &mut State, kind: Kind, text: &str) {
    state.update(kind, Update::Observed(&RawObject::new(text)), now());
}

/// Writes a merge patch into an object.
fn merge(object: &mut Value, patch: &Value) {
    let (Some(fields), true) = (patch.as_object(), object.is_object()) else {
        *object = patch.clone();
        return;
    };
    for (name, value) in fields {
        if !object[name].is_object() {
            object[name] = json!({});
        }
        merge(&mut object[name], value);
    }
}

/// The request and the Velero Backup of one settled backup, as text, with names that can be replaced.
fn settled() -> [String; 2] {
    let mut state = State::new("velero");
    state.set_policy(Some(Policy::default().into()));
    put(
        &mut state,
        Kind::Namespace,
        &json!({"metadata": {"name": "NAMESPACE", "uid": "UID-OF-NAMESPACE"}}).to_string(),
    );
    let mut request = json!({"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackup",
        "metadata": {"name": "daily-NUMBER", "namespace": "NAMESPACE", "uid": "8d3b8ad6-6bd4-4b2f-9d3a-NUMBER",
            "resourceVersion": "1", "generation": 1, "creationTimestamp": "2026-11-16T11:00:00Z",
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{\"apiVersion\":\"oadp.openshift.io/v1alpha1\",\"kind\":\"NonAdminBackup\",\"metadata\":{\"annotations\":{},\"name\":\"daily-NUMBER\",\"namespace\":\"NAMESPACE\"},\"spec\":{\"backupSpec\":{}}}\n"},
            "finalizers": ["nonadminbackup.oadp.openshift.io/finalizer"]},
        "spec": {"backupSpec": {}}});
    put(&mut state, Kind::NonAdminBackup, &request.to_string());
    let plan = backup::decide(&backup::observe(&state, "NAMESPACE", "daily-NUMBER").unwrap());
    let made = plan.actions.into_iter().find_map(|action| match action {
        Action::Create(object) => Some(object.body),
        _ => None,
    });
    let mut velero = made.unwrap();
    merge(
        &mut velero,
        &json!({
            "metadata": {"uid": "1c0f5e2e-7f1b-4b39-8d7a-NUMBER", "resourceVersion": "2", "generation": 6,
                "creationTimestamp": "2026-11-16T11:00:01Z",
                "labels": {"velero.io/storage-location": "default"},
                "annotations": {"velero.io/resource-timeout": "10m0s", "velero.io/source-cluster-k8s-gitversion": "v1.36.0",
                    "velero.io/source-cluster-k8s-major-version": "1", "velero.io/source-cluster-k8s-minor-version": "36"}},
            "spec": {"storageLocation": "default", "ttl": "720h0m0s", "csiSnapshotTimeout": "10m0s",
                "itemOperationTimeout": "4h0m0s", "snapshotMoveData": false, "defaultVolumesToFsBackup": false,
                "hooks": {}, "metadata": {}},
            "status": {"version": 1, "formatVersion": "1.1.0", "phase": "Completed", "expiration": "2026-12-16T11:00:01Z",
                "startTimestamp": "2026-11-16T11:00:02Z", "completionTimestamp": "2026-11-16T11:00:09Z",
                "progress": {"totalItems": 42, "itemsBackedUp": 42}, "hookStatus": {}},
        }),
    );
    put(&mut state, Kind::Backup, &velero.to_string());
    let plan = backup::decide(&backup::observe(&state, "NAMESPACE", "daily-NUMBER").unwrap());
    for action in &plan.actions {
        if let Action::PatchStatus(_, patch) = action {
            merge(&mut request, patch);
        }
    }
    assert_eq!(request["status"]["phase"], "Created");
    assert_eq!(request["status"]["veleroBackup"]["status"]["phase"], "Completed");
    [request.to_string(), velero.to_string()]
}

/// The memory of this process that is in use, in bytes.
fn resident() -> usize {
    let pages: usize =
        read_to_string("/proc/self/statm").unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// How many namespaces there are: few, or with NACRE_LONG as many as nacre promises to serve in 500 MiB.
fn namespaces() -> usize {
    if std::env::var_os("NACRE_LONG").is_some() { 5000 } else { 200 }
}

#[test]
fn a_settled_backup_costs_little_memory() {
    let (namespaces, backups) = (namespaces(), namespaces() * EACH);
    let [request, velero] = settled();
    let mut state = State::new("velero");
    state.set_policy(Some(Policy::default().into()));
    for namespace in 0..namespaces {
        let meta =
            json!({"metadata": {"name": format!("team-{namespace:04}"), "uid": format!("n-{namespace:04}")}});
        put(&mut state, Kind::Namespace, &meta.to_string());
    }
    let (before, began) = (resident(), Instant::now());
    for number in 0..backups {
        let space = format!("{:04}", number % namespaces);
        let named = |text: &str| {
            let text = text.replace("UID-OF-NAMESPACE", &format!("n-{space}"));
            text.replace("NAMESPACE", &format!("team-{space}")).replace("NUMBER", &format!("{number:012}"))
        };
        put(&mut state, Kind::NonAdminBackup, &named(&request));
        put(&mut state, Kind::Backup, &named(&velero));
    }
    let (taken, decisions) = (began.elapsed(), Instant::now());
    let each = (resident() - before) / backups;
    println!("a settled backup costs {each} bytes ({} bytes as text)", request.len() + velero.len());
    // They are what they seem: decisions about them find nothing left to do.
    for number in 0..backups {
        let namespace = format!("team-{:04}", number % namespaces);
        let seen = backup::observe(&state, &namespace, &format!("daily-{number:012}")).unwrap();
        let plan = backup::decide(&seen);
        assert!(seen.velero.is_some() && plan.actions.is_empty(), "{plan:?}");
    }
    let decided = decisions.elapsed();
    println!(
        "{backups} were taken in {taken:?} and decided about in {decided:?}; {} MiB in all",
        resident() >> 20
    );
    assert!(each < LIMIT, "{each} bytes");
}
