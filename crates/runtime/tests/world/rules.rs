//! Invariants of every write in every story: no plan has an effect outside its namespace.

use api::{Kind, labels};
use planner::{Action, Key, Target, backup, restore};
use serde_json::{Value, json};

use super::{ADMIN, World};

/// Whether a ConfigMap of this name is nacre's own.
fn is_own_map(name: &str) -> bool {
    restore::MODIFIERS.contains(&name) || name == backup::VOLUME_POLICY
}

impl World {
    /// Complains of a write that must never be made, whatever a tenant has written where.
    pub(super) fn check_rules(&mut self, about: &Key, action: &Action) {
        let wrong = match action {
            Action::Create(object) | Action::Apply(object) => {
                self.wrong_to_create(about, object.kind, &object.body)
            }
            Action::AddFinalizer(target, _)
            | Action::RemoveFinalizer(target, _)
            | Action::PatchStatus(target, _)
            | Action::Patch(target, _)
            | Action::Delete(target)
            | Action::DeleteUnchanged(target) => self.wrong_to_touch(about, target),
        };
        if let Some(wrong) = wrong {
            self.complain(&format!("a plan about {}/{} {wrong}: {action:?}", about.namespace, about.name));
        }
    }

    fn wrong_to_create(&self, about: &Key, kind: Kind, body: &Value) -> Option<&'static str> {
        if about.kind == Kind::NonAdminSchedule {
            return wrong_to_run(about, kind, body);
        }
        if about.kind == Kind::Namespace {
            let binds_velero = || {
                let (role, subjects) = (&body["roleRef"]["name"], &body["subjects"]);
                let velero = json!([{"kind": "ServiceAccount", "name": "velero", "namespace": ADMIN}]);
                kind == Kind::RoleBinding && role == "nacre:velero-tenant" && *subjects == velero
            };
            let right = kind == Kind::NonAdminSchedule || binds_velero();
            let right = right && body["metadata"]["namespace"] == json!(about.name);
            return (!right).then_some("makes neither a schedule nor Velero's permissions in the namespace");
        }
        if body["metadata"]["namespace"] != ADMIN && about.namespace != ADMIN {
            return wrong_to_show(about, kind, body);
        }
        if about.kind == Kind::Backup && about.namespace == ADMIN {
            // Only what was found in storage makes a request, and only for whomever the storage says.
            let tenant = body["metadata"]["namespace"].as_str().unwrap_or_default();
            let right = kind == Kind::NonAdminBackup && self.belongs(about, tenant);
            return (!right).then_some("gives somebody a backup that is not theirs");
        }
        if body["metadata"]["namespace"] != ADMIN {
            return Some("creates something outside the administrators' namespace");
        }
        match kind {
            Kind::Backup | Kind::Restore => {
                let only_here = body["spec"]["includedNamespaces"] == json!([about.namespace]);
                (!only_here).then_some("gives Velero another namespace")
            }
            Kind::DeleteBackupRequest => {
                let backup = body["spec"]["backupName"].as_str().unwrap_or_default();
                if !self.belongs(&Key::new(Kind::Backup, ADMIN, backup), &about.namespace) {
                    return Some("has somebody else's data deleted");
                }
                let said = self.objects.get(about).map(|stored| &stored.json["status"]);
                // A tenant may have forged the phase since, or wiped all of it.
                let says_so = |said: &Value| {
                    let conditions = said["conditions"].as_array();
                    conditions.is_none_or(|all| all.iter().any(|found| found["type"] == "Deleting"))
                };
                (!said.is_some_and(says_so)).then_some("deletes data before it says so")
            }
            Kind::ConfigMap => {
                let own = is_own_map(body["metadata"]["name"].as_str().unwrap_or_default());
                (!own).then_some("creates somebody's ConfigMap")
            }
            Kind::DownloadRequest => {
                let named = body["spec"]["target"]["name"].as_str().unwrap_or_default();
                let own = [Kind::Backup, Kind::Restore]
                    .iter()
                    .any(|kind| self.belongs(&Key::new(*kind, ADMIN, named), &about.namespace));
                (!own).then_some("hands out somebody else's files")
            }
            Kind::NonAdminBackupStorageLocationRequest | Kind::Secret | Kind::BackupStorageLocation => {
                let marks = &body["metadata"]["annotations"];
                (marks[labels::NABSL_NAMESPACE] != json!(about.namespace))
                    .then_some("makes somebody else's storage")
            }
            _ => Some("creates something unheard of"),
        }
    }

    /// Whether a Velero DownloadRequest is for a request that is no more.
    fn orphaned(&self, key: &Key) -> bool {
        let metadata = self.objects.get(key).map(|stored| &stored.json["metadata"]);
        let uid = metadata.map(|metadata| &metadata["labels"][labels::NADR_UID]);
        let alive = self.objects.iter().any(|(key, stored)| {
            let asks = key.kind == Kind::NonAdminDownloadRequest
                || (key.kind == Kind::DownloadRequest && key.namespace != ADMIN);
            asks && Some(&stored.json["metadata"]["uid"]) == uid
        });
        key.kind == Kind::DownloadRequest && !alive
    }

    fn wrong_to_touch(&self, about: &Key, target: &Target) -> Option<&'static str> {
        let key = Key::new(target.kind, &target.namespace, &target.name);
        let same =
            self.objects.get(&key).is_some_and(|stored| stored.json["metadata"]["uid"] == json!(target.uid));
        let velero = target.namespace == ADMIN;
        let own = match velero {
            _ if !same => true,
            _ if key == *about && velero && key.kind == Kind::DownloadRequest => self.orphaned(&key),
            _ if key.kind == Kind::ConfigMap => key.namespace == ADMIN && is_own_map(&key.name),
            _ if key == *about => true,
            // A namespace's schedule by the policy follows the policy, and so do Velero's permissions there.
            _ if about.kind == Kind::Namespace => {
                let binds = key.kind == Kind::RoleBinding && key.name == "nacre-velero";
                (key.kind == Kind::NonAdminSchedule || binds) && key.namespace == about.name
            }
            true => self.belongs(&key, &about.namespace) || self.squats(&key, about),
            false => target.namespace == about.namespace,
        };
        (!own).then_some("touches what is somebody else's")
    }

    /// Whether a Velero Backup has the name that this request's will get, by its uid: whoever made it forged it.
    fn squats(&self, key: &Key, about: &Key) -> bool {
        let uid = self.objects.get(about).and_then(|stored| stored.json["metadata"]["uid"].as_str());
        key.kind == Kind::Backup
            && about.kind == Kind::NonAdminBackup
            && uid.is_some_and(|uid| key.name == api::velero_name(&about.namespace, &about.name, uid))
    }

    /// The owner of a Velero object, computed independently: by the place it is kept in if that is a tenant's, by what
    /// it says about itself if not. A request to delete belongs to whomever its Backup belongs to.
    fn belongs(&self, key: &Key, namespace: &str) -> bool {
        let Some(object) = self.objects.get(key).map(|stored| &stored.json) else {
            return false;
        };
        let annotation =
            |object: &Value, name: &str| object["metadata"]["annotations"][name].as_str().map(str::to_owned);
        if key.kind == Kind::DeleteBackupRequest {
            let backup = object["spec"]["backupName"].as_str().unwrap_or_default();
            return self.belongs(&Key::new(Kind::Backup, ADMIN, backup), namespace);
        }
        if key.kind == Kind::Schedule && annotation(object, labels::NAS_NAMESPACE).is_none() {
            // Labelled otherwise: by the Go controller, and of this namespace alone.
            return object["metadata"]["labels"][labels::MANAGED_BY] == labels::MANAGED_BY_VALUE
                && object["spec"]["template"]["includedNamespaces"] == json!([namespace]);
        }
        let owner = match key.kind {
            Kind::PodVolumeBackup | Kind::DataUpload => {
                Some((Kind::Backup, labels::VELERO_BACKUP_NAME, labels::VELERO_BACKUP_UID))
            }
            Kind::PodVolumeRestore | Kind::DataDownload => {
                Some((Kind::Restore, labels::VELERO_RESTORE_NAME, labels::VELERO_RESTORE_UID))
            }
            _ => None,
        };
        if let Some((kind, name, uid)) = owner {
            let label = |name: &str| object["metadata"]["labels"][name].as_str().unwrap_or_default();
            let owner = Key::new(kind, ADMIN, label(name));
            let same = |owner: &Value| owner["metadata"]["uid"] == label(uid);
            return self.objects.get(&owner).is_some_and(|stored| same(&stored.json))
                && self.belongs(&owner, namespace);
        }
        let storage = [Kind::NonAdminBackupStorageLocationRequest, Kind::Secret, Kind::BackupStorageLocation];
        if storage.contains(&key.kind) {
            return annotation(object, labels::NABSL_NAMESPACE).as_deref() == Some(namespace);
        }
        let place = object["spec"]["storageLocation"].as_str().unwrap_or_default();
        let place = self.objects.get(&Key::new(Kind::BackupStorageLocation, ADMIN, place));
        let tenant = place.and_then(|place| annotation(&place.json, labels::NABSL_NAMESPACE));
        let origin = match key.kind {
            Kind::Schedule => labels::NAS_NAMESPACE,
            Kind::Restore => labels::NAR_NAMESPACE,
            Kind::DownloadRequest => labels::NADR_NAMESPACE,
            _ => labels::NAB_NAMESPACE,
        };
        let said = annotation(object, origin);
        if let Some(tenant) = tenant {
            return tenant == namespace && said.is_none_or(|said| said == namespace);
        }
        let space = self.objects.get(&Key::new(Kind::Namespace, "", namespace));
        let space_uid = space.and_then(|space| space.json["metadata"]["uid"].as_str());
        let same_space = annotation(object, labels::ORIGIN_NAMESPACE_UID)
            .is_none_or(|uid| Some(uid.as_str()) == space_uid);
        said.as_deref() == Some(namespace) && same_space
    }
}

/// A schedule makes backup requests in its own namespace, named after itself, and nothing else.
fn wrong_to_run(about: &Key, kind: Kind, body: &Value) -> Option<&'static str> {
    let named = body["metadata"]["name"].as_str().is_some_and(|name| name.starts_with(&about.name));
    let right = kind == Kind::NonAdminBackup
        && named
        && body["metadata"]["namespace"] == json!(about.namespace)
        && body["metadata"]["labels"][labels::NAS_NAME] == json!(about.name);
    (!right).then_some("makes something that is not a run of the schedule")
}

/// In a tenant's namespace, a plan about an object of Velero's kinds there makes that object, or the request it is.
fn wrong_to_show(about: &Key, kind: Kind, body: &Value) -> Option<&'static str> {
    let itself = Key::new(kind, &about.namespace, &about.name);
    let there = body["metadata"]["namespace"] == json!(about.namespace)
        && body["metadata"]["name"] == json!(about.name);
    let request = match about.kind {
        Kind::Backup => Some(Kind::NonAdminBackup),
        Kind::Restore => Some(Kind::NonAdminRestore),
        Kind::Schedule => Some(Kind::NonAdminSchedule),
        _ => None,
    };
    let right = there && about.kind.group() == Kind::Backup.group();
    if !right || (itself != *about && Some(kind) != request) {
        return Some("creates something outside the administrators' namespace");
    }
    body["spec"]["credential"].is_object().then_some("shows a credential")
}
