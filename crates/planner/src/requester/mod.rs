//! The person behind a request: who asked, what that person has to be permitted, and what is left out otherwise.
//!
//! The API server records who asked in an annotation of the request (`admission::requester`), and nobody can forge it.
//! [`of`] reads it. What the person is permitted is asked by SubjectAccessReview: a decision returns the reviews it
//! needs in its plan ([`Ask`]), the engine performs them, and the answers are facts in the state for a minute.
//!
//! | file | what it decides |
//! | --- | --- |
//! | `access` | what is known of the requester's permissions, and what has to be asked |
//! | `kinds` | which kinds a backup or a restore is about, and which permissions they need |
//! | `backup`, `restore`, `location` | what is left out of a request, and what refuses it |
//! | `verdict` | what a check means for the request |
//! | `abilities` | what somebody could back up and bring back, for `kubectl nacre whoami` |
//! | `message` | how that is told, with the command that an administrator would run |

mod abilities;
mod access;
mod backup;
mod identity;
mod kinds;
mod location;
mod message;
mod restore;
mod verdict;

use std::collections::BTreeMap;

use api::labels;

pub use abilities::{Abilities, abilities};
pub use access::{Access, Answer, Answers, Ask, Attributes, FRESH, Review};
pub(crate) use backup::{contents, of_backup};
pub use identity::{Identity, Requester, of, of_deletion};
pub(crate) use location::of_location;
pub(crate) use message::{NEEDS_REVIEW, fill_condition, news, refusal, warnings};
pub use message::{create_role, permission_lines};
pub use restore::not_restorable;
pub(crate) use restore::of_restore;
pub(crate) use verdict::{LeftOut, Verdict};

/// The annotations of a Velero object that tell administrators who asked, and what was left out.
pub(crate) fn annotations(access: &Access, left_out: &LeftOut) -> BTreeMap<String, String> {
    let user = access.identity.user().map(|user| (labels::REQUESTER.to_owned(), user.to_owned()));
    let name = if left_out.enforced { labels::LEFT_OUT } else { labels::NOT_PERMITTED };
    let out = (!left_out.resources.is_empty()).then(|| (name.to_owned(), left_out.resources.join(",")));
    user.into_iter().chain(out).collect()
}
