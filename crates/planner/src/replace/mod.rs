//! Back to a backup, in place: claims and the workloads that use them are removed and restored.
//!
//! Velero leaves alone what exists, so data that was overwritten comes back only after its claim is gone. [`scope::choose`]
//! says what has to go, and refuses where something would be lost. [`step::next_step`] says what to do next, from what is
//! there, so that a replacement can be resumed after a crash at any point.

mod evidence;
mod managers;
pub mod objects;
pub mod record;
pub mod scope;
pub mod step;
#[cfg(test)]
mod tests;

pub use evidence::{all_saved, safety_spec};
use objects::WorkloadKind;
pub use record::Record;
pub use scope::Scope;

/// A permission that the caller needs before anything is removed: verb, group and resource.
pub type Permission = (&'static str, &'static str, &'static str);

/// What the caller must be allowed to do.
pub fn permissions(scope: &Scope) -> Vec<Permission> {
    let own = "oadp.openshift.io";
    let mut needed = vec![
        ("create", "", "configmaps"),
        ("update", "", "configmaps"),
        ("delete", "", "configmaps"),
        ("create", own, "nonadminbackups"),
        ("create", own, "nonadminrestores"),
        ("delete", "", "persistentvolumeclaims"),
    ];
    // Pods that a StatefulSet leaves behind are removed one by one.
    let pods = scope.workloads.iter().any(|one| one.orphan).then_some(WorkloadKind::Pod);
    for kind in scope.workloads.iter().map(|one| one.kind).chain(pods) {
        let (group, _, _, plural) = kind.names();
        needed.push(("delete", group, plural));
    }
    needed.sort_unstable();
    needed.dedup();
    needed
}

/// How to get back what was there before.
pub fn way_back(record: &Record, namespace: &str) -> String {
    match &record.safety_backup {
        Some(safety) => format!(
            "kubectl nacre restore create --from-backup {safety} --replace --no-safety-backup --namespace {namespace}"
        ),
        None => format!(
            "there is no safety backup; kubectl nacre restore create --from-backup {} --namespace {namespace}",
            record.backup
        ),
    }
}
