//! The webhook's answer for a schedule: the refusal that the controller would report later.

use super::{Observed, check, reach};
use crate::admission::ReviewResult;
use crate::request::Request;

/// Rejects what only a change of the schedule could fix, and warns about the rest.
pub(crate) fn admit(seen: &Observed) -> ReviewResult {
    if seen.is_deleting() {
        return ReviewResult::fine();
    }
    let Some(policy) = &seen.policy else {
        return ReviewResult::warning(Observed::policy_unreadable());
    };
    if let Some(refusal) = seen.refusal(policy).or_else(|| seen.beyond_bounds(policy)) {
        return ReviewResult::refused(&refusal);
    }
    let over_limit = check::over_limit(seen, policy).or_else(|| reach::warning(&seen.schedule, policy));
    ReviewResult::warning_if(over_limit)
}
