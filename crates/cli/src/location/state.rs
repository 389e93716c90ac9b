//! The state of a location, as text.

use api::{NonAdminBackupStorageLocation, Phase, condition};

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
    /// Refused, and why.
    Refused(&'a str),
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
                Self::Refused(no.map_or("", |no| no.message.as_str()))
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
            Self::Pending => style::WARNING,
            Self::Rejected(_) | Self::Refused(_) | Self::Unavailable(_) => style::BAD,
            Self::New | Self::Checking => style::BUSY,
            Self::Deleting => style::QUIET,
        };
        Cell::painted(style, self.word())
    }

    /// A sentence, without its name.
    pub(crate) fn sentence(self) -> String {
        match self {
            Self::New => "nacre has not processed it yet".to_owned(),
            Self::Pending => "waiting for an administrator to approve it".to_owned(),
            Self::Rejected("") => "an administrator has rejected it".to_owned(),
            Self::Rejected(words) => words.to_owned(),
            Self::Refused(why) => format!("refused: {why}"),
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
            Self::New | Self::Pending | Self::Checking => None,
        }
    }
}
