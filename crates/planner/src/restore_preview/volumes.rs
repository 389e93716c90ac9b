//! What a restore would do to the data in claims.

use std::collections::{BTreeMap, BTreeSet};

use api::{ClaimState, NonAdminBackup};
use serde::Serialize;

use super::left_out::{claims_of, leaves_out_claims};
use super::{CLAIMS, Effect, ObjectPreview, Observed, PODS};

/// What is known about the data of a claim in a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SavedClaim {
    /// It is in the backup, with its size where that is known.
    Saved(Option<u64>),
    /// It is not, and why.
    NotSaved(String),
}

/// What a backup's own status says about the data of its claims.
pub fn saved_by_status(backup: &NonAdminBackup) -> BTreeMap<String, SavedClaim> {
    let claims = backup.status.iter().flat_map(|status| &status.claims);
    let read = claims.filter_map(|claim| {
        let saved = match claim.state {
            ClaimState::Saved => {
                let bytes = claim.bytes.or(claim.total_bytes);
                SavedClaim::Saved(bytes.and_then(|bytes| u64::try_from(bytes).ok()))
            }
            ClaimState::NotSaved | ClaimState::LeftOut | ClaimState::Failed | ClaimState::Cancelled => {
                let why = claim.message.clone();
                SavedClaim::NotSaved(why.unwrap_or_else(|| "its data is not in the backup".to_owned()))
            }
            _ => return None,
        };
        Some((claim.name.clone(), saved))
    });
    read.collect()
}

/// What happens to the data of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum VolumeEffect {
    /// It comes back.
    Restored,
    /// The claim comes back empty: its data is not in the backup.
    Empty,
    /// The claim exists and keeps its data.
    Kept,
    /// The claim exists, and Velero creates a pod with it: files of the backup are written over it, newer ones stay.
    WrittenOver,
    /// The claim is left out.
    LeftOut,
    /// It is not known whether its data is in the backup.
    Unknown,
}

impl VolumeEffect {
    /// Whether the data would not be as it was in the backup, or that is not known.
    pub(super) const fn stays_away(self) -> bool {
        matches!(self, Self::Empty | Self::Kept | Self::WrittenOver | Self::Unknown)
    }
}

/// What happens to the data of one claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumePreview {
    /// The claim.
    pub claim: String,
    /// What happens.
    pub effect: VolumeEffect,
    /// The size of the data in the backup, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The size that the claim requests, as in its manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested: Option<String>,
    /// Why its data is not in the backup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

pub(super) fn preview(seen: &Observed<'_>, objects: &[ObjectPreview]) -> Vec<VolumePreview> {
    let written = written_by_new_pods(seen, objects);
    let claims = objects.iter().filter(|object| object.resource == CLAIMS);
    let mut found: Vec<VolumePreview> = claims
        .map(|claim| {
            let saved = seen.saved.get(&claim.name);
            let content = seen.content(CLAIMS, &claim.name);
            let requested = content
                .and_then(|content| content["spec"]["resources"]["requests"]["storage"].as_str())
                .map(str::to_owned);
            let message = match saved {
                Some(SavedClaim::NotSaved(why)) => Some(why.clone()),
                _ => None,
            };
            let bytes = match saved {
                Some(SavedClaim::Saved(bytes)) => *bytes,
                _ => None,
            };
            let effect = effect(&claim.effect, saved, written.contains(&claim.name));
            VolumePreview { claim: claim.name.clone(), effect, bytes, requested, message }
        })
        .collect();
    // Without the list of objects, the claims whose data is known to be saved are all there is to say.
    if seen.items.is_empty() && leaves_out_claims(seen).is_none() {
        for (claim, saved) in seen.saved {
            if let SavedClaim::Saved(bytes) = saved {
                let exists = match seen.existing.get(CLAIMS) {
                    Some(super::Existing::Listed(found)) => Some(found.contains_key(claim)),
                    _ => None,
                };
                let removed = seen.removed_first.contains(&(CLAIMS.to_owned(), claim.clone()));
                let effect = match (removed, exists) {
                    (true, _) | (_, Some(false)) => VolumeEffect::Restored,
                    (false, Some(true)) => VolumeEffect::Kept,
                    (false, None) => VolumeEffect::Unknown,
                };
                let claim = claim.clone();
                found.push(VolumePreview { claim, effect, bytes: *bytes, requested: None, message: None });
            }
        }
    }
    found
}

/// Claims of pods that Velero would create.
fn written_by_new_pods(seen: &Observed<'_>, objects: &[ObjectPreview]) -> BTreeSet<String> {
    let created = objects.iter().filter(|object| object.resource == PODS && object.effect.creates());
    created.filter_map(|pod| seen.content(PODS, &pod.name)).flat_map(|pod| claims_of(&pod["spec"])).collect()
}

fn effect(claim: &Effect, saved: Option<&SavedClaim>, pod_is_created: bool) -> VolumeEffect {
    let is_saved = matches!(saved, Some(SavedClaim::Saved(_)));
    match claim {
        Effect::LeftOut { .. } => VolumeEffect::LeftOut,
        Effect::Unknown { .. } | Effect::WithItsClaim => VolumeEffect::Unknown,
        Effect::Created | Effect::CreatedUnlessCompleted | Effect::Replaced => match saved {
            Some(SavedClaim::Saved(_)) => VolumeEffect::Restored,
            Some(SavedClaim::NotSaved(_)) => VolumeEffect::Empty,
            None => VolumeEffect::Unknown,
        },
        Effect::Same | Effect::Kept { .. } | Effect::Updated { .. } if is_saved && pod_is_created => {
            VolumeEffect::WrittenOver
        }
        Effect::Same | Effect::Kept { .. } | Effect::Updated { .. } => VolumeEffect::Kept,
    }
}
