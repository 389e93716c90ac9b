//! The webhook's answer for a backup: the refusal that the controller would report later.

use super::{Observed, check, generate, limits, not_restorable, status, volumes};
use crate::admission::ReviewResult;
use crate::request::Request;

/// Rejects what only a change of the request could fix, and warns about the rest.
pub(crate) fn admit(seen: &Observed) -> ReviewResult {
    // Neither of these is ever checked: they make nothing at Velero.
    if seen.is_deleting() || seen.deletes_data() || seen.synced() {
        return ReviewResult::fine();
    }
    let Some(policy) = &seen.policy else {
        return ReviewResult::warning(Observed::policy_unreadable());
    };
    if let Some(refusal) = check::refused_for_good(seen, policy) {
        return ReviewResult::refused(&refusal);
    }
    if let Some(velero) = &seen.velero {
        return ReviewResult::warning_if(generate::edited_since(seen, velero).then_some(status::EDITED));
    }
    if seen.handed_over_before() || seen.lost_before() {
        return ReviewResult::fine();
    }
    let waits = check::refused_for_now(seen).or_else(|| limits::over_limit(seen, policy));
    let unprotected = volumes::nothing_protects(seen, policy);
    // Whether it can be restored depends on the location, which a backup that waits may not have yet.
    let lost = if waits.is_none() && unprotected.is_none() {
        not_restorable(&generate::backup(seen, policy).spec, policy)
    } else {
        None
    };
    ReviewResult::warnings([waits.map(|waits| waits.to_string()), unprotected, lost.map(ToString::to_string)])
}
