//! A claim that came back with a snapshot as its source. Its driver makes the volume after Velero has ended the restore, or
//! does not: until the claim is bound, the data is not there.

use api::{Claim, ClaimState};
use jiff::{SignedDuration, Timestamp};

/// How long a driver gets to make the volume of a claim. Velero waits as long before it ends the restore.
const DRIVER_GETS: SignedDuration = SignedDuration::from_mins(10);
/// How long a pod gets to use the claim, where the StorageClass waits for that.
const POD_GETS: SignedDuration = SignedDuration::from_mins(1);
/// Kubernetes asks a driver for the volume by this annotation. Velero takes it off what it restores.
const ASKED: &str = "volume.kubernetes.io/storage-provisioner";

/// Whether the volume of a claim is to be made from a CSI snapshot.
pub(super) fn is_csi(claim: &Claim) -> bool {
    claim.spec.data_source.as_ref().is_some_and(|source| source.kind == "VolumeSnapshot")
}

/// What became of the data of such a claim, and what to know about it.
pub(super) fn state(claim: &Claim, ended: Option<Timestamp>, now: Timestamp) -> (ClaimState, String) {
    let name = claim.metadata.name.as_deref().unwrap_or_default();
    let is_within =
        |time: SignedDuration, since: Option<Timestamp>| since.is_none_or(|since| now < since + time);
    let created = claim.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let is_asked = claim.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(ASKED));
    match claim.status.phase.as_deref() {
        Some("Bound") => (ClaimState::Restored, String::new()),
        _ if is_asked && is_within(DRIVER_GETS, created) => {
            (ClaimState::Waiting, "its driver has not made its volume from the snapshot yet".to_owned())
        }
        _ if is_asked => (
            ClaimState::Failed,
            format!(
                "its driver made no volume from the snapshot within {} minutes; why: kubectl describe pvc {name}",
                DRIVER_GETS.as_mins()
            ),
        ),
        _ if is_within(POD_GETS, ended) => (ClaimState::Waiting, "no pod uses it yet".to_owned()),
        _ => (
            ClaimState::Restored,
            "its volume will be made from the snapshot when a pod first uses the claim".to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use api::{Claim, ClaimState};
    use jiff::{SignedDuration, Timestamp};
    use serde_json::json;

    use super::state;

    const ENDED: Timestamp = Timestamp::UNIX_EPOCH;

    fn claim(phase: &str, annotation: &str) -> Claim {
        let metadata = json!({"name": "data", "annotations": {annotation: "fast.csi.test"},
            "creationTimestamp": "1970-01-01T00:00:00Z"});
        serde_json::from_value(json!({"metadata": metadata, "status": {"phase": phase}})).unwrap()
    }

    fn after(claim: &Claim, minutes: i64) -> ClaimState {
        state(claim, Some(ENDED), ENDED + SignedDuration::from_mins(minutes)).0
    }

    #[test]
    fn the_data_is_there_once_the_claim_is_bound() {
        let asked = super::ASKED;
        assert_eq!(after(&claim("Bound", asked), 0), ClaimState::Restored);
        assert_eq!(after(&claim("Pending", asked), 9), ClaimState::Waiting);
        assert_eq!(after(&claim("Pending", asked), 10), ClaimState::Failed);
    }

    #[test]
    fn a_claim_that_no_pod_uses_gets_its_volume_later() {
        assert_eq!(after(&claim("Pending", "other"), 0), ClaimState::Waiting);
        let unused = state(&claim("Pending", "other"), Some(ENDED), ENDED + SignedDuration::from_mins(1));
        assert_eq!(unused.0, ClaimState::Restored);
        assert!(unused.1.contains("when a pod first uses the claim"), "{}", unused.1);
    }
}
