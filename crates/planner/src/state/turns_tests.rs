use std::time::Duration;

use api::{Kind, velero_name};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::state::{Moment, RawObject, Update};
use crate::turns::Turn;

const FIRST: &str = "11111111-0000-4000-8000-000000000001";
const SECOND: &str = "22222222-0000-4000-8000-000000000002";

struct Seen(State);

impl Seen {
    /// A namespace with a request, whose turn was taken: Velero is about to be given it.
    fn about_to_be_given() -> Self {
        let mut seen = Self(State::new("velero"));
        seen.0.set_policy(Some(Arc::default()));
        seen.put(Kind::Namespace, &json!({"metadata": {"name": "shop", "uid": "ns"}}));
        seen.put(
            Kind::BackupStorageLocation,
            &json!({"metadata": {"name": "place", "namespace": "velero"},
            "spec": {"provider": "aws", "objectStorage": {"bucket": "b"}}}),
        );
        seen.ask(FIRST);
        let meta = seen.0.meta_of(&key()).unwrap();
        let Place::Next(tag) = seen.0.place_in_queue(Kind::NonAdminBackup, &meta) else { panic!("not next") };
        seen.0.turn_decided(&key(), Some(&Turn::Taken(velero_name("shop", "daily", FIRST), tag)));
        seen
    }

    fn put(&mut self, kind: Kind, object: &Value) {
        let object = complete(kind, object);
        self.0.update(kind, Update::Observed(&RawObject::new(&object.to_string())), NOW);
    }

    fn ask(&mut self, uid: &str) {
        self.put(Kind::NonAdminBackup, &request(uid));
    }

    fn withdraw(&mut self, uid: &str) {
        let object = complete(Kind::NonAdminBackup, &request(uid));
        let gone = RawObject::new(&object.to_string());
        self.0.update(Kind::NonAdminBackup, Update::ObservedGone(&gone), NOW);
    }

    /// The Velero Backup for the first request is there, in this phase.
    fn arrives(&mut self, phase: &str, location: &str) {
        let name = velero_name("shop", "daily", FIRST);
        self.put(
            Kind::Backup,
            &json!({"metadata": {"name": name, "namespace": "velero", "annotations": {
            "openshift.io/oadp-nab-origin-namespace": "shop", "openshift.io/oadp-nab-origin-name": "daily",
            "nacre.dev/origin-uid": FIRST, "nacre.dev/origin-namespace-uid": "ns"}},
            "spec": {"storageLocation": location}, "status": {"phase": phase}}),
        );
    }

    fn was_given(&self) -> bool {
        self.0.turns(Kind::NonAdminBackup).was_given(&key())
    }
}

const NOW: Moment = Moment { clock: Timestamp::UNIX_EPOCH, uptime: Duration::ZERO };

fn key() -> Key {
    Key::new(Kind::NonAdminBackup, "shop", "daily")
}

fn request(uid: &str) -> Value {
    json!({"metadata": {"name": "daily", "namespace": "shop", "uid": uid}, "spec": {"backupSpec": {}}})
}

fn complete(kind: Kind, object: &Value) -> Value {
    let mut object = object.clone();
    object["apiVersion"] = json!(kind.api_version());
    object["kind"] = json!(kind.name());
    object["metadata"]["resourceVersion"] = json!("1");
    if object["metadata"]["uid"].is_null() {
        object["metadata"]["uid"] = object["metadata"]["name"].clone();
    }
    object
}

#[test]
fn what_velero_was_given_is_remembered_until_the_request_goes() {
    let mut seen = Seen::about_to_be_given();
    assert!(!seen.was_given());
    seen.arrives("", "place");
    assert!(seen.was_given());
    seen.withdraw(FIRST);
    assert!(!seen.was_given());
}

/// Its finalizer was removed by hand while the Velero Backup was being created.
#[test]
fn another_request_of_the_same_name_was_not_given() {
    let mut seen = Seen::about_to_be_given();
    seen.withdraw(FIRST);
    seen.arrives("", "place");
    assert!(!seen.was_given());
    seen.ask(SECOND);
    assert!(!seen.was_given());

    let mut seen = Seen::about_to_be_given();
    seen.withdraw(FIRST);
    seen.ask(SECOND);
    seen.arrives("", "place");
    assert!(!seen.was_given());
}

/// A6
#[test]
fn a6_a_backup_out_of_somebody_elses_bucket_does_not_count_as_given() {
    let mut seen = Seen::about_to_be_given();
    let metadata = json!({"name": "theirs", "namespace": "velero",
        "labels": {"openshift.io/oadp-nabsl-origin-nacuuid": "theirs"},
        "annotations": {"openshift.io/oadp-nabsl-origin-namespace": "evil"}});
    seen.put(
        Kind::BackupStorageLocation,
        &json!({"metadata": metadata,
        "spec": {"provider": "aws", "objectStorage": {"bucket": "theirs"}}}),
    );
    seen.arrives("Completed", "theirs");
    assert!(!seen.was_given());
}
