//! Moves what tenants have in one Velero to another, which is theirs alone: the backups, their volumes, the storage
//! locations with their credentials and approvals, and the policy. The bytes stay where they are; both Veleros read the same buckets.
//!
//! Nothing is deleted, and each step creates something that is not there yet. So a move that was interrupted is continued
//! by asking again. At the end Velero stops importing from the tenants' storage that was left, since nacre's admission
//! policies do not follow it there much longer.

use std::collections::BTreeMap;

use api::{ApprovalDecision, Kind, labels};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::Object;
use crate::policy::CONFIG_MAP;
use crate::sync::ADOPTIONS;

/// The Secret with the password of all repositories with data of volumes. Velero makes one of its own if there is none.
const REPOSITORIES: &str = "velero-repo-credentials";

/// How often Velero looks for backups in a location, and that it does not.
const PERIOD: &str = "backupSyncPeriod";
const NEVER: &str = "0s";

/// Where a copy came from.
const MOVED_FROM: &str = "nacre.dev/moved-from";

/// Where a request says in its status what was asked for.
const ASKED: &str = "nonAdminBackupStorageLocation";

/// The phases in which Velero is done with a backup.
const OVER: [&str; 3] = ["Completed", "PartiallyFailed", "Failed"];

/// What there is in the namespace of one Velero.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// The namespace.
    pub namespace: String,
    /// Objects by kind and name.
    pub objects: BTreeMap<(Kind, String), Value>,
}

/// The kinds that are read.
pub const KINDS: [Kind; 6] = [
    Kind::Backup,
    Kind::PodVolumeBackup,
    Kind::BackupStorageLocation,
    Kind::NonAdminBackupStorageLocationRequest,
    Kind::Secret,
    Kind::ConfigMap,
];

/// What does not move, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stays {
    /// Kind and name.
    pub what: String,
    /// Why, and what helps.
    pub why: String,
}

/// What is to be done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Relocation {
    /// Objects to create now, with their status. Volumes follow once their backup has a uid.
    pub steps: Vec<Object>,
    /// Tenants' locations of the Velero that is left.
    pub left: Vec<String>,
    /// Those of them from which it still imports.
    pub still_importing: Vec<String>,
    /// Backups that are in the other namespace already.
    pub moved: Vec<String>,
    /// What does not move.
    pub stays: Vec<Stays>,
    /// Why nothing moves at all.
    pub refusals: Vec<String>,
}

impl Side {
    fn get(&self, kind: Kind, name: &str) -> Option<&Value> {
        self.objects.get(&(kind, name.to_owned()))
    }

    fn all(&self, kind: Kind) -> impl Iterator<Item = (&String, &Value)> {
        self.objects.iter().filter(move |((of, _), _)| *of == kind).map(|((_, name), object)| (name, object))
    }
}

/// Decides what to create next.
pub fn decide(from: &Side, to: &Side) -> Relocation {
    let mut plan = Relocation::default();
    if from.namespace == to.namespace {
        plan.refusals.push(format!("both Veleros are in namespace {}", to.namespace));
        return plan;
    }
    let mut copy = Copies { from, to, steps: BTreeMap::new() };
    if let Some(why) = copy.repositories() {
        plan.refusals.push(why);
        return plan;
    }
    for (name, backup) in from.all(Kind::Backup).filter(|(_, backup)| is_a_tenants(backup)) {
        match copy.backup(name, backup) {
            Ok(true) => plan.moved.push(name.clone()),
            Ok(false) => {}
            Err(why) => plan.stays.push(Stays { what: format!("backup/{name}"), why }),
        }
    }
    for (name, volume) in from.all(Kind::PodVolumeBackup) {
        if let Err(why) = copy.volume(name, volume) {
            plan.stays.push(Stays { what: format!("podvolumebackup/{name}"), why });
        }
    }
    let locations = from.all(Kind::BackupStorageLocation);
    for (name, _) in locations.filter(|(_, location)| is_a_tenants_location(location)) {
        if let Err(why) = copy.location(name) {
            plan.stays.push(Stays { what: format!("backupstoragelocation/{name}"), why });
        }
    }
    for (name, request) in from.all(Kind::NonAdminBackupStorageLocationRequest) {
        copy.request(name, request);
    }
    for name in [ADOPTIONS, CONFIG_MAP] {
        let Some(map) = from.get(Kind::ConfigMap, name) else { continue };
        if to.get(Kind::ConfigMap, name).is_some_and(|there| there["data"] != map["data"]) {
            let why = format!("there is another one in {}, which stays in effect there", to.namespace);
            plan.stays.push(Stays { what: format!("configmap/{name}"), why });
        }
        copy.plain(Kind::ConfigMap, name, map);
    }
    plan.steps = copy.steps.into_values().collect();
    for (name, left) in from.all(Kind::BackupStorageLocation) {
        if is_a_tenants_location(left) {
            plan.left.push(name.clone());
            plan.still_importing.extend((left["spec"][PERIOD] != NEVER).then(|| name.clone()));
        }
    }
    plan
}

/// Whether an approval request says what was asked for.
pub fn is_written_down(request: &Value) -> bool {
    request["status"][ASKED].is_object()
}

/// What ends the import from a location.
pub fn stop_importing() -> Value {
    json!({"spec": {PERIOD: NEVER}})
}

/// Made by nacre or by the Go controller for a tenant.
fn is_a_tenants(backup: &Value) -> bool {
    let metadata = &backup["metadata"];
    metadata["labels"][labels::NAB_NACUUID].is_string()
        && metadata["annotations"][labels::NAB_NAMESPACE].is_string()
}

fn is_a_tenants_location(location: &Value) -> bool {
    location["metadata"]["labels"][labels::NABSL_NACUUID].is_string()
}

/// The copies that are still to be made, in an order in which they can be.
struct Copies<'a> {
    from: &'a Side,
    to: &'a Side,
    steps: BTreeMap<(usize, String), Object>,
}

impl Copies<'_> {
    /// The password of the repositories is the same in both, or the data of volumes could not be read.
    fn repositories(&mut self) -> Option<String> {
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
    fn backup(&mut self, name: &str, backup: &Value) -> Result<bool, String> {
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
    fn location(&mut self, name: &str) -> Result<String, String> {
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
    fn request(&mut self, name: &str, old: &Value) {
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
    fn volume(&mut self, name: &str, volume: &Value) -> Result<(), String> {
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
    fn plain(&mut self, kind: Kind, name: &str, object: &Value) {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn side(namespace: &str, objects: &[(Kind, Value)]) -> Side {
        let named = |(kind, object): &(Kind, Value)| {
            ((*kind, object["metadata"]["name"].as_str().unwrap().to_owned()), object.clone())
        };
        Side { namespace: namespace.to_owned(), objects: objects.iter().map(named).collect() }
    }

    fn backup(name: &str, phase: &str) -> (Kind, Value) {
        let metadata = json!({"name": name, "uid": format!("{name}-uid"), "finalizers": ["x"],
            "labels": {labels::NAB_NACUUID: name},
            "annotations": {labels::NAB_NAMESPACE: "shop", labels::NAB_NAME: "daily", labels::ORIGIN_UID: "u"}});
        (
            Kind::Backup,
            json!({"metadata": metadata, "spec": {"storageLocation": "default"}, "status": {"phase": phase}}),
        )
    }

    fn location(name: &str, bucket: &str) -> (Kind, Value) {
        let spec = json!({"provider": "aws", "default": true, "objectStorage": {"bucket": bucket},
            "credential": {"name": "cloud", "key": "cloud"}});
        (Kind::BackupStorageLocation, json!({"metadata": {"name": name}, "spec": spec}))
    }

    fn secret(name: &str, data: &str) -> (Kind, Value) {
        (Kind::Secret, json!({"metadata": {"name": name}, "type": "Opaque", "data": {"k": data}}))
    }

    fn volume(backup: &str, uid: &str) -> (Kind, Value) {
        let labels = json!({labels::VELERO_BACKUP_NAME: backup, labels::VELERO_BACKUP_UID: uid});
        (
            Kind::PodVolumeBackup,
            json!({"metadata": {"name": format!("{backup}-v"), "labels": labels},
            "spec": {"backupStorageLocation": "default"}, "status": {"phase": "Completed"}}),
        )
    }

    fn old() -> Side {
        side(
            "velero",
            &[
                backup("a", "Completed"),
                backup("b", "InProgress"),
                volume("a", "a-uid"),
                location("default", "platform"),
                secret("cloud", "1"),
                secret(REPOSITORIES, "2"),
            ],
        )
    }

    /// Does the steps, as often as there are any.
    fn moved(from: &Side, mut to: Side) -> (Side, Relocation) {
        for _ in 0..5 {
            let plan = decide(from, &to);
            if plan.steps.is_empty() {
                return (to, plan);
            }
            for step in plan.steps {
                let mut object = step.body.clone();
                object["metadata"]["uid"] = json!(format!("new-{}", step.name()));
                to.objects.insert((step.kind, step.name().to_owned()), object);
            }
        }
        panic!("it never ends");
    }

    #[test]
    fn backups_move_with_their_location_its_credential_and_their_volumes() {
        let (to, plan) = moved(&old(), side("tenants", &[]));
        assert_eq!(plan.moved, ["a"]);
        let there = to.get(Kind::Backup, "a").unwrap();
        assert_eq!(there["metadata"]["namespace"], "tenants");
        assert!(there["metadata"]["finalizers"].is_null());
        assert_eq!(there["status"]["phase"], "Completed");
        let location = &to.get(Kind::BackupStorageLocation, "default").unwrap()["spec"];
        assert_eq!(location["backupSyncPeriod"], "0s", "administrators' backups are not imported");
        assert!(location["default"].is_null());
        assert_eq!(to.get(Kind::Secret, "cloud").unwrap()["data"]["k"], "1");
        assert_eq!(to.get(Kind::Secret, REPOSITORIES).unwrap()["data"]["k"], "2");
        let volume = to.get(Kind::PodVolumeBackup, "a-v").unwrap();
        assert_eq!(volume["metadata"]["labels"][labels::VELERO_BACKUP_UID], "new-a");
        assert_eq!(volume["metadata"]["ownerReferences"][0]["uid"], "new-a");
        assert_eq!(plan.stays.len(), 1);
        assert!(plan.stays[0].why.contains("phase InProgress"), "{plan:?}");
    }

    #[test]
    fn with_another_password_for_the_repositories_nothing_moves() {
        let plan = decide(&old(), &side("tenants", &[secret(REPOSITORIES, "other")]));
        assert!(plan.steps.is_empty() && plan.refusals[0].contains(REPOSITORIES), "{plan:?}");
        let same = decide(&old(), &side("tenants", &[secret(REPOSITORIES, "2")]));
        assert!(same.refusals.is_empty() && !same.steps.is_empty());
    }

    #[test]
    fn a_location_and_a_credential_of_the_same_name_are_not_mixed_up() {
        let there = side("tenants", &[location("default", "tenants"), secret("cloud", "3")]);
        let (to, plan) = moved(&old(), there);
        assert_eq!(plan.moved, ["a"]);
        assert_eq!(to.get(Kind::Backup, "a").unwrap()["spec"]["storageLocation"], "default-from-velero");
        let location = &to.get(Kind::BackupStorageLocation, "default-from-velero").unwrap()["spec"];
        assert_eq!(location["objectStorage"]["bucket"], "platform");
        assert_eq!(location["credential"]["name"], "cloud-from-velero");
        assert_eq!(to.get(Kind::Secret, "cloud-from-velero").unwrap()["data"]["k"], "1");
        assert_eq!(to.get(Kind::Secret, "cloud").unwrap()["data"]["k"], "3", "what is there stays");
    }

    /// A tenant's location that was approved, and whose request says for what.
    fn tenants() -> Side {
        let (kind, mut own) = location("own", "mine");
        own["metadata"]["labels"] = json!({labels::NABSL_NACUUID: "own"});
        own["spec"]["default"] = Value::Null;
        let request = json!({"metadata": {"name": "own", "uid": "r", "annotations": {labels::ORIGIN_UID: "u"}},
            "spec": {"approvalDecision": "approve"},
            "status": {"phase": "Approved", ASKED: {"requestedSpec": {"provider": "aws"}, "nacuuid": "own"}}});
        let mut from = old();
        from.objects.insert((kind, "own".to_owned()), own);
        from.objects.insert((Kind::NonAdminBackupStorageLocationRequest, "own".to_owned()), request);
        from
    }

    #[test]
    fn an_approval_moves_with_what_it_is_about_and_not_without() {
        let kind = Kind::NonAdminBackupStorageLocationRequest;
        let from = tenants();
        let (mut to, _) = moved(&from, side("tenants", &[]));
        let there = to.get(kind, "own").unwrap().clone();
        assert_eq!(
            (&there["spec"], &there["status"]),
            (&from.get(kind, "own").unwrap()["spec"], &from.get(kind, "own").unwrap()["status"])
        );
        let order: Vec<_> = decide(&from, &side("tenants", &[])).steps.iter().map(|step| step.kind).collect();
        let at = |kind| order.iter().position(|one| *one == kind).unwrap();
        assert!(at(kind) < at(Kind::BackupStorageLocation), "{order:?}");

        // Interrupted between the request and its status: that follows. Another location's request stays as it is.
        let place = (kind, "own".to_owned());
        to.objects.get_mut(&place).unwrap()["status"] = Value::Null;
        let plan = decide(&from, &to);
        assert_eq!(
            plan.steps.iter().map(|step| (step.kind, step.name())).collect::<Vec<_>>(),
            [(kind, "own")]
        );
        assert!(is_written_down(&plan.steps[0].body));
        to.objects.get_mut(&place).unwrap()["metadata"]["annotations"][labels::ORIGIN_UID] = json!("another");
        assert!(decide(&from, &to).steps.is_empty());

        // Nobody knows what was approved.
        let mut from = tenants();
        from.objects.get_mut(&place).unwrap()["status"] = Value::Null;
        let (to, _) = moved(&from, side("tenants", &[]));
        assert_eq!(to.get(kind, "own").unwrap()["spec"]["approvalDecision"], "pending");
    }

    #[test]
    fn neither_velero_imports_from_tenants_storage_after_a_move() {
        let mut from = tenants();
        let plan = decide(&from, &side("tenants", &[]));
        assert_eq!((&plan.left, &plan.still_importing), (&vec!["own".to_owned()], &vec!["own".to_owned()]));
        let (to, _) = moved(&from, side("tenants", &[]));
        assert_eq!(to.get(Kind::BackupStorageLocation, "own").unwrap()["spec"][PERIOD], NEVER);
        let place = (Kind::BackupStorageLocation, "own".to_owned());
        from.objects.get_mut(&place).unwrap()["spec"][PERIOD] = stop_importing()["spec"][PERIOD].clone();
        let (_, plan) = moved(&from, to);
        assert!(plan.still_importing.is_empty() && plan.left == ["own"], "{plan:?}");
        assert!(
            !plan.left.contains(&"default".to_owned()),
            "the administrators' own location stays as it is"
        );
    }

    #[test]
    fn what_cannot_be_moved_is_named() {
        let mut from = old();
        from.objects.remove(&(Kind::Secret, "cloud".to_owned()));
        let plan = decide(&from, &side("tenants", &[]));
        assert!(plan.stays.iter().any(|one| one.why.contains("secret/cloud")), "{plan:?}");
        let mut squatter = backup("a", "Completed");
        squatter.1["metadata"]["annotations"][labels::NAB_NAMESPACE] = json!("other");
        let plan = decide(&old(), &side("tenants", &[squatter]));
        assert!(plan.stays.iter().any(|one| one.why.contains("another backup has its name")), "{plan:?}");
        let mut from = old();
        let (kind, forged) = volume("a", "somebody-elses");
        from.objects.insert((kind, "forged".to_owned()), forged);
        let (to, plan) = moved(&from, side("tenants", &[]));
        assert!(plan.stays.iter().any(|one| one.what == "podvolumebackup/forged"), "{plan:?}");
        assert!(to.get(Kind::PodVolumeBackup, "forged").is_none());
    }

    #[test]
    fn backups_of_administrators_stay() {
        let mut from = old();
        let (kind, mut nightly) = backup("nightly", "Completed");
        nightly["metadata"]["labels"] = json!({});
        from.objects.insert((kind, "nightly".to_owned()), nightly);
        let (to, plan) = moved(&from, side("tenants", &[]));
        assert!(to.get(Kind::Backup, "nightly").is_none() && !plan.moved.contains(&"nightly".to_owned()));
    }
}
