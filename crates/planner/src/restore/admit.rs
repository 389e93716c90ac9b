//! The webhook's answer for a restore: the refusal that the controller would report later.

use super::{Observed, check};
use crate::admission::ReviewResult;
use crate::request::Request;

/// Rejects what only a change of the request could fix, and warns about the rest.
pub(crate) fn admit(seen: &Observed) -> ReviewResult {
    if seen.is_deleting() {
        return ReviewResult::fine();
    }
    let Some(policy) = &seen.policy else {
        return ReviewResult::warning(Observed::policy_unreadable());
    };
    if let Some(refusal) = check::refused_for_good(seen, policy) {
        return ReviewResult::refused(&refusal);
    }
    // It runs once: what its backup has become since says nothing about it.
    if seen.velero.is_some() || seen.handed_over_before() || seen.lost_before() {
        return ReviewResult::fine();
    }
    match check::refused_for_now(seen, policy) {
        Some(waits) => ReviewResult::warning(waits),
        None => ReviewResult::permitted(&seen.access, check::permitted(seen, policy)),
    }
}
