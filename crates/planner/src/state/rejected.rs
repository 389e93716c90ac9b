//! Writes that the API server rejected, kept so that the next decision can report them.

use std::sync::Arc;

use super::State;
use crate::{Action, Key, RejectedWrite};

/// The API server's answer to a write that it did not carry out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The HTTP status code.
    pub code: u16,
    /// The message. It may name what is none of a tenant's business.
    pub message: String,
    /// How many seconds the API server asks to wait.
    pub retry_after: Option<u32>,
}

impl State {
    /// Keeps a rejected write. What merely was out of date, or came too fast, says nothing about the write itself.
    pub fn note_rejected(&mut self, about: &Key, action: &Action, rejection: &Rejection) {
        if matches!(rejection.code, 404 | 409 | 429) {
            return;
        }
        let (kind, of_status) = (action.kind(), matches!(action, Action::PatchStatus(..)));
        let (code, message) = (rejection.code, rejection.message.clone());
        let rejected = RejectedWrite { kind, of_status, code, message, times: 1 };
        // Of a status, all that matters is whether less has to be shown.
        if of_status && rejected.is_transient() {
            return;
        }
        let rejected = rejected.after(self.rejected.get(about).map(Arc::as_ref));
        self.rejected.insert(about.clone(), Arc::new(rejected));
    }

    /// Everything that was decided about an object was written. A rejected status is kept all the same: what was written
    /// since is less than what was wanted.
    pub fn clear_rejected(&mut self, about: &Key) {
        if self.rejected.get(about).is_some_and(|rejected| !rejected.of_status) {
            self.rejected.remove(about);
        }
    }
}
