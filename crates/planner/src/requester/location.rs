//! Who may bring which key to a bucket.

use std::collections::BTreeMap;

use super::access::{Access, Attributes};
use super::verdict::{Verdict, conclude, nobody};
use crate::{Policy, Refusal};

/// A location names a Secret, and Velero gets what is in it: only for those who may read that Secret.
pub(crate) fn of_location(access: &Access, secret: &str, policy: &Policy) -> Verdict {
    let read = Attributes { name: secret.to_owned(), ..Attributes::on("get", "", "secrets") };
    let field = "spec.backupStorageLocationSpec.credential";
    match conclude(access, &policy.requester, &BTreeMap::new(), Some((field, read))) {
        Verdict::Refused(refusal) if nobody(access, &policy.requester).is_none() => {
            Verdict::Refused(Refusal::goes_on(refusal.field, refusal.message))
        }
        verdict => verdict,
    }
}
