//! Velero: it starts, progresses, completes or fails, and processes deletions.

use api::{Kind, RestoredFrom, labels};
use planner::Key;
use serde_json::{Value, json};

use super::manifests::nab;
use super::{ADMIN, World, long};

/// How long Velero keeps what does not say.
const DEFAULT_TTL: &str = "720h0m0s";

impl World {
    /// Velero takes up a Backup or Restore and fills in what its spec left open.
    pub(crate) fn velero_starts(&mut self, name: &str) {
        let key = self.velero_object(name);
        let now = self.now.to_string();
        if key.kind == Kind::Restore {
            self.set_finalizers(&key, &["restores.velero.io/external-resources-finalizer".to_owned()]);
            return self.merge(&key, &json!({"status": {"phase": "InProgress", "startTimestamp": now}}));
        }
        let mut spec = json!({
            "storageLocation": "default", "ttl": DEFAULT_TTL, "csiSnapshotTimeout": "10m0s",
            "itemOperationTimeout": "4h0m0s", "snapshotMoveData": false,
        });
        let given = self.objects[&key].json["spec"].clone();
        spec.as_object_mut().unwrap().retain(|field, _| given[field].is_null());
        let ttl = given["ttl"].as_str().unwrap_or(DEFAULT_TTL);
        let kept = api::Duration::from(ttl).to_std().unwrap().as_secs() / 3600;
        let expiration = self.later(kept.try_into().unwrap());
        self.merge(
            &key,
            &json!({"spec": spec, "status": {
                "phase": "InProgress", "version": 1, "formatVersion": "1.1.0",
                "startTimestamp": now, "expiration": expiration,
            }}),
        );
    }

    /// The name under which Velero has a request.
    pub(crate) fn velero_name(&self, request: &str) -> String {
        let found = self.get(request);
        let text = |field: &str| found["metadata"][field].as_str().unwrap().to_owned();
        let (namespace, name, uid) = (text("namespace"), text("name"), text("uid"));
        if !request.starts_with("nar ") {
            return api::velero_name(&namespace, &name, &uid);
        }
        let space = self.get(&format!("ns {namespace}"))["metadata"]["uid"].as_str().unwrap().to_owned();
        let names =
            RestoredFrom::ALL.map(|from| api::restore_name(from, (&namespace, &space), (&name, &uid)));
        let stored = names.iter().find(|name| self.has(&format!("restore {name}")));
        stored.unwrap_or(&names[0]).clone()
    }

    /// Velero has done so many items of so many.
    pub(crate) fn velero_progresses(&mut self, name: &str, done: u32, total: u32) {
        let key = self.velero_object(name);
        let field = if key.kind == Kind::Backup { "itemsBackedUp" } else { "itemsRestored" };
        self.merge(&key, &json!({"status": {"progress": {field: done, "totalItems": total}}}));
    }

    /// The same world with one backup, `shop/daily`, that Velero has completed.
    pub(crate) fn backed_up(mut self) -> Self {
        self.apply(nab("shop/daily"));
        self.settle();
        self.velero_starts("shop-daily-<1>");
        self.velero_completes("shop-daily-<1>");
        self.trace();
        self
    }

    /// Velero is done with it, well.
    pub(crate) fn velero_completes(&mut self, name: &str) {
        self.velero_ends(name, "Completed", json!({}));
    }

    /// Velero is done with it, well, and there is something in it. That is one write.
    pub(crate) fn velero_completes_one_item(&mut self, name: &str) {
        let key = self.velero_object(name);
        let now = self.now.to_string();
        let mut status = json!({"phase": "Completed", "completionTimestamp": now});
        if key.kind == Kind::Backup {
            status["progress"] = json!({"totalItems": 1, "itemsBackedUp": 1});
        }
        self.merge(&key, &json!({ "status": status }));
    }

    /// Velero is done with it, in this phase and with more to say.
    pub(crate) fn velero_ends(&mut self, name: &str, phase: &str, more: Value) {
        let key = self.velero_object(name);
        let now = self.now.to_string();
        self.merge(&key, &json!({"status": more}));
        self.merge(&key, &json!({"status": {"phase": phase, "completionTimestamp": now}}));
    }

    /// Velero will not start it. Such an object never gets a completion time.
    pub(crate) fn velero_fails_validation(&mut self, name: &str, error: &str) {
        let key = self.velero_object(name);
        self.merge(&key, &json!({"status": {"phase": "FailedValidation", "validationErrors": [error]}}));
    }

    /// Velero looks at a storage location, as it does once a minute for as long as it runs.
    pub(crate) fn velero_looks_at(&mut self, location: &str) {
        let now = self.now.to_string();
        self.edit(&format!("bsl velero/{location}"), json!({"status": {"lastValidationTime": now}}));
        self.settle();
    }

    /// Velero is in some other phase.
    pub(crate) fn velero_says(&mut self, name: &str, status: Value) {
        let key = self.velero_object(name);
        self.merge(&key, &json!({ "status": status }));
    }

    /// Velero looks at every request to delete a backup that it has not looked at yet.
    pub(crate) fn velero_deletes(&mut self) {
        for request in self.new_delete_requests() {
            // Taking up one request removes the others for the same backup.
            if self.objects.contains_key(&request) && self.velero_begins_to_delete(&request) {
                self.velero_finishes_deleting(&request);
            }
        }
    }

    /// Velero begins with the only request there is.
    pub(crate) fn velero_begins_deleting(&mut self) -> Key {
        let request = self.new_delete_requests().pop().expect("a request that Velero has not looked at");
        assert!(self.velero_begins_to_delete(&request), "Velero refuses {request:?}");
        request
    }

    /// Velero removes the data, the Restores made from it, the Backup and every request to delete it.
    pub(crate) fn velero_finishes_deleting(&mut self, request: &Key) {
        let backup = self.objects[request].json["spec"]["backupName"].as_str().unwrap().to_owned();
        let same = |world: &Self, kind: Kind| -> Vec<Key> {
            let named = |key: &&Key| {
                key.kind == kind
                    && key.namespace == ADMIN
                    && world.objects[*key].json["spec"]["backupName"] == json!(backup)
            };
            world.objects.keys().filter(named).cloned().collect()
        };
        for restore in same(self, Kind::Restore) {
            self.remove(&restore);
        }
        self.velero_tidies();
        self.remove(&Key::new(Kind::Backup, ADMIN, &backup));
        for request in same(self, Kind::DeleteBackupRequest) {
            self.remove(&request);
        }
    }

    /// Velero fails while deleting, for a reason nobody could have seen before.
    pub(crate) fn velero_fails_to_delete(&mut self, request: &Key, error: &str) {
        self.merge(request, &json!({"status": {"phase": "Processed", "errors": [error]}}));
    }

    /// A backup is older than it may get: Velero asks itself to delete it.
    pub(crate) fn velero_expires(&mut self, name: &str) {
        let name = long(name);
        let uid = self.objects[&Key::new(Kind::Backup, ADMIN, &name)].json["metadata"]["uid"].clone();
        let labels = json!({labels::VELERO_BACKUP_NAME: name, labels::VELERO_BACKUP_UID: uid});
        let request = json!({
            "apiVersion": "velero.io/v1", "kind": "DeleteBackupRequest",
            "metadata": {"namespace": ADMIN, "name": format!("{name}-x7kqz"), "labels": labels},
            "spec": {"backupName": name},
        });
        self.insert(Kind::DeleteBackupRequest, request);
        self.velero_deletes();
    }

    /// Velero clears up after Restores that were deleted, and lets go of them.
    pub(crate) fn velero_tidies(&mut self) {
        let is_deleting = self.objects.iter().filter(|(key, stored)| {
            key.kind == Kind::Restore
                && key.namespace == ADMIN
                && !stored.json["metadata"]["deletionTimestamp"].is_null()
        });
        for key in is_deleting.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            self.set_finalizers(&key, &[]);
        }
    }

    fn velero_object(&self, name: &str) -> Key {
        let name = long(name);
        let kinds = [Kind::Backup, Kind::Restore].map(|kind| Key::new(kind, ADMIN, &name));
        let found = kinds.into_iter().find(|key| self.objects.contains_key(key));
        found.unwrap_or_else(|| panic!("Velero has no {name}: {:?}", self.names(Kind::Backup)))
    }

    fn new_delete_requests(&self) -> Vec<Key> {
        let new = |key: &&Key| {
            key.kind == Kind::DeleteBackupRequest
                && key.namespace == ADMIN
                && matches!(self.objects[*key].json["status"]["phase"].as_str(), None | Some("" | "New"))
        };
        self.objects.keys().filter(new).cloned().collect()
    }

    /// Velero refuses for what it can see, or begins. Returns whether it did.
    fn velero_begins_to_delete(&mut self, request: &Key) -> bool {
        let backup = self.objects[request].json["spec"]["backupName"].as_str().unwrap().to_owned();
        let others = self.objects.iter().filter(|(key, stored)| {
            key.kind == Kind::DeleteBackupRequest
                && key.namespace == ADMIN
                && *key != request
                && stored.json["spec"]["backupName"] == json!(backup)
        });
        for other in others.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            self.remove(&other);
        }
        if let Some(error) = self.why_velero_refuses(&backup) {
            self.merge(request, &json!({"status": {"phase": "Processed", "errors": [error]}}));
            return false;
        }
        self.merge(request, &json!({"status": {"phase": "InProgress"}}));
        self.merge(&Key::new(Kind::Backup, ADMIN, &backup), &json!({"status": {"phase": "Deleting"}}));
        true
    }

    fn why_velero_refuses(&self, backup: &str) -> Option<String> {
        let Some(found) = self.objects.get(&Key::new(Kind::Backup, ADMIN, backup)) else {
            return Some("backup not found".to_owned());
        };
        let phase = found.json["status"]["phase"].as_str().unwrap_or_default();
        let running = ["InProgress", "WaitingForPluginOperations", "Finalizing"];
        if running.iter().any(|running| phase.starts_with(running)) {
            return Some("backup is still in progress".to_owned());
        }
        let place = found.json["spec"]["storageLocation"].as_str().unwrap_or_default();
        let Some(location) = self.objects.get(&Key::new(Kind::BackupStorageLocation, ADMIN, place)) else {
            return Some(format!("backup storage location {place} not found"));
        };
        if location.json["spec"]["accessMode"] == "ReadOnly" {
            return Some(format!(
                "cannot delete backup because backup storage location {place} is currently in read-only mode"
            ));
        }
        (location.json["status"]["phase"] != "Available").then(|| {
            format!("cannot delete backup because backup storage location {place} is currently in Unavailable state")
        })
    }

    fn later(&self, hours: i64) -> String {
        (self.now + jiff::SignedDuration::from_hours(hours)).to_string()
    }
}
