//! The webhook's answer for a download: the refusal that the controller would report later.

use super::Observed;
use super::target::{permitted, refused_for_good, resolve};
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
    if let Some(refusal) = refused_for_good(seen, policy) {
        return ReviewResult::refused(&refusal);
    }
    if seen.velero.is_some() || seen.expires().is_some() {
        return ReviewResult::fine();
    }
    match resolve(seen, policy) {
        Ok(_) => ReviewResult::permitted(&seen.access, permitted(seen, policy)),
        Err((_, message)) => ReviewResult::warning(message),
    }
}
