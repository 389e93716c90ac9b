//! The webhook's answer for a download: the refusal that the controller would report later.

use super::target::{refused_for_good, resolve};
use super::{Observed, POLICY_UNREADABLE};
use crate::admission::ReviewResult;

/// Rejects what only a change of the request could fix, and warns about the rest.
pub(crate) fn admit(seen: &Observed) -> ReviewResult {
    if seen.meta().deletion_timestamp.is_some() {
        return ReviewResult::fine();
    }
    let Some(policy) = &seen.policy else {
        return ReviewResult::warning(POLICY_UNREADABLE);
    };
    if let Some(refusal) = refused_for_good(seen, policy) {
        return ReviewResult::refused(&refusal);
    }
    if seen.velero.is_some() || seen.expires().is_some() {
        return ReviewResult::fine();
    }
    ReviewResult::warning_if(resolve(seen, policy).err().map(|(_, message)| message))
}
