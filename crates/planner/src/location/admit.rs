//! The webhook's answer for a location: the refusal that the controller would report later.

use super::Observed;
use super::decide::{no_secret, permitted, refused_for_good, refused_for_now};
use super::status::EDITED;
use crate::admission::ReviewResult;
use crate::request::Request;
use crate::requester::Verdict;
use crate::view::Credential;

/// Rejects what only a change of the request could fix, and warns about the rest. Secrets are not read: the user may
/// not be permitted to read them.
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
    if seen.edited() {
        return ReviewResult::warning(EDITED);
    }
    // Whether there is such a Secret is for those to know who may read it.
    let permitted = permitted(seen, policy);
    if !matches!(permitted, Verdict::Permitted(_)) {
        return ReviewResult::permitted(&seen.access, permitted);
    }
    let missing = matches!(seen.credential, Credential::Missing(_)).then(|| no_secret(seen));
    ReviewResult::warning_if(refused_for_now(seen, policy).or(missing))
}
