//! The behaviour of an API server: uids, resourceVersions, generations and finalizers.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use api::{Kind, labels};
use kube::core::{DynamicObject, ObjectMeta};
use planner::Key;
use planner::state::{Incoming, WatchedKind};
use planner::view::Seen;
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use super::replay::Op;
use super::trace::uid;
use super::{ADMIN, World};

/// What etcd takes of one object.
const LARGEST: usize = 1_500_000;

/// An object as the API server has it.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub(super) json: Arc<Value>,
    meta: Arc<ObjectMeta>,
    /// As nacre decoded it: the same object is decoded once, however often it is observed.
    decoded: Arc<OnceLock<Box<dyn Any + Send + Sync>>>,
    /// What it says, as a number, once somebody has asked.
    pub(super) fingerprint: OnceLock<u64>,
}

impl Stored {
    fn new(json: Value) -> Self {
        let meta = ObjectMeta::deserialize(&json["metadata"]).unwrap();
        Self {
            json: Arc::new(json),
            meta: Arc::new(meta),
            decoded: Arc::default(),
            fingerprint: OnceLock::new(),
        }
    }
}

impl Incoming for Stored {
    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn read<K: WatchedKind>(&self) -> Seen<K> {
        let decoded = self.decoded.get_or_init(|| Box::new(Seen::<K>::read(&self.json)));
        decoded.downcast_ref::<Seen<K>>().expect("an object has one kind").clone()
    }

    fn read_any(&self) -> Seen<DynamicObject> {
        let object = DynamicObject::deserialize(&*self.json).unwrap();
        Seen { object: Arc::new(object), unreadable: None }
    }
}

impl World {
    /// Complains of objects that a real API server would not have taken.
    pub(super) fn complain_of_what_is_too_large(&mut self) {
        let sizes = self.objects.iter().map(|(key, stored)| (key, stored.json.to_string().len()));
        let large: Vec<_> = sizes.filter(|(_, size)| *size > LARGEST).map(|(key, _)| key.clone()).collect();
        for key in large {
            self.complain(&format!("{key:?} is too large for the API server"));
        }
    }

    /// Creates an object.
    pub(super) fn insert(&mut self, kind: Kind, mut json: Value) -> Key {
        self.note(|| Op::Insert(kind, json.clone()));
        let birth = self.births.entry(kind).or_default();
        *birth += 1;
        let metadata = &mut json["metadata"];
        metadata["uid"] = json!(uid(kind, *birth));
        metadata["generation"] = json!(1);
        // The API server knows no fractions of a second.
        metadata["creationTimestamp"] = json!(self.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
        if has_status_subresource(kind) {
            without_status(&mut json);
        }
        if let (Kind::Backup | Kind::Restore, Some(origin)) =
            (kind, json["metadata"]["annotations"][labels::ORIGIN_UID].as_str())
            && json["metadata"]["namespace"] == ADMIN
        {
            *self.made_for.entry(origin.to_owned()).or_default() += 1;
        }
        let text = |field: &str| json["metadata"][field].as_str().unwrap_or_default();
        let key = Key::new(kind, text("namespace"), text("name"));
        if kind == Kind::NonAdminBackup && json["metadata"]["labels"][labels::NAS_NAME].is_string() {
            // The time of a run is in its name.
            *self.made_for.entry(format!("run {}/{}", key.namespace, key.name)).or_default() += 1;
        }
        self.put(&key, json);
        key
    }

    /// Merges a change of anything but the identity, and of a status only where it is not apart.
    pub(super) fn merge(&mut self, key: &Key, change: &Value) {
        self.note(|| Op::Merge(key.clone(), change.clone()));
        let mut change = change.clone();
        if has_status_subresource(key.kind) {
            without_status(&mut change);
        }
        let mut after = (*self.objects[key].json).clone();
        merge(&mut after, &change);
        self.update(key, after);
    }

    /// Gives an object another spec, and merges what else there is.
    pub(super) fn respecify(&mut self, key: &Key, mut object: Value) {
        self.note(|| Op::Respecify(key.clone(), object.clone()));
        let mut after = (*self.objects[key].json).clone();
        after["spec"] = object["spec"].take();
        object.as_object_mut().unwrap().remove("spec");
        without_status(&mut object);
        merge(&mut after, &object);
        self.update(key, after);
    }

    fn update(&mut self, key: &Key, mut after: Value) {
        let before = self.objects[key].json.clone();
        for kept in ["uid", "creationTimestamp", "deletionTimestamp", "generation", "resourceVersion"] {
            after["metadata"][kept] = before["metadata"][kept].clone();
        }
        drop_nulls(&mut after["metadata"]);
        let beside = |json: &Value| {
            let mut json = json.clone();
            json["metadata"] = Value::Null;
            json
        };
        if beside(&before) != beside(&after) {
            let generation = before["metadata"]["generation"].as_i64().unwrap_or_default();
            after["metadata"]["generation"] = json!(generation + 1);
        }
        self.replace(key, &before, after);
    }

    /// Merges a change of the status alone.
    pub(super) fn merge_status(&mut self, key: &Key, change: &Value) {
        self.note(|| Op::MergeStatus(key.clone(), change.clone()));
        let before = self.objects[key].json.clone();
        let mut after = (*before).clone();
        merge(&mut after, &json!({ "status": change["status"] }));
        self.replace(key, &before, after);
    }

    /// Replaces the finalizers; whoever is leaving goes with the last one.
    pub(super) fn set_finalizers(&mut self, key: &Key, finalizers: &[String]) {
        self.note(|| Op::Finalizers(key.clone(), finalizers.to_vec()));
        let before = self.objects[key].json.clone();
        let mut after = (*before).clone();
        after["metadata"]["finalizers"] = json!(finalizers);
        self.replace(key, &before, after);
    }

    /// Deletes an object, or marks it while somebody holds it. A namespace is held by what is in it.
    pub(super) fn remove(&mut self, key: &Key) {
        self.note(|| Op::Remove(key.clone()));
        let before = self.objects[key].json.clone();
        if !before["metadata"]["deletionTimestamp"].is_null() {
            return;
        }
        let mut after = (*before).clone();
        after["metadata"]["deletionTimestamp"] = json!(self.now.to_string());
        let generation = before["metadata"]["generation"].as_i64().unwrap_or_default();
        after["metadata"]["generation"] = json!(generation + 1);
        self.replace(key, &before, after);
    }

    /// Namespaces being deleted go when they are empty.
    pub(super) fn namespaces_go(&mut self) {
        let is_deleting = self.objects.iter().filter(|(key, stored)| {
            key.kind == Kind::Namespace && !stored.json["metadata"]["deletionTimestamp"].is_null()
        });
        let empty =
            is_deleting.filter(|(space, _)| !self.objects.keys().any(|key| key.namespace == space.name));
        for key in empty.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            let last = self.objects.remove(&key).unwrap();
            self.changed(&key, last, true);
        }
    }

    fn replace(&mut self, key: &Key, before: &Value, mut after: Value) {
        if after["metadata"]["finalizers"] == json!([]) {
            after["metadata"].as_object_mut().unwrap().remove("finalizers");
        }
        let is_deleting = !after["metadata"]["deletionTimestamp"].is_null();
        let held = !after["metadata"]["finalizers"].is_null();
        if is_deleting && !held && key.kind != Kind::Namespace {
            self.version += 1;
            after["metadata"]["resourceVersion"] = json!(self.version.to_string());
            self.objects.remove(key);
            self.changed(key, Stored::new(after), true);
        } else if before != &after {
            self.put(key, after);
        }
    }

    fn put(&mut self, key: &Key, mut json: Value) {
        self.version += 1;
        json["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let stored = Stored::new(json);
        self.objects.insert(key.clone(), stored.clone());
        self.changed(key, stored, false);
    }
}

/// Whether the status is written by itself; Velero's kinds have it among the rest.
fn has_status_subresource(kind: Kind) -> bool {
    kind.group() == Kind::NonAdminBackup.group()
}

fn without_status(json: &mut Value) {
    json.as_object_mut().unwrap().remove("status");
}

fn drop_nulls(json: &mut Value) {
    json.as_object_mut().unwrap().retain(|_, value| !value.is_null());
}

/// A JSON merge patch.
fn merge(target: &mut Value, change: &Value) {
    let Value::Object(change) = change else {
        *target = change.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let target = target.as_object_mut().unwrap();
    for (key, value) in change {
        if value.is_null() {
            target.remove(key);
        } else {
            merge(target.entry(key).or_insert(Value::Null), value);
        }
    }
}
