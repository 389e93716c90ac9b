//! What became of the data of each claim in a restore.
//!
//! The backup's volume operations say which claims have data, by objects in Velero's namespace that only Velero writes.
//! The restore's volume operations say which claims were written, by uid. The claims in the namespace say which were
//! there before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::condition::{self, Status};
use api::velero::{Backup, Restore};
use api::{Claim, ClaimState, ClaimStatus, Kind, labels};
use jiff::Timestamp;

use super::from_snapshot;
use super::operation::{Operation, PodState};
use super::scope::Scope;
use super::summary;
use crate::ownership::label;
use crate::queue::{Queued, Stage};

/// The longest name that Kubernetes allows: what comes out of a tenant's bucket may be forged.
const LONGEST_NAME: usize = 253;
/// How many characters of Velero's message are kept of each claim.
const LONGEST_MESSAGE: usize = 300;

/// What is known about a restore.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// The Velero Restore.
    pub velero: &'a Restore,
    /// The Velero Backup it restores from, if it still exists.
    pub source: Option<&'a Backup>,
    /// The name of the NonAdminBackup, for the message.
    pub backup_name: &'a str,
    /// The volume operations of that backup.
    pub saved: &'a [Operation],
    /// What the NonAdminBackup reports about its claims.
    pub reported: &'a [ClaimStatus],
    /// Why the NonAdminBackup is called protected or not, where it lists no claims: OADP's CRDs drop the list.
    pub unlisted: Option<&'a str>,
    /// The volume operations of the restore.
    pub operations: &'a [Operation],
    /// The claims in the namespace; none if nacre may not list claims.
    pub claims: Option<&'a [Arc<Claim>]>,
    /// The current time, given by the caller.
    pub now: Timestamp,
}

/// The outcome of a restore, as far as volume data is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Status of the condition `DataRestored`.
    pub status: Status,
    /// Its reason.
    pub reason: &'static str,
    /// Its message.
    pub message: String,
    /// What became of each claim.
    pub claims: Vec<ClaimStatus>,
    /// Something is missing that a late watch event may still bring.
    pub may_be_late: bool,
    /// Velero is done, and a claim still waits for its volume.
    pub waits_for_volume: bool,
}

/// What became of the data of each claim.
pub fn outcome(facts: &Facts<'_>) -> Outcome {
    let by_claim = by_claim(facts);
    let waiting = facts.operations.iter().any(|operation| !operation.is_over());
    if facts.velero.stage() != Stage::Finished || waiting {
        let claims = by_claim.iter().filter_map(|(name, operations)| of_operations(facts, name, operations));
        return summary::running(claims.collect());
    }
    let scope = Scope::of(&facts.velero.spec);
    let mut may_be_late = false;
    let mut claims = Vec::new();
    for name in names(facts, &by_claim) {
        let operations = by_claim.get(&name).map(Vec::as_slice).unwrap_or_default();
        let found = of_operations(facts, &name, operations).or_else(|| {
            let found = without_operation(facts, &scope, &name);
            may_be_late |= found
                .as_ref()
                .is_some_and(|found| !matches!(found.state, ClaimState::Restored | ClaimState::Waiting));
            found
        });
        claims.extend(found);
    }
    if claims.iter().any(|claim| claim.state == ClaimState::Waiting) {
        return Outcome { waits_for_volume: true, ..summary::running(claims) };
    }
    Outcome { may_be_late, ..summary::over(claims, facts.backup_name) }
}

/// The restore's operations by the name of the claim. The name is that of the claim with the uid that was written; if that
/// is gone, the one that the backup has for this volume of this pod.
fn by_claim<'a>(facts: &Facts<'a>) -> BTreeMap<String, Vec<&'a Operation>> {
    let mut by_claim: BTreeMap<String, Vec<&Operation>> = BTreeMap::new();
    for operation in facts.operations {
        let living = || {
            let uid = operation.claim_uid.as_deref()?;
            let claims = facts.claims?.iter();
            let mut same = claims.filter(|claim| claim.metadata.uid.as_deref() == Some(uid));
            same.next()?.metadata.name.clone()
        };
        let saved = || {
            let pod = |operation: &Operation| operation.pod.as_ref().map(|pod| pod.name.clone());
            let mut same = facts.saved.iter().filter(|saved| {
                pod(saved).is_some() && pod(saved) == pod(operation) && saved.volume == operation.volume
            });
            same.next()?.claim.clone()
        };
        // One without a claim is an emptyDir, which lives no longer than its pod.
        let name = operation.claim.clone().or_else(living).or_else(saved);
        if let Some(name) = name.filter(|name| name.len() <= LONGEST_NAME) {
            by_claim.entry(name).or_default().push(operation);
        }
    }
    by_claim
}

/// All claims that the restore is about.
fn names(facts: &Facts<'_>, by_claim: &BTreeMap<String, Vec<&Operation>>) -> BTreeSet<String> {
    let mut names: BTreeSet<String> = by_claim.keys().cloned().collect();
    names.extend(facts.saved.iter().filter_map(|saved| saved.claim.clone()));
    names.extend(facts.reported.iter().map(|claim| claim.name.clone()));
    let claims = facts.claims.unwrap_or_default().iter();
    let concerned = claims.filter(|claim| is_made_by(facts, claim) || unlisted(facts, claim).is_some());
    names.extend(concerned.filter_map(|claim| claim.metadata.name.clone()));
    names.retain(|name| name.len() <= LONGEST_NAME);
    names
}

/// Of a claim that was written, or is to be written.
fn of_operations(facts: &Facts<'_>, name: &str, operations: &[&Operation]) -> Option<ClaimStatus> {
    let worst = *operations.iter().max_by_key(|operation| severity(operation))?;
    let bytes: i64 = operations.iter().map(|operation| operation.done.max(0)).sum();
    let total: i64 = operations.iter().map(|operation| operation.total.max(0)).sum();
    let (state, message) = match worst.phase.as_str() {
        "Failed" => (ClaimState::Failed, ended_badly(worst)),
        "Canceled" => (ClaimState::Cancelled, ended_badly(worst)),
        "Completed" if operations.iter().any(|operation| overwrote(facts, operation)) => {
            let message = "the claim exists already: newer files in it are still there";
            (ClaimState::Mixed, Some(message.to_owned()))
        }
        "Completed" => (ClaimState::Restored, None),
        _ => (ClaimState::Waiting, waits_for(worst)),
    };
    let known = |bytes: i64| (bytes > 0).then_some(bytes);
    Some(ClaimStatus {
        name: name.to_owned(),
        state,
        bytes: known(bytes),
        total_bytes: known(total.max(bytes)),
        new_bytes: None,
        message,
    })
}

/// Velero's message, and the pod that waits for this data for ever.
fn ended_badly(operation: &Operation) -> Option<String> {
    let will_wait = |state: &PodState| {
        matches!(state, PodState::Ready | PodState::NotStarted(_) | PodState::NotScheduled(_))
    };
    let waits = operation.pod.as_ref().filter(|pod| will_wait(&pod.state));
    let waits = waits.map(|pod| format!("pod {:?} waits for this data for ever, delete it", pod.name));
    let words = operation.message.as_ref().map(|words| words.chars().take(LONGEST_MESSAGE).collect());
    let parts: Vec<String> = words.into_iter().chain(waits).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn severity(operation: &Operation) -> u8 {
    match operation.phase.as_str() {
        "Completed" => 0,
        "Canceled" => 2,
        "Failed" => 3,
        _ => 1,
    }
}

/// What an operation waits for that does not come by itself.
fn waits_for(operation: &Operation) -> Option<String> {
    if operation.without_agent_since.is_some() {
        return Some("Velero's node agent does not run, ask your administrators".to_owned());
    }
    let pod = operation.pod.as_ref()?;
    let name = &pod.name;
    let because = |why: &str| if why.is_empty() { String::new() } else { format!(": {why}") };
    match &pod.state {
        PodState::Gone => Some(format!("pod {name:?} is gone")),
        PodState::DoesNotWait(why) if operation.is_new() => {
            Some(format!("pod {name:?} does not wait for it: {why}"))
        }
        PodState::NotScheduled(why) => Some(format!("pod {name:?} has no node{}", because(why))),
        PodState::NotStarted(why) if why.contains("Image") => Some(format!(
            "the image of Velero's init container in pod {name:?} cannot be pulled{}",
            because(why)
        )),
        PodState::NotStarted(_) | PodState::DoesNotWait(_) | PodState::Unknown | PodState::Ready => None,
    }
}

/// Whether a volume was written into a claim that is older than the restore. A DataDownload fills a new volume.
fn overwrote(facts: &Facts<'_>, operation: &Operation) -> bool {
    let claims = facts.claims.unwrap_or_default().iter();
    let mut written = claims.filter(|claim| {
        operation.claim_uid.is_some() && claim.metadata.uid.as_deref() == operation.claim_uid.as_deref()
    });
    operation.target.kind == Kind::PodVolumeRestore && written.any(|claim| is_older(facts, claim))
}

fn started(facts: &Facts<'_>) -> Option<Timestamp> {
    let status = facts.velero.status.as_ref()?;
    status.start_timestamp.as_ref().map(|time| time.0)
}

fn ended(facts: &Facts<'_>) -> Option<Timestamp> {
    let status = facts.velero.status.as_ref()?;
    status.completion_timestamp.as_ref().map(|time| time.0)
}

fn is_older(facts: &Facts<'_>, claim: &Claim) -> bool {
    let created = claim.metadata.creation_timestamp.as_ref().map(|time| time.0);
    created.zip(started(facts)).is_some_and(|(created, started)| created < started)
}

/// Whether this restore created the claim.
fn is_made_by(facts: &Facts<'_>, claim: &Claim) -> bool {
    let restore = facts.velero.metadata.name.as_deref();
    let named = label(&claim.metadata, labels::VELERO_RESTORE_NAME);
    restore.is_some() && named == restore && started(facts).is_some() && !is_older(facts, claim)
}

/// How the backup holds the data of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    /// File by file, or moved into the storage location.
    InStorage,
    /// As a snapshot that stays with its storage system.
    AsSnapshot,
    /// Not at all, by mistake or on purpose.
    NotSaved,
    LeftOut,
    /// Nothing says so.
    Unknown,
}

fn held(facts: &Facts<'_>, name: &str) -> Held {
    let mut saved = facts.saved.iter().filter(|saved| saved.claim.as_deref() == Some(name));
    if saved.clone().any(Operation::is_completed) {
        return Held::InStorage;
    }
    let failed = saved.next().is_some();
    match facts.reported.iter().find(|claim| claim.name == name).map(|claim| claim.state) {
        Some(ClaimState::Saved) => Held::AsSnapshot,
        Some(ClaimState::NotSaved | ClaimState::Failed | ClaimState::Cancelled) => Held::NotSaved,
        Some(ClaimState::LeftOut) => Held::LeftOut,
        _ if failed => Held::NotSaved,
        _ => Held::Unknown,
    }
}

/// Of a claim that no operation of this restore was about; none if the restore was not asked for it, or nothing was to
/// be restored.
fn without_operation(facts: &Facts<'_>, scope: &Scope, name: &str) -> Option<ClaimStatus> {
    let is = |state, message: &str| {
        let message = Some(message.to_owned()).filter(|message| !message.is_empty());
        Some(ClaimStatus {
            name: name.to_owned(),
            state,
            bytes: None,
            total_bytes: None,
            new_bytes: None,
            message,
        })
    };
    let held = held(facts, name);
    let snapshots_left_out = facts.velero.spec.restore_pvs == Some(false) && held == Held::AsSnapshot;
    let mut claims = facts.claims.unwrap_or_default().iter();
    let claim = claims.rfind(|claim| claim.metadata.name.as_deref() == Some(name));
    if matches!(facts.velero.phase(), "Failed" | "FailedValidation") {
        let asked = claim.map_or_else(
            || scope.claims && !scope.by_labels(),
            |claim| scope.has_claim(claim.metadata.labels.as_ref()),
        );
        let lost = asked && !snapshots_left_out && matches!(held, Held::InStorage | Held::AsSnapshot);
        return lost.then(|| is(ClaimState::Failed, "Velero failed before it came to this claim")).flatten();
    }
    if snapshots_left_out {
        return None;
    }
    let Some(claim) = claim else {
        let expected =
            scope.claims && !scope.by_labels() && matches!(held, Held::InStorage | Held::AsSnapshot);
        return match facts.claims {
            Some(_) if expected => is(ClaimState::Failed, "the claim did not come back"),
            None if expected => is(ClaimState::Kept, "Velero wrote no data into it"),
            _ => None,
        };
    };
    if is_made_by(facts, claim) {
        return match held {
            _ if from_snapshot::is_csi(claim) && held != Held::NotSaved => {
                let (state, message) = from_snapshot::state(claim, ended(facts), facts.now);
                is(state, &message)
            }
            Held::AsSnapshot if may_be_native(facts) => is(ClaimState::Restored, ""),
            Held::AsSnapshot => is(ClaimState::Failed, "it came back empty: it does not name its snapshot"),
            Held::LeftOut | Held::Unknown if is_native(facts, claim) => is(ClaimState::Restored, ""),
            Held::InStorage if !scope.pods => is(
                ClaimState::Failed,
                "it came back empty: its data comes back through its pod, and the request left pods out",
            ),
            Held::InStorage => is(
                ClaimState::Failed,
                "it came back empty: its data comes back through its pod, and Velero did not create that",
            ),
            Held::LeftOut => is(ClaimState::NoData, "it was left out of the backup on purpose"),
            Held::NotSaved | Held::Unknown => is(ClaimState::NoData, "it came back empty"),
        };
    }
    if !scope.has_claim(claim.metadata.labels.as_ref()) {
        return None;
    }
    match held {
        Held::InStorage | Held::AsSnapshot => is(ClaimState::Kept, "the claim exists"),
        Held::NotSaved => is(ClaimState::NoData, "the claim exists and was left as it is"),
        Held::LeftOut => None,
        Held::Unknown => match unlisted(facts, claim)? {
            condition::ALL_CLAIMS_SAVED => is(ClaimState::Kept, "the claim exists"),
            _ => is(ClaimState::NoData, "the claim exists and was left as it is"),
        },
    }
}

/// What the backup's condition means for a claim with a volume that was there when the backup started. It may have been
/// left out on purpose: that the data is as in the backup would be the worse mistake.
fn unlisted<'a>(facts: &Facts<'a>, claim: &Claim) -> Option<&'a str> {
    let started = facts.source?.status.as_ref()?.start_timestamp.as_ref()?.0;
    let created = claim.metadata.creation_timestamp.as_ref()?.0;
    facts.unlisted.filter(|_| created <= started && claim.spec.volume_name.is_some())
}

/// How many snapshots of Velero's own plugins the backup has; none if the backup is gone.
fn native_snapshots(facts: &Facts<'_>) -> Option<i64> {
    let status = facts.source?.status.as_ref()?;
    Some(status.volume_snapshots_completed.unwrap_or_default())
}

fn may_be_native(facts: &Facts<'_>) -> bool {
    native_snapshots(facts).is_none_or(|taken| taken > 0)
}

/// Velero gives a claim the volume that its plugin made; without one, the claim comes back unbound.
fn is_native(facts: &Facts<'_>, claim: &Claim) -> bool {
    native_snapshots(facts).is_some_and(|taken| taken > 0) && claim.spec.volume_name.is_some()
}

/// The condition while Velero has not ended the restore.
pub(super) fn still_running(message: String, claims: Vec<ClaimStatus>) -> Outcome {
    let reason = condition::STILL_RUNNING;
    Outcome { status: Status::Unknown, reason, message, claims, may_be_late: false, waits_for_volume: false }
}
