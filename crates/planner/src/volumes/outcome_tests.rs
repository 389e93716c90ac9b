//! What became of each claim.

use std::sync::Arc;

use api::velero::{Backup, Restore, RestoreSpec};
use api::{Claim, ClaimState, ClaimStatus, Kind};
use kube::core::ObjectMeta;
use serde_json::{Value, json};

use super::{Facts, Operation, Outcome, Pod, PodState, outcome};
use crate::Target;

/// A restore from a backup that holds the data of one claim, `data`, of pod `db`.
struct Restoring {
    velero: Restore,
    source: Backup,
    saved: Vec<Operation>,
    reported: Vec<ClaimStatus>,
    unlisted: Option<&'static str>,
    operations: Vec<Operation>,
    claims: Option<Vec<Arc<Claim>>>,
}

const BEFORE: &str = "2026-01-01T00:00:00Z";
const START: &str = "2026-01-02T00:00:00Z";
const AFTER: &str = "2026-01-02T00:00:09Z";

fn operation(kind: Kind, phase: &str, claim_uid: &str) -> Operation {
    let meta = ObjectMeta { name: Some("v".to_owned()), ..ObjectMeta::default() };
    let pod = Pod { namespace: "shop".to_owned(), name: "db".to_owned(), state: PodState::Unknown };
    Operation {
        target: Target::of(kind, &meta),
        phase: phase.to_owned(),
        message: None,
        claim: None,
        claim_uid: Some(claim_uid.to_owned()),
        pod: Some(pod),
        volume: Some("files".to_owned()),
        done: 8,
        total: 8,
        new_bytes: None,
        is_cancelling: false,
        cancelling_since: None,
        created: None,
        completed: None,
        changed: None,
        without_agent_since: None,
    }
}

fn claim(name: &str, uid: &str, created: &str) -> Arc<Claim> {
    let mut claim = json!({"metadata": {"name": name, "uid": uid, "creationTimestamp": created}});
    if created == AFTER {
        claim["metadata"]["labels"] = json!({"velero.io/restore-name": "shop-back-1"});
    }
    Arc::new(serde_json::from_value(claim).unwrap())
}

fn restoring() -> Restoring {
    let velero = json!({"metadata": {"name": "shop-back-1", "uid": "r"}, "spec": {"backupName": "shop-good-1"},
        "status": {"phase": "Completed", "startTimestamp": START, "completionTimestamp": AFTER}});
    let saved =
        Operation { claim: Some("data".to_owned()), ..operation(Kind::PodVolumeBackup, "Completed", "then") };
    Restoring {
        velero: serde_json::from_value(velero).unwrap(),
        source: Backup::default(),
        saved: vec![saved],
        reported: Vec::new(),
        unlisted: None,
        operations: Vec::new(),
        claims: Some(Vec::new()),
    }
}

impl Restoring {
    fn outcome(&self) -> Outcome {
        outcome(&Facts {
            velero: &self.velero,
            source: Some(&self.source),
            backup_name: "good",
            saved: &self.saved,
            reported: &self.reported,
            unlisted: self.unlisted,
            operations: &self.operations,
            claims: self.claims.as_deref(),
            now: AFTER.parse().unwrap(),
        })
    }

    fn said(&self) -> String {
        let Outcome { status, reason, message, .. } = self.outcome();
        format!("{}/{reason}: {message}", status.as_str())
    }

    fn states(&self) -> Vec<(String, ClaimState)> {
        self.outcome().claims.into_iter().map(|claim| (claim.name, claim.state)).collect()
    }

    fn spec(&mut self, spec: Value) -> &mut Self {
        self.velero.spec = serde_json::from_value::<RestoreSpec>(spec).unwrap();
        self
    }
}

fn data(state: ClaimState) -> Vec<(String, ClaimState)> {
    vec![("data".to_owned(), state)]
}

/// OADP's CRDs drop the list of claims from the backup's status.
#[test]
fn a_claim_that_stays_is_reported_where_the_backup_lists_no_claims() {
    let mut restoring = Restoring { saved: Vec::new(), ..restoring() };
    let status = json!({"metadata": {}, "spec": {}, "status": {"startTimestamp": "2026-01-01T12:00:00Z"}});
    restoring.source = serde_json::from_value(status).unwrap();
    let mut bound = Arc::unwrap_or_clone(claim("data", "then", BEFORE));
    bound.spec.volume_name = Some("pv".to_owned());
    // One came later, and one has no volume.
    let mut later = Arc::unwrap_or_clone(claim("later", "later", "2026-01-01T13:00:00Z"));
    later.spec.volume_name = Some("pv".to_owned());
    restoring.claims = Some(vec![Arc::new(bound), Arc::new(later), claim("empty", "empty", BEFORE)]);
    assert_eq!(restoring.states(), []);
    restoring.unlisted = Some("AllClaimsSaved");
    assert_eq!(restoring.states(), data(ClaimState::Kept));
    restoring.unlisted = Some("ClaimsNotSaved");
    assert_eq!(restoring.states(), data(ClaimState::NoData));
}

#[test]
fn a_claim_that_was_made_and_written_is_restored() {
    let mut restoring = restoring();
    restoring.claims = Some(vec![claim("data", "new", AFTER)]);
    restoring.operations = vec![operation(Kind::PodVolumeRestore, "Completed", "new")];
    assert_eq!(restoring.said(), "True/AllVolumesRestored: the data of 1 claim was restored");
    assert_eq!(restoring.outcome().claims[0].bytes, Some(8));
    assert!(!restoring.outcome().may_be_late);
}

#[test]
fn a_claim_that_exists_is_kept() {
    let mut restoring = restoring();
    restoring.claims = Some(vec![claim("data", "old", BEFORE)]);
    assert_eq!(
        restoring.said(),
        "False/ClaimsKept: volume data of claim \"data\" was NOT restored: the claim exists. \
         To replace it: kubectl nacre restore create --from-backup good --replace"
    );
    assert!(restoring.outcome().may_be_late);
}

#[test]
fn a_claim_that_somebody_else_made_meanwhile_is_kept_too() {
    let mut restoring = restoring();
    let mut other = claim("data", "other", AFTER);
    Arc::make_mut(&mut other).metadata.labels = None;
    restoring.claims = Some(vec![other]);
    assert_eq!(restoring.states(), data(ClaimState::Kept));
}

#[test]
fn a_claim_that_was_written_over_is_mixed() {
    let mut restoring = restoring();
    restoring.claims = Some(vec![claim("data", "old", BEFORE)]);
    restoring.operations = vec![operation(Kind::PodVolumeRestore, "Completed", "old")];
    let said = restoring.said();
    assert!(said.starts_with("False/ClaimsMixed: volume data of claim \"data\" was written over"), "{said}");
    assert!(said.ends_with("--replace"), "{said}");
}

#[test]
fn a_label_that_somebody_forged_on_an_older_claim_changes_nothing() {
    let mut restoring = restoring();
    let mut old = claim("data", "old", BEFORE);
    let labels = [("velero.io/restore-name".to_owned(), "shop-back-1".to_owned())];
    Arc::make_mut(&mut old).metadata.labels = Some(labels.into());
    restoring.claims = Some(vec![old]);
    assert_eq!(restoring.states(), data(ClaimState::Kept));
}

#[test]
fn what_the_request_left_out_is_not_kept() {
    let mut restoring = restoring();
    restoring.claims = Some(vec![claim("data", "old", BEFORE)]);
    let filters = [
        json!({"excludedResources": ["pvc"]}),
        json!({"excludedResources": ["persistentvolumeclaims"]}),
        json!({"includedResources": ["configmaps"]}),
        json!({"labelSelector": {"matchLabels": {"app": "web"}}}),
        json!({"orLabelSelectors": [{"matchLabels": {"app": "web"}}]}),
    ];
    for filter in filters {
        restoring.spec(filter.clone());
        assert_eq!(restoring.said(), "True/NoVolumes: there is no volume data to restore", "{filter}");
        // Nor is it missing.
        let mut gone = Restoring { claims: Some(Vec::new()), ..self::restoring() };
        assert_eq!(gone.spec(filter).states(), []);
    }
    for filter in [json!({"includedResources": ["*"]}), json!({"includedResources": ["pods", "pvc"]})] {
        restoring.spec(filter);
        assert_eq!(restoring.states(), data(ClaimState::Kept));
    }
}

#[test]
fn a_selected_claim_is_kept() {
    let mut restoring = restoring();
    let mut old = claim("data", "old", BEFORE);
    Arc::make_mut(&mut old).metadata.labels = Some([("app".to_owned(), "web".to_owned())].into());
    restoring.claims = Some(vec![old]);
    restoring.spec(json!({"labelSelector": {"matchLabels": {"app": "web"}}}));
    assert_eq!(restoring.states(), data(ClaimState::Kept));
}

#[test]
fn a_claim_that_came_back_without_its_pod_is_empty() {
    let mut restoring = restoring();
    restoring.claims = Some(vec![claim("data", "new", AFTER)]);
    assert_eq!(
        restoring.said(),
        "False/VolumesFailed: volume data of claim \"data\" was NOT restored: it came back empty: its data comes back \
         through its pod, and Velero did not create that"
    );
    restoring.spec(json!({"excludedResources": ["pods"]}));
    assert!(restoring.said().ends_with("the request left pods out"));
}

#[test]
fn a_claim_of_which_the_backup_holds_nothing_came_back_empty() {
    let mut restoring = restoring();
    restoring.saved.clear();
    restoring.claims = Some(vec![claim("data", "new", AFTER)]);
    assert_eq!(
        restoring.said(),
        "False/ClaimsWithoutData: volume data of claim \"data\" was NOT restored: the backup holds no data of this claim"
    );
    // The same if saving it failed, or the backup reports so.
    restoring.saved =
        vec![Operation { claim: Some("data".to_owned()), ..operation(Kind::PodVolumeBackup, "Failed", "x") }];
    assert_eq!(restoring.states(), data(ClaimState::NoData));
    restoring.saved.clear();
    restoring.reported = vec![reported(ClaimState::LeftOut)];
    assert_eq!(restoring.states(), data(ClaimState::NoData));
}

fn reported(state: ClaimState) -> ClaimStatus {
    ClaimStatus {
        name: "data".to_owned(),
        state,
        bytes: None,
        total_bytes: None,
        new_bytes: None,
        message: None,
    }
}

#[test]
fn of_an_existing_claim_without_data_in_the_backup_only_the_one_left_out_is_fine() {
    let mut restoring = restoring();
    restoring.saved.clear();
    restoring.claims = Some(vec![claim("data", "old", BEFORE)]);
    restoring.reported = vec![reported(ClaimState::NotSaved)];
    assert_eq!(restoring.states(), data(ClaimState::NoData));
    restoring.reported = vec![reported(ClaimState::LeftOut)];
    assert_eq!(restoring.states(), []);
}

#[test]
fn snapshots_bring_data_back_without_an_operation() {
    let mut restoring = restoring();
    restoring.saved.clear();
    let mut csi = claim("data", "new", AFTER);
    let source = api::DataSource { kind: "VolumeSnapshot".to_owned(), name: "s".to_owned() };
    Arc::make_mut(&mut csi).spec.data_source = Some(source);
    restoring.claims = Some(vec![csi.clone()]);
    assert_eq!(restoring.said(), "Unknown/StillRunning: claim \"data\" waits: no pod uses it yet");
    assert!(restoring.outcome().waits_for_volume);
    Arc::make_mut(&mut csi).status.phase = Some("Bound".to_owned());
    restoring.claims = Some(vec![csi]);
    assert_eq!(restoring.states(), data(ClaimState::Restored));

    let mut native = claim("data", "new", AFTER);
    Arc::make_mut(&mut native).spec.volume_name = Some("pv-1".to_owned());
    restoring.claims = Some(vec![native]);
    assert_eq!(restoring.states(), data(ClaimState::NoData));
    let status = json!({"metadata": {}, "spec": {}, "status": {"volumeSnapshotsCompleted": 1}});
    restoring.source = serde_json::from_value(status).unwrap();
    assert_eq!(restoring.states(), data(ClaimState::Restored));
}

/// The backup has a snapshot of the claim, and the claim came back as if it had not.
#[test]
fn a_claim_that_does_not_name_its_snapshot_is_empty() {
    let mut restoring = restoring();
    restoring.saved.clear();
    restoring.reported = vec![reported(ClaimState::Saved)];
    let status = json!({"metadata": {}, "spec": {}, "status": {"csiVolumeSnapshotsCompleted": 1}});
    restoring.source = serde_json::from_value(status).unwrap();
    restoring.claims = Some(vec![claim("data", "new", AFTER)]);
    assert!(
        restoring.said().ends_with("it came back empty: it does not name its snapshot"),
        "{}",
        restoring.said()
    );
}

#[test]
fn a_data_download_fills_a_new_volume() {
    let mut restoring = restoring();
    restoring.claims = Some(vec![claim("data", "new", AFTER)]);
    let moved = operation(Kind::DataDownload, "Completed", "new");
    restoring.operations = vec![Operation { claim: Some("data".to_owned()), pod: None, ..moved }];
    assert_eq!(restoring.states(), data(ClaimState::Restored));
}

#[test]
fn what_failed_or_was_cancelled_is_told_with_the_reason() {
    let mut restoring = restoring();
    restoring.claims = Some(vec![claim("data", "new", AFTER)]);
    let failed = operation(Kind::PodVolumeRestore, "Failed", "new");
    restoring.operations = vec![Operation { message: Some("no space".to_owned()), ..failed.clone() }];
    assert_eq!(
        restoring.said(),
        "False/VolumesFailed: volume data of claim \"data\" was NOT restored: no space"
    );
    // The claim is gone again: the backup knows which one it was.
    restoring.claims = Some(Vec::new());
    let mut cancelled = Operation { phase: "Canceled".to_owned(), message: Some("why".to_owned()), ..failed };
    let image = PodState::NotStarted("ImagePullBackOff".to_owned());
    for state in [PodState::Ready, image, PodState::NotScheduled("no node fits".to_owned())] {
        cancelled.pod.as_mut().unwrap().state = state;
        restoring.operations = vec![cancelled.clone()];
        assert_eq!(
            restoring.said(),
            "False/VolumesCancelled: volume data of claim \"data\" was NOT restored: why; pod \"db\" waits for this data \
             for ever, delete it. To try again: kubectl nacre restore create --from-backup good --replace"
        );
    }
    cancelled.pod.as_mut().unwrap().state = PodState::Gone;
    restoring.operations = vec![cancelled];
    assert!(!restoring.said().contains("waits for this data"), "{}", restoring.said());
}

#[test]
fn a_claim_that_is_not_there_did_not_come_back() {
    let restoring = restoring();
    assert!(restoring.said().ends_with("NOT restored: the claim did not come back"), "{}", restoring.said());
    // Whoever may not list claims can say only that nothing was written.
    assert_eq!(Restoring { claims: None, ..restoring }.states(), data(ClaimState::Kept));
}

#[test]
fn a_restore_that_failed_as_a_whole_says_so_for_each_claim() {
    let mut restoring = restoring();
    restoring.claims = Some(vec![claim("data", "old", BEFORE)]);
    for phase in ["Failed", "FailedValidation"] {
        restoring.velero.status.as_mut().unwrap().phase = Some(phase.to_owned());
        let said = restoring.said();
        assert!(said.ends_with("NOT restored: Velero failed before it came to this claim"), "{said}");
    }
    restoring.spec(json!({"excludedResources": ["pvc"]}));
    assert_eq!(restoring.states(), []);
}

#[test]
fn what_was_forged_in_a_bucket_does_not_fill_the_status() {
    let mut restoring = restoring();
    restoring.saved[0].claim = Some("x".repeat(254));
    assert_eq!(restoring.states(), []);
    let mut long = operation(Kind::PodVolumeRestore, "Failed", "new");
    (long.claim, long.message) = (Some("data".to_owned()), Some("x".repeat(9999)));
    restoring.operations = vec![long];
    assert_eq!(restoring.outcome().claims[0].message.as_ref().map(String::len), Some(300));
}

#[test]
fn snapshots_that_the_request_left_out_are_not_missing() {
    let mut restoring = restoring();
    restoring.saved.clear();
    restoring.reported = vec![reported(ClaimState::Saved)];
    restoring.claims = Some(vec![claim("data", "old", BEFORE)]);
    assert_eq!(restoring.states(), data(ClaimState::Kept));
    restoring.spec(json!({"restorePVs": false}));
    assert_eq!(restoring.states(), []);
}

#[test]
fn while_velero_works_nothing_is_said_but_what_it_waits_for() {
    let mut restoring = restoring();
    restoring.velero.status.as_mut().unwrap().phase = Some("InProgress".to_owned());
    restoring.velero.status.as_mut().unwrap().completion_timestamp = None;
    restoring.claims = Some(vec![claim("data", "new", AFTER)]);
    assert_eq!(restoring.said(), "Unknown/StillRunning: Velero has not ended the restore yet");
    let mut waiting = operation(Kind::PodVolumeRestore, "", "new");
    waiting.pod.as_mut().unwrap().state = PodState::NotScheduled("0/1 nodes are available".to_owned());
    restoring.operations = vec![waiting];
    assert_eq!(
        restoring.said(),
        "Unknown/StillRunning: claim \"data\" waits: pod \"db\" has no node: 0/1 nodes are available"
    );
    assert_eq!(restoring.states(), data(ClaimState::Waiting));
    restoring.operations[0].pod.as_mut().unwrap().state = PodState::NotStarted("ImagePullBackOff".to_owned());
    assert_eq!(
        restoring.said(),
        "Unknown/StillRunning: claim \"data\" waits: the image of Velero's init container in pod \"db\" cannot be \
         pulled: ImagePullBackOff"
    );
    // Whatever else keeps a pod from starting comes by itself, or is cancelled.
    restoring.operations[0].pod.as_mut().unwrap().state = PodState::NotStarted("PodInitializing".to_owned());
    let said = restoring.said();
    assert!(said.starts_with("Unknown/StillRunning: Velero has not ended the restore yet: "), "{said}");
    // One that Velero left behind is waited for: it is cancelled soon.
    let over = Restoring { velero: self::restoring().velero, ..restoring };
    assert!(over.said().starts_with("Unknown/StillRunning"));
}

#[test]
fn only_the_first_few_of_many_claims_are_named() {
    let mut restoring = restoring();
    restoring.saved.clear();
    let names = ["a", "b", "c", "d", "e"];
    restoring.claims = Some(names.iter().map(|name| claim(name, name, AFTER)).collect());
    assert_eq!(
        restoring.said(),
        "False/ClaimsWithoutData: volume data of claims \"a\", \"b\", \"c\" and 2 more was NOT restored: \
         the backup holds no data of these claims"
    );
}
