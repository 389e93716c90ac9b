//! Usage as it follows from Velero's objects, whatever tenants write.

use std::time::Duration;

use api::{Kind, NonAdminBackup, NonAdminRestore};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Chains, Job, Ledger, Owner, SavedVolume, Span, Usage, of_requests};
use crate::state::{Moment, RawObject, Update};
use crate::{Action, State};

const NOON: &str = "2026-11-16T12:00:00Z";

fn at(clock: &str) -> Moment {
    Moment { clock: clock.parse().unwrap(), uptime: Duration::ZERO }
}

fn put(state: &mut State, kind: Kind, object: &Value) {
    state.update(kind, Update::Observed(&RawObject::new(&object.to_string())), at(NOON));
}

fn gone(state: &mut State, kind: Kind, object: &Value) {
    state.update(kind, Update::ObservedGone(&RawObject::new(&object.to_string())), at(NOON));
}

fn state() -> State {
    let mut state = State::new("velero");
    for (name, uid) in [("shop", "s"), ("farm", "f")] {
        put(
            &mut state,
            Kind::Namespace,
            &json!({"metadata": {"name": name, "uid": uid, "resourceVersion": "1"}}),
        );
    }
    put(&mut state, Kind::BackupStorageLocation, &location("default", None));
    put(&mut state, Kind::BackupStorageLocation, &location("bucket", Some("shop")));
    state
}

fn location(name: &str, tenant: Option<&str>) -> Value {
    let mut location = json!({"metadata": {"name": name, "namespace": "velero", "uid": name, "resourceVersion": "1"},
        "spec": {"provider": "aws", "objectStorage": {"bucket": "b"}}});
    if let Some(tenant) = tenant {
        location["metadata"]["labels"] = json!({"openshift.io/oadp-nabsl-origin-nacuuid": name});
        location["metadata"]["annotations"] = json!({"openshift.io/oadp-nabsl-origin-namespace": tenant,
            "nacre.dev/origin-namespace-uid": &tenant[..1]});
    }
    location
}

/// A backup of `shop` that Velero worked on for so many minutes before noon.
fn backup(name: &str, location: &str, minutes: i64) -> Value {
    let start = at(NOON).clock - jiff::SignedDuration::from_mins(minutes);
    json!({"metadata": {"name": name, "namespace": "velero", "uid": name, "resourceVersion": "1",
            "creationTimestamp": start.to_string(),
            "annotations": {"openshift.io/oadp-nab-origin-namespace": "shop", "nacre.dev/origin-namespace-uid": "s"}},
        "spec": {"storageLocation": location},
        "status": {"phase": "Completed", "startTimestamp": start.to_string(), "completionTimestamp": NOON}})
}

fn volume(name: &str, backup: &str, hour: u8, bytes: i64, new: i64) -> Value {
    json!({"metadata": {"name": name, "namespace": "velero", "uid": name, "resourceVersion": "1",
            "labels": {"velero.io/backup-name": backup, "velero.io/backup-uid": backup, "velero.io/pvc-uid": "c"}},
        "spec": {}, "status": {"phase": "Completed", "startTimestamp": format!("2026-11-16T{hour:02}:00:00Z"),
            "progress": {"totalBytes": bytes, "bytesDone": bytes}, "incrementalBytes": new}})
}

fn usage(state: &State) -> Usage {
    state.usage("shop")
}

#[test]
fn the_first_backup_of_a_claim_counts_in_full_and_later_ones_with_what_was_new() {
    let mut state = state();
    for (number, hour) in [(1, 1), (2, 2), (3, 3)] {
        let name = format!("b{number}");
        put(&mut state, Kind::Backup, &backup(&name, "default", 1));
        put(
            &mut state,
            Kind::DataUpload,
            &volume(&format!("v{number}"), &name, hour, 1000 + number, 10 * number),
        );
    }
    assert_eq!(usage(&state).bytes, 1001 + 20 + 30);
    // Without the first, its data is still needed by the second.
    gone(&mut state, Kind::Backup, &backup("b1", "default", 1));
    assert_eq!((usage(&state).bytes, usage(&state).backups), (1002 + 30, 2));
    assert_eq!(state.usage("farm"), Usage::default());
    gone(&mut state, Kind::Backup, &backup("b2", "default", 1));
    gone(&mut state, Kind::Backup, &backup("b3", "default", 1));
    assert_eq!((usage(&state).bytes, usage(&state).backups), (0, 0));
}

#[test]
fn what_is_seen_first_makes_no_difference() {
    let objects = [
        (Kind::Backup, backup("b1", "default", 3)),
        (Kind::PodVolumeBackup, volume("v1", "b1", 1, 100, 100)),
        (Kind::Backup, backup("b2", "default", 2)),
        (Kind::PodVolumeBackup, volume("v2", "b2", 2, 110, 10)),
    ];
    for turn in 0..objects.len() {
        let mut state = state();
        let mut order = objects.to_vec();
        order.rotate_left(turn);
        for (kind, object) in &order {
            put(&mut state, *kind, object);
        }
        let wanted =
            Usage { backups: 2, finished_here: 2, bytes: 110, work_seconds: 300, ..Usage::default() };
        assert_eq!(usage(&state), wanted, "turn {turn}");
    }
}

#[test]
fn bytes_in_a_tenants_own_storage_never_count_whatever_it_wrote_there() {
    let mut state = state();
    put(&mut state, Kind::Backup, &backup("b1", "bucket", 1));
    for (name, bytes, new) in [("v1", i64::MAX, i64::MAX), ("v2", -5, -7), ("v3", i64::MIN, i64::MAX)] {
        put(&mut state, Kind::PodVolumeBackup, &volume(name, "b1", 1, bytes, new));
    }
    assert_eq!((usage(&state).bytes, usage(&state).backups), (0, 1));
    // Nor does it count for the neighbour whom the bucket names.
    let mut forged = backup("b2", "bucket", 1);
    forged["metadata"]["annotations"]["openshift.io/oadp-nab-origin-namespace"] = json!("farm");
    forged["metadata"]["annotations"]["nacre.dev/origin-namespace-uid"] = json!("f");
    put(&mut state, Kind::Backup, &forged);
    // Velero writes the uid of the Backup that it imports onto volumes; a name alone is not enough.
    put(&mut state, Kind::Backup, &backup("b3", "default", 1));
    let mut planted = volume("v4", "b3", 1, 1 << 40, 0);
    planted["metadata"]["labels"]["velero.io/backup-uid"] = json!("b2");
    put(&mut state, Kind::PodVolumeBackup, &planted);
    assert_eq!((state.usage("farm"), usage(&state).bytes), (Usage::default(), 0));
}

#[test]
fn odd_figures_of_velero_count_as_what_they_can_mean() {
    assert_eq!(SavedVolume::reported(-1, Some(-1)), SavedVolume { total: 0, new: 0 });
    assert_eq!(SavedVolume::reported(10, Some(99)), SavedVolume { total: 10, new: 10 });
    assert_eq!(SavedVolume::reported(10, None), SavedVolume { total: 10, new: 0 });
    let mut chains = Chains::default();
    for name in ["a", "b", "c"] {
        chains.add(name, (None, name.to_owned()), SavedVolume { total: u64::MAX, new: 0 });
    }
    assert_eq!(chains.bytes(), u64::MAX);
}

#[test]
fn work_is_counted_on_the_day_it_was_done_and_never_for_imported_backups() {
    let mut state = state();
    // It began yesterday: only the part of today counts.
    put(&mut state, Kind::Backup, &backup("b1", "default", 13 * 60));
    assert_eq!(usage(&state).work_seconds, 12 * 3600);
    // Velero worked on it before it was in this cluster.
    let mut imported = backup("b2", "default", 60);
    imported["metadata"]["creationTimestamp"] = json!(NOON);
    put(&mut state, Kind::Backup, &imported);
    assert_eq!(usage(&state).work_seconds, 12 * 3600);
    state.set_now("2026-11-17T00:00:01Z".parse().unwrap());
    assert_eq!(usage(&state).work_seconds, 0);
}

#[test]
fn what_runs_counts_until_now() {
    let mut state = state();
    let mut running = backup("b1", "default", 10);
    running["status"]["phase"] = json!("InProgress");
    running["status"].as_object_mut().unwrap().remove("completionTimestamp");
    put(&mut state, Kind::Backup, &running);
    assert_eq!((usage(&state).work_seconds, usage(&state).unfinished), (600, 1));
    state.set_now("2026-11-16T12:05:00Z".parse().unwrap());
    assert_eq!(usage(&state).work_seconds, 900);
}

fn record(state: &State) -> Option<Value> {
    match state.usage_record_write() {
        Some(Action::Create(object)) => Some(object.body),
        Some(other) => panic!("{other:?}"),
        None => None,
    }
}

#[test]
fn deleting_does_not_forget_the_work_of_today_and_neither_does_a_restart() {
    let mut state = state();
    put(&mut state, Kind::Backup, &backup("b1", "default", 10));
    put(&mut state, Kind::Backup, &backup("b2", "bucket", 5));
    assert_eq!(record(&state), None, "nothing was deleted");
    gone(&mut state, Kind::Backup, &backup("b1", "default", 10));
    // With a location, its backups are out of sight; and then gone.
    gone(&mut state, Kind::BackupStorageLocation, &location("bucket", Some("shop")));
    gone(&mut state, Kind::Backup, &backup("b2", "bucket", 5));
    assert_eq!((usage(&state).work_seconds, usage(&state).backups), (900, 0));
    let mut map = record(&state).unwrap();

    let mut next = self::state();
    map["metadata"]["uid"] = json!("m");
    map["metadata"]["resourceVersion"] = json!("1");
    put(&mut next, Kind::ConfigMap, &map);
    assert_eq!(usage(&next).work_seconds, 900);
    assert_eq!(next.usage_record_write(), None, "it says so already");
    put(&mut next, Kind::Backup, &backup("b3", "default", 1));
    gone(&mut next, Kind::Backup, &backup("b3", "default", 1));
    assert_eq!(usage(&next).work_seconds, 960);
    assert!(matches!(next.usage_record_write(), Some(Action::Patch(..))));
    // Its own write comes back, and is not counted twice.
    map["data"]["deleted.json"] = json!(r#"{"day":"2026-11-16","seconds":{"shop/s":960}}"#);
    map["metadata"]["resourceVersion"] = json!("2");
    put(&mut next, Kind::ConfigMap, &map);
    assert_eq!((usage(&next).work_seconds, next.usage_record_write()), (960, None));
}

#[test]
fn a_namespace_that_was_recreated_does_not_inherit_usage() {
    let mut state = state();
    put(&mut state, Kind::Backup, &backup("b1", "default", 10));
    put(&mut state, Kind::PodVolumeBackup, &volume("v1", "b1", 1, 100, 100));
    put(
        &mut state,
        Kind::Namespace,
        &json!({"metadata": {"name": "shop", "uid": "s2", "resourceVersion": "2"}}),
    );
    assert_eq!(usage(&state), Usage::default());
    // The Go controller wrote no uid: its backups are those of the namespace of that name.
    let mut old = backup("b2", "default", 10);
    old["metadata"]["annotations"].as_object_mut().unwrap().remove("nacre.dev/origin-namespace-uid");
    put(&mut state, Kind::Backup, &old);
    assert_eq!(usage(&state).backups, 1);
}

#[test]
fn one_more_backup_is_expected_to_be_as_large_as_those_that_are_over() {
    let usage = Usage { finished_here: 2, unfinished_here: 1, bytes: 300, ..Usage::default() };
    assert_eq!((usage.bytes_each(), usage.bytes_with(0), usage.bytes_with(2)), (150, 450, 750));
    let first = Usage { finished_here: 0, ..usage };
    assert_eq!((first.bytes_each(), first.bytes_with(2)), (0, 300));
}

#[test]
fn a_namespace_of_which_nothing_is_left_has_no_account() {
    let owner = || Owner { namespace: "shop".to_owned(), uid: None };
    let job = |span: Option<Span>| Job {
        owner: owner(),
        is_backup: true,
        here: true,
        is_unfinished: span.is_none(),
        span,
    };
    let noon = at(NOON).clock;
    let new = job(None);
    let worked = job(Some(Span { start: noon - jiff::SignedDuration::from_mins(1), end: Some(noon) }));
    let mut ledger = Ledger::default();
    ledger.shift(Kind::Backup, "b1", None, Some(&new));
    assert_eq!(ledger.namespaces().collect::<Vec<_>>(), ["shop"]);
    ledger.delete(Kind::Backup, "b1", &new, noon);
    assert_eq!(ledger.namespaces().count(), 0);
    ledger.shift(Kind::Backup, "b2", None, Some(&worked));
    ledger.delete(Kind::Backup, "b2", &worked, noon);
    assert_eq!(ledger.namespaces().count(), 1, "it worked today");
    let tomorrow = noon + jiff::SignedDuration::from_hours(24);
    ledger.shift(Kind::Backup, "b3", None, Some(&new));
    ledger.delete(Kind::Backup, "b3", &new, tomorrow);
    assert_eq!(ledger.namespaces().count(), 0);
}

/// A request that Velero has, which came at ten.
fn request<K: serde::de::DeserializeOwned>(kind: &str, status: &Value, spec: &Value, claims: &[Value]) -> K {
    serde_json::from_value(json!({
        "metadata": {"name": status.to_string(), "namespace": "shop", "creationTimestamp": "2026-11-16T10:00:00Z"},
        "spec": spec, "status": {kind: {"status": status}, "claims": claims}}))
    .unwrap()
}

#[test]
fn owners_see_what_they_use_in_their_own_requests() {
    let at = |clock: &str| format!("2026-11-16T{clock}:00Z");
    let over = |phase: &str, start: &str, end: &str| json!({"phase": phase, "startTimestamp": at(start), "completionTimestamp": at(end)});
    let runs = |start: &str| json!({"phase": "InProgress", "startTimestamp": at(start)});
    let (here, own) = (json!({"backupSpec": {}}), json!({"backupSpec": {"storageLocation": "bucket"}}));
    let first = json!({"name": "data", "state": "Saved", "bytes": 90, "totalBytes": 100});
    let second = json!({"name": "data", "state": "Saved", "bytes": 110, "newBytes": 10});
    let failed = json!({"name": "logs", "state": "Failed", "totalBytes": 7000});
    let backup = |status, spec, claims| request::<NonAdminBackup>("veleroBackup", &status, spec, claims);
    let backups = vec![
        backup(over("Completed", "10:00", "10:10"), &here, &[first.clone(), failed]),
        backup(over("PartiallyFailed", "11:00", "11:01"), &here, &[second]),
        backup(runs("11:55"), &here, &[]),
        backup(over("Completed", "11:00", "11:02"), &own, &[first]),
        backup(runs("11:50"), &own, &[]),
        // It was imported: Velero worked on it before it was in this cluster.
        backup(over("Completed", "09:00", "09:30"), &here, &[]),
        // It has no end: Velero was restarted meanwhile.
        backup(json!({"phase": "Failed", "startTimestamp": at("11:00")}), &here, &[]),
        NonAdminBackup::default(),
    ];
    let restore =
        |status| request::<NonAdminRestore>("veleroRestore", &status, &json!({"restoreSpec": {}}), &[]);
    let restores = [restore(over("Completed", "11:00", "11:03")), restore(runs("11:59"))];
    let usage = of_requests(&backups, &restores, NOON.parse().unwrap());
    let minutes = 10 + 1 + 5 + 2 + 10 + 3 + 1;
    let wanted = Usage {
        backups: 7,
        unfinished: 3,
        unfinished_here: 1,
        finished_here: 4,
        bytes: 110,
        work_seconds: minutes * 60,
    };
    assert_eq!(usage, wanted);
}

/// Backups and volumes, and a location that becomes an administrator's, a tenant's, or goes.
#[derive(Clone, Debug)]
enum Step {
    Put(usize),
    Gone(usize),
    Bucket(LocationOwner),
}

/// Whose a location is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LocationOwner {
    Nowhere,
    Administrators,
    Tenants(&'static str),
}

impl LocationOwner {
    fn object(self) -> Value {
        match self {
            Self::Tenants(tenant) => location("bucket", Some(tenant)),
            _ => location("bucket", None),
        }
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let place = prop_oneof![
        Just(LocationOwner::Nowhere),
        Just(LocationOwner::Administrators),
        Just(LocationOwner::Tenants("shop")),
        Just(LocationOwner::Tenants("farm")),
    ];
    let step = prop_oneof![
        4 => (0usize..8).prop_map(Step::Put),
        2 => (0usize..8).prop_map(Step::Gone),
        1 => place.prop_map(Step::Bucket),
    ];
    prop::collection::vec(step, 0..40)
}

fn objects() -> Vec<(Kind, Value)> {
    let mut all = Vec::new();
    for number in 0..4_u8 {
        let name = format!("b{number}");
        let place = if number % 2 == 0 { "default" } else { "bucket" };
        all.push((Kind::Backup, backup(&name, place, 1)));
        let bytes = i64::from(number) * 100;
        all.push((Kind::PodVolumeBackup, volume(&format!("v{number}"), &name, number, bytes, bytes / 2)));
    }
    all
}

proptest! {
    /// Whatever comes and goes in whatever order, the accounts are what counting from nothing gives.
    #[test]
    fn the_ledger_is_what_counting_again_would_give(steps in steps()) {
        let (mut state, objects) = (state(), objects());
        let (mut seen, mut there) = ([false; 8], [false; 8]);
        let mut place = LocationOwner::Tenants("shop");
        let mut object = place.object();
        for (version, step) in (2..).zip(&steps) {
            match *step {
                // The API server gives no uid twice.
                Step::Put(at) if !seen[at] => {
                    (seen[at], there[at]) = (true, true);
                    put(&mut state, objects[at].0, &objects[at].1);
                }
                Step::Gone(at) if there[at] => {
                    there[at] = false;
                    gone(&mut state, objects[at].0, &objects[at].1);
                }
                Step::Bucket(now) => {
                    if now == LocationOwner::Nowhere {
                        gone(&mut state, Kind::BackupStorageLocation, &object);
                    } else {
                        let mut next = now.object();
                        next["metadata"]["resourceVersion"] = json!(version.to_string());
                        // Where there was none, it is another one.
                        next["metadata"]["uid"] = match place {
                            LocationOwner::Nowhere => json!(version.to_string()),
                            _ => object["metadata"]["uid"].clone(),
                        };
                        put(&mut state, Kind::BackupStorageLocation, &next);
                        object = next;
                    }
                    place = now;
                }
                _ => {}
            }
        }
        let mut fresh = self::state();
        let mut object = place.object();
        object["metadata"]["resourceVersion"] = json!("2");
        if place == LocationOwner::Nowhere {
            gone(&mut fresh, Kind::BackupStorageLocation, &object);
        } else {
            put(&mut fresh, Kind::BackupStorageLocation, &object);
        }
        for ((kind, object), _) in objects.iter().zip(there).filter(|(_, there)| *there) {
            put(&mut fresh, *kind, object);
        }
        for name in ["shop", "farm"] {
            let counted = |state: &State| Usage { work_seconds: 0, ..state.usage(name) };
            prop_assert_eq!(counted(&state), counted(&fresh), "{}", name);
        }
    }
}
