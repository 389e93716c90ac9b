//! Why the data of a claim is not in a backup, and what to do.

use std::fmt;

use api::velero::Backup;
use api::{Claim, ClaimStatus};

use super::volumes::{VolumeMethod, is_block, is_own_policy, volume_method};
use super::{Observed, left_out};

/// Why the data of a claim is not in a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// Nothing can save it file by file.
    NoNodeAgent,
    /// The node agent saved other volumes, and not this one.
    NotReached,
    /// The backup left out the pods.
    WithoutPods(&'static str),
    /// The policy leaves it to Velero's defaults.
    VeleroDefaults,
    /// What was asked for does not save it.
    AsRequested,
    /// It came when the backup was with Velero already, or could not be seen before.
    TooLate,
    /// There is a snapshot, and it will not come back from a tenant's own storage.
    SnapshotOnly,
    /// There are fewer snapshots than claims.
    SomeSnapshots(i64, usize),
    /// Its driver can take snapshots, and Velero made none.
    NoSnapshot,
    /// Its volume is gone.
    VolumeLost,
    /// Its volume is a folder of a node.
    HostPath,
    /// Its volume has no files.
    BlockDevice,
}

const fn is_snapshot(method: Option<VolumeMethod>) -> bool {
    matches!(method, Some(VolumeMethod::Snapshot | VolumeMethod::MovedSnapshot))
}

/// Whether nacre has a snapshot taken of this claim alone: then the snapshots that Velero counts are of such claims.
pub(super) fn gets_snapshot(seen: &Observed, velero: &Backup, claim: &Claim) -> bool {
    let own_policy = velero.spec.resource_policy.as_ref().is_some_and(is_own_policy);
    let request = &seen.spec().backup_spec;
    let method = |policy| volume_method(request, policy, &seen.volume_facts, claim);
    own_policy && is_snapshot(seen.policy.as_deref().map(method))
}

/// Why Velero made nothing for a claim.
pub(super) fn cause(seen: &Observed, velero: &Backup, claim: &Claim) -> Cause {
    let file_by_file = velero.spec.default_volumes_to_fs_backup == Some(true);
    let request = &seen.spec().backup_spec;
    let method =
        seen.policy.as_deref().map(|policy| volume_method(request, policy, &seen.volume_facts, claim));
    if claim.status.phase.as_deref() == Some("Lost") {
        return Cause::VolumeLost;
    }
    if is_snapshot(method) {
        return Cause::NoSnapshot;
    }
    if seen.volume_facts.is_host_path(claim) {
        return Cause::HostPath;
    }
    if is_block(claim) && (file_by_file || method == Some(VolumeMethod::BlockDevice)) {
        return Cause::BlockDevice;
    }
    if file_by_file {
        return match left_out::filtered(&velero.spec, &left_out::PODS) {
            Some(field) => Cause::WithoutPods(field),
            None if !seen.volume_facts.node_agent_runs => Cause::NoNodeAgent,
            None => Cause::NotReached,
        };
    }
    match method {
        Some(VolumeMethod::VeleroDefaults) => Cause::VeleroDefaults,
        Some(VolumeMethod::AsRequested) => Cause::AsRequested,
        _ if !seen.volume_facts.node_agent_runs => Cause::NoNodeAgent,
        _ => Cause::TooLate,
    }
}

/// Why, and what to do.
impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (why, what_to_do) = match self {
            Self::NoNodeAgent => (
                "nothing saves it, since Velero's node agent does not run".to_owned(),
                "ask the administrators to run the node agent, then create a new backup",
            ),
            Self::NotReached => (
                "no running pod mounts it, or a pod's annotation backup.velero.io/backup-volumes-excludes leaves it out"
                    .to_owned(),
                "create a new backup while a pod that mounts it is running",
            ),
            Self::WithoutPods(field) => (
                format!("{field} leaves out the pods, and files are saved from inside pods"),
                "create a new backup that includes pods",
            ),
            Self::VeleroDefaults => (
                "the administrators leave volumes to Velero's own defaults, and those do not save it".to_owned(),
                "create a new backup with --default-volumes-to-fs-backup",
            ),
            Self::AsRequested => (
                "what the backup says about volumes does not save it".to_owned(),
                "create a new backup that says nothing about volumes, or one with --default-volumes-to-fs-backup",
            ),
            Self::TooLate => {
                ("it was not known when Velero was given the backup".to_owned(), "create a new backup")
            }
            Self::SnapshotOnly => (
                "there is only a snapshot in the cluster, and snapshots do not come back from your own storage"
                    .to_owned(),
                "create a new backup with --snapshot-move-data or --default-volumes-to-fs-backup",
            ),
            Self::SomeSnapshots(made, claims) => (
                format!("Velero made {made} of {claims} snapshots, and does not report of which claims"),
                "look at the log of the backup (kubectl nacre backup logs)",
            ),
            Self::NoSnapshot => (
                "its driver has a VolumeSnapshotClass for Velero, and Velero made no snapshot".to_owned(),
                "look at the log of the backup (kubectl nacre backup logs), or create a new backup with \
                 --default-volumes-to-fs-backup",
            ),
            Self::VolumeLost => {
                ("its volume is gone (the claim is Lost)".to_owned(), "restore the claim from an older backup")
            }
            Self::HostPath => (
                "its volume is a folder of a node (hostPath), and Velero saves no such volume".to_owned(),
                "copy the data to a claim of a StorageClass with other volumes, then create a new backup",
            ),
            Self::BlockDevice => (
                "its volume is a block device, which has no files that could be saved".to_owned(),
                "ask the administrators for a VolumeSnapshotClass with which Velero takes snapshots of it",
            ),
        };
        write!(f, "{why}. What to do: {what_to_do}")
    }
}

/// What Velero reported, and where to look for more.
pub(super) fn and_look_at_the_log(message: &str) -> String {
    format!(
        "{message}. What to do: look at the log of the backup (kubectl nacre backup logs), then create a new backup"
    )
}

/// How many names a message has.
const MOST_NAMES: usize = 5;

/// `claim "data"`, or `claims "a", "b" and 3 more`.
pub(super) fn named(names: &[&str]) -> String {
    let noun = if names.len() == 1 { "claim" } else { "claims" };
    let shown: Vec<String> = names.iter().take(MOST_NAMES).map(|name| format!("{name:?}")).collect();
    match (names.len().saturating_sub(MOST_NAMES), shown.split_last()) {
        (0, Some((last, others))) if !others.is_empty() => format!("{noun} {} and {last}", others.join(", ")),
        (0, _) => format!("{noun} {}", shown.join(", ")),
        (rest, _) => format!("{noun} {} and {rest} more", shown.join(", ")),
    }
}

/// The message of the condition. Claims with the same cause share a sentence.
pub(super) fn message(lost: &[&ClaimStatus]) -> String {
    let mut causes: Vec<(&str, Vec<&str>)> = Vec::new();
    for claim in lost {
        let why = claim.message.as_deref().unwrap_or_default();
        match causes.iter_mut().find(|(known, _)| *known == why) {
            Some((_, names)) => names.push(&claim.name),
            None => causes.push((why, vec![&claim.name])),
        }
    }
    let sentence = |(why, names): &(&str, Vec<&str>)| {
        format!("volume data of {} is NOT in this backup: {why}", named(names))
    };
    causes.iter().map(sentence).collect::<Vec<_>>().join(". ")
}
