//! What is said about a download before it is stored: what the controller would say about it afterwards.

use super::target::{refused_for_good, resolve};
use super::{Observed, UNTIL_THE_POLICY_IS_READ};
use crate::admission::Verdict;

/// Refuses what no other object could heal, and warns of the rest.
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
    if seen.velero.is_some() || seen.expires().is_some() {
        return Verdict::fine();
    }
    Verdict::warning_if(resolve(seen, policy).err().map(|(_, message)| message))
}
