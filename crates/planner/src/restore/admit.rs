//! What is said about a restore before it is stored: what the controller would say about it afterwards.

use super::{Observed, UNTIL_THE_POLICY_IS_READ, check};
use crate::admission::Verdict;

/// Refuses what no other object could heal, and warns of the rest.
pub(crate) fn admit(seen: &Observed) -> Verdict {
    if seen.leaving() {
        return Verdict::fine();
    }
    let Some(policy) = &seen.policy else {
        return Verdict::warning(UNTIL_THE_POLICY_IS_READ);
    };
    if let Some(refusal) = check::refused_for_good(seen, policy) {
        return Verdict::refused(&refusal);
    }
    // It runs once: what its backup has become since says nothing about it.
    if seen.velero.is_some() || seen.handed_over_before() || seen.lost_before() {
        return Verdict::fine();
    }
    Verdict::warning_if(check::refused_for_now(seen, policy))
}
