//! How the data of claims gets into a backup whose request says nothing about volumes.
//!
//! Velero's own defaults save no volume at all unless an administrator or an annotation says so. So nacre has the claims
//! saved file by file where a node agent runs. `defaultVolumesToFsBackup` is one switch for all volumes of a pod, emptyDir
//! included. A volume policy, which is nacre's own ConfigMap, takes those out again. What it does not name follows the
//! switch, so the annotation `backup.velero.io/backup-volumes-excludes` on a pod still leaves a volume out.

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

/// What decisions about volumes read.
#[derive(Clone, Debug, Default)]
pub struct VolumeFacts {
    /// The claims of the namespace; none if nacre is not permitted to list claims.
    pub claims: Option<Vec<Arc<Claim>>>,
    /// Whether Velero's node agent runs.
    pub node_agent_runs: bool,
    /// Velero's version, if it is known.
    pub velero_version: Option<String>,
    /// nacre's own volume policy, if it exists.
    pub volume_policy: Option<Arc<ConfigMap>>,
}

impl VolumeFacts {
    /// What is known about the volumes of a namespace.
    pub(super) fn gather(view: &State, namespace: &str) -> Self {
        let known = view.is_listed(Kind::PersistentVolumeClaim);
        Self {
            claims: known.then(|| view.claims_in(namespace)),
            node_agent_runs: view.node_agent_runs(),
            velero_version: view.velero_version(),
            volume_policy: view.config_map(VOLUME_POLICY),
        }
    }

    /// Whether a volume policy can be used. An older Velero fails for each claim that has no volume yet once there is
    /// any policy, and rejects a policy that names such claims.
    fn can_use_policy(&self) -> bool {
        let version = self.velero_version.as_deref().and_then(import::numbers);
        version.is_some_and(|version| version >= KNOWS_CLAIM_PHASES)
    }
}

/// How the data of claims gets into a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VolumeMethod {
    /// As the request says, or what the administrators require or fill in.
    AsRequested,
    /// As Velero's own defaults say, since the policy leaves it to them.
    VeleroDefaults,
    /// There is nothing to save: no claims, or none that nacre may see.
    NoClaims,
    /// nacre would have it saved file by file, but no node agent runs. Velero's defaults hold.
    NoNodeAgent,
    /// nacre has every claim saved file by file.
    FileByFile,
}

/// What is chosen and why, to follow a claim's name.
impl fmt::Display for VolumeMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AsRequested => "as the request, or the administrators' policy, says about volumes",
            Self::VeleroDefaults => {
                "as Velero's own defaults say, since the administrators' policy has backup.volumes: velero"
            }
            Self::NoClaims => "nothing to save",
            Self::NoNodeAgent => {
                "NOT saved, unless the cluster takes a snapshot of it, since Velero's node agent does not run"
            }
            Self::FileByFile => {
                "file by file, if a running pod mounts it: the request says nothing about volumes, and Velero's \
                 node agent runs"
            }
        })
    }
}

/// Whether a spec says anything about how volumes are saved.
fn says_how(spec: &BackupSpec) -> bool {
    spec.default_volumes_to_fs_backup.is_some()
        || spec.default_volumes_to_restic.is_some()
        || spec.snapshot_volumes.is_some()
        || spec.snapshot_move_data.is_some()
        || spec.resource_policy.is_some()
}

/// How the data of claims gets into a backup that asks for this.
pub fn volume_method(asked: &BackupSpec, policy: &Policy, facts: &VolumeFacts) -> VolumeMethod {
    method(&filled(asked, policy), policy, facts)
}

/// The same for a spec that has the administrators' part already.
fn method(effective: &BackupSpec, policy: &Policy, facts: &VolumeFacts) -> VolumeMethod {
    let claims = facts.claims.as_deref().unwrap_or_default();
    match policy.backup.volumes {
        _ if says_how(effective) => VolumeMethod::AsRequested,
        Volumes::Velero => VolumeMethod::VeleroDefaults,
        Volumes::Auto if claims.is_empty() => VolumeMethod::NoClaims,
        Volumes::Auto if !facts.node_agent_runs => VolumeMethod::NoNodeAgent,
        Volumes::Auto => VolumeMethod::FileByFile,
    }
}

/// What to warn of before a backup is made: nothing saves the data of the claims.
pub(super) fn nothing_protects(seen: &Observed, policy: &Policy) -> Option<String> {
    let method = volume_method(&seen.spec().backup_spec, policy, &seen.volume_facts);
    (method == VolumeMethod::NoNodeAgent).then(|| {
        let claims = seen.volume_facts.claims.iter().flatten();
        let names: Vec<&str> = claims.filter_map(|claim| claim.metadata.name.as_deref()).collect();
        format!(
            "volume data of {} will NOT be in this backup unless the cluster takes snapshots of it, since Velero's \
             node agent does not run; ask the administrators to run it",
            named(&names)
        )
    })
}

/// Puts nacre's choice into a spec that says nothing about volumes.
pub(super) fn fill(effective: &mut BackupSpec, policy: &Policy, seen: &Observed) {
    if method(effective, policy, &seen.volume_facts) == VolumeMethod::FileByFile {
        effective.default_volumes_to_fs_backup = Some(true);
        effective.resource_policy = uses_policy(seen).then(|| config_map::reference(VOLUME_POLICY));
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
    config_map::ensure(&seen.admin_namespace, VOLUME_POLICY, (KEY, rules().to_string()), found)
}

/// The rules, in JSON, which is YAML. The first that matches counts.
fn rules() -> Value {
    json!({"version": "v1", "volumePolicies": [
        // What a pod writes into an emptyDir is lost with the pod: nobody expects it back.
        {"conditions": {"volumeTypes": ["emptyDir"]}, "action": {"type": "skip"}},
        // There is no volume yet, or no more. Velero would call the whole backup failed in part.
        {"conditions": {"pvcPhase": ["Pending", "Lost"]}, "action": {"type": "skip"}},
    ]})
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use api::Claim;
    use api::velero::BackupSpec;

    use super::{VolumeFacts, VolumeMethod, volume_method};
    use crate::Policy;
    use crate::policy::Volumes;
    use crate::state::State;

    fn one_claim() -> VolumeFacts {
        let claims = Some(vec![Arc::new(Claim::default())]);
        VolumeFacts { claims, node_agent_runs: true, ..VolumeFacts::default() }
    }

    #[test]
    fn the_request_comes_first_then_the_policy_then_what_can_be_done() {
        let (silent, auto) = (BackupSpec::default(), Policy::default());
        let mut velero = Policy::default();
        velero.backup.volumes = Volumes::Velero;
        let loud = BackupSpec { snapshot_volumes: Some(false), ..BackupSpec::default() };
        assert_eq!(volume_method(&loud, &velero, &one_claim()), VolumeMethod::AsRequested);
        assert_eq!(volume_method(&silent, &velero, &one_claim()), VolumeMethod::VeleroDefaults);
        assert_eq!(volume_method(&silent, &auto, &one_claim()), VolumeMethod::FileByFile);
        let without_agent = VolumeFacts { node_agent_runs: false, ..one_claim() };
        assert_eq!(volume_method(&silent, &auto, &without_agent), VolumeMethod::NoNodeAgent);
        let mut defaults = Policy::default();
        defaults.backup.defaults.default_volumes_to_fs_backup = Some(false);
        assert_eq!(volume_method(&silent, &defaults, &one_claim()), VolumeMethod::AsRequested);
    }

    /// An empty list would mean that there is nothing to lose.
    #[test]
    fn where_claims_may_not_be_listed_nothing_is_known_about_them() {
        let facts = VolumeFacts::gather(&State::new("velero"), "shop");
        assert!(facts.claims.is_none());
        assert_eq!(volume_method(&BackupSpec::default(), &Policy::default(), &facts), VolumeMethod::NoClaims);
    }

    #[test]
    fn a_volume_policy_is_for_a_velero_that_knows_the_phases_of_claims() {
        let can = |version: Option<&str>| {
            let velero_version = version.map(str::to_owned);
            VolumeFacts { velero_version, ..VolumeFacts::default() }.can_use_policy()
        };
        assert!(can(Some("v1.18.0")) && can(Some("v1.18.3-OADP")) && can(Some("v2.0.1")));
        assert!(!can(Some("v1.17.9")) && !can(Some("main")) && !can(None));
    }
}
