//! The state of a location, as text.

use api::{NonAdminBackupStorageLocation, Phase, condition};
use planner::{HealedBy, healed_by};

use crate::{output::Outcome, style, table::Cell};

/// The state of a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LocationState<'a> {
    /// nacre has not processed it yet.
    New,
    /// An administrator has to approve it.
    Pending,
    /// An administrator said no, in these words.
    Rejected(&'a str),
    /// Refused, and why: the location or the policy has to change.
    Refused(&'a str),
    /// It waits for a Secret, a limit, the policy or a retry, and goes on by itself.
    Waiting(&'a str),
    /// Velero has it and has not reached it yet.
    Checking,
    /// Velero can use it.
    Available,
    /// Velero cannot reach it, and why.
    Unavailable(&'a str),
    /// It is being deleted.
    Deleting,
}

impl<'a> From<&'a NonAdminBackupStorageLocation> for LocationState<'a> {
    fn from(location: &'a NonAdminBackupStorageLocation) -> Self {
        if location.metadata.deletion_timestamp.is_some() {
            return Self::Deleting;
        }
        let Some(status) = &location.status else { return Self::New };
        let find = |type_| condition::get(&status.conditions, type_);
        let approved = find(condition::CLUSTER_ADMIN_APPROVED);
        match approved.map(|approved| (approved.reason.as_str(), approved.message.as_str())) {
            Some((condition::BSL_SPEC_APPROVAL_PENDING, _)) => return Self::Pending,
            Some((condition::BSL_SPEC_REJECTED, words)) => return Self::Rejected(words),
            _ => {}
        }
        let velero_status =
            status.velero_backup_storage_location.as_ref().and_then(|velero| velero.status.as_ref());
        match status.phase {
            None | Some(Phase::New) => Self::New,
            Some(Phase::Deleting) => Self::Deleting,
            Some(Phase::BackingOff) => {
                let types = [
                    condition::SPEC_UPDATE_APPROVED,
                    condition::ACCEPTED,
                    condition::CLUSTER_ADMIN_APPROVED,
                    condition::SECRET_SYNCED,
                    condition::LOCATION_SYNCED,
                ];
                let no = types.into_iter().filter_map(find).find(|found| found.status == "False");
                let why = no.map_or("", |no| no.message.as_str());
                if no.and_then(healed_by).is_some_and(HealedBy::is_waiting) {
                    Self::Waiting(why)
                } else {
                    Self::Refused(why)
                }
            }
            Some(Phase::Created) => {
                match velero_status.and_then(|velero_status| velero_status.phase.as_deref()) {
                    Some("Available") => Self::Available,
                    Some("Unavailable") => Self::Unavailable(
                        velero_status
                            .and_then(|velero_status| velero_status.message.as_deref())
                            .unwrap_or_default(),
                    ),
                    _ => Self::Checking,
                }
            }
        }
    }
}

impl LocationState<'_> {
    /// One word for a table.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::New => "New",
            Self::Pending => "Pending",
            Self::Rejected(_) => "Rejected",
            Self::Refused(_) => "Refused",
            Self::Waiting(_) => "Waiting",
            Self::Checking => "Checking",
            Self::Available => "Available",
            Self::Unavailable(_) => "Unavailable",
            Self::Deleting => "Deleting",
        }
    }

    /// The same, in colour.
    pub(crate) fn cell(self) -> Cell {
        let style = match self {
            Self::Available => style::GOOD,
            Self::Pending | Self::Waiting(_) => style::WARNING,
            Self::Rejected(_) | Self::Refused(_) | Self::Unavailable(_) => style::BAD,
            Self::New | Self::Checking => style::BUSY,
            Self::Deleting => style::QUIET,
        };
        Cell::painted(style, self.word())
    }

    /// What follows the word: its sentence, without the word in it.
    pub(crate) fn detail(self) -> String {
        match self {
            Self::Refused(why) | Self::Waiting(why) => why.to_owned(),
            _ => self.sentence(),
        }
    }

    /// A sentence, without its name.
    pub(crate) fn sentence(self) -> String {
        match self {
            Self::New => "nacre has not processed it yet".to_owned(),
            Self::Pending => "waiting for an administrator to approve it".to_owned(),
            Self::Rejected("") => "an administrator has rejected it".to_owned(),
            Self::Rejected(words) => words.to_owned(),
            Self::Refused(why) => format!("refused: {why}"),
            Self::Waiting(why) => format!("waiting: {why}"),
            Self::Checking => "Velero has it and is trying to reach it".to_owned(),
            Self::Available => "ready: Velero can use it".to_owned(),
            Self::Unavailable(why) => format!("Velero cannot reach it: {why}"),
            Self::Deleting => "being deleted".to_owned(),
        }
    }

    /// What its owner can do next, as commands and short sentences.
    pub(crate) fn next(self, name: &str) -> Vec<String> {
        match self {
            Self::New | Self::Checking => vec![format!("kubectl nacre location describe {name}")],
            Self::Waiting(_) => vec![format!("kubectl nacre location wait {name}")],
            Self::Pending => vec!["ask an administrator to approve it: kubectl nacre request list".to_owned()],
            Self::Rejected(_) => vec![
                "ask the administrators why".to_owned(),
                format!("kubectl nacre location delete {name}"),
            ],
            Self::Refused(_) => vec![
                "fix what it names, or delete it and create a new one: a location cannot be changed once it is requested"
                    .to_owned(),
                format!("kubectl nacre explain location {name}"),
            ],
            Self::Unavailable(_) => {
                vec!["check bucket, endpoint and credential; Velero retries every minute".to_owned()]
            }
            Self::Available => vec![format!("kubectl nacre backup create --storage-location {name}")],
            Self::Deleting => Vec::new(),
        }
    }

    /// How a wait for it ends; none if it goes on.
    pub(crate) const fn outcome(self) -> Option<Outcome> {
        match self {
            Self::Available => Some(Outcome::Good),
            Self::Rejected(_) | Self::Refused(_) | Self::Unavailable(_) | Self::Deleting => {
                Some(Outcome::Failed)
            }
            Self::New | Self::Pending | Self::Checking | Self::Waiting(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_goes_on_by_itself_waits_and_the_rest_is_refused() {
        let cases = [
            (
                "Accepted",
                "BslSpecValidation",
                "there is no Secret; create it, and the location goes on by itself",
                true,
            ),
            ("Accepted", "BslSpecValidation", "this namespace has 3; delete one to make room", true),
            ("Accepted", "PolicyUnavailable", "any", true),
            ("SecretSynced", "SecretSyncFailed", "any", true),
            ("BackupStorageLocationSynced", "BackupStorageLocationSyncError", "any", true),
            ("Accepted", "BslSpecValidation", "the provider is not allowed", false),
            ("SpecUpdateApproved", "BslSpecUpdateRejected", "any", false),
        ];
        for (type_, reason, message, waits) in cases {
            let location: NonAdminBackupStorageLocation =
                serde_json::from_value(json!({"apiVersion": "oadp.openshift.io/v1alpha1",
                "kind": "NonAdminBackupStorageLocation", "metadata": {"name": "mine"},
                "spec": {"backupStorageLocationSpec": {"provider": "aws", "objectStorage": {"bucket": "b"}}},
                "status": {"phase": "BackingOff", "conditions": [{"type": type_, "status": "False", "reason": reason,
                    "message": message, "lastTransitionTime": "2026-11-15T12:00:01Z"}]}}))
                .unwrap();
            let state = LocationState::from(&location);
            let (word, outcome) = if waits { ("Waiting", None) } else { ("Refused", Some(Outcome::Failed)) };
            assert_eq!((state.word(), state.outcome()), (word, outcome), "{reason}: {message}");
        }
    }
}
