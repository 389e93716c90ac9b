//! What is kept in the namespace while a replacement runs, so that the same command resumes it.

use api::velero::RestoreSpec;
use serde::{Deserialize, Serialize};

use super::objects::{Workload, WorkloadKind};

/// Velero's own label: such objects are left out of backups. A record that came back with a backup would be resumed.
pub const EXCLUDE_FROM_BACKUP: &str = "velero.io/exclude-from-backup";
/// The key in the ConfigMap.
pub const KEY: &str = "replace.json";

/// A claim that is replaced.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ClaimRef {
    /// The claim's name.
    pub name: String,
    /// The uid of the claim with the old data.
    pub uid: String,
}

/// A workload that is removed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadRef {
    /// Its kind.
    pub kind: WorkloadKind,
    /// The workload's name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Whether its pods are left behind, and removed by themselves: else all claims of a StatefulSet would go with it.
    #[serde(default)]
    pub orphan: bool,
}

impl WorkloadRef {
    pub(super) fn of(workload: &Workload) -> Self {
        let Workload { kind, name, uid, deletes_claims, .. } = workload;
        Self { kind: *kind, name: name.clone(), uid: uid.clone(), orphan: *deletes_claims }
    }

    /// Kind and name.
    pub fn called(&self) -> String {
        self.kind.called(&self.name)
    }
}

/// A replacement that somebody agreed to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// The backup to go back to.
    pub backup: String,
    /// Its uid: another backup may get the name.
    pub backup_uid: String,
    /// The name of the safety backup; none if the user went without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub safety_backup: Option<String>,
    /// The name of the restore.
    pub restore: String,
    /// The spec of the restore.
    pub restore_spec: RestoreSpec,
    /// The claims.
    pub claims: Vec<ClaimRef>,
    /// Claims that were gone already, and come back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<String>,
    /// The workloads.
    pub workloads: Vec<WorkloadRef>,
    /// Whether both backups were found to be complete, so that removing may begin.
    #[serde(default)]
    pub checked: bool,
}

impl Record {
    /// Every claim whose data is to come back. One that was gone has no uid.
    pub fn all_claims(&self) -> Vec<ClaimRef> {
        let lost = self.lost.iter().map(|name| ClaimRef { name: name.clone(), uid: String::new() });
        self.claims.iter().cloned().chain(lost).collect()
    }

    /// The name of the ConfigMap for a replacement from this backup. There is at most one at a time.
    pub fn name_for(backup: &str) -> String {
        let name = format!("nacre-replace-{backup}");
        // A ConfigMap's name may be this long.
        name.chars().take(253).collect()
    }
}
