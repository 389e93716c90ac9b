//! Who may delete the data of a backup with Velero's own tools.

use std::collections::BTreeMap;

use api::Kind;

use super::access::{Access, Attributes};
use super::verdict::{Verdict, conclude};
use crate::Policy;

/// nacre deletes the backup for the requester, so the requester must be permitted to. Of `spec.deleteBackup` the API
/// server judges that by itself.
pub(crate) fn of_deletion_request(access: &Access, backup: &str, policy: &Policy) -> Verdict {
    let kind = Kind::NonAdminBackup;
    let delete =
        Attributes { name: backup.to_owned(), ..Attributes::on("delete", kind.group(), kind.plural()) };
    conclude(access, &policy.requester, &BTreeMap::new(), Some(("spec.backupName", delete)))
}
