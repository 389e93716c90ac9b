//! The condition `DataRestored` in words.

use api::condition::{self, Status};
use api::{ClaimState, ClaimStatus};

use super::outcome::{Outcome, still_running};
use super::progress::VolumeBytes;

/// How many claims a sentence names.
const NAMED: usize = 3;
const STILL_RUNNING: &str = "Velero has not ended the restore yet";

/// While Velero has not ended the restore: what does not go on by itself is named, else how far it is.
pub(super) fn running(claims: Vec<ClaimStatus>) -> Outcome {
    let reason =
        |claim: &ClaimStatus| Some(format!("claim {:?} waits: {}", claim.name, claim.message.as_ref()?));
    let waiting = claims.iter().filter(|claim| claim.state == ClaimState::Waiting);
    let reasons: Vec<String> = waiting.filter_map(reason).take(NAMED).collect();
    match VolumeBytes::of(&claims) {
        _ if !reasons.is_empty() => still_running(reasons.join("; "), claims),
        Some(bytes) => still_running(format!("{STILL_RUNNING}: {} is written", bytes.sentence()), claims),
        None => still_running(STILL_RUNNING.to_owned(), Vec::new()),
    }
}

/// The outcome of a restore that is over.
pub(super) fn over(claims: Vec<ClaimStatus>, backup: &str) -> Outcome {
    let replace = format!("kubectl nacre restore create --from-backup {backup} --replace");
    let groups = [
        (ClaimState::Failed, condition::VOLUMES_FAILED),
        (ClaimState::Cancelled, condition::VOLUMES_CANCELLED),
        (ClaimState::Mixed, condition::CLAIMS_MIXED),
        (ClaimState::Kept, condition::CLAIMS_KEPT),
        (ClaimState::NoData, condition::CLAIMS_WITHOUT_DATA),
    ];
    let mut reason = None;
    let mut sentences = Vec::new();
    for (state, group) in groups {
        let of_state: Vec<&ClaimStatus> = claims.iter().filter(|claim| claim.state == state).collect();
        if of_state.is_empty() {
            continue;
        }
        reason.get_or_insert(group);
        sentences.push(sentence(state, &of_state, &replace));
    }
    let restored = claims.iter().filter(|claim| claim.state == ClaimState::Restored).count();
    let (status, reason, message) = match reason {
        Some(reason) => (Status::False, reason, sentences.join(". ")),
        None if restored == 0 => {
            (Status::True, condition::NO_VOLUMES, "there is no volume data to restore".to_owned())
        }
        None => {
            let message = match restored {
                1 => "the data of 1 claim was restored".to_owned(),
                many => format!("the data of {many} claims was restored"),
            };
            (Status::True, condition::ALL_VOLUMES_RESTORED, message)
        }
    };
    Outcome { status, reason, message, claims, may_be_late: false, waits_for_volume: false }
}

fn sentence(state: ClaimState, claims: &[&ClaimStatus], replace: &str) -> String {
    let (names, one) = (named(claims), claims.len() == 1);
    let (claims_exist, them) = if one { ("the claim exists", "it") } else { ("the claims exist", "them") };
    let why = claims.iter().find_map(|claim| claim.message.as_deref());
    let because = why.map_or_else(String::new, |why| format!(": {why}"));
    match state {
        ClaimState::Kept => {
            format!("volume data of {names} was NOT restored: {claims_exist}. To replace {them}: {replace}")
        }
        ClaimState::Mixed => format!(
            "volume data of {names} was written over what was there: {claims_exist} already, and newer files in {them} \
             were NOT removed. To replace {them}: {replace}"
        ),
        ClaimState::NoData => {
            let of = if one { "this claim" } else { "these claims" };
            format!("volume data of {names} was NOT restored: the backup holds no data of {of}")
        }
        ClaimState::Cancelled => {
            format!("volume data of {names} was NOT restored{because}. To try again: {replace}")
        }
        _ => format!("volume data of {names} was NOT restored{because}"),
    }
}

/// The first few names, and how many more there are.
fn named(claims: &[&ClaimStatus]) -> String {
    let names: Vec<String> = claims.iter().take(NAMED).map(|claim| format!("{:?}", claim.name)).collect();
    let noun = if claims.len() == 1 { "claim" } else { "claims" };
    match claims.len().checked_sub(NAMED).filter(|more| *more > 0) {
        Some(more) => format!("{noun} {} and {more} more", names.join(", ")),
        None => format!("{noun} {}", names.join(", ")),
    }
}
