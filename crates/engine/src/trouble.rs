//! Remembering what the API server did not take, so that the next decision can tell it.

use std::sync::Arc;

use planner::{Action, Key, Trouble};

use crate::cluster::Cluster;
use crate::error::Failure;
use crate::lacking::is_missing_right;

/// Notes that a write which somebody wanted was not taken. What merely was out of date, or comes too fast, is no trouble.
pub(crate) fn note(cluster: &Cluster, about: &Key, action: &Action, failure: &Failure) {
    let Some(status) = failure.status().filter(|status| !matches!(status.code, 404 | 409 | 429)) else {
        return;
    };
    let (kind, of_status) = (action.kind(), matches!(action, Action::PatchStatus(..)));
    let trouble = Trouble { kind, of_status, code: status.code, message: status.message.clone(), times: 1 };
    // Of a status, no more is remembered than that less is to be shown.
    if of_status && trouble.may_pass() {
        return;
    }
    if is_missing_right(status) {
        cluster.lacking().off(&write(action), &status.message);
    }
    if status.code == 422 && of_status {
        let what = format!("{} are shown without some of Velero's words", kind.plural());
        let why = status.message.split_once(" is invalid: ").map_or(status.message.as_str(), |(_, why)| why);
        cluster.lacking().off(&what, &format!("the definition refuses them: {why}"));
    }
    cluster.change(|state| {
        let trouble = trouble.after(state.troubles.get(about).map(Arc::as_ref));
        state.troubles.insert(about.clone(), Arc::new(trouble));
        Vec::new()
    });
}

/// A write was taken.
pub(crate) fn taken(cluster: &Cluster, action: &Action) {
    cluster.lacking().on(&write(action));
}

/// Everything that was wanted is done. A status that was not taken is remembered all the same: what was written since is
/// less than what was wanted.
pub(crate) fn over(cluster: &Cluster, about: &Key) {
    if cluster.look().troubles.get(about).is_some_and(|trouble| !trouble.of_status) {
        cluster.change(|state| {
            state.troubles.remove(about);
            Vec::new()
        });
    }
}

/// What a right is called that a write needs.
fn write(action: &Action) -> String {
    let (verb, part) = match action {
        Action::Create(_) => ("create", ""),
        Action::Apply(_) | Action::Hold(..) | Action::Release(..) | Action::Patch(..) => ("patch", ""),
        Action::PatchStatus(..) => ("patch", "/status"),
        Action::Delete(_) | Action::DeleteUnchanged(_) => ("delete", ""),
    };
    format!("{verb} {}{part}", action.kind().plural())
}
