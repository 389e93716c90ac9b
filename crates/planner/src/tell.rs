//! Shapes that every status shares.

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

/// Velero's own words on why something ended badly, ready to follow a sentence.
pub(crate) fn reasons(failure: Option<&str>, errors: Option<&[String]>) -> String {
    let errors = errors.into_iter().flatten().map(String::as_str);
    let reasons: Vec<_> = failure.into_iter().chain(errors).collect();
    if reasons.is_empty() { String::new() } else { format!(": {}", reasons.join("; ")) }
}
