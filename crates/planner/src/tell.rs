//! Shapes that every status shares.

use api::{NonAdminBackupStatus, NonAdminRestoreStatus, QueueInfo};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{Action, Target, merge};

/// The write that makes a status so, if it is not already.
pub(crate) fn status<S: Serialize>(target: Target, found: Option<&S>, wanted: &S) -> Option<Action> {
    let value = |status: &S| serde_json::to_value(status).unwrap_or(Value::Null);
    let found = found.map_or_else(|| json!({}), value);
    let change = merge::diff(&found, &value(wanted))?;
    Some(Action::PatchStatus(target, json!({ "status": change })))
}

/// A status with a place in a queue.
pub(crate) trait Placed: Clone + PartialEq {
    /// The place.
    fn queue_info(&mut self) -> &mut Option<QueueInfo>;
}

impl Placed for NonAdminBackupStatus {
    fn queue_info(&mut self) -> &mut Option<QueueInfo> {
        &mut self.queue_info
    }
}

impl Placed for NonAdminRestoreStatus {
    fn queue_info(&mut self) -> &mut Option<QueueInfo> {
        &mut self.queue_info
    }
}

/// Whether nothing is new but that others ahead of it have come or gone. Being next, running or done is always news.
pub(crate) fn only_waits_elsewhere<S: Placed>(found: &S, wanted: &S) -> bool {
    let (mut found, mut wanted) = (found.clone(), wanted.clone());
    let places = (found.queue_info().take(), wanted.queue_info().take());
    let waits = |info: Option<QueueInfo>| info.is_some_and(|info| info.estimated_queue_position > 1);
    waits(places.0) && waits(places.1) && found == wanted
}

/// Velero's own words on why something ended badly, ready to follow a sentence.
pub(crate) fn reasons(failure: Option<&str>, errors: Option<&[String]>) -> String {
    let errors = errors.into_iter().flatten().map(String::as_str);
    let reasons: Vec<_> = failure.into_iter().chain(errors).collect();
    if reasons.is_empty() { String::new() } else { format!(": {}", reasons.join("; ")) }
}
