//! Writes that the API server rejects.

use api::Kind;
use planner::Action;

use super::World;
use super::server::Answer;

/// A value that an old CRD does not know and that Velero may report.
const UNKNOWN: &str = "\"Queued\"";

/// Writes that the API server rejects.
#[derive(Clone, Copy)]
pub(super) struct Refused {
    kind: Kind,
    of_status: bool,
    /// Only creates, no other writes.
    only_creates: bool,
    code: u16,
    /// How many more of them.
    left: usize,
}

impl World {
    /// The API server rejects all writes of this kind, or of its status where Velero says that it is Queued.
    pub(crate) fn refuse(&mut self, kind: Kind, of_status: bool, code: u16) {
        self.stop_recording();
        self.nacre.refuses.push(Refused { kind, of_status, only_creates: false, code, left: usize::MAX });
    }

    /// The API server rejects the next so many writes of this kind.
    pub(crate) fn refuse_next(&mut self, kind: Kind, code: u16, left: usize) {
        self.stop_recording();
        self.nacre.refuses.push(Refused { kind, of_status: false, only_creates: false, code, left });
    }

    /// The API server rejects all creates of this kind.
    pub(crate) fn refuse_creates(&mut self, kind: Kind, code: u16) {
        self.stop_recording();
        self.nacre.refuses.push(Refused {
            kind,
            of_status: false,
            only_creates: true,
            code,
            left: usize::MAX,
        });
    }

    /// It accepts everything again.
    pub(crate) fn relent(&mut self) {
        self.nacre.refuses.clear();
    }

    /// The answer to a write that the API server rejects.
    pub(super) fn refused(&mut self, action: &Action) -> Option<Answer> {
        let word = match action {
            // A phase: a condition has this word for its type.
            Action::PatchStatus(_, body) => {
                body.to_string().contains(&format!("\"phase\":{UNKNOWN}")).then_some(UNKNOWN)
            }
            _ => None,
        };
        let of_status = matches!(action, Action::PatchStatus(..));
        let fits = |refused: &&mut Refused| {
            let this = (refused.kind, refused.of_status) == (action.kind(), of_status);
            let this = this && (!refused.only_creates || matches!(action, Action::Create(_)));
            this && refused.left > 0 && word.is_some() == of_status
        };
        let refused = self.nacre.refuses.iter_mut().find(fits)?;
        refused.left -= 1;
        let code = refused.code;
        self.trace.push(format!("{code} {}", self.described(action)));
        let message = word.map_or_else(String::new, |word| format!("Unsupported value: {word}"));
        Some(Answer::rejected(code, &message))
    }
}
