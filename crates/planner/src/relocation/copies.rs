//! What is copied to the namespace of the other Velero, and in which order.

use std::collections::BTreeMap;

use api::{ApprovalDecision, Kind, labels};
use serde_json::{Map, Value, json};

use super::{NEVER, PERIOD, Side, is_a_tenants, is_a_tenants_location, is_written_down};
use crate::Object;

/// The Secret with the password of all repositories with data of volumes. Velero makes one of its own if there is none.
pub(super) const REPOSITORIES: &str = "velero-repo-credentials";

/// Where a copy came from.
const MOVED_FROM: &str = "nacre.dev/moved-from";

/// The phases in which Velero is done with a backup.
const OVER: [&str; 3] = ["Completed", "PartiallyFailed", "Failed"];

/// The copies that are still to be made, in an order in which they can be.
pub(super) struct Copies<'a> {
    from: &'a Side,
    to: &'a Side,
    steps: BTreeMap<(usize, String), Object>,
}

impl<'a> Copies<'a> {
    pub(super) const fn new(from: &'a Side, to: &'a Side) -> Self {
        Self { from, to, steps: BTreeMap::new() }
    }

    /// What is still to be created.
    pub(super) fn in_order(self) -> Vec<Object> {
        self.steps.into_values().collect()
    }

    /// The password of the repositories is the same in both, or the data of volumes could not be read.
    pub(super) fn repositories(&mut self) -> Option<String> {
        let old = self.from.get(Kind::Secret, REPOSITORIES)?;
        let Some(new) = self.to.get(Kind::Secret, REPOSITORIES) else {
            self.plain(Kind::Secret, REPOSITORIES, old);
            return None;
        };
        (new["data"] != old["data"]).then(|| {
            format!(
                "secret/{REPOSITORIES} in {to} is not the one in {from}, so the Velero there could not read the data of volumes: \
                 if nothing was backed up with it yet, delete it, stop that Velero, and move again",
                to = self.to.namespace,
                from = self.from.namespace
            )
        })
    }

    /// Whether the backup is there already, or why it stays.
    pub(super) fn backup(&mut self, name: &str, backup: &Value) -> Result<bool, String> {
        let phase = backup["status"]["phase"].as_str().unwrap_or("New");
        if !OVER.contains(&phase) {
            return Err(format!("it is in phase {phase}: move again when it has ended"));
        }
        if backup["metadata"]["deletionTimestamp"].is_string() {
            return Err("it is being deleted".to_owned());
        }
        let location = self.location(&self.location_of(backup)?)?;
        if let Some(found) = self.to.get(Kind::Backup, name) {
            let same = [labels::ORIGIN_UID, labels::NAB_NAMESPACE, labels::NAB_NAME]
                .iter()
                .all(|key| found["metadata"]["annotations"][key] == backup["metadata"]["annotations"][key]);
            return if same { Ok(true) } else { Err("another backup has its name there".to_owned()) };
        }
        let mut copy = bare(backup, &self.from.namespace, &self.to.namespace);
        copy["spec"] = backup["spec"].clone();
        copy["spec"]["storageLocation"] = json!(location);
        copy["metadata"]["labels"][labels::VELERO_STORAGE_LOCATION] = json!(location);
        copy["status"] = backup["status"].clone();
        self.step(Kind::Backup, name, copy);
        Ok(false)
    }

    /// The location that a backup names, or the default one.
    fn location_of(&self, backup: &Value) -> Result<String, String> {
        let named = backup["spec"]["storageLocation"].as_str().filter(|name| !name.is_empty());
        let default = || {
            let mut all = self.from.all(Kind::BackupStorageLocation);
            all.find(|(_, location)| location["spec"]["default"] == true).map(|(name, _)| name.clone())
        };
        named
            .map(str::to_owned)
            .or_else(default)
            .ok_or_else(|| "it names no storage location, and there is no default".to_owned())
    }

    /// What a location is called in the other namespace; it is made there if need be.
    pub(super) fn location(&mut self, name: &str) -> Result<String, String> {
        let Some(old) = self.from.get(Kind::BackupStorageLocation, name) else {
            return Err(format!("its storage location {name} is gone"));
        };
        let place = |location: &Value| {
            let spec = &location["spec"];
            (
                spec["provider"].clone(),
                spec["objectStorage"]["bucket"].clone(),
                prefix(spec),
                spec["config"].clone(),
            )
        };
        let renamed = format!("{name}-from-{}", self.from.namespace);
        for there in [name, renamed.as_str()] {
            match self.to.get(Kind::BackupStorageLocation, there) {
                Some(found) if place(found) == place(old) => return Ok(there.to_owned()),
                // A tenant's is called by the uid of what asked for it.
                Some(_) if is_a_tenants_location(old) => {
                    return Err(format!("storage location {there} is another one there"));
                }
                Some(_) => {}
                None => {
                    self.make_location(name, there, old)?;
                    return Ok(there.to_owned());
                }
            }
        }
        Err(format!("storage locations {name} and {renamed} are others there"))
    }

    fn make_location(&mut self, name: &str, there: &str, old: &Value) -> Result<(), String> {
        let mut copy = bare(old, &self.from.namespace, &self.to.namespace);
        copy["metadata"]["name"] = json!(there);
        copy["spec"] = old["spec"].clone();
        copy["spec"].as_object_mut().map(|spec| spec.remove("default"));
        // Administrators' backups in the same bucket are not for a Velero that is tenants' alone. From a tenant's Velero
        // imports once nacre runs there, which sets the period: before that there is no admission policy.
        copy["spec"][PERIOD] = json!(NEVER);
        if let Some(secret) = old["spec"]["credential"]["name"].as_str() {
            let Some(credential) = self.from.get(Kind::Secret, secret) else {
                return Err(format!("secret/{secret}, the credential of storage location {name}, is gone"));
            };
            match self.to.get(Kind::Secret, secret) {
                Some(found) if found["data"] != credential["data"] => {
                    let renamed = format!("{secret}-from-{}", self.from.namespace);
                    copy["spec"]["credential"]["name"] = json!(renamed);
                    let mut credential = credential.clone();
                    credential["metadata"]["name"] = json!(renamed);
                    self.plain(Kind::Secret, &renamed, &credential);
                }
                _ => self.plain(Kind::Secret, secret, credential),
            }
        }
        self.step(Kind::BackupStorageLocation, there, copy);
        Ok(())
    }

    /// What an administrator decided. It is about what is written down in the status: without that, it is decided again.
    /// A request that is there without it was copied by a move that was interrupted.
    pub(super) fn request(&mut self, name: &str, old: &Value) {
        let kind = Kind::NonAdminBackupStorageLocationRequest;
        let same = |found: &Value| {
            found["metadata"]["annotations"][labels::ORIGIN_UID]
                == old["metadata"]["annotations"][labels::ORIGIN_UID]
        };
        if let Some(found) = self.to.get(kind, name) {
            if is_written_down(old) && !is_written_down(found) && same(found) {
                self.insert(kind, name, copied(old, &self.from.namespace, &self.to.namespace));
            }
            return;
        }
        let mut copy = copied(old, &self.from.namespace, &self.to.namespace);
        if !is_written_down(old) && old["spec"]["approvalDecision"] == json!(ApprovalDecision::Approve) {
            copy["spec"]["approvalDecision"] = json!(ApprovalDecision::Pending);
        }
        self.insert(kind, name, copy);
    }

    /// A volume of a backup that is in the other namespace already, tied to it by uid.
    pub(super) fn volume(&mut self, name: &str, volume: &Value) -> Result<(), String> {
        let labels_of = &volume["metadata"]["labels"];
        let backup = labels_of[labels::VELERO_BACKUP_NAME].as_str().unwrap_or_default();
        let Some(old) = self.from.get(Kind::Backup, backup).filter(|old| is_a_tenants(old)) else {
            return Ok(());
        };
        // Others may have written the name of the backup there.
        if labels_of[labels::VELERO_BACKUP_UID] != old["metadata"]["uid"] {
            return Err(format!("it does not say by uid that it belongs to backup {backup}"));
        }
        let Some(new) = self.to.get(Kind::Backup, backup) else { return Ok(()) };
        if volume["status"]["phase"] != "Completed" || self.to.get(Kind::PodVolumeBackup, name).is_some() {
            return Ok(());
        }
        let uid = &new["metadata"]["uid"];
        let mut copy = bare(volume, &self.from.namespace, &self.to.namespace);
        copy["metadata"]["labels"][labels::VELERO_BACKUP_UID] = uid.clone();
        copy["metadata"]["ownerReferences"] = json!([{"apiVersion": "velero.io/v1", "kind": "Backup", "name": backup, "uid": uid, "controller": true}]);
        copy["spec"] = volume["spec"].clone();
        copy["spec"]["backupStorageLocation"] = new["spec"]["storageLocation"].clone();
        copy["status"] = volume["status"].clone();
        self.step(Kind::PodVolumeBackup, name, copy);
        Ok(())
    }

    /// An object as it is, if it is not there.
    pub(super) fn plain(&mut self, kind: Kind, name: &str, object: &Value) {
        self.step(kind, name, copied(object, &self.from.namespace, &self.to.namespace));
    }

    fn step(&mut self, kind: Kind, name: &str, object: Value) {
        if self.to.get(kind, name).is_none() {
            self.insert(kind, name, object);
        }
    }

    fn insert(&mut self, kind: Kind, name: &str, mut object: Value) {
        object["apiVersion"] = json!(kind.api_version());
        object["kind"] = json!(kind.name());
        // Credentials before locations, locations before backups.
        let order = [
            Kind::Secret,
            Kind::ConfigMap,
            Kind::NonAdminBackupStorageLocationRequest,
            Kind::BackupStorageLocation,
        ];
        let order = order.iter().position(|one| *one == kind).unwrap_or(order.len());
        self.steps.insert((order, name.to_owned()), Object { kind, body: object });
    }
}

fn prefix(spec: &Value) -> String {
    spec["objectStorage"]["prefix"].as_str().unwrap_or_default().trim_matches('/').to_owned()
}

/// An object as it is, in another namespace.
fn copied(object: &Value, from: &str, to: &str) -> Value {
    let mut copy = bare(object, from, to);
    for field in ["data", "type", "spec", "status"] {
        if !object[field].is_null() {
            copy[field] = object[field].clone();
        }
    }
    copy
}

/// Name, labels and annotations of an object, in another namespace.
fn bare(object: &Value, from: &str, to: &str) -> Value {
    let metadata = &object["metadata"];
    let map = |field: &str| metadata[field].as_object().cloned().unwrap_or_else(Map::new);
    let mut annotations = map("annotations");
    annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    annotations.insert(MOVED_FROM.to_owned(), json!(from));
    json!({"metadata": {"name": metadata["name"], "namespace": to, "labels": map("labels"), "annotations": annotations}})
}
