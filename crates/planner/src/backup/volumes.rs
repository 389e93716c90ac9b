//! How the data of claims gets into a backup whose request says nothing about volumes.
//!
//! Velero's own defaults save no volume at all unless an administrator or an annotation says so. So nacre chooses for each
//! claim: a CSI snapshot where its driver has a VolumeSnapshotClass labelled for Velero, moved into the storage if that is
//! a tenant's own; else file by file where a node agent runs. `defaultVolumesToFsBackup` is one switch for all volumes of
//! a pod, emptyDir included. A volume policy, which is nacre's own ConfigMap, takes those out again, and the claims that
//! get a snapshot. What it does not name follows the switch, so the annotation `backup.velero.io/backup-volumes-excludes`
//! on a pod still leaves a volume out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use api::velero::BackupSpec;
use api::{Claim, Kind};
use k8s_openapi::api::core::v1::{ConfigMap, TypedLocalObjectReference};
use serde_json::{Value, json};

use super::Observed;
use super::generate::filled;
use super::not_saved::named;
use crate::location::import;
use crate::policy::Volumes;
use crate::state::State;
use crate::{Action, Policy, config_map};

/// nacre's own volume policy for Velero, a ConfigMap in Velero's namespace.
pub const VOLUME_POLICY: &str = "nacre-volumes";

const KEY: &str = "policy.yaml";

/// From this version on, a volume policy can name claims by phase.
const KNOWS_CLAIM_PHASES: [u64; 3] = [1, 18, 0];

/// Which drivers can take snapshots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SnapshotClasses {
    /// The driver of each StorageClass.
    pub drivers: BTreeMap<String, String>,
    /// The drivers that have a VolumeSnapshotClass labelled for Velero.
    pub labelled: BTreeSet<String>,
}

/// What decisions about volumes read.
#[derive(Clone, Debug, Default)]
pub struct VolumeFacts {
    /// The claims of the namespace; none if nacre is not permitted to list claims.
    pub claims: Option<Vec<Arc<Claim>>>,
    /// Whether Velero's node agent runs.
    pub node_agent_runs: bool,
    /// Whether Velero takes CSI snapshots, as far as is known.
    pub takes_csi_snapshots: bool,
    /// Which drivers can take snapshots.
    pub snapshot_classes: Arc<SnapshotClasses>,
    /// Velero's version, if it is known.
    pub velero_version: Option<String>,
    /// nacre's own volume policy, if it exists.
    pub volume_policy: Option<Arc<ConfigMap>>,
    /// The uids of claims whose data is in a folder of a node, as far as volumes can be read.
    pub host_paths: BTreeSet<String>,
}

impl VolumeFacts {
    /// Whether the driver of a claim can take a snapshot that Velero asks for.
    fn has_snapshot_class(&self, claim: &Claim) -> bool {
        let classes = &self.snapshot_classes;
        let class = claim.spec.storage_class_name.as_deref();
        let driver = class.and_then(|class| classes.drivers.get(class));
        driver.is_some_and(|driver| classes.labelled.contains(driver))
    }

    /// Whether the data of a claim is in a folder of a node.
    pub(super) fn is_host_path(&self, claim: &Claim) -> bool {
        claim.metadata.uid.as_ref().is_some_and(|uid| self.host_paths.contains(uid))
    }

    /// Why Velero cannot save a claim file by file, if it cannot.
    fn not_file_by_file(&self, claim: &Claim) -> Option<VolumeMethod> {
        if self.is_host_path(claim) {
            Some(VolumeMethod::HostPath)
        } else if is_block(claim) {
            Some(VolumeMethod::BlockDevice)
        } else if self.node_agent_runs {
            None
        } else {
            Some(VolumeMethod::NoNodeAgent)
        }
    }

    /// The drivers of which snapshots are taken.
    fn snapshot_drivers(&self) -> impl Iterator<Item = &str> {
        let labelled = self.snapshot_classes.labelled.iter().filter(|_| self.takes_csi_snapshots);
        labelled.map(String::as_str)
    }

    /// What is known about the volumes of a namespace.
    pub(super) fn gather(view: &State, namespace: &str) -> Self {
        let known = view.is_listed(Kind::PersistentVolumeClaim);
        let claims = known.then(|| view.list::<Claim>(namespace));
        let uids = claims.iter().flatten().filter_map(|claim| claim.metadata.uid.as_ref());
        Self {
            host_paths: uids.filter(|uid| view.is_host_path(uid)).cloned().collect(),
            claims,
            node_agent_runs: view.node_agent_runs(),
            takes_csi_snapshots: view.takes_csi_snapshots(),
            snapshot_classes: view.snapshot_classes(),
            velero_version: view.velero_version(),
            volume_policy: view.admin::<ConfigMap>(VOLUME_POLICY),
        }
    }

    /// Whether a volume policy can be used. An older Velero fails for each claim that has no volume yet once there is
    /// any policy, and rejects a policy that names such claims.
    fn can_use_policy(&self) -> bool {
        let version = self.velero_version.as_deref().and_then(import::numbers);
        version.is_some_and(|version| version >= KNOWS_CLAIM_PHASES)
    }
}

/// How the data of a claim gets into a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VolumeMethod {
    /// As the request says, or what the administrators require or fill in.
    AsRequested,
    /// As Velero's own defaults say, since the policy leaves it to them.
    VeleroDefaults,
    /// nacre would have it saved file by file, but no node agent runs. Velero's defaults hold.
    NoNodeAgent,
    /// nacre would have it saved file by file, but its volume is a folder of a node. Velero saves no such volume.
    HostPath,
    /// nacre would have it saved file by file, but its volume is a block device and has no files.
    BlockDevice,
    /// nacre has it saved file by file.
    FileByFile,
    /// nacre has a CSI snapshot taken of it, which stays in the cluster.
    Snapshot,
    /// nacre has a CSI snapshot taken of it and moved into the tenant's own storage.
    MovedSnapshot,
}

/// What is chosen and why, to follow a claim's name.
impl fmt::Display for VolumeMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AsRequested => "as the request, or the administrators' policy, says about volumes",
            Self::VeleroDefaults => {
                "as Velero's own defaults say, since the administrators' policy has backup.volumes: velero"
            }
            Self::NoNodeAgent => {
                "NOT saved, unless the cluster takes a snapshot of it, since Velero's node agent does not run"
            }
            Self::HostPath => {
                "NOT saved: its volume is a folder of a node (hostPath), and Velero saves no such volume"
            }
            Self::BlockDevice => {
                "NOT saved, unless the cluster takes a snapshot of it: its volume is a block device, which has no files"
            }
            Self::FileByFile => {
                "file by file, if a running pod mounts it: the request says nothing about volumes, and Velero's \
                 node agent runs"
            }
            Self::Snapshot => {
                "as a CSI snapshot, which stays in the cluster: the request says nothing about volumes, and the \
                 claim's driver has a VolumeSnapshotClass for Velero"
            }
            Self::MovedSnapshot => {
                "as a CSI snapshot that is moved into your storage: the request says nothing about volumes, and \
                 the claim's driver has a VolumeSnapshotClass for Velero"
            }
        })
    }
}

/// Whether the volume of a claim is a block device.
pub(super) fn is_block(claim: &Claim) -> bool {
    claim.spec.volume_mode.as_deref() == Some("Block")
}

/// Whether a spec says anything about how volumes are saved.
fn says_how(spec: &BackupSpec) -> bool {
    spec.default_volumes_to_fs_backup.is_some()
        || spec.default_volumes_to_restic.is_some()
        || spec.snapshot_volumes.is_some()
        || spec.snapshot_move_data.is_some()
        || spec.resource_policy.is_some()
}

/// How the data of a claim gets into a backup that asks for this.
pub fn volume_method(
    asked: &BackupSpec,
    policy: &Policy,
    facts: &VolumeFacts,
    claim: &Claim,
) -> VolumeMethod {
    Choice::of(&filled(asked, policy), policy, facts, facts.can_use_policy()).method(claim)
}

/// What decides about every claim of a backup.
struct Choice<'a> {
    facts: &'a VolumeFacts,
    /// Whether somebody else has chosen.
    chosen: Option<VolumeMethod>,
    /// Whether the backup goes into a tenant's own storage, from which no snapshot comes back that is only in the cluster.
    own_storage: bool,
    /// Whether snapshots are taken: of single claims only if a volume policy can say so, else of all or of none.
    snapshots: bool,
}

impl<'a> Choice<'a> {
    /// For a spec that has the administrators' part already.
    fn of(effective: &BackupSpec, policy: &Policy, facts: &'a VolumeFacts, uses_policy: bool) -> Self {
        let chosen = match policy.backup.volumes {
            _ if says_how(effective) => Some(VolumeMethod::AsRequested),
            Volumes::Velero => Some(VolumeMethod::VeleroDefaults),
            Volumes::Auto => None,
        };
        let own_storage = effective.storage_location.is_some();
        // Only the node agent moves a snapshot.
        let possible = facts.takes_csi_snapshots && (facts.node_agent_runs || !own_storage);
        let all = || facts.claims.iter().flatten().all(|claim| facts.has_snapshot_class(claim));
        let snapshots = possible && (uses_policy || !facts.node_agent_runs || all());
        Self { facts, chosen, own_storage, snapshots }
    }

    fn method(&self, claim: &Claim) -> VolumeMethod {
        match self.chosen {
            Some(chosen) => chosen,
            None if self.snapshots && self.facts.has_snapshot_class(claim) => {
                if self.own_storage {
                    VolumeMethod::MovedSnapshot
                } else {
                    VolumeMethod::Snapshot
                }
            }
            None => self.facts.not_file_by_file(claim).unwrap_or(VolumeMethod::FileByFile),
        }
    }
}

/// What to warn of before a backup is made: nothing saves the data of these claims.
pub(super) fn nothing_protects(seen: &Observed, policy: &Policy) -> Vec<String> {
    let facts = &seen.volume_facts;
    let choice = Choice::of(&filled(&seen.spec().backup_spec, policy), policy, facts, facts.can_use_policy());
    let of = |(method, cause): (VolumeMethod, &str)| {
        let claims = facts.claims.iter().flatten().filter(|claim| choice.method(claim) == method);
        let names: Vec<&str> = claims.filter_map(|claim| claim.metadata.name.as_deref()).collect();
        let claims = (!names.is_empty()).then(|| named(&names))?;
        Some(format!("volume data of {claims} will NOT be in this backup{cause}"))
    };
    let causes = [
        (
            VolumeMethod::NoNodeAgent,
            " unless the cluster takes snapshots of it, since Velero's node agent does not run; ask the \
             administrators to run it",
        ),
        (
            VolumeMethod::HostPath,
            ", since its volume is a folder of a node (hostPath), and Velero saves no such volume; use a \
             StorageClass with other volumes",
        ),
        (
            VolumeMethod::BlockDevice,
            " unless the cluster takes snapshots of it, since its volume is a block device, which has no files",
        ),
    ];
    causes.into_iter().filter_map(of).collect()
}

/// Puts nacre's choice into a spec that says nothing about volumes.
pub(super) fn fill(effective: &mut BackupSpec, policy: &Policy, seen: &Observed) {
    let facts = &seen.volume_facts;
    let choice = Choice::of(effective, policy, facts, uses_policy(seen));
    let methods: Vec<VolumeMethod> =
        facts.claims.iter().flatten().map(|claim| choice.method(claim)).collect();
    let any = |method: VolumeMethod| methods.contains(&method);
    let snapshots = any(VolumeMethod::Snapshot) || any(VolumeMethod::MovedSnapshot);
    // Velero looks for claims when it begins, which may be minutes later: it finds those that nacre does not know yet.
    let claims_may_come = methods.is_empty() && choice.chosen.is_none() && facts.node_agent_runs;
    let with_policy = uses_policy(seen) && (snapshots || any(VolumeMethod::FileByFile) || claims_may_come);
    if with_policy {
        effective.resource_policy = Some(config_map::reference(VOLUME_POLICY));
    }
    // The policy names drivers. A claim may have a volume that is not its driver's: that one is saved file by file.
    if any(VolumeMethod::FileByFile) || (with_policy && facts.node_agent_runs) {
        effective.default_volumes_to_fs_backup = Some(true);
    }
    if any(VolumeMethod::MovedSnapshot) {
        effective.snapshot_move_data = Some(true);
    }
}

/// Whether Velero gets nacre's volume policy. Without it emptyDir volumes are saved as well, which is better than
/// nothing where the ConfigMap cannot be written.
fn uses_policy(seen: &Observed) -> bool {
    let rejected = seen.rejected_write.as_deref().is_some_and(|rejected| rejected.kind == Kind::ConfigMap);
    seen.volume_facts.can_use_policy() && !rejected
}

/// Whether a spec refers to nacre's own volume policy.
pub(crate) fn is_own_policy(named: &TypedLocalObjectReference) -> bool {
    named.name == VOLUME_POLICY
}

/// The write that makes the ConfigMap what it must be, if a spec refers to it and it is not.
pub(super) fn ensure(seen: &Observed, spec: &BackupSpec) -> Option<Action> {
    spec.resource_policy.as_ref().filter(|named| is_own_policy(named))?;
    let found = seen.volume_facts.volume_policy.as_deref();
    config_map::ensure(
        &seen.admin_namespace,
        VOLUME_POLICY,
        config_map::single(KEY, rules(&seen.volume_facts).to_string()),
        found,
    )
}

/// The rules, in JSON, which is YAML. The first that matches counts. They are the same for every namespace.
fn rules(facts: &VolumeFacts) -> Value {
    let mut rules = vec![
        // What a pod writes into an emptyDir is lost with the pod: nobody expects it back.
        json!({"conditions": {"volumeTypes": ["emptyDir"]}, "action": {"type": "skip"}}),
        // There is no volume yet, or no more. Velero would call the whole backup failed in part.
        json!({"conditions": {"pvcPhase": ["Pending", "Lost"]}, "action": {"type": "skip"}}),
    ];
    let of_driver =
        |driver: &str| json!({"conditions": {"csi": {"driver": driver}}, "action": {"type": "snapshot"}});
    rules.extend(facts.snapshot_drivers().map(of_driver));
    json!({"version": "v1", "volumePolicies": rules})
}

#[cfg(test)]
#[path = "volumes_tests.rs"]
mod tests;
