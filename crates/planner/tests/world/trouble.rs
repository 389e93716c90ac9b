//! What the API server does not take, and what nacre remembers of it.

use std::sync::Arc;

use api::Kind;
use planner::{Action, Key, Trouble};

use super::World;

/// What an old definition does not know that Velero may say.
const UNKNOWN: &str = "\"Queued\"";

/// Writes that the API server does not take.
#[derive(Clone, Copy)]
pub(super) struct Refused {
    kind: Kind,
    of_status: bool,
    code: u16,
    /// How many more of them.
    left: usize,
}

impl World {
    /// The API server takes no more writes of this kind, or of its status where Velero says that it is Queued.
    pub(crate) fn refuse(&mut self, kind: Kind, of_status: bool, code: u16) {
        self.stop_tape();
        self.nacre.refuses.push(Refused { kind, of_status, code, left: usize::MAX });
    }

    /// The API server does not take the next so many writes of this kind.
    pub(crate) fn refuse_next(&mut self, kind: Kind, code: u16, left: usize) {
        self.stop_tape();
        self.nacre.refuses.push(Refused { kind, of_status: false, code, left });
    }

    /// It takes everything again.
    pub(crate) fn relent(&mut self) {
        self.nacre.refuses.clear();
    }

    /// Whether the API server does not take a write. nacre hears it and decides anew.
    pub(super) fn is_refused(&mut self, key: &Key, action: &Action) -> bool {
        let word = match action {
            Action::PatchStatus(_, body) => body.to_string().contains(UNKNOWN).then_some(UNKNOWN),
            _ => None,
        };
        let of_status = matches!(action, Action::PatchStatus(..));
        let fits = |refused: &&mut Refused| {
            let this = (refused.kind, refused.of_status) == (action.kind(), of_status);
            this && refused.left > 0 && word.is_some() == of_status
        };
        let Some(refused) = self.nacre.refuses.iter_mut().find(fits) else { return false };
        refused.left -= 1;
        let code = refused.code;
        self.trace.push(format!("{code} {}", self.described(action)));
        let message = word.map_or_else(String::new, |word| format!("Unsupported value: {word}"));
        self.note_trouble(key, action, code, message);
        self.wake(vec![key.clone()]);
        true
    }

    /// As the engine has it: what was not taken is remembered, and how often in a row.
    pub(super) fn note_trouble(&mut self, about: &Key, action: &Action, code: u16, message: String) {
        let of_status = matches!(action, Action::PatchStatus(..));
        let trouble = Trouble { kind: action.kind(), of_status, code, message, times: 1 };
        if of_status && trouble.may_pass() {
            return;
        }
        let trouble = trouble.after(self.nacre.troubles.get(about).map(Arc::as_ref));
        self.nacre.troubles.insert(about.clone(), Arc::new(trouble));
    }

    /// As the engine has it: all that was wanted is done.
    pub(super) fn trouble_is_over(&mut self, about: &Key) {
        if self.nacre.troubles.get(about).is_some_and(|trouble| !trouble.of_status) {
            self.nacre.troubles.remove(about);
        }
    }
}
