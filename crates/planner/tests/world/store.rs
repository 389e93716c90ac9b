//! The manners of an API server: uids, versions, generations, and objects that stay while somebody holds them.

use std::sync::{Arc, OnceLock};

use api::velero::{
    Backup, BackupStorageLocation, DeleteBackupRequest, DownloadRequest, PodVolumeBackup, Restore,
};
use api::{
    HiddenSecret, Kind, NonAdminBackup, NonAdminBackupStorageLocation, NonAdminBackupStorageLocationRequest,
    NonAdminDownloadRequest, NonAdminRestore, labels,
};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::core::DynamicObject;
use planner::Key;
use planner::view::Seen;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::tape::Op;
use super::trace::uid;
use super::{ADMIN, World};

/// What etcd takes of one object.
const LARGEST: usize = 1_500_000;

/// An object, as JSON and as what nacre reads.
#[derive(Clone)]
pub(super) struct Stored {
    pub(super) json: Arc<Value>,
    pub(super) typed: Typed,
    /// What it says, as a number, once somebody has asked.
    pub(super) print: OnceLock<u64>,
}

/// An object as nacre reads it.
#[derive(Clone)]
pub(super) enum Typed {
    Backup(Arc<Backup>),
    BackupStorageLocation(Arc<BackupStorageLocation>),
    ConfigMap(Arc<ConfigMap>),
    DeleteBackupRequest(Arc<DeleteBackupRequest>),
    DownloadRequest(Arc<DownloadRequest>),
    Namespace(Arc<Namespace>),
    NonAdminBackup(Seen<NonAdminBackup>),
    NonAdminBackupStorageLocation(Seen<NonAdminBackupStorageLocation>),
    NonAdminDownloadRequest(Seen<NonAdminDownloadRequest>),
    NonAdminBackupStorageLocationRequest(Seen<NonAdminBackupStorageLocationRequest>),
    NonAdminRestore(Seen<NonAdminRestore>),
    Restore(Arc<Restore>),
    Secret(Arc<HiddenSecret>),
    /// A volume on its way; of it only the labels and the phase are read.
    Volume(Kind, Arc<PodVolumeBackup>),
    /// Whatever there is of Velero's kinds in a tenant's namespace.
    Shown(Kind, Arc<DynamicObject>),
}

impl World {
    /// Complains of objects that a real API server would not have taken.
    pub(super) fn complain_of_what_is_too_large(&mut self) {
        let sizes = self.objects.iter().map(|(key, stored)| (key, stored.json.to_string().len()));
        let large: Vec<_> = sizes.filter(|(_, size)| *size > LARGEST).map(|(key, _)| key.clone()).collect();
        for key in large {
            self.complain(&format!("the API server would not take as much as {key:?}"));
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
        if has_status_apart(kind) {
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
        self.put(&key, json);
        key
    }

    /// Merges a change of anything but the identity, and of a status only where it is not apart.
    pub(super) fn merge(&mut self, key: &Key, change: &Value) {
        self.note(|| Op::Merge(key.clone(), change.clone()));
        let mut change = change.clone();
        if has_status_apart(key.kind) {
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

    /// Namespaces on their way out go when they are empty.
    pub(super) fn namespaces_go(&mut self) {
        let leaving = self.objects.iter().filter(|(key, stored)| {
            key.kind == Kind::Namespace && !stored.json["metadata"]["deletionTimestamp"].is_null()
        });
        let empty = leaving.filter(|(space, _)| !self.objects.keys().any(|key| key.namespace == space.name));
        for key in empty.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            let last = self.objects.remove(&key).unwrap();
            self.changed(Some(&last.typed), None);
        }
    }

    fn replace(&mut self, key: &Key, before: &Value, mut after: Value) {
        if after["metadata"]["finalizers"] == json!([]) {
            after["metadata"].as_object_mut().unwrap().remove("finalizers");
        }
        let leaving = !after["metadata"]["deletionTimestamp"].is_null();
        let held = !after["metadata"]["finalizers"].is_null();
        if leaving && !held && key.kind != Kind::Namespace {
            let last = typed(key.kind, &after);
            self.objects.remove(key);
            self.changed(Some(&last), None);
        } else if before != &after {
            self.put(key, after);
        }
    }

    fn put(&mut self, key: &Key, mut json: Value) {
        self.version += 1;
        json["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let typed = typed(key.kind, &json);
        let stored = Stored { json: Arc::new(json), typed: typed.clone(), print: OnceLock::new() };
        let before = self.objects.insert(key.clone(), stored);
        self.changed(before.map(|before| before.typed).as_ref(), Some(&typed));
    }
}

/// Whether the status is written by itself; Velero's kinds have it among the rest.
fn has_status_apart(kind: Kind) -> bool {
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

fn typed(kind: Kind, json: &Value) -> Typed {
    match kind {
        _ if kind.group() == Kind::Backup.group() && json["metadata"]["namespace"] != ADMIN => {
            Typed::Shown(kind, read(json))
        }
        Kind::Backup => Typed::Backup(read(json)),
        Kind::BackupStorageLocation => Typed::BackupStorageLocation(read(json)),
        Kind::ConfigMap => Typed::ConfigMap(read(json)),
        Kind::DeleteBackupRequest => Typed::DeleteBackupRequest(read(json)),
        Kind::DownloadRequest => Typed::DownloadRequest(read(json)),
        Kind::NonAdminDownloadRequest => {
            Typed::NonAdminDownloadRequest(seen(json, &json!({"target": {"kind": "", "name": ""}})))
        }
        Kind::Namespace => Typed::Namespace(read(json)),
        Kind::NonAdminBackup => Typed::NonAdminBackup(seen(json, &json!({"backupSpec": {}}))),
        Kind::NonAdminBackupStorageLocation => {
            let empty =
                json!({"backupStorageLocationSpec": {"provider": "", "objectStorage": {"bucket": ""}}});
            Typed::NonAdminBackupStorageLocation(seen(json, &empty))
        }
        Kind::NonAdminBackupStorageLocationRequest => {
            Typed::NonAdminBackupStorageLocationRequest(seen(json, &json!({})))
        }
        Kind::Secret => Typed::Secret(read(json)),
        Kind::NonAdminRestore => Typed::NonAdminRestore(seen(json, &json!({"restoreSpec": {}}))),
        Kind::Restore => Typed::Restore(read(json)),
        Kind::PodVolumeBackup | Kind::PodVolumeRestore | Kind::DataUpload | Kind::DataDownload => {
            Typed::Volume(kind, read(json))
        }
        other => panic!("the world has no {}", other.name()),
    }
}

fn read<K: DeserializeOwned>(json: &Value) -> Arc<K> {
    Arc::new(K::deserialize(json).unwrap())
}

/// Reads a tenant's object, or what can be saved of it.
fn seen<K: DeserializeOwned>(json: &Value, empty_spec: &Value) -> Seen<K> {
    let error = match K::deserialize(json) {
        Ok(object) => return Seen { object: Arc::new(object), unreadable: None },
        Err(error) => error,
    };
    let mut rest = json.clone();
    rest["spec"] = empty_spec.clone();
    if K::deserialize(&rest).is_err() {
        without_status(&mut rest);
    }
    Seen { object: read(&rest), unreadable: Some(error.to_string().into()) }
}
