//! What is said about a location before it is stored: what the controller would say about it afterwards.

use super::decide::{Observed, no_secret, refused_for_good, refused_for_now};
use super::status::{EDITED, UNTIL_THE_POLICY_IS_READ};
use crate::admission::Verdict;
use crate::view::Credential;

/// Refuses what no other object could heal, and warns of the rest. What is in a Secret is not looked at: whoever asks need
/// not be somebody who may read it.
pub(crate) fn admit(seen: &Observed) -> Verdict {
    if seen.meta().deletion_timestamp.is_some() {
        return Verdict::fine();
    }
    let Some(policy) = &seen.policy else {
        return Verdict::warning(UNTIL_THE_POLICY_IS_READ);
    };
    if let Some(refusal) = refused_for_good(seen, policy) {
        return Verdict::refused(&refusal);
    }
    if seen.edited() {
        return Verdict::warning(EDITED);
    }
    let missing = matches!(seen.credential, Credential::Missing(_)).then(|| no_secret(seen));
    Verdict::warning_if(refused_for_now(seen, policy).or(missing))
}
