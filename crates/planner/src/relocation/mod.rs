//! Moves what tenants have in one Velero to another, which is theirs alone: the backups, their volumes, the storage
//! locations with their credentials and approvals, and the policy. The bytes stay where they are; both Veleros read the same buckets.
//!
//! Nothing is deleted, and each step creates something that is not there yet. So a move that was interrupted is continued
//! by asking again. At the end Velero stops importing from the tenants' storage that was left, since nacre's admission
//! policies do not follow it there much longer.

mod copies;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use api::{Kind, labels};
use serde::Serialize;
use serde_json::{Value, json};

use crate::Object;
use crate::policy::CONFIG_MAP;
use crate::sync::ADOPTIONS;

use copies::Copies;

/// How often Velero looks for backups in a location, and that it does not.
const PERIOD: &str = "backupSyncPeriod";
const NEVER: &str = "0s";

/// Where a request says in its status what was asked for.
const ASKED: &str = "nonAdminBackupStorageLocation";

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
    let mut copy = Copies::new(from, to);
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
    plan.steps = copy.in_order();
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
