//! Objects as people write them.

use api::{Kind, labels};
use serde_json::{Value, json};

use super::{ADMIN, World, long};

/// A namespace.
pub(crate) fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// A tenant's wish for a backup; `place` is `namespace/name`.
pub(crate) fn nab(place: &str) -> Value {
    nab_with(place, json!({}))
}

/// A tenant's wish for a backup with a spec.
pub(crate) fn nab_with(place: &str, spec: Value) -> Value {
    object(Kind::NonAdminBackup, place, json!({"spec": {"backupSpec": spec}}))
}

/// A tenant's wish for a restore from a backup of the same namespace.
pub(crate) fn nar(place: &str, backup: &str) -> Value {
    nar_with(place, json!({"backupName": backup}))
}

/// A tenant's wish for a restore with a spec.
pub(crate) fn nar_with(place: &str, spec: Value) -> Value {
    object(Kind::NonAdminRestore, place, json!({"spec": {"restoreSpec": spec}}))
}

/// Anything of one of nacre's kinds or Velero's.
pub(crate) fn object(kind: Kind, place: &str, rest: Value) -> Value {
    let (namespace, name) = place.split_once('/').expect("namespace/name");
    let mut object = json!({
        "apiVersion": kind.api_version(), "kind": kind.name(),
        "metadata": {"namespace": namespace, "name": long(name)},
    });
    for (field, value) in rest.as_object().unwrap() {
        if field == "metadata" {
            object["metadata"].as_object_mut().unwrap().extend(value.as_object().unwrap().clone());
        } else {
            object[field] = value.clone();
        }
    }
    object
}

/// A claim that has a volume.
pub(crate) fn claim(place: &str) -> Value {
    let spec = json!({"storageClassName": "fast", "volumeName": "pv"});
    object(Kind::PersistentVolumeClaim, place, json!({"spec": spec, "status": {"phase": "Bound"}}))
}

/// The volume of a claim, in a folder of a node.
pub(crate) fn host_path(name: &str, claim_uid: &str) -> Value {
    let spec = json!({"hostPath": {"path": "/srv"}, "claimRef": {"uid": claim_uid}});
    json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec})
}

/// Velero's node agent, ready on so many nodes.
pub(crate) fn node_agent(ready: u32) -> Value {
    let status = json!({"desiredNumberScheduled": 1, "numberReady": ready});
    object(Kind::DaemonSet, &format!("{ADMIN}/node-agent"), json!({"status": status}))
}

/// Where Velero keeps what names no other place.
pub(crate) fn default_storage() -> Value {
    storage("default", json!({"default": true}))
}

/// A place of the administrators'.
pub(crate) fn storage(name: &str, spec: Value) -> Value {
    let mut all = json!({"provider": "aws", "objectStorage": {"bucket": name}});
    all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    let rest = json!({"spec": all, "status": {"phase": "Available"}});
    object(Kind::BackupStorageLocation, &format!("{ADMIN}/{name}"), rest)
}

/// A backup as it comes out of a bucket: complete, with whatever marks the bucket says.
pub(crate) fn imported(name: &str, storage: &str, annotations: Value) -> Value {
    let rest = json!({
        "metadata": {"annotations": annotations, "labels": {labels::OADP: labels::OADP_VALUE}},
        "spec": {"storageLocation": long(storage), "includedNamespaces": ["shop"]},
        "status": {"phase": "Completed", "completionTimestamp": "2025-12-01T00:00:00Z"},
    });
    object(Kind::Backup, &format!("{ADMIN}/{name}"), rest)
}

/// The marks of a Backup that was made for a NonAdminBackup.
pub(crate) fn origin(namespace: &str, name: &str) -> Value {
    json!({labels::NAB_NAMESPACE: namespace, labels::NAB_NAME: name})
}

impl World {
    /// Velero has saved the volume of a claim, or is about to, for a Velero Backup.
    pub(crate) fn volume_saved(&mut self, kind: Kind, backup: &str, claim: &str, status: Value) {
        let uid = |found: Value| found["metadata"]["uid"].clone();
        let (namespace, name) = claim.split_once('/').expect("namespace/name");
        let labels = json!({
            labels::VELERO_BACKUP_NAME: long(backup),
            labels::VELERO_BACKUP_UID: uid(self.get(&format!("backup {backup}"))),
            labels::VELERO_CLAIM_UID: uid(self.get(&format!("PersistentVolumeClaim {claim}"))),
        });
        let annotations = json!({labels::VELERO_CLAIM_NAME: name});
        let spec = json!({"pod": {"namespace": namespace, "name": "db", "uid": "p"}, "volume": "files"});
        let rest = json!({"metadata": {"labels": labels, "annotations": annotations}, "spec": spec, "status": status});
        self.apply(object(kind, &format!("{ADMIN}/{backup}-{name}"), rest));
    }

    /// A tenant's storage, approved and known to Velero as `<namespace>-<name>-<l1>`, the second one `<l2>`.
    pub(crate) fn tenant_storage(&mut self, place: &str) -> String {
        let spec = json!({"provider": "aws", "objectStorage": {"bucket": "mine"}});
        let wish = json!({"spec": {"backupStorageLocationSpec": spec}});
        self.apply(object(Kind::NonAdminBackupStorageLocation, place, wish));
        let (namespace, name) = place.split_once('/').expect("namespace/name");
        let uid = self.get(&format!("nabsl {place}"))["metadata"]["uid"].as_str().unwrap().to_owned();
        let velero = api::velero_name(namespace, name, &uid);
        self.forge_status(
            &format!("nabsl {place}"),
            json!({"phase": "Created", "veleroBackupStorageLocation": {"name": velero, "nacuuid": velero}}),
        );
        let mut storage = storage(&velero, json!({}));
        storage["metadata"]["labels"] = json!({labels::NABSL_NACUUID: velero});
        storage["metadata"]["annotations"] =
            json!({labels::NABSL_NAMESPACE: namespace, labels::NABSL_NAME: name});
        self.apply(storage);
        velero
    }
}
