//! The webhook's answer for a backup: the refusal that the controller would report later.

use super::{Observed, check, generate, limits, not_restorable, status, volumes};
use crate::admission::ReviewResult;
use crate::request::Request;
use crate::requester::LeftOut;

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
    let full = limits::over_limit(seen, policy);
    if let Some(refusal) = full.as_ref().filter(|full| !full.healed_by().is_waiting()) {
        return ReviewResult::refused(refusal);
    }
    let waits = check::refused_for_now(seen).or(full);
    let mut result = match &waits {
        Some(waits) => ReviewResult::warning(waits),
        None => ReviewResult::permitted(&seen.access, check::permitted(seen, policy)),
    };
    let mut given = generate::backup(seen, policy, &LeftOut::default()).spec;
    // A location that is not there yet is the tenant's own too.
    given.storage_location.clone_from(&seen.spec().backup_spec.storage_location);
    result.warnings.extend(not_restorable(&given, policy));
    result.warnings.extend(volumes::nothing_protects(seen, policy));
    result
}
