//! What is said about a backup before it is stored: what the controller would say about it afterwards.

use super::{Observed, UNTIL_THE_POLICY_IS_READ, check, generate, status};
use crate::admission::Verdict;

/// Refuses what no other object could heal, and warns of the rest.
pub(crate) fn admit(seen: &Observed) -> Verdict {
    // Neither of these is ever checked: they make nothing at Velero.
    if seen.leaving() || seen.data_shall_go() || seen.synced() {
        return Verdict::fine();
    }
    let Some(policy) = &seen.policy else {
        return Verdict::warning(UNTIL_THE_POLICY_IS_READ);
    };
    if let Some(refusal) = check::refused_for_good(seen, policy) {
        return Verdict::refused(&refusal);
    }
    if let Some(velero) = &seen.velero {
        return Verdict::warning_if(generate::edited_since(seen, velero).then_some(status::EDITED));
    }
    if seen.handed_over_before() || seen.lost_before() {
        return Verdict::fine();
    }
    let no_room = || check::no_room(seen, policy).map(|no_room| no_room.refusal);
    Verdict::warning_if(check::refused_for_now(seen).or_else(no_room))
}
