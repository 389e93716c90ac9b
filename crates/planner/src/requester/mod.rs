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
//! | `extra` | which extra fields of users are recorded |
//! | `abilities` | what somebody could back up and bring back, for `kubectl nacre whoami` |
//! | `foretell` | what somebody would not get of a request, for `explain` and `restore preview` |
//! | `message` | how that is told, with the command that an administrator would run |

mod abilities;
mod access;
mod backup;
mod deletion;
pub(crate) mod extra;
mod foretell;
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
pub(crate) use backup::{contents, needs_permissions, of_backup};
pub(crate) use deletion::of_deletion_request;
pub use extra::LIST;
pub use foretell::{Foretold, Wish, foretell};
pub(crate) use identity::BY_POLICY;
pub use identity::{Identity, Requester, of, of_deletion};
pub(crate) use location::of_location;
pub(crate) use message::{NEEDS_REVIEW, fill_condition, news, refusal, warnings};
pub use message::{create_role, permission_lines};
pub(crate) use restore::of_restore;
pub(crate) use verdict::{LeftOut, Verdict};

/// The reason of the Event when Velero is asked for a link.
pub const DOWNLOAD_REQUESTED: &str = "DownloadRequested";
/// The reason of the Event when Velero is asked to delete a backup with its data.
pub const DELETION_REQUESTED: &str = "DeletionRequested";

/// The annotation of a Velero object that shows administrators who asked.
pub(crate) fn annotation_of(identity: &Identity) -> Option<(String, String)> {
    identity.user().map(|user| (labels::REQUESTER.to_owned(), user.to_owned()))
}

/// The annotations of a Velero object that show administrators who asked, and what was left out.
pub(crate) fn annotations(access: &Access, left_out: &LeftOut) -> BTreeMap<String, String> {
    let user = annotation_of(&access.identity);
    let name = if left_out.enforced { labels::LEFT_OUT } else { labels::NOT_PERMITTED };
    let out = (!left_out.resources.is_empty()).then(|| (name.to_owned(), left_out.resources.join(",")));
    let unrecorded = left_out.unrecorded.then(|| (labels::NOT_RECORDED.to_owned(), "true".to_owned()));
    user.into_iter().chain(out).chain(unrecorded).collect()
}
