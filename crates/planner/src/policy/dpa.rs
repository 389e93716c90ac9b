//! The policy in OADP's DataProtectionApplication.

use std::sync::Arc;

use api::velero::{BackupSpec, RestoreSpec};
use api::{DataProtectionApplication, Duration, NonAdmin};
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};

use super::node::Node;
use super::problem::{Problem, Severity, Source};
use super::read::read;
use super::rules::Finding;
use super::{EnforcedLocation, Policy, combine, rules};
use crate::enforce::Fields;

/// The tenant settings of a DataProtectionApplication.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct DpaSettings {
    pub(super) enforce_backup: BackupSpec,
    pub(super) enforce_restore: RestoreSpec,
    pub(super) enforce_location: EnforcedLocation,
    pub(super) require_approval: bool,
    pub(super) sync_period: Option<Duration>,
    pub(super) collection_period: Option<Duration>,
    /// How often Velero looks into a location that does not say.
    pub(super) velero_sync_period: Option<Duration>,
}

/// The field in released OADP, and in the design documents.
const RELEASED: &str = "spec.nonAdmin";
const SEEDED: &str = "spec.features.nonAdmin";

/// Reads what the applications of a namespace say; OADP means there to be one. It comes back only if there is no
/// error.
pub(super) fn parse(applications: &[Arc<DataProtectionApplication>]) -> (Option<DpaSettings>, Vec<Problem>) {
    let mut applications: Vec<_> = applications.iter().map(Arc::as_ref).collect();
    let Some(chosen) = counts(&applications) else {
        return (Some(DpaSettings::default()), Vec::new());
    };
    let mut problems = Vec::new();
    applications.sort_by(|one, other| one.metadata.name.cmp(&other.metadata.name));
    if let Some(other) = applications.iter().filter(|dpa| !blocks(dpa).is_empty()).nth(1) {
        let name = |dpa: &DataProtectionApplication| dpa.metadata.name.clone().unwrap_or_default();
        let message = format!(
            "of several that speak about tenants, {:?} counts and {:?} does not",
            name(chosen),
            name(other)
        );
        problems.push(problem(Severity::Warning, RELEASED, message));
    }
    let mut said = DpaSettings {
        velero_sync_period: velero_sync_period(chosen, &mut problems),
        ..DpaSettings::default()
    };
    let mut known = Vec::new();
    for (at, block) in blocks(chosen) {
        let mut block = one(at, block, &mut problems);
        block.velero_sync_period.clone_from(&said.velero_sync_period);
        report(at, &block, &mut known, &mut problems);
        join(&mut said, block, &mut problems);
    }
    // Each may make sense where both together do not.
    report(RELEASED, &said, &mut known, &mut problems);
    problems.sort();
    problems.dedup();
    let usable = !problems.iter().any(Problem::is_error);
    (usable.then_some(said), problems)
}

/// Which of the applications of a namespace counts: by name the first that speaks about tenants, else the first.
pub fn counts<'a>(applications: &[&'a DataProtectionApplication]) -> Option<&'a DataProtectionApplication> {
    let order = |dpa: &&&'a DataProtectionApplication| (blocks(dpa).is_empty(), dpa.metadata.name.clone());
    applications.iter().min_by_key(order).copied()
}

/// Whether an application says anything about tenants.
pub(super) fn speaks(dpa: &DataProtectionApplication) -> bool {
    !blocks(dpa).is_empty()
}

fn blocks(dpa: &DataProtectionApplication) -> Vec<(&'static str, &NonAdmin)> {
    let seeded = dpa.spec.features.as_ref().and_then(|features| features.non_admin.as_ref());
    let both = [(RELEASED, dpa.spec.non_admin.as_ref()), (SEEDED, seeded)];
    both.into_iter().filter_map(|(at, block)| Some((at, block?))).collect()
}

fn one(at: &str, block: &NonAdmin, problems: &mut Vec<Problem>) -> DpaSettings {
    DpaSettings {
        enforce_backup: strictly(at, "enforceBackupSpec", block.enforce_backup_spec.as_ref(), problems),
        enforce_restore: strictly(at, "enforceRestoreSpec", block.enforce_restore_spec.as_ref(), problems),
        enforce_location: strictly(at, "enforceBSLSpec", block.enforce_bsl_spec.as_ref(), problems),
        require_approval: block.require_approval_for_bsl.unwrap_or_default(),
        sync_period: block.backup_sync_period.clone(),
        collection_period: block.garbage_collection_period.clone(),
        velero_sync_period: None,
    }
}

/// Reports each problem once.
fn report(at: &str, said: &DpaSettings, known: &mut Vec<Finding>, problems: &mut Vec<Problem>) {
    for found in rules::check(&said.alone()) {
        if !known.contains(&found) {
            problems.push(problem(found.severity, &path(at, &found.path), path(at, &found.message)));
            known.push(found);
        }
    }
}

/// A field that nacre does not know is one that it could not require of anybody: better to say so.
fn strictly<T: DeserializeOwned + Default>(
    at: &str,
    name: &str,
    json: Option<&Json>,
    problems: &mut Vec<Problem>,
) -> T {
    let Some(json) = json.filter(|json| !json.is_null()) else {
        return T::default();
    };
    let (value, complaints) = read(&Node::from_json(&format!("{at}.{name}"), json), &[]);
    let errors = complaints.into_iter().map(|found| problem(Severity::Error, &found.path, found.message));
    problems.extend(errors);
    value.unwrap_or_default()
}

/// The keys of `policy.yaml` that a DataProtectionApplication has too, and their names there.
pub const IN_APPLICATIONS: [(&str, &str); 6] = [
    ("backup.enforce", "enforceBackupSpec"),
    ("restore.enforce", "enforceRestoreSpec"),
    ("storageLocations.enforce", "enforceBSLSpec"),
    ("storageLocations.requireApproval", "requireApprovalForBSL"),
    ("sync.period", "backupSyncPeriod"),
    ("garbageCollection.period", "garbageCollectionPeriod"),
];

/// A text about a policy's fields with the names that they have here.
fn path(at: &str, text: &str) -> String {
    IN_APPLICATIONS
        .into_iter()
        .fold(text.to_owned(), |text, (ours, theirs)| text.replace(ours, &format!("{at}.{theirs}")))
}

fn problem(severity: Severity, path: &str, message: String) -> Problem {
    Problem {
        source: Source::DataProtectionApplication,
        position: None,
        path: path.to_owned(),
        severity,
        message,
    }
}

impl DpaSettings {
    /// What it says of one field of a policy, if anything.
    pub(super) fn value(&self, field: &str) -> Option<Json> {
        let within = |part: &str, spec: Json| {
            let name = field.strip_prefix(part)?.strip_prefix('.')?;
            spec.get(name).cloned()
        };
        match field {
            "storageLocations.requireApproval" => self.require_approval.then_some(Json::Bool(true)),
            "sync.period" => self.sync_period.as_ref().map(|period| json!(period)),
            "garbageCollection.period" => self.collection_period.as_ref().map(|period| json!(period)),
            _ => within("backup.enforce", json!(self.enforce_backup))
                .or_else(|| within("restore.enforce", json!(self.enforce_restore)))
                .or_else(|| within("storageLocations.enforce", json!(self.enforce_location))),
        }
    }

    /// The policy if nothing else were said.
    pub(super) fn alone(&self) -> Policy {
        let mut policy = Policy::default();
        policy.backup.enforce.clone_from(&self.enforce_backup);
        policy.restore.enforce.clone_from(&self.enforce_restore);
        policy.storage_locations.enforce.clone_from(&self.enforce_location);
        policy.storage_locations.require_approval = self.require_approval;
        if let Some(period) = &self.sync_period {
            policy.sync.period.clone_from(period);
        }
        if let Some(period) = &self.collection_period {
            policy.garbage_collection.period.clone_from(period);
        }
        policy.velero_sync_period.clone_from(&self.velero_sync_period);
        policy
    }
}

/// Both blocks of one application must be satisfied.
fn join(said: &mut DpaSettings, more: DpaSettings, problems: &mut Vec<Problem>) {
    let conflicts = [
        ("enforceBackupSpec", said.enforce_backup.conflict(&more.enforce_backup)),
        ("enforceRestoreSpec", said.enforce_restore.conflict(&more.enforce_restore)),
        ("enforceBSLSpec", said.enforce_location.conflict(&more.enforce_location)),
    ];
    for (name, conflict) in conflicts {
        if let Some((field, wanted)) = conflict {
            let message = format!("requires {wanted} in {RELEASED} and something else here; make them agree");
            problems.push(problem(Severity::Error, &format!("{SEEDED}.{name}.{field}"), message));
        }
    }
    more.enforce_backup.fill(&mut said.enforce_backup);
    more.enforce_restore.fill(&mut said.enforce_restore);
    more.enforce_location.fill(&mut said.enforce_location);
    said.require_approval |= more.require_approval;
    said.sync_period = combine::sync_period(said.sync_period.take(), more.sync_period);
    said.collection_period =
        combine::collection_period(said.collection_period.take(), more.collection_period);
}

/// OADP has this one as a number of nanoseconds.
fn velero_sync_period(dpa: &DataProtectionApplication, problems: &mut Vec<Problem>) -> Option<Duration> {
    let args = dpa.spec.rest.get("configuration")?.get("velero")?.get("args")?;
    let period = match args.get("backup-sync-period")? {
        Json::Null => return None,
        Json::Number(nanos) => Duration::from(format!("{nanos}ns").as_str()),
        Json::String(text) => Duration::from(text.as_str()),
        other => Duration::from(other.to_string().as_str()),
    };
    // It is Velero's to refuse; nacre only orders its own work by it.
    let odd = rules::duration("spec.configuration.velero.args.backup-sync-period", &period);
    problems.extend(odd.iter().map(|found| problem(Severity::Warning, &found.path, found.message.clone())));
    odd.is_none().then_some(period)
}
